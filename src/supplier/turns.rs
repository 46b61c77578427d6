//! A supplier's rate, kept by all instances together: each request takes the next turn from the database.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::wire::Pace;
use crate::clock::Clock;
use crate::store::{Store, suppliers};

/// Turns belong to no wallet; they share one lane.
const LANE: i64 = 0;

/// A turn that is further away is not waited for.
const LONGEST_MS: i64 = 20_000;

pub struct Turns {
    pub store: Arc<Store>,
    pub clock: Arc<Clock>,
    pub supplier: &'static str,
    /// The time between two turns.
    pub step: Duration,
}

impl Turns {
    async fn wait(&self) -> Result<(), String> {
        let (name, now, step) = (self.supplier, self.clock.now(), self.step.as_micros() as i64);
        let latest = now.plus_millis(LONGEST_MS);
        let taken = self.store.finish(LANE, move |tx| suppliers::turn(tx, name, now, step, latest)).await;
        let turn = taken.map_err(|error| error.to_string())?;
        let turn =
            turn.ok_or_else(|| format!("{name} is asked too much: no turn within {} s", LONGEST_MS / 1_000))?;
        let wait = (turn.micros() - now.micros()).max(0).unsigned_abs();
        tokio::time::sleep(Duration::from_micros(wait)).await;
        Ok(())
    }
}

impl Pace for Turns {
    fn turn(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(self.wait())
    }
}
