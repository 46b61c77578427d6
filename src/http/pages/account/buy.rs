//! Buying from the wallet: find a plan, see its price beside the wallet, and pay with one button. The price that was shown
//! is the most that is taken, and a form that is sent twice buys once. What a session may spend in a day is decided in
//! `ops::sessions`.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use form_urlencoded::Serializer;

use super::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::domain::money::Usd;
use crate::domain::plan::{Plan, typed_code};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::catalog::products::{MOST_CHARS, reason};
use crate::http::kit::fields::{CODE_CHARS, Query, Segment};
use crate::http::kit::html::page;
use crate::http::kit::problem::Refused;
use crate::http::kit::session::see;
use crate::http::pages::bundles;
use crate::http::pages::plan_details::{self, PlanCard};
use crate::http::pages::{in_words, is_once, new_once, reference, told};
use crate::ops::buying::{self, Means, Wish};
use crate::ops::coupons::{self, Quote};
use crate::ops::{accounts, catalog};

/// How many plans a search shows.
const SHOWN: usize = 12;
/// How many countries are named.
const NAMED: usize = 6;

#[derive(Template)]
#[template(path = "account/search.html")]
struct SearchPage<'a> {
    frame: Frame<'a>,
    balance: Usd,
    typed: String,
    cards: Vec<PlanCard<'a>>,
    total: usize,
    /// Why nothing was found.
    nothing: Option<String>,
}

/// `?q=` is a destination as people write it.
pub async fn search(visit: Visit, query: Query) -> Answer {
    let app = &visit.state.app;
    let typed: String = query.typed("q").trim().chars().take(MOST_CHARS).collect();
    let products = visit.state.catalog.products().await?;
    let found = products.search(&asked(&typed))?;
    let template = SearchPage {
        frame: visit.frame(Section::Buy),
        balance: accounts::balance(app, visit.me.account).await?.available,
        typed,
        cards: products.plans(&found).map(PlanCard::of).collect(),
        total: found.total,
        nothing: found.nothing.as_ref().map(reason),
    };
    page(&visit.state, StatusCode::OK, &template)
}

/// A search as its door takes it.
fn asked(typed: &str) -> String {
    let mut asked = Serializer::new(String::new());
    asked.append_pair("limit", &SHOWN.to_string());
    if !typed.is_empty() {
        asked.append_pair("country", typed);
    }
    asked.finish()
}

#[derive(Template)]
#[template(path = "account/confirm.html")]
struct ConfirmPage<'a> {
    frame: Frame<'a>,
    card: PlanCard<'a>,
    countries: String,
    /// The price with a discount code.
    quote: Option<Quote>,
    price: Usd,
    balance: Usd,
    /// What is missing to the price.
    missing: Option<Usd>,
    typed: Typed,
    problem: Option<String>,
}

/// The contents of the form's fields.
struct Typed {
    discount: String,
    once: String,
}

/// A discount code comes by the form alone: a wrong one counts as a guess, and links are anybody's.
pub async fn confirm(visit: Visit, Segment(code): Segment) -> Answer {
    let plan = on_sale(&visit, &code)?;
    let typed = Typed { discount: String::new(), once: new_once() };
    confirmed(&visit, StatusCode::OK, &plan, typed, (None, None)).await
}

fn on_sale(visit: &Visit, code: &str) -> Result<Arc<Plan>, Refusal> {
    catalog::base_plan(&visit.state.app, &typed_code(code)).ok_or(Refusal::PlanNotFound)
}

/// The price with the discount code that was typed, or why the code does not count.
async fn quoted(
    visit: &Visit,
    plan: &Arc<Plan>,
    typed: &Typed,
) -> Result<(Option<Quote>, Option<String>), Refused> {
    if typed.discount.is_empty() {
        return Ok((None, None));
    }
    match coupons::quote(&visit.state.app, visit.me.account, &typed.discount, plan).await {
        Ok(quote) => Ok((Some(quote), None)),
        Err(error) => Ok((None, Some(told(error)?.1))),
    }
}

async fn confirmed(
    visit: &Visit,
    status: StatusCode,
    plan: &Arc<Plan>,
    typed: Typed,
    (quote, problem): (Option<Quote>, Option<String>),
) -> Answer {
    let (app, account) = (&visit.state.app, visit.me.account);
    let price = quote.as_ref().map_or(plan.retail, |quote| quote.price);
    let balance = accounts::balance(app, account).await?.available;
    let template = ConfirmPage {
        frame: visit.frame(Section::Buy),
        card: PlanCard::of(plan),
        countries: plan_details::countries(plan, NAMED),
        quote,
        price,
        balance,
        missing: Some(price.minus(balance)).filter(|missing| missing.is_positive()),
        typed,
        problem,
    };
    page(&visit.state, status, &template)
}

/// What a form that spends from the wallet says.
pub struct Spend {
    plan: String,
    /// The price that was shown.
    price: Usd,
    discount_code: Option<String>,
    pub once: String,
}

impl Spend {
    pub fn read(mut fields: Query) -> Result<Spend, Refusal> {
        let choice = bundles::chosen(&mut fields);
        let once = fields
            .require("once", "must be the one of the page", |text| is_once(text).then(|| text.to_string()));
        let discount_code = fields.text("discount", CODE_CHARS);
        let ((plan, price), once) = fields.finish_with(choice.zip(once))?;
        Ok(Spend { plan, price, discount_code, once })
    }

    /// Sent twice it is one purchase. `esim` is what a top-up fills.
    pub fn wish(&self, esim: &str) -> Wish {
        let discount = self.discount_code.as_deref().unwrap_or_default();
        Wish {
            package_code: self.plan.clone(),
            max_price: Some(self.price),
            reference: Some(reference("account", &[self.once.as_str(), &self.plan, esim, discount])),
            discount_code: self.discount_code.clone(),
            ..Wish::default()
        }
    }
}

pub async fn buy(Segment(code): Segment, Sent(visit, fields): Sent) -> Answer {
    let app = &visit.state.app;
    let plan = on_sale(&visit, &code);
    let typed = Typed { discount: fields.typed("discount"), once: fields.typed("once") };
    if !fields.typed("apply").is_empty() {
        let plan = plan?;
        let quoted = quoted(&visit, &plan, &typed).await?;
        return confirmed(&visit, StatusCode::OK, &plan, typed, quoted).await;
    }
    let spend = Spend::read(fields)?;
    if plan.as_ref().is_ok_and(|plan| plan.code != spend.plan) {
        return Err(Refusal::field("choice", "must be the plan of this page").into());
    }
    let wish = Wish { customer_email: Some(visit.me.email.clone()), ..spend.wish("") };
    match buying::buy(app, visit.me.buyer(), wish, Means::Wallet).await {
        Ok(outcome) => {
            let order = outcome.receipt()?.order;
            Ok(see(&after(Done::Bought, &format!("/account/orders/{}", order.id))))
        }
        Err(Error::Refused(refusal @ Refusal::PriceChanged { .. })) => {
            let plan = plan?;
            let (quote, _) = quoted(&visit, &plan, &typed).await?;
            confirmed(&visit, StatusCode::CONFLICT, &plan, typed, (quote, Some(in_words(&refusal)))).await
        }
        // The code is not tried again for the page: that would count as another guess.
        Err(Error::Refused(refusal @ Refusal::CouponInvalid)) => {
            let told = (None, Some(in_words(&refusal)));
            confirmed(&visit, StatusCode::UNPROCESSABLE_ENTITY, &plan?, typed, told).await
        }
        Err(error) => {
            let name = plan.map_or_else(|_| "This plan".to_string(), |plan| plan.name.clone());
            unbought(&visit, "/account/buy", &name, error).await
        }
    }
}

#[derive(Template)]
#[template(path = "account/unbought.html")]
struct UnboughtPage<'a> {
    frame: Frame<'a>,
    name: &'a str,
    back: &'a str,
    why: String,
    /// Price, balance and what is missing, when the wallet holds too little.
    short: Option<(Usd, Usd, Usd)>,
}

/// Says why nothing was bought, and what to do.
pub async fn unbought(visit: &Visit, back: &str, name: &str, error: Error) -> Answer {
    let Error::Refused(refusal) = &error else { return Err(error.into()) };
    let status = StatusCode::from_u16(refusal.problem().status).unwrap_or(StatusCode::BAD_REQUEST);
    let short = match refusal {
        Refusal::InsufficientBalance { balance, required } => {
            Some((*required, *balance, required.minus(*balance)))
        }
        _ => None,
    };
    let why = match refusal {
        Refusal::DailyLimit { limit } => format!(
            "On these pages you can spend {limit} USD a day (UTC), so that nobody who finds your browser open can spend more. Buy it tomorrow, or by an agent with a higher limit."
        ),
        other => in_words(other),
    };
    let template = UnboughtPage { frame: visit.frame(Section::Buy), name, back, why, short };
    page(&visit.state, status, &template)
}
