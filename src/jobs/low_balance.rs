//! Tells partners when their balance is low.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::ops::low_balance;
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(2);

pub async fn run(app: App, stop: CancellationToken) {
    let lines = EveryMinute::default();
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(round) = stop.run_until_cancelled(low_balance::round(&app)).await else { break };
        ended(round, &lines, "low balances cannot be looked for");
    }
}
