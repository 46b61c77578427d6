//! Looks after the suppliers: whether those that were silent answer again, their balances, and their plans.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::ops::suppliers;
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(10);

pub async fn run(app: App, stop: CancellationToken) {
    let lines = EveryMinute::default();
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(round) = stop.run_until_cancelled(suppliers::round(&app)).await else { break };
        ended(round, &lines, "suppliers cannot be looked after");
    }
}
