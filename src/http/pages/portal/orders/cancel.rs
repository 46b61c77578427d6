//! Giving an order back: its rule is said first, and it is asked again. While people at the supplier decide, it can be kept
//! after all.

use askama::Template;
use axum::http::StatusCode;

use super::one::is_reviewed;
use super::row::{order_path, own};
use crate::domain::order::{CancelReason, Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Segment;
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::moment::Moment;
use crate::http::pages::order_shown::OrderShown;
use crate::http::pages::portal::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::ops::desk::{self, CancelTerms};

/// What the page asks or says.
enum Question {
    GiveBack {
        refund: String,
        until: Option<Moment>,
        /// People at the supplier decide.
        takes_days: bool,
    },
    /// It is being given back, and people decide.
    Keep { price: String },
    /// There is nothing to decide here.
    Neither { why: &'static str },
}

#[derive(Template)]
#[template(path = "portal/order_cancel.html")]
struct CancelPage<'a> {
    frame: Frame<'a>,
    order: OrderShown,
    question: Question,
}

fn shown(visit: &Visit, status: StatusCode, order: &Order, question: Question) -> Answer {
    let order = OrderShown::of(&visit.state.app, order);
    page(&visit.state, status, &CancelPage { frame: visit.frame(Section::Orders), order, question })
}

pub async fn form(visit: Visit, Segment(id): Segment) -> Answer {
    visit.me().require(Ability::Order)?;
    let order = own(&visit, id).await?;
    let question = asked(&visit, &order).await?;
    shown(&visit, StatusCode::OK, &order, question)
}

async fn asked(visit: &Visit, order: &Order) -> Result<Question> {
    if is_reviewed(order) {
        return Ok(Question::Keep { price: order.price.priced() });
    }
    let terms = desk::cancel_terms(&visit.state.app, visit.me().account, &order.id).await?;
    let CancelTerms { preview, is_reviewed } = terms;
    Ok(match preview.refusal {
        Some(reason) => Question::Neither { why: reason.in_words() },
        None => Question::GiveBack {
            refund: preview.refund.priced(),
            until: preview.until.map(Moment::of),
            takes_days: is_reviewed,
        },
    })
}

fn refused(visit: &Visit, order: &Order, reason: CancelReason) -> Answer {
    shown(visit, StatusCode::CONFLICT, order, Question::Neither { why: reason.in_words() })
}

pub async fn give_back(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    visit.me().require(Ability::Order)?;
    let order = own(&visit, id).await?;
    match desk::cancel(&visit.state.app, visit.me(), &order.id).await {
        Ok(outcome) => {
            let done = match outcome.order.status {
                OrderStatus::Cancelled => Done::GivenBack,
                _ => Done::Asked,
            };
            Ok(see(&after(done, &order_path(&order))))
        }
        Err(Error::Refused(Refusal::NotCancellable(reason))) => refused(&visit, &order, reason),
        Err(error) => Err(error.into()),
    }
}

/// Takes a cancel back.
pub async fn keep(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    visit.me().require(Ability::Order)?;
    let order = own(&visit, id).await?;
    match desk::keep(&visit.state.app, visit.me(), &order.id).await {
        Ok(_) => Ok(see(&after(Done::Kept, &order_path(&order)))),
        Err(Error::Refused(Refusal::NotWithdrawable)) => {
            let why = "only while people at the supplier decide can it be kept after all";
            shown(&visit, StatusCode::CONFLICT, &order, Question::Neither { why })
        }
        Err(error) => Err(error.into()),
    }
}
