//! Live usage of the customer's eSIM.

use super::{ASKS_OUTSIDE, Tool};
use crate::error::Result;
use crate::http::kit::fields::{self, ID_CHARS};
use crate::http::kit::orders::{UsageView, usage_view};
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, order_id, token};
use crate::ops::buying::Fills;
use crate::ops::usage;

pub fn tool() -> Tool {
    Tool {
        name: "refresh_esim_usage",
        title: "Refresh data usage",
        description: "Asks the carrier how much data the customer's eSIM has used and has left, whether it is installed and \
            when it expires. Use it when the customer asks about remaining data, or says the eSIM does not work: the status \
            tells whether it is NEW, INSTALLED, ACTIVE, DEPLETED, EXPIRED or CANCELLED. Needs a login; costs nothing and can \
            be repeated; a carrier answers anew once a minute at most. When the carrier does not answer, the last known reading comes back with stale: true. To add data, \
            continue with get_topup_packages; to find the orderId, use get_user_orders.",
        hints: ASKS_OUTSIDE,
        input: schema::input([order_id(), token()], &["orderId"]),
        output: schema::results([schema::of::<UsageView>()]),
        run: |call| Box::pin(run(call)),
    }
}

async fn run(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let mut fields = call.fields()?;
    let id = fields.required_text("orderId", ID_CHARS);
    fields.finish()?;
    let (iccid, report) =
        usage::report(call.app(), holder.account, &Fills::Order(fields::order_id(id)?)).await?;
    Output::of(&usage_view(&iccid, &report))
}
