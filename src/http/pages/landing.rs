//! `/`: what this is, a search of what is on sale, and the ways in for programs. The search is the one that agents use,
//! and runs no SQL. `storefront = false` leaves the shop out.

use std::time::Duration;

use askama::Template;
use axum::extract::RawQuery;
use axum::http::StatusCode;

use super::connect::{self, Client};
use super::plan_details::PlanCard;
use crate::app::App;
use crate::config::Mode;
use crate::domain::text::visible;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::catalog::products::{self, MOST_CHARS, MOST_SHOWN, Products};
use crate::http::kit::doorway::TOOLS_PATH;
use crate::http::kit::fields::Query;
use crate::http::kit::html::{page, public_page};
use crate::ops::search::{Found, Nothing};
use crate::ops::{checkout, vitals};

/// How many plans are shown, and how many when more are asked for.
const STEPS: [usize; 3] = [12, 48, MOST_SHOWN];
/// What else a search may say than a country.
const EXAMPLES: [&str; 3] = ["Europe 10 GB 30 days", "Japan and South Korea", "Cheapest for Turkey"];
/// How long a visitor waits to read how the gateway is doing.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Template)]
#[template(path = "landing.html")]
struct LandingPage<'a> {
    shop: Option<Shop<'a>>,
    sandbox: bool,
    /// Whether everything works; `None` when that was not looked at.
    works: Option<bool>,
    base_url: &'a str,
    mcp_url: &'a str,
    clients: &'a [Client],
}

struct Shop<'a> {
    typed: &'a str,
    countries: usize,
    /// What can be paid with.
    tokens: String,
    examples: [&'static str; 3],
    shown: Shown<'a>,
}

/// What a search found.
struct Shown<'a> {
    cards: Vec<PlanCard<'a>>,
    total: usize,
    /// For those who hear the page.
    said: String,
    /// Why there are none.
    reason: Option<String>,
    /// Places that may be meant.
    near: &'a [&'static str],
    /// How many to show next; `None` when all are here, or as many as are ever shown.
    more: Option<usize>,
}

/// `?q=TEXT&limit=N`.
pub async fn show(_: Anyone, state: State, RawQuery(raw): RawQuery) -> Answer {
    let (settings, query) = (&state.app.settings, Query::parse(raw.as_deref()));
    let typed = visible(&query.typed("q"), MOST_CHARS);
    let limit = query.typed("limit").parse().map_or(STEPS[0], |limit: usize| limit.clamp(1, MOST_SHOWN));
    let products = state.catalog.products().await?;
    let found = products.search(&asked(&typed, limit))?;
    let shop = || Shop {
        typed: &typed,
        countries: products.countries(),
        tokens: tokens(&state.app),
        examples: EXAMPLES,
        shown: shown(&products, &found, &typed, limit),
    };
    let mcp_url = format!("{}{}", settings.agent_url, TOOLS_PATH);
    let template = LandingPage {
        shop: settings.brand.storefront.then(shop),
        sandbox: settings.mode == Mode::Sandbox,
        // The answers to those who search are read while they type.
        works: if typed.is_empty() { works(&state.app).await } else { None },
        base_url: &settings.base_url,
        clients: &connect::clients(&mcp_url),
        mcp_url: &mcp_url,
    };
    match raw {
        None => public_page(&state, &template),
        Some(_) => page(&state, StatusCode::OK, &template),
    }
}

/// The query of the search for agents.
fn asked(typed: &str, limit: usize) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("country", typed);
    query.append_pair("limit", &limit.to_string());
    query.finish()
}

fn shown<'a>(products: &'a Products, found: &'a Found, typed: &str, limit: usize) -> Shown<'a> {
    let cards: Vec<PlanCard> = products.plans(found).map(PlanCard::of).collect();
    let reason = found.nothing.as_ref().map(products::reason);
    let said = match (&reason, typed) {
        (Some(reason), _) => reason.clone(),
        (None, "") => format!("{} popular plans", cards.len()),
        (None, _) if found.total == 1 => format!("1 plan for {typed}"),
        (None, _) => format!("{} plans for {typed}", found.total),
    };
    let near = match &found.nothing {
        Some(Nothing::NoPlace { near }) => near.as_slice(),
        _ => &[],
    };
    let more = STEPS.into_iter().find(|step| *step > limit).filter(|_| found.total > cards.len());
    Shown { total: found.total, cards, said, reason, near, more }
}

/// `USDC or USDT`.
fn tokens(app: &App) -> String {
    let mut tokens: Vec<&str> = checkout::pairs(app).iter().map(|(token, _)| token.as_str()).collect();
    tokens.dedup();
    tokens.join(" or ")
}

async fn works(app: &App) -> Option<bool> {
    let why = tokio::time::timeout(PATIENCE, vitals::unready(app)).await.ok()?;
    Some(why.is_empty())
}
