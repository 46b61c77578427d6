//! Claiming what is owed to a guest's invoice: an email, the code that is mailed to it, and the money is in the wallet
//! of that address. Anyone who knows the invoice's id, which is in the URL, can claim.

use askama::Template;
use axum::http::StatusCode;

use super::told;
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::ids::InvoiceId;
use crate::domain::login::Door;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::token::TokenKind;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::{Anyone, Client};
use crate::http::kit::fields::{Form, Segment, invoice_id};
use crate::http::kit::html::page;
use crate::http::kit::problem::Refused;
use crate::ops::checkout::progress;
use crate::ops::guests;
use crate::ops::login::{self, Ask, Asked, CodeAnswer};

const CODE_CHARS: usize = 40;
const AGENT_NAME: &str = "claim page";

#[derive(Template)]
#[template(path = "claim.html")]
struct ClaimPage<'a> {
    invoice: &'a InvoiceId,
    owed: Usd,
    email: &'a Email,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "claimed.html")]
struct ClaimedPage<'a> {
    amount: Usd,
    email: &'a Email,
}

/// Mails a code to the address that wants to claim.
pub async fn code(
    _: Anyone,
    state: State,
    Client(client): Client,
    Segment(id): Segment,
    Form(mut fields): Form,
) -> Answer {
    let (app, invoice) = (&state.app, invoice_id(id)?);
    let email = fields.required_email("email");
    let email = fields.finish_with(email)?;
    let owed = owed_to(app, &invoice).await?;
    match login::ask(app, Ask { door: Door::Pages, email: email.clone(), client }).await? {
        // Less than a minute after the last mail its code is still good, so the page is the same; and somebody who
        // keeps asking in the name of others must not keep them from typing the code that they have.
        Asked::Sent { .. } | Asked::TooSoon { .. } | Asked::Enough { until: Some(_), .. } => {}
        Asked::Enough { retry_after_secs, until: None } => {
            return Err(Refusal::RateLimited { retry_after_secs }.into());
        }
    }
    page(StatusCode::OK, &ClaimPage { invoice: &invoice, owed, email: &email, problem: None })
}

pub async fn claim(
    _: Anyone,
    state: State,
    Client(client): Client,
    Segment(id): Segment,
    Form(mut fields): Form,
) -> Answer {
    let (app, invoice) = (&state.app, invoice_id(id)?);
    let email = fields.required_email("email");
    let code = fields.text("code", CODE_CHARS);
    let email = fields.finish_with(email)?;
    let owed = owed_to(app, &invoice).await?;
    let answer = CodeAnswer {
        door: Door::Pages,
        email: email.clone(),
        code: code.unwrap_or_default(),
        client,
        agent_name: AGENT_NAME.into(),
        kind: TokenKind::Session,
    };
    match guests::claim(app, &invoice, answer).await {
        Ok(amount) => page(StatusCode::OK, &ClaimedPage { amount, email: &email }),
        Err(error) => {
            let (status, problem) = told(error)?;
            page(status, &ClaimPage { invoice: &invoice, owed, email: &email, problem: Some(problem) })
        }
    }
}

/// What is owed to an invoice. No code is mailed when that is nothing.
async fn owed_to(app: &App, invoice: &InvoiceId) -> Result<Usd, Refused> {
    let owed = progress::show(app, invoice, None).await?.owed;
    if owed.is_positive() { Ok(owed) } else { Err(Refusal::NothingOwed.into()) }
}
