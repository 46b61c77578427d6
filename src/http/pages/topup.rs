//! `/topup/{token}`: the page behind a magic link, where a person tops up a user's wallet. The token opens nothing but
//! this form; the form opens a deposit like any other, which has its own page.

use askama::Template;
use axum::http::StatusCode;

use super::moment::Moment;
use super::ways::{self, Ways};
use super::{onward, told};
use crate::config::Mode;
use crate::domain::invoice::Invoice;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::Segment;
use crate::http::kit::html::page;
use crate::http::kit::problem;
use crate::http::kit::session::OwnForm;
use crate::ops::deposits;
use crate::ops::magic_link::{self, LinkTerms, Means};

#[derive(Template)]
#[template(path = "topup.html")]
struct TopupPage<'a> {
    sandbox: bool,
    token: &'a str,
    owner: Option<String>,
    minimum: Usd,
    until: Moment,
    ways: Vec<Ways>,
    /// When the figures of networks were looked up.
    as_of: &'a str,
    amount: String,
    problem: Option<String>,
    /// The payments that are open, when there are too many for another.
    open: Vec<Invoice>,
}

/// Why the form is shown again.
struct Trouble {
    problem: String,
    open: Vec<Invoice>,
}

/// The contents of the form's fields.
struct Typed {
    amount: String,
    means: String,
}

pub async fn form(_: Anyone, state: State, Segment(token): Segment) -> Answer {
    let offer = magic_link::open(&state.app, &token).await?;
    let typed = Typed { amount: offer.minimum.to_string(), means: String::new() };
    shown(&state, StatusCode::OK, &token, offer, typed, None)
}

pub async fn pay_in(_: Anyone, state: State, Segment(token): Segment, OwnForm(fields): OwnForm) -> Answer {
    let app = &state.app;
    let typed = Typed { amount: fields.typed("amountUsd"), means: fields.typed("means") };
    let wish = ways::chosen(fields, &deposits::pairs(app)).map(|(amount, (currency, network))| Means {
        amount,
        currency,
        network,
    });
    let opened = match &wish {
        Ok(means) => magic_link::pay_in(app, &token, *means).await,
        Err(refusal) => Err(refusal.clone().into()),
    };
    match opened {
        Ok(deposit) => onward(&state, &deposit.invoice.id, "That page shows how the payment stands."),
        Err(error) => {
            let extra = problem::extra_header(&error);
            let open = match (&error, &wish) {
                (Error::Refused(Refusal::TooManyInvoices { .. }), Ok(means)) => {
                    magic_link::unpaid(app, &token, means.network).await?
                }
                _ => Vec::new(),
            };
            let (status, problem) = told(error)?;
            let offer = magic_link::open(app, &token).await?;
            let mut page = shown(&state, status, &token, offer, typed, Some(Trouble { problem, open }))?;
            page.headers_mut().extend(extra);
            Ok(page)
        }
    }
}

fn shown(
    state: &State,
    status: StatusCode,
    token: &str,
    offer: LinkTerms,
    typed: Typed,
    trouble: Option<Trouble>,
) -> Answer {
    let app = &state.app;
    let (problem, open) = trouble.map(|Trouble { problem, open }| (problem, open)).unzip();
    let template = TopupPage {
        sandbox: app.settings.mode == Mode::Sandbox,
        token,
        owner: offer.email.map(|email| email.masked()),
        minimum: offer.minimum,
        until: Moment::of(offer.expires_at),
        ways: ways::of(app, &deposits::pairs(app), &typed.means),
        as_of: &app.settings.settlement.typical_as_of,
        amount: typed.amount,
        problem,
        open: open.unwrap_or_default(),
    };
    page(state, status, &template)
}
