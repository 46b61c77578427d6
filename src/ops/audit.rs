//! What operators did, as the audit log keeps it: who, by which command, and what. A line is written with what it tells
//! of.

use crate::app::App;
use crate::store::audit::Line;

/// A line with a name of its own, made before the write that stores it.
pub(super) fn audit_line(app: &App, actor: &str, command: &'static str, detail: String) -> Line {
    Line { id: app.new_entry_id().to_string(), at: app.now(), actor: actor.into(), command, detail }
}
