//! The customer's orders, from every door.

use serde::Serialize;
use utoipa::ToSchema;

use super::{READS, Tool};
use crate::domain::order::OrderStatus;
use crate::error::Result;
use crate::http::kit::orders::{OrderView, order_view};
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, page, read_page, token};
use crate::ops::orders::{self, ListQuery};

/// How many orders, and top-ups of each, a result holds: a model reads all of it.
const MOST_ORDERS: i64 = 25;
const MOST_TOPUPS: usize = 5;

#[derive(Serialize, ToSchema)]
struct OrdersView {
    #[schema(minimum = 1)]
    page: i64,
    /// How many a page has: at most 25, even when more were asked for.
    #[schema(minimum = 1, maximum = 25)]
    limit: i64,
    /// How many there are, on all pages.
    #[schema(minimum = 0)]
    total: i64,
    /// Newest first, each with the last five of its top-ups.
    orders: Vec<OrderView>,
}

pub fn list() -> Tool {
    let words = OrderStatus::ALL.map(OrderStatus::as_str);
    let status = serde_json::json!({ "type": "string", "enum": words,
        "description": "Only orders in this state. Without it: those that were delivered or cancelled." });
    let about = "How many orders a page has. More than 25 counts as 25, and the result's limit says so.";
    let limit = schema::number(about, 1, 100, 20);
    Tool {
        name: "get_user_orders",
        title: "List the customer's orders",
        description: "Lists the eSIMs the customer has bought, newest first and page by page, however they were paid for: \
            id, plan, price, state, activation code, install link, top-ups and whether it can still be cancelled. Use it \
            to find the orderId that the usage, top-up and cancel tools need, to show an activation code again, or with \
            status PROVISIONING to see what is still being delivered. Needs a login and changes nothing. For live data \
            usage use refresh_esim_usage; for money movements use get_wallet_transactions.",
        hints: READS,
        input: schema::input([token(), page(), ("limit", limit), ("status", status)], &[]),
        output: schema::results([schema::of::<OrdersView>()]),
        run: |call| Box::pin(run(call)),
    }
}

async fn run(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let mut fields = call.fields()?;
    let (page, asked) = read_page(&mut fields);
    let limit = asked.min(MOST_ORDERS);
    let allowed = OrderStatus::ALL.map(OrderStatus::as_str).join(", ");
    let status = fields.word("status", &allowed, OrderStatus::parse);
    fields.finish()?;
    let query =
        ListQuery { page, limit, after: None, iccid: None, reference: None, status, from: None, to: None };
    let found = orders::list(call.app(), holder.account, query).await?;
    let shown = |listed| {
        let mut order = order_view(call.app(), listed)?;
        order.top_ups.drain(..order.top_ups.len().saturating_sub(MOST_TOPUPS));
        Ok(order)
    };
    let orders: Result<Vec<_>> = found.orders.iter().map(shown).collect();
    Output::of(&OrdersView { page, limit, total: found.total, orders: orders? })
}
