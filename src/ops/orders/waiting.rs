//! The orders of an account that have waited for their supplier for too long.

use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::order::Order;
use crate::error::Result;
use crate::ops::operator::STUCK_AFTER_MS;
use crate::store::order_lists;
use crate::store::tx::Tx;

/// Where counting ends: a page says "1,000 or more".
pub const MOST_COUNTED: i64 = 1_000;

pub struct Waiting {
    /// Orders and top-ups; `MOST_COUNTED` may stand for more.
    pub count: i64,
    pub oldest: Option<Order>,
}

/// What has waited for longer than an operator should let it wait. It reads open orders only.
pub async fn waiting_long(app: &App, account: AccountNo) -> Result<Waiting> {
    let since = app.now().plus_millis(-STUCK_AFTER_MS);
    let read = move |tx: &mut Tx| {
        let count = order_lists::waiting(tx, account, since, MOST_COUNTED)?;
        let oldest = if count > 0 { order_lists::longest_waiting(tx, account, since)? } else { None };
        Ok(Waiting { count, oldest })
    };
    app.store.read_consistent(read).await
}
