//! Live usage from the carrier, and the last known reading when the carrier does not answer.

use std::time::Duration;

use metrics::counter;

use super::buying::Fills;
use super::owned;
use crate::app::App;
use crate::domain::esim::Usage;
use crate::domain::ids::AccountNo;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::store::esims;
use crate::supplier::{Answer, Reading};

/// How long a live reading is worth waiting for; the last known one is at hand.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Report {
    pub usage: Usage,
    /// Whether the carrier did not answer, so that this is the last known reading.
    pub stale: bool,
}

/// What an eSIM has used; also its ICCID.
pub async fn report(app: &App, account: AccountNo, esim: &Fills) -> Result<(String, Report)> {
    let order = owned::named(app, account, esim).await?;
    let report = read(app, &order).await?;
    let iccid = order.esim.map(|esim| esim.iccid).ok_or(Refusal::EsimNotFound)?;
    Ok((iccid, report))
}

pub(super) async fn read(app: &App, order: &Order) -> Result<Report> {
    let esim = order.esim.as_ref().ok_or_else(|| Error::fault("a delivered order without its eSIM"))?;
    let supplier = app.supplier(&order.supplier)?;
    let ask = supplier.usage(Reading { profile: &esim.profile, now: app.now() });
    let patience = PATIENCE.min(Duration::from_millis(app.settings.supplier_timeout_ms.unsigned_abs()));
    let usage = match tokio::time::timeout(patience, ask).await {
        Ok(Answer::Done(usage)) => Some(usage),
        Ok(Answer::Refused(_) | Answer::NotSent(_) | Answer::Doubt(_)) | Err(_) => None,
    };
    let outcome = if usage.is_some() { "done" } else { "failed" };
    counter!("simgate_supplier_calls_total", "call" => "usage", "outcome" => outcome).increment(1);
    let stale = usage.is_none();
    let mut usage = usage.or_else(|| esim.last_usage.clone()).ok_or(Refusal::CarrierUnavailable)?;
    if order.status == OrderStatus::Cancelled {
        usage = usage.given_back();
    }
    if !stale {
        keep(app, order, &usage).await?;
    }
    Ok(Report { usage, stale })
}

/// Stores a reading that says something new; an unchanged one costs no write.
async fn keep(app: &App, order: &Order, usage: &Usage) -> Result<()> {
    let known = order.esim.as_ref().and_then(|esim| esim.last_usage.as_ref());
    if known.is_some_and(|known| Usage { as_of: usage.as_of, ..known.clone() } == *usage) {
        return Ok(());
    }
    let (id, usage) = (order.id.clone(), usage.clone());
    match app.store.write(order.account.0, move |tx| esims::save_usage(tx, &id, &usage)).await {
        // The caller has the reading; storing it can wait for a quieter moment.
        Err(Error::Refused(Refusal::Overloaded)) => Ok(()),
        kept => kept,
    }
}
