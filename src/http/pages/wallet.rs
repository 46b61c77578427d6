//! Paying for a plan from a wallet: an email, the code that is mailed to it, and the price is taken from the wallet of
//! that address. So money that was claimed or paid in before is spent without an agent.

use askama::Template;
use axum::http::StatusCode;

use super::{told, wanted_plan};
use crate::domain::email::Email;
use crate::domain::login::Door;
use crate::domain::money::Usd;
use crate::domain::plan::Plan;
use crate::domain::refusal::Refusal;
use crate::domain::token::TokenKind;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::{Anyone, Client};
use crate::http::kit::fields::{CODE_CHARS, Form};
use crate::http::kit::html::page;
use crate::ops::buying::{Outcome, Short, Wish};
use crate::ops::guests;
use crate::ops::install;
use crate::ops::login::{self, Ask, Asked, CodeAnswer};

const AGENT_NAME: &str = "checkout page";

#[derive(Template)]
#[template(path = "wallet.html")]
struct WalletPage<'a> {
    plan: &'a Plan,
    email: &'a Email,
    discount: &'a str,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "wallet_short.html")]
struct ShortPage<'a> {
    plan: &'a Plan,
    email: &'a Email,
    balance: Usd,
    required: Usd,
    missing: Usd,
    link: &'a str,
}

#[derive(Template)]
#[template(path = "bought.html")]
struct BoughtPage<'a> {
    plan: &'a Plan,
    paid: Usd,
    balance: Usd,
    install_url: String,
}

/// Mails a code to the address whose wallet is to pay.
pub async fn code(_: Anyone, state: State, Client(client): Client, Form(mut fields): Form) -> Answer {
    let app = &state.app;
    let plan = wanted_plan(app, &fields)?;
    let email = fields.required_email("email");
    let discount = fields.text("discount", CODE_CHARS).unwrap_or_default();
    let email = fields.finish_with(email)?;
    match login::ask(app, Ask { door: Door::Pages, email: email.clone(), client }).await? {
        Asked::Sent { .. } | Asked::TooSoon { .. } | Asked::Enough { until: Some(_), .. } => {}
        Asked::Enough { retry_after_secs, until: None } => {
            return Err(Refusal::RateLimited { retry_after_secs }.into());
        }
    }
    page(StatusCode::OK, &WalletPage { plan: &plan, email: &email, discount: &discount, problem: None })
}

pub async fn buy(_: Anyone, state: State, Client(client): Client, Form(mut fields): Form) -> Answer {
    let app = &state.app;
    let plan = wanted_plan(app, &fields)?;
    let email = fields.required_email("email");
    let code = fields.text("code", CODE_CHARS).unwrap_or_default();
    let discount = fields.text("discount", CODE_CHARS);
    let email = fields.finish_with(email)?;
    let answer = CodeAnswer {
        door: Door::Pages,
        email: email.clone(),
        code,
        client,
        agent_name: AGENT_NAME.into(),
        kind: TokenKind::Session,
    };
    let wish = Wish {
        package_code: plan.code.clone(),
        customer_email: Some(email.clone()),
        discount_code: discount.clone(),
        ..Wish::default()
    };
    match guests::buy_from_wallet(app, answer, wish).await {
        Ok(Outcome::Short(short)) => {
            let Short { balance, required, link, .. } = &*short;
            let (missing, link) = (short.missing(), link.url.as_str());
            let short = ShortPage {
                plan: &plan,
                email: &email,
                balance: *balance,
                required: *required,
                missing,
                link,
            };
            page(StatusCode::PAYMENT_REQUIRED, &short)
        }
        Ok(outcome) => {
            let receipt = outcome.receipt()?;
            let install_url = install::page_url(app, &receipt.order.id);
            let bought =
                BoughtPage { plan: &plan, paid: receipt.order.price, balance: receipt.balance, install_url };
            page(StatusCode::OK, &bought)
        }
        Err(error) => {
            let (status, problem) = told(error)?;
            let discount = discount.unwrap_or_default();
            page(
                status,
                &WalletPage { plan: &plan, email: &email, discount: &discount, problem: Some(problem) },
            )
        }
    }
}
