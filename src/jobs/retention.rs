//! Forgets what is old: logins every minute, the rest once a day. By the gateway's clock, which a sandbox may move.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::domain::login::DAY_MS;
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::{jobs, retention};
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(1);
const MINUTE_MS: i64 = 60_000;

pub async fn run(app: App, stop: CancellationToken) {
    let lines = EveryMinute::default();
    let mut last = Last::default();
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let Some(round) = stop.run_until_cancelled(last.round(&app)).await else { break };
        if let Err(error) = round
            && let Some(left_out) = lines.turn()
        {
            tracing::warn!(%error, left_out, "what is old cannot be forgotten; trying again");
        }
        jobs::finished();
    }
}

/// When each kind was last gone through.
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
            self.rest = Some(now);
        }
        Ok(())
    }
}
