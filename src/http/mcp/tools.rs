//! The tools, each with a description that a language model chooses by. There are fifteen, as the specification names
//! them; more would make the choice harder. A tool parses, calls one operation and renders.

mod buying;
mod cancel;
mod catalog;
mod checkout;
mod coupons;
mod knowledge;
mod login;
mod orders;
mod purchase;
mod topup;
mod usage;
mod wallet;

use std::pin::Pin;

use rmcp::model::{Tool as Listing, ToolAnnotations};
use serde_json::Value;

use super::call::{Call, Output};
use super::input::Input;
use super::schema;
use crate::error::Result;

/// How long a list may be: a model reads all of a result.
const MOST_BYTES: usize = 24 * 1024;

pub type Answering = Pin<Box<dyn Future<Output = Result<Output>> + Send>>;

pub struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub hints: Hints,
    pub input: Input,
    pub output: Value,
    pub run: fn(Call) -> Answering,
}

/// All four are always stated: a client assumes the worst of one that is missing.
#[derive(Clone, Copy)]
pub struct Hints {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

const READS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
/// Asks somebody outside: a mail server, a carrier.
const ASKS_OUTSIDE: Hints =
    Hints { read_only: false, destructive: false, idempotent: true, open_world: true };
const BUYS: Hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: true };

/// Every tool, in the order of a customer's journey.
pub fn all() -> Vec<Tool> {
    vec![
        catalog::search(),
        knowledge::tool(),
        coupons::list(),
        checkout::link(),
        login::send_code(),
        login::verify_code(),
        coupons::validate(),
        wallet::balance(),
        purchase::tool(),
        orders::list(),
        usage::tool(),
        topup::packages(),
        topup::purchase(),
        cancel::tool(),
        wallet::transactions(),
    ]
}

impl Tool {
    /// As it is listed to clients.
    pub fn listing(&self) -> Listing {
        let object = |schema: &Value| schema.as_object().cloned().unwrap_or_default();
        let Hints { read_only, destructive, idempotent, open_world } = self.hints;
        let mut listing = Listing::new(self.name, self.description, object(&self.input.schema));
        listing.title = Some(self.title.into());
        let output = match self.input.nothing_else {
            true => self.output.clone(),
            false => schema::naming_ignored(self.output.clone()),
        };
        listing.output_schema = Some(object(&output).into());
        listing.annotations = Some(
            ToolAnnotations::with_title(self.title)
                .read_only(read_only)
                .destructive(destructive)
                .idempotent(idempotent)
                .open_world(open_world),
        );
        listing
    }
}
