//! The bundles that fit an eSIM, as cards of a form.

use super::in_words;
use super::moment::days;
use crate::app::App;
use crate::domain::order::Order;
use crate::domain::plan::Plan;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::wire::gigabytes;
use crate::ops::buying::Fills;
use crate::ops::topups;

pub struct Bundle {
    /// The plan with the price that is shown, as the form names them.
    pub value: String,
    pub plan: String,
    pub gb: f64,
    pub days: String,
    pub price: String,
    pub checked: bool,
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
    let card = |plan: &Plan| {
        let value = format!("{} {}", plan.code, plan.wholesale);
        Bundle {
            plan: plan.code.clone(),
            gb: gigabytes(plan.data_mb),
            days: days(plan.duration_days),
            price: plan.wholesale.priced(),
            checked: value == chosen,
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
