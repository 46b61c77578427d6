//! Paying for a plan from a wallet: an email, the code that is mailed to it, and the price that was shown is taken from
//! the wallet of that address. So money that was claimed or paid in before is spent without an agent.

use std::net::IpAddr;
use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use super::{in_words, mail_code, reference, told, wanted_plan};
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::login::Door;
use crate::domain::money::Usd;
use crate::domain::plan::Plan;
use crate::domain::refusal::Refusal;
use crate::domain::token::TokenKind;
use crate::error::{Error, Result};
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::{Anyone, Client};
use crate::http::kit::fields::{CODE_CHARS, Query};
use crate::http::kit::html::page;
use crate::http::kit::session::OwnForm;
use crate::ops::buying::{Outcome, Short, Wish};
use crate::ops::coupons;
use crate::ops::guests;
use crate::ops::install;
use crate::ops::login::CodeAnswer;

const AGENT_NAME: &str = "checkout page";

#[derive(Template)]
#[template(path = "wallet.html")]
struct WalletPage<'a> {
    order: &'a Order,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "wallet_short.html")]
struct ShortPage<'a> {
    order: &'a Order,
    balance: Usd,
    required: Usd,
    missing: Usd,
    link: &'a str,
}

#[derive(Template)]
#[template(path = "unbought.html")]
struct UnboughtPage<'a> {
    order: &'a Order,
    why: String,
}

#[derive(Template)]
#[template(path = "bought.html")]
struct BoughtPage<'a> {
    plan: &'a Plan,
    paid: Usd,
    balance: Usd,
    install_url: String,
}

/// What is to be bought for whom, at the price that the buyer has seen.
struct Order {
    plan: Arc<Plan>,
    email: Email,
    discount: String,
    price: Usd,
    /// Made by the checkout page, so that sending it twice is seen.
    once: String,
}

impl Order {
    /// The checkout page of the same purchase.
    fn back(&self) -> String {
        let discount = Some(self.discount.as_str()).filter(|code| !code.is_empty());
        format!("{}&once={}", guests::page_path(&self.plan.code, discount), self.once)
    }

    fn wish(&self) -> Wish {
        let email = self.email.to_string();
        let said = [&*self.once, &self.plan.code, &email, &self.discount];
        Wish {
            package_code: self.plan.code.clone(),
            customer_email: Some(self.email.clone()),
            discount_code: Some(self.discount.clone()).filter(|code| !code.is_empty()),
            max_price: Some(self.price),
            reference: (!self.once.is_empty()).then(|| reference("wallet", &said)),
            ..Wish::default()
        }
    }
}

/// Mails a code to the address whose wallet is to pay.
pub async fn code(_: Anyone, state: State, Client(client): Client, OwnForm(mut fields): OwnForm) -> Answer {
    let app = &state.app;
    let plan = wanted_plan(app, &fields)?;
    let email = fields.required_email("email");
    let discount = fields.text("discount", CODE_CHARS).unwrap_or_default();
    let once = fields.typed("once");
    let email = fields.finish_with(email)?;
    let price = plan.retail;
    let mut order = Order { plan, email, discount, price, once };
    match price_of(app, client, &order).await {
        Ok(price) => order.price = price,
        Err(error) => return unbought(&state, &order, error),
    }
    mail_code(app, Door::Pages, &order.email, client).await?;
    page(&state, StatusCode::OK, &WalletPage { order: &order, problem: None })
}

pub async fn buy(_: Anyone, state: State, Client(client): Client, OwnForm(fields): OwnForm) -> Answer {
    let app = &state.app;
    let (order, code) = sent(app, fields)?;
    let answer = CodeAnswer {
        door: Door::Pages,
        email: order.email.clone(),
        code,
        client,
        agent_name: AGENT_NAME.into(),
        kind: TokenKind::Session,
    };
    match guests::buy_from_wallet(app, answer, order.wish()).await {
        Ok(Outcome::Short(short)) => {
            let Short { balance, required, link, .. } = &*short;
            let (missing, link) = (short.missing(), link.url.as_str());
            let short = ShortPage { order: &order, balance: *balance, required: *required, missing, link };
            page(&state, StatusCode::PAYMENT_REQUIRED, &short)
        }
        Ok(outcome) => {
            let receipt = outcome.receipt()?;
            let install_url = install::page_url(app, &receipt.order.id);
            let (paid, balance) = (receipt.order.price, receipt.balance);
            page(&state, StatusCode::OK, &BoughtPage { plan: &order.plan, paid, balance, install_url })
        }
        Err(error @ Error::Refused(Refusal::OtpInvalid)) => {
            let (status, problem) = told(error)?;
            page(&state, status, &WalletPage { order: &order, problem: Some(problem) })
        }
        Err(error) => unbought(&state, &order, error),
    }
}

/// What the form with the code sends.
fn sent(app: &App, mut fields: Query) -> Result<(Order, String), Refusal> {
    let plan = wanted_plan(app, &fields)?;
    let email = fields.required_email("email");
    let code = fields.text("code", CODE_CHARS).unwrap_or_default();
    let discount = fields.text("discount", CODE_CHARS).unwrap_or_default();
    let once = fields.typed("once");
    let price = fields.take("price", "must be an amount of USD", |text| Usd::parse(text).ok());
    let email = fields.finish_with(email)?;
    let price = price.ok_or_else(|| Refusal::field("price", "is required"))?;
    Ok((Order { plan, email, discount, price, once }, code))
}

/// What the plan costs now, with the discount code that was typed.
async fn price_of(app: &App, client: IpAddr, order: &Order) -> Result<Usd> {
    if order.discount.is_empty() {
        return Ok(order.plan.retail);
    }
    Ok(coupons::quote_guest(app, client, &order.discount, &order.plan).await?.price)
}

/// Says why, and leads back. A code that was entered is used up.
fn unbought(state: &State, order: &Order, error: Error) -> Answer {
    let Error::Refused(refusal) = &error else { return Err(error.into()) };
    let status = StatusCode::from_u16(refusal.problem().status).unwrap_or(StatusCode::BAD_REQUEST);
    page(state, status, &UnboughtPage { order, why: in_words(refusal) })
}
