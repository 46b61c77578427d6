//! More data for an eSIM: the bundles that fit it, at the team's prices.

use askama::Template;
use axum::http::StatusCode;

use super::row::{order_path, own, unbought};
use crate::domain::money::Usd;
use crate::domain::order::Order;
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Query, Segment};
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::bundles::{self, Bundle};
use crate::http::pages::order_shown::OrderShown;
use crate::http::pages::portal::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::http::pages::{in_words, is_once, new_once, reference};
use crate::ops::buying::{Fills, Wish};
use crate::ops::desk;

#[derive(Template)]
#[template(path = "portal/order_data.html")]
struct DataPage<'a> {
    frame: Frame<'a>,
    order: OrderShown,
    bundles: Vec<Bundle>,
    balance: Usd,
    once: String,
    problem: Option<String>,
}

pub async fn form(visit: Visit, Segment(id): Segment) -> Answer {
    visit.me().require(Ability::Order)?;
    let order = own(&visit, id).await?;
    shown(&visit, StatusCode::OK, &order, "", new_once(), None).await
}

async fn shown(
    visit: &Visit,
    status: StatusCode,
    order: &Order,
    chosen: &str,
    once: String,
    problem: Option<String>,
) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    let (bundles, none_because) = bundles::fitting(app, order, &me.price_list, chosen).await?;
    let template = DataPage {
        frame: visit.frame(Section::Orders),
        order: OrderShown::of(app, order),
        bundles,
        balance: me.balance,
        once,
        problem: none_because.or(problem),
    };
    page(&visit.state, status, &template)
}

/// What the form says: plan, price that was shown, and the form's own name.
fn read(mut fields: Query) -> Result<((String, Usd), String), Refusal> {
    let choice = bundles::chosen(&mut fields);
    let once =
        fields.require("once", "must be the one of the page", |text| is_once(text).then(|| text.to_string()));
    fields.finish_with(choice.zip(once))
}

/// Buys more data. A form that is sent twice buys once, and nothing for more than it showed.
pub async fn top_up(Segment(id): Segment, Sent(visit, fields): Sent) -> Answer {
    visit.me().require(Ability::Order)?;
    let order = own(&visit, id).await?;
    let chosen = fields.typed("choice");
    let ((plan, price), once) = match read(fields) {
        Ok(read) => read,
        Err(refusal) => {
            let problem = Some(in_words(&refusal));
            return shown(&visit, StatusCode::BAD_REQUEST, &order, &chosen, new_once(), problem).await;
        }
    };
    let wish = Wish {
        reference: Some(reference("portal", &[once.as_str(), &plan, order.id.as_str()])),
        package_code: plan,
        max_price: Some(price),
        fills: Some(Fills::Order(order.id.clone())),
        ..Wish::default()
    };
    match desk::top_up(&visit.state.app, visit.me(), wish).await {
        Ok(_) => Ok(see(&after(Done::ToppedUp, &order_path(&order)))),
        Err(Error::Refused(refusal @ Refusal::PriceChanged { .. })) => {
            let problem = Some(in_words(&refusal));
            shown(&visit, StatusCode::CONFLICT, &order, &chosen, once, problem).await
        }
        Err(error) => unbought(&visit, &format!("{}/data", order_path(&order)), "More data", error),
    }
}
