//! Looks four times a second for what other processes changed, so that a change counts here within a second; and at
//! once when a caller shows an unknown key.

use std::time::Duration;

use metrics::counter;
use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::ops::refresh::refresh;
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_millis(250);
/// The least time between two looks, however many callers ask.
const LEAST: Duration = Duration::from_millis(25);
const _: () = assert!(EVERY.as_millis() * 2 <= 1_000, "a change counts everywhere within a second");

pub async fn run(app: App, stop: CancellationToken) {
    let lines = EveryMinute::default();
    loop {
        let wait = async {
            tokio::time::sleep(LEAST).await;
            tokio::select! {
                () = tokio::time::sleep(EVERY - LEAST) => {}
                () = app.rounds.wanted() => counter!("simgate_lookups_total", "of" => "key").increment(1),
            }
        };
        if stop.run_until_cancelled(wait).await.is_none() {
            break;
        }
        ended(refresh(&app).await, &lines, "cannot see what other processes changed");
    }
}
