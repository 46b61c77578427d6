//! Follows one network: which blocks are new, what they hold for us, what a reorganisation took away, and what has
//! become final. All its state is in the database, so it can stop anywhere and another instance continues; the cursor
//! moves only under the fence number of its turn. The rules for money are in `booking.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::gauge;

use super::deposits::record;
use super::{booking, jobs};
use crate::app::App;
use crate::chain::{Chain, Tip, Trouble, Watched, Witness};
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::domain::transfer::{Block, Sighting, TransferId};
use crate::error::{Error, Result};
use crate::store::cursors::{self, Cursor};
use crate::store::tx::Tx;
use crate::store::{addresses, checkouts, invoices, meta, slots, transfers};
use crate::telemetry::EveryMinute;

/// How long a turn lasts unless it is renewed: when an instance dies, another one waits this long.
const TURN_MS: i64 = 6_000;
const RENEW_MS: i64 = 2_000;
/// The most new ranges in one round, so that a long catch-up does not delay transfers that are final.
const RANGES: usize = 50;
/// How often every block is read at least, by one node after the other.
const READS: i64 = 8;
/// A younger head is current; if it is also far below our cursor, the scanned blocks never existed.
const FRESH_MS: i64 = 120_000;
/// How often transfers that are on no chain are asked for again, and for how many days.
const LOST_EVERY_MS: i64 = 60_000;
const LOST_DAYS: i64 = 7;
const HOUR_MS: i64 = 3_600_000;

/// What stopped a round: trouble with the chain, which passes, or our own fault.
pub enum Halt {
    Chain(Trouble),
    Ours(Error),
}

impl From<Trouble> for Halt {
    fn from(trouble: Trouble) -> Halt {
        Halt::Chain(trouble)
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Ours(error)
    }
}

/// A network's facts that matter for scanning.
struct Rhythm {
    block_ms: i64,
    /// How many blocks nodes behind one address differ by: the newest are left for the next round.
    lag: i64,
}

fn rhythm(network: Network, simulated: bool) -> Rhythm {
    match network {
        _ if simulated => Rhythm { block_ms: 200, lag: 0 },
        Network::Base => Rhythm { block_ms: 2_000, lag: 1 },
        Network::Polygon => Rhythm { block_ms: 2_000, lag: 2 },
        Network::Arbitrum => Rhythm { block_ms: 250, lag: 8 },
        Network::Tron => Rhythm { block_ms: 3_000, lag: 1 },
    }
}

/// About how many blocks come in this time.
pub fn blocks_in(app: &App, network: Network, millis: i64) -> i64 {
    millis / rhythm(network, app.sim_chains.contains_key(&network)).block_ms
}

/// How many blocks are read again in every round: at least 64, and two minutes. This finds payments to an invoice that
/// was made during a round, and blocks that were replaced.
pub fn overlap(app: &App, network: Network) -> i64 {
    blocks_in(app, network, 120_000).max(64)
}

/// One network's scanner. Its memory only saves work.
pub struct Scanner {
    chain: Arc<dyn Chain>,
    holder: String,
    held_until: Time,
    fence: i64,
    checked_at: Option<Time>,
    watched: Watched,
    /// The change counter, and the time, at which `watched` was loaded.
    watched_as_of: Option<(i64, Time)>,
    /// The head of the last complete round.
    seen_head: Option<String>,
    lost_at: Time,
    lines: EveryMinute,
}

/// How soon to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// There is work to do.
    Brisk,
    /// Nobody waits for money here, or another instance has the turn.
    Easy,
}

impl Scanner {
    pub fn new(chain: Arc<dyn Chain>) -> Scanner {
        let watched = Watched::new(chain.network().kind(), []);
        Scanner {
            chain,
            holder: jobs::holder(),
            held_until: Time::from_micros(0),
            fence: 0,
            checked_at: None,
            watched,
            watched_as_of: None,
            seen_head: None,
            lost_at: Time::from_micros(0),
            lines: EveryMinute::default(),
        }
    }

    fn network(&self) -> Network {
        self.chain.network()
    }

    /// Looks at the chain once: new blocks, vanished transfers, final ones, expired invoices.
    pub async fn round(&mut self, app: &App) -> Result<Pace, Halt> {
        let now = app.now();
        if !self.checked_at.is_some_and(|at| now.is_within(HOUR_MS, at)) {
            self.chain.check().await?;
            self.checked_at = Some(now);
        }
        let tip = self.chain.tip().await?;
        app.heads.saw(self.network(), tip.head.time);
        if !self.take_turn(app, &tip).await? {
            return Ok(Pace::Easy);
        }
        let network = self.network();
        let read = move |tx: &mut Tx| {
            let cursor = cursors::get(tx, network)?.ok_or_else(|| Error::fault("a turn without a cursor"))?;
            Ok((cursor, cursors::newest_blocks(tx, network, 1)?.pop()))
        };
        let (mut cursor, newest) = app.store.read(read).await?;
        if let Some(newest) = newest {
            let ancestor = self.ancestor(app, &newest, &tip).await?;
            if ancestor.number < newest.number {
                let (fence, to, time) = (self.fence, ancestor.number, ancestor.time);
                tracing::warn!(network = network.as_str(), ancestor = to, "the chain was reorganised");
                let write = move |tx: &mut Tx| cursors::rewind(tx, network, fence, to, time);
                app.store.finish(lane(network), write).await?;
                (cursor.scanned, cursor.scanned_time) =
                    (cursor.scanned.min(to), cursor.scanned_time.min(time));
                self.seen_head = None;
            }
        }
        self.load_watched(app, &cursor).await?;
        self.scan(app, cursor, &tip).await?;
        self.review_doubted(app, &tip).await?;
        self.settle(app, &tip).await?;
        self.ask_for_lost(app).await?;
        self.expire(app).await?;
        self.release(app).await?;
        Ok(if self.watched.is_empty() { Pace::Easy } else { Pace::Brisk })
    }

    /// Takes the turn or keeps it. The first instance ever decides where scanning begins.
    async fn take_turn(&mut self, app: &App, tip: &Tip) -> Result<bool, Halt> {
        let (network, now) = (self.network(), app.now());
        // A later time was set by a clock that has been set back since.
        let ahead = now.plus_millis(TURN_MS - RENEW_MS)..=now.plus_millis(TURN_MS);
        if ahead.contains(&self.held_until) {
            return Ok(true);
        }
        let begin = booking::terms(app, &*self.chain)?.start_block;
        let after = begin.map_or(tip.head.number, |block| block - 1);
        let (holder, until, time) = (self.holder.clone(), now.plus_millis(TURN_MS), tip.head.time);
        let fence = app
            .store
            .finish(lane(network), move |tx| {
                cursors::create(tx, network, after, time)?;
                cursors::take(tx, network, &holder, now, until)
            })
            .await?;
        match fence {
            Some(fence) => {
                (self.fence, self.held_until) = (fence, until);
                Ok(true)
            }
            None => {
                (self.held_until, self.seen_head) = (Time::from_micros(0), None);
                Ok(false)
            }
        }
    }

    /// Lets another instance continue at once.
    pub async fn give_up_turn(&self, app: &App) -> Result<()> {
        let holder = self.holder.clone();
        app.store.finish(lane(self.network()), move |tx| cursors::release(tx, &holder)).await
    }

    /// Loads the addresses to search for in the next blocks. After a long absence those are old blocks, which paid
    /// addresses that would not be watched today.
    async fn load_watched(&mut self, app: &App, cursor: &Cursor) -> Result<(), Halt> {
        let (kind, now) = (self.network().kind(), app.now());
        let as_of = now.min(cursor.scanned_time);
        let version = app.store.read(meta::versions).await?.addresses;
        match self.watched_as_of {
            // A counter that went back belongs to another database: an older copy took over.
            Some((loaded, at)) if now.is_within(HOUR_MS, at) && loaded <= version => {
                if loaded != version {
                    let new = move |tx: &mut Tx| addresses::watched_since(tx, kind, as_of, loaded);
                    self.watch_more(app, app.store.read(new).await?, cursor).await?;
                    self.watched_as_of = Some((version, at));
                }
            }
            _ => {
                let found = app.store.read(move |tx| addresses::watched(tx, kind, as_of)).await?;
                self.watched = Watched::new(kind, found);
                self.watched_as_of = Some((version, now));
                self.seen_head = None;
            }
        }
        Ok(())
    }

    /// Watches these too. They may have been paid in blocks that were read without them.
    async fn watch_more(&mut self, app: &App, found: Vec<String>, cursor: &Cursor) -> Result<(), Halt> {
        if self.chain.reads_all(&self.watched) {
            let new = Watched::new(self.network().kind(), found.iter().cloned());
            let from = cursor.scanned + 1 - overlap(app, self.network());
            if !new.is_empty() {
                look(app, &*self.chain, &new, from, cursor.scanned).await?;
            }
        } else {
            self.seen_head = None;
        }
        found.iter().for_each(|address| self.watched.add(address));
        Ok(())
    }

    /// The newest remembered block that is still part of the chain; a block below all of them when none is.
    async fn ancestor(&self, app: &App, newest: &Block, tip: &Tip) -> Result<Block, Halt> {
        let network = self.network();
        if newest.number <= tip.head.number {
            if self.is_there(newest).await? {
                return Ok(newest.clone());
            }
        } else {
            let fresh = app.now() < tip.head.time.plus_millis(FRESH_MS);
            let far_below = newest.number - tip.head.number > overlap(app, network);
            if !fresh || !far_below {
                // The node has not reached our cursor: it is behind, and knows nothing new.
                return Err(Trouble::new("the node is behind what was scanned already").into());
            }
        }
        let remembered = app.store.read(move |tx| cursors::newest_blocks(tx, network, i64::MAX)).await?;
        for block in remembered.iter().filter(|block| block.number <= tip.head.number) {
            if self.is_there(block).await? {
                return Ok(block.clone());
            }
        }
        let mut oldest = remembered.last().unwrap_or(newest).clone();
        tracing::error!(
            network = network.as_str(),
            oldest = oldest.number,
            "the chain was reorganised below everything we remember"
        );
        oldest.number = (oldest.number.min(tip.head.number) - overlap(app, network)).max(0);
        Ok(oldest)
    }

    async fn is_there(&self, block: &Block) -> Result<bool, Trouble> {
        Ok(self.chain.block(block.number).await?.is_some_and(|found| found.hash == block.hash))
    }

    /// Reads everything from a little before the cursor up to the head, range by range.
    async fn scan(&mut self, app: &App, mut cursor: Cursor, tip: &Tip) -> Result<(), Halt> {
        let network = self.network();
        let lag = rhythm(network, app.sim_chains.contains_key(&network)).lag;
        let target = tip.head.number - lag;
        if self.seen_head.as_ref() == Some(&tip.head.hash) || target < 0 {
            return Ok(());
        }
        let overlap = overlap(app, network);
        // When every transfer must be read, a block is read twice: when it is new, and by a quorum when it has aged.
        let crowded = self.chain.reads_all(&self.watched);
        if crowded {
            let (from, to) = (cursor.scanned + 1 - overlap, cursor.scanned.min(target - overlap));
            let aged = look(app, &*self.chain, &self.watched, from, to).await?;
            self.review(app, (from, to), &aged, tip).await?;
        }
        let back = if crowded && self.seen_head.is_some() { 0 } else { overlap };
        let mut from = (cursor.scanned + 1 - back).max(0).min(target);
        // While catching up, a block is not read often enough to hear every node about it.
        let catching_up = target - cursor.scanned > overlap / READS;
        let witness = if catching_up { Witness::Quorum } else { Witness::Any };
        let mut new_ranges = 0;
        while new_ranges < RANGES {
            let (last, sightings) = if self.watched.is_empty() {
                let last = self.chain.block(target).await?;
                (last.ok_or_else(|| Trouble::new("the node has no block below its head"))?, Vec::new())
            } else {
                let scanned = self.chain.scan(from, target, &self.watched, witness).await?;
                (scanned.last, scanned.sightings)
            };
            booking::note(app, &sightings).await?;
            self.review(app, (from, last.number), &sightings, tip).await?;
            // Ranges that were read before do not count, so that a node with few blocks at a time makes progress.
            new_ranges += usize::from(last.number > cursor.scanned);
            if last.number >= cursor.scanned {
                (cursor.scanned, cursor.scanned_time) = (last.number, last.time);
            }
            (cursor.head, cursor.fence) = (tip.head.number, self.fence);
            if !self.advance(app, cursor, last.clone()).await? {
                return Ok(());
            }
            jobs::alive();
            if last.number >= target {
                self.seen_head = Some(tip.head.hash.clone());
                break;
            }
            from = last.number + 1;
        }
        gauge!("simgate_scan_lag_blocks", "network" => network.as_str())
            .set((tip.head.number - cursor.scanned) as f64);
        Ok(())
    }

    /// Moves the cursor. False when another instance has the turn.
    async fn advance(&mut self, app: &App, cursor: Cursor, last: Block) -> Result<bool> {
        let (network, until) = (self.network(), app.now().plus_millis(TURN_MS));
        let write = move |tx: &mut Tx| {
            let ours = cursors::advance(tx, network, &cursor, until)?;
            if ours {
                cursors::remember(tx, network, &last)?;
            }
            Ok(ours)
        };
        let ours = app.store.finish(lane(network), write).await?;
        self.held_until = if ours { until } else { Time::from_micros(0) };
        Ok(ours)
    }

    /// Rechecks transfers that we had in these blocks and did not just see there: they have moved or vanished.
    async fn review(
        &self,
        app: &App,
        (from, to): (i64, i64),
        sightings: &[Sighting],
        tip: &Tip,
    ) -> Result<()> {
        let network = self.network();
        let ours = app.store.read(move |tx| transfers::in_blocks(tx, network, from, to)).await?;
        let seen: HashMap<&TransferId, &str> =
            sightings.iter().map(|seen| (&seen.id, seen.block.hash.as_str())).collect();
        for transfer in &ours {
            let here = transfer.block.as_ref().map(|block| block.hash.as_str());
            if seen.get(&transfer.id).copied() != here {
                booking::recheck(app, &*self.chain, transfer, tip).await?;
            }
        }
        Ok(())
    }

    /// Rechecks transfers whose disappearance the nodes did not agree on, however deep they lie by now.
    async fn review_doubted(&self, app: &App, tip: &Tip) -> Result<()> {
        let network = self.network();
        for transfer in app.store.read(move |tx| transfers::doubted(tx, network)).await? {
            booking::recheck(app, &*self.chain, &transfer, tip).await?;
        }
        Ok(())
    }

    /// Credits transfers that have become final.
    async fn settle(&self, app: &App, tip: &Tip) -> Result<()> {
        let (network, head) = (self.network(), tip.head.number);
        let least = app.settings.settlement.least_kept;
        let open = app.store.read(move |tx| transfers::open(tx, network, head, least)).await?;
        if let Err(error) = booking::credit_final(app, &*self.chain, &open, tip).await
            && let Some(left_out) = self.lines.turn()
        {
            tracing::error!(network = network.as_str(), %error, left_out, "a transfer could not be credited yet");
        }
        Ok(())
    }

    /// Asks for vanished transfers: one may be mined again in a block that is no longer searched.
    async fn ask_for_lost(&mut self, app: &App) -> Result<()> {
        let (network, now) = (self.network(), app.now());
        if now.is_within(LOST_EVERY_MS, self.lost_at) {
            return Ok(());
        }
        self.lost_at = now;
        let since = now.plus_days(-LOST_DAYS);
        for transfer in app.store.read(move |tx| transfers::lost(tx, network, since)).await? {
            booking::find_again(app, &*self.chain, &transfer).await?;
            jobs::alive();
        }
        Ok(())
    }

    /// Frees the slots that have rested.
    async fn release(&self, app: &App) -> Result<()> {
        let (network, now) = (self.network(), app.now());
        let scanners = app.settings.settlement.scanned_with(network);
        let due = move |tx: &mut Tx| slots::any_rested(tx, network, &scanners, now);
        while let Some(before) = app.store.read(due.clone()).await? {
            app.store.finish(lane(network), move |tx| slots::release(tx, network, before)).await?;
        }
        Ok(())
    }

    /// Closes unpaid invoices, but never ahead of the scanner: a payment made in time is found first.
    async fn expire(&self, app: &App) -> Result<()> {
        let (network, now) = (self.network(), app.now());
        let due = move |tx: &mut Tx| {
            let Some(cursor) = cursors::get(tx, network)? else { return Ok(None) };
            let before = cursor.scanned_time.min(now);
            let any = invoices::any_due(tx, network, before)? || checkouts::any_due(tx, network, before)?;
            Ok(any.then_some(before))
        };
        while let Some(before) = app.store.read(due).await? {
            let teller = app.clone();
            let write = move |tx: &mut Tx| {
                let lapsed = invoices::expire(tx, network, before, now)?;
                record::tell(&teller, tx, lapsed, now)
            };
            app.store.finish(lane(network), write).await?;
            // Apart from the invoices: others lock both, in the order of their ids.
            let write = move |tx: &mut Tx| checkouts::expire(tx, network, before, now);
            app.store.finish(lane(network), write).await?;
            jobs::alive();
        }
        Ok(())
    }
}

/// Stores the transfers to these addresses in these blocks, and answers them.
pub async fn look(
    app: &App,
    chain: &dyn Chain,
    watched: &Watched,
    from: i64,
    to: i64,
) -> Result<Vec<Sighting>, Halt> {
    let (mut from, mut found) = (from.max(0), Vec::new());
    while from <= to {
        let scanned = chain.scan(from, to, watched, Witness::Quorum).await?;
        booking::note(app, &scanned.sightings).await?;
        from = scanned.last.number + 1;
        found.extend(scanned.sightings);
        jobs::alive();
    }
    Ok(found)
}

/// The write lane of a network: its writes follow each other.
pub fn lane(network: Network) -> i64 {
    -1 - network as i64
}
