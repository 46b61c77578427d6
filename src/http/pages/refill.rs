//! `/esim/{token}/data`: more data for the eSIM of a guest, from its own page. Parse, call one operation, and on to the pay
//! page. Nothing is charged here; pressing the button twice opens one checkout.

use askama::Template;
use axum::http::StatusCode;

use super::bundles::{self, Bundle};
use super::ways::{self, Ways};
use super::{in_words, new_once, onward, reference, told};
use crate::config::Mode;
use crate::domain::network::{Currency, Network};
use crate::domain::order::Order;
use crate::domain::plan::RETAIL_PRICE_LIST;
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::{Anyone, Client};
use crate::http::kit::fields::{CODE_CHARS, Query, Segment};
use crate::http::kit::html::page;
use crate::http::kit::problem;
use crate::http::kit::session::OwnForm;
use crate::ops::buying::{Fills, Wish};
use crate::ops::{checkout, guests};

#[derive(Template)]
#[template(path = "refill.html")]
struct RefillPage<'a> {
    sandbox: bool,
    token: &'a str,
    plan_name: &'a str,
    order_no: &'a str,
    bundles: Vec<Bundle>,
    ways: Vec<Ways>,
    /// When the figures of networks were looked up.
    as_of: &'a str,
    typed: Typed,
    /// Made for each form, so that sending it twice is seen.
    once: String,
    problem: Option<String>,
}

/// The contents of the form's fields.
#[derive(Default)]
struct Typed {
    choice: String,
    email: String,
    means: String,
}

impl Typed {
    fn of(fields: &Query) -> Typed {
        let [choice, email, means] = ["choice", "email", "means"].map(|name| fields.typed(name));
        Typed { choice, email, means }
    }
}

pub async fn form(_: Anyone, state: State, Segment(token): Segment) -> Answer {
    let order = guests::esim(&state.app, &token).await?;
    shown(&state, StatusCode::OK, &token, &order, Typed::default(), None).await
}

pub async fn open(
    _: Anyone,
    state: State,
    Client(client): Client,
    Segment(token): Segment,
    OwnForm(fields): OwnForm,
) -> Answer {
    let app = &state.app;
    let (order, typed) = (guests::esim(app, &token).await?, Typed::of(&fields));
    let opened = match wish(fields, &order) {
        Ok((wish, pair)) => guests::check_out(app, wish, pair, client).await,
        Err(refusal) => Err(refusal.into()),
    };
    match opened {
        Ok(invoice) => {
            onward(&state, &invoice, "Keep the address of that page: it is the key to your payment.")
        }
        Err(error) => {
            let extra = problem::extra_header(&error);
            let (status, problem) = match &error {
                Error::Refused(refusal @ (Refusal::PriceChanged { .. } | Refusal::EsimNotActive)) => {
                    (StatusCode::CONFLICT, in_words(refusal))
                }
                _ => told(error)?,
            };
            let mut page = shown(&state, status, &token, &order, typed, Some(problem)).await?;
            page.headers_mut().extend(extra);
            Ok(page)
        }
    }
}

/// What the form asks for. The purchase compares price and eSIM: a form that is sent again leads to its invoice, whatever
/// has changed since.
fn wish(mut fields: Query, order: &Order) -> Result<(Wish, (Currency, Network)), Refusal> {
    let said = ["once", "choice", "means", "email"].map(|name| fields.typed(name));
    let choice = bundles::chosen(&mut fields);
    let pair = fields.require("means", "must be a token and a network, like USDC BASE", ways::named);
    let email = fields.required_email("email");
    let once = fields.text("once", CODE_CHARS);
    let (((plan, price), pair), email) = fields.finish_with(choice.zip(pair).zip(email))?;
    let wish = Wish {
        package_code: plan,
        max_price: Some(price),
        fills: Some(Fills::Order(order.id.clone())),
        customer_email: Some(email),
        reference: once.map(|_| reference(order.id.as_str(), &said)),
        ..Wish::default()
    };
    Ok((wish, pair))
}

async fn shown(
    state: &State,
    status: StatusCode,
    token: &str,
    order: &Order,
    typed: Typed,
    problem: Option<String>,
) -> Answer {
    let app = &state.app;
    let (bundles, none_because) = bundles::fitting(app, order, RETAIL_PRICE_LIST, &typed.choice).await?;
    let template = RefillPage {
        sandbox: app.settings.mode == Mode::Sandbox,
        token,
        plan_name: &order.plan_name,
        order_no: &app.numbers.of_order(order).unwrap_or_default(),
        bundles,
        ways: ways::of(app, &checkout::pairs(app), &typed.means),
        as_of: &app.settings.settlement.typical_as_of,
        typed,
        once: new_once(),
        problem: none_because.or(problem),
    };
    page(state, status, &template)
}
