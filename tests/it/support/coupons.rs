//! Coupons in tests: made by the operator's command or at once, and how often they were used.

use std::sync::Arc;

use serde_json::Value;
use simgate::domain::coupon::{Coupon, Discount};
use simgate::domain::money::Usd;
use simgate::domain::plan::Plan;
use simgate::ops::catalog;
use simgate::ops::coupons::desk;

use crate::support::buying::usd;
use crate::support::harness::Gateway;

/// A plan whose price leaves room for discounts.
pub const DEAR: &str = "JP-10GB-30D";

pub fn plan(gateway: &Gateway, code: &str) -> Arc<Plan> {
    catalog::find(&gateway.app, code).unwrap()
}

/// A coupon for everything, for everybody, as often as they like.
pub fn plain(gateway: &Gateway, code: &str, percent: i64) -> Coupon {
    Coupon::new(code.into(), Discount::Percent(percent), gateway.app.now())
}

pub async fn make(gateway: &Gateway, coupon: Coupon) {
    desk::create(&gateway.app, "test", coupon).await.unwrap();
}

/// Ten percent off, so many times.
pub async fn limited(gateway: &Gateway, code: &str, uses: i64) {
    make(gateway, Coupon { uses: Some(uses), ..plain(gateway, code, 10) }).await;
}

/// How many uses are reserved, and how many spent.
pub async fn tally(gateway: &Gateway, code: &str) -> (i64, i64) {
    let all = desk::list(&gateway.app).await.unwrap();
    let found = all.iter().find(|tallied| tallied.coupon.code == code).unwrap();
    assert_eq!(found.coupon.used, found.reserved + found.spent);
    (found.reserved, found.spent)
}

/// What a coupon took off a purchase.
pub fn off(purchase: &Value) -> Usd {
    usd(&purchase["coupon"]["discountUsd"])
}
