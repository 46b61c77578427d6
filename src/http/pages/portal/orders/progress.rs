//! What becomes of orders that were placed at once, line by line. A page that is open looks again by itself while some have
//! no answer.

use askama::Template;
use axum::http::StatusCode;

use crate::domain::batch::{Batch, LineState, Listed};
use crate::domain::money::Usd;
use crate::domain::order::OrderStatus;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Segment, batch_id};
use crate::http::kit::html::page;
use crate::http::pages::moment::Moment;
use crate::http::pages::order_shown::Badge;
use crate::http::pages::portal::frame::{Frame, Section, Visit};
use crate::ops::batches;
use crate::ops::mailings::A_DAY;

/// A line, and how its order stands.
struct Row {
    n: i64,
    code: String,
    reference: Option<String>,
    email: Option<String>,
    unmailed: bool,
    order: Option<String>,
    kind: &'static str,
    icon: &'static str,
    word: &'static str,
    note: Option<String>,
    price: String,
    /// Something is still to become of it.
    is_open: bool,
    /// There was an eSIM, which may have been given back since.
    is_delivered: bool,
}

impl Row {
    fn of(listed: Listed) -> Row {
        let price = listed.spent().priced();
        let Listed { line, order } = listed;
        let waiting = Badge { kind: "", icon: "clock", word: "Waiting" };
        let refused = Badge { kind: "bad", icon: "stop", word: "Not bought" };
        let (badge, is_open, is_delivered) = match line.state {
            LineState::Waiting => (waiting, true, false),
            LineState::Refused => (refused, false, false),
            LineState::Done => {
                let status = order.map_or(OrderStatus::Fulfilled, |standing| standing.status);
                let is_open = status == OrderStatus::Provisioning;
                (Badge::of(status), is_open, !is_open && status != OrderStatus::Failed)
            }
        };
        let Badge { kind, icon, word } = badge;
        let before = "Its reference had bought it before: nothing was charged or mailed again.".to_string();
        Row {
            n: line.n,
            kind,
            icon,
            word,
            note: if line.was_bought_before() { Some(before) } else { line.why.clone() },
            order: line.order.map(|id| id.to_string()),
            code: line.package_code,
            reference: line.reference,
            unmailed: line.unmailed,
            email: line.customer_email.map(|email| email.to_string()),
            price,
            is_open,
            is_delivered,
        }
    }
}

/// How all of it stands, in words.
struct Headline {
    kind: &'static str,
    icon: &'static str,
    title: String,
}

impl Headline {
    fn of(batch: &Batch, rows: &[Row]) -> Headline {
        let (count, settled) = (batch.lines, batch.lines - batch.waiting());
        let delivered = rows.iter().filter(|row| row.is_delivered).count();
        let (kind, icon, title) = match () {
            () if settled < count => ("turning", "gear", format!("{settled} of {count} orders placed")),
            () if rows.iter().any(|row| row.is_open) => {
                ("turning", "gear", format!("{} of {count} orders placed, and being prepared", batch.done))
            }
            () if delivered < rows.len() => {
                ("caution", "warning", format!("{delivered} of {count} eSIMs delivered"))
            }
            () if count == 1 => ("good", "check", "The eSIM is delivered".to_string()),
            () => ("good", "check", format!("All {count} eSIMs are delivered")),
        };
        Headline { kind, icon, title }
    }
}

#[derive(Template)]
#[template(path = "portal/order_progress.html")]
struct ProgressPage<'a> {
    frame: Frame<'a>,
    headline: Headline,
    path: String,
    count: i64,
    /// How many have their answer.
    settled: i64,
    refused: i64,
    total: Usd,
    spent: Usd,
    given_back: Usd,
    by: String,
    at: Moment,
    rows: Vec<Row>,
    is_open: bool,
    /// Tells this view from a later one.
    version: String,
}

impl ProgressPage<'_> {
    fn said(&self) -> String {
        format!("{} of {} have their answer", self.settled, self.count)
    }
}

pub async fn show(visit: Visit, Segment(id): Segment) -> Answer {
    let id = batch_id(&id)?;
    let found = batches::show(&visit.state.app, visit.me().account, &id).await?;
    let batch = found.batch;
    let rows: Vec<Row> = found.lines.into_iter().map(Row::of).collect();
    let words: Vec<&str> = rows.iter().map(|row| row.word).collect();
    let template = ProgressPage {
        frame: visit.frame(Section::Orders),
        path: format!("/portal/orders/batches/{id}"),
        count: batch.lines,
        settled: batch.lines - batch.waiting(),
        headline: Headline::of(&batch, &rows),
        refused: batch.refused,
        total: batch.total,
        spent: found.spent,
        given_back: found.given_back,
        at: Moment::of(batch.made_at),
        by: batch.made_by,
        is_open: rows.iter().any(|row| row.is_open),
        version: words.join(", "),
        rows,
    };
    page(&visit.state, StatusCode::OK, &template)
}
