//! Lines of the audit log: which operator did what, by which command. A line is written together with what it
//! describes.

use crate::app::App;
use crate::store::audit::Line;

/// A line with its own id, made before the write that stores it.
pub(super) fn audit_line(app: &App, actor: &str, command: &'static str, detail: String) -> Line {
    Line { id: app.new_entry_id().to_string(), at: app.now(), actor: actor.into(), command, detail }
}
