//! The first page of an account: what the wallet holds, the latest orders and movements; or, for somebody who is not
//! signed in, the way to do that.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Frame, Section, Visit};
use super::sign_in;
use crate::domain::money::Usd;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Query;
use crate::http::kit::html::page;
use crate::http::kit::problem::Refused;
use crate::http::kit::session::{Turned, Visitor, see};
use crate::http::pages::look::Look;
use crate::http::pages::movement::Movement;
use crate::http::pages::order_shown::OrderShown;
use crate::ops::{accounts, orders};

const LATEST_ORDERS: i64 = 4;
const LATEST_MOVEMENTS: i64 = 5;

#[derive(Template)]
#[template(path = "account/overview.html")]
struct OverviewPage<'a> {
    frame: Frame<'a>,
    balance: Usd,
    held: Usd,
    suspended: bool,
    orders: Vec<OrderShown>,
    movements: Vec<Movement>,
}

pub async fn show(
    visitor: Visitor,
    Look(theme): Look,
    state: State,
    query: Query,
    visit: Result<Visit, Turned>,
) -> Answer {
    match visit {
        Ok(visit) => overview(&visit).await,
        Err(Turned::Refused(refused)) => Err(refused),
        Err(Turned::To(path)) => Ok(see(path)),
        Err(Turned::ToEntrance { .. }) => {
            let page = sign_in::entrance(&state, theme, &visitor.form, &query)?;
            Ok(visitor.meet(page))
        }
    }
}

async fn overview(visit: &Visit) -> Result<axum::response::Response, Refused> {
    let (app, account) = (&visit.state.app, visit.me.account);
    let balance = accounts::balance(app, account).await?;
    let latest = orders::history(app, account, 1, LATEST_ORDERS).await?;
    let (lines, _) = accounts::statement_page(app, account, 1, LATEST_MOVEMENTS).await?;
    let template = OverviewPage {
        frame: visit.frame(Section::Overview),
        balance: balance.available,
        held: balance.held,
        suspended: balance.suspended,
        orders: latest.orders.iter().map(|listed| OrderShown::of(app, &listed.order)).collect(),
        movements: Movement::all(app, account, lines).await?,
    };
    page(&visit.state, StatusCode::OK, &template)
}
