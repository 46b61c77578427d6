//! Placing and reading orders. `place` is the spine of the service: hold the money, ask the supplier, finish.
//! The first beat is here, the other two in `deliver.rs`; a top-up takes the same path (`topups.rs`).

mod list;
mod search;
mod story;
mod waiting;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use metrics::counter;

pub use self::list::{List, ListQuery, Listed, history, list, of_receipt, with_topups};
pub use self::search::{Found, Search, Stream, search, stream};
pub use self::story::{Happening, PlacedBy, Story, What, story};
pub use self::waiting::{MOST_COUNTED, Waiting, waiting_long};
use super::breaker::{self, Names};
use super::by_hand::ByHand;
use super::coupons::{guesses::Guess, redeem};
use super::deliver;
use super::owned::{self, Owned};
use super::patience::Patience;
use crate::app::App;
use crate::domain::account::GUESTS;
use crate::domain::coupon;
use crate::domain::email::Email;
use crate::domain::esim::Esim;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::number::{Number, Series};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::plan::{PlanType, RETAIL_PRICE_LIST};
use crate::domain::refusal::{Conflict, Difference, PlanMistake, Refusal, different};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::audit::{self, Line};
use crate::store::claims::Claimant;
use crate::store::offers::{self, Asked, Look, Offer};
use crate::store::orders;
use crate::store::tx::Tx;
use crate::store::{WriteJob, wallet};
use crate::telemetry::EveryMinute;

/// The longest margin between the end of asking and the start of recovery.
const ASK_MARGIN_MS: i64 = 5_000;

/// Who buys, and through which key.
#[derive(Clone, Debug)]
pub struct Buyer {
    pub account: AccountNo,
    pub key_id: String,
    pub price_list: String,
    /// Whether its key has a daily limit, so that its purchases are decided under the wallet's lock.
    pub limited: bool,
    /// Where somebody buys by hand: it is checked, and stands in the audit log, in the order's own write.
    pub by_hand: Option<ByHand>,
}

impl Buyer {
    /// A buyer without an account, at retail prices.
    pub fn guest() -> Buyer {
        let (key_id, price_list) = (String::new(), RETAIL_PRICE_LIST.into());
        Buyer { account: GUESTS, key_id, price_list, limited: false, by_hand: None }
    }
}

#[derive(Clone, Debug)]
pub struct Purchase {
    pub package_code: String,
    pub reference: Option<String>,
    pub max_price: Option<Usd>,
    /// A top-up: the order whose eSIM it fills.
    pub esim_order: Option<OrderId>,
    /// Who gets a receipt when it is delivered.
    pub customer_email: Option<Email>,
    /// A coupon, in any spelling.
    pub discount_code: Option<String>,
}

/// What a buyer receives for a purchase.
#[derive(Debug)]
pub struct Receipt {
    pub order: Order,
    /// The wallet's balance now.
    pub balance: Usd,
    pub replayed: bool,
}

/// Buys a new eSIM.
pub async fn place(app: &App, buyer: Buyer, purchase: Purchase) -> Result<Receipt> {
    buy(app, buyer, purchase, app.new_order_id()).await
}

/// The spine, for orders and top-ups alike.
pub(super) async fn buy(app: &App, buyer: Buyer, purchase: Purchase, id: OrderId) -> Result<Receipt> {
    let account = buyer.account;
    let draft = OrderDraft::new(app, buyer, purchase, id);
    let begun = app.store.write_batched(account.0, draft).await?;
    match begun {
        Begun::New { order, balance } => deliver::and_wait(app, *order, balance).await,
        Begun::Replay { order, balance } => await_replay(app, *order, balance).await,
        Begun::WrongCoupon => Err(Refusal::CouponInvalid.into()),
    }
}

/// What this reference has bought before, if the purchase is the same.
pub(super) async fn replay(app: &App, buyer: Buyer, purchase: Purchase) -> Result<Receipt> {
    let draft = OrderDraft::new(app, buyer, purchase, app.new_order_id());
    let read = move |tx: &mut Tx| {
        let look = offers::look(tx, &draft.asks())?;
        let claimed_by = look.claimed_by.ok_or_else(|| Refusal::from(Conflict::default()))?;
        Ok((draft.earlier(tx, &claimed_by)?, look.balance))
    };
    let (order, balance) = app.store.read(read).await?;
    await_replay(app, order, balance).await
}

/// Until when this process may be asking the supplier about something begun now.
pub(super) fn ask_until(app: &App, now: Time) -> Time {
    let asking = app.settings.supplier_timeout_ms;
    now.plus_millis(asking + asking.min(ASK_MARGIN_MS))
}

struct OrderDraft {
    id: OrderId,
    buyer: Buyer,
    purchase: Purchase,
    now: Time,
    ask_until: Time,
    on_hold: bool,
    /// The suppliers that sell now.
    selling: Names,
    /// Its coupon code, which may be invalid.
    guess: Option<Guess>,
}

impl OrderDraft {
    fn new(app: &App, buyer: Buyer, purchase: Purchase, id: OrderId) -> OrderDraft {
        let now = app.now();
        let account = buyer.account;
        let on_hold = app.buying_on_hold.load(Ordering::Relaxed);
        let guess = purchase.discount_code.as_ref().map(|code| Guess::of_account(app, code, account, None));
        let selling = app.breakers.selling();
        OrderDraft { id, buyer, purchase, now, ask_until: ask_until(app, now), on_hold, selling, guess }
    }

    /// The order that holds this purchase's reference, if it was the same request.
    fn earlier(&self, tx: &mut Tx, claimed_by: &Claimant) -> Result<Order> {
        let found = match claimed_by {
            Claimant::Order(id) => orders::by_id(tx, id)?,
            Claimant::Checkout(_) | Claimant::Cancel(_) => return Err(claimed_by.in_the_way().into()),
        };
        let earlier = found.ok_or_else(|| Error::fault("a claim without its order"))?;
        let differs = differences(&earlier, self);
        if differs.is_empty() { Ok(earlier) } else { Err(Conflict::with_order(&earlier.id, differs).into()) }
    }

    fn asks(&self) -> Asked<'_> {
        Asked {
            account: self.buyer.account,
            reference: self.purchase.reference.as_deref(),
            package_code: &self.purchase.package_code,
            price_list: &self.buyer.price_list,
        }
    }
}

impl WriteJob for OrderDraft {
    type Answer = Begun;
    const SHARES: bool = true;

    fn run(&self, tx: &mut Tx) -> Result<Begun> {
        begin(tx, self)
    }

    fn run_batched(tx: &mut Tx, group: &[&OrderDraft]) -> Result<Vec<Option<Begun>>> {
        begin_batched(tx, group)
    }
}

enum Begun {
    New {
        order: Box<Order>,
        balance: Usd,
    },
    Replay {
        order: Box<Order>,
        balance: Usd,
    },
    /// Nothing was bought; the wrong try was recorded.
    WrongCoupon,
}

/// Write 1: everything that can refuse is read first; then the money is held and the order exists.
fn begin(tx: &mut Tx, draft: &OrderDraft) -> Result<Begun> {
    let OrderDraft { id, buyer, purchase, now, .. } = draft;
    if tx.is_rerun()
        && let Some(order) = orders::by_id(tx, id)?
    {
        let balance = wallet::read(tx, buyer.account)?.balance;
        return Ok(Begun::New { order: Box::new(order), balance });
    }
    if let Some(guess) = &draft.guess
        && guess.is_recorded(tx)?
    {
        return Ok(Begun::WrongCoupon);
    }
    if let Some(deed) = &buyer.by_hand {
        deed.check(tx)?;
    }
    if buyer.limited || purchase.esim_order.is_some() || purchase.discount_code.is_some() {
        wallet::lock(tx, buyer.account)?;
    }
    let look = offers::look(tx, &draft.asks())?;
    if let Some(claimed_by) = &look.claimed_by {
        let order = draft.earlier(tx, claimed_by)?;
        return Ok(Begun::Replay { order: Box::new(order), balance: look.balance });
    }
    let offer = offer(&look, draft)?;
    let filled = match &purchase.esim_order {
        Some(esim_order) => filled_esim(tx, buyer.account, esim_order, offer)?,
        None => None,
    };
    let coupon = match &draft.guess {
        Some(guess) => match redeem::accept(tx, guess, &purchase.package_code, offer)? {
            Some(coupon) => Some(coupon),
            None => return Ok(Begun::WrongCoupon),
        },
        None => None,
    };
    let price = offer.price.minus(coupon::discount(coupon.as_ref()));
    check_price(price, purchase)?;
    // The limit is checked before the balance, so that nobody funds a purchase that the key may not make.
    let limit = if buyer.limited { offers::daily_limit(tx, &buyer.key_id)? } else { None };
    let spent = limit.map(|limit| limit.after(price, now.day())).transpose()?;
    let short = Refusal::InsufficientBalance { balance: look.balance, required: price };
    if look.balance < price {
        return Err(short.into());
    }
    let mut order = new_order(draft, offer, filled);
    (order.price, order.coupon) = (price, coupon);
    let entry = Entry::hold(&order.id, order.account, order.price);
    let (number, balance) = orders::hold(tx, &order, &entry)?.ok_or(short)?;
    if let Some(deed) = &buyer.by_hand {
        let about = order.esim_order.as_ref().unwrap_or(&order.id);
        let detail = format!("{about} {} for {} USD", order.package_code, order.price);
        audit::record(tx, &Line { detail, ..deed.line.clone() })?;
    }
    redeem::spend_at_once(tx, &order)?;
    if let Some(spent) = spent {
        offers::spend_limit(tx, &buyer.key_id, spent, now.day())?;
    }
    if !order.id.is_topup() {
        (order.seq, order.number) = numbered(order.account, number);
    }
    Ok(Begun::New { order: Box::new(order), balance })
}

/// Write 1 for the simple orders of a group, and for replays. Orders that are refused, or must be decided under the
/// wallet's lock, are left to `begin`.
fn begin_batched(tx: &mut Tx, group: &[&OrderDraft]) -> Result<Vec<Option<Begun>>> {
    // Of two orders with the same reference, the second must see the outcome of the first.
    let mut references = HashSet::new();
    let plain: Vec<&OrderDraft> = group
        .iter()
        .copied()
        .filter(|draft| !draft.buyer.limited && draft.buyer.by_hand.is_none())
        .filter(|draft| draft.purchase.esim_order.is_none() && draft.purchase.discount_code.is_none())
        .filter(|draft| match &draft.purchase.reference {
            Some(reference) => references.insert((draft.buyer.account, reference)),
            None => true,
        })
        .collect();
    if plain.is_empty() {
        return Ok(group.iter().map(|_| None).collect());
    }
    let asked: Vec<Asked> = plain.iter().map(|draft| draft.asks()).collect();
    let (mut new, mut known) = (Vec::with_capacity(plain.len()), Vec::new());
    for (draft, look) in plain.into_iter().zip(offers::look_all(tx, &asked)?) {
        match look.claimed_by {
            Some(Claimant::Order(claimed_by)) => {
                known.push((draft, claimed_by, look.balance));
                continue;
            }
            Some(Claimant::Checkout(_) | Claimant::Cancel(_)) => continue,
            None => {}
        }
        let accepted =
            offer(&look, draft).and_then(|offer| check_price(offer.price, &draft.purchase).map(|()| offer));
        if let Ok(offer) = accepted {
            let order = new_order(draft, offer, None);
            let entry = Entry::hold(&order.id, order.account, order.price);
            new.push((order, entry));
        }
    }
    let mut begun = replays(tx, known)?;
    let pairs: Vec<(&Order, &Entry)> = new.iter().map(|(order, entry)| (order, entry)).collect();
    let held = if pairs.is_empty() { HashMap::new() } else { orders::hold_all(tx, &pairs)? };
    for (mut order, _) in new {
        if let Some(&(number, balance)) = held.get(&order.id) {
            (order.seq, order.number) = numbered(order.account, number);
            begun.insert(order.id.clone(), Begun::New { order: Box::new(order), balance });
        }
    }
    Ok(group.iter().map(|draft| begun.remove(&draft.id)).collect())
}

/// The place and the number of an order that a wallet paid for.
fn numbered(account: AccountNo, n: i64) -> (Option<i64>, Option<Number>) {
    (Some(n), Some(Number { series: Series::Orders, account, n }))
}

/// By the new order's id: the earlier order of the same reference, if it was the same request.
fn replays(tx: &mut Tx, known: Vec<(&OrderDraft, OrderId, Usd)>) -> Result<HashMap<OrderId, Begun>> {
    if known.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<&OrderId> = known.iter().map(|(_, claimed_by, _)| claimed_by).collect();
    let mut earlier: HashMap<OrderId, Order> =
        orders::by_ids(tx, &ids)?.into_iter().map(|order| (order.id.clone(), order)).collect();
    let mut found = HashMap::with_capacity(known.len());
    for (draft, claimed_by, balance) in known {
        if let Some(order) = earlier.remove(&claimed_by).filter(|order| differences(order, draft).is_empty())
        {
            found.insert(draft.id.clone(), Begun::Replay { order: Box::new(order), balance });
        }
    }
    Ok(found)
}

/// In what a request differs from an earlier one: operation, package, eSIM, customer and coupon. Price limits are not
/// compared.
fn differences(earlier: &Order, draft: &OrderDraft) -> Vec<Difference> {
    let purchase = &draft.purchase;
    let coupon = draft.guess.as_ref().map(|guess| &guess.code);
    let same_operation = earlier.esim_order.is_some() == purchase.esim_order.is_some();
    let compared = [
        (Difference::Operation, same_operation),
        (Difference::Package, earlier.package_code == purchase.package_code),
        (Difference::Esim, !same_operation || earlier.esim_order == purchase.esim_order),
        (Difference::Email, earlier.customer_email == purchase.customer_email),
        (Difference::Coupon, earlier.coupon.as_ref().map(|coupon| &coupon.code) == coupon),
    ];
    different(compared)
}

/// The plan, if this account can buy it this way.
fn offer<'a>(look: &'a Look, draft: &OrderDraft) -> Result<&'a Offer, Refusal> {
    if look.suspended {
        return Err(Refusal::AccountSuspended);
    }
    if draft.on_hold {
        return Err(Refusal::BuyingOnHold);
    }
    let offer = look.plan.as_ref().ok_or(Refusal::PlanNotFound)?;
    breaker::require_selling(&draft.selling, &offer.supplier)?;
    if !draft.id.is_topup() {
        require_numbers(Series::Orders, draft.buyer.account, look.numbers)?;
    }
    match offer.plan_type {
        PlanType::Topup if draft.purchase.esim_order.is_none() => {
            Err(Refusal::WrongPlanType(PlanMistake::TopupAlone))
        }
        PlanType::Base | PlanType::Topup => Ok(offer),
    }
}

/// Refuses when this account has no order numbers left; a reserve for purchases in progress is kept.
pub(super) fn require_numbers(series: Series, account: AccountNo, drawn: i64) -> Result<(), Refusal> {
    if !series.is_used_up(account, drawn) {
        return Ok(());
    }
    static LINES: EveryMinute = EveryMinute::new();
    if let Some(left_out) = LINES.turn() {
        tracing::error!(
            account = account.0,
            ?series,
            drawn,
            left_out,
            "an account has used up its order numbers; see `simgate doctor`"
        );
    }
    Err(Refusal::NoNumbersLeft)
}

fn check_price(price: Usd, purchase: &Purchase) -> Result<(), Refusal> {
    match purchase.max_price {
        Some(max) if price > max => Err(Refusal::PriceChanged { price }),
        _ => Ok(()),
    }
}

/// The eSIM that a top-up fills, if it is this account's and the plan fits it.
pub(super) fn filled_esim(
    tx: &mut Tx,
    account: AccountNo,
    esim_order: &OrderId,
    offer: &Offer,
) -> Result<Option<Esim>> {
    let found = orders::by_id(tx, esim_order)?.and_then(|order| order.of(account));
    let filled = found.ok_or(Refusal::EsimNotFound)?;
    match filled.status {
        OrderStatus::Fulfilled => {}
        OrderStatus::Provisioning | OrderStatus::Failed => return Err(Refusal::EsimNotFound.into()),
        OrderStatus::Cancelling | OrderStatus::Cancelled => return Err(Refusal::EsimNotActive.into()),
    }
    if offer.plan_type != PlanType::Topup {
        return Err(Refusal::WrongPlanType(PlanMistake::BaseAsTopup).into());
    }
    if offer.family != filled.family || offer.supplier != filled.supplier {
        return Err(Refusal::WrongPlanType(PlanMistake::Unfit).into());
    }
    Ok(filled.esim)
}

fn new_order(draft: &OrderDraft, offer: &Offer, filled: Option<Esim>) -> Order {
    Order {
        id: draft.id.clone(),
        account: draft.buyer.account,
        seq: None,
        number: None,
        esim_order: draft.purchase.esim_order.clone(),
        reference: draft.purchase.reference.clone(),
        package_code: draft.purchase.package_code.clone(),
        plan_name: offer.name.clone(),
        family: offer.family.clone(),
        data_mb: offer.data_mb,
        duration_days: offer.duration_days,
        price: offer.price,
        uniqueness_discount: Usd::ZERO,
        coupon: None,
        customer_email: draft.purchase.customer_email.clone(),
        cost: offer.cost,
        billed: offer.billed,
        supplier: offer.supplier.clone(),
        supplier_code: offer.supplier_code.clone(),
        supplier_number: None,
        key_id: draft.buyer.key_id.clone(),
        status: OrderStatus::Provisioning,
        ask_until: draft.ask_until,
        created_at: draft.now,
        updated_at: draft.now,
        failure: None,
        refunded: None,
        cancel_request: None,
        cancel_withdrawn_at: None,
        esim: filled,
    }
}

/// A second caller with a reference waits like the first one.
async fn await_replay(app: &App, order: Order, balance: Usd) -> Result<Receipt> {
    counter!("simgate_orders_replayed_total").increment(1);
    match order.status {
        OrderStatus::Fulfilled | OrderStatus::Cancelling | OrderStatus::Cancelled => {
            return Ok(Receipt { order, balance, replayed: true });
        }
        OrderStatus::Provisioning | OrderStatus::Failed => {}
    }
    let (mut order, mut patience) = (order, Patience::new(app));
    while order.status == OrderStatus::Provisioning && patience.lasts(app).await {
        order = owned::order(app, order.account, &order.id).await?;
    }
    // Only a live order holds its reference: this one failed while we waited.
    if order.status == OrderStatus::Failed {
        return Err(deliver::refusal_of(&order).into());
    }
    let account = order.account;
    let balance = app.store.read(move |tx| wallet::read(tx, account)).await?.balance;
    Ok(Receipt { order, balance, replayed: true })
}
