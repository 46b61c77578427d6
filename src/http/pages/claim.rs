//! Claiming what is owed to a guest's invoice: an email, the code that is mailed to it, and the money is in the wallet
//! of that address. Anyone who knows the invoice's id, which is in the URL, can claim.

use askama::Template;
use axum::http::StatusCode;

use super::{mail_code, told};
use crate::app::App;
use crate::domain::checkout::Checkout;
use crate::domain::email::Email;
use crate::domain::ids::InvoiceId;
use crate::domain::login::Door;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::token::TokenKind;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::{Anyone, Client};
use crate::http::kit::fields::{Segment, invoice_id};
use crate::http::kit::html::page;
use crate::http::kit::problem::Refused;
use crate::http::kit::session::OwnForm;
use crate::ops::checkout::progress::{self, Progress};
use crate::ops::login::CodeAnswer;
use crate::ops::{catalog, guests};

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
    /// The plan that could not be delivered, and its checkout page; `None` when it is no longer sold.
    again: Option<String>,
    plan_name: &'a str,
}

/// Mails a code to the address that wants to claim.
pub async fn code(
    _: Anyone,
    state: State,
    Client(client): Client,
    Segment(id): Segment,
    OwnForm(mut fields): OwnForm,
) -> Answer {
    let (app, invoice) = (&state.app, invoice_id(id)?);
    let email = fields.required_email("email");
    let email = fields.finish_with(email)?;
    let (owed, _) = owed_to(app, &invoice).await?;
    mail_code(app, Door::Pages, &email, client).await?;
    page(&state, StatusCode::OK, &ClaimPage { invoice: &invoice, owed, email: &email, problem: None })
}

pub async fn claim(
    _: Anyone,
    state: State,
    Client(client): Client,
    Segment(id): Segment,
    OwnForm(mut fields): OwnForm,
) -> Answer {
    let (app, invoice) = (&state.app, invoice_id(id)?);
    let email = fields.required_email("email");
    let code = fields.text("code", CODE_CHARS);
    let email = fields.finish_with(email)?;
    let (owed, checkout) = owed_to(app, &invoice).await?;
    let answer = CodeAnswer {
        door: Door::Pages,
        email: email.clone(),
        code: code.unwrap_or_default(),
        client,
        agent_name: AGENT_NAME.into(),
        kind: TokenKind::Session,
    };
    match guests::claim(app, &invoice, answer).await {
        Ok(amount) => {
            let plan = catalog::base_plan(app, &checkout.package_code);
            let again = plan.map(|plan| guests::page_path(&plan.code, None));
            page(
                &state,
                StatusCode::OK,
                &ClaimedPage { amount, email: &email, again, plan_name: &checkout.plan_name },
            )
        }
        Err(error) => {
            let (status, problem) = told(error)?;
            page(
                &state,
                status,
                &ClaimPage { invoice: &invoice, owed, email: &email, problem: Some(problem) },
            )
        }
    }
}

/// What is owed to an invoice, and for which checkout. No code is mailed when that is nothing.
async fn owed_to(app: &App, invoice: &InvoiceId) -> Result<(Usd, Checkout), Refused> {
    let Progress { owed, checkout, .. } = progress::show(app, invoice, None).await?;
    if owed.is_positive() { Ok((owed, checkout)) } else { Err(Refusal::NothingOwed.into()) }
}
