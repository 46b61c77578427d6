//! Whether the database has room for writes. A full disk, or a server out of memory or connections, is temporary:
//! callers are asked to come back, nothing is begun, and the log says so once a minute.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use metrics::counter;

use crate::telemetry::EveryMinute;

/// How long after a refusal a success proves nothing: a small write may find room where a larger one did not.
const DISTRUST: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct Room {
    is_missing: AtomicBool,
    refused_at: Mutex<Option<Instant>>,
    lines: EveryMinute,
}

impl Room {
    pub fn is_there(&self) -> bool {
        !self.is_missing.load(Ordering::Relaxed)
    }

    /// Notes that the database refused a write.
    pub fn refused(&self, what: &str) {
        *self.refused_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.is_missing.store(true, Ordering::Relaxed);
        counter!("simgate_writes_refused_total").increment(1);
        if let Some(left_out) = self.lines.turn() {
            tracing::error!(
                what,
                left_out,
                "the database has no room for what is written: nothing can be sold"
            );
        }
    }

    /// Notes a write that succeeded.
    pub fn taken(&self) {
        if self.is_there() {
            return;
        }
        let refused_at = self.refused_at.lock().unwrap_or_else(PoisonError::into_inner);
        if refused_at.is_none_or(|at| at.elapsed() >= DISTRUST)
            && self.is_missing.swap(false, Ordering::Relaxed)
        {
            tracing::info!("the database has room again");
        }
    }
}
