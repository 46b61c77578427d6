//! The orders of a list as a file: every order that it finds, with its top-ups behind it, written out as it is read. There
//! is no activation code in it, and no link to one.

use std::collections::VecDeque;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::stream;

use super::list::Filter;
use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Query;
use crate::http::kit::html::guard;
use crate::http::pages::portal::frame::Visit;
use crate::ops::look_up;
use crate::ops::orders::{self, Listed, Stream};
use crate::wire::csv::{figure, line, text};
use crate::wire::dates::iso;

const COLUMNS: [&str; 12] = [
    "order_no",
    "order_id",
    "kind",
    "state",
    "placed_at",
    "plan_code",
    "plan_name",
    "price_usd",
    "given_back_usd",
    "iccid",
    "reference",
    "placed_by",
];

pub async fn file(visit: Visit, query: Query) -> Answer {
    let (app, account) = (&visit.state.app, visit.me().account);
    let filter = Filter::read(&query);
    if let Some(problem) = filter.problem {
        return Err(Refusal::Malformed(problem).into());
    }
    let mut told = VecDeque::from([heads()]);
    let body = if filter.name.is_empty() {
        let telling = Telling { app: app.clone(), told, orders: orders::stream(account, filter.search()) };
        Body::from_stream(stream::try_unfold(telling, Telling::next))
    } else {
        let hits = look_up::look_up(app, account, &filter.name).await?;
        told.extend(hits.orders.iter().map(|order| row(app, order)));
        Body::from(told.into_iter().collect::<String>())
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"orders.csv\"")),
    ];
    let mut response = (StatusCode::OK, headers, body).into_response();
    guard(response.headers_mut());
    Ok(response)
}

/// A file that is being written: the next portion is read when the one before was taken.
struct Telling {
    app: App,
    told: VecDeque<String>,
    orders: Stream,
}

impl Telling {
    async fn next(mut self) -> Result<Option<(Bytes, Telling)>, Fault> {
        if let Some(text) = self.told.pop_front() {
            return Ok(Some((Bytes::from(text), self)));
        }
        let portion = self.orders.next(&self.app).await.map_err(Fault)?;
        if portion.is_empty() {
            return Ok(None);
        }
        let text: String = portion.iter().flat_map(|listed| rows(&self.app, listed)).collect();
        Ok(Some((Bytes::from(text), self)))
    }
}

/// Cuts the file off, so that nobody takes a part of it for the whole.
#[derive(Debug)]
struct Fault(Error);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Fault {}

fn heads() -> String {
    line(COLUMNS.map(figure))
}

fn rows(app: &App, listed: &Listed) -> Vec<String> {
    let both = std::iter::once(&listed.order).chain(&listed.topups);
    both.map(|order| row(app, order)).collect()
}

fn row(app: &App, order: &Order) -> String {
    let is_back = matches!(order.status, OrderStatus::Failed | OrderStatus::Cancelled);
    let given_back = if is_back { order.given_back() } else { Usd::ZERO };
    let iccid = order.esim.as_ref().map(|esim| esim.iccid.as_str());
    line([
        figure(&app.numbers.of_order(order).unwrap_or_default()),
        figure(order.id.as_str()),
        figure(if order.id.is_topup() { "TOPUP" } else { "ORDER" }),
        figure(order.status.as_str()),
        figure(&iso(order.created_at)),
        text(&order.package_code),
        text(&order.plan_name),
        figure(&order.price.to_string()),
        figure(&given_back.to_string()),
        figure(iccid.unwrap_or_default()),
        text(order.reference.as_deref().unwrap_or_default()),
        figure(&order.key_id),
    ])
}
