//! Reads the meters of profiles that nobody asks for, at their suppliers' pace.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::ops::usage;
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(1);

pub async fn run(app: App, stop: CancellationToken) {
    let lines = EveryMinute::default();
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(round) = stop.run_until_cancelled(usage::round(&app)).await else { break };
        ended(round, &lines, "profiles cannot be read");
    }
}
