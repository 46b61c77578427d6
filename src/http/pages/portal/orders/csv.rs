//! The orders of a list as a file: every order that it finds, with its top-ups behind it, written out as it is read. There
//! is no activation code in it, and no link to one.

use futures_util::{StreamExt, stream};

use super::list::Filter;
use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::http::kit::answers::Answer;
use crate::http::kit::download;
use crate::http::kit::fields::Query;
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
    let (app, account) = (visit.state.app.clone(), visit.me().account);
    let filter = Filter::read(&query);
    if let Some(problem) = filter.problem {
        return Err(Refusal::Malformed(problem).into());
    }
    let heads = stream::once(async { Ok(heads()) });
    if filter.name.is_empty() {
        let orders = orders::stream(account, filter.search());
        return download::csv("orders.csv", heads.chain(stream::try_unfold((app, orders), portion)));
    }
    let hits = look_up::look_up(&app, account, &filter.name).await?;
    let found = hits.orders.iter().map(|order| row(&app, order)).collect();
    download::csv("orders.csv", heads.chain(stream::once(async { Ok(found) })))
}

/// What was read is written before more of it is read.
async fn portion((app, mut orders): (App, Stream)) -> Result<Option<(String, (App, Stream))>> {
    let found = orders.next(&app).await?;
    if found.is_empty() {
        return Ok(None);
    }
    let text = found.iter().flat_map(|listed| rows(&app, listed)).collect();
    Ok(Some((text, (app, orders))))
}

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
        text(order.given_reference().unwrap_or_default()),
        figure(&order.key_id),
    ])
}
