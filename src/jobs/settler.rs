//! Settles payments by signature, each network in a task of its own.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::halted;
use crate::app::App;
use crate::domain::network::Network;
use crate::ops::jobs;
use crate::ops::scan::Pace;
use crate::ops::settler::Settling;
use crate::telemetry::EveryMinute;

/// The pause while payments are being settled.
const BRISK: Duration = Duration::from_millis(250);
/// The pause while none is: a claim on this instance ends it, a claim on another waits for its end.
const EASY: Duration = Duration::from_secs(1);
const AFTER_TROUBLE: Duration = Duration::from_secs(2);

pub async fn run(app: App, network: Network, stop: CancellationToken) {
    let mut settling = Settling::new(network);
    let lines = EveryMinute::default();
    let mut claimed = app.claimed.subscribe();
    loop {
        claimed.mark_unchanged();
        let Some(round) = stop.run_until_cancelled(settling.round(&app)).await else { break };
        let pause = match round {
            Ok(Pace::Brisk) => BRISK,
            Ok(Pace::Easy) => EASY,
            Err(halt) => {
                halted(&halt, &lines, network.as_str(), "payments cannot be settled; trying again");
                AFTER_TROUBLE
            }
        };
        jobs::finished();
        let wait = async {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = claimed.changed() => {}
            }
        };
        if stop.run_until_cancelled(wait).await.is_none() {
            break;
        }
    }
    if let Err(error) = settling.give_up_turn(&app).await {
        tracing::debug!(network = network.as_str(), %error, "the turn could not be given up; it ends by itself");
    }
}
