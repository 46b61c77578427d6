//! Runs recovery every second, and speaks up about orders that have waited for half an hour.

use std::time::Duration;

use metrics::gauge;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::error::Result;
use crate::ops::{operator, recover};

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
    Ok(())
}
