//! Sandbox only: play the phone, the supplier, the customer who pays, the chain, and the failure of a job. These routes
//! do not exist in live mode.

use axum::http::StatusCode;
use serde::Serialize;

use crate::domain::esim::EsimStatus;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json};
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::{EMAIL_CHARS, Fields, JsonBody, Query, iccid, invoice_id, listed};
use crate::http::kit::orders::usage_view;
use crate::http::kit::payment::{named_currency, named_network};
use crate::http::kit::wire::{CurrencyWord, Money, NetworkWord, iso};
use crate::ops::jobs::Fate;
use crate::ops::mail;
use crate::ops::sandbox::{self, ChainMode, ChainOrder, ChainState, Keep, Means};
use crate::ops::usage::Report;
use crate::supplier::sim::SupplierMode;

const MANY_BLOCKS: i64 = 1_000_000;
/// Ten seconds of blocks.
const USUAL_LAG: i64 = 50;

/// Uses data, installs or expires a profile: `{iccid, usedGb?, status?}`.
pub async fn usage(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["iccid", "usedGb", "status"]);
    let number = fields.required_text("iccid", 20);
    let used_mb = fields.gigabytes("usedGb");
    let allowed = "NEW, INSTALLED, ACTIVE, DEPLETED, EXPIRED";
    let settable = |text: &str| EsimStatus::parse(text).filter(|status| *status != EsimStatus::Cancelled);
    let status = fields.word("status", allowed, settable);
    fields.finish()?;
    let iccid = iccid(number)?;
    let usage = sandbox::move_usage(&state.app, &iccid, used_mb, status).await?;
    json(StatusCode::OK, &usage_view(&iccid, &Report { usage, stale: false }))
}

/// Sets the supplier's mode: `{mode, delayMs?, count?}`.
pub async fn supplier(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["mode", "delayMs", "count"]);
    let allowed = "ok, reject, unavailable, timeout, slow, duplicate, malformed";
    let mode = fields.required_word("mode", allowed, SupplierMode::parse);
    let delay_ms = fields.whole("delayMs", 0, 3_600_000).unwrap_or(1_000);
    let count = fields.whole("count", 1, 1_000_000);
    let mode = fields.finish_with(mode)?;
    sandbox::set_mode(&state.app, mode, delay_ms, count).await?;
    supplier_view(mode, delay_ms, count)
}

/// Shows the supplier's mode, and for how many more calls it holds (null: until it is set again).
pub async fn supplier_mood(_: Anyone, state: State) -> Answer {
    let (mode, delay_ms, count) = sandbox::mode(&state.app).await?;
    supplier_view(mode, delay_ms, count)
}

fn supplier_view(mode: SupplierMode, delay_ms: i64, count: Option<i64>) -> Answer {
    let view =
        serde_json::json!({ "success": true, "mode": mode.as_str(), "delayMs": delay_ms, "count": count });
    json(StatusCode::OK, &view)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MailView {
    to: String,
    subject: &'static str,
    text: String,
    created_at: String,
}

/// The mails that would have been sent to an address, newest first: `?email=`.
pub async fn outbox(_: Anyone, state: State, mut query: Query) -> Answer {
    let email = query.text("email", EMAIL_CHARS);
    query.finish()?;
    let email = email.ok_or_else(|| Refusal::field("email", "is required"))?;
    let shown = |mail: mail::Shown| MailView {
        to: mail.to.to_string(),
        subject: mail.subject,
        text: mail.text,
        created_at: iso(mail.created_at),
    };
    let emails: Vec<MailView> = mail::outbox(&state.app, &email).await?.into_iter().map(shown).collect();
    let view = serde_json::json!({ "success": true, "emails": emails });
    json(StatusCode::OK, &view)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PaidView {
    success: bool,
    tx_hash: String,
    network: NetworkWord,
    currency: CurrencyWord,
    amount_usd: Money,
}

/// Pays an invoice on its simulated chain: `{invoiceId, amountUsd?, network?, currency?}`. Another network or token
/// than the invoice's plays a customer's mistake.
pub async fn pay(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["invoiceId", "amountUsd", "network", "currency"]);
    let invoice = fields.required_text("invoiceId", 128);
    let means = Means {
        amount: fields.positive_usd("amountUsd"),
        network: fields.word("network", &listed(Network::ALL.map(Network::as_str)), named_network),
        currency: fields.word("currency", &listed(Currency::ALL.map(Currency::as_str)), named_currency),
    };
    fields.finish()?;
    let paid = sandbox::pay(&state.app, &invoice_id(invoice)?, means).await?;
    let view = PaidView {
        success: true,
        tx_hash: paid.tx_hash,
        network: NetworkWord(paid.network),
        currency: CurrencyWord(paid.currency),
        amount_usd: Money(paid.amount),
    };
    json(StatusCode::OK, &view)
}

/// Sets a simulated chain's mode or replaces its newest blocks: `{network, mode?, behind?, reorg?, keep?}`. `reorg`
/// says how many blocks; `keep` what becomes of the transfers in them: gone (false, or left out), mined again in
/// place (true), or this many blocks later (a number).
pub async fn chain(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["network", "mode", "behind", "reorg", "keep"]);
    let networks = listed(Network::ALL.map(Network::as_str));
    let network = fields.required_word("network", &networks, named_network);
    let mode = fields.word("mode", "ok, down, lagging, lying", ChainMode::parse);
    let behind = fields.whole("behind", 0, MANY_BLOCKS).unwrap_or(USUAL_LAG);
    let depth = fields.whole("reorg", 1, MANY_BLOCKS);
    let keep = match fields.flag("keep") {
        Some(true) => Keep::Later(0),
        Some(false) => Keep::Nothing,
        None => fields.whole("keep", 0, MANY_BLOCKS).map_or(Keep::Nothing, Keep::Later),
    };
    let network = fields.finish_with(network)?;
    let order = ChainOrder { mode, behind, reorg: depth.map(|depth| (depth, keep)) };
    let now = sandbox::move_chain(&state.app, network, order).await?;
    let view = serde_json::json!({
        "success": true,
        "network": network.as_str(),
        "mode": now.mode.as_str(),
        "behind": now.behind,
        "head": now.head,
    });
    json(StatusCode::OK, &view)
}

/// Shows the mode of every simulated chain.
pub async fn chain_moods(_: Anyone, state: State) -> Answer {
    let view = |chain: ChainState| {
        serde_json::json!({
            "network": chain.network.as_str(),
            "mode": chain.mode.as_str(),
            "behind": chain.behind,
            "head": chain.head,
        })
    };
    let chains: Vec<serde_json::Value> = sandbox::chains(&state.app).await?.into_iter().map(view).collect();
    json(StatusCode::OK, &serde_json::json!({ "success": true, "chains": chains }))
}

/// Makes a job of the gateway itself panic or hang, or work again: `{job, mode}`.
pub async fn job(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["job", "mode"]);
    let name = fields.required_text("job", 64);
    let fate = fields.required_word("mode", "ok, panic, hang", Fate::parse);
    let fate = fields.finish_with(fate)?;
    state.app.jobs.decide(&name, fate)?;
    let view = serde_json::json!({ "success": true, "job": name, "mode": fate.as_str() });
    json(StatusCode::OK, &view)
}
