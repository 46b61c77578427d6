//! Pages for people. Plain HTML that works without scripts, and nothing from elsewhere. Their URLs hold secret tokens, so no page may be
//! cached or named as a referrer, and none but the landing page and help may be indexed.

pub mod account;
pub mod assets;
mod bundles;
pub mod claim;
mod connect;
pub mod devices;
pub mod guest;
pub mod help;
pub mod install;
pub mod landing;
pub mod live;
mod look;
pub mod mailed;
mod moment;
mod movement;
mod order_shown;
pub mod parts;
pub mod pay;
mod payments;
mod plan_details;
pub mod portal;
pub mod refill;
pub mod topup;
pub mod wallet;
mod ways;

use std::borrow::Borrow;
use std::net::IpAddr;
use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::app::App;
use crate::domain::email::Email;
use crate::domain::ids::InvoiceId;
use crate::domain::login::Door;
use crate::domain::plan::{Plan, typed_code};
use crate::domain::reference::ours;
use crate::domain::refusal::Refusal;
use crate::domain::token::TokenKind;
use crate::error::{Error, Result};
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{CODE_CHARS, Query};
use crate::http::kit::html::{page, said};
use crate::http::kit::problem::Refused;
use crate::ops::catalog;
use crate::ops::login::{self, Ask, Asked, CodeAnswer};
use crate::vault;

#[derive(Template)]
#[template(path = "onward.html")]
struct OnwardPage {
    path: String,
    hint: &'static str,
}

/// Leads on to the page of an invoice. Its id is a key, so the link is in the body and not in a header.
pub fn onward(state: &State, invoice: &InvoiceId, hint: &'static str) -> Answer {
    page(state, StatusCode::OK, &OnwardPage { path: format!("/pay/{invoice}"), hint })
}

/// The plan that a form or a link names, as it is sold now.
pub fn wanted_plan(app: &App, query: &Query) -> Result<Arc<Plan>, Refusal> {
    catalog::base_plan(app, &typed_code(&query.typed("plan"))).ok_or(Refusal::PlanNotFound)
}

/// Mails a code to an address. While a mailed code is good all is the same; and somebody who keeps asking in the name of
/// others must not keep them from typing the code that they have.
async fn mail_code(app: &App, door: Door, email: &Email, client: IpAddr) -> Result<()> {
    match login::ask(app, Ask { door, email: email.clone(), client }).await? {
        Asked::Sent { .. } | Asked::TooSoon { until: Some(_), .. } | Asked::Enough { until: Some(_), .. } => {
            Ok(())
        }
        Asked::TooSoon { retry_after_secs, until: None }
        | Asked::Enough { retry_after_secs, until: None } => {
            Err(Refusal::RateLimited { retry_after_secs }.into())
        }
    }
}

/// What somebody typed to prove an address, who then has a session.
fn proof(door: Door, agent_name: &str, client: IpAddr, mut fields: Query) -> Result<CodeAnswer, Refusal> {
    let email = fields.required_email("email");
    let code = fields.text("code", CODE_CHARS).unwrap_or_default();
    let (email, agent_name) = (fields.finish_with(email)?, agent_name.into());
    Ok(CodeAnswer { door, email, code, client, agent_name, kind: TokenKind::Session })
}

/// A name for a form, so that sending it twice is seen.
fn new_once() -> String {
    vault::hex(&vault::random().to_be_bytes())
}

/// Whether a text is what a form of ours was given to be known by.
fn is_once(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The reference of a form, from all that it says: sent twice it is one purchase, and a visitor who goes back and changes
/// something means another one.
fn reference(form: &str, said: &[impl Borrow<str>]) -> String {
    let said = vault::hex(&vault::hash_secret(&said.join("\n"))[..16]);
    ours(format_args!("{form} {said}"))
}

/// What to say above a form that must be filled in again, and with which status. Other errors get their own page.
pub fn told(error: Error) -> Result<(StatusCode, String), Refused> {
    let Error::Refused(refusal) = &error else { return Err(error.into()) };
    match refusal {
        Refusal::Invalid(_)
        | Refusal::CouponInvalid
        | Refusal::TooManyInvoices { .. }
        | Refusal::OtpInvalid
        | Refusal::TooManyCodes { .. }
        | Refusal::TooManyWebhooks { .. }
        | Refusal::TryingAlready { .. }
        | Refusal::WebhookDisabled
        | Refusal::EventForgotten
        | Refusal::UnsupportedPair(_) => {}
        _ => return Err(error.into()),
    }
    let status = StatusCode::from_u16(refusal.problem().status).unwrap_or(StatusCode::BAD_REQUEST);
    Ok((status, in_words(refusal)))
}

/// A refusal for people.
pub fn in_words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Invalid(fields) => said(fields.iter().map(|wrong| (&*wrong.field, &*wrong.message))),
        // One sentence for every reason: a more exact one would tell a guesser that a code exists.
        Refusal::CouponInvalid => {
            "This discount code is unknown, expired, not valid for this plan, or only for customers who are signed in."
                .into()
        }
        Refusal::TooManyInvoices { .. } => {
            "Five payments are open on this network already. Pay one of these, or come back when one has expired.".into()
        }
        Refusal::PriceChanged { price } => {
            format!("The plan costs {} USD now, more than you were shown.", price.priced())
        }
        _ => refusal.problem().detail,
    }
}
