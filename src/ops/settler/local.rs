//! Settling with our own transactions. Each has the next number of its key, taken in the write that stores it; a
//! number that was taken is followed until a transaction with it is in a block for good, offering more when it
//! stalls. So a key's numbers have no gap of our making, and none is used for two payments.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use alloy_primitives::hex;
use metrics::counter;

use super::{REST_MS, Round, arrived, permission};
use crate::chain::Trouble;
use crate::chain::evm::{Broadcast, Called, Paid};
use crate::domain::authorization::{
    Authorization, AuthorizationEvent, AuthorizationId, AuthorizationState, Reason,
};
use crate::domain::ids::AccountNo;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::booking;
use crate::ops::scan::{Halt, lane};
use crate::store::authorizations;
use crate::store::settlements::{self, Settlement};
use crate::store::tx::Tx;
use crate::telemetry::EveryMinute;
use crate::x402::local::Price;
use crate::x402::settler::{CURRENCY, Gas, Sender, reason_of};
use crate::x402::transaction::Transaction;

/// A transaction that is in no block after this long is sent again, for more.
pub const STALL_MS: i64 = 15_000;
/// How many of a key's transactions may wait for a block: nodes keep few of one sender.
const IN_FLIGHT: usize = 16;
/// A number that somebody else's transaction took is believed to be gone after this long.
const FOREIGN_MS: i64 = 120_000;

impl Round<'_> {
    /// Looks after the transactions that were sent: what they settle, and that their numbers are used up. Answers what
    /// has a transaction on its way.
    pub(super) async fn follow(
        &self,
        sender: &Sender,
        pending: &[Settlement],
    ) -> Result<HashSet<AuthorizationId>, Halt> {
        let mut by_number: BTreeMap<i64, Vec<&Settlement>> = BTreeMap::new();
        for sent in pending {
            by_number.entry(sent.tx_nonce).or_default().push(sent);
        }
        for (number, sent) in by_number {
            let mut in_block = None;
            for settlement in sent.iter().rev() {
                if let Some(paid) = sender.nodes.paid(&settlement.tx_hash).await? {
                    in_block = Some((*settlement, paid));
                    break;
                }
            }
            match (in_block, sent.last()) {
                (Some((settlement, paid)), _) => self.landed(settlement, paid).await?,
                (None, Some(newest)) => {
                    self.in_flight.fetch_add(1, Ordering::Relaxed);
                    self.hurry(sender, number, newest).await?;
                }
                (None, None) => {}
            }
        }
        Ok(pending.iter().map(|sent| sent.authorization.clone()).collect())
    }

    /// A transaction is in a block: it moved the money, or failed. When that stays so its number is done with.
    async fn landed(&self, settlement: &Settlement, paid: Paid) -> Result<(), Halt> {
        let confirmations = booking::terms(self.app, self.terminal.chain())?.confirmations;
        let deep = self.tip.head.number - paid.block + 1 >= confirmations;
        let id = settlement.authorization.clone();
        let found = self.app.store.read(move |tx| authorizations::by_id(tx, &id)).await?;
        if let Some(authorization) = found.filter(|found| found.state == AuthorizationState::Sent) {
            match (paid.succeeded, deep) {
                (true, _) => arrived(self.app, self.terminal, &settlement.tx_hash, &self.tip).await?,
                // Unless somebody else was quicker with it.
                (false, true) if !self.is_used(&authorization, self.tip.head.number).await? => {
                    self.bury(&authorization, AuthorizationEvent::Ended, Reason::Transaction).await?;
                }
                (false, _) => {}
            }
        }
        if deep {
            self.done(settlement.tx_nonce, Some((settlement.tx_hash.clone(), paid.gwei))).await?;
        }
        Ok(())
    }

    /// None of the transactions with this number is in a block.
    async fn hurry(&self, sender: &Sender, number: i64, newest: &Settlement) -> Result<(), Halt> {
        let old = |millis: i64| newest.sent_at.plus_millis(millis) < self.now;
        if old(FOREIGN_MS) && sender.nodes.purse(&sender.gas.key.bytes).await?.nonce > number {
            tracing::error!(
                network = self.turn.network.as_str(),
                sender = sender.gas.key.address,
                number,
                "the gas key is used by somebody else; its payments are sent again"
            );
            self.done(number, None).await?;
        } else if old(STALL_MS) {
            self.offer_more(sender, newest).await?;
        } else if self.nudge {
            self.broadcast(sender, newest).await?;
        }
        Ok(())
    }

    async fn done(&self, number: i64, mined: Option<(String, i64)>) -> Result<()> {
        let turn = self.turn.clone();
        let write = move |tx: &mut Tx| {
            let mined = mined.as_ref().map(|(hash, gwei)| (hash.as_str(), *gwei));
            settlements::done(tx, &turn, number, mined)
        };
        self.app.store.finish(lane(self.turn.network), write).await
    }

    /// A transaction in the place of one that waits for too long; the same again when it offers all that we allow.
    async fn offer_more(&self, sender: &Sender, newest: &Settlement) -> Result<(), Halt> {
        let price = Price { tip: newest.tip.unsigned_abs(), max_fee: newest.max_fee.unsigned_abs() };
        let raised = price.raised(sender.nodes.fees().await?, sender.gas.cap);
        let found = {
            let id = newest.authorization.clone();
            self.app.store.read(move |tx| authorizations::by_id(tx, &id)).await?
        };
        let (Some(price), Some(authorization)) = (raised, found) else {
            return if self.nudge { self.broadcast(sender, newest).await } else { Ok(()) };
        };
        let new =
            self.sign(&sender.gas, &authorization, newest.tx_nonce, newest.gas.unsigned_abs(), price)?;
        let (turn, stored) = (self.turn.clone(), new.clone());
        let ours = self
            .app
            .store
            .finish(lane(self.turn.network), move |tx| settlements::replace(tx, &turn, &stored))
            .await?;
        if ours {
            tracing::info!(
                network = self.turn.network.as_str(),
                tx = new.tx_hash,
                "a settlement offers more for gas"
            );
            self.broadcast(sender, &new).await?;
        }
        Ok(())
    }

    /// Takes the key's next number for an authorization, and sends it.
    pub(super) async fn send_transaction(&self, authorization: &Authorization) -> Result<(), Halt> {
        let sender = self.terminal.sender.as_ref();
        let sender = sender.ok_or_else(|| Error::fault("a settler without a gas key"))?;
        let Sender { gas, nodes } = sender;
        let network = self.turn.network;
        if self.in_flight.load(Ordering::Relaxed) >= IN_FLIGHT {
            return Ok(());
        }
        let (permission, seal) = permission(authorization)?;
        let call = permission.transfer_call(&seal);
        let units = match nodes.gas_for(CURRENCY, &call, &gas.key.bytes).await? {
            Called::Returned(units) => units.saturating_add(units / 4),
            Called::Reverted(why) => return Ok(self.would_fail(authorization, reason_of(&why)).await?),
        };
        let Some(price) = Price::fresh(nodes.fees().await?, gas.cap) else {
            return Ok(self.rest(authorization, REST_MS).await?);
        };
        if self.is_over_budget(gas, authorization.account, price.gwei_for(units)).await? {
            return Ok(self.give_up(authorization, Reason::Unexpected).await?);
        }
        let Some(number) = self.next_number(sender).await? else { return Ok(()) };
        let new = self.sign(gas, authorization, number, units, price)?;
        let (turn, stored) = (self.turn.clone(), new.clone());
        let begun =
            self.app.store.finish(lane(network), move |tx| settlements::begin(tx, &turn, &stored)).await?;
        if begun {
            self.in_flight.fetch_add(1, Ordering::Relaxed);
            counter!("simgate_authorizations_total", "network" => network.as_str(), "outcome" => "sent")
                .increment(1);
            self.broadcast(sender, &new).await?;
        }
        Ok(())
    }

    async fn is_over_budget(&self, gas: &Gas, account: AccountNo, cost: i64) -> Result<bool> {
        let network = self.turn.network;
        let since = start_of_day(self.now);
        let spent = move |tx: &mut Tx| {
            Ok((settlements::spent(tx, network, since)?, settlements::spent_on(tx, account, network, since)?))
        };
        let (all, on_account) = self.app.store.read(spent).await?;
        let over =
            all.saturating_add(cost) > gas.per_day || on_account.saturating_add(cost) > gas.per_account;
        static LINES: EveryMinute = EveryMinute::new();
        if over && let Some(left_out) = LINES.turn() {
            tracing::warn!(
                network = network.as_str(),
                all,
                on_account,
                left_out,
                "a payment would exceed the day's budget for gas"
            );
        }
        Ok(over)
    }

    /// `None` when the turn is over.
    async fn next_number(&self, sender: &Sender) -> Result<Option<i64>, Halt> {
        let on_chain = sender.nodes.purse(&sender.gas.key.bytes).await?.nonce;
        let (turn, read) = (self.turn.clone(), self.turn.clone());
        let next = self.app.store.read(move |tx| settlements::next_nonce(tx, &read)).await?;
        if next.is_some_and(|next| next < on_chain) {
            self.app
                .store
                .finish(lane(turn.network), move |tx| settlements::catch_up(tx, &turn, on_chain))
                .await?;
            return Ok(Some(on_chain));
        }
        Ok(next)
    }

    fn sign(
        &self,
        gas: &Gas,
        authorization: &Authorization,
        number: i64,
        units: u64,
        price: Price,
    ) -> Result<Settlement> {
        let (permission, seal) = permission(authorization)?;
        let transaction = Transaction {
            chain_id: self.turn.network.chain_id(),
            nonce: number.unsigned_abs(),
            tip: price.tip,
            max_fee: price.max_fee,
            gas: units,
            to: self.terminal.contract,
            data: permission.transfer_call(&seal),
        };
        let signed = gas.key.sign(&transaction);
        let small =
            |value: u64| i64::try_from(value).map_err(|_| Error::fault("a price of gas beyond belief"));
        Ok(Settlement {
            tx_hash: hex::encode_prefixed(signed.hash),
            sender: gas.key.address.clone(),
            tx_nonce: number,
            authorization: authorization.id.clone(),
            account: authorization.account,
            tip: small(price.tip)?,
            max_fee: small(price.max_fee)?,
            gas: small(units)?,
            raw: hex::encode(&signed.raw),
            cost: price.gwei_for(units),
            sent_at: self.now,
        })
    }

    /// Whether any node took it does not matter here: it is followed, and sent again, until it is in a block.
    async fn broadcast(&self, sender: &Sender, settlement: &Settlement) -> Result<(), Halt> {
        let raw = hex::decode(&settlement.raw).map_err(|_| Error::fault("a stored transaction is no hex"))?;
        let told = sender.nodes.broadcast(&raw).await;
        static LINES: EveryMinute = EveryMinute::new();
        let (network, tx) = (self.turn.network.as_str(), &settlement.tx_hash);
        match told {
            Ok(Broadcast::Taken | Broadcast::Spent) => {}
            Ok(Broadcast::Underpriced) => tracing::info!(network, tx, "nodes want more for a settlement"),
            Ok(Broadcast::Refused(why)) => {
                if let Some(left_out) = LINES.turn() {
                    tracing::warn!(network, tx, why, left_out, "nodes refuse a settlement");
                }
            }
            Err(Trouble(why)) => {
                if let Some(left_out) = LINES.turn() {
                    tracing::warn!(network, tx, why, left_out, "a settlement may not have been sent");
                }
            }
        }
        Ok(())
    }
}

fn start_of_day(now: Time) -> Time {
    Time::from_micros(0).plus_days(now.day())
}
