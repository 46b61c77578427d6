//! The audit log: which operator did what, by which command, and what was before and after. A line is written together
//! with what it describes.

use super::LANE;
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::login::DAY_MS;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::audit::{self, Line};
pub use crate::store::audit::{Deed, Wanted};

/// A line with its own id, made before the write that stores it.
pub(super) fn audit_line(app: &App, actor: &str, command: &'static str, detail: String) -> Line {
    let id = app.new_entry_id().to_string();
    Line { id, at: app.now(), actor: actor.into(), command, detail, before: None, after: None, account: None }
}

/// Writes a line by itself, for a deed that is no write of ours.
pub(super) async fn record(app: &App, line: Line) -> Result<()> {
    app.store.write(LANE, move |tx| audit::record(tx, &line)).await
}

/// The log, newest first.
pub async fn list(app: &App, wanted: Wanted) -> Result<Vec<Deed>> {
    app.store.snapshot(move |tx| audit::list(tx, &wanted)).await
}

/// What members of a partner's team did, newest first: what comes before the deed of this time and id, or all of it.
pub async fn of_team(
    app: &App,
    account: AccountNo,
    before: Option<(Time, String)>,
    limit: i64,
) -> Result<Vec<Deed>> {
    let before = before.unwrap_or_else(|| (Time::from_micros(i64::MAX), String::new()));
    app.store.read(move |tx| audit::of_account(tx, account, &before, limit)).await
}

/// When a deed of the last day that looks the same was done: one by this command, whose line begins like this. It may
/// have been pasted twice.
pub async fn lately(app: &App, command: &str, begins: &str) -> Result<Option<Time>> {
    let since = app.now().plus_millis(-DAY_MS);
    let (command, begins) = (command.to_string(), begins.to_string());
    app.store.snapshot(move |tx| audit::latest(tx, since, &command, &begins)).await
}
