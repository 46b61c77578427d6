//! Whether the database takes writes, for load balancers: every writer gets a write that changes nothing. Load
//! balancers ask often, and there may be many, so it is tried at most once a second and all share the answer.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::sync::Mutex;

use super::writer::Pending;
use crate::error::Result;

const EVERY: Duration = Duration::from_secs(1);
/// How long a writer may take: a busy one needs a while, but one that hangs must not keep callers waiting.
const WITHIN: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct Readiness {
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    tried: Option<Instant>,
    could: bool,
}

impl Readiness {
    pub async fn ask(&self, attempt: impl FnOnce() -> Result<Vec<Pending<()>>>) -> bool {
        let mut last = self.last.lock().await;
        if last.tried.is_some_and(|tried| tried.elapsed() < EVERY) {
            return last.could;
        }
        // Noted first, so that a caller who asks and goes away has used up this second's attempt.
        last.tried = Some(Instant::now());
        let all = async { try_join_all(attempt()?.into_iter().map(Pending::answer)).await };
        let could = match tokio::time::timeout(WITHIN, all).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the database takes no writes; we are not ready");
                false
            }
            Err(_) => {
                tracing::warn!(
                    "the database has not taken a write for {} s; we are not ready",
                    WITHIN.as_secs()
                );
                false
            }
        };
        *last = Last { tried: Some(Instant::now()), could };
        could
    }
}
