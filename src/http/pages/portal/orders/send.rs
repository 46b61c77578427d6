//! Sending an eSIM to a customer: a mail with the page that installs it, in the company's name and without a price.

use askama::Template;
use axum::http::StatusCode;

use super::row::{order_path, own};
use crate::domain::order::Order;
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::error::Error;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Segment;
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::in_words;
use crate::http::pages::order_shown::OrderShown;
use crate::http::pages::portal::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::ops::desk;

#[derive(Template)]
#[template(path = "portal/order_send.html")]
struct SendPage<'a> {
    frame: Frame<'a>,
    order: OrderShown,
    typed: String,
    /// Why there is nothing to send.
    nothing: Option<&'static str>,
    problem: Option<String>,
}

/// Why an eSIM cannot be sent now.
fn nothing(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::CodeForgotten => {
            "Its activation code was deleted, because the eSIM was installed or ended a month ago."
        }
        Refusal::EsimNotFound => "It is still being prepared. Come back when it is delivered.",
        Refusal::EsimWithheld => "It is being given back, and nobody can install it meanwhile.",
        _ => "It was not delivered, or was given back: nobody can install it.",
    }
}

pub async fn form(visit: Visit, Segment(id): Segment) -> Answer {
    visit.me().require(Ability::Order)?;
    let order = own(&visit, id).await?;
    let typed = order.customer_email.as_ref().map(ToString::to_string).unwrap_or_default();
    shown(&visit, StatusCode::OK, &order, typed, None)
}

fn shown(visit: &Visit, status: StatusCode, order: &Order, typed: String, problem: Option<String>) -> Answer {
    let app = &visit.state.app;
    let nothing = match desk::require_installable(app, order) {
        Ok(()) => None,
        Err(Error::Refused(refusal)) => Some(nothing(&refusal)),
        Err(error) => return Err(error.into()),
    };
    let (frame, order) = (visit.frame(Section::Orders), OrderShown::of(app, order));
    page(&visit.state, status, &SendPage { frame, order, typed, nothing, problem })
}

pub async fn mail(Segment(id): Segment, Sent(visit, mut fields): Sent) -> Answer {
    visit.me().require(Ability::Order)?;
    let order = own(&visit, id).await?;
    let typed = fields.typed("email");
    let email = fields.required_email("email");
    let sent = match fields.finish_with(email) {
        Ok(email) => desk::send(&visit.state.app, visit.me(), &order.id, email).await,
        Err(refusal) => Err(refusal.into()),
    };
    match sent {
        Ok(()) => Ok(see(&after(Done::Mailed, &order_path(&order)))),
        Err(Error::Refused(refusal @ Refusal::Invalid(_))) => {
            shown(&visit, StatusCode::BAD_REQUEST, &order, typed, Some(in_words(&refusal)))
        }
        Err(Error::Refused(Refusal::RateLimited { retry_after_secs })) => {
            let minutes = retry_after_secs.div_ceil(60);
            let problem = format!(
                "So many mails were sent for this order, to this mailbox, or by your team, that another waits. Try again in {minutes} min."
            );
            shown(&visit, StatusCode::TOO_MANY_REQUESTS, &order, typed, Some(problem))
        }
        Err(Error::Refused(
            Refusal::CodeForgotten | Refusal::EsimNotFound | Refusal::EsimWithheld | Refusal::Gone,
        )) => shown(&visit, StatusCode::CONFLICT, &order, typed, None),
        Err(error) => Err(error.into()),
    }
}
