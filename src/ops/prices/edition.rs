//! From rules to prices that count. Whoever has the turn reads plans, rules and prices, writes the prices that change
//! beside those that count, in small jobs, and then moves to the new edition in one short write. Until then every order
//! and search sees the old prices, from then on the new ones. Who dies half-way leaves rows of an edition that never
//! began; the next turn writes over them.

use std::time::Duration;

use super::effect::{Standing, Which};
use crate::app::App;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::LANE;
use crate::ops::audit::audit_line;
use crate::ops::catalog::PLANS_PER_JOB;
use crate::store::audit::Line;
use crate::store::prices::Row;
use crate::store::tx::{Body, Tx};
use crate::store::{Store, audit, catalog, price_rules, prices};
use crate::vault;

/// Who does nothing for so long with its turn may lose it.
const TURN_MS: i64 = 10_000;
/// Between two looks at whether the turn is free.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the turn is asked for: long enough for somebody else's whole work.
const LOOKS: usize = 1_200;

pub struct Repriced {
    /// How many prices changed.
    pub changed: usize,
}

pub struct Published {
    /// How many rules differed.
    pub rules: usize,
    /// How many prices changed.
    pub changed: usize,
}

/// Makes the prices of all plans by the published rules. A sync ends with it: plans and prices are shown together.
pub async fn reprice(app: &App) -> Result<Repriced> {
    reprice_in(&app.store, || app.now()).await
}

/// The same for a database that no gateway serves yet.
pub async fn reprice_in(store: &Store, now: impl Fn() -> Time) -> Result<Repriced> {
    let ended = Turn::new(store, &now).finish(Which::Published, None).await?;
    Ok(Repriced { changed: ended.changed })
}

/// Publishes the draft: its rules, and the prices that follow from them.
pub async fn publish(app: &App, actor: &str) -> Result<Published> {
    let line = audit_line(app, actor, "price publish", String::new());
    let now = || app.now();
    Turn::new(&app.store, &now).finish(Which::Draft, Some(line)).await
}

/// The turn to write the next edition, or a draft that must not be published half-way.
pub(super) struct Turn<'a, N> {
    store: &'a Store,
    now: &'a N,
    holder: String,
}

/// What became of a write under the turn.
enum Step {
    Done,
    /// Somebody else has the turn by now.
    Lost,
    /// The draft is another than the one that prices were made of.
    DraftMoved,
}

impl<'a, N: Fn() -> Time> Turn<'a, N> {
    pub fn new(store: &'a Store, now: &'a N) -> Turn<'a, N> {
        Turn { store, now, holder: format!("{:032x}", vault::random()) }
    }

    fn until(&self) -> Time {
        (self.now)().plus_millis(TURN_MS)
    }

    /// Takes the turn as often as it needs to finish the work.
    async fn finish(&self, which: Which, line: Option<Line>) -> Result<Published> {
        loop {
            self.take().await?;
            let standing = self.store.snapshot(move |tx| Standing::read(tx, which)).await?;
            let rows = standing.rows_to_write();
            if let Step::Lost = self.write(&rows).await? {
                continue;
            }
            let published =
                Published { rules: standing.rules_differing(), changed: standing.changes().len() };
            let moves = rows.iter().any(|row| row.since > standing.edition);
            match self.begin(&standing, moves, &published, line.clone()).await? {
                Step::Done => return Ok(published),
                Step::Lost => {}
                Step::DraftMoved => {
                    self.give_back().await?;
                    let why =
                        "the draft was changed at the same moment: look at the preview, and publish again";
                    return Err(Refusal::Malformed(why.into()).into());
                }
            }
        }
    }

    pub async fn take(&self) -> Result<()> {
        for _ in 0..LOOKS {
            let (holder, now, until) = (self.holder.clone(), (self.now)(), self.until());
            let take = move |tx: &mut Tx| prices::take_turn(tx, &holder, now, until);
            if self.store.finish(LANE, take).await? {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(Error::fault("another process has been publishing prices for a minute; try again"))
    }

    pub async fn give_back(&self) -> Result<()> {
        let holder = self.holder.clone();
        self.store.finish(LANE, move |tx| prices::end_turn(tx, &holder)).await
    }

    /// Writes the next edition beside the one that counts.
    async fn write(&self, rows: &[Row]) -> Result<Step> {
        for batch in rows.chunks(PLANS_PER_JOB) {
            let batch = batch.to_vec();
            if !self.under(move |tx| prices::put(tx, &batch)).await? {
                return Ok(Step::Lost);
            }
        }
        Ok(Step::Done)
    }

    /// A write that happens only if the turn is still ours; false when it is not.
    pub async fn under(&self, body: impl Body<()>) -> Result<bool> {
        let (holder, until) = (self.holder.clone(), self.until());
        let write = move |tx: &mut Tx| match prices::keep_turn(tx, &holder, until)? {
            true => body(tx).map(|()| true),
            false => Ok(false),
        };
        self.store.finish(LANE, write).await
    }

    /// The short write that makes the new edition count, and ends the turn.
    async fn begin(
        &self,
        standing: &Standing,
        moves: bool,
        published: &Published,
        line: Option<Line>,
    ) -> Result<Step> {
        let (holder, until) = (self.holder.clone(), self.until());
        let (edition, rules, draft) = (standing.edition, standing.rules_edition, standing.draft_changes);
        let line = line.map(|line| {
            let detail = format!("{} rules, {} prices", published.rules, published.changed);
            let edition = |number: i64| format!("edition {number} of the rules");
            Line { detail, ..line.changing(edition(rules), edition(rules + 1)) }
        });
        let write = move |tx: &mut Tx| {
            if tx.is_rerun() && prices::ended_by(tx, &holder)? {
                return Ok(Step::Done);
            }
            if line.is_some() && price_rules::lock_changes(tx)? != draft {
                return Ok(Step::DraftMoved);
            }
            if !prices::keep_turn(tx, &holder, until)? {
                return Ok(Step::Lost);
            }
            if moves {
                prices::next_edition(tx, edition)?;
            }
            if let Some(line) = &line {
                price_rules::publish(tx, rules)?;
                audit::record(tx, line)?;
            }
            // Plans may have changed too.
            catalog::publish(tx)?;
            prices::end_turn(tx, &holder)?;
            Ok(Step::Done)
        };
        self.store.finish(LANE, write).await
    }
}
