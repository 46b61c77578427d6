//! How a supplier is reached, as the operator's settings say it.

use std::time::Duration;

use secrecy::SecretString;

use crate::domain::amount::{Amount, Fiat};
use crate::domain::words::words;

words! {
    pub enum Kind: ALL, parse {
        Simulator = "simulator",
        EsimAccess = "esim-access",
        Airalo = "airalo",
    }
}

words! {
    /// How requests to the eSIM Access family prove who sends them.
    pub enum AuthMode: ALL, parse {
        /// The access code alone.
        Code = "code",
        /// The access code, and a signature made with the secret key.
        Signed = "signed",
        /// The same in capitals, as some sellers of the family want it.
        SignedUpper = "signed-upper",
        /// The access code and the secret key, each in a header.
        Secret = "secret",
    }
}

/// A supplier with a network address. Names live as long as the program: they are names of accounts in the books.
#[derive(Clone, Debug)]
pub struct Terms {
    pub name: &'static str,
    pub kind: Kind,
    /// Without a slash at its end.
    pub url: String,
    /// The access code or the client's id.
    pub client: SecretString,
    /// The secret key; `None` where the access code is enough.
    pub secret: Option<SecretString>,
    pub auth: AuthMode,
    /// The longest reference that the supplier takes.
    pub id_length: usize,
    /// Requests a second, for all instances together.
    pub rate: f64,
    pub quiet: Duration,
    pub currency: Fiat,
    /// Less than this left of what we paid in is an alarm.
    pub low_balance: Amount,
    /// How often its plans are taken in.
    pub sync_every: Duration,
    /// Whether a cancel may become a request that people at the supplier review.
    pub reviewed_cancels: bool,
}
