//! Runs recovery every second, and warns of orders that wait for the operator: their supplier has not answered for half
//! an hour.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::error::Result;
use crate::ops::{operator, recover};
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(1);

pub async fn run(app: App, stop: CancellationToken) {
    let (mut warned, lines) = (0, EveryMinute::default());
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(round) = stop.run_until_cancelled(round(&app, &mut warned)).await else { break };
        ended(round, &lines, "recovery could not run");
    }
}

async fn round(app: &App, warned: &mut i64) -> Result<()> {
    recover::round(app).await?;
    let stuck: i64 = operator::stuck_orders(app).await?.iter().map(|(_, count)| count).sum();
    if stuck > *warned {
        tracing::warn!(
            stuck,
            "orders have waited for their supplier for over 30 minutes; see `simgate order list --stuck`"
        );
    }
    *warned = stuck;
    Ok(())
}
