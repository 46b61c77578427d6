//! What must come of a story, worked out from what was agreed and what lies on the chains, by the contract's words and
//! none of the gateway's code. Money that is final belongs to somebody: to the checkout whose payment it is, to the
//! owner of its address, to who claimed its signature, or to nobody, which is for the operator. A payment that vanishes
//! is taken back from who had it, as far as there is anything; the rest is a debt of that transfer, which comes before
//! everything that is paid back for it.

use std::collections::{BTreeSet, HashMap};

use simgate::domain::ids::{InvoiceId, OrderId};
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::time::Time;
use simgate::domain::transfer::{Block, Sighting, TransferId};
use simgate::supplier::sim::SupplierMode;

use super::chain::CONFIRMATIONS;

/// Up to here a payment by signature counts in its first block.
pub const QUICK: Usd = Usd::dollars(25);
/// Less than this to a house address may be left alone.
pub const DUST: Usd = Usd::from_micros(100_000);

/// What somebody was asked for.
pub struct Checkout {
    pub id: InvoiceId,
    /// The account; a guest has none.
    pub owner: Option<usize>,
    pub network: Network,
    pub address: String,
    pub amount: Usd,
    pub price: Usd,
    pub cost: Usd,
    pub coupon: bool,
    /// What else is taken for it, where people may round.
    pub band: Option<(Usd, Usd)>,
    /// What is to be signed for it: receiver and amount.
    pub offer: Option<(String, Usd)>,
    pub created: Time,
    pub expires: Time,
    pub late_until: Time,
    /// Paid, or its money given back.
    pub ended: bool,
    pub order: Option<usize>,
    /// A guest's: what nobody has claimed yet, who has, and what that one has of it.
    pub owed: Usd,
    pub claimer: Option<usize>,
    pub claimed: Usd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The supplier was asked, or will be.
    Waiting,
    Delivered,
    Failed,
    /// Asked to take it back; whether it has done so without a word.
    Cancelling(bool),
    Cancelled,
}

pub struct Order {
    /// Of one that a wallet paid for; others are found by their checkout.
    pub id: Option<OrderId>,
    pub party: Party,
    /// The transfer that paid for it; none: a wallet.
    pub payment: Option<usize>,
    pub price: Usd,
    pub state: State,
    /// Given back out of goodwill.
    pub given: Usd,
}

/// Whose money something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    Account(usize),
    /// Whoever holds this guest's checkout.
    Guest(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Booked {
    ToOwner,
    /// It pays for an order.
    Held,
    Unmatched,
}

/// Whose a transfer is, decided when it was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub party: Party,
    /// The checkout that it pays for.
    pub pays: Option<usize>,
    /// By signature: a small one counts at once.
    pub signed: bool,
}

pub struct Transfer {
    pub facts: Sighting,
    /// Where it is; none while it is on no chain.
    pub block: Option<Block>,
    pub owner: Option<Owner>,
    pub booked: Option<Booked>,
    /// It counted before, and vanished.
    pub was_booked: bool,
    /// What is owed for it since it vanished.
    pub debt: Usd,
    /// It counted at once and was dropped: it may come back.
    pub missing: bool,
}

/// A signature that the gateway took, and what it is for.
pub struct Claimed {
    pub payer: String,
    pub nonce: String,
    pub checkout: usize,
    pub receiver: String,
    pub amount: Usd,
}

#[derive(Default)]
pub struct Model {
    pub wallets: Vec<Usd>,
    pub checkouts: Vec<Checkout>,
    pub orders: Vec<Order>,
    pub transfers: Vec<Transfer>,
    pub claimed: Vec<Claimed>,
    /// Deposit addresses, and addresses of the house.
    pub deposits: HashMap<String, usize>,
    pub house: BTreeSet<String>,
    /// How the supplier behaves.
    pub mood: Option<SupplierMode>,
}

fn shows(one: &Sighting, other: &Sighting) -> bool {
    (&one.id, one.currency, &one.recipient, one.amount)
        == (&other.id, other.currency, &other.recipient, other.amount)
}

impl Model {
    pub fn find(&self, id: &TransferId) -> Option<usize> {
        self.transfers.iter().position(|transfer| transfer.facts.id == *id)
    }

    /// Whether something is known that this payer's nonce moved. That it is on the chain no more is found at the next look.
    pub fn is_seen(&self, payer: &str, nonce: &str) -> bool {
        let moved = |known: &Transfer| {
            known.facts.sender == payer && known.facts.payment_nonce.as_deref() == Some(nonce)
        };
        self.transfers.iter().any(|known| known.block.is_some() && moved(known))
    }

    fn is_ours(&self, address: &str) -> bool {
        self.deposits.contains_key(address) || self.house.contains(address)
    }

    pub fn party_of(&self, checkout: usize) -> Party {
        self.checkouts[checkout].owner.map_or(Party::Guest(checkout), Party::Account)
    }

    fn give(&mut self, party: Party, amount: Usd) {
        match party {
            Party::Account(account) => self.wallets[account] = self.wallets[account].plus(amount),
            Party::Guest(checkout) => {
                let checkout = &mut self.checkouts[checkout];
                match checkout.claimer {
                    Some(account) => {
                        self.wallets[account] = self.wallets[account].plus(amount);
                        checkout.claimed = checkout.claimed.plus(amount);
                    }
                    None => checkout.owed = checkout.owed.plus(amount),
                }
            }
        }
    }

    /// Takes as much as there is, up to this; of a guest's claimer no more than he got from that checkout.
    fn take(&mut self, party: Party, amount: Usd) -> Usd {
        match party {
            Party::Account(account) => {
                let taken = amount.min(self.wallets[account]);
                self.wallets[account] = self.wallets[account].minus(taken);
                taken
            }
            Party::Guest(checkout) => {
                let checkout = &mut self.checkouts[checkout];
                match checkout.claimer {
                    Some(account) => {
                        let taken = amount.min(self.wallets[account]).min(checkout.claimed);
                        self.wallets[account] = self.wallets[account].minus(taken);
                        checkout.claimed = checkout.claimed.minus(taken);
                        taken
                    }
                    None => {
                        let taken = amount.min(checkout.owed);
                        checkout.owed = checkout.owed.minus(taken);
                        taken
                    }
                }
            }
        }
    }

    /// Money that arrives settles what is owed for its own transfer first, and then what its owner owes for others.
    fn give_new(&mut self, transfer: usize, party: Party, amount: Usd) {
        let mut debts: Vec<usize> = (0..self.transfers.len())
            .filter(|other| self.transfers[*other].owner.is_some_and(|owner| owner.party == party))
            .collect();
        debts.sort_by_key(|other| {
            let TransferId { network, tx_hash, position } = &self.transfers[*other].facts.id;
            (*other != transfer, network.as_str(), tx_hash.clone(), *position)
        });
        let mut rest = amount;
        for other in debts {
            let debt = &mut self.transfers[other].debt;
            let settled = rest.min(*debt);
            (*debt, rest) = (debt.minus(settled), rest.minus(settled));
        }
        self.give(party, rest);
    }

    /// Money that goes back for what a transfer paid settles what is owed for that first.
    fn give_for(&mut self, transfer: Option<usize>, party: Party, amount: Usd) {
        let mut rest = amount;
        if let Some(transfer) = transfer {
            let debt = &mut self.transfers[transfer].debt;
            let settled = amount.min(*debt);
            *debt = debt.minus(settled);
            rest = amount.minus(settled);
        }
        self.give(party, rest);
    }

    /// Whose a transfer is that nobody has seen before.
    fn owner(&self, seen: &Sighting) -> Option<Owner> {
        let plain = |party| Some(Owner { party, pays: None, signed: false });
        let deposit = self.deposits.get(&seen.recipient).map(|account| Party::Account(*account));
        let signed = seen.payment_nonce.is_some() && seen.currency == Currency::Usdc;
        let claimed = seen.payment_nonce.as_ref().and_then(|nonce| {
            self.claimed.iter().find(|one| one.payer == seen.sender && one.nonce == *nonce)
        });
        if let Some(claimed) = claimed {
            let party = self.party_of(claimed.checkout);
            if signed && (&claimed.receiver, claimed.amount) == (&seen.recipient, seen.amount) {
                return Some(Owner { party, pays: Some(claimed.checkout), signed: true });
            }
            return plain(deposit.unwrap_or(party));
        }
        if let Some(party) = deposit {
            return plain(party);
        }
        let time = seen.block.time;
        let waits =
            |checkout: &Checkout| checkout.created <= time.plus_millis(999) && time < checkout.late_until;
        let by_signature = |checkout: &Checkout| {
            signed && checkout.offer.as_ref() == Some(&(seen.recipient.clone(), seen.amount))
        };
        let here = |checkout: &Checkout| {
            checkout.address == seen.recipient
                && checkout.network == seen.id.network
                && seen.currency == Currency::Usdt
        };
        let exact = |checkout: &Checkout| here(checkout) && checkout.amount == seen.amount;
        let near = |checkout: &Checkout| {
            let within =
                checkout.band.is_some_and(|(least, most)| least <= seen.amount && seen.amount <= most);
            here(checkout) && within && seen.payment_nonce.is_none() && !self.has_dearer(checkout)
        };
        let pick = |fits: &dyn Fn(&Checkout) -> bool| {
            self.checkouts.iter().rposition(|checkout| waits(checkout) && fits(checkout))
        };
        let found = pick(&by_signature).or_else(|| pick(&exact)).or_else(|| pick(&near))?;
        Some(Owner { party: self.party_of(found), pays: Some(found), signed })
    }

    /// Whether a payment to that checkout may be one for another with an exchange's fee taken out.
    fn has_dearer(&self, checkout: &Checkout) -> bool {
        let above = checkout.price.plus(Usd::dollars(3));
        self.checkouts.iter().any(|other| {
            other.address == checkout.address
                && other.id != checkout.id
                && !other.ended
                && checkout.price < other.price
                && other.price <= above
        })
    }

    /// The scanner looks: the whole chain as it is, up to which block it looks, and how far the node is.
    pub fn look(&mut self, network: Network, all: &[Sighting], target: i64, head: i64) {
        let seen = all.iter().filter(|seen| seen.block.number <= target);
        for seen in seen.filter(|seen| self.is_ours(&seen.recipient)).cloned().collect::<Vec<_>>() {
            let owner = self.owner(&seen);
            let Some(index) = self.find(&seen.id) else {
                let block = Some(seen.block.clone());
                self.transfers.push(Transfer {
                    facts: seen,
                    block,
                    owner,
                    booked: None,
                    was_booked: false,
                    debt: Usd::ZERO,
                    missing: false,
                });
                continue;
            };
            let known = &mut self.transfers[index];
            if shows(&known.facts, &seen) {
                known.block = Some(seen.block);
            } else if known.booked.is_none() {
                known.block = Some(seen.block.clone());
                // What had counted once keeps its owner; only its amount is another.
                if !known.was_booked {
                    known.owner = owner;
                }
                known.facts = seen;
            }
        }
        for index in 0..self.transfers.len() {
            let known = &self.transfers[index];
            let looked_at = known.block.as_ref().is_some_and(|block| block.number <= target);
            if known.facts.id.network != network || !looked_at {
                continue;
            }
            match all.iter().find(|seen| shows(seen, &known.facts)) {
                Some(seen) => {
                    self.transfers[index].block = Some(seen.block.clone());
                    self.transfers[index].missing = false;
                }
                None if self.may_come_back(index, head) => self.transfers[index].missing = true,
                None => self.vanish(index),
            }
        }
        let mut waiting: Vec<(i64, usize)> = (0..self.transfers.len())
            .filter(|index| self.transfers[*index].facts.id.network == network)
            .filter(|index| self.transfers[*index].booked.is_none())
            .filter_map(|index| Some((self.transfers[index].block.as_ref()?.number, index)))
            .collect();
        waiting.sort_unstable();
        for (block, index) in waiting {
            // What was booked just now may have ended the checkout that this one pays for.
            let depth = head - block + 1;
            if depth >= self.confirmations(index) {
                self.book(index, depth >= CONFIRMATIONS);
            }
        }
    }

    /// A small signed payment counts at once for the checkout that waits for it, and for nothing else.
    fn confirmations(&self, transfer: usize) -> i64 {
        let Transfer { facts, owner, booked, was_booked, .. } = &self.transfers[transfer];
        let Some(Owner { pays: Some(checkout), signed: true, .. }) = owner else { return CONFIRMATIONS };
        let buys = *booked == Some(Booked::Held) || (!was_booked && !self.checkouts[*checkout].ended);
        if buys && facts.amount <= QUICK { 1 } else { CONFIRMATIONS }
    }

    /// A payment that counted at once is missed for as many blocks as others wait for, unless its signature has moved
    /// something else meanwhile.
    fn may_come_back(&self, transfer: usize, head: i64) -> bool {
        let known = &self.transfers[transfer];
        let young = known.block.as_ref().is_some_and(|block| head < block.number + CONFIRMATIONS);
        let again = self.transfers.iter().any(|other| {
            other.facts.id != known.facts.id
                && other.block.is_some()
                && other.owner.is_some_and(|owner| owner.signed && owner.pays.is_some())
                && other.facts.sender == known.facts.sender
                && other.facts.payment_nonce == known.facts.payment_nonce
        });
        young && !again && known.booked == Some(Booked::Held) && self.confirmations(transfer) == 1
    }

    fn book(&mut self, index: usize, deep: bool) {
        let transfer = &self.transfers[index];
        let amount = transfer.facts.amount;
        let Some(Owner { party, pays, .. }) = transfer.owner else {
            self.transfers[index].booked = Some(Booked::Unmatched);
            return;
        };
        let time = transfer.block.as_ref().expect("only what is in a block is booked").time;
        if let Some(checkout) = pays.filter(|checkout| !self.checkouts[*checkout].ended) {
            let asked = &mut self.checkouts[checkout];
            // Late it is delivered while that costs us no more than what was paid.
            let buys = time < asked.expires || asked.cost <= amount;
            asked.ended |= buys || deep;
            if buys {
                self.transfers[index].booked = Some(Booked::Held);
                self.begin(checkout, index, amount);
                return;
            }
        }
        if !deep {
            return;
        }
        self.transfers[index].booked = Some(Booked::ToOwner);
        self.give_new(index, party, amount);
    }

    /// The order of a paid checkout, and the first question to the supplier.
    pub fn begin(&mut self, checkout: usize, payment: usize, price: Usd) {
        let party = self.party_of(checkout);
        let (state, given) = (State::Waiting, Usd::ZERO);
        let order = Order { id: None, party, payment: Some(payment), price, state, given };
        self.orders.push(order);
        let order = self.orders.len() - 1;
        self.checkouts[checkout].order = Some(order);
        self.ask(order, true);
    }

    /// Whether the money of an order is on no chain, and not made good either.
    pub fn is_unpaid(&self, order: usize) -> bool {
        let payment = self.orders[order].payment.map(|payment| &self.transfers[payment]);
        payment.is_some_and(|payment| payment.debt.is_positive() || payment.missing)
    }

    /// Whether nobody can say if there is money to be paid back for an order.
    pub fn is_in_doubt(&self, order: usize) -> bool {
        self.orders[order].payment.is_some_and(|payment| self.transfers[payment].missing)
    }

    /// The supplier is asked for an order. What it may have sold before, it sells.
    pub fn ask(&mut self, order: usize, first: bool) {
        if self.orders[order].state != State::Waiting || self.is_unpaid(order) {
            return;
        }
        match self.mood.unwrap_or(SupplierMode::Ok) {
            SupplierMode::Reject | SupplierMode::Unavailable if first => self.fail(order),
            SupplierMode::Ok | SupplierMode::Reject => self.orders[order].state = State::Delivered,
            _ => {}
        }
    }

    pub fn fail(&mut self, order: usize) {
        self.orders[order].state = State::Failed;
        self.pay_back(order, self.orders[order].price);
    }

    fn pay_back(&mut self, order: usize, amount: Usd) {
        let Order { party, payment, .. } = self.orders[order];
        self.give_for(payment, party, amount);
    }

    /// Asks the supplier to take an order back: what was not given back before is paid back.
    pub fn cancel(&mut self, order: usize) {
        let done_before = self.orders[order].state == State::Cancelling(true);
        match self.mood.unwrap_or(SupplierMode::Ok) {
            SupplierMode::Reject if !done_before => self.orders[order].state = State::Delivered,
            SupplierMode::Ok | SupplierMode::Reject if self.is_in_doubt(order) => {
                self.orders[order].state = State::Cancelling(true);
            }
            SupplierMode::Ok | SupplierMode::Reject => {
                self.orders[order].state = State::Cancelled;
                let rest = self.orders[order].price.minus(self.orders[order].given);
                self.pay_back(order, rest);
            }
            SupplierMode::Malformed => self.orders[order].state = State::Cancelling(true),
            _ => self.orders[order].state = State::Cancelling(done_before),
        }
    }

    /// False when that is more than is left of the price.
    pub fn goodwill(&mut self, order: usize, amount: Usd) -> bool {
        let Order { state, price, given, .. } = self.orders[order];
        if state != State::Delivered || price.minus(given) < amount {
            return false;
        }
        self.orders[order].given = given.plus(amount);
        self.pay_back(order, amount);
        true
    }

    /// Everything that is open is asked about again.
    pub fn recover(&mut self) {
        for order in 0..self.orders.len() {
            match self.orders[order].state {
                State::Waiting => self.ask(order, false),
                State::Cancelling(_) => self.cancel(order),
                State::Delivered | State::Failed | State::Cancelled => {}
            }
        }
    }

    /// What can be claimed of a guest's checkout: nothing while a payment of it is missing.
    pub fn claimable(&self, checkout: usize) -> Usd {
        let asked = &self.checkouts[checkout];
        let of_it =
            |transfer: &&Transfer| transfer.owner.is_some_and(|owner| owner.party == Party::Guest(checkout));
        let missing = self.transfers.iter().filter(of_it).any(|transfer| transfer.debt.is_positive());
        if asked.owner.is_some() || asked.claimer.is_some() || missing { Usd::ZERO } else { asked.owed }
    }

    pub fn collect(&mut self, checkout: usize, account: usize) {
        let asked = &mut self.checkouts[checkout];
        (asked.claimer, asked.claimed, asked.owed) = (Some(account), asked.owed, Usd::ZERO);
        self.wallets[account] = self.wallets[account].plus(asked.claimed);
    }

    /// The operator says that a transfer was meant for this checkout. False when that cannot be.
    pub fn assign(&mut self, transfer: usize, checkout: usize) -> bool {
        let asked = &self.checkouts[checkout];
        let amount = self.transfers[transfer].facts.amount;
        let charged = amount.min(asked.amount);
        if self.transfers[transfer].booked != Some(Booked::Unmatched) || asked.ended || charged < asked.cost {
            return false;
        }
        self.checkouts[checkout].ended = true;
        let party = self.party_of(checkout);
        self.transfers[transfer].booked = Some(Booked::Held);
        self.transfers[transfer].owner = Some(Owner { party, pays: Some(checkout), signed: false });
        self.give(party, amount.minus(charged));
        self.begin(checkout, transfer, charged);
        true
    }

    /// What was booked is taken back.
    fn vanish(&mut self, index: usize) {
        self.transfers[index].block = None;
        self.transfers[index].missing = false;
        let Some(booked) = self.transfers[index].booked.take() else { return };
        self.transfers[index].was_booked = true;
        let (amount, owner) = (self.transfers[index].facts.amount, self.transfers[index].owner);
        if let (Booked::ToOwner | Booked::Held, Some(owner)) = (booked, owner) {
            let taken = self.take(owner.party, amount);
            let owed = amount.minus(taken);
            self.transfers[index].debt = self.transfers[index].debt.plus(owed);
        }
    }

    /// What an account owes for transfers that vanished.
    pub fn debt_of(&self, account: usize) -> Usd {
        let mine =
            |transfer: &&Transfer| transfer.owner.is_some_and(|owner| owner.party == Party::Account(account));
        self.transfers.iter().filter(mine).fold(Usd::ZERO, |sum, transfer| sum.plus(transfer.debt))
    }

    /// Whether a transfer of this account that had counted is missing.
    pub fn misses(&self, account: usize) -> bool {
        let mine =
            |transfer: &&Transfer| transfer.owner.is_some_and(|owner| owner.party == Party::Account(account));
        self.transfers.iter().filter(mine).any(|transfer| transfer.was_booked && transfer.booked.is_none())
    }
}
