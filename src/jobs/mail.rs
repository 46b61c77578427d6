//! Sends mails as soon as they are queued, and failed ones when their pause is over.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ended;
use crate::app::App;
use crate::ops::mail;
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(1);

pub async fn run(app: App, stop: CancellationToken) {
    let lines = EveryMinute::default();
    let mut sending = JoinSet::new();
    loop {
        let wait = async {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = app.mail_now.notified() => {}
            }
        };
        if stop.run_until_cancelled(wait).await.is_none() {
            break;
        }
        ended(mail::round(&app, &mut sending).await, &lines, "the outbox cannot be read");
    }
    // Mails in progress are finished: one that is cut off in the middle would be sent twice.
    while sending.join_next().await.is_some() {}
}
