//! Sandbox only: play the phone and the supplier. These routes do not exist in live mode.

use axum::extract::State as FromState;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::State;
use super::auth::Anyone;
use super::fields::{Fields, JsonBody};
use super::problem::Refused;
use super::wire;
use crate::domain::esim::{EsimStatus, is_iccid};
use crate::domain::refusal::Refusal;
use crate::ops::sandbox;
use crate::ops::usage::Report;
use crate::supplier::sim::Mood;

/// Uses data, installs or expires a profile: `{iccid, usedGb?, status?}`.
pub async fn usage(
    _: Anyone,
    FromState(state): FromState<State>,
    body: JsonBody,
) -> Result<Response, Refused> {
    let mut fields = Fields::parse(&body)?;
    let iccid = fields.required_text("iccid", 20);
    let used_mb = fields.gigabytes("usedGb");
    let allowed = "NEW, INSTALLED, ACTIVE, DEPLETED, EXPIRED";
    let settable = |text: &str| EsimStatus::parse(text).filter(|status| *status != EsimStatus::Cancelled);
    let status = fields.word("status", allowed, settable);
    fields.finish()?;
    if !is_iccid(&iccid) {
        return Err(Refusal::field("iccid", "must have 19 or 20 digits").into());
    }
    let usage = sandbox::move_usage(&state.app, &iccid, used_mb, status).await?;
    let view = wire::usage_view(&iccid, &Report { usage, stale: false });
    Ok((StatusCode::OK, axum::Json(view)).into_response())
}

/// Sets the supplier's mood: `{mode, delayMs?, count?}`.
pub async fn supplier(
    _: Anyone,
    FromState(state): FromState<State>,
    body: JsonBody,
) -> Result<Response, Refused> {
    let mut fields = Fields::parse(&body)?;
    let allowed = "ok, reject, unavailable, timeout, slow, duplicate, malformed";
    let mood = fields.word("mode", allowed, Mood::parse);
    let delay_ms = fields.whole("delayMs", 0, 3_600_000).unwrap_or(1_000);
    let count = fields.whole("count", 1, 1_000_000);
    fields.finish()?;
    let Some(mood) = mood else { return Err(Refusal::field("mode", "is required").into()) };
    sandbox::set_mood(&state.app, mood, delay_ms, count).await?;
    let view =
        serde_json::json!({ "success": true, "mode": mood.as_str(), "delayMs": delay_ms, "count": count });
    Ok((StatusCode::OK, axum::Json(view)).into_response())
}
