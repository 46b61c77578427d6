//! Why a command did not do what it was asked, and the exit code that says so: 1 when it was refused or went
//! wrong, 2 when the command line or a setting must change first.

use serde::Serialize;

use crate::config::ConfigError;
use crate::domain::refusal::Refusal;
use crate::error::{Error, FaultKind};

#[derive(Debug)]
pub struct Failure {
    pub exit: u8,
    pub code: &'static str,
    pub message: String,
}

impl Failure {
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { exit: 2, code: "INVALID_REQUEST", message: message.into() }
    }

    /// A refusal told in the operator's words instead of the partner's.
    pub fn refused(refusal: Refusal, message: impl Into<String>) -> Failure {
        Failure { exit: 1, code: refusal.problem().code, message: message.into() }
    }

    /// The same, where the error is this refusal; any other keeps its own words.
    pub fn worded(error: Error, refusal: Refusal, message: impl Into<String>) -> Failure {
        if error.refusal() == Some(&refusal) { Failure::refused(refusal, message) } else { error.into() }
    }

    /// What a program reads on stdout.
    pub fn document(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct Document {
            success: bool,
            code: &'static str,
            error: String,
        }
        Document { success: false, code: self.code, error: self.message.clone() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let (exit, code) = match &error {
            Error::Refused(refusal) => (1, refusal.problem().code),
            Error::Fault(fault) => match fault.kind {
                FaultKind::Settings => (2, "INVALID_SETTINGS"),
                FaultKind::Conflict | FaultKind::Disconnected | FaultKind::NoRoom | FaultKind::Other => {
                    (1, "INTERNAL")
                }
            },
        };
        Failure { exit, code, message: error.to_string() }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure { exit: 2, code: "INVALID_SETTINGS", message: error.0 }
    }
}
