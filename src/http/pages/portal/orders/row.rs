//! What the pages about orders share: an order as a row, the order that a path names, and why nothing was bought.

use askama::Template;
use axum::http::StatusCode;

use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::order::Order;
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::order_id;
use crate::http::kit::html::page;
use crate::http::pages::in_words;
use crate::http::pages::order_shown::OrderShown;
use crate::http::pages::portal::frame::{Frame, Section, Visit};
use crate::ops::owned;

/// An order or top-up in a table. A top-up is on the page of its eSIM's order.
pub struct OrderRow {
    pub path: String,
    pub is_topup: bool,
    pub shown: OrderShown,
    pub code: String,
    pub reference: Option<String>,
    pub iccid: Option<String>,
}

impl OrderRow {
    pub fn of(app: &App, order: &Order) -> OrderRow {
        OrderRow {
            path: order_path(order),
            is_topup: order.id.is_topup(),
            shown: OrderShown::of(app, order),
            code: order.package_code.clone(),
            reference: order.given_reference().map(str::to_string),
            iccid: order.esim.as_ref().map(|esim| esim.iccid.clone()),
        }
    }
}

/// The page of an order.
pub fn order_path(order: &Order) -> String {
    format!("/portal/orders/{}", order.esim_order.as_ref().unwrap_or(&order.id))
}

/// An order of the visitor's account. A top-up has no pages of its own.
pub async fn own(visit: &Visit, id: String) -> Result<Order> {
    let id = order_id(id)?;
    if id.is_topup() {
        return Err(Refusal::OrderNotFound.into());
    }
    owned::order(&visit.state.app, visit.me().account, &id).await
}

#[derive(Template)]
#[template(path = "portal/unbought.html")]
struct UnboughtPage<'a> {
    frame: Frame<'a>,
    name: &'a str,
    back: &'a str,
    why: String,
    /// Price, balance and what is missing, when the wallet holds too little.
    short: Option<(Usd, Usd, Usd)>,
}

/// Says why nothing was bought, and what to do.
pub fn unbought(visit: &Visit, back: &str, name: &str, error: Error) -> Answer {
    let Error::Refused(refusal) = &error else { return Err(error.into()) };
    if matches!(refusal, Refusal::RoleNotAllowed(_) | Refusal::OrderNotFound) {
        return Err(error.into());
    }
    let status = StatusCode::from_u16(refusal.problem().status).unwrap_or(StatusCode::BAD_REQUEST);
    let short = match refusal {
        Refusal::InsufficientBalance { balance, required } => {
            Some((*required, *balance, required.minus(*balance)))
        }
        _ => None,
    };
    let template =
        UnboughtPage { frame: visit.frame(Section::Orders), name, back, why: in_words(refusal), short };
    page(&visit.state, status, &template)
}
