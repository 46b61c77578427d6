//! How the simulator behaves: its mode, and the rule by which its doubts are resolved.

use std::time::Duration;

use super::super::{Cause, DoubtRule, No};
use crate::domain::words::words;
use crate::error::{Error, Result};
use crate::store::sim;

words! {
    pub enum SupplierMode: ALL, parse {
        Ok = "ok",
        Reject = "reject",
        Unavailable = "unavailable",
        /// Sells, but does not answer.
        Timeout = "timeout",
        /// Answers after a while; a caller who hangs up first has bought nothing.
        Slow = "slow",
        /// Answers a new order with the profile of an earlier one that was delivered.
        Duplicate = "duplicate",
        /// Sells, and answers something unreadable.
        Malformed = "malformed",
        /// Sells; a cancel becomes a request that people decide.
        Reviewed = "reviewed",
        /// Does nothing, and does not answer.
        Silent = "silent",
        /// Sells without an answer, and shows the sale only after a while.
        Hidden = "hidden",
        /// Sells, and delivers after a while.
        Underway = "underway",
        /// Asks a tenth more than its list says, and refuses whoever expects less.
        PriceChanged = "price_changed",
        /// Sells for a tenth more than its list says.
        Dearer = "dearer",
        SoldOut = "sold_out",
        /// Our balance there is empty.
        NoFunds = "no_funds",
        /// Look-ups find nothing.
        Blind = "blind",
        /// Look-ups show only sales of other orders.
        Stranger = "stranger",
        /// Look-ups show another plan than was sold.
        WrongPackage = "wrong_package",
        /// Look-ups show two where one was sold.
        WrongQuantity = "wrong_quantity",
    }
}

words! {
    /// The rules that the simulator can play.
    pub enum RuleName: ALL, parse {
        Repeat = "repeat",
        Find = "find",
        List = "list",
        Claim = "claim",
    }
}

impl RuleName {
    /// Whether a repeated purchase sells again, so that sales are kept to be looked up.
    pub(super) fn sells_again(self) -> bool {
        matches!(self, RuleName::Find | RuleName::List)
    }
}

/// What a caller wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Sale,
    LookUp,
    /// Usage, cancels and claims.
    Other,
}

impl SupplierMode {
    pub(super) fn concerns(self, call: Call) -> bool {
        match self {
            SupplierMode::Hidden
            | SupplierMode::Underway
            | SupplierMode::PriceChanged
            | SupplierMode::Dearer
            | SupplierMode::SoldOut
            | SupplierMode::NoFunds => call == Call::Sale,
            SupplierMode::Blind
            | SupplierMode::Stranger
            | SupplierMode::WrongPackage
            | SupplierMode::WrongQuantity => call == Call::LookUp,
            SupplierMode::Ok
            | SupplierMode::Reject
            | SupplierMode::Unavailable
            | SupplierMode::Timeout
            | SupplierMode::Slow
            | SupplierMode::Duplicate
            | SupplierMode::Malformed
            | SupplierMode::Silent => true,
            SupplierMode::Reviewed => call == Call::Other,
        }
    }

    /// What it refuses everything with.
    pub(super) fn refusal(self) -> Option<No> {
        match self {
            SupplierMode::Reject => Some("the simulator was told to refuse".into()),
            SupplierMode::SoldOut => {
                Some(No::because(Cause::SoldOut, "the simulator was told that it has none left"))
            }
            SupplierMode::NoFunds => {
                Some(No::because(Cause::NoFunds, "the simulator was told that our balance is empty"))
            }
            _ => None,
        }
    }
}

/// How it behaves from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mood {
    pub mode: SupplierMode,
    pub delay_ms: i64,
    /// For how many calls; `None` until it is told otherwise.
    pub count: Option<i64>,
    pub rule: RuleName,
    pub quiet_s: i64,
}

impl From<SupplierMode> for Mood {
    fn from(mode: SupplierMode) -> Mood {
        Mood { mode, delay_ms: 0, count: None, rule: RuleName::Repeat, quiet_s: USUAL_QUIET_S }
    }
}

/// The quiet time of suppliers that say nothing else.
pub const USUAL_QUIET_S: i64 = 900;

impl Mood {
    pub(super) fn read(stored: &sim::Mode) -> Result<Mood> {
        let unknown = || Error::fault("unknown simulator mode");
        Ok(Mood {
            mode: SupplierMode::parse(&stored.word).ok_or_else(unknown)?,
            delay_ms: stored.delay_ms,
            count: stored.remaining,
            rule: RuleName::parse(&stored.doubt_rule).ok_or_else(unknown)?,
            quiet_s: stored.quiet_s,
        })
    }

    pub(super) fn doubt_rule(self) -> DoubtRule {
        let quiet = Duration::from_secs(self.quiet_s.unsigned_abs());
        match self.rule {
            RuleName::Repeat => DoubtRule::RepeatIsSafe,
            RuleName::Find => DoubtRule::FindByReference { quiet },
            RuleName::List => DoubtRule::FindInList { quiet },
            RuleName::Claim => DoubtRule::ClaimFirst,
        }
    }
}
