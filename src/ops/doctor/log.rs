//! Whether SQLite's log is too long. An open transaction of any program keeps it from being emptied.

use super::Check;
use crate::app::App;
use crate::error::Result;
use crate::store::LogSize;

/// `None` when the database has no such log.
pub fn length(app: &App) -> Result<Option<Check>> {
    let Some(bytes) = app.store.log_bytes()? else { return Ok(None) };
    let size = LogSize::of_mb(app.settings.sqlite_log_mb);
    let mb = |bytes: u64| bytes.div_ceil(1 << 20);
    let (now, most) = (mb(bytes), mb(size.most()));
    Ok(Some(if size.is_exceeded_by(bytes) {
        Check::warn(
            "log",
            format!("SQLite's log has {now} MB and should have {most} MB at most"),
            "a program that reads the database keeps its transaction open: `fuser -v` with the database's file names \
             who has it open; end it, and the running gateway cuts the log within seconds",
        )
    } else {
        Check::ok("log", format!("SQLite's log has {now} MB"))
    }))
}
