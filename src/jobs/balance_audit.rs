//! Checks the balances of all addresses, beside the scanners: a long search must not keep them from new blocks.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::halted;
use crate::app::App;
use crate::chain::Chain;
use crate::ops::{balance_audit, jobs};
use crate::telemetry::EveryMinute;

/// How often to ask whether a day has passed. The question is cheap, so a failed check is soon tried again.
const EVERY: Duration = Duration::from_secs(10);

pub async fn run(app: App, chain: Arc<dyn Chain>, stop: CancellationToken) {
    let (network, lines) = (chain.network().as_str(), EveryMinute::default());
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(looked) = stop.run_until_cancelled(balance_audit::look(&app, &*chain)).await else { break };
        if let Err(halt) = looked {
            halted(&halt, &lines, network, "balances could not be checked");
        }
        jobs::finished();
    }
}
