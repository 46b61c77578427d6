//! Whether partners get their events.

use super::Check;
use crate::app::App;
use crate::domain::webhook::WebhookStatus;
use crate::error::Result;
use crate::store::deliveries;
use crate::store::tx::Tx;

/// How long an event may wait before the operator should know.
const LATE_MS: i64 = 60 * 60_000;

pub async fn deliveries(app: &App) -> Result<Check> {
    let read = |tx: &mut Tx| Ok((deliveries::counts(tx)?, deliveries::oldest(tx)?, deliveries::turn(tx)?));
    let (counts, oldest, turn) = app.store.read(read).await?;
    if counts.is_empty() {
        return Ok(Check::ok("webhooks", "there are none"));
    }
    let now = app.now();
    let count = |status| counts.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count);
    let [active, pending, disabled] =
        [WebhookStatus::Active, WebhookStatus::Pending, WebhookStatus::Disabled].map(count);
    let by = match turn.filter(|(_, until)| *until >= now) {
        Some((holder, _)) => format!("instance {}", holder.split(' ').next().unwrap_or_default()),
        None => "nobody now".into(),
    };
    let waited_ms = oldest.map_or(0, |oldest| (now.micros() - oldest.micros()).max(0) / 1_000);
    let finding = format!(
        "{active} active, {pending} not tested yet, {disabled} disabled; served by {by}; the oldest event has waited for {} s",
        waited_ms / 1_000
    );
    if waited_ms < LATE_MS {
        return Ok(Check::ok("webhooks", finding));
    }
    let advice = "see `simgate webhook list` and `simgate webhook deliveries` for what the endpoints answer";
    Ok(Check::warn("webhooks", finding, advice))
}
