//! Forgets old rows: logins every minute, the rest once a day. By the gateway's clock, which a sandbox may move.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::domain::login::DAY_MS;
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::retention;
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(1);
const MINUTE_MS: i64 = 60_000;

pub async fn run(app: App, stop: CancellationToken) {
    let (mut last, lines) = (Last::default(), EveryMinute::default());
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(round) = stop.run_until_cancelled(last.round(&app)).await else { break };
        ended(round, &lines, "old rows cannot be deleted");
    }
}

/// When each kind was last forgotten.
#[derive(Default)]
struct Last {
    logins: Option<Time>,
    rest: Option<Time>,
}

impl Last {
    async fn round(&mut self, app: &App) -> Result<()> {
        let now = app.now();
        if !self.logins.is_some_and(|at| now.is_within(MINUTE_MS, at)) {
            retention::forget_logins(app).await?;
            self.logins = Some(now);
        }
        if !self.rest.is_some_and(|at| now.is_within(DAY_MS, at)) {
            if !retention::forget_unpaid(app).await? {
                return Ok(());
            }
            retention::forget_codes(app).await?;
            retention::forget_events(app).await?;
            retention::forget_deliveries(app).await?;
            retention::forget_batches(app).await?;
            retention::forget_usage(app).await?;
            self.rest = Some(now);
        }
        Ok(())
    }
}
