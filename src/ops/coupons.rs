//! Coupons: what a code takes off a plan, and which codes may be advertised. `coupons/redeem.rs` takes a use for a
//! purchase, `coupons/guesses.rs` limits guessing, `coupons/desk.rs` serves the operator. All invalid codes get the
//! same answer, whatever the reason.

pub mod desk;
pub(super) mod guesses;
pub(super) mod redeem;

use std::net::IpAddr;
use std::sync::Arc;

use self::guesses::Guess;
use crate::app::App;
use crate::domain::coupon::{Applicability, Coupon, Discount, Item};
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::plan::Plan;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::coupons;
use crate::store::tx::Tx;

/// A plan's price with a coupon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    pub code: String,
    pub description: String,
    pub list_price: Usd,
    pub discount: Usd,
    /// What remains to pay.
    pub price: Usd,
    pub ends_at: Option<Time>,
}

/// A coupon that anybody may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CouponOffer {
    pub code: String,
    pub description: String,
    pub discount: Discount,
    pub applicability: Applicability,
    pub package_code: Option<String>,
    pub country: Option<String>,
    pub min_price: Option<Usd>,
    pub ends_at: Option<Time>,
    /// Whether its uses are counted by customer, so that guests cannot use it.
    pub login_required: bool,
}

/// Some of the coupons that anybody may see, and how many there are.
pub struct CouponOffers {
    pub newest: Vec<CouponOffer>,
    pub total: i64,
}

impl From<Coupon> for CouponOffer {
    fn from(coupon: Coupon) -> CouponOffer {
        CouponOffer {
            description: coupon.in_words(),
            code: coupon.code,
            discount: coupon.discount,
            applicability: coupon.applicability,
            package_code: coupon.package_code,
            country: coupon.country,
            min_price: coupon.min_price,
            ends_at: coupon.ends_at,
            login_required: coupon.uses_per_user.is_some(),
        }
    }
}

/// What this account would pay for a plan with this code. Nothing is reserved: the purchase decides.
pub async fn quote(app: &App, account: AccountNo, code: &str, plan: &Arc<Plan>) -> Result<Quote> {
    look(app, Guess::of_account(app, code, account, None), plan, |_| true).await
}

/// `quote` for a guest.
pub async fn quote_guest(app: &App, client: IpAddr, code: &str, plan: &Arc<Plan>) -> Result<Quote> {
    look(app, Guess::of_guest(app, code, client), plan, |_| true).await
}

/// `quote` without buying: affiliates' codes are never confirmed.
pub async fn validate(app: &App, account: AccountNo, code: &str, plan: &Arc<Plan>) -> Result<Quote> {
    look(app, Guess::of_account(app, code, account, None), plan, |coupon| !coupon.affiliate).await
}

async fn look(app: &App, guess: Guess, plan: &Arc<Plan>, shown: fn(&Coupon) -> bool) -> Result<Quote> {
    let (tried, plan) = (guess.clone(), plan.clone());
    let read = move |tx: &mut Tx| {
        tried.refuse_if_too_many(tx)?;
        let Some(coupon) = coupons::by_code(tx, &tried.code)?.filter(shown) else { return Ok(None) };
        if !tried.may_hold(tx, &coupon)? {
            return Ok(None);
        }
        let used_by_buyer = tried.used(tx)?;
        let item = Item {
            package_code: &plan.code,
            plan_type: plan.plan_type,
            countries: &plan.countries,
            price: plan.retail,
            cost: plan.cost,
        };
        let off = coupon.takes_off(&item, used_by_buyer, tried.now);
        Ok(off.map(|discount| Quote {
            description: coupon.in_words(),
            code: coupon.code,
            list_price: plan.retail,
            discount,
            price: plan.retail.minus(discount),
            ends_at: coupon.ends_at,
        }))
    };
    match app.store.read(read).await? {
        Some(quote) => Ok(quote),
        None => {
            guess.note(app).await?;
            Err(Refusal::CouponInvalid.into())
        }
    }
}

/// The coupons that anybody may see, the newest first, at most `most` of them.
pub async fn available(app: &App, most: i64) -> Result<CouponOffers> {
    let now = app.now();
    let (newest, total) = app.store.read(move |tx| coupons::official(tx, most, now)).await?;
    Ok(CouponOffers { newest: newest.into_iter().map(CouponOffer::from).collect(), total })
}
