//! Webhooks on the partner API: where events are sent to, what was tried, and trying again. Nothing is decided here; the
//! operations are in `ops::webhooks`. A secret is in two answers, each this once: of a new webhook and of a rotation.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::domain::event::EventKind;
use crate::domain::refusal::Refusal;
use crate::domain::webhook::WebhookStatus;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::Partner;
use crate::http::kit::fields::{
    Fields, JsonBody, NoQuery, OptionalBody, Query, Segment, Segments, listed, webhook_id,
};
use crate::http::kit::wire::{EventWord, WebhookStatusWord, iso, parse_time};
use crate::ops::webhooks::{self, By, Change, Delivery, Keyed, NewWebhook, Standing, Start, by_hand};

const URL_CHARS: usize = 2_048;
const DESCRIPTION_CHARS: usize = 200;

/// Where events are sent to.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Webhook)]
pub struct WebhookView {
    #[schema(example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub id: String,
    #[schema(format = "uri", example = "https://hooks.example.com/simgate")]
    pub url: String,
    /// The types of events that it gets.
    pub events: Vec<EventWord>,
    /// PENDING: it has not accepted its test event yet and gets no others. ACTIVE: it gets events. DISABLED: by you, by
    /// the operator, or because it accepted nothing for a day.
    pub status: WebhookStatusWord,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub description: String,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
    /// When it accepted its test event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub accepted_at: Option<String>,
    /// Since when it has accepted nothing, though it was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub failing_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub disabled_at: Option<String>,
    /// Until when the secret before the last rotation signs too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub old_secret_until: Option<String>,
    /// How many events it has refused that are tried again, with those that have to come after them.
    #[schema(example = 0, minimum = 0)]
    pub waiting: i64,
    /// How many events it has refused for a day. They are not tried again by themselves.
    #[schema(example = 0, minimum = 0)]
    pub set_aside: i64,
}

impl WebhookView {
    fn of(app: &App, standing: Standing) -> WebhookView {
        let Standing { webhook, waiting, set_aside } = standing;
        let now = app.now();
        WebhookView {
            id: webhook.id.to_string(),
            events: webhook.wanted().iter().map(|kind| EventWord(*kind)).collect(),
            url: webhook.url,
            status: WebhookStatusWord(webhook.status),
            description: webhook.description,
            created_at: iso(webhook.created_at),
            accepted_at: webhook.accepted_at.map(iso),
            failing_since: webhook.failing_since.map(iso),
            disabled_at: webhook.disabled_at.map(iso),
            old_secret_until: webhook.old_until.filter(|until| now < *until).map(iso),
            waiting,
            set_aside,
        }
    }
}

async fn shown(app: &App, webhook: webhooks::Webhook) -> crate::error::Result<WebhookView> {
    Ok(WebhookView::of(app, webhooks::look(app, webhook).await?))
}

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookAnswer)]
pub struct WebhookAnswer {
    #[schema(example = true)]
    success: bool,
    webhook: WebhookView,
}

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookSecret)]
pub struct SecretAnswer {
    #[schema(example = true)]
    success: bool,
    webhook: WebhookView,
    /// The key of the signatures, as libraries of Standard Webhooks take it. It is shown this once: keep it now.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=")]
    secret: String,
}

async fn with_secret(app: &App, keyed: Keyed) -> Answer {
    let webhook = shown(app, keyed.webhook).await?;
    uncached(json(StatusCode::OK, &SecretAnswer { success: true, webhook, secret: keyed.secret }))
}

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookList)]
pub struct WebhooksView {
    #[schema(example = true)]
    success: bool,
    /// The oldest first.
    webhooks: Vec<WebhookView>,
}

/// List webhooks
///
/// Where your events are sent to, and how each of them stands.
#[utoipa::path(get, path = "/api/b2b/v1/webhooks", operation_id = "listWebhooks", tag = "webhooks",
    responses((status = 200, description = "The webhooks", body = WebhooksView)))]
pub async fn list(partner: Partner, state: State, _: NoQuery) -> Answer {
    let found = webhooks::list(&state.app, Some(partner.account)).await?;
    let webhooks = found.into_iter().map(|standing| WebhookView::of(&state.app, standing)).collect();
    uncached(json(StatusCode::OK, &WebhooksView { success: true, webhooks }))
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct WebhookRequest {
    /// An https URL on port 443 that leads to a public address, without a user name and without a fragment. A sandbox
    /// also takes http and other ports.
    #[schema(max_length = 2048, pattern = "printable", example = "https://hooks.example.com/simgate")]
    url: String,
    /// The types of events that are wanted. Absent: all.
    #[schema(min_items = 1)]
    events: Option<Vec<EventWord>>,
    /// A note of your own.
    #[schema(max_length = 200, pattern = "printable or empty", example = "Orders to the back office")]
    description: Option<String>,
}

fn kinds(fields: &mut Fields) -> Option<Vec<EventKind>> {
    fields.words("events", &EventKind::ALL.map(EventKind::as_str), EventKind::parse)
}

/// Create a webhook
///
/// Events are sent to its URL as soon as it has accepted a test event, which comes at once: with any 2xx status within
/// ten seconds. It gets what happens from now on. Messages are signed as Standard Webhooks says, with the `secret` in
/// this answer. An account may have ten webhooks.
#[utoipa::path(post, path = "/api/b2b/v1/webhooks", operation_id = "createWebhook", tag = "webhooks",
    request_body = WebhookRequest,
    responses((status = 200, description = "The webhook and, this once, its secret", body = SecretAnswer)))]
pub async fn create(partner: Partner, state: State, _: NoQuery, body: JsonBody) -> Answer {
    let app = &state.app;
    let mut fields = Fields::parse(&body)?;
    let target = fields.required_parsed("url", URL_CHARS, |text| webhooks::target(app, text));
    let kinds = kinds(&mut fields).unwrap_or_default();
    let description = fields.text_or_empty("description", DESCRIPTION_CHARS).unwrap_or_default();
    let target = fields.finish_with(target)?;
    let new = NewWebhook { target, kinds, description };
    with_secret(app, webhooks::create(app, By::Key(&partner), new).await?).await
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct WebhookChange {
    /// Another URL must accept a test event first: the webhook is PENDING until then.
    #[schema(max_length = 2048, pattern = "printable", example = "https://hooks.example.com/simgate")]
    url: Option<String>,
    #[schema(min_items = 1)]
    events: Option<Vec<EventWord>>,
    /// An empty one takes it away.
    #[schema(max_length = 200, pattern = "printable or empty", example = "Orders to the back office")]
    description: Option<String>,
    /// DISABLED stops it. ACTIVE starts it again, with what happens from then on; what it missed can be replayed. One
    /// that has never accepted its test event is PENDING first.
    #[schema(value_type = Option<SwitchWord>, inline)]
    status: Option<String>,
}

/// What a webhook can be set to.
#[derive(ToSchema)]
#[schema(rename_all = "UPPERCASE")]
#[allow(dead_code, reason = "describes the member for OpenAPI")]
pub enum SwitchWord {
    Active,
    Disabled,
}

/// Whether a word turns a webhook on or off.
fn switched(word: &str) -> Option<bool> {
    match WebhookStatus::parse(word)? {
        WebhookStatus::Active => Some(true),
        WebhookStatus::Disabled => Some(false),
        WebhookStatus::Pending => None,
    }
}

/// Change a webhook
///
/// What is left out stays as it is.
#[utoipa::path(patch, path = "/api/b2b/v1/webhooks/{webhookId}", operation_id = "changeWebhook", tag = "webhooks",
    request_body = WebhookChange,
    params(("webhookId" = String, Path, description = "The webhook's id", example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "The webhook as it is now", body = WebhookAnswer)))]
pub async fn change(
    partner: Partner,
    state: State,
    _: NoQuery,
    Segment(id): Segment,
    body: JsonBody,
) -> Answer {
    let app = &state.app;
    let mut fields = Fields::parse(&body)?;
    let change = Change {
        target: fields.parsed("url", URL_CHARS, |text| webhooks::target(app, text)),
        kinds: kinds(&mut fields),
        description: fields.text_or_empty("description", DESCRIPTION_CHARS),
        enabled: fields.word("status", &listed(["ACTIVE", "DISABLED"]), switched),
    };
    fields.finish()?;
    let webhook = webhooks::change(app, By::Key(&partner), &webhook_id(&id)?, change).await?;
    uncached(json(StatusCode::OK, &WebhookAnswer { success: true, webhook: shown(app, webhook).await? }))
}

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDeleted)]
pub struct DeletedView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    id: String,
}

/// Delete a webhook
///
/// What is on its way may still come, and then nothing more. Its deliveries are forgotten; the events stay in the log.
#[utoipa::path(delete, path = "/api/b2b/v1/webhooks/{webhookId}", operation_id = "deleteWebhook", tag = "webhooks",
    params(("webhookId" = String, Path, description = "The webhook's id", example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "It is deleted", body = DeletedView)))]
pub async fn delete(partner: Partner, state: State, _: NoQuery, Segment(id): Segment) -> Answer {
    let id = webhook_id(&id)?;
    webhooks::delete(&state.app, By::Key(&partner), &id).await?;
    json(StatusCode::OK, &DeletedView { success: true, id: id.to_string() })
}

/// A try to deliver an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub struct DeliveryView {
    #[schema(example = "dlv_5tVq0Zk2LmA")]
    id: String,
    /// The id of the event that was sent, also in the header `webhook-id`.
    #[schema(example = "evt_5tVq0Zk2LmA")]
    event_id: String,
    /// The type of the event, or `webhook.test`.
    #[schema(example = "order.fulfilled")]
    r#type: String,
    /// Whether it was answered with a 2xx status.
    accepted: bool,
    /// Which try of this event it was; null for one by hand.
    #[schema(required = true, minimum = 1)]
    attempt: Option<i64>,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    sent_at: String,
    #[schema(example = 85, minimum = 0)]
    duration_ms: i64,
    /// The status of the answer; null when there was none.
    #[schema(required = true, example = 204)]
    http_status: Option<i64>,
    /// The first 1 KB of the answer's body.
    #[schema(required = true)]
    answer: Option<String>,
    /// Why there is no answer.
    #[schema(required = true)]
    trouble: Option<String>,
}

impl DeliveryView {
    fn of(app: &App, delivery: Delivery) -> DeliveryView {
        DeliveryView {
            id: app.numbers.delivery_id(delivery.no),
            accepted: delivery.accepted(),
            event_id: delivery.message,
            r#type: delivery.kind,
            attempt: delivery.attempt,
            sent_at: iso(delivery.at),
            duration_ms: delivery.ms,
            http_status: delivery.status,
            answer: delivery.answer,
            trouble: delivery.trouble,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookTest)]
pub struct TestAnswer {
    #[schema(example = true)]
    success: bool,
    webhook: WebhookView,
    delivery: DeliveryView,
}

/// Test a webhook
///
/// Sends it an event of the type `webhook.test` now, and waits for the answer. A webhook that is PENDING and accepts it is
/// ACTIVE then. `success` says that it was tried; `delivery.accepted` how that ended.
#[utoipa::path(post, path = "/api/b2b/v1/webhooks/{webhookId}/test", operation_id = "testWebhook", tag = "webhooks",
    params(("webhookId" = String, Path, description = "The webhook's id", example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "What came of it", body = TestAnswer)))]
pub async fn test(
    partner: Partner,
    state: State,
    _: NoQuery,
    Segment(id): Segment,
    body: OptionalBody,
) -> Answer {
    body.require_only(&[])?;
    let app = &state.app;
    let (webhook, delivery) = by_hand::test(app, By::Key(&partner), &webhook_id(&id)?).await?;
    let (webhook, delivery) = (shown(app, webhook).await?, DeliveryView::of(app, delivery));
    uncached(json(StatusCode::OK, &TestAnswer { success: true, webhook, delivery }))
}

/// Rotate a secret
///
/// A new secret signs from now on. The one before signs too for 24 hours, so that your receiver can learn the new one
/// in between; one that was replaced earlier ends at once.
#[utoipa::path(post, path = "/api/b2b/v1/webhooks/{webhookId}/rotate", operation_id = "rotateWebhookSecret", tag = "webhooks",
    params(("webhookId" = String, Path, description = "The webhook's id", example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "The webhook and, this once, its new secret", body = SecretAnswer)))]
pub async fn rotate(
    partner: Partner,
    state: State,
    _: NoQuery,
    Segment(id): Segment,
    body: OptionalBody,
) -> Answer {
    body.require_only(&[])?;
    let keyed = webhooks::rotate(&state.app, By::Key(&partner), &webhook_id(&id)?, None).await?;
    with_secret(&state.app, keyed).await
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct ReplayRequest {
    /// Send again what comes after this event, or after this `nextAfter` of the event log.
    #[schema(pattern = "^evt_[0-9A-Za-z]{11}$", example = "evt_5tVq0Zk2LmA")]
    after: Option<String>,
    /// Instead of `after`: send again what happened since this time.
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    since: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookReplay)]
pub struct ReplayAnswer {
    #[schema(example = true)]
    success: bool,
    webhook: WebhookView,
    /// It gets every event after this one that it wants.
    #[schema(example = "evt_5tVq0Zk2LmA")]
    after: String,
}

/// Replay events
///
/// Sends a webhook again what it was sent before, or would have been while it was disabled: everything after an event, or
/// since a time. Send either `after` or `since`. Each event has the id that it had the first time. A webhook that is
/// disabled must be enabled first.
#[utoipa::path(post, path = "/api/b2b/v1/webhooks/{webhookId}/replay", operation_id = "replayWebhook", tag = "webhooks",
    request_body = ReplayRequest,
    params(("webhookId" = String, Path, description = "The webhook's id", example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "From where on it is sent again", body = ReplayAnswer)))]
pub async fn replay(
    partner: Partner,
    state: State,
    _: NoQuery,
    Segment(id): Segment,
    body: JsonBody,
) -> Answer {
    let app = &state.app;
    let mut fields = Fields::parse(&body)?;
    fields.one_of_two(["after", "since"]);
    let after = fields.parsed("after", 64, |text| {
        let place = app.numbers.event_place(text);
        place.ok_or_else(|| "must be the id of an event, or a nextAfter of the event log".into())
    });
    let since = fields.parsed("since", 64, |text| {
        parse_time(text).ok_or_else(|| "must be a time like 2026-01-31T12:00:00Z or a date".into())
    });
    let start = fields.finish_with(after.map(Start::After).or(since.map(Start::Since)))?;
    let (webhook, after) = webhooks::replay(app, By::Key(&partner), &webhook_id(&id)?, start).await?;
    let webhook = shown(app, webhook).await?;
    let after = app.numbers.event_id(after);
    uncached(json(StatusCode::OK, &ReplayAnswer { success: true, webhook, after }))
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct DeliveriesQuery {
    /// Where the last page ended: its `nextAfter`.
    #[param(pattern = "^dlv_[0-9A-Za-z]{11}$", example = "dlv_5tVq0Zk2LmA")]
    after: Option<String>,
    #[param(minimum = 1, maximum = 100, default = 20, example = 20)]
    limit: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryList)]
pub struct DeliveriesView {
    #[schema(example = true)]
    success: bool,
    /// The newest first.
    deliveries: Vec<DeliveryView>,
    /// Pass it as `after` to read on; null at the end.
    #[schema(required = true)]
    next_after: Option<String>,
}

/// List deliveries
///
/// What was tried in the last 30 days and how it was answered, the newest first.
#[utoipa::path(get, path = "/api/b2b/v1/webhooks/{webhookId}/deliveries", operation_id = "listDeliveries", tag = "webhooks",
    params(("webhookId" = String, Path, description = "The webhook's id", example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U"),
        DeliveriesQuery),
    responses((status = 200, description = "The deliveries", body = DeliveriesView)))]
pub async fn deliveries(partner: Partner, state: State, query: Query, Segment(id): Segment) -> Answer {
    let app = &state.app;
    let mut query = query.strictly();
    let after = query.take("after", "must be the nextAfter of an answer, or the id of a delivery", |text| {
        app.numbers.delivery_no(text)
    });
    let limit = query.whole("limit", 1, 100).unwrap_or(20);
    query.finish()?;
    let by = By::Key(&partner);
    let page = webhooks::deliveries(app, by, &webhook_id(&id)?, after, limit).await?;
    let view = DeliveriesView {
        success: true,
        deliveries: page.deliveries.into_iter().map(|delivery| DeliveryView::of(app, delivery)).collect(),
        next_after: page.next.map(|no| app.numbers.delivery_id(no)),
    };
    uncached(json(StatusCode::OK, &view))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Redelivery)]
pub struct RedeliveryAnswer {
    #[schema(example = true)]
    success: bool,
    delivery: DeliveryView,
}

/// Deliver again
///
/// Sends what a delivery sent once more, now: the same body and id, under a new signature. It works for a webhook that is
/// disabled, too, and changes nothing about how the webhook stands. `success` says that it was tried;
/// `delivery.accepted` how that ended.
#[utoipa::path(post, path = "/api/b2b/v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver", operation_id = "redeliver",
    tag = "webhooks",
    params(("webhookId" = String, Path, description = "The webhook's id", example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U"),
        ("deliveryId" = String, Path, description = "The delivery's id", example = "dlv_5tVq0Zk2LmA")),
    responses((status = 200, description = "What came of it", body = RedeliveryAnswer)))]
pub async fn redeliver(
    partner: Partner,
    state: State,
    _: NoQuery,
    Segments(id, delivery): Segments,
    body: OptionalBody,
) -> Answer {
    body.require_only(&[])?;
    let (app, id) = (&state.app, webhook_id(&id)?);
    let by = By::Key(&partner);
    // Whose webhook it is comes first: of others nothing is told.
    webhooks::get(app, by, &id).await?;
    let no = app.numbers.delivery_no(&delivery).ok_or(Refusal::DeliveryNotFound)?;
    let delivery = by_hand::redeliver(app, by, &id, no).await?;
    let delivery = DeliveryView::of(app, delivery);
    uncached(json(StatusCode::OK, &RedeliveryAnswer { success: true, delivery }))
}
