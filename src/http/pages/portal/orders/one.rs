//! One order: how it stands as the headline, what happened to it and when, its eSIM, the money, and what can be done.

use askama::Template;
use axum::http::StatusCode;

use super::row::{order_path, own};
use crate::app::App;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::role::Ability;
use crate::error::Result;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Segment, order_id};
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::moment::Moment;
use crate::http::pages::order_shown::{OrderShown, Refill, givable};
use crate::http::pages::portal::frame::{Frame, Section, Visit};
use crate::ops::desk::{self, Opening};
use crate::ops::orders::{self, Happening, PlacedBy, Story, What};
use crate::ops::owned;

/// How an order stands, in words.
struct Headline {
    kind: &'static str,
    icon: &'static str,
    title: &'static str,
    detail: String,
}

impl Headline {
    fn of(order: &Order) -> Headline {
        let (price, back) = (order.price.priced(), order.given_back().priced());
        let (kind, icon, title, detail) = match order.status {
            OrderStatus::Provisioning => (
                "turning",
                "gear",
                "Being prepared",
                format!(
                    "The supplier has not delivered yet. {price} USD are set aside; if it cannot be delivered, they \
                     come back to the balance by themselves."
                ),
            ),
            OrderStatus::Fulfilled => ("good", "sim", "Delivered", String::new()),
            OrderStatus::Failed => (
                "bad",
                "stop",
                "Not delivered: the money is back",
                format!("{back} USD are back in the balance."),
            ),
            OrderStatus::Cancelling if is_reviewed(order) => (
                "caution",
                "clock",
                "Being given back: the supplier decides",
                format!(
                    "People at the supplier look at it, which can take days. If they agree, {price} USD come back to \
                     the balance. Until then nobody can install it."
                ),
            ),
            OrderStatus::Cancelling => (
                "turning",
                "clock",
                "Being given back",
                "The supplier was asked and has not answered yet. It goes on by itself.".into(),
            ),
            OrderStatus::Cancelled => (
                "",
                "money",
                "Given back",
                format!("{back} USD are back in the balance. Nobody can install this eSIM any more."),
            ),
        };
        Headline { kind, icon, title, detail }
    }
}

/// Whether people at the supplier decide about its cancel.
pub fn is_reviewed(order: &Order) -> bool {
    order.status == OrderStatus::Cancelling
        && order.cancel_request.as_ref().is_some_and(|request| !request.is_empty())
}

/// A line of what happened.
struct Event {
    at: Moment,
    what: String,
    note: Option<String>,
}

impl Event {
    fn of(happening: Happening) -> Event {
        let by = happening.by.map(|who| format!("by {who}"));
        let (what, note) = match happening.what {
            What::Placed => ("Ordered".into(), by),
            What::Delivered => ("Delivered".into(), by),
            What::Failed => ("Not delivered; the money came back".into(), by),
            What::ToppedUp { plan, status } => {
                let how = match status {
                    OrderStatus::Fulfilled => "Data added",
                    OrderStatus::Failed => "Data could not be added; the money came back",
                    _ => "Data is being added",
                };
                (how.into(), Some(plan))
            }
            What::Sent { to } => (format!("Sent to {to}"), by),
            What::CancelAsked => ("The supplier was asked to take it back".into(), by),
            What::Kept => ("Kept after all".into(), by),
            What::Cancelled => ("Taken back by the supplier; the money came back".into(), by),
            What::Refunded { note } => ("Money was given back for it".into(), Some(note)),
        };
        Event { at: Moment::of(happening.at), what, note: note.filter(|note| !note.is_empty()) }
    }
}

/// What opens the eSIM, for those who may see it.
struct Codes {
    url: String,
    /// SM-DP+ address, activation code, and both in one.
    activation: Option<(String, String, String)>,
}

impl Codes {
    fn of(opening: Opening) -> Codes {
        let activation = opening.activation.map(|activation| {
            let whole = activation.lpa_string();
            (activation.smdp_address, activation.matching_id, whole)
        });
        Codes { url: opening.url, activation }
    }
}

#[derive(Template)]
#[template(path = "portal/order.html")]
struct OrderPage<'a> {
    frame: Frame<'a>,
    order: OrderShown,
    headline: Headline,
    code: String,
    reference: Option<String>,
    iccid: Option<String>,
    coupon: Option<(String, String)>,
    placed_by: String,
    /// Why it was not delivered.
    failure: Option<String>,
    given_back: Option<String>,
    events: Vec<Event>,
    refills: Vec<Refill>,
    codes: Option<Codes>,
    is_delivered: bool,
    is_reviewed: bool,
    /// Whether something happens to it by itself, and a page that is open looks again.
    is_open: bool,
    /// Whether there is something that can be mailed.
    can_send: bool,
    /// Why it cannot be given back; `None` when it can.
    kept_because: Option<&'static str>,
    /// Tells this view from a later one.
    version: String,
}

pub async fn show(visit: Visit, Segment(id): Segment) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    let id = order_id(id)?;
    if id.is_topup() {
        return Ok(see(&order_path(&owned::order(app, me.account, &id).await?)));
    }
    let order = own(&visit, id.to_string()).await?;
    let story = orders::story(app, &order).await?;
    let mut shown = OrderShown::of(app, &order);
    shown.read(app, &order).await;
    let codes = match me.may(Ability::SeeCodes) {
        true => desk::opening(app, me, &order)?.map(Codes::of),
        false => None,
    };
    page(&visit.state, StatusCode::OK, &OrderPage::of(&visit, order, shown, story, codes)?)
}

impl OrderPage<'_> {
    fn of(
        visit: &Visit,
        order: Order,
        shown: OrderShown,
        story: Story,
        codes: Option<Codes>,
    ) -> Result<OrderPage<'_>> {
        let app: &App = &visit.state.app;
        let is_reviewed = is_reviewed(&order);
        let is_moving =
            |order: &Order| matches!(order.status, OrderStatus::Provisioning | OrderStatus::Cancelling);
        let is_open = is_moving(&order) && !is_reviewed || story.topups.iter().any(is_moving);
        let version = version(&order, &story);
        Ok(OrderPage {
            frame: visit.frame(Section::Orders),
            headline: Headline::of(&order),
            code: order.package_code.clone(),
            reference: order.given_reference().map(str::to_string),
            iccid: order.esim.as_ref().map(|esim| esim.iccid.clone()),
            coupon: order.coupon.as_ref().map(|coupon| (coupon.code.clone(), coupon.discount.priced())),
            placed_by: placed_by(story.placed_by),
            failure: order
                .failure
                .as_ref()
                .map(|failure| failure.detail.clone())
                .filter(|why| !why.is_empty()),
            given_back: Some(story.given_back).filter(|back| back.is_positive()).map(|back| back.priced()),
            kept_because: givable(app, &order, &story.topups).err(),
            refills: story.topups.iter().map(Refill::of).collect(),
            events: story.happened.into_iter().map(Event::of).collect(),
            codes,
            is_delivered: order.status == OrderStatus::Fulfilled,
            is_reviewed,
            is_open,
            can_send: desk::require_installable(app, &order).is_ok(),
            version,
            order: shown,
        })
    }
}

fn version(order: &Order, story: &Story) -> String {
    let mut version = format!("{} {}", order.status.as_str(), order.updated_at.micros());
    for topup in &story.topups {
        version.push_str(&format!(" {}", topup.updated_at.micros()));
    }
    version
}

fn placed_by(who: PlacedBy) -> String {
    match who {
        PlacedBy::Key { id, name } if name.is_empty() => format!("API key {id}"),
        PlacedBy::Key { id, name } => format!("API key {name} ({id})"),
        PlacedBy::Member(email) => format!("{email}, by hand"),
        PlacedBy::FormerMember => "Somebody who has left the team, by hand".into(),
        PlacedBy::Nobody => "Not known".into(),
    }
}
