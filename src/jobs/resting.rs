//! Looks at the balances of all addresses, beside the scanners: a long search must not keep them from new blocks.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::chain::Chain;
use crate::ops::resting;
use crate::ops::scan::Halt;

/// Whether a day has passed is a small question; so a look that failed is soon tried again.
const EVERY: Duration = Duration::from_secs(10);

pub async fn run(app: App, chain: Arc<dyn Chain>, stop: CancellationToken) {
    let network = chain.network().as_str();
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        match stop.run_until_cancelled(resting::look(&app, &*chain)).await {
            Some(Ok(())) | None => {}
            Some(Err(Halt::Chain(trouble))) => {
                tracing::warn!(network, %trouble, "balances could not be looked at")
            }
            Some(Err(Halt::Ours(error))) => {
                tracing::warn!(network, %error, "balances could not be looked at")
            }
        }
    }
}
