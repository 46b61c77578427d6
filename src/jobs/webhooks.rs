//! Delivers events to webhooks.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::ops::webhooks::dispatch::{Dispatcher, Pace};
use crate::telemetry::EveryMinute;

const BRISK: Duration = Duration::from_millis(50);
const EASY: Duration = Duration::from_secs(1);

pub async fn run(app: App, stop: CancellationToken) {
    let (mut dispatcher, lines) = (Dispatcher::default(), EveryMinute::default());
    loop {
        let Some(round) = stop.run_until_cancelled(dispatcher.round(&app)).await else { break };
        let pause = if let Ok(Pace::Brisk) = round { BRISK } else { EASY };
        ended(round.map(drop), &lines, "events cannot be delivered to webhooks");
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            break;
        }
    }
    if let Err(error) = dispatcher.give_up_turn(&app).await {
        tracing::debug!(%error, "the turn to deliver could not be given up; it ends by itself");
    }
}
