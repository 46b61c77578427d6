//! A deed that looks like one of the last day may have been pasted twice: on a terminal the operator is asked, elsewhere
//! warned when it was done.

use std::io::{BufRead, IsTerminal, Write};

use super::Failure;
use crate::app::App;
use crate::domain::refusal::Conflict;
use crate::ops::audit;
use crate::wire::dates::iso;

/// Does the deed when nothing looks the same, when `--yes` was given, or when the operator says so. `begins` is how the
/// line of such a deed in the audit log begins.
pub async fn warned<T>(
    app: &App,
    command: &str,
    begins: &str,
    yes: bool,
    deed: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let Some(at) = audit::lately(app, command, begins).await?.filter(|_| !yes) else { return deed.await };
    let before =
        format!("the same was done already, at {}: {command}, {}", iso(at), begins.trim_end_matches(','));
    if at_terminal() {
        return if agreed(&format!("{before}. Do it again?")) {
            deed.await
        } else {
            Err(Failure::refused(Conflict::default().into(), "nothing was done"))
        };
    }
    match deed.await {
        Ok(done) => {
            eprintln!("warning: {before}. Now it was done once more (--yes leaves out this warning).");
            Ok(done)
        }
        Err(failure) => Err(Failure { message: format!("{} ({before})", failure.message), ..failure }),
    }
}

fn at_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks an operator at a terminal; elsewhere nobody agrees.
pub fn agreed(question: &str) -> bool {
    if !at_terminal() {
        return false;
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    let read = std::io::stderr().flush().and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
