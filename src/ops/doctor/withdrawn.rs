//! Whether suppliers still have requests to take back what buyers keep after all.

use super::Check;
use crate::app::App;
use crate::error::Result;
use crate::store::cancel_requests;

/// How many orders are named.
const NAMED: i64 = 5;

/// `None` when there are none.
pub async fn open(app: &App) -> Result<Option<Check>> {
    let open = app.store.read(|tx| cancel_requests::withdrawn(tx, NAMED)).await?;
    if open.is_empty() {
        return Ok(None);
    }
    let named: Vec<&str> = open.iter().map(|id| id.as_str()).collect();
    Ok(Some(Check::warn(
        "cancels",
        format!("suppliers may still take back what its buyers keep after all: {}", named.join(", ")),
        "tell the supplier of each (`simgate order show ID` names its request), then enter its word with \
         `simgate order cancel-refused ID --reason TEXT` or `simgate order cancelled ID --returned USD`",
    )))
}
