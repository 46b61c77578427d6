//! The checkout page: where a person without an account buys one plan. Parse, call one operation, and on to the pay page.
//! Nothing is charged here; pressing the button twice opens one checkout.

use std::net::IpAddr;
use std::sync::Arc;

use askama::Template;
use axum::http::{HeaderMap, StatusCode};

use super::plan_details::{self, PlanCard, PlanDetails};
use super::ways::{self, Ways};
use super::{is_once, new_once, onward, reference, told, wanted_plan};
use crate::app::App;
use crate::config::Mode;
use crate::domain::checkout::{NETWORKS, USUAL_CURRENCY};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::plan::Plan;
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::{Anyone, Client};
use crate::http::kit::fields::{CODE_CHARS, Query};
use crate::http::kit::html::page;
use crate::http::kit::payment::{currency_names, named_currency, named_network, network_names};
use crate::http::kit::problem::{self, Refused};
use crate::http::kit::session::{OwnForm, is_looked_at};
use crate::ops::buying::Wish;
use crate::ops::coupons::{self, Quote};
use crate::ops::{checkout, guests};

/// How many countries are named; a plan for the world has more than anybody reads.
const NAMED: usize = 12;

#[derive(Template)]
#[template(path = "checkout.html")]
struct CheckoutPage<'a> {
    sandbox: bool,
    card: PlanCard<'a>,
    countries: String,
    details: PlanDetails,
    ways: Vec<Ways>,
    /// When the figures of networks were looked up.
    as_of: &'a str,
    /// The price with a discount code.
    quote: Option<Quote>,
    price: Usd,
    typed: &'a Typed,
    /// Made for each form, so that sending it twice is seen. Nobody else may choose it: it answers with the invoice.
    once: String,
    problem: Option<String>,
}

/// The contents of the form's fields.
struct Typed {
    email: String,
    /// Which of the ways to pay.
    means: String,
    discount: String,
    /// What the form that pays from a wallet is known by: the page behind it leads back with it.
    once: String,
}

impl Typed {
    fn of(fields: &Query) -> Typed {
        let [email, discount, once] = ["email", "discount", "once"].map(|name| fields.typed(name));
        Typed { email, means: means(fields), discount, once }
    }
}

/// `?plan=CODE&discount=CODE`.
pub async fn form(
    _: Anyone,
    state: State,
    Client(client): Client,
    headers: HeaderMap,
    query: Query,
) -> Answer {
    let (app, query) = (&state.app, query.filled());
    let plan = wanted_plan(app, &query)?;
    let mut typed = Typed::of(&query);
    // The page that pays from a wallet leads back with it.
    if !is_once(&typed.once) {
        typed.once = new_once();
    }
    // A link with an old code is still a way to the plan. Other sites must not guess codes in the name of their visitors.
    let (quote, problem) = match is_looked_at(&headers) {
        true => quoted(app, client, &typed, &plan).await?,
        false => (None, None),
    };
    shown(&state, StatusCode::OK, Shown { plan: &plan, typed: &typed, quote, problem })
}

pub async fn open(_: Anyone, state: State, Client(client): Client, OwnForm(fields): OwnForm) -> Answer {
    let app = &state.app;
    let (plan, typed) = (wanted_plan(app, &fields)?, Typed::of(&fields));
    if !fields.typed("apply").is_empty() {
        let (quote, problem) = quoted(app, client, &typed, &plan).await?;
        return shown(&state, StatusCode::OK, Shown { plan: &plan, typed: &typed, quote, problem });
    }
    let opened = match wish(fields, &plan) {
        Ok((wish, pair)) => guests::check_out(app, wish, pair, client).await,
        Err(refusal) => Err(refusal.into()),
    };
    match opened {
        Ok(invoice) => {
            onward(&state, &invoice, "Keep the address of that page: it is the key to what you buy.")
        }
        Err(error) => {
            let unread = matches!(error, Error::Refused(Refusal::Invalid(_)));
            let extra = problem::extra_header(&error);
            let (status, mut problem) = told(error)?;
            // The discount code was not checked yet: the discount must not seem lost.
            let (quote, worthless) =
                if unread { quoted(app, client, &typed, &plan).await? } else { (None, None) };
            if let Some(why) = worthless {
                problem = format!("{problem} {why}");
            }
            let mut page =
                shown(&state, status, Shown { plan: &plan, typed: &typed, quote, problem: Some(problem) })?;
            page.headers_mut().extend(extra);
            Ok(page)
        }
    }
}

/// The price with the discount code that was typed, or why the code does not count.
async fn quoted(
    app: &App,
    client: IpAddr,
    typed: &Typed,
    plan: &Arc<Plan>,
) -> Result<(Option<Quote>, Option<String>), Refused> {
    if typed.discount.is_empty() {
        return Ok((None, None));
    }
    match coupons::quote_guest(app, client, &typed.discount, plan).await {
        Ok(quote) => Ok((Some(quote), None)),
        Err(error) => Ok((None, Some(told(error)?.1))),
    }
}

fn wish(mut fields: Query, plan: &Plan) -> Result<(Wish, (Currency, Network)), Refusal> {
    let said =
        ["once", "plan", "means", "network", "currency", "email", "discount"].map(|name| fields.typed(name));
    let both = fields.take("means", "must be a token and a network, like USDC BASE", ways::named);
    let network = fields.take("network", format_args!("must be one of {}", network_names()), named_network);
    let currency =
        fields.take("currency", format_args!("must be one of {}", currency_names()), named_currency);
    let email = fields.required_email("email");
    let discount_code = fields.text("discount", CODE_CHARS);
    let once = fields.text("once", CODE_CHARS);
    let email = fields.finish_with(email)?;
    let wish = Wish {
        package_code: plan.code.clone(),
        customer_email: Some(email),
        discount_code,
        reference: once.map(|_| reference("form", &said)),
        ..Wish::default()
    };
    let pair = both.unwrap_or((currency.unwrap_or(USUAL_CURRENCY), network.unwrap_or(NETWORKS[0])));
    Ok((wish, pair))
}

/// The way to pay that a form or a link names: a card names token and network in one field, a link may name each.
fn means(fields: &Query) -> String {
    let [means, currency, network] = ["means", "currency", "network"].map(|name| fields.typed(name));
    match (ways::named(&means), named_currency(&currency), named_network(&network)) {
        (Some(pair), ..) => ways::value(pair),
        (None, None, None) => String::new(),
        (None, currency, network) => {
            ways::value((currency.unwrap_or(USUAL_CURRENCY), network.unwrap_or(NETWORKS[0])))
        }
    }
}

/// What differs from one showing of the form to the next.
struct Shown<'a> {
    plan: &'a Plan,
    typed: &'a Typed,
    quote: Option<Quote>,
    problem: Option<String>,
}

fn shown(state: &State, status: StatusCode, shown: Shown) -> Answer {
    let app = &state.app;
    let Shown { plan, typed, quote, problem } = shown;
    let template = CheckoutPage {
        sandbox: app.settings.mode == Mode::Sandbox,
        card: PlanCard::of(plan),
        countries: plan_details::countries(plan, NAMED),
        details: PlanDetails::of(plan),
        ways: ways::of(app, &checkout::pairs(app), &typed.means),
        as_of: &app.settings.settlement.typical_as_of,
        price: quote.as_ref().map_or(plan.retail, |quote| quote.price),
        quote,
        typed,
        once: new_once(),
        problem,
    };
    page(state, status, &template)
}
