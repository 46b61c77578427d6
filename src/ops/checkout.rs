//! Checkouts: a plan for an exact amount, paid by a transfer that is known by it. Opening one takes an amount that
//! no other can be paid with; the payment, once final, becomes held money and an order in one write, and the
//! order goes the way of every other (`deliver.rs`).

use metrics::counter;

use super::{deliver, orders};
use crate::app::App;
use crate::domain::checkout::{self, Checkout, CheckoutStatus, LATE_HOURS, RINGS};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::plan::{PlanType, RETAIL_PRICE_LIST};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::transfer::{Transfer, TransferState};
use crate::error::{Error, Result};
use crate::store::addresses::{self, Address};
use crate::store::checkouts::{self, Ring};
use crate::store::orders::{self as rows, Offer};
use crate::store::transfers::{self, Claimed};
use crate::store::tx::Tx;
use crate::store::{cursors, wallet};

pub const CURRENCY: Currency = Currency::Usdt;
const OPEN_MINUTES: i64 = 30;
const MOST_OPEN: i64 = 50;
const MOST_UNPAID: i64 = 200;
const MOST_UNPAID_OF_ADDRESS: i64 = 300;
/// How many addresses serve checkouts at most; when the last one is full, somebody must look.
const MOST_SERVING: i64 = 20;
/// A serving address is watched for so long after its last checkout, and renewed when a day of it is gone.
const WATCH_DAYS: i64 = 8;
const HOUR_MS: i64 = 3_600_000;

#[derive(Clone)]
pub struct NewCheckout {
    pub account: AccountNo,
    pub token: String,
    pub package_code: String,
    pub network: Network,
    pub customer_email: Option<String>,
    /// The caller's Idempotency-Key, and what was asked for under it.
    pub key: Option<(String, String)>,
    /// Where the caller is, as far as limits tell callers apart.
    pub origin: String,
}

/// Opens a checkout, or answers the one that this key opened before.
pub async fn open(app: &App, new: NewCheckout) -> Result<Checkout> {
    let settlement = &app.settings.settlement;
    if !settlement.networks.get(&new.network).is_some_and(|terms| terms.takes(CURRENCY)) {
        return Err(Refusal::UnsupportedPair(super::deposits::pairs(app)).into());
    }
    let draft = Draft {
        id: app.new_invoice_id(),
        now: app.now(),
        seed: app.vault.amount_seed(),
        xpub: settlement.xpub(new.network.kind()).clone(),
        on_hold: app.buying_on_hold.load(std::sync::atomic::Ordering::Relaxed),
        new,
    };
    let account = draft.new.account;
    let opened = app.store.write(account.0, move |tx| draft.open(tx)).await?;
    app.expected.send_modify(|count| *count += 1);
    match opened {
        Some(checkout) => Ok(checkout),
        None => {
            counter!("simgate_checkout_amounts_exhausted_total").increment(1);
            tracing::error!("every address for checkouts is out of amounts: is a scanner standing still?");
            Err(Refusal::Overloaded.into())
        }
    }
}

struct Draft {
    new: NewCheckout,
    id: InvoiceId,
    now: Time,
    seed: u64,
    xpub: crate::chain::address::Xpub,
    on_hold: bool,
}

impl Draft {
    /// `None` when no address has an amount left.
    fn open(&self, tx: &mut Tx) -> Result<Option<Checkout>> {
        let Draft { new, id, .. } = self;
        if tx.is_rerun()
            && let Some(made) = checkouts::by_id(tx, id)?
        {
            return Ok(Some(made));
        }
        // Two checkouts at once must not both slip below a limit, or both take a key.
        wallet::lock(tx, new.account)?;
        if let Some((name, body)) = &new.key
            && let Some((earlier, made)) = checkouts::by_key(tx, new.account, name)?
        {
            return if earlier == *body {
                checkouts::by_id(tx, &made)
            } else {
                Err(Refusal::IdempotencyConflict.into())
            };
        }
        if wallet::read(tx, new.account)?.suspended {
            return Err(Refusal::AccountSuspended.into());
        }
        if self.on_hold {
            return Err(Refusal::BuyingOnHold.into());
        }
        self.require_room(tx)?;
        let look = rows::look(tx, new.account, None, &new.package_code, RETAIL_PRICE_LIST)?;
        let offer = look.plan.ok_or(Refusal::PlanNotFound)?;
        if offer.plan_type != PlanType::Base {
            return Err(Refusal::WrongPlanType.into());
        }
        let Some((address, amount)) = self.reserve(tx, offer.price)? else { return Ok(None) };
        let checkout = self.checkout(offer, address, amount, checkouts::take_number(tx, new.account)?);
        checkouts::insert(tx, &checkout, &new.origin)?;
        if let Some((name, body)) = &new.key {
            checkouts::add_key(tx, new.account, name, body, id)?;
        }
        Ok(Some(checkout))
    }

    fn require_room(&self, tx: &mut Tx) -> Result<()> {
        let since = self.now.plus_days(-1);
        let (open, unpaid) = checkouts::counts(tx, self.new.account, since)?;
        let of_address = checkouts::unpaid_from(tx, &self.new.origin, since)?;
        if open >= MOST_OPEN || unpaid >= MOST_UNPAID || of_address >= MOST_UNPAID_OF_ADDRESS {
            return Err(Refusal::TooManyCheckouts.into());
        }
        Ok(())
    }

    /// An amount below the price that nobody else can be paying.
    fn reserve(&self, tx: &mut Tx, price: Usd) -> Result<Option<(String, Usd)>> {
        let network = self.new.network;
        let scanned = cursors::get(tx, network)?.map(|cursor| cursor.scanned_time);
        for number in 1..=MOST_SERVING {
            let address = self.serving_address(tx, number)?;
            let ring = self.new.account.0.rem_euclid(RINGS);
            let place = checkouts::next_place(tx, &Ring { network, address: &address, price, number: ring })?;
            let offset = checkout::offset(self.seed ^ price.micros() as u64, ring, place);
            let amount = price.minus(Usd::from_micros(offset));
            match checkouts::holder(tx, network, &address, amount)? {
                None => return Ok(Some((address, amount))),
                Some(holder) => {
                    let rest = holder.late_until.max(holder.updated_at.plus_millis(LATE_HOURS * HOUR_MS));
                    // Until the scanner has passed that time, a payment from before may still turn up.
                    if rest < self.now && scanned.is_some_and(|scanned| rest < scanned) {
                        checkouts::release(tx, &holder.id)?;
                        return Ok(Some((address, amount)));
                    }
                }
            }
        }
        Ok(None)
    }

    fn serving_address(&self, tx: &mut Tx, number: i64) -> Result<String> {
        let kind = self.new.network.kind();
        let fingerprint = self.xpub.fingerprint();
        let until = self.now.plus_days(WATCH_DAYS);
        match checkouts::serving(tx, kind, fingerprint, number)? {
            Some((address, watched)) => {
                if watched < until.plus_days(-1) {
                    addresses::watch(tx, &address, until)?;
                }
                Ok(address)
            }
            None => {
                let index = addresses::take_indexes(tx, kind, fingerprint, 1)?;
                let short = u32::try_from(index).map_err(|_| Error::fault("no address index is left"))?;
                let address = Address {
                    address: self.xpub.address(short),
                    kind,
                    fingerprint: fingerprint.into(),
                    index,
                    account: None,
                    watch_until: until,
                };
                addresses::insert(tx, &address, self.now)?;
                checkouts::serve(tx, &address.address, number)?;
                Ok(address.address)
            }
        }
    }

    fn checkout(&self, offer: Offer, address: String, amount: Usd, seq: i64) -> Checkout {
        let expires_at = self.now.plus_millis(OPEN_MINUTES * 60_000);
        Checkout {
            id: self.id.clone(),
            account: self.new.account,
            token: self.new.token.clone(),
            seq,
            package_code: self.new.package_code.clone(),
            plan_name: offer.name,
            family: offer.family,
            data_mb: offer.data_mb,
            duration_days: offer.duration_days,
            supplier: offer.supplier,
            cost: offer.cost,
            list_price: offer.price,
            amount,
            network: self.new.network,
            address,
            customer_email: self.new.customer_email.clone(),
            status: CheckoutStatus::Open,
            order: None,
            created_at: self.now,
            expires_at,
            late_until: expires_at.plus_millis(LATE_HOURS * HOUR_MS),
            updated_at: self.now,
        }
    }
}

/// What a checkout has come to.
pub struct Progress {
    pub checkout: Checkout,
    pub order: Option<Order>,
    /// The transfer that pays for it, and how deep it is.
    pub payment: Option<(Transfer, i64)>,
    pub required_confirmations: i64,
}

/// For whoever holds the id; `owner`, if given, must own it.
pub async fn show(app: &App, id: &InvoiceId, owner: Option<AccountNo>) -> Result<Progress> {
    let id = id.clone();
    let read = move |tx: &mut Tx| {
        let Some(checkout) = checkouts::by_id(tx, &id)? else { return Ok(None) };
        let order = match &checkout.order {
            Some(order) => rows::by_id(tx, order)?,
            None => None,
        };
        let head = cursors::get(tx, checkout.network)?.map_or(0, |cursor| cursor.head);
        let paid = transfers::of_invoice(tx, &id)?.into_iter().find(|transfer| transfer.block.is_some());
        let payment = paid.map(|transfer| {
            let confirmations = transfer.confirmations(head);
            (transfer, confirmations)
        });
        Ok(Some((checkout, order, payment)))
    };
    let found = app.store.read(read).await?;
    let (checkout, order, payment) = found
        .filter(|(checkout, ..)| owner.is_none_or(|owner| owner == checkout.account))
        .ok_or(Refusal::InvoiceNotFound)?;
    let terms = app.settings.settlement.networks.get(&checkout.network);
    let required_confirmations = terms.map_or(checkout.network.confirmations(), |terms| terms.confirmations);
    Ok(Progress { checkout, order, payment, required_confirmations })
}

/// Whether an invoice is a checkout and not a deposit.
pub async fn is_one(app: &App, id: &InvoiceId) -> Result<bool> {
    let id = id.clone();
    Ok(app.store.read(move |tx| checkouts::by_id(tx, &id)).await?.is_some())
}

/// What a final payment made of a checkout.
enum Settled {
    /// Held, and the order begun.
    Begun(Box<Order>),
    /// In the owner's wallet: paid twice, or too late.
    ToWallet,
    NotWaiting,
}

/// The payment of a checkout is final: one write makes it held money and an order, or puts it into the wallet.
pub async fn settle(app: &App, transfer: &Transfer, block_hash: &str) -> Result<Option<TransferState>> {
    if app.buying_on_hold.load(std::sync::atomic::Ordering::Relaxed) {
        return Ok(None);
    }
    let (now, dust) = (app.now(), app.settings.settlement.dust);
    let (id, hash, order_id) = (transfer.id.clone(), block_hash.to_string(), app.new_order_id());
    let ask_until = orders::ask_until(app, now);
    let lane = transfer.account.map_or(0, |account| account.0);
    let settled = app
        .store
        .finish(lane, move |tx| {
            let Some(claimed) = transfers::claim(tx, &id, &hash)? else { return Ok(Settled::NotWaiting) };
            let Claimed { transfer, invoice } = &claimed;
            let checkout = checkouts::lock(tx, invoice)?.ok_or_else(|| Error::fault("a checkout vanished"))?;
            let order = match checkout.status {
                CheckoutStatus::Open | CheckoutStatus::Expired => deliverable(tx, &checkout, transfer)?,
                CheckoutStatus::Paid | CheckoutStatus::Refunded => None,
            };
            match order {
                Some(cost) => {
                    let mut order = new_order(&checkout, cost, now);
                    order.id = order_id.clone();
                    order.ask_until = ask_until;
                    transfers::hold(tx, transfer, now)?;
                    let entry = Entry::paid(&order.id, transfer);
                    rows::begin_paid(tx, &order, &entry)?;
                    checkouts::end(tx, invoice, CheckoutStatus::Paid, Some(&order.id), now)?;
                    Ok(Settled::Begun(Box::new(order)))
                }
                None => {
                    checkouts::end(tx, invoice, CheckoutStatus::Refunded, None, now)?;
                    transfers::credit(tx, &id, &hash, dust, now)?;
                    Ok(Settled::ToWallet)
                }
            }
        })
        .await?;
    Ok(match settled {
        Settled::Begun(order) => {
            app.tasks.spawn(deliver::finish(app.clone(), *order));
            Some(TransferState::Held)
        }
        Settled::ToWallet => Some(TransferState::Credited),
        Settled::NotWaiting => None,
    })
}

/// The cost at which the plan can be delivered. In time it always can; late only while it is sold for no more
/// than what was paid.
fn deliverable(tx: &mut Tx, checkout: &Checkout, transfer: &Transfer) -> Result<Option<Usd>> {
    let in_time = transfer.block.as_ref().is_some_and(|block| block.time < checkout.expires_at);
    let look = rows::look(tx, checkout.account, None, &checkout.package_code, RETAIL_PRICE_LIST)?;
    Ok(match look.plan {
        Some(offer) if in_time || offer.cost <= checkout.amount => Some(offer.cost),
        None if in_time => Some(checkout.cost),
        Some(_) | None => None,
    })
}

fn new_order(checkout: &Checkout, cost: Usd, now: Time) -> Order {
    Order {
        id: crate::domain::ids::OrderId::from_text(""),
        account: checkout.account,
        seq: Some(checkout.seq),
        esim_order: None,
        reference: None,
        package_code: checkout.package_code.clone(),
        plan_name: checkout.plan_name.clone(),
        family: checkout.family.clone(),
        data_mb: checkout.data_mb,
        duration_days: checkout.duration_days,
        price: checkout.amount,
        spot: checkout.spot(),
        cost,
        supplier: checkout.supplier.clone(),
        key_id: checkout.token.clone(),
        status: OrderStatus::Provisioning,
        ask_until: now,
        created_at: now,
        updated_at: now,
        failure: None,
        esim: None,
    }
}
