//! A plan: what can be bought. `BASE` is a new eSIM, `TOPUP` is more data on one that exists.

use std::sync::Arc;

use super::amount::Amount;
use super::cost::Billed;
use super::country;
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
    /// In capitals; callers may write it in any case.
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
    /// Shared by the plans of a snapshot that have the same.
    pub details: Arc<Details>,
    pub cost: Usd,
    /// How its supplier bills it, where that is not in dollars.
    pub billed: Option<Billed>,
    pub wholesale: Usd,
    pub retail: Usd,
}

impl Plan {
    /// The texts that a word search looks at: name, code and operator, and every name of the countries covered.
    pub fn searched_texts(&self) -> Vec<&str> {
        let mut texts = vec![self.name.as_str(), self.code.as_str(), self.operator.as_str()];
        for code in &self.countries {
            texts.push(code);
            if let Some(country) = country::by_code(code) {
                texts.push(country.name);
                texts.extend(country.aliases);
            }
        }
        texts
    }

    /// The order in which plans are listed: by coverage, size and time.
    pub fn list_order(&self) -> (&str, i64, i64, &str) {
        (&self.family, self.data_mb, self.duration_days, &self.code)
    }
}

/// A plan as a supplier sells it: by its own code, at our cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub code: String,
    pub name: String,
    pub plan_type: PlanType,
    /// The coverage that a base plan shares with the top-ups that fit it, in the supplier's words.
    pub family: String,
    /// In capitals and sorted.
    pub countries: Vec<String>,
    /// 1 GB is 1024 MB; `None` for a plan without an end.
    pub data_mb: Option<i64>,
    pub duration_days: i64,
    pub operator: String,
    pub cost: Amount,
    /// What the supplier thinks that people should pay.
    pub retail_hint: Option<Amount>,
    /// Whether it can be bought now.
    pub in_stock: bool,
    pub details: Details,
}

words! {
    /// What a plan's volume means.
    pub enum VolumeKind: ALL, parse {
        Fixed = "FIXED",
        /// So much a day; then slow, or nothing until the next day.
        DayPass = "DAY_PASS",
        Unlimited = "UNLIMITED",
    }
}

/// A network that a plan uses in a country.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    pub country: String,
    pub operator: String,
    /// As people write them: `4G`, `5G`.
    pub technologies: Vec<String>,
}

/// What suppliers say about a plan beyond its size, time and price. Nothing is known of what they do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    pub kind: Option<VolumeKind>,
    /// The fair-use rule of a day pass or an unlimited plan, in words.
    pub fair_use: Option<String>,
    pub networks: Vec<Carrier>,
    pub speed: Option<String>,
    /// When its time begins, in words.
    pub activation_policy: Option<String>,
    pub hotspot: Option<bool>,
    /// The countries where its traffic reaches the internet, ISO codes separated by commas.
    pub exit_country: Option<String>,
    pub top_up: Option<bool>,
    pub kyc_required: Option<bool>,
}

/// The code of a plan as somebody wrote it: its case does not count.
pub fn typed_code(text: &str) -> String {
    text.to_ascii_uppercase()
}

/// The price list every partner has at first.
pub const DEFAULT_PRICE_LIST: &str = "default";
/// The list that users pay.
pub const RETAIL_PRICE_LIST: &str = "retail";
