//! How values are written in JSON, with the words that only doors say.

use crate::domain::checkout::Stage;
use crate::domain::plan::{PlanType, VolumeKind};
use crate::domain::refusal::Difference;
use crate::ops::jobs::Fate;
use crate::ops::sandbox::ChainMode;
use crate::supplier::sim::{RuleName, SupplierMode};
pub use crate::wire::dates::{date, iso, iso_exact, parse as parse_time, readable, to_the_second};
use crate::wire::vocabulary;
pub use crate::wire::{
    CancelReasonWord, CurrencyWord, EsimStatusWord, EventWord, InvoiceStatusWord, Money, NetworkWord,
    OrderStatusWord, WebhookStatusWord, gigabytes,
};

vocabulary! {
    PlanTypeWord PlanType "PlanType";
    PlanKindWord VolumeKind "PlanKind";
    StageWord Stage "PurchaseStatus";
    DifferenceWord Difference "Difference";
    SupplierModeWord SupplierMode "SupplierMode";
    DoubtRuleWord RuleName "DoubtRule";
    ChainModeWord ChainMode "ChainMode";
    JobModeWord Fate "JobMode";
}
