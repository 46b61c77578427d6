//! What an eSIM has used, as answers show it and events carry it.

use serde::Serialize;
use utoipa::ToSchema;

use super::dates::iso;
use super::{EsimStatusWord, gigabytes};
use crate::domain::esim::Usage;
use crate::domain::order::Order;

/// An eSIM as it stands after a reading.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EsimFacts)]
pub struct EsimFacts {
    /// The order that delivered it.
    #[schema(example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub order_id: String,
    /// The reference of that order, as it was sent.
    #[schema(required = true)]
    pub partner_ref_id: Option<String>,
    #[schema(example = "8901234567890123455")]
    pub iccid: String,
    pub status: EsimStatusWord,
    #[schema(example = 5.0, minimum = 0)]
    pub total_gb: f64,
    #[schema(example = 3.75, minimum = 0)]
    pub used_gb: f64,
    #[schema(example = 1.25, minimum = 0)]
    pub remaining_gb: f64,
    #[schema(example = 75.0, minimum = 0, maximum = 100)]
    pub percent_used: f64,
    /// When the carrier took this reading.
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub as_of: String,
    #[schema(required = true, format = DateTime)]
    pub expires_at: Option<String>,
}

impl EsimFacts {
    pub fn of(order: &Order, usage: &Usage) -> EsimFacts {
        EsimFacts {
            order_id: order.id.to_string(),
            partner_ref_id: order.given_reference().map(str::to_string),
            iccid: order.esim.as_ref().map(|esim| esim.iccid.clone()).unwrap_or_default(),
            status: EsimStatusWord(usage.status()),
            total_gb: gigabytes(usage.total_mb),
            used_gb: gigabytes(usage.used_mb),
            remaining_gb: remaining_gb(usage),
            percent_used: percent_used(usage),
            as_of: iso(usage.as_of),
            expires_at: usage.expires_at.map(iso),
        }
    }
}

/// The `data` of `esim.status_changed`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EsimStatusChanged)]
pub struct EsimStatusChanged {
    #[serde(flatten)]
    #[schema(inline)]
    pub esim: EsimFacts,
    /// NEW before the first reading.
    pub previous_status: EsimStatusWord,
}

/// The `data` of `esim.usage_threshold`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EsimUsageThreshold)]
pub struct EsimUsageThreshold {
    #[serde(flatten)]
    #[schema(inline)]
    pub esim: EsimFacts,
    /// How much of its data is used at least, in percent: 50, 75, 90 or 100.
    #[schema(example = 75, minimum = 50, maximum = 100)]
    pub threshold: i64,
}

/// What is left of an eSIM's data.
pub fn remaining_gb(usage: &Usage) -> f64 {
    gigabytes((usage.total_mb - usage.used_mb).max(0))
}

/// How much of an eSIM's data is used, to two decimals and never above 100.
pub fn percent_used(usage: &Usage) -> f64 {
    let percent = if usage.total_mb > 0 { usage.used_mb as f64 / usage.total_mb as f64 * 100.0 } else { 0.0 };
    ((percent * 100.0).round() / 100.0).min(100.0)
}
