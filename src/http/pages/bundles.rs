//! The bundles that fit an eSIM, as cards of a form.

use super::in_words;
use super::moment::days;
use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::order::Order;
use crate::domain::plan::{Plan, typed_code};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::fields::{CODE_CHARS, Query};
use crate::http::kit::wire::gigabytes;
use crate::ops::buying::Fills;
use crate::ops::topups;

pub struct Bundle {
    /// The plan with the price that is shown, as the form names them.
    pub value: String,
    pub gb: f64,
    pub days: String,
    pub price: String,
    pub checked: bool,
}

/// A plan and its price in one field, so that a choice among several brings its own.
pub fn chosen(fields: &mut Query) -> Option<(String, Usd)> {
    fields.require("choice", "must be a plan with its price", |text| {
        let (plan, price) = text.split_once(' ')?;
        Some((typed_code(plan), Usd::parse(price).ok()?)).filter(|_| plan.len() <= CODE_CHARS)
    })
}

/// Those for this eSIM, the chosen one checked, else the first; or why it takes none now.
pub async fn fitting(
    app: &App,
    order: &Order,
    price_list: &str,
    chosen: &str,
) -> Result<(Vec<Bundle>, Option<String>)> {
    match topups::plans(app, order.account, &Fills::Order(order.id.clone()), price_list).await {
        Ok((_, plans)) => Ok((cards(&plans, chosen), None)),
        Err(Error::Refused(refusal @ (Refusal::EsimNotActive | Refusal::EsimNotFound))) => {
            Ok((Vec::new(), Some(in_words(&refusal))))
        }
        Err(error) => Err(error),
    }
}

fn cards(plans: &[Plan], chosen: &str) -> Vec<Bundle> {
    // Also at another price: whoever is told of it must not find another bundle chosen.
    let code = typed_code(chosen.split(' ').next().unwrap_or_default());
    let is_chosen = |plan: &Plan| plan.code == code;
    let card = |plan: &Plan| {
        let value = format!("{} {}", plan.code, plan.wholesale);
        Bundle {
            gb: gigabytes(plan.data_mb),
            days: days(plan.duration_days),
            price: plan.wholesale.priced(),
            checked: is_chosen(plan),
            value,
        }
    };
    let mut cards: Vec<Bundle> = plans.iter().map(card).collect();
    if !cards.iter().any(|bundle| bundle.checked)
        && let Some(first) = cards.first_mut()
    {
        first.checked = true;
    }
    cards
}
