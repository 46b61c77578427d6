//! Bringing claimed authorizations onto the chain, and saying what became of them. One instance settles a network at
//! a time, under a fence number; what it does is written down before it is done, so another can go on from there.
//! Money is booked by `booking.rs`, as for every transfer; here an authorization only dies, and only when it is sure
//! that it will never move anything. `settler/local.rs` sends transactions, whose numbers
//! `settler/numbers.rs` keeps without a gap; `settler/remote.rs` asks a facilitator; `settler/simulated.rs` moves money on
//! a simulated chain.

mod local;
mod numbers;
mod remote;
mod simulated;

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::hex;
use metrics::counter;
use tokio::task::JoinHandle;

use self::numbers::Gap;
use super::scan::{Halt, Pace, lane};
use super::{booking, jobs};
use crate::app::App;
use crate::chain::{Tip, Witness, address};
use crate::domain::authorization::{
    Authorization, AuthorizationEvent, AuthorizationId, AuthorizationState, Reason,
};
use crate::domain::network::{AddressKind, Network};
use crate::domain::time::Time;
use crate::domain::transfer::Transfer;
use crate::error::{Error, Result};
use crate::store::settlements::{self, Turn};
use crate::store::tx::Tx;
use crate::store::{authorizations, claims, cursors, transfers};
use crate::x402::authorization::{Permission, Seal};
use crate::x402::settler::{Place, SettledBy, Settler, Terminal, Unfit};

/// A turn lasts this long unless it is renewed; so long another instance waits when one dies.
const TURN_MS: i64 = 6_000;
const RENEW_MS: i64 = 2_000;
/// Whether payments can be settled is checked this often, and sooner while they cannot.
const CHECK_MS: i64 = 60_000;
const RECHECK_MS: i64 = 5_000;
/// An authorization that ends sooner than this would not get into a block in time.
pub const MARGIN_MS: i64 = 6_000;
/// So many are looked at in a round.
const AT_ONCE: i64 = 64;
/// How long a stalled authorization waits before it is checked again.
const REST_MS: i64 = 1_000;
/// The same for one whose nonce was used: the scanner finds what that moved, and nobody else waits for it meanwhile.
const USED_REST_MS: i64 = 5_000;

/// One network's settler. What it keeps in memory only saves work.
pub struct Settling {
    network: Network,
    holder: String,
    turn: Option<Turn>,
    held_until: Time,
    checked_at: Option<Time>,
    /// Looks at whether payments can be settled, beside the rounds: whom it asks may not answer.
    check: Option<JoinHandle<()>>,
    trouble: Arc<Mutex<Option<String>>>,
    /// When transactions that cannot offer more were last sent again.
    nudged_at: Time,
    gap: Option<Gap>,
}

/// What a round works with.
struct Round<'a> {
    app: &'a App,
    terminal: &'a Terminal,
    turn: &'a Turn,
    tip: Tip,
    now: Time,
    /// Whether to send transactions again that offer all that we allow.
    nudge: bool,
    /// How many transactions wait for a block.
    in_flight: AtomicUsize,
}

async fn look(app: &App, network: Network, trouble: &Mutex<Option<String>>) {
    let Some((settler, terminal)) = terminal(app, network) else { return };
    let found = match settler.by.check(terminal).await {
        Ok(_) => None,
        Err(Unfit::Wrong(why)) => Some(why),
        Err(Unfit::Unknown(trouble)) => Some(trouble.to_string()),
    };
    let mut known = trouble.lock().unwrap_or_else(PoisonError::into_inner);
    let network = network.as_str();
    // Once for each change: a line for every try would bury everything else.
    match (&*known, &found) {
        (Some(_), None) => tracing::info!(network, "payments by signature can be settled again"),
        (before, Some(why)) if before.as_ref() != Some(why) => {
            tracing::warn!(network, why, "payments by signature cannot be settled");
        }
        _ => {}
    }
    *known = found;
}

impl Settling {
    pub fn new(network: Network) -> Settling {
        Settling {
            network,
            holder: jobs::holder(),
            turn: None,
            held_until: Time::from_micros(0),
            checked_at: None,
            check: None,
            trouble: Arc::default(),
            nudged_at: Time::from_micros(0),
            gap: None,
        }
    }

    /// Sends what was claimed and looks after what was sent.
    pub async fn round(&mut self, app: &App) -> Result<Pace, Halt> {
        let Some((settler, terminal)) = terminal(app, self.network) else { return Ok(Pace::Easy) };
        self.check(app, terminal);
        // A sandbox that nobody uses writes nothing, not even a turn.
        if matches!(settler.by, SettledBy::Simulated) && self.due(app).await?.is_empty() {
            return Ok(Pace::Easy);
        }
        let Some(turn) = self.take_turn(app, terminal).await? else { return Ok(Pace::Easy) };
        let (network, now) = (self.network, app.now());
        let due = self.due(app).await?;
        let sender = turn.sender.clone();
        let pending = app.store.read(move |tx| settlements::pending(tx, network, &sender)).await?;
        if due.is_empty() && pending.is_empty() {
            return Ok(Pace::Easy);
        }
        let nudge = !now.is_within(local::STALL_MS, self.nudged_at);
        if nudge {
            self.nudged_at = now;
        }
        let tip = terminal.chain().tip().await?;
        let round = Round { app, terminal, turn: &turn, tip, now, nudge, in_flight: AtomicUsize::new(0) };
        let under_way = match &terminal.sender {
            Some(sender) => round.follow(sender, &pending).await?,
            None => HashSet::new(),
        };
        if let Some(sender) = terminal.sender.as_ref().filter(|_| nudge) {
            self.close_gap(app, sender, &turn, &pending).await?;
        }
        for authorization in &due {
            let looked_at = match authorization.state {
                AuthorizationState::Claimed => round.send(settler, authorization).await,
                AuthorizationState::Sent => {
                    round.watch(settler, authorization, under_way.contains(&authorization.id)).await
                }
                AuthorizationState::Settled | AuthorizationState::Dead => Ok(()),
            };
            // One that causes trouble is not the first again.
            if let Err(halt) = looked_at {
                round.rest(authorization, REST_MS).await?;
                return Err(halt);
            }
            jobs::alive();
        }
        Ok(Pace::Brisk)
    }

    /// What somebody should look at now.
    async fn due(&self, app: &App) -> Result<Vec<Authorization>> {
        let (network, now) = (self.network, app.now());
        app.store.read(move |tx| authorizations::due(tx, network, now, AT_ONCE)).await
    }

    /// Lets another instance go on at once.
    pub async fn give_up_turn(&self, app: &App) -> Result<()> {
        let holder = self.holder.clone();
        app.store.finish(lane(self.network), move |tx| settlements::release(tx, &holder)).await
    }

    /// Decides what is offered. Every instance does, whoever has the turn: every one of them hands out offers.
    fn check(&mut self, app: &App, terminal: &Terminal) {
        let now = app.now();
        let every = if terminal.domain().is_some() { CHECK_MS } else { RECHECK_MS };
        if self.checked_at.is_some_and(|at| now.is_within(every, at)) {
            return;
        }
        if self.check.as_ref().is_some_and(|check| !check.is_finished()) {
            return;
        }
        self.checked_at = Some(now);
        let (app, network, trouble) = (app.clone(), self.network, self.trouble.clone());
        self.check = Some(tokio::spawn(async move { look(&app, network, &trouble).await }));
    }

    async fn take_turn(&mut self, app: &App, terminal: &Terminal) -> Result<Option<Turn>> {
        let now = app.now();
        let ahead = now.plus_millis(TURN_MS - RENEW_MS)..=now.plus_millis(TURN_MS);
        if self.turn.is_some() && ahead.contains(&self.held_until) {
            return Ok(self.turn.clone());
        }
        let (network, until) = (self.network, now.plus_millis(TURN_MS));
        let sender = terminal.sender_name().to_string();
        let holder = self.holder.clone();
        let write = move |tx: &mut Tx| settlements::take(tx, network, &sender, &holder, now, until);
        let turn = app.store.finish(lane(network), write).await?;
        if turn != self.turn {
            // Whoever had it before may have died between writing a transaction down and sending it, or closed the gap.
            (self.nudged_at, self.gap) = (Time::from_micros(0), None);
        }
        (self.turn, self.held_until) = (turn.clone(), until);
        Ok(turn)
    }
}

fn terminal(app: &App, network: Network) -> Option<(&Settler, &Terminal)> {
    let settler = app.settler.as_ref()?;
    Some((settler, settler.terminals.get(&network)?))
}

/// What the payer signed.
pub(super) fn permission(authorization: &Authorization) -> Result<(Permission, Seal)> {
    let read = || {
        let bytes = |text: &str| address::bytes(AddressKind::Evm, text);
        let seconds = |time: Time| u64::try_from(time.micros() / 1_000_000).ok();
        let mut nonce = [0; 32];
        hex::decode_to_slice(&authorization.id.nonce, &mut nonce).ok()?;
        let permission = Permission {
            from: bytes(&authorization.id.payer)?,
            to: bytes(&authorization.pay_to)?,
            value: u64::try_from(authorization.amount.micros()).ok()?,
            valid_after: seconds(authorization.valid_after)?,
            valid_before: seconds(authorization.valid_before)?,
            nonce,
        };
        Some((permission, Seal::parse(&authorization.signature).ok()?))
    };
    read().ok_or_else(|| Error::fault("a stored authorization cannot be read"))
}

impl Round<'_> {
    /// Nothing has left us so far: it is sent, or given up while that is harmless.
    async fn send(&self, settler: &Settler, authorization: &Authorization) -> Result<(), Halt> {
        if authorization.valid_before < self.now.plus_millis(MARGIN_MS) {
            return Ok(self.bury(authorization, AuthorizationEvent::GivenUp, Reason::ValidBefore).await?);
        }
        match &settler.by {
            SettledBy::Ourselves => self.send_transaction(authorization).await,
            SettledBy::Facilitator(_) => self.ask_facilitator(authorization).await,
            SettledBy::Simulated => self.simulate(authorization).await,
        }
    }

    /// It may be with others: only the chain tells what became of it.
    async fn watch(
        &self,
        settler: &Settler,
        authorization: &Authorization,
        under_way: bool,
    ) -> Result<(), Halt> {
        if let Place::Simulated(token) = &self.terminal.place {
            self.look_for(token, authorization).await?;
        }
        let used = !under_way && self.is_used(authorization, self.tip.head.number).await?;
        if used && self.is_spent(authorization).await? {
            return Ok(self.bury(authorization, AuthorizationEvent::Ended, Reason::Used).await?);
        }
        if authorization.valid_before < self.now {
            return self.bury_if_over(authorization).await;
        }
        if used {
            return Ok(self.rest(authorization, USED_REST_MS).await?);
        }
        let in_time = self.now.plus_millis(MARGIN_MS) < authorization.valid_before;
        match &settler.by {
            SettledBy::Ourselves if !under_way && in_time => self.send_transaction(authorization).await,
            SettledBy::Facilitator(_) if in_time => self.ask_facilitator(authorization).await,
            SettledBy::Simulated if in_time => self.simulate(authorization).await,
            SettledBy::Ourselves | SettledBy::Facilitator(_) | SettledBy::Simulated => {
                Ok(self.rest(authorization, REST_MS).await?)
            }
        }
    }

    /// Its time has passed in a block that stays: if it was not used by then, no later block can use it.
    async fn bury_if_over(&self, authorization: &Authorization) -> Result<(), Halt> {
        let last = self.terminal.chain().block(self.tip.finalized).await?;
        let over = last.is_some_and(|block| block.time > authorization.valid_before);
        if over && !self.is_used(authorization, self.tip.head.number).await? {
            return Ok(self.bury(authorization, AuthorizationEvent::Ended, Reason::ValidBefore).await?);
        }
        if over && self.is_revoked(authorization).await? {
            return Ok(self.bury(authorization, AuthorizationEvent::Ended, Reason::Used).await?);
        }
        Ok(self.rest(authorization, REST_MS).await?)
    }

    /// Its nonce was used in a block that stays, and not for what was signed: nothing will come of it any more. A node
    /// that does not remember that block leaves the question open until its time is over.
    async fn is_spent(&self, authorization: &Authorization) -> Result<bool, Halt> {
        let for_good = self.is_used(authorization, self.tip.finalized).await.unwrap_or(false);
        Ok(for_good && self.is_revoked(authorization).await?)
    }

    /// Whether the token has seen its nonce by this block, as enough nodes say.
    async fn is_used(&self, authorization: &Authorization, block: i64) -> Result<bool, Halt> {
        let (permission, _) = permission(authorization)?;
        Ok(self.terminal.is_used(&permission, block).await?)
    }

    /// The token would refuse it now. One that was used meanwhile, by whomever, has moved its money.
    async fn would_fail(&self, authorization: &Authorization, reason: Reason) -> Result<()> {
        let found = AuthorizationEvent::FoundUsed;
        if reason == Reason::Used && authorization.state.after(found).is_some() {
            let (used, now) = (authorization.clone(), self.now);
            let write = move |tx: &mut Tx| authorizations::advance(tx, &used, found, None, now);
            return self.app.store.finish(authorization.account.0, write).await.map(drop);
        }
        self.give_up(authorization, reason).await
    }

    /// It is not sent, unless it may be with others already: then it is looked at again.
    async fn give_up(&self, authorization: &Authorization, reason: Reason) -> Result<()> {
        match authorization.state.after(AuthorizationEvent::GivenUp) {
            Some(_) => self.bury(authorization, AuthorizationEvent::GivenUp, reason).await,
            None => self.rest(authorization, REST_MS).await,
        }
    }

    /// Used, but what was signed for did not come of it. Sure only when every block was searched in which it could
    /// have moved something.
    async fn is_revoked(&self, authorization: &Authorization) -> Result<bool> {
        let (network, last) = (self.turn.network, self.tip.finalized);
        let authorization = authorization.clone();
        let read = move |tx: &mut Tx| {
            let searched = cursors::get(tx, network)?.is_some_and(|cursor| cursor.scanned >= last);
            let AuthorizationId { payer, nonce, .. } = &authorization.id;
            let moved = transfers::moved_by(tx, network, payer, nonce)?;
            let pays = |transfer: &Transfer| transfer.invoice.as_ref() == Some(&authorization.invoice);
            Ok(searched && !moved.iter().any(pays))
        };
        self.app.store.read(read).await
    }

    async fn bury(
        &self,
        authorization: &Authorization,
        end: AuthorizationEvent,
        reason: Reason,
    ) -> Result<()> {
        let (dying, now) = (authorization.clone(), self.now);
        let write = move |tx: &mut Tx| {
            let buried = authorizations::advance(tx, &dying, end, Some(reason), now)?;
            if buried && let Some(reference) = &dying.reference {
                claims::free(tx, dying.account, reference, &dying.invoice)?;
            }
            Ok(buried)
        };
        if self.app.store.finish(authorization.account.0, write).await? {
            let (network, reason) = (self.turn.network.as_str(), reason.as_str());
            counter!("simgate_authorizations_total", "network" => network, "outcome" => "dead").increment(1);
            tracing::info!(
                network,
                invoice_state = authorization.state.as_str(),
                reason,
                "a payment by signature came to nothing"
            );
        }
        Ok(())
    }

    async fn rest(&self, authorization: &Authorization, millis: i64) -> Result<()> {
        let (id, until) = (authorization.id.clone(), self.now.plus_millis(millis));
        self.app.store.finish(authorization.account.0, move |tx| authorizations::rest(tx, &id, until)).await
    }
}

/// A transaction is in a block: its transfers are written down, and booked if that is deep enough for them.
async fn arrived(app: &App, terminal: &Terminal, hash: &str, tip: &Tip) -> Result<(), Halt> {
    let chain = terminal.chain();
    let Some(mined) = chain.transaction(hash, Witness::Any).await? else { return Ok(()) };
    booking::note(app, &mined.transfers).await?;
    let (network, hash) = (terminal.network, hash.to_string());
    let ours = app.store.read(move |tx| transfers::of_transaction(tx, network, &hash)).await?;
    Ok(booking::credit_final(app, chain, &ours, tip).await?)
}
