//! Goes on with orders that were placed at once, where the instance that bought them has died or met trouble.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::ops::batches::work;
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(1);

pub async fn run(app: App, stop: CancellationToken) {
    let lines = EveryMinute::default();
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(round) = stop.run_until_cancelled(work::round(&app)).await else { break };
        ended(round, &lines, "orders that were placed at once cannot be looked for");
    }
}
