//! A deed that looks like one of the last day may have been pasted twice: on a terminal the operator is asked, elsewhere
//! warned.

use std::io::{BufRead, IsTerminal, Write};

use super::Failure;
use crate::app::App;
use crate::domain::refusal::Conflict;
use crate::ops::audit;
use crate::ops::dates::iso;

/// Goes on when nothing looks the same, when `--yes` was given, or when the operator says so. `begins` is how the line of
/// such a deed in the audit log begins.
pub async fn ask(app: &App, command: &str, begins: &str, yes: bool) -> Result<(), Failure> {
    let Some(at) = audit::lately(app, command, begins).await?.filter(|_| !yes) else { return Ok(()) };
    let done = format!("`{command}` was done for {begins} already, at {}", iso(at));
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        eprintln!("warning: {done}; it is done again (--yes does it without a warning)");
        return Ok(());
    }
    eprint!("{done}. Do it again? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stderr().flush().and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    if read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::refused(Conflict::default().into(), "nothing was done"))
}
