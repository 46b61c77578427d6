//! The first page of the portal: the balance, what needs attention, the latest orders; or, for somebody who is not signed in,
//! the way to do that.

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
use crate::http::kit::session::{Awaited, SignedIn, Turned, Visitor, see};
use crate::http::pages::look::Look;
use crate::ops::accounts;

#[derive(Template)]
#[template(path = "portal/overview.html")]
struct OverviewPage<'a> {
    frame: Frame<'a>,
    balance: Usd,
    held: Usd,
}

pub async fn show(
    visitor: Visitor,
    Look(theme): Look,
    state: State,
    query: Query,
    visit: Result<Visit, Turned>,
    awaited: Result<SignedIn<Awaited>, Turned>,
) -> Answer {
    match visit {
        Ok(visit) => overview(&visit).await,
        Err(Turned::Refused(refused)) => Err(refused),
        Err(Turned::To(path)) => Ok(see(path)),
        Err(Turned::ToEntrance { .. }) if awaited.is_ok() => Ok(see("/portal/second-factor")),
        Err(Turned::ToEntrance { .. }) => {
            let page = sign_in::entrance(&state, theme, &visitor.form, &sign_in::wanted(&query))?;
            Ok(visitor.meet(page))
        }
    }
}

async fn overview(visit: &Visit) -> Result<axum::response::Response, Refused> {
    let (app, me) = (&visit.state.app, visit.me());
    let balance = accounts::balance(app, me.account).await?;
    let template = OverviewPage {
        frame: visit.frame(Section::Overview),
        balance: balance.available,
        held: balance.held,
    };
    page(&visit.state, StatusCode::OK, &template)
}
