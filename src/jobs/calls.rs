//! Writes down which calls of the partner API were answered. Each instance writes its own. What is answered while the
//! gateway stops is written when the last answer has gone (`start.rs`).

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::ops::calls;
use crate::telemetry::EveryMinute;

pub async fn run(app: App, stop: CancellationToken) {
    let (mut pause, lines) = (calls::EVERY, EveryMinute::default());
    while stop.run_until_cancelled(sleep(pause)).await.is_some() {
        let Some(round) = stop.run_until_cancelled(calls::round(&app)).await else { break };
        pause = *round.as_ref().unwrap_or(&calls::EVERY);
        ended(round.map(drop), &lines, "calls cannot be written down");
    }
}
