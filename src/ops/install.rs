//! What an install page or QR code shows, by its unguessable token.

use std::time::Duration;

use super::{accounts, catalog, guests};
use crate::app::App;
use crate::domain::account::GUESTS;
use crate::domain::esim::{Activation, EsimStatus, Usage};
use crate::domain::ids::OrderId;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::plan::RETAIL_PRICE_LIST;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::ops::usage::{self, Report};
use crate::store::orders;

/// How long a page waits for the carrier.
const PATIENCE: Duration = Duration::from_secs(2);

pub enum Install {
    /// The supplier has not delivered yet.
    BeingPrepared(Order),
    Ready {
        order: Order,
        /// `None` once it was deleted.
        activation: Option<Activation>,
    },
}

impl Install {
    pub fn order(&self) -> &Order {
        match self {
            Install::BeingPrepared(order) | Install::Ready { order, .. } => order,
        }
    }
}

pub async fn open(app: &App, token: &str) -> Result<Install> {
    let id = app.vault.order_of_token(token).ok_or(Refusal::NotFound)?;
    let order = app.store.read(move |tx| orders::by_id(tx, &id)).await?.ok_or(Refusal::NotFound)?;
    match order.status {
        OrderStatus::Provisioning => Ok(Install::BeingPrepared(order)),
        OrderStatus::Fulfilled => {
            let activation = activation(app, &order)?;
            Ok(Install::Ready { order, activation })
        }
        // While a cancel is being decided the code is withheld, so that nobody gets both the eSIM and the money.
        OrderStatus::Cancelling => Err(Refusal::EsimWithheld.into()),
        OrderStatus::Cancelled | OrderStatus::Failed => Err(Refusal::Gone.into()),
    }
}

/// The activation code of an order's eSIM; `None` before delivery, after a return, and once it is forgotten.
pub fn activation(app: &App, order: &Order) -> Result<Option<Activation>> {
    match (&order.esim, order.status) {
        (Some(esim), OrderStatus::Fulfilled) if !esim.sealed.is_empty() => {
            app.vault.open(&esim.order, &esim.sealed).map(Some)
        }
        _ => Ok(None),
    }
}

/// What the eSIM has used: the carrier's word if it comes soon, else the last known.
pub async fn usage(app: &App, order: &Order) -> Option<Report> {
    match tokio::time::timeout(PATIENCE, usage::read(app, order)).await {
        Ok(Ok(report)) => Some(report),
        _ => usage::last_known(order),
    }
}

/// Where whoever needs more of an eSIM goes from its page. A partner sells it to its customers itself.
pub enum More {
    /// The page that sells more data for it: a guest's eSIM has its own, a user buys in the account.
    Data(String),
    /// The page that sells another plan, when this eSIM takes no more.
    Plan(String),
}

pub async fn more(app: &App, order: &Order, usage: &Usage) -> Result<Option<More>> {
    let is_guests = order.account == GUESTS;
    if !is_guests && !accounts::is_users(app, order.account).await? {
        return Ok(None);
    }
    let takes_more =
        usage.can_be_topped_up() && !catalog::topups_for(app, RETAIL_PRICE_LIST, &order.family).is_empty();
    let is_over = matches!(usage.status(), EsimStatus::Depleted | EsimStatus::Expired);
    Ok(match (takes_more, is_guests) {
        (true, true) => Some(More::Data(format!("/esim/{}/data", app.vault.install_token(&order.id)))),
        (true, false) => Some(More::Data(format!("/account/orders/{}/data", order.id))),
        (false, true) if is_over && catalog::base_plan(app, &order.package_code).is_some() => {
            Some(More::Plan(guests::page_path(&order.package_code, None)))
        }
        (false, true) => None,
        (false, false) => is_over.then(|| More::Plan("/account/buy".into())),
    })
}

pub fn qr_url(app: &App, order: &OrderId) -> String {
    format!("{}/qr/{}.svg", app.settings.checkout_url, app.vault.install_token(order))
}

pub fn page_url(app: &App, order: &OrderId) -> String {
    format!("{}/esim/{}", app.settings.checkout_url, app.vault.install_token(order))
}
