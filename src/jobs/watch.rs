//! Looks four times a second for what other processes changed, so that it counts here within one.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::ops::refresh::{Versions, refresh};

const EVERY: Duration = Duration::from_millis(250);

pub async fn run(app: App, mut seen: Versions, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        match refresh(&app, seen).await {
            Ok(versions) => seen = versions,
            Err(error) => tracing::warn!(%error, "cannot see what other processes changed; trying again"),
        }
    }
}
