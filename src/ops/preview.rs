//! What a purchase or a cancel would do, without doing it. Prices are from the displayed snapshot; the price charged is
//! read at the purchase.

use super::buying::{Fills, Wish};
use super::tokens::Holder;
use super::{accounts, cancel, catalog, coupons, orders, owned, topups, usage};
use crate::app::App;
use crate::domain::esim::EsimStatus;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::money::Usd;
use crate::domain::order::{self, CancelReason, Order, OrderStatus};
use crate::domain::plan::PlanType;
use crate::domain::refusal::{PlanMistake, Refusal};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::offers;

pub struct Preview {
    pub package_code: String,
    pub plan_name: String,
    /// What would be charged.
    pub price: Usd,
    pub discount: Usd,
    pub balance: Usd,
}

/// What this user would pay.
pub async fn purchase(app: &App, holder: &Holder, wish: &Wish) -> Result<Preview> {
    match &wish.fills {
        None => new_esim(app, holder, &wish.package_code, wish.discount_code.as_deref()).await,
        Some(fills) => top_up(app, holder, fills, &wish.package_code).await,
    }
}

async fn new_esim(app: &App, holder: &Holder, package_code: &str, discount: Option<&str>) -> Result<Preview> {
    let balance = spendable(app, holder.account).await?;
    let plan = catalog::require_base(app, package_code)?;
    let (price, discount) = match discount {
        Some(code) => {
            let quote = coupons::quote(app, holder.account, code, &plan).await?;
            (quote.price, quote.discount)
        }
        None => (plan.retail, Usd::ZERO),
    };
    require_limit(app, holder, price).await?;
    let (package_code, plan_name) = (plan.code.clone(), plan.name.clone());
    Ok(Preview { package_code, plan_name, price, discount, balance })
}

async fn top_up(app: &App, holder: &Holder, fills: &Fills, package_code: &str) -> Result<Preview> {
    let balance = spendable(app, holder.account).await?;
    let (_, plans) = topups::plans(app, holder.account, fills, &holder.price_list).await?;
    let fitting = plans.into_iter().find(|plan| plan.code == package_code);
    let plan = fitting.ok_or_else(|| match catalog::find(app, package_code) {
        Some(plan) if plan.plan_type == PlanType::Base => Refusal::WrongPlanType(PlanMistake::BaseAsTopup),
        Some(_) => Refusal::WrongPlanType(PlanMistake::Unfit),
        None => Refusal::PlanNotFound,
    })?;
    require_limit(app, holder, plan.wholesale).await?;
    Ok(Preview {
        package_code: plan.code,
        plan_name: plan.name,
        price: plan.wholesale,
        discount: Usd::ZERO,
        balance,
    })
}

/// Refuses when the price exceeds what the token may spend today.
async fn require_limit(app: &App, holder: &Holder, price: Usd) -> Result<()> {
    let (buyer, today) = (holder.buyer(), app.now().day());
    if buyer.limited
        && let Some(limit) = app.store.read(move |tx| offers::daily_limit(tx, &buyer.key_id)).await?
    {
        limit.after(price, today)?;
    }
    Ok(())
}

async fn spendable(app: &App, account: AccountNo) -> Result<Usd> {
    let balance = accounts::balance(app, account).await?;
    if balance.suspended { Err(Refusal::AccountSuspended.into()) } else { Ok(balance.available) }
}

pub struct CancelPreview {
    pub order: Order,
    /// Why it would be refused, by what we know; the supplier decides.
    pub refusal: Option<CancelReason>,
    pub refund: Usd,
    /// The last moment to cancel, when known.
    pub until: Option<Time>,
}

pub async fn cancel(app: &App, account: AccountNo, id: &OrderId) -> Result<CancelPreview> {
    let order = owned::order(app, account, id).await?;
    if order.id.is_topup() {
        return Err(Refusal::OrderNotFound.into());
    }
    let usage = read_usage(app, &order).await?;
    let listed = orders::with_topups(app, order).await?;
    let topped_up =
        listed.topups.iter().any(|t| matches!(t.status, OrderStatus::Provisioning | OrderStatus::Fulfilled));
    let esim = listed.order.esim.as_ref();
    let until = esim.and_then(|esim| esim.install_by);
    let refusal = order::refundable(&listed.order, topped_up, usage, app.now()).err();
    let refund = match refusal {
        None => {
            let order = listed.order.clone();
            app.store.read_consistent(move |tx| cancel::payback(tx, &order)).await?.received()
        }
        Some(_) => Usd::ZERO,
    };
    Ok(CancelPreview { refusal, refund, until: until.filter(|_| refusal.is_none()), order: listed.order })
}

/// The carrier's current status of a delivered eSIM; `None` when it does not answer and never has.
async fn read_usage(app: &App, order: &Order) -> Result<Option<EsimStatus>> {
    if order.status != OrderStatus::Fulfilled {
        return Ok(None);
    }
    match usage::read(app, order).await {
        Ok(report) => Ok(Some(report.usage.status())),
        Err(Error::Refused(Refusal::CarrierUnavailable)) => Ok(None),
        Err(error) => Err(error),
    }
}
