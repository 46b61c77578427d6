//! Completion scripts for shells.

use clap::Args;
use clap_complete::Shell;

use super::output::Record;

/// Print a completion script for a shell
#[derive(Args)]
#[command(
    after_help = "Example: simgate completions bash > ~/.local/share/bash-completion/completions/simgate"
)]
pub struct Completions {
    shell: Shell,
}

impl Completions {
    /// The script: plain for a shell, a field of the document with `--json`.
    pub fn run(&self) -> Record {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command_line(), "simgate", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        Record::new().with("shell", self.shell.to_string()).with("script", script.clone()).prose(script)
    }
}
