//! A plan: what can be bought. `BASE` is a new eSIM, `TOPUP` is more data on one that exists.

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
    pub cost: Usd,
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

/// The code of a plan as somebody wrote it: its case does not count.
pub fn typed_code(text: &str) -> String {
    text.to_ascii_uppercase()
}

/// The price list every partner has at first.
pub const DEFAULT_PRICE_LIST: &str = "default";
/// The list that users pay. It holds the plans' own retail prices, so nothing is prepared or stored for it.
pub const RETAIL_PRICE_LIST: &str = "retail";
