//! Sandbox only: play the phone, the supplier, the customer who pays, the chain, and the failure of a job, and tell of what
//! did not happen. These routes do not exist in live mode.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{IntoParams, ToSchema};

use crate::domain::esim::EsimStatus;
use crate::domain::event::EventKind;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json};
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::{EMAIL_CHARS, Fields, ID_CHARS, JsonBody, Query, iccid, invoice_id, listed};
use crate::http::kit::orders::{UsageView, usage_view};
use crate::http::kit::payment::{named_currency, named_network};
use crate::http::kit::wire::{
    ChainModeWord, CurrencyWord, DoubtRuleWord, EventWord, JobModeWord, Money, NetworkWord, SupplierModeWord,
    iso,
};
use crate::ops::jobs::Fate;
use crate::ops::mail;
use crate::ops::sandbox::{self, ChainMode, ChainOrder, ChainState, Keep, Means};
use crate::ops::usage::Report;
use crate::supplier::sim::{Mood, RuleName, SupplierMode, USUAL_QUIET_S};
use crate::wire::events::EventView;

const MANY_BLOCKS: i64 = 1_000_000;
/// Ten seconds of blocks.
const USUAL_LAG: i64 = 50;

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct UsageRequest {
    /// Of an eSIM that was delivered: 19 or 20 digits.
    #[schema(pattern = "^[0-9]{19,20}$", example = "8901234567890123455")]
    iccid: String,
    /// How much data the phone has used in all, in gigabytes.
    #[schema(minimum = 0, maximum = 1000000, example = 0.4)]
    used_gb: Option<f64>,
    #[schema(schema_with = settable_status, required = false)]
    status: Option<String>,
}

/// Where a phone can bring an eSIM; only a cancel ends it as CANCELLED.
pub fn settable_status() -> RefOr<Schema> {
    let words = EsimStatus::ALL.into_iter().filter(|status| *status != EsimStatus::Cancelled);
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.map(EsimStatus::as_str)))
        .description(Some("What the eSIM becomes; using data alone makes it ACTIVE"))
        .into()
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct EventRequest {
    #[schema(value_type = EventWord, example = "order.fulfilled")]
    r#type: String,
    /// Whose event it is: a partner's or user's id, or an email. Without it, the first partner's.
    #[schema(max_length = 254, pattern = "printable", example = "ptn_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    account: Option<String>,
    /// What the event holds. Without it, the example of its type.
    #[schema(value_type = Object, required = false)]
    data: Option<serde_json::Value>,
}

/// An event that was made by hand.
#[derive(Serialize, ToSchema)]
#[schema(as = EventMade)]
pub struct EventMadeView<'a> {
    #[schema(example = true)]
    pub success: bool,
    pub event: EventView<'a>,
}

/// Make an event
///
/// Writes an event of any type into the log, though nothing happened. Whoever reads the log gets it, and so do webhooks.
#[utoipa::path(post, path = "/sandbox/events", operation_id = "makeEvent", tag = "events",
    request_body = EventRequest,
    responses((status = 200, description = "The event", body = EventMadeView<'static>)))]
pub async fn event(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["type", "account", "data"]);
    let kind = fields.required_word("type", &listed(EventKind::ALL.map(EventKind::as_str)), EventKind::parse);
    let account = fields.text("account", EMAIL_CHARS);
    let data = fields.object("data");
    let kind = fields.finish_with(kind)?;
    let event = sandbox::tell(&state.app, account.as_deref(), kind, data).await?;
    let id = state.app.numbers.event_id(event.no);
    let event = EventView::of(id, &event).map_err(Error::fault)?;
    json(StatusCode::OK, &EventMadeView { success: true, event })
}

/// Play the phone
///
/// Uses data on an eSIM, installs it (`INSTALLED`), or lets it expire (`EXPIRED`). Every call that shows usage tells it from
/// then on, and an eSIM that was installed or used can no longer be given back. Simulated eSIMs do not expire by
/// themselves. What is left out stays as it is; the answer is the new reading.
#[utoipa::path(post, path = "/sandbox/usage", operation_id = "moveUsage", tag = "phone",
    request_body = UsageRequest,
    responses((status = 200, description = "The reading after it", body = UsageView)))]
pub async fn usage(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["iccid", "usedGb", "status"]);
    let number = fields.required_text("iccid", ID_CHARS);
    let used_mb = fields.gigabytes("usedGb");
    let allowed = "NEW, INSTALLED, ACTIVE, DEPLETED, EXPIRED";
    let settable = |text: &str| {
        EsimStatus::parse(&text.to_ascii_uppercase()).filter(|status| *status != EsimStatus::Cancelled)
    };
    let status = fields.word("status", allowed, settable);
    fields.finish()?;
    let iccid = iccid(&number)?;
    let usage = sandbox::move_usage(&state.app, &iccid, used_mb, status).await?;
    json(StatusCode::OK, &usage_view(&iccid, &Report { usage, stale: false }))
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct SupplierRequest {
    #[schema(value_type = SupplierModeWord, example = "slow")]
    mode: String,
    /// For `slow`: how long an answer takes, in milliseconds; for `underway` and `hidden`: how long the eSIM or the sale does.
    #[schema(minimum = 0, maximum = 3600000, default = 1000, example = 3000)]
    delay_ms: Option<i64>,
    /// For how many calls it holds, of any kind; then the mode is `ok` again. Without it, until it is set again.
    #[schema(minimum = 1, maximum = 1000000, example = 1)]
    count: Option<i64>,
    /// How a sale in doubt is resolved. Without it, `repeat`.
    #[schema(value_type = Option<DoubtRuleWord>, example = "repeat")]
    doubt_rule: Option<String>,
    /// For `find` and `list`: how long a sale that is not found is left alone, in seconds.
    #[schema(minimum = 0, maximum = 86400, default = 900, example = 900)]
    quiet_seconds: Option<i64>,
}

/// How the supplier behaves.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Supplier)]
pub struct SupplierView {
    #[schema(example = true)]
    success: bool,
    mode: SupplierModeWord,
    /// For `slow`, `underway` and `hidden`: how long it takes, in milliseconds.
    #[schema(example = 3000, minimum = 0)]
    delay_ms: i64,
    /// For how many more calls it holds; null: until it is set again.
    #[schema(required = true, example = 1, minimum = 1)]
    count: Option<i64>,
    doubt_rule: DoubtRuleWord,
    /// For `find` and `list`: how long a sale that is not found is left alone, in seconds.
    #[schema(example = 900, minimum = 0)]
    quiet_seconds: i64,
}

/// Set the supplier's mode
///
/// What whoever orders, tops up or cancels then sees:
///
/// - `ok`: 200.
/// - `reject`: 502 `SUPPLIER_REJECTED`; the money is back.
/// - `unavailable`: 503 `SUPPLIER_UNAVAILABLE`; the money is back.
/// - `timeout`: 202 after 25 s. The supplier has sold without an answer; the order is fulfilled once the mode is `ok`.
/// - `slow`: the answer takes `delayMs`; 202 when that is longer than 25 s.
/// - `malformed`: the supplier has sold and answers something unreadable. It is asked again, so with `count` 1 it is 200 a
///   little later.
/// - `duplicate`: the supplier answers with another order's eSIM, which is not accepted. It is asked again, as above.
/// - `silent`: 202 after 25 s. The supplier has sold nothing and does not answer.
/// - `underway`: the supplier has sold, and the eSIM follows after `delayMs`.
/// - `sold_out`: 502 `SUPPLIER_REJECTED`; the money is back, and the plan is off sale until the catalog is synced.
/// - `no_funds`: 503 `SUPPLIER_UNAVAILABLE`; the money is back.
/// - `price_changed`: 409 `PRICE_CHANGED`; the money is back. What a checkout has paid for is delivered if it covers the cost.
/// - `reviewed`: orders are delivered. A cancel is a request that people at the supplier decide: the order stays
///   `CANCELLING` until the operator enters their word.
/// - `dearer`: 200. The supplier has billed a tenth more than its list says, which is booked.
///
/// `doubtRule` says how the gateway finds out what became of a question without an answer: it asks again and gets the same
/// sale (`repeat`); or asking again would sell again, so it looks the sale up by our order id (`find`) or in a list (`list`)
/// and, when nothing is found after `quietSeconds` and twice more, buys once more; or it claims an eSIM before it buys it
/// (`claim`). These modes are for `find` and `list`:
///
/// - `hidden`: 202 after 25 s. The supplier has sold, and look-ups show it after `delayMs`.
/// - `blind`: look-ups find nothing.
/// - `stranger`: look-ups show sales of other orders alone.
/// - `wrong_package`, `wrong_quantity`: look-ups show something else than was sold.
///
/// The mode is shared by everybody who uses this sandbox: set it back to `ok`.
#[utoipa::path(post, path = "/sandbox/supplier", operation_id = "setSupplier", tag = "supplier",
    request_body = SupplierRequest,
    responses((status = 200, description = "The mode from now on", body = SupplierView)))]
pub async fn supplier(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["mode", "delayMs", "count", "doubtRule", "quietSeconds"]);
    let modes = listed(SupplierMode::ALL.map(SupplierMode::as_str));
    let mode = fields.required_word("mode", &modes, |text| SupplierMode::parse(&text.to_ascii_lowercase()));
    let delay_ms = fields.whole("delayMs", 0, 3_600_000).unwrap_or(1_000);
    let count = fields.whole("count", 1, 1_000_000);
    let rules = listed(RuleName::ALL.map(RuleName::as_str));
    let rule = fields.word("doubtRule", &rules, |text| RuleName::parse(&text.to_ascii_lowercase()));
    let quiet_s = fields.whole("quietSeconds", 0, 86_400).unwrap_or(USUAL_QUIET_S);
    let mode = fields.finish_with(mode)?;
    let mood = Mood { mode, delay_ms, count, rule: rule.unwrap_or(RuleName::Repeat), quiet_s };
    sandbox::set_supplier(&state.app, mood).await?;
    supplier_view(mood)
}

/// Show the supplier's mode
///
/// The mode, and for how many more calls it holds.
#[utoipa::path(get, path = "/sandbox/supplier", operation_id = "getSupplier", tag = "supplier",
    responses((status = 200, description = "The mode now", body = SupplierView)))]
pub async fn supplier_mood(_: Anyone, state: State) -> Answer {
    supplier_view(sandbox::supplier(&state.app).await?)
}

fn supplier_view(mood: Mood) -> Answer {
    let view = SupplierView {
        success: true,
        mode: SupplierModeWord(mood.mode),
        delay_ms: mood.delay_ms,
        count: mood.count,
        doubt_rule: DoubtRuleWord(mood.rule),
        quiet_seconds: mood.quiet_s,
    };
    json(StatusCode::OK, &view)
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct OutboxQuery {
    /// Whose mails to show.
    #[param(max_length = 254, pattern = "printable", example = "ann@example.com")]
    email: String,
    /// Whether to show them as HTML too, as mail clients do.
    #[param(example = true)]
    html: Option<bool>,
}

/// A mail that a gateway with a mail server would have sent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Mail)]
pub struct MailView {
    #[schema(example = "ann@example.com")]
    to: String,
    #[schema(example = "Your sign-in code")]
    subject: &'static str,
    /// Plain text. A sign-in code is the only run of six digits in its mail.
    text: String,
    /// The same as HTML, when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    html: Option<String>,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    created_at: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Outbox)]
pub struct OutboxView {
    #[schema(example = true)]
    success: bool,
    /// Newest first.
    emails: Vec<MailView>,
}

/// Read the mail
///
/// The mails of the last day that would have been sent to an address: sign-in codes, receipts, news of tokens and refunds.
/// With a mail server in the settings they are sent, and what was sent is not here.
#[utoipa::path(get, path = "/sandbox/outbox", operation_id = "readOutbox", tag = "mail", params(OutboxQuery),
    responses((status = 200, description = "The mails, newest first", body = OutboxView)))]
pub async fn outbox(_: Anyone, state: State, mut query: Query) -> Answer {
    let email = query.text("email", EMAIL_CHARS);
    let with_html = query.take("html", "must be true or false", |text| text.parse().ok()).unwrap_or(false);
    query.finish()?;
    let email = email.ok_or_else(|| Refusal::field("email", "is required"))?;
    let shown = |mail: mail::Shown| MailView {
        to: mail.to.to_string(),
        subject: mail.written.subject,
        text: mail.written.text,
        html: with_html.then_some(mail.written.html),
        created_at: iso(mail.created_at),
    };
    let emails = mail::outbox(&state.app, &email).await?.into_iter().map(shown).collect();
    json(StatusCode::OK, &OutboxView { success: true, emails })
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct PayRequest {
    /// Of a deposit or a checkout, open or expired. Either this or `address` is needed.
    #[schema(max_length = 128, pattern = "printable", example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    invoice_id: Option<String>,
    /// An address of this gateway's, for a payment without an invoice. It needs `amountUsd`; without a network it is paid by
    /// BASE or TRON, and without a token in USDC.
    #[schema(
        max_length = 128,
        pattern = "printable",
        example = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"
    )]
    address: Option<String>,
    /// How much to send; without it, what the invoice asks for.
    #[schema(exclusive_minimum = 0, exclusive_maximum = 1000000000, multiple_of = 0.000001, example = 250)]
    amount_usd: Option<f64>,
    /// Another network of the same kind than the invoice's plays a customer's mistake.
    #[schema(value_type = Option<NetworkWord>, example = "BASE")]
    network: Option<String>,
    /// Another token than the invoice's plays a customer's mistake.
    #[schema(value_type = Option<CurrencyWord>, example = "USDC")]
    currency: Option<String>,
}

/// A transfer on a simulated chain.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Transfer)]
pub struct PaidView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060")]
    tx_hash: String,
    network: NetworkWord,
    currency: CurrencyWord,
    amount_usd: Money,
}

/// Pay an invoice
///
/// Plays the payer: a transfer to the address of a deposit or a checkout, of what it asks for or of another amount. It is
/// mined in the next block, 200 ms later, and final after as many blocks as its network asks for. An invoice can be paid
/// again, and late. A deposit takes any amount, a checkout only the one that it asks for. A standing address is paid by
/// `address` and `amountUsd`.
#[utoipa::path(post, path = "/sandbox/pay", operation_id = "payInvoice", tag = "chains",
    request_body = PayRequest,
    responses((status = 200, description = "Sent; it waits for its block", body = PaidView)))]
pub async fn pay(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["invoiceId", "address", "amountUsd", "network", "currency"]);
    let address = fields.text("address", 128);
    let invoice = match address {
        Some(_) => fields.text("invoiceId", 128),
        None => Some(fields.required_text("invoiceId", 128)),
    };
    let means = Means {
        amount: fields.positive_usd("amountUsd"),
        network: fields.word("network", &listed(Network::ALL.map(Network::as_str)), named_network),
        currency: fields.word("currency", &listed(Currency::ALL.map(Currency::as_str)), named_currency),
    };
    fields.finish()?;
    let paid = match (address, invoice) {
        (Some(_), Some(_)) => Err(Refusal::field("address", "cannot be sent with invoiceId").into()),
        (Some(address), None) => sandbox::pay_to(&state.app, &address, means).await,
        (None, invoice) => sandbox::pay(&state.app, &invoice_id(invoice.unwrap_or_default())?, means).await,
    }?;
    let view = PaidView {
        success: true,
        tx_hash: paid.tx_hash,
        network: NetworkWord(paid.network),
        currency: CurrencyWord(paid.currency),
        amount_usd: Money(paid.amount),
    };
    json(StatusCode::OK, &view)
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct ChainRequest {
    #[schema(value_type = NetworkWord, example = "BASE")]
    network: String,
    #[schema(value_type = Option<ChainModeWord>, example = "lagging")]
    mode: Option<String>,
    /// For `lagging`: how many blocks the node lacks.
    #[schema(minimum = 0, maximum = 1000000, default = 50, example = 50)]
    behind: Option<i64>,
    /// Replaces so many of the newest blocks, as a reorganisation does.
    #[schema(minimum = 1, maximum = 1000000, example = 3)]
    reorg: Option<i64>,
    #[schema(schema_with = kept_transfers, required = false)]
    keep: Option<i64>,
}

/// What becomes of the transfers in blocks that are replaced.
pub fn kept_transfers() -> RefOr<Schema> {
    let blocks = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(MANY_BLOCKS));
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::Boolean))
        .item(blocks)
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .default(Some(false.into()))
        .description(Some(
            "With `reorg`, what becomes of the transfers in those blocks: gone (`false`), mined again in place \
             (`true`), or so many blocks later (a number)",
        ))
        .into()
}

/// A simulated chain.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Chain)]
pub struct ChainView {
    network: NetworkWord,
    mode: ChainModeWord,
    /// How many blocks its node lacks; 0 unless it is lagging.
    #[schema(example = 0, minimum = 0)]
    behind: i64,
    /// The newest block.
    #[schema(example = 1000, minimum = 0)]
    head: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ChainSet)]
pub struct ChainSetView {
    #[schema(example = true)]
    success: bool,
    network: NetworkWord,
    mode: ChainModeWord,
    /// How many blocks its node lacks; 0 unless it is lagging.
    #[schema(example = 50, minimum = 0)]
    behind: i64,
    /// The newest block.
    #[schema(example = 1000, minimum = 0)]
    head: i64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ChainList)]
pub struct ChainsView {
    #[schema(example = true)]
    success: bool,
    /// One for each network that has no real nodes.
    chains: Vec<ChainView>,
}

/// Set a chain's mode
///
/// What payers and partners then see:
///
/// - `ok`: a payment is seen in its block, and final in time.
/// - `down`: no node answers. Nothing is credited, and `verifyDeposit` is 503 `CHAIN_UNAVAILABLE`; when the chain is back,
///   what came meanwhile is credited.
/// - `lagging`: the chain's node lacks the newest `behind` blocks. Payments are seen that much later, and nothing is lost.
/// - `lying`: one of three nodes shows payments that never happened. They are not credited.
///
/// `reorg` replaces the newest blocks: what was paid in them vanishes, or comes again with `keep`. A payment that was not
/// final is then `ORPHANED`; one that was credited is taken back, `REVERSED`. What is left out stays as it is. The mode is shared by
/// everybody who uses this sandbox: set it back to `ok`.
#[utoipa::path(post, path = "/sandbox/chain", operation_id = "setChain", tag = "chains",
    request_body = ChainRequest,
    responses((status = 200, description = "The chain from now on", body = ChainSetView)))]
pub async fn chain(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["network", "mode", "behind", "reorg", "keep"]);
    let networks = listed(Network::ALL.map(Network::as_str));
    let network = fields.required_word("network", &networks, named_network);
    let mode =
        fields.word("mode", "ok, down, lagging, lying", |text| ChainMode::parse(&text.to_ascii_lowercase()));
    let behind = fields.whole("behind", 0, MANY_BLOCKS).unwrap_or(USUAL_LAG);
    let depth = fields.whole("reorg", 1, MANY_BLOCKS);
    let keep = match fields.flag("keep") {
        Some(true) => Keep::Later(0),
        Some(false) => Keep::Nothing,
        None => fields.whole("keep", 0, MANY_BLOCKS).map_or(Keep::Nothing, Keep::Later),
    };
    let network = fields.finish_with(network)?;
    let order = ChainOrder { mode, behind, reorg: depth.map(|depth| (depth, keep)) };
    let ChainState { network, mode, behind, head } = sandbox::move_chain(&state.app, network, order).await?;
    let view = ChainSetView {
        success: true,
        network: NetworkWord(network),
        mode: ChainModeWord(mode),
        behind,
        head,
    };
    json(StatusCode::OK, &view)
}

/// Show the chains
///
/// The mode of every simulated chain, and its newest block.
#[utoipa::path(get, path = "/sandbox/chain", operation_id = "getChains", tag = "chains",
    responses((status = 200, description = "The chains now", body = ChainsView)))]
pub async fn chain_moods(_: Anyone, state: State) -> Answer {
    let view = |chain: ChainState| ChainView {
        network: NetworkWord(chain.network),
        mode: ChainModeWord(chain.mode),
        behind: chain.behind,
        head: chain.head,
    };
    let chains = sandbox::chains(&state.app).await?.into_iter().map(view).collect();
    json(StatusCode::OK, &ChainsView { success: true, chains })
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct JobRequest {
    /// `recover`, `watch`, `mail` and more, and for each network a `scan BASE`. A name that is none is refused with those
    /// that are.
    #[schema(max_length = 64, pattern = "printable", example = "recover")]
    job: String,
    #[schema(value_type = JobModeWord, example = "hang")]
    mode: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = "recover")]
    job: String,
    mode: JobModeWord,
}

/// Disturb a job
///
/// Plays a failure of the gateway itself, for those who operate one: `panic` ends a job where it stands, and it is started
/// again; `hang` stops it until it is told `ok`. While a job that money depends on hangs, `/readyz` becomes 503.
#[utoipa::path(post, path = "/sandbox/job", operation_id = "setJob", tag = "jobs",
    request_body = JobRequest,
    responses((status = 200, description = "What happens to the job", body = JobView)))]
pub async fn job(_: Anyone, state: State, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["job", "mode"]);
    let name = fields.required_text("job", 64);
    let fate =
        fields.required_word("mode", "ok, panic, hang", |text| Fate::parse(&text.to_ascii_lowercase()));
    let fate = fields.finish_with(fate)?;
    state.app.jobs.decide(&name, fate)?;
    json(StatusCode::OK, &JobView { success: true, job: name, mode: JobModeWord(fate) })
}
