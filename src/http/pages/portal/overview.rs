//! The first page of the portal: the balance, what needs attention, orders and spend of a month, the latest orders; or, for
//! somebody who is not signed in, the way to do that.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::frame::{Frame, Section, Visit};
use super::{second_factor, sign_in};
use crate::domain::money::Usd;
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::chart::{Chart, Point};
use crate::http::kit::fields::Query;
use crate::http::kit::html::page;
use crate::http::kit::problem::Refused;
use crate::http::kit::session::{Awaited, SignedIn, Turned, Visitor, see};
use crate::http::kit::wire::iso;
use crate::http::pages::look::Look;
use crate::http::pages::moment::Moment;
use crate::http::pages::order_shown::OrderShown;
use crate::ops::attention::{self, Attention};
use crate::ops::days::Day;
use crate::ops::orders::{self, Search};
use crate::ops::team::Member;
use crate::ops::{accounts, days};

const SPAN_DAYS: i64 = 30;
const LATEST: i64 = 5;

/// Something to look at, and where.
struct Matter {
    kind: &'static str,
    icon: &'static str,
    said: String,
    path: String,
    word: &'static str,
}

#[derive(Template)]
#[template(path = "portal/overview.html")]
struct OverviewPage<'a> {
    frame: Frame<'a>,
    balance: Usd,
    held: Usd,
    attention: Vec<Matter>,
    orders: Chart,
    spend: Chart,
    latest: Vec<OrderShown>,
}

pub async fn show(
    visitor: Visitor,
    Look(theme): Look,
    state: State,
    query: Query,
    visit: Result<Visit, Turned>,
    awaited: Result<SignedIn<Awaited>, Turned>,
) -> Answer {
    match visit {
        Ok(visit) => overview(&visit).await,
        Err(Turned::Refused(refused)) => Err(refused),
        Err(Turned::To(path)) => Ok(see(path)),
        Err(Turned::ToEntrance { .. }) if awaited.is_ok() => {
            Ok(see(&second_factor::path(&sign_in::next(&query))))
        }
        Err(Turned::ToEntrance { .. }) => {
            let page = sign_in::entrance(&state, theme, &visitor.form, &query)?;
            Ok(visitor.meet(page))
        }
    }
}

async fn overview(visit: &Visit) -> Result<Response, Refused> {
    let (app, me) = (&visit.state.app, visit.me());
    let balance = accounts::balance(app, me.account).await?;
    let month = days::of(app, me.account, SPAN_DAYS).await?;
    let newest = Search { limit: LATEST, ..Search::default() };
    let latest = orders::search(app, me.account, newest).await?;
    let template = OverviewPage {
        frame: visit.frame(Section::Overview),
        balance: balance.available,
        held: balance.held,
        attention: attention::of(app, me).await?.into_iter().map(|one| to_look_at(me, one)).collect(),
        orders: Chart::bars("Orders per day", ("Day", "Orders"), month.iter().map(ordered).collect()),
        spend: Chart::bars("Spend per day", ("Day", "USD"), month.iter().map(spent).collect()),
        latest: latest.orders.iter().map(|listed| OrderShown::of(app, &listed.order)).collect(),
    };
    page(&visit.state, StatusCode::OK, &template)
}

/// The date of a day, as figures are labelled.
fn date(day: &Day) -> String {
    iso(Time::from_micros(0).plus_days(day.day)).chars().take(10).collect()
}

fn ordered(day: &Day) -> Point {
    Point { label: date(day), value: day.orders, said: day.orders.to_string() }
}

fn spent(day: &Day) -> Point {
    let left = day.spent.minus(day.given_back);
    Point { label: date(day), value: left.micros(), said: format!("{} USD", left.priced()) }
}

/// What is said of it, and a link to what this member may do about it.
fn to_look_at(me: &Member, attention: Attention) -> Matter {
    let (kind, icon, said, path, word) = match attention {
        Attention::LowBalance { balance, threshold } => (
            "bad",
            "wallet",
            format!(
                "The balance of {} USD is below {} USD. Orders are refused when it does not suffice.",
                balance.priced(),
                threshold.priced()
            ),
            "/portal/deposits".into(),
            if me.may(Ability::PayIn) { "Add funds" } else { "Look at the deposits" },
        ),
        Attention::Waiting(waiting) => {
            let what = if waiting.count == 1 {
                "One order has".into()
            } else {
                format!("{} orders have", waiting.count)
            };
            let path = match &waiting.oldest {
                Some(oldest) => {
                    format!("/portal/orders/{}", oldest.esim_order.as_ref().unwrap_or(&oldest.id))
                }
                None => "/portal/orders".into(),
            };
            let said = format!(
                "{what} waited for the supplier for more than half an hour. We look after it; no money is lost."
            );
            ("caution", "clock", said, path, "Look at the oldest")
        }
        Attention::WebhookDisabled { id, url } => (
            "bad",
            "stop",
            format!("{url} accepted nothing for a day, and gets no events any more."),
            format!("/portal/webhooks/{id}"),
            "Look at the webhook",
        ),
        Attention::WebhookFailing { id, url, since } => (
            "caution",
            "warning",
            format!("{url} has accepted no event since {}.", Moment::of(since).readable),
            format!("/portal/webhooks/{id}"),
            "Look at the webhook",
        ),
        Attention::EventsSetAside { id, url, count } => (
            "caution",
            "warning",
            format!(
                "{url} refused some events for a day: {count} set aside, and not tried again by themselves."
            ),
            format!("/portal/webhooks/{id}"),
            "Look at the webhook",
        ),
        Attention::KeyEnds { id, name, at } => {
            let name = if name.is_empty() { id.to_string() } else { name };
            let said = format!("The API key {name} ends on {}.", Moment::of(at).readable);
            let (path, word) = match me.may(Ability::Keys) {
                true => (format!("/portal/keys/{id}/rotate"), "Replace it"),
                false => ("/portal/keys".into(), "Look at the keys"),
            };
            ("caution", "clock", said, path, word)
        }
    };
    Matter { kind, icon, said, path, word }
}
