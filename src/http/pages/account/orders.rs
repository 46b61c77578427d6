//! Orders: the list, one order with what is left of its eSIM, more data for it, and giving it back.

use askama::Template;
use axum::http::StatusCode;

use super::buy::{Spend, unbought};
use super::frame::{Done, Frame, Pager, ROWS, Section, Sent, Visit, after};
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Query, Segment, order_id};
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::bundles::{self, Bundle};
use crate::http::pages::order_shown::{OrderShown, Refill, givable};
use crate::http::pages::{in_words, new_once};
use crate::ops::buying::{self, Fills, Means, Wish};
use crate::ops::orders::Listed;
use crate::ops::{accounts, cancel, install, orders, owned};

#[derive(Template)]
#[template(path = "account/orders.html")]
struct OrdersPage<'a> {
    frame: Frame<'a>,
    orders: Vec<OrderShown>,
    total: i64,
    pager: Pager,
    path: &'static str,
}

pub async fn list(visit: Visit, query: Query) -> Answer {
    let (app, number) = (&visit.state.app, Pager::number(&query));
    let found = orders::history(app, visit.me.account, number, ROWS).await?;
    let template = OrdersPage {
        frame: visit.frame(Section::Orders),
        orders: found.orders.iter().map(|listed| OrderShown::of(app, &listed.order)).collect(),
        total: found.total,
        pager: Pager::of(number, found.total),
        path: "/account/orders",
    };
    page(&visit.state, StatusCode::OK, &template)
}

#[derive(Template)]
#[template(path = "account/order.html")]
struct OrderPage<'a> {
    frame: Frame<'a>,
    order: OrderShown,
    iccid: Option<String>,
    /// The page that installs it; `None` when there is nothing to install.
    install_url: Option<String>,
    refills: Vec<Refill>,
    refilled: bool,
    can_refill: bool,
    /// Why it cannot be given back; `None` when it can.
    kept_because: Option<&'static str>,
    /// What came back of its price.
    refunded: Option<String>,
}

pub async fn one(visit: Visit, Segment(id): Segment) -> Answer {
    let app = &visit.state.app;
    let Listed { order, topups } = own(&visit, id).await?;
    let mut shown = OrderShown::of(app, &order);
    let is_delivered = order.status == OrderStatus::Fulfilled;
    shown.read(app, &order).await;
    let is_back = matches!(order.status, OrderStatus::Failed | OrderStatus::Cancelled);
    let template = OrderPage {
        frame: visit.frame(Section::Orders),
        iccid: order.esim.as_ref().map(|esim| esim.iccid.clone()),
        install_url: matches!(order.status, OrderStatus::Provisioning | OrderStatus::Fulfilled)
            .then(|| install::page_url(app, &order.id)),
        refills: topups.iter().map(Refill::of).collect(),
        refilled: !topups.is_empty(),
        can_refill: is_delivered,
        kept_because: givable(app, &order, &topups).err(),
        refunded: is_back.then(|| order.given_back().priced()),
        order: shown,
    };
    page(&visit.state, StatusCode::OK, &template)
}

/// An order of this account. A top-up belongs to the page of its eSIM's order.
async fn own(visit: &Visit, id: String) -> Result<Listed> {
    let (app, id) = (&visit.state.app, order_id(id)?);
    if id.is_topup() {
        return Err(Refusal::OrderNotFound.into());
    }
    let order = owned::order(app, visit.me.account, &id).await?;
    orders::with_topups(app, order).await
}

#[derive(Template)]
#[template(path = "account/refill.html")]
struct RefillPage<'a> {
    frame: Frame<'a>,
    order: OrderShown,
    bundles: Vec<Bundle>,
    balance: Usd,
    once: String,
    problem: Option<String>,
}

/// The bundles that fit an eSIM.
pub async fn refill_form(visit: Visit, Segment(id): Segment) -> Answer {
    let Listed { order, .. } = own(&visit, id).await?;
    refills(&visit, StatusCode::OK, &order, "", new_once(), None).await
}

async fn refills(
    visit: &Visit,
    status: StatusCode,
    order: &Order,
    chosen: &str,
    once: String,
    problem: Option<String>,
) -> Answer {
    let (app, me) = (&visit.state.app, &visit.me);
    let (bundles, none_because) = bundles::fitting(app, order, &me.price_list, chosen).await?;
    let template = RefillPage {
        frame: visit.frame(Section::Orders),
        order: OrderShown::of(app, order),
        bundles,
        balance: accounts::balance(app, me.account).await?.available,
        once,
        problem: none_because.or(problem),
    };
    page(&visit.state, status, &template)
}

/// Buys more data from the wallet.
pub async fn refill(Segment(id): Segment, Sent(visit, fields): Sent) -> Answer {
    let app = &visit.state.app;
    let Listed { order, .. } = own(&visit, id).await?;
    let back = format!("/account/orders/{}/data", order.id);
    let chosen = fields.typed("choice");
    let spend = match Spend::read(fields) {
        Ok(spend) => spend,
        Err(refusal) => {
            let problem = Some(in_words(&refusal));
            return refills(&visit, StatusCode::BAD_REQUEST, &order, &chosen, new_once(), problem).await;
        }
    };
    let wish = Wish { fills: Some(Fills::Order(order.id.clone())), ..spend.wish(order.id.as_str()) };
    match buying::buy(app, visit.me.buyer(), wish, Means::Wallet).await {
        Ok(outcome) => {
            outcome.receipt()?;
            Ok(see(&after(Done::ToppedUp, &format!("/account/orders/{}", order.id))))
        }
        Err(Error::Refused(refusal @ Refusal::PriceChanged { .. })) => {
            let problem = Some(in_words(&refusal));
            refills(&visit, StatusCode::CONFLICT, &order, &chosen, spend.once, problem).await
        }
        Err(error) => unbought(&visit, &back, "More data", error).await,
    }
}

#[derive(Template)]
#[template(path = "account/give_back.html")]
struct GiveBackPage<'a> {
    frame: Frame<'a>,
    order: OrderShown,
    problem: Option<String>,
}

/// Asks again: an eSIM that was given back is gone.
pub async fn give_back_form(visit: Visit, Segment(id): Segment) -> Answer {
    let app = &visit.state.app;
    let Listed { order, topups } = own(&visit, id).await?;
    let problem = givable(app, &order, &topups).err().map(no_way_back);
    let template =
        GiveBackPage { frame: visit.frame(Section::Orders), order: OrderShown::of(app, &order), problem };
    page(&visit.state, StatusCode::OK, &template)
}

fn no_way_back(reason: &'static str) -> String {
    format!("This order cannot be given back: {reason}.")
}

pub async fn give_back(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    let app = &visit.state.app;
    let Listed { order, .. } = own(&visit, id).await?;
    match cancel::cancel(app, visit.me.account, &order.id).await {
        Ok(outcome) => {
            let done = match outcome.order.status {
                OrderStatus::Cancelled => Done::GivenBack,
                _ => Done::Asked,
            };
            Ok(see(&after(done, &format!("/account/orders/{}", order.id))))
        }
        Err(Error::Refused(Refusal::NotCancellable(reason))) => {
            let template = GiveBackPage {
                frame: visit.frame(Section::Orders),
                order: OrderShown::of(app, &order),
                problem: Some(no_way_back(reason.in_words())),
            };
            page(&visit.state, StatusCode::CONFLICT, &template)
        }
        Err(error) => Err(error.into()),
    }
}
