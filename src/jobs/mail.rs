//! Sends what is queued as soon as it is, and what failed when its pause is over; forgets old logins once a minute.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::ops::{jobs, mail};
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_secs(1);
const ROUNDS_BETWEEN_CLEANING: u32 = 60;

pub async fn run(app: App, stop: CancellationToken) {
    let (lines, mut rounds) = (EveryMinute::default(), 0u32);
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
        let mut outcome = mail::round(&app, &mut sending).await;
        if rounds.is_multiple_of(ROUNDS_BETWEEN_CLEANING) && outcome.is_ok() {
            outcome = mail::forget_old(&app).await;
        }
        rounds = rounds.wrapping_add(1);
        if let Err(error) = outcome
            && let Some(left_out) = lines.turn()
        {
            tracing::warn!(%error, left_out, "the outbox cannot be read; trying again");
        }
        jobs::finished();
    }
    // What is being sent is finished: cut off in the middle it would be sent twice.
    while sending.join_next().await.is_some() {}
}
