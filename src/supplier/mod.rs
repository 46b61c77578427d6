//! Who provisions eSIMs. A supplier sells by its own codes and bills in its own currency; it says how a sale in doubt is
//! resolved, and what else it can do. The gateway asks with our order id as the reference and treats every uncertain
//! answer as a doubt. Only suppliers that say how a doubt is resolved are accepted.

pub mod airalo;
pub mod esim_access;
pub mod sim;
pub mod sim_catalog;
pub mod terms;
pub mod turns;
pub mod unknown;
pub mod wire;

use std::pin::Pin;
use std::time::Duration;

use crate::domain::amount::Amount;
use crate::domain::esim::{Activation, Usage};
use crate::domain::ids::OrderId;
use crate::domain::order::CancelReason;
use crate::domain::plan::Listing;
use crate::domain::time::Time;
use crate::domain::words::words;

/// The outcome of a question.
#[derive(Debug)]
pub enum Answer<T> {
    Done(T),
    /// The supplier said no: it did not and will not do it.
    Refused(No),
    /// The question certainly never left us.
    NotSent(String),
    /// Anything else: a time-out, a broken line, an unreadable answer.
    Doubt(String),
}

impl<T> Answer<T> {
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Answer::Done(done) => Answer::Done(change(done)),
            Answer::Refused(no) => Answer::Refused(no),
            Answer::NotSent(why) => Answer::NotSent(why),
            Answer::Doubt(why) => Answer::Doubt(why),
        }
    }

    /// Goes on with what was asked for; any other outcome stays.
    pub fn and_then<U>(self, next: impl FnOnce(T) -> Answer<U>) -> Answer<U> {
        match self {
            Answer::Done(done) => next(done),
            Answer::Refused(no) => Answer::Refused(no),
            Answer::NotSent(why) => Answer::NotSent(why),
            Answer::Doubt(why) => Answer::Doubt(why),
        }
    }

    /// What was asked for, or why there is none.
    pub fn told(self) -> Result<T, String> {
        match self {
            Answer::Done(done) => Ok(done),
            Answer::Refused(no) => Err(no.said),
            Answer::NotSent(why) | Answer::Doubt(why) => Err(why),
        }
    }

    /// Whether the supplier answered, yes or no.
    pub fn is_an_answer(&self) -> bool {
        matches!(self, Answer::Done(_) | Answer::Refused(_))
    }

    /// The word for metrics.
    pub fn outcome(&self) -> &'static str {
        match self {
            Answer::Done(_) => "done",
            Answer::Refused(_) => "refused",
            Answer::NotSent(_) => "not_sent",
            Answer::Doubt(_) => "doubt",
        }
    }
}

/// A refusal: what it means for us, and the supplier's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct No {
    pub cause: Cause,
    pub said: String,
}

words! {
    pub enum Cause: ALL {
        /// Nothing more is known.
        Rejected = "rejected",
        /// It has no profiles of this plan left, or no such plan.
        SoldOut = "sold_out",
        /// It costs more than we expected.
        PriceChanged = "price_changed",
        /// Our prepaid balance there is empty.
        NoFunds = "no_funds",
    }
}

impl No {
    pub fn because(cause: Cause, said: impl Into<String>) -> No {
        No { cause, said: said.into() }
    }
}

impl From<&str> for No {
    fn from(said: &str) -> No {
        No::because(Cause::Rejected, said)
    }
}

/// How a sale in doubt is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtRule {
    /// Asking again with the same order id returns the same sale.
    RepeatIsSafe,
    /// Asking again would buy again. `find` looks for the sale by our order id. When it stays empty after the quiet time,
    /// one more purchase is allowed.
    FindByReference { quiet: Duration },
    /// The same, where the supplier keeps no reference of ours: `find` looks in its list of sales by time. Only one order
    /// of a plan may be open at a time.
    FindInList { quiet: Duration },
    /// A profile is chosen with `claim` and written down before it is bought, so that asking again is about the same one.
    ClaimFirst,
}

impl DoubtRule {
    pub fn word(self) -> &'static str {
        match self {
            DoubtRule::RepeatIsSafe => "repeat",
            DoubtRule::FindByReference { .. } => "find",
            DoubtRule::FindInList { .. } => "list",
            DoubtRule::ClaimFirst => "claim",
        }
    }
}

/// How an unused profile is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelWay {
    AtOnce,
    /// People at the supplier decide about a request.
    Reviewed,
    Never,
}

impl CancelWay {
    pub fn word(self) -> &'static str {
        match self {
            CancelWay::AtOnce => "at once",
            CancelWay::Reviewed => "reviewed",
            CancelWay::Never => "never",
        }
    }
}

/// What a supplier can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Abilities {
    pub doubt: DoubtRule,
    pub cancel: CancelWay,
    pub top_up: bool,
    pub usage: bool,
    /// Whether it is told the cost that we expect, and refuses a sale that costs more.
    pub checks_cost: bool,
    /// The requests a second that all instances together may send.
    pub rate: f64,
    /// The least time between two readings of one profile.
    pub reading_every: Duration,
    /// How long a new sale may be missing in what it lists. A refusal that follows a doubt is not believed before: the first
    /// question may have taken the last profile, or the last of our money.
    pub listed_within: Duration,
}

/// A profile as the supplier sold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The supplier's own name for it, with all that its later calls need.
    pub id: String,
    pub iccid: String,
    pub activation: Activation,
    /// Until when it can be installed, and given back.
    pub install_by: Option<Time>,
}

/// What became of a purchase that the supplier accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bought<T> {
    Delivered {
        what: T,
        /// The supplier's own number for the sale.
        number: Option<String>,
        /// What it really cost, where the supplier says so.
        cost: Option<Amount>,
    },
    /// It is sold, and the profile follows. Asked again with this number, the supplier tells how it stands.
    Underway { number: String },
}

impl<T> Bought<T> {
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Bought<U> {
        match self {
            Bought::Delivered { what, number, cost } => {
                Bought::Delivered { what: change(what), number, cost }
            }
            Bought::Underway { number } => Bought::Underway { number },
        }
    }
}

pub struct Provision<'a> {
    pub order: &'a OrderId,
    /// The supplier's code of the plan.
    pub code: &'a str,
    /// The most that it may cost.
    pub expected_cost: Amount,
    pub data_mb: i64,
    pub duration_days: i64,
    pub ordered_at: Time,
    /// The supplier's number for this sale, when it has told one; under `ClaimFirst`, what was claimed.
    pub number: Option<&'a str>,
}

pub struct TopUp<'a> {
    pub order: &'a OrderId,
    pub profile: &'a str,
    /// The supplier's code of the bundle.
    pub code: &'a str,
    pub expected_cost: Amount,
    pub data_mb: i64,
    pub duration_days: i64,
    pub ordered_at: Time,
    pub number: Option<&'a str>,
}

/// A look for a sale that we do not know to have happened.
pub struct Find<'a> {
    pub order: &'a OrderId,
    pub code: &'a str,
    pub ordered_at: Time,
    /// The profile that a top-up fills.
    pub profile: Option<&'a str>,
}

/// A sale that a look-up found. The caller compares all of it before it believes that the sale is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sale {
    /// Our order id, as the supplier has it; empty where it keeps none.
    pub reference: String,
    pub number: String,
    pub code: String,
    pub quantity: i64,
    pub at: Time,
    pub cost: Option<Amount>,
    /// What was delivered; `None` for a top-up, and while the profile follows.
    pub profile: Option<Profile>,
    /// The ICCID that was sold or filled, where the supplier says so.
    pub iccid: Option<String>,
}

pub struct Reading<'a> {
    pub profile: &'a str,
    pub now: Time,
}

pub struct Cancel<'a> {
    pub profile: &'a str,
    pub cost: Amount,
}

/// A supplier's answer to a cancel.
#[derive(Debug)]
pub enum Cancelled {
    /// Gone for good; this much of its cost comes back.
    Yes {
        returned: Amount,
    },
    No(CancelReason),
    /// People at the supplier decide; this is its name for our request. Only from those that cancel by review. A second
    /// request must not be sent.
    Requested {
        request: String,
    },
}

/// A sale in the supplier's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sold {
    /// The order id that we asked with.
    pub order: OrderId,
    /// What it sold: an ICCID, or its own name for the profile that was topped up.
    pub what: String,
}

/// What a supplier's message says. It is never believed: it only makes us ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Something happened to a sale, or to the profile that came of it.
    About {
        /// The message's own id, by which it is known when it comes again.
        message: Option<String>,
        /// The supplier's number of the sale.
        number: Option<String>,
        /// The profile's ICCID.
        iccid: Option<String>,
    },
    /// Nothing that we would ask about.
    Nothing,
    /// Its signature is wrong.
    Forged,
}

impl Heard {
    /// The word for metrics.
    pub fn outcome(&self) -> &'static str {
        match self {
            Heard::About { .. } => "heard",
            Heard::Nothing => "nothing",
            Heard::Forged => "forged",
        }
    }
}

pub type Ask<'a, T> = Pin<Box<dyn Future<Output = Answer<T>> + Send + 'a>>;

pub trait Supplier: Send + Sync {
    /// The name that the operator gave it; it is also its name in the ledger's accounts.
    fn name(&self) -> &'static str;
    fn abilities(&self) -> Abilities;
    /// Everything it sells, with our cost.
    fn plans(&self) -> Ask<'_, Vec<Listing>>;
    /// Chooses a profile for an order; only under `ClaimFirst`.
    fn claim<'a>(&'a self, _ask: Provision<'a>) -> Ask<'a, String> {
        Box::pin(async { Answer::Refused("this supplier knows no claims".into()) })
    }
    fn provision<'a>(&'a self, ask: Provision<'a>) -> Ask<'a, Bought<Profile>>;
    fn top_up<'a>(&'a self, ask: TopUp<'a>) -> Ask<'a, Bought<()>>;
    /// The sales that may be this order's; none is an empty list.
    fn find<'a>(&'a self, _ask: Find<'a>) -> Ask<'a, Vec<Sale>> {
        Box::pin(async { Answer::Refused("this supplier has no look-up of sales".into()) })
    }
    fn usage<'a>(&'a self, ask: Reading<'a>) -> Ask<'a, Usage>;
    fn cancel<'a>(&'a self, ask: Cancel<'a>) -> Ask<'a, Cancelled>;
    /// What is left of the money that we paid in.
    fn balance(&self) -> Ask<'_, Amount>;
    /// The header that signs its messages, if it signs them.
    fn signature_header(&self) -> Option<&'static str> {
        None
    }
    /// What a message of its says. `signature` is the header that came with it.
    fn hear(&self, _body: &[u8], _signature: Option<&str>) -> Heard {
        Heard::Nothing
    }
    /// Everything it sold us since then, if it keeps a list: this shows what a restored backup does not know.
    fn sold(&self, since: Time) -> Ask<'_, Vec<Sold>>;
}
