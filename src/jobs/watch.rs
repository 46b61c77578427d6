//! Looks four times a second for what other processes changed, so that it counts here within one.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::ops::refresh::refresh;

const EVERY: Duration = Duration::from_millis(250);
const _: () = assert!(EVERY.as_millis() * 2 <= 1_000, "a change counts everywhere within a second");

pub async fn run(app: App, stop: CancellationToken) {
    let mut blind = false;
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        match refresh(&app).await {
            Ok(()) => blind = false,
            // Once for each outage: four lines a second would bury everything else.
            Err(error) if !blind => {
                tracing::warn!(%error, "cannot see what other processes changed; trying again");
                blind = true;
            }
            Err(_) => {}
        }
    }
}
