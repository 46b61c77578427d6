//! What limits deliveries: whose turn it is, how much may be under way, and what goes before them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Gate, MutexGuard as GateGuard, Semaphore, SemaphorePermit};

use crate::app::App;
use crate::error::{Error, Result};

/// A try that might not end before the turn does is not begun.
const MARGIN: Duration = Duration::from_secs(11);
/// So many unfinished writes of others are much to do, also for so long after they were seen: writes come in waves.
const BUSY: usize = 16;
const LINGER: Duration = Duration::from_millis(50);
/// How long the next one waits for each event of a batch.
pub const PAUSE: Duration = Duration::from_millis(1);

/// The turn to deliver, which one instance has at a time.
pub struct Turn {
    pub holder: String,
    pub until: Mutex<Instant>,
}

impl Turn {
    /// Whether a try that begins now ends before the turn does.
    pub fn is_ours(&self) -> bool {
        Instant::now() + MARGIN < *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn lasts_until(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

/// How much may be under way at once: to the endpoints of one account, and to all.
pub struct Places {
    pub of_account: Arc<Semaphore>,
    pub everywhere: Arc<Semaphore>,
}

impl Places {
    pub async fn take(&self) -> Result<(SemaphorePermit<'_>, SemaphorePermit<'_>)> {
        let of_account = self.of_account.acquire().await.map_err(Error::fault)?;
        Ok((of_account, self.everywhere.acquire().await.map_err(Error::fault)?))
    }
}

/// Deliveries give way to what somebody waits for. While there is much to do, workers take their batches one after another,
/// with a pause for each event: the later they come, the more each finds.
pub struct Courtesy {
    gate: Gate<()>,
    busy_until: Mutex<Instant>,
    /// How many writes of deliveries themselves are unfinished.
    own: AtomicUsize,
}

impl Default for Courtesy {
    fn default() -> Courtesy {
        Courtesy { gate: Gate::default(), busy_until: Mutex::new(Instant::now()), own: AtomicUsize::new(0) }
    }
}

impl Courtesy {
    /// Waits for a turn to take a batch while there is much to do.
    pub async fn turn(&self, app: &App) -> Option<GateGuard<'_, ()>> {
        if !self.is_busy(app) {
            return None;
        }
        let turn = self.gate.lock().await;
        self.is_busy(app).then_some(turn)
    }

    /// A write of deliveries themselves: they do not give way to each other.
    pub async fn own<T>(&self, write: impl Future<Output = T>) -> T {
        self.own.fetch_add(1, Ordering::Relaxed);
        let written = write.await;
        self.own.fetch_sub(1, Ordering::Relaxed);
        written
    }

    fn is_busy(&self, app: &App) -> bool {
        let now = Instant::now();
        let mut until = self.busy_until.lock().unwrap_or_else(PoisonError::into_inner);
        if app.store.unfinished() >= BUSY + self.own.load(Ordering::Relaxed) {
            *until = now + LINGER;
        }
        now < *until
    }
}
