//! The wallet: what moved it, and paying into it.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Frame, Pager, ROWS, Section, Sent, Visit};
use crate::domain::invoice::Invoice;
use crate::domain::money::Usd;
use crate::domain::network::Network;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Query;
use crate::http::kit::html::page;
use crate::http::kit::problem;
use crate::http::pages::movement::Movement;
use crate::http::pages::ways::{self, Ways};
use crate::http::pages::{onward, told};
use crate::ops::accounts::{self, Balance};
use crate::ops::deposits::{self, NewDeposit};

/// What is proposed to pay in.
const USUAL: Usd = Usd::dollars(20);

#[derive(Template)]
#[template(path = "account/wallet.html")]
struct WalletPage<'a> {
    frame: Frame<'a>,
    balance: Balance,
    movements: Vec<Movement>,
    pager: Pager,
    path: &'static str,
}

pub async fn wallet(visit: Visit, query: Query) -> Answer {
    let (app, account) = (&visit.state.app, visit.me.account);
    let number = Pager::number(&query);
    let (lines, total) = accounts::statement_page(app, account, number, ROWS).await?;
    let template = WalletPage {
        frame: visit.frame(Section::Wallet),
        balance: accounts::balance(app, account).await?,
        movements: Movement::all(app, account, lines).await?,
        pager: Pager::of(number, total),
        path: "/account/wallet",
    };
    page(&visit.state, StatusCode::OK, &template)
}

#[derive(Template)]
#[template(path = "account/deposit.html")]
struct DepositPage<'a> {
    frame: Frame<'a>,
    minimum: Usd,
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

/// `?amount=` is what is missing for something.
pub async fn deposit_form(visit: Visit, query: Query) -> Answer {
    let asked = Usd::parse(&query.typed("amount")).ok().filter(|amount| amount.is_positive());
    let least = deposits::least(&visit.state.app);
    let amount = asked.unwrap_or(USUAL).max(least);
    form(&visit, StatusCode::OK, amount.to_string(), "", None)
}

/// Opens a payment into the wallet, and leads on to its page.
pub async fn deposit(Sent(visit, fields): Sent) -> Answer {
    let (app, account) = (&visit.state.app, visit.me.account);
    let (amount, means) = (fields.typed("amountUsd"), fields.typed("means"));
    let read = ways::chosen(fields, &deposits::pairs(app));
    let opened = match &read {
        Ok((amount, (currency, network))) => {
            let new = NewDeposit { account, amount: *amount, currency: *currency, network: *network };
            deposits::open_once(app, new).await
        }
        Err(refusal) => Err(refusal.clone().into()),
    };
    match opened {
        Ok(deposit) => onward(&visit.state, &deposit.invoice.id, "That page shows how the payment stands."),
        Err(error) => {
            let extra = problem::extra_header(&error);
            let network = read.ok().map(|(_, (_, network))| network);
            let open = crowd(&visit, &error, network).await?;
            let (status, problem) = told(error)?;
            let mut page = form(&visit, status, amount, &means, Some(Trouble { problem, open }))?;
            page.headers_mut().extend(extra);
            Ok(page)
        }
    }
}

/// The payments that must be paid or end before another is opened.
async fn crowd(visit: &Visit, error: &Error, network: Option<Network>) -> Result<Vec<Invoice>> {
    match (error, network) {
        (Error::Refused(Refusal::TooManyInvoices { .. }), Some(network)) => {
            deposits::unpaid(&visit.state.app, visit.me.account, network).await
        }
        _ => Ok(Vec::new()),
    }
}

fn form(visit: &Visit, status: StatusCode, amount: String, means: &str, trouble: Option<Trouble>) -> Answer {
    let app = &visit.state.app;
    let (problem, open) = trouble.map(|Trouble { problem, open }| (problem, open)).unzip();
    let template = DepositPage {
        frame: visit.frame(Section::Wallet),
        minimum: deposits::least(app),
        ways: ways::of(app, &deposits::pairs(app), means),
        as_of: &app.settings.settlement.typical_as_of,
        amount,
        problem,
        open: open.unwrap_or_default(),
    };
    page(&visit.state, status, &template)
}
