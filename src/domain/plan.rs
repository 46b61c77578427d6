//! A plan: what can be bought. `BASE` is a new eSIM, `TOPUP` is more data on one that exists.

use super::money::Usd;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanType {
    Base,
    Topup,
}

impl PlanType {
    pub const ALL: [PlanType; 2] = [PlanType::Base, PlanType::Topup];

    pub fn as_str(self) -> &'static str {
        match self {
            PlanType::Base => "BASE",
            PlanType::Topup => "TOPUP",
        }
    }

    pub fn parse(text: &str) -> Option<PlanType> {
        PlanType::ALL.into_iter().find(|plan_type| plan_type.as_str() == text)
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
