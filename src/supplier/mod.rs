//! Who provisions eSIMs. The gateway asks with our order id as the idempotency key and treats every uncertain answer as
//! a doubt. Only suppliers that say how a doubt is resolved are accepted.

pub mod sim;
pub mod sim_catalog;

use std::pin::Pin;

use crate::domain::esim::{Activation, Usage};
use crate::domain::ids::OrderId;
use crate::domain::money::Usd;
use crate::domain::order::CancelReason;
use crate::domain::plan::Plan;
use crate::domain::time::Time;

/// The outcome of a question.
#[derive(Debug)]
pub enum Answer<T> {
    Done(T),
    /// The supplier said no: it did not and will not do it.
    Refused(String),
    /// The question certainly never left us.
    NotSent(String),
    /// Anything else: a time-out, a broken line, an unreadable answer.
    Doubt(String),
}

/// How a doubt is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtRule {
    /// Asking again with the same order id returns the same sale.
    RepeatIsSafe,
}

/// A profile as the supplier sold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The supplier's own name for it.
    pub id: String,
    pub iccid: String,
    pub activation: Activation,
    /// Until when it can be installed, and given back.
    pub install_by: Option<Time>,
}

pub struct Provision<'a> {
    pub order: &'a OrderId,
    pub package_code: &'a str,
    pub data_mb: i64,
    pub duration_days: i64,
    pub ordered_at: Time,
}

pub struct TopUp<'a> {
    pub order: &'a OrderId,
    pub profile: &'a str,
    pub package_code: &'a str,
    pub data_mb: i64,
    pub duration_days: i64,
    pub ordered_at: Time,
}

pub struct Reading<'a> {
    pub profile: &'a str,
    pub now: Time,
}

pub struct Cancel<'a> {
    pub profile: &'a str,
    pub cost: Usd,
}

/// A supplier's answer to a cancel.
#[derive(Debug)]
pub enum Cancelled {
    /// Gone for good; this much of its cost comes back.
    Yes {
        returned: Usd,
    },
    No(CancelReason),
}

/// A sale in the supplier's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sold {
    /// The order id that we asked with.
    pub order: OrderId,
    /// What it sold: an ICCID, or its own name for the profile that was topped up.
    pub what: String,
}

pub type Ask<'a, T> = Pin<Box<dyn Future<Output = Answer<T>> + Send + 'a>>;

pub trait Supplier: Send + Sync {
    /// Its name in the ledger's accounts.
    fn name(&self) -> &'static str;
    fn doubt_rule(&self) -> DoubtRule;
    /// Everything it sells, with our cost.
    fn plans(&self) -> Ask<'_, Vec<Plan>>;
    fn provision<'a>(&'a self, ask: Provision<'a>) -> Ask<'a, Profile>;
    fn top_up<'a>(&'a self, ask: TopUp<'a>) -> Ask<'a, ()>;
    fn usage<'a>(&'a self, ask: Reading<'a>) -> Ask<'a, Usage>;
    fn cancel<'a>(&'a self, ask: Cancel<'a>) -> Ask<'a, Cancelled>;
    /// Everything it ever sold us, if it keeps a list: this shows what a restored backup does not know.
    fn sold(&self) -> Ask<'_, Vec<Sold>>;
}
