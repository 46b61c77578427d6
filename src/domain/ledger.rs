//! Double entry. Every movement of money is an `Entry` made by one of the named constructors below, whose postings sum
//! to zero; the store writes only these. Debits are positive, credits negative, so a wallet (which we owe to its owner)
//! holds minus the sum of its postings.

use super::ids::{AccountNo, EntryId, InvoiceId, OrderId};
use super::money::Usd;
use super::network::{Currency, Network};
use super::payback::{Payback, Payee};
use super::transfer::{Transfer, TransferId};
use super::words::words;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Account {
    Wallet(AccountNo),
    /// Charged, and the supplier has not answered yet.
    Held,
    Sales,
    /// What a supplier's profiles cost us.
    Cost(&'static str),
    /// What we paid in at a supplier, less what it sold us; below zero it is what we owe it.
    Supplier(&'static str),
    Bank,
    Promo,
    Goodwill,
    Correction,
    /// The cost of what a supplier sold after we had already given the money back.
    LossOrphan,
    /// What was taken off prices to make amounts unique.
    UniquenessDiscount,
    /// What people who round paid above prices.
    Rounding,
    /// What coupons took off prices.
    DiscountCoupon,
    /// What we owe to a guest's invoice, until somebody claims it.
    Owed(InvoiceId),
    /// What lies on our addresses, by network and token.
    Cash(Network, Currency),
    /// Arrived, and without an owner so far.
    Unmatched,
    /// Arrived, and the search for its owner was given up.
    Unclaimed,
    /// What is owed to us because this transfer vanished after it was spent.
    Receivable(TransferId),
    /// The operator's own purse, outside the gateway.
    Treasury,
}

impl Account {
    /// The name in the chart of accounts. All wallets share one name; the posting's wallet column tells them apart.
    /// So do all invoices that we owe to.
    pub fn name(&self) -> String {
        match self {
            Account::Wallet(_) => "wallet".into(),
            Account::Held => "held".into(),
            Account::Sales => "sales".into(),
            Account::Cost(supplier) => format!("cost:{supplier}"),
            Account::Supplier(supplier) => format!("supplier:{supplier}"),
            Account::Bank => "bank".into(),
            Account::Promo => "promo".into(),
            Account::Goodwill => "goodwill".into(),
            Account::Correction => "correction".into(),
            Account::LossOrphan => "loss:orphan".into(),
            Account::UniquenessDiscount => "discount:spot".into(),
            Account::Rounding => "rounding".into(),
            Account::DiscountCoupon => "discount:coupon".into(),
            Account::Owed(_) => "owed".into(),
            Account::Cash(network, currency) => format!("cash:{}:{}", network.as_str(), currency.as_str()),
            Account::Unmatched => "unmatched".into(),
            Account::Unclaimed => "unclaimed".into(),
            Account::Receivable(_) => "receivable".into(),
            Account::Treasury => "treasury".into(),
        }
    }
}

/// The leg that settles part of what is owed for a transfer.
fn settling((transfer, amount): &(TransferId, Usd)) -> (Account, Usd) {
    (Account::Receivable(transfer.clone()), amount.negated())
}

/// The account that holds what we owe to a payee.
fn owing(payee: impl Into<Payee>) -> Account {
    match payee.into() {
        Payee::Wallet(owner) => Account::Wallet(owner),
        Payee::Invoice(invoice) => Account::Owed(invoice),
    }
}

/// The legs of a payback: what it settles, and what its payee receives.
fn shared_out(back: &Payback) -> impl Iterator<Item = (Account, Usd)> {
    let settled = back.settles.iter().map(settling);
    settled.chain([(owing(back.to.clone()), back.received().negated())])
}

words! {
    /// Where the other half of an operator's credit or debit comes from.
    pub enum CreditKind: ALL, parse {
        Bank = "bank",
        Promo = "promo",
        Goodwill = "goodwill",
        Correction = "correction",
    }
}

impl CreditKind {
    fn account(self) -> Account {
        match self {
            CreditKind::Bank => Account::Bank,
            CreditKind::Promo => Account::Promo,
            CreditKind::Goodwill => Account::Goodwill,
            CreditKind::Correction => Account::Correction,
        }
    }
}

words! {
    /// What happened; on a statement this is the line's `type`.
    pub enum EntryKind {
        Order = "ORDER",
        Topup = "TOPUP",
        Fulfilled = "FULFILLED",
        Failed = "FAILED",
        Cancelled = "CANCELLED",
        Refund = "REFUND",
        Credit = "CREDIT",
        Debit = "DEBIT",
        Orphan = "ORPHAN",
        Deposit = "DEPOSIT",
        Reversal = "REVERSAL",
        Unmatched = "UNMATCHED",
        Assigned = "ASSIGNED",
        Returned = "RETURNED",
        WrittenOff = "WRITTEN_OFF",
        Payout = "PAYOUT",
        Sweep = "SWEEP",
        Claimed = "CLAIMED",
        Funded = "FUNDED",
        Trial = "TRIAL",
        TrialReturned = "TRIAL_RETURNED",
        CostReturned = "COST_RETURNED",
    }
}

/// What an order charged, and what was taken off its list price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    pub price: Usd,
    /// How much less than the price after the coupon was paid: to make the amount of a checkout unique, rounded, or
    /// forgiven. Negative when more was paid.
    pub uniqueness_discount: Usd,
    pub coupon: Usd,
}

impl Charge {
    pub fn list_price(self) -> Usd {
        self.price.plus(self.uniqueness_discount).plus(self.coupon)
    }

    /// What was underpaid, as a debit, and what was overpaid, as a credit.
    fn difference(self) -> (Usd, Usd) {
        (self.uniqueness_discount.max(Usd::ZERO), self.uniqueness_discount.min(Usd::ZERO))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    pub account: Account,
    /// Debit positive, credit negative, never zero.
    pub amount: Usd,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Unique for ever. Entries of an order or a transfer are named after it, so that each can exist only once.
    pub id: String,
    pub kind: EntryKind,
    pub order: Option<OrderId>,
    pub transfer: Option<TransferId>,
    pub postings: Vec<Posting>,
}

impl Entry {
    fn new(id: String, kind: EntryKind, order: Option<&OrderId>, legs: &[(Account, Usd)]) -> Entry {
        let postings: Vec<Posting> = legs
            .iter()
            .filter(|(_, amount)| *amount != Usd::ZERO)
            .map(|(account, amount)| Posting { account: account.clone(), amount: *amount })
            .collect();
        let sum = postings.iter().fold(Usd::ZERO, |sum, posting| sum.plus(posting.amount));
        assert_eq!(sum, Usd::ZERO, "an entry must balance");
        let wallets = postings.iter().filter(|posting| matches!(posting.account, Account::Wallet(_))).count();
        assert!(wallets <= 1, "an entry touches at most one wallet");
        Entry { id, kind, order: order.cloned(), transfer: None, postings }
    }

    /// An entry about a transfer, named after it. A transfer that vanished and came back is in another round.
    fn about(transfer: &Transfer, kind: EntryKind, legs: &[(Account, Usd)]) -> Entry {
        let id = format!("{}.{}.{}", transfer.id, kind.as_str().to_lowercase(), transfer.round);
        Entry { transfer: Some(transfer.id.clone()), ..Entry::new(id, kind, None, legs) }
    }

    /// Whether it touches money that is owed to us.
    pub fn settles_something(&self) -> bool {
        self.postings.iter().any(|posting| matches!(posting.account, Account::Receivable(_)))
    }

    /// An order or top-up from a wallet, before the supplier is asked.
    pub fn hold(order: &OrderId, buyer: AccountNo, price: Usd) -> Entry {
        Entry::holding(order, &[(Account::Wallet(buyer), price), (Account::Held, price.negated())])
    }

    /// An order is paid for once, so all ways to pay share one name.
    fn holding(order: &OrderId, legs: &[(Account, Usd)]) -> Entry {
        let kind = if order.is_topup() { EntryKind::Topup } else { EntryKind::Order };
        Entry::new(format!("{order}.hold"), kind, Some(order), legs)
    }

    /// A transfer paid for an order or top-up, before the supplier is asked.
    pub fn paid(order: &OrderId, transfer: &Transfer) -> Entry {
        let legs = [(cash(transfer), transfer.amount), (Account::Held, transfer.amount.negated())];
        Entry { transfer: Some(transfer.id.clone()), ..Entry::holding(order, &legs) }
    }

    /// `paid` for a transfer that had no owner: `price` of it pays for the order.
    pub fn paid_by_assignment(order: &OrderId, transfer: &Transfer, price: Usd) -> Entry {
        let legs = [(Account::Unmatched, price), (Account::Held, price.negated())];
        Entry { transfer: Some(transfer.id.clone()), ..Entry::holding(order, &legs) }
    }

    /// The supplier sold: the held money becomes a sale at list price, and the cost becomes a debt to the supplier.
    pub fn fulfilled(order: &OrderId, charge: Charge, supplier: &'static str, cost: Usd) -> Entry {
        let (less, more) = charge.difference();
        let legs = [
            (Account::Held, charge.price),
            (Account::UniquenessDiscount, less),
            (Account::Rounding, more),
            (Account::DiscountCoupon, charge.coupon),
            (Account::Sales, charge.list_price().negated()),
            (Account::Cost(supplier), cost),
            (Account::Supplier(supplier), cost.negated()),
        ];
        Entry::new(format!("{order}.end"), EntryKind::Fulfilled, Some(order), &legs)
    }

    /// Money goes back for an order, out of `from`.
    fn paying_back(
        id: String,
        kind: EntryKind,
        order: &OrderId,
        from: &[(Account, Usd)],
        back: &Payback,
    ) -> Entry {
        let legs: Vec<(Account, Usd)> = from.iter().cloned().chain(shared_out(back)).collect();
        Entry::new(id, kind, Some(order), &legs)
    }

    /// The supplier refused. It shares its name with `fulfilled`: an order ends once.
    pub fn failed(order: &OrderId, back: &Payback) -> Entry {
        let from = [(Account::Held, back.amount)];
        Entry::paying_back(format!("{order}.end"), EntryKind::Failed, order, &from, back)
    }

    /// The supplier took the profile back, and gives back `returned` of its cost. Earlier goodwill for the order is
    /// part of what its buyer gets.
    pub fn cancelled(
        order: &OrderId,
        back: &Payback,
        charge: Charge,
        supplier: &'static str,
        returned: Usd,
    ) -> Entry {
        let given = charge.price.minus(back.amount);
        let (less, more) = charge.difference();
        let from = [
            (Account::Sales, charge.list_price()),
            (Account::Goodwill, given.negated()),
            (Account::UniquenessDiscount, less.negated()),
            (Account::Rounding, more.negated()),
            (Account::DiscountCoupon, charge.coupon.negated()),
            (Account::Supplier(supplier), returned),
            (Account::Cost(supplier), returned.negated()),
        ];
        Entry::paying_back(format!("{order}.cancel"), EntryKind::Cancelled, order, &from, back)
    }

    /// The operator gives money for an order as goodwill; the sale stands.
    pub fn goodwill_refund(id: &EntryId, order: &OrderId, back: &Payback) -> Entry {
        let from = [(Account::Goodwill, back.amount)];
        Entry::paying_back(format!("{order}.refund.{id}"), EntryKind::Refund, order, &from, back)
    }

    pub fn operator_credit(id: &EntryId, kind: CreditKind, wallet: AccountNo, amount: Usd) -> Entry {
        let legs = [(kind.account(), amount), (Account::Wallet(wallet), amount.negated())];
        Entry::new(id.to_string(), EntryKind::Credit, None, &legs)
    }

    pub fn operator_debit(id: &EntryId, kind: CreditKind, wallet: AccountNo, amount: Usd) -> Entry {
        let legs = [(Account::Wallet(wallet), amount), (kind.account(), amount.negated())];
        Entry::new(id.to_string(), EntryKind::Debit, None, &legs)
    }

    /// The supplier sold after we had given the money back, and does not take the profile back.
    pub fn orphan(order: &OrderId, supplier: &'static str, cost: Usd) -> Entry {
        let legs = [(Account::LossOrphan, cost), (Account::Supplier(supplier), cost.negated())];
        Entry::new(format!("{order}.orphan"), EntryKind::Orphan, Some(order), &legs)
    }

    /// A supplier sold a second time for an order, and `lost` of that sale's cost does not come back.
    pub fn second_sale(order: &OrderId, n: i64, supplier: &'static str, lost: Usd) -> Entry {
        let legs = [(Account::LossOrphan, lost), (Account::Supplier(supplier), lost.negated())];
        Entry::new(format!("{order}.orphan.{n}"), EntryKind::Orphan, Some(order), &legs)
    }

    /// A transfer to an account's address is final. It first settles what the account owes: for this very transfer, and
    /// for others.
    pub fn deposit(transfer: &Transfer, owner: impl Into<Payee>, settled: &[(TransferId, Usd)]) -> Entry {
        let rest = settled.iter().fold(transfer.amount, |rest, (_, amount)| rest.minus(*amount));
        let mut legs = vec![(cash(transfer), transfer.amount)];
        legs.extend(settled.iter().map(settling));
        legs.push((owing(owner), rest.negated()));
        Entry::about(transfer, EntryKind::Deposit, &legs)
    }

    /// A final transfer without an owner.
    pub fn unmatched(transfer: &Transfer) -> Entry {
        let legs = [(cash(transfer), transfer.amount), (Account::Unmatched, transfer.amount.negated())];
        Entry::about(transfer, EntryKind::Unmatched, &legs)
    }

    /// A transfer that had no owner goes to this account, or what is left of it after it has paid for an order.
    pub fn assigned(transfer: &Transfer, owner: impl Into<Payee>, amount: Usd) -> Entry {
        let legs = [(Account::Unmatched, amount), (owing(owner), amount.negated())];
        Entry::about(transfer, EntryKind::Assigned, &legs)
    }

    /// A transfer without an owner was sent back to its sender.
    pub fn returned(transfer: &Transfer) -> Entry {
        let legs = [(Account::Unmatched, transfer.amount), (cash(transfer), transfer.amount.negated())];
        Entry::about(transfer, EntryKind::Returned, &legs)
    }

    pub fn written_off(transfer: &Transfer) -> Entry {
        let legs = [(Account::Unmatched, transfer.amount), (Account::Unclaimed, transfer.amount.negated())];
        Entry::about(transfer, EntryKind::WrittenOff, &legs)
    }

    /// A credited transfer vanished from the chain: the wallet gives back what it has, the rest is owed.
    pub fn reversal(transfer: &Transfer, owner: impl Into<Payee>, taken: Usd) -> Entry {
        let legs = [
            (owing(owner), taken),
            (Account::Receivable(transfer.id.clone()), transfer.amount.minus(taken)),
            (cash(transfer), transfer.amount.negated()),
        ];
        Entry::about(transfer, EntryKind::Reversal, &legs)
    }

    /// `reversal` for a transfer without an owner.
    pub fn unmatched_reversal(transfer: &Transfer) -> Entry {
        let legs = [(Account::Unmatched, transfer.amount), (cash(transfer), transfer.amount.negated())];
        Entry::about(transfer, EntryKind::Reversal, &legs)
    }

    /// The operator paid out an account's money, from our addresses or from the bank.
    pub fn payout(id: &EntryId, owner: AccountNo, from: Purse, amount: Usd) -> Entry {
        let legs = [(Account::Wallet(owner), amount), (from.account(), amount.negated())];
        Entry::new(id.to_string(), EntryKind::Payout, None, &legs)
    }

    /// The operator moved money from our addresses to the treasury.
    pub fn sweep(id: &EntryId, network: Network, currency: Currency, amount: Usd) -> Entry {
        let legs = [(Account::Treasury, amount), (Account::Cash(network, currency), amount.negated())];
        Entry::new(id.to_string(), EntryKind::Sweep, None, &legs)
    }

    /// The operator paid in at a supplier, who sells for what was paid in.
    pub fn funded(id: &EntryId, supplier: &'static str, amount: Usd) -> Entry {
        let legs = [(Account::Supplier(supplier), amount), (Account::Treasury, amount.negated())];
        Entry::new(id.to_string(), EntryKind::Funded, None, &legs)
    }

    /// The operator bought a plan to try a supplier. It is no order of anybody's.
    pub fn trial(trial: &OrderId, supplier: &'static str, cost: Usd) -> Entry {
        let legs = [(Account::Cost(supplier), cost), (Account::Supplier(supplier), cost.negated())];
        Entry::new(trial_name(trial, supplier), EntryKind::Trial, None, &legs)
    }

    /// The supplier took back what was bought to try it.
    pub fn trial_returned(trial: &OrderId, supplier: &'static str, returned: Usd) -> Entry {
        let legs = [(Account::Supplier(supplier), returned), (Account::Cost(supplier), returned.negated())];
        Entry::new(format!("{}.returned", trial_name(trial, supplier)), EntryKind::TrialReturned, None, &legs)
    }

    /// The supplier gave back `returned` of the cost of an order that its buyer keeps, and has paid for.
    pub fn cost_returned(order: &OrderId, supplier: &'static str, returned: Usd) -> Entry {
        let legs = [(Account::Supplier(supplier), returned), (Account::Cost(supplier), returned.negated())];
        Entry::new(format!("{order}.returned"), EntryKind::CostReturned, Some(order), &legs)
    }

    /// Somebody who holds a guest's invoice has claimed what we owe for it. Named after the invoice: it happens once.
    pub fn claimed(invoice: &InvoiceId, order: Option<&OrderId>, by: AccountNo, amount: Usd) -> Entry {
        let legs = [(Account::Owed(invoice.clone()), amount), (Account::Wallet(by), amount.negated())];
        Entry::new(format!("{invoice}.claim"), EntryKind::Claimed, order, &legs)
    }

    /// The one wallet this entry moves, and by how much its balance changes.
    pub fn wallet_change(&self) -> Option<(AccountNo, Usd)> {
        self.postings.iter().find_map(|posting| match posting.account {
            Account::Wallet(no) => Some((no, posting.amount.negated())),
            _ => None,
        })
    }
}

/// The name of the entry of a trial: this finds the trials of a supplier.
pub fn trial_name(trial: impl std::fmt::Display, supplier: &str) -> String {
    format!("trial.{supplier}.{trial}")
}

fn cash(transfer: &Transfer) -> Account {
    Account::Cash(transfer.id.network, transfer.currency)
}

/// Where a payout comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purse {
    Bank,
    Cash(Network, Currency),
}

impl Purse {
    fn account(self) -> Account {
        match self {
            Purse::Bank => Account::Bank,
            Purse::Cash(network, currency) => Account::Cash(network, currency),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::Time;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        Credit(i64),
        Buy { price: i64, coupon: i64, cost: i64, outcome: u8 },
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1i64..50_000_000).prop_map(Step::Credit),
            (1i64..9_000_000, 0i64..9_000_000, 0i64..9_000_000, 0u8..5)
                .prop_map(|(price, coupon, cost, outcome)| Step::Buy { price, coupon, cost, outcome }),
        ]
    }

    proptest! {
        /// Any sequence keeps the laws: everything sums to zero, nothing stays held, the wallet is never negative, and
        /// the coupons' account equals the discounts on sales that stand.
        #[test]
        fn laws_hold(steps in prop::collection::vec(any_step(), 1..60)) {
            let buyer = AccountNo(7);
            let mut books: BTreeMap<Account, i64> = BTreeMap::new();
            let mut post = |entry: Entry| {
                for posting in entry.postings {
                    *books.entry(posting.account).or_default() += posting.amount.micros();
                }
                -books.get(&Account::Wallet(buyer)).copied().unwrap_or_default()
            };
            let (mut balance, mut given) = (0, 0);
            for (n, step) in steps.into_iter().enumerate() {
                let at = Time::from_micros(n as i64 * 1_000);
                match step {
                    Step::Credit(micros) => {
                        let id = EntryId::new(at, n as u128);
                        balance = post(Entry::operator_credit(&id, CreditKind::Bank, buyer, Usd::from_micros(micros)));
                    }
                    Step::Buy { price, .. } if price > balance => {}
                    Step::Buy { price, coupon, cost, outcome } => {
                        let (order, price, cost) = (OrderId::esim(at, n as u128), Usd::from_micros(price), Usd::from_micros(cost));
                        let charge = Charge { price, uniqueness_discount: Usd::ZERO, coupon: Usd::from_micros(coupon) };
                        post(Entry::hold(&order, buyer, price));
                        balance = match outcome {
                            0 => post(Entry::failed(&order, &Payback::whole(buyer, price))),
                            1 => { post(Entry::failed(&order, &Payback::whole(buyer, price))); post(Entry::orphan(&order, "sim", cost)) }
                            2 => {
                                given += coupon;
                                post(Entry::fulfilled(&order, charge, "sim", cost))
                            }
                            3 => {
                                given += coupon;
                                post(Entry::fulfilled(&order, charge, "sim", cost));
                                post(Entry::cost_returned(&order, "sim", cost))
                            }
                            _ => {
                                post(Entry::fulfilled(&order, charge, "sim", cost));
                                post(Entry::cancelled(&order, &Payback::whole(buyer, price), charge, "sim", cost))
                            }
                        };
                    }
                }
                prop_assert!(balance >= 0);
            }
            prop_assert_eq!(books.values().sum::<i64>(), 0);
            prop_assert_eq!(books.get(&Account::Held).copied().unwrap_or_default(), 0);
            prop_assert_eq!(books.get(&Account::DiscountCoupon).copied().unwrap_or_default(), given);
        }
    }

    #[test]
    fn an_order_can_end_only_once() {
        let order = OrderId::esim(Time::from_micros(0), 1);
        let price = Usd::dollars(5);
        let charge = Charge { price, uniqueness_discount: Usd::ZERO, coupon: Usd::ZERO };
        assert_eq!(
            Entry::failed(&order, &Payback::whole(AccountNo(1), price)).id,
            Entry::fulfilled(&order, charge, "sim", Usd::dollars(4)).id
        );
    }
}
