//! A plan: what can be bought. `BASE` is a new eSIM, `TOPUP` is more data on one that exists.

use super::money::Usd;
use super::words::words;

words! {
    pub enum PlanType: ALL, parse {
        Base = "BASE",
        Topup = "TOPUP",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub code: String,
    pub name: String,
    pub plan_type: PlanType,
    /// The coverage that a base plan shares with the top-ups that fit it.
    pub family: String,
    pub countries: Vec<String>,
    /// 1 GB is 1024 MB.
    pub data_mb: i64,
    pub duration_days: i64,
    pub operator: String,
    pub cost: Usd,
    pub wholesale: Usd,
    pub retail: Usd,
}

/// The price list every partner has at first.
pub const DEFAULT_PRICE_LIST: &str = "default";
/// The list that users pay. Its prices are the plans' own retail prices, so nothing is prepared or kept for it.
pub const RETAIL_PRICE_LIST: &str = "retail";
