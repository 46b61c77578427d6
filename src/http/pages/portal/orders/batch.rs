//! Placing many orders at once: paste them, see what each is and what all of them cost, then have them placed. The prices
//! that were shown are the most that is taken, and a form that is sent twice places them once.

use askama::Template;
use axum::http::StatusCode;

use super::row::unbought;
use crate::domain::batch::{self, Batch, KEPT_DAYS, MOST, Prices, Wanted};
use crate::domain::money::Usd;
use crate::domain::refusal::{FieldError, Refusal};
use crate::domain::role::Ability;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::moment::Moment;
use crate::http::pages::portal::frame::{Frame, Section, Sent, Visit};
use crate::http::pages::{is_once, new_once};
use crate::ops::batches::{self, Quote};
use crate::ops::mailings::{self, A_DAY};

/// Lists that were placed before.
struct Earlier {
    path: String,
    count: i64,
    total: String,
    by: String,
    at: Moment,
    waiting: i64,
    refused: i64,
}

impl Earlier {
    fn of(batch: Batch) -> Earlier {
        Earlier {
            path: path(&batch),
            count: batch.lines,
            total: batch.total.priced(),
            waiting: batch.waiting(),
            refused: batch.refused,
            at: Moment::of(batch.made_at),
            by: batch.made_by,
        }
    }
}

fn path(batch: &Batch) -> String {
    format!("/portal/orders/batches/{}", batch.id)
}

#[derive(Template)]
#[template(path = "portal/order_batch.html")]
struct BatchPage<'a> {
    frame: Frame<'a>,
    typed: String,
    once: String,
    /// Everything that is wrong with what was pasted.
    wrong: Vec<String>,
    earlier: Vec<Earlier>,
}

pub async fn form(visit: Visit) -> Answer {
    visit.me().require(Ability::Order)?;
    pasted(&visit, StatusCode::OK, String::new(), new_once(), Vec::new()).await
}

async fn pasted(
    visit: &Visit,
    status: StatusCode,
    typed: String,
    once: String,
    wrong: Vec<FieldError>,
) -> Answer {
    let earlier = batches::latest(&visit.state.app, visit.me().account).await?;
    let template = BatchPage {
        frame: visit.frame(Section::Orders),
        typed,
        once,
        wrong: wrong.iter().map(ToString::to_string).collect(),
        earlier: earlier.into_iter().map(Earlier::of).collect(),
    };
    page(&visit.state, status, &template)
}

/// A line that would be bought.
struct Line {
    row: usize,
    name: String,
    code: String,
    reference: Option<String>,
    email: Option<String>,
    /// Its customer would get too many mails.
    unmailed: bool,
    price: String,
}

#[derive(Template)]
#[template(path = "portal/order_check.html")]
struct CheckPage<'a> {
    frame: Frame<'a>,
    typed: String,
    once: String,
    /// Comes back with the form, so that nothing is bought for more.
    prices: String,
    lines: Vec<Line>,
    unmailed: usize,
    total: Usd,
    balance: Usd,
    missing: Option<Usd>,
}

async fn checked(visit: &Visit, typed: String, once: String, quote: Quote) -> Answer {
    let balance = visit.me().balance;
    let to = quote.lines.iter().map(|quoted| quoted.wanted.customer_email.clone()).collect();
    let unmailed = mailings::look_ahead(&visit.state.app, visit.me().account, to).await?;
    let line = |(quoted, unmailed): (batches::Quoted, bool)| Line {
        row: quoted.wanted.row,
        name: quoted.plan_name,
        code: quoted.wanted.package_code,
        reference: quoted.wanted.reference,
        email: quoted.wanted.customer_email.map(|email| email.to_string()),
        price: quoted.price.priced(),
        unmailed,
    };
    let template = CheckPage {
        frame: visit.frame(Section::Orders),
        typed,
        once,
        prices: quote.prices.to_string(),
        total: quote.total,
        balance,
        missing: Some(quote.total.minus(balance)).filter(|missing| missing.is_positive()),
        unmailed: unmailed.iter().filter(|unmailed| **unmailed).count(),
        lines: quote.lines.into_iter().zip(unmailed).map(line).collect(),
    };
    page(&visit.state, StatusCode::OK, &template)
}

/// What is wanted, with what it costs now.
fn quoted(visit: &Visit, typed: &str) -> Result<(Vec<Wanted>, Quote)> {
    let wanted = batch::read(typed).map_err(Refusal::Invalid)?;
    let quote = batches::price(&visit.state.app, &visit.me().price_list, wanted.clone())?;
    Ok((wanted, quote))
}

/// Shows what would be bought; with `step=place` it is bought, with `step=change` the text is shown again.
pub async fn place(Sent(visit, fields): Sent) -> Answer {
    visit.me().require(Ability::Order)?;
    let (typed, step) = (fields.typed("orders"), fields.typed("step"));
    let once = Some(fields.typed("once")).filter(|once| is_once(once)).unwrap_or_else(new_once);
    if step == "change" {
        return pasted(&visit, StatusCode::OK, typed, once, Vec::new()).await;
    }
    let (wanted, quote) = match quoted(&visit, &typed) {
        Ok(quoted) => quoted,
        Err(Error::Refused(Refusal::Invalid(wrong))) => {
            return pasted(&visit, StatusCode::BAD_REQUEST, typed, once, wrong).await;
        }
        Err(error) => return Err(error.into()),
    };
    if step != "place" {
        return checked(&visit, typed, once, quote).await;
    }
    let shown = Prices::parse(&fields.typed("prices"));
    match batches::begin(&visit.state.app, visit.me(), &once, wanted, shown).await {
        Ok(id) => Ok(see(&format!("/portal/orders/batches/{id}"))),
        // Prices that have changed, too: the next page shows those of now.
        Err(Error::Refused(Refusal::Invalid(wrong))) => {
            pasted(&visit, StatusCode::CONFLICT, typed, new_once(), wrong).await
        }
        Err(error) => unbought(&visit, "/portal/orders/batch", "These orders", error),
    }
}
