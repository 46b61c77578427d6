//! Coupons: what a code takes off a plan, and which codes may be told. How a purchase takes a use of one is in
//! `coupons/redeem.rs`, how guessing is limited in `coupons/guesses.rs`, what the operator does in `coupons/desk.rs`.
//! A code that is not good has one answer, whatever is wrong with it.

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

/// What a coupon makes of a plan's price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    pub code: String,
    pub description: String,
    pub list_price: Usd,
    pub discount: Usd,
    /// What is left to pay.
    pub price: Usd,
    pub ends_at: Option<Time>,
}

/// A coupon that anybody may know of.
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
    /// Its uses are counted by customer, so it is not for guests.
    pub login_required: bool,
}

/// Some of the coupons that may be told to anybody, and how many there are.
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

/// The same for a guest.
pub async fn quote_guest(app: &App, client: IpAddr, code: &str, plan: &Arc<Plan>) -> Result<Quote> {
    look(app, Guess::of_guest(app, code, client), plan, |_| true).await
}

/// The same for whoever asks without buying: an affiliate's code is confirmed to nobody.
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

/// The coupons that may be told to anybody, the newest first, and at most so many.
pub async fn available(app: &App, most: i64) -> Result<CouponOffers> {
    let now = app.now();
    let (newest, total) = app.store.read(move |tx| coupons::official(tx, most, now)).await?;
    Ok(CouponOffers { newest: newest.into_iter().map(CouponOffer::from).collect(), total })
}
