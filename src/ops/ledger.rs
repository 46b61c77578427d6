//! Proving the books: every law of the ledger, over one consistent state of the database.

use crate::app::App;
use crate::error::Result;
use crate::store::ledger::{self, Breach, Counts};

pub struct Verdict {
    pub counts: Counts,
    /// Every row that breaks a law (at most ten for each law). Empty: the books are right.
    pub breaches: Vec<Breach>,
}

pub async fn verify(app: &App) -> Result<Verdict> {
    let (counts, breaches) = app.store.snapshot(ledger::check).await?;
    Ok(Verdict { counts, breaches })
}
