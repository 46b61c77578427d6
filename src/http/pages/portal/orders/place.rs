//! Placing an order by hand: name a plan, see what it is and costs, then buy it. The price that was shown is the most that
//! is taken, and a form that is sent twice buys once.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use super::row::{order_path, unbought};
use crate::domain::money::Usd;
use crate::domain::plan::{Plan, typed_code};
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{CODE_CHARS, Query, REFERENCE_CHARS};
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::plan_details::{self, PlanCard};
use crate::http::pages::portal::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::http::pages::{bundles, in_words, is_once, new_once, reference};
use crate::ops::buying::Wish;
use crate::ops::{catalog, desk};

/// How many countries are named.
const NAMED: usize = 6;

#[derive(Template)]
#[template(path = "portal/order_new.html")]
struct NewPage<'a> {
    frame: Frame<'a>,
    typed: Typed,
    /// The plan that was named, with what it costs.
    plan: Option<Chosen<'a>>,
    problem: Option<String>,
    /// The order that has the reference.
    holder: Option<String>,
}

struct Chosen<'a> {
    card: PlanCard<'a>,
    countries: String,
    price: Usd,
    balance: Usd,
    /// What is missing to the price.
    missing: Option<Usd>,
}

/// The contents of the fields.
struct Typed {
    plan: String,
    reference: String,
    once: String,
}

/// What is shown above the form, and with which status.
#[derive(Default)]
struct Trouble {
    status: StatusCode,
    problem: Option<String>,
    holder: Option<String>,
}

fn shown(visit: &Visit, typed: Typed, plan: Option<&Arc<Plan>>, trouble: Trouble) -> Answer {
    let balance = visit.me().balance;
    let plan = plan.map(|plan| Chosen {
        card: PlanCard::of(plan),
        countries: plan_details::countries(plan, NAMED),
        price: plan.wholesale,
        balance,
        missing: Some(plan.wholesale.minus(balance)).filter(|missing| missing.is_positive()),
    });
    let Trouble { status, problem, holder } = trouble;
    let template = NewPage { frame: visit.frame(Section::Orders), typed, plan, problem, holder };
    page(&visit.state, status, &template)
}

fn sold(visit: &Visit, code: &str) -> Result<Arc<Plan>, Refusal> {
    catalog::base_plan_for(&visit.state.app, &visit.me().price_list, &typed_code(code))
}

/// Why a plan that somebody typed is not offered.
fn not_sold(refusal: &Refusal, code: &str) -> Trouble {
    let problem = match refusal {
        Refusal::PlanNotFound => format!("No plan on sale has the code {code}."),
        other => in_words(other),
    };
    Trouble { status: StatusCode::NOT_FOUND, problem: Some(problem), holder: None }
}

/// `?plan=` names the plan.
pub async fn form(visit: Visit, query: Query) -> Answer {
    visit.me().require(Ability::Order)?;
    let plan: String = query.typed("plan").trim().chars().take(CODE_CHARS).collect();
    let typed = Typed { reference: query.typed("reference"), once: new_once(), plan };
    if typed.plan.is_empty() {
        return shown(&visit, typed, None, Trouble::default());
    }
    match sold(&visit, &typed.plan) {
        Ok(plan) => shown(&visit, typed, Some(&plan), Trouble::default()),
        Err(refusal) => {
            let trouble = not_sold(&refusal, &typed.plan);
            shown(&visit, typed, None, trouble)
        }
    }
}

/// What a form that was sent says.
struct Confirmed {
    plan: String,
    /// The price that was shown.
    price: Usd,
    once: String,
    /// The team's own.
    reference: Option<String>,
}

impl Confirmed {
    fn read(mut fields: Query) -> Result<Confirmed, Refusal> {
        let choice = bundles::chosen(&mut fields);
        let is_ours = |text: &str| is_once(text).then(|| text.to_string());
        let once = fields.require("once", "must be the one of the page", is_ours);
        let reference = fields.text("reference", REFERENCE_CHARS).map(|text| text.trim().to_string());
        let reference = reference.filter(|text| !text.is_empty());
        let ((plan, price), once) = fields.finish_with(choice.zip(once))?;
        Ok(Confirmed { plan, price, once, reference })
    }

    fn wish(&self) -> Wish {
        let own = || reference("portal", &[self.once.as_str(), &self.plan]);
        Wish {
            package_code: self.plan.clone(),
            max_price: Some(self.price),
            reference: Some(self.reference.clone().unwrap_or_else(own)),
            ..Wish::default()
        }
    }
}

pub async fn buy(Sent(visit, fields): Sent) -> Answer {
    visit.me().require(Ability::Order)?;
    let code = fields.typed("choice").split(' ').next().unwrap_or_default().to_string();
    let typed =
        Typed { reference: fields.typed("reference"), once: fields.typed("once"), plan: typed_code(&code) };
    let plan = sold(&visit, &code);
    let confirmed = match Confirmed::read(fields) {
        Ok(confirmed) => confirmed,
        Err(refusal) => {
            let typed = Typed { once: new_once(), ..typed };
            let problem = Some(in_words(&refusal));
            let trouble = Trouble { status: StatusCode::BAD_REQUEST, problem, holder: None };
            return shown(&visit, typed, plan.ok().as_ref(), trouble);
        }
    };
    match desk::place(&visit.state.app, visit.me(), confirmed.wish()).await {
        Ok(receipt) => {
            let is_known = receipt.replayed && confirmed.reference.is_some();
            let done = if is_known { Done::Known } else { Done::Placed };
            Ok(see(&after(done, &order_path(&receipt.order))))
        }
        Err(Error::Refused(refusal @ Refusal::PriceChanged { .. })) => {
            let problem = Some(in_words(&refusal));
            let trouble = Trouble { status: StatusCode::CONFLICT, problem, holder: None };
            shown(&visit, typed, plan.ok().as_ref(), trouble)
        }
        Err(Error::Refused(Refusal::IdempotencyConflict(conflict))) => {
            let problem = Some("This reference belongs to something else that was bought before.".into());
            let holder = conflict.holder.clone().filter(|holder| !holder.starts_with("inv_"));
            shown(
                &visit,
                typed,
                plan.ok().as_ref(),
                Trouble { status: StatusCode::CONFLICT, problem, holder },
            )
        }
        Err(Error::Refused(refusal @ (Refusal::PlanNotFound | Refusal::WrongPlanType(_)))) => {
            let trouble = not_sold(&refusal, &typed.plan);
            shown(&visit, typed, None, trouble)
        }
        Err(error) => {
            let name = plan.map_or_else(|_| "This plan".to_string(), |plan| plan.name.clone());
            unbought(&visit, "/portal/orders/new", &name, error)
        }
    }
}
