//! Playing the outside world in sandbox mode: moving a profile's meter and the supplier's mood.

use crate::app::App;
use crate::domain::esim::{EsimStatus, Usage};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::store::orders;
use crate::supplier::sim::Mood;

/// Uses data on a profile, installs it or lets it expire, as a phone would.
pub async fn move_usage(
    app: &App,
    iccid: &str,
    used_mb: Option<i64>,
    status: Option<EsimStatus>,
) -> Result<Usage> {
    let iccid = iccid.to_string();
    let order = app.store.read(move |tx| orders::by_iccid(tx, &iccid)).await?.ok_or(Refusal::EsimNotFound)?;
    let esim = order.esim.ok_or_else(|| Error::fault("a delivered order without its eSIM"))?;
    let moved = app.sim.move_usage(&esim.profile, used_mb, status, app.now()).await?;
    Ok(moved.ok_or(Refusal::EsimCancelled)?)
}

pub async fn set_mood(app: &App, mood: Mood, delay_ms: i64, count: Option<i64>) -> Result<()> {
    app.sim.behave(mood, delay_ms, count, app.now()).await
}
