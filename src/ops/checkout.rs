//! Checkouts: a plan for an exact amount, paid by a transfer that is recognised by it. This file opens one;
//! `reserve.rs` finds its amount, `paid.rs` books its payment, `progress.rs` shows where it stands.

pub mod paid;
pub mod progress;
mod reserve;
mod wide;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::atomic::Ordering;

use metrics::counter;

use self::reserve::{Place, Wanted};
use self::wide::Asker;
use super::breaker::{self, Names};
use super::coupons::{guesses::Guess, redeem};
use super::orders::{self, Buyer};
use crate::app::App;
use crate::chain::address::Xpub;
use crate::domain::account::GUESTS;
use crate::domain::checkout::{Checkout, CheckoutStatus, LATE_HOURS, NETWORKS, OPEN_MINUTES};
use crate::domain::client::{Origin, Shares};
use crate::domain::coupon::{self, Applied};
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, InvoiceId, OrderId};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::number::Series;
use crate::domain::plan::PlanType;
use crate::domain::refusal::{Conflict, Difference, PlanMistake, Refusal, different};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::checkouts::{self, Counted, New, Unpaid};
use crate::store::claims::Claimant;
use crate::store::offers::{self, Asked, DailyLimit, Look, Offer};
use crate::store::tx::Tx;
use crate::store::{WriteJob, wallet};
use crate::telemetry::EveryMinute;
use crate::vault;

const MOST_OPEN: i64 = 50;
const MOST_UNPAID: i64 = 200;
/// From one network address, by anybody. Guests have no other limit: any one of them could use up a shared limit.
const MOST_UNPAID_FROM: Shares = Shares { client: 300, site: 600, area: 1_200 };
/// A flat Retry-After for too many unpaid checkouts. It hides the true wait, until the first of them are a day old.
const RETRY_UNPAID_SECS: u64 = 3_600;
const MINUTE_MS: i64 = 60_000;

#[derive(Clone)]
pub struct NewCheckout {
    pub buyer: Buyer,
    pub package_code: String,
    /// A top-up: the order whose eSIM it fills.
    pub esim_order: Option<OrderId>,
    pub network: Network,
    pub currency: Currency,
    pub customer_email: Option<Email>,
    /// A coupon, in any spelling.
    pub discount_code: Option<String>,
    /// The caller's own reference: the same one with the same request is the same checkout, for ever.
    pub reference: Option<String>,
    pub client: IpAddr,
    /// Above this it is refused.
    pub max_price: Option<Usd>,
    /// Made for a buyer who has not chosen this way to pay: a coupon's use is taken when a payer signs, not before.
    pub is_offer: bool,
}

/// A checkout, and whether it existed before.
pub struct Opened {
    pub checkout: Checkout,
    pub replayed: bool,
    /// Whether a rounded amount pays it too, at the moment.
    pub rounds: bool,
}

/// The tokens that checkouts can be paid with here, each with its network. The usual ones come first.
pub fn pairs(app: &App) -> Vec<(Currency, Network)> {
    let terms = &app.settings.settlement.networks;
    let takes = |pair: &(Currency, Network)| terms.get(&pair.1).is_some_and(|terms| terms.takes(pair.0));
    let all = Currency::ALL.into_iter().flat_map(|currency| NETWORKS.map(|network| (currency, network)));
    all.filter(takes).collect()
}

/// Opens a checkout, or returns the one that this reference opened before.
pub async fn open(app: &App, new: NewCheckout) -> Result<Opened> {
    let pairs = pairs(app);
    if !pairs.contains(&(new.currency, new.network)) {
        return Err(Refusal::UnsupportedPair(pairs).into());
    }
    let draft = CheckoutDraft {
        id: app.new_invoice_id(),
        now: app.now(),
        seed: app.vault.amount_seed(),
        chance: vault::random() as u64,
        xpub: app.settings.settlement.xpub(new.network.kind()).clone(),
        twin_xpub: (app.settler.is_some() && new.network.kind() == AddressKind::Tron)
            .then(|| app.settings.settlement.evm_xpub.clone()),
        // A payer who signs is not recognised by the amount, and rounds nothing.
        wide_addresses: if new.is_offer {
            0
        } else {
            app.settings.settlement.wide_addresses(new.network.kind())
        },
        fee: app.settings.settlement.exchange_fee,
        on_hold: app.buying_on_hold.load(Ordering::Relaxed),
        selling: app.breakers.selling(),
        origin: app.vault.codes.origin(new.client),
        guess: guess(app, &new),
        new,
    };
    let account = draft.new.buyer.account;
    match app.store.write_batched(account.0, draft).await? {
        Outcome::Opened(opened) => {
            app.expected.send_modify(|count| *count += 1);
            counter!("simgate_checkouts_total").increment(u64::from(!opened.replayed));
            Ok(*opened)
        }
        Outcome::WrongCoupon => Err(Refusal::CouponInvalid.into()),
        Outcome::NoAmount => {
            counter!("simgate_checkout_amounts_exhausted_total").increment(1);
            static LINES: EveryMinute = EveryMinute::new();
            if let Some(left_out) = LINES.turn() {
                tracing::error!(
                    left_out,
                    "every address for checkouts is out of amounts: is a scanner standing still?"
                );
            }
            Err(Refusal::Overloaded.into())
        }
    }
}

fn guess(app: &App, new: &NewCheckout) -> Option<Guess> {
    let code = new.discount_code.as_ref()?;
    Some(match new.buyer.account {
        GUESTS => Guess::of_guest(app, code, new.client),
        account => Guess::of_account(app, code, account, Some(new.client)),
    })
}

struct CheckoutDraft {
    new: NewCheckout,
    id: InvoiceId,
    now: Time,
    seed: u64,
    chance: u64,
    xpub: Xpub,
    twin_xpub: Option<Xpub>,
    wide_addresses: i64,
    fee: Usd,
    on_hold: bool,
    /// The suppliers that sell now.
    selling: Names,
    origin: Origin,
    /// Its coupon code, which may be invalid.
    guess: Option<Guess>,
}

enum Outcome {
    Opened(Box<Opened>),
    /// No address has an amount left.
    NoAmount,
    /// Nothing was opened; the wrong try was recorded.
    WrongCoupon,
}

impl Outcome {
    fn opened(checkout: Checkout, rounds: bool) -> Outcome {
        Outcome::Opened(Box::new(Opened { checkout, replayed: false, rounds }))
    }
}

impl WriteJob for CheckoutDraft {
    type Answer = Outcome;
    const SHARES: bool = true;
    /// One lane for all: checkouts of one price share a ring of amounts.
    const LANE: Option<i64> = Some(0);

    fn run(&self, tx: &mut Tx) -> Result<Outcome> {
        self.open(tx)
    }

    fn run_batched(tx: &mut Tx, group: &[&CheckoutDraft]) -> Result<Vec<Option<Outcome>>> {
        open_batched(tx, group)
    }
}

impl CheckoutDraft {
    fn account(&self) -> AccountNo {
        self.new.buyer.account
    }

    fn asks(&self) -> Asked<'_> {
        Asked {
            account: self.account(),
            reference: self.new.reference.as_deref(),
            package_code: &self.new.package_code,
            price_list: &self.new.buyer.price_list,
        }
    }

    fn counts(&self) -> Counted<'_> {
        let account = Some(self.account()).filter(|account| *account != GUESTS);
        Counted { account, origin: self.origin.as_str(), since: self.now.plus_days(-1) }
    }

    fn open(&self, tx: &mut Tx) -> Result<Outcome> {
        if tx.is_rerun()
            && let Some(checkout) = checkouts::by_id(tx, &self.id)?
        {
            let rounds = self.rounds(tx, &checkout)?;
            return Ok(Outcome::opened(checkout, rounds));
        }
        if let Some(guess) = &self.guess
            && guess.is_recorded(tx)?
        {
            return Ok(Outcome::WrongCoupon);
        }
        // Two concurrent checkouts must not both slip below a limit.
        wallet::lock(tx, self.account())?;
        let look = offers::look(tx, &self.asks())?;
        match &look.claimed_by {
            Some(Claimant::Checkout(id)) => {
                return self.replay(tx, id).map(|opened| Outcome::Opened(Box::new(opened)));
            }
            Some(other @ (Claimant::Order(_) | Claimant::Cancel(_))) => {
                return Err(other.in_the_way().into());
            }
            None => {}
        }
        let unpaid = checkouts::unpaid(tx, &self.counts())?;
        let buyer = &self.new.buyer;
        let limit = if buyer.limited { offers::daily_limit(tx, &buyer.key_id)? } else { None };
        let offer = self.offer(&look)?;
        if let Some(esim_order) = &self.new.esim_order {
            orders::filled_esim(tx, self.account(), esim_order, offer)?;
        }
        let coupon = match &self.guess {
            Some(guess) => match redeem::accept(tx, guess, &self.new.package_code, offer)? {
                Some(coupon) => Some(coupon),
                None => return Ok(Outcome::WrongCoupon),
            },
            None => None,
        };
        let price = offer.price.minus(coupon::discount(coupon.as_ref()));
        self.check_limits(price, unpaid, limit.as_ref())?;
        let Some(place) =
            reserve::amounts(tx, &[self.wants(price, look.has_paid)], self.now)?.pop().flatten()
        else {
            return Ok(Outcome::NoAmount);
        };
        let rounds = place.rounds;
        let mut checkout = self.checkout(offer, coupon, place);
        checkout.seq = checkouts::insert(tx, &self.as_new(&checkout))?;
        redeem::open(tx, &checkout, self.new.is_offer)?;
        Ok(Outcome::opened(checkout, rounds))
    }

    fn rounds(&self, tx: &mut Tx, checkout: &Checkout) -> Result<bool> {
        progress::rounds(tx, checkout, self.fee, self.now)
    }

    /// The checkout that this reference opened, if this is the same request.
    fn replay(&self, tx: &mut Tx, id: &InvoiceId) -> Result<Opened> {
        let checkout =
            checkouts::by_id(tx, id)?.ok_or_else(|| Error::fault("a claim without its checkout"))?;
        let new = &self.new;
        let coupon = self.guess.as_ref().map(|guess| &guess.code);
        let differs = different([
            (Difference::Package, checkout.package_code == new.package_code),
            (Difference::Esim, checkout.esim_order == new.esim_order),
            (Difference::Network, checkout.network == new.network),
            (Difference::Currency, checkout.currency == new.currency),
            (Difference::Email, checkout.customer_email == new.customer_email),
            (Difference::Coupon, checkout.coupon.as_ref().map(|coupon| &coupon.code) == coupon),
        ]);
        if !differs.is_empty() {
            return Err(Conflict::with_checkout(id, differs).into());
        }
        let rounds = self.rounds(tx, &checkout)?;
        Ok(Opened { checkout, replayed: true, rounds })
    }

    /// The plan, if this account can buy it now.
    fn offer<'a>(&self, look: &'a Look) -> Result<&'a Offer, Refusal> {
        if look.suspended {
            return Err(Refusal::AccountSuspended);
        }
        if self.on_hold {
            return Err(Refusal::BuyingOnHold);
        }
        let offer = look.plan.as_ref().ok_or(Refusal::PlanNotFound)?;
        breaker::require_selling(&self.selling, &offer.supplier)?;
        orders::require_numbers(Series::Checkouts, self.account(), look.opened)?;
        match offer.plan_type {
            PlanType::Topup if self.new.esim_order.is_none() => {
                Err(Refusal::WrongPlanType(PlanMistake::TopupAlone))
            }
            PlanType::Base | PlanType::Topup => Ok(offer),
        }
    }

    /// Refuses a price above what its buyer expects, and one more checkout that exceeds a limit of the token or the account.
    fn check_limits(&self, price: Usd, unpaid: Unpaid, limit: Option<&DailyLimit>) -> Result<(), Refusal> {
        if self.new.max_price.is_some_and(|most| price > most) {
            return Err(Refusal::PriceChanged { price });
        }
        if let Some(limit) = limit {
            limit.after(price, self.now.day())?;
        }
        if unpaid.open >= MOST_OPEN {
            return Err(Refusal::TooManyCheckouts { retry_after_secs: OPEN_MINUTES.unsigned_abs() * 60 });
        }
        if unpaid.of_account >= MOST_UNPAID || self.origin.is_full(unpaid.from, MOST_UNPAID_FROM) {
            return Err(Refusal::TooManyCheckouts { retry_after_secs: RETRY_UNPAID_SECS });
        }
        Ok(())
    }

    fn wants(&self, price: Usd, has_paid: bool) -> Wanted<'_> {
        Wanted {
            id: &self.id,
            network: self.new.network,
            price,
            seed: self.seed,
            xpub: &self.xpub,
            twin_xpub: self.twin_xpub.as_ref(),
            asker: Asker {
                account: self.account(),
                origin: &self.origin,
                // Guests share one account, so its payments say nothing about any one guest.
                has_paid: has_paid && self.account() != GUESTS,
                addresses: self.wide_addresses,
                fee: self.fee,
                chance: self.chance,
            },
        }
    }

    fn as_new<'a>(&'a self, checkout: &'a Checkout) -> New<'a> {
        New { checkout, reference: self.new.reference.as_deref(), origin: self.origin.as_str() }
    }

    /// A new checkout, without its number: that is drawn when it is stored.
    fn checkout(&self, offer: &Offer, coupon: Option<Applied>, place: Place) -> Checkout {
        let expires_at = self.now.plus_millis(OPEN_MINUTES * MINUTE_MS);
        Checkout {
            id: self.id.clone(),
            account: self.account(),
            token: self.new.buyer.key_id.clone(),
            seq: 0,
            keyed: true,
            esim_order: self.new.esim_order.clone(),
            package_code: self.new.package_code.clone(),
            plan_name: offer.name.clone(),
            family: offer.family.clone(),
            data_mb: offer.data_mb,
            duration_days: offer.duration_days,
            supplier: offer.supplier.clone(),
            supplier_code: offer.supplier_code.clone(),
            cost: offer.cost,
            billed: offer.billed,
            list_price: offer.price,
            coupon,
            amount: place.amount,
            network: self.new.network,
            currency: self.new.currency,
            address: place.address,
            wide: place.wide,
            sign_to: place.sign_to,
            customer_email: self.new.customer_email.clone(),
            status: CheckoutStatus::Open,
            order: None,
            claimed_by: None,
            created_at: self.now,
            expires_at,
            late_until: expires_at.plus_millis(LATE_HOURS * 60 * MINUTE_MS),
            updated_at: self.now,
        }
    }
}

/// Opens the simple checkouts of a group. Those that are refused, replayed, top up an eSIM or name a coupon are left to
/// `CheckoutDraft::open`.
fn open_batched(tx: &mut Tx, group: &[&CheckoutDraft]) -> Result<Vec<Option<Outcome>>> {
    // Of two with the same reference, the second must see the outcome of the first.
    let mut references = HashSet::new();
    let first = |draft: &&CheckoutDraft| match &draft.new.reference {
        Some(reference) => references.insert((draft.account(), reference.clone())),
        None => true,
    };
    let plain = |draft: &&CheckoutDraft| draft.guess.is_none() && draft.new.esim_order.is_none();
    let drafts: Vec<&CheckoutDraft> = group.iter().copied().filter(plain).filter(first).collect();
    // All wallets of the group, also of those left for later: wallets are always locked in one order.
    let accounts: Vec<AccountNo> = group.iter().map(|draft| draft.account()).collect();
    wallet::lock_all(tx, &accounts)?;
    if drafts.is_empty() {
        return Ok(group.iter().map(|_| None).collect());
    }
    let asked: Vec<Asked> = drafts.iter().map(|draft| draft.asks()).collect();
    let looks = offers::look_all(tx, &asked)?;
    let counted: Vec<Counted> = drafts.iter().map(|draft| draft.counts()).collect();
    let unpaid = checkouts::unpaid_all(tx, &counted)?;
    let keys: Vec<&str> = drafts.iter().map(|draft| draft.new.buyer.key_id.as_str()).collect();
    let mut limits = offers::daily_limits(tx, &keys)?;
    let mut accepted: Vec<(&CheckoutDraft, &Offer, bool)> = Vec::with_capacity(drafts.len());
    for ((draft, look), mut unpaid) in drafts.into_iter().zip(&looks).zip(unpaid) {
        // Those accepted before it in this group count too.
        for (other, ..) in &accepted {
            let mine = i64::from(other.account() == draft.account() && draft.account() != GUESTS);
            unpaid.open += mine;
            unpaid.of_account += mine;
            for (width, rows) in draft.origin.networks() {
                if rows.hold(&other.origin) {
                    unpaid.from.count(width);
                }
            }
        }
        let mut limit = limits.get_mut(&draft.new.buyer.key_id);
        if let (None, Ok(offer)) = (&look.claimed_by, draft.offer(look))
            && draft.check_limits(offer.price, unpaid, limit.as_deref()).is_ok()
        {
            if let Some(limit) = &mut limit {
                limit.reserved = limit.reserved.plus(offer.price);
            }
            accepted.push((draft, offer, look.has_paid));
        }
    }
    let wanted: Vec<Wanted> =
        accepted.iter().map(|(draft, offer, has_paid)| draft.wants(offer.price, *has_paid)).collect();
    let Some(now) = accepted.first().map(|(draft, ..)| draft.now) else {
        return Ok(group.iter().map(|_| None).collect());
    };
    let places = reserve::amounts(tx, &wanted, now)?;
    let opened: Vec<(&CheckoutDraft, Checkout, bool)> = accepted
        .iter()
        .zip(places)
        .filter_map(|((draft, offer, _), place)| {
            let rounds = place.as_ref()?.rounds;
            Some((*draft, draft.checkout(offer, None, place?), rounds))
        })
        .collect();
    let new: Vec<New> = opened.iter().map(|(draft, checkout, _)| draft.as_new(checkout)).collect();
    let numbers = if new.is_empty() { HashMap::new() } else { checkouts::insert_all(tx, &new)? };
    let mut answers: HashMap<InvoiceId, Opened> = HashMap::with_capacity(opened.len());
    for (_, mut checkout, rounds) in opened {
        checkout.seq = *numbers.get(&checkout.id).ok_or_else(|| Error::fault("a checkout was not stored"))?;
        answers.insert(checkout.id.clone(), Opened { checkout, replayed: false, rounds });
    }
    Ok(group
        .iter()
        .map(|draft| answers.remove(&draft.id).map(|opened| Outcome::Opened(Box::new(opened))))
        .collect())
}
