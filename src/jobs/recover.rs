//! Runs recovery every second, and counts what waits for the operator: orders that their supplier has not
//! answered for half an hour, and money that is nobody's.

use std::time::Duration;

use metrics::gauge;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::error::Result;
use crate::ops::{operator, recover, transfers};

const EVERY: Duration = Duration::from_secs(1);

pub async fn run(app: App, stop: CancellationToken) {
    let mut warned = 0;
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        if let Some(Err(error)) = stop.run_until_cancelled(round(&app, &mut warned)).await {
            tracing::warn!(%error, "recovery could not run; trying again");
        }
    }
}

async fn round(app: &App, warned: &mut i64) -> Result<()> {
    recover::round(app).await?;
    let stuck: i64 = operator::stuck_orders(app).await?.iter().map(|(_, count)| count).sum();
    gauge!("simgate_orders_stuck").set(stuck as f64);
    if stuck > *warned {
        tracing::warn!(
            stuck,
            "orders have waited for their supplier for over 30 minutes; see `simgate order list --stuck`"
        );
    }
    *warned = stuck;
    gauge!("simgate_transfers_unmatched").set(transfers::count_unmatched(app).await? as f64);
    Ok(())
}
