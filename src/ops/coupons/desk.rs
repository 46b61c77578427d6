//! What operators do with coupons: make, list and disable them. Each act is in the audit log, in the same write. A code
//! is never used for a second coupon, because orders name it for ever.

use crate::app::App;
use crate::domain::coupon::{self, Coupon};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::ops::LANE;
use crate::ops::audit::audit_line;
use crate::ops::catalog;
use crate::store::tx::Tx;
use crate::store::{audit, coupons};

/// A coupon, and how many of its uses wait for a payment or were paid for.
pub struct Tallied {
    pub coupon: Coupon,
    pub reserved: i64,
    pub spent: i64,
}

pub async fn create(app: &App, actor: &str, coupon: Coupon) -> Result<Coupon> {
    if let Some(package_code) = &coupon.package_code {
        catalog::load(app).await?;
        catalog::require_base(app, package_code)?;
    }
    let coupon = Coupon { description: coupon.in_words(), ..coupon };
    let line = audit_line(app, actor, "coupon create", format!("{}: {}", coupon.code, coupon.discount));
    let made = coupon.clone();
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(());
        }
        if coupons::by_code(tx, &made.code)?.is_some() {
            return Err(Refusal::CouponExists.into());
        }
        coupons::create(tx, &made)?;
        audit::record(tx, &line.changing("no coupon", made.in_words()))
    };
    app.store.write(LANE, write).await?;
    Ok(coupon)
}

/// Every coupon there ever was, the oldest first.
pub async fn list(app: &App) -> Result<Vec<Tallied>> {
    let read = |tx: &mut Tx| Ok((coupons::list(tx)?, coupons::tally(tx)?));
    let (found, tally) = app.store.snapshot(read).await?;
    let tallied = |coupon: Coupon| {
        let (reserved, spent) = tally.get(&coupon.code).copied().unwrap_or_default();
        Tallied { coupon, reserved, spent }
    };
    Ok(found.into_iter().map(tallied).collect())
}

/// Ends a coupon for new purchases. Open checkouts keep their price.
pub async fn disable(app: &App, actor: &str, code: &str) -> Result<Coupon> {
    let (code, now) = (coupon::normal(code), app.now());
    let line = audit_line(app, actor, "coupon disable", code.clone());
    let write = move |tx: &mut Tx| {
        coupons::lock(tx, &code)?.ok_or(Refusal::CouponNotFound)?;
        // Disabling twice is not an error, and is logged once.
        if coupons::disable(tx, &code, now)? {
            audit::record(tx, &line.changing("in use", "disabled"))?;
        }
        coupons::by_code(tx, &code)?.ok_or_else(|| Error::fault("a coupon vanished"))
    };
    app.store.write(LANE, write).await
}
