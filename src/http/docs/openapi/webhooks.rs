//! The requests that partners get: one for each kind of event, in the `webhooks` of the description.

use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::event::EventKind;
use crate::wire::deposits::DepositFacts;
use crate::wire::esims::{EsimStatusChanged, EsimUsageThreshold};
use crate::wire::events::{API_VERSION, EventView, example};
use crate::wire::orders::{OrderFacts, TopUpOrderView};
use crate::wire::wallet::LowBalanceFacts;

/// The schemas of what events hold.
pub fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut all = Vec::new();
    add::<OrderFacts>(&mut all);
    add::<TopUpOrderView>(&mut all);
    add::<DepositFacts>(&mut all);
    add::<LowBalanceFacts>(&mut all);
    add::<EsimStatusChanged>(&mut all);
    add::<EsimUsageThreshold>(&mut all);
    all
}

fn add<T: ToSchema + PartialSchema>(all: &mut Vec<(String, RefOr<Schema>)>) {
    all.push((T::name().into_owned(), T::schema()));
    T::schemas(all);
}

/// The name of an event's operation, what it tells, and the schema of its object.
fn told(kind: EventKind) -> (&'static str, &'static str, String) {
    let (operation, summary) = match kind {
        EventKind::OrderFulfilled => ("onOrderFulfilled", "An eSIM was delivered"),
        EventKind::OrderFailed => ("onOrderFailed", "An order failed, and its money is back"),
        EventKind::OrderCancelled => ("onOrderCancelled", "An eSIM was given back, and its money is back"),
        EventKind::TopUpCompleted => ("onTopUpCompleted", "A top-up was added to an eSIM"),
        EventKind::TopUpFailed => ("onTopUpFailed", "A top-up failed, and its money is back"),
        EventKind::DepositDetected => ("onDepositDetected", "A payment is on the chain, and not final yet"),
        EventKind::DepositConfirmed => ("onDepositConfirmed", "Money of a deposit is in the wallet"),
        EventKind::DepositExpired => ("onDepositExpired", "Nothing was paid to a deposit in time"),
        EventKind::LowBalance => ("onLowBalance", "The balance fell below its threshold"),
        EventKind::EsimStatusChanged => {
            ("onEsimStatusChanged", "An eSIM was installed, used, used up or expired")
        }
        EventKind::UsageThreshold => ("onUsageThreshold", "So much of an eSIM's data is used"),
    };
    let data = match kind {
        EventKind::OrderFulfilled | EventKind::OrderFailed | EventKind::OrderCancelled => OrderFacts::name(),
        EventKind::TopUpCompleted | EventKind::TopUpFailed => TopUpOrderView::name(),
        EventKind::DepositDetected | EventKind::DepositConfirmed | EventKind::DepositExpired => {
            DepositFacts::name()
        }
        EventKind::LowBalance => LowBalanceFacts::name(),
        EventKind::EsimStatusChanged => EsimStatusChanged::name(),
        EventKind::UsageThreshold => EsimUsageThreshold::name(),
    };
    (operation, summary, data.into_owned())
}

/// Adds the requests to a written description.
pub fn added(mut description: String) -> String {
    let all: Map<String, Value> =
        EventKind::ALL.into_iter().map(|kind| (kind.as_str().to_string(), request(kind))).collect();
    if description.pop() == Some('}') {
        description.push_str(&format!(",\"webhooks\":{}}}", Value::Object(all)));
    }
    description
}

fn request(kind: EventKind) -> Value {
    let (operation, summary, data) = told(kind);
    let schema = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let shape = json!({
        "allOf": [
            schema(&EventView::name()),
            {
                "type": "object",
                "required": ["type", "data"],
                "properties": { "type": { "const": kind.as_str() }, "data": schema(&data) },
            },
        ],
    });
    let object = example(kind).and_then(|data| serde_json::from_str::<Value>(data.get()).ok());
    let example = json!({
        "id": "evt_5tVq0Zk2LmA", "type": kind.as_str(), "createdAt": "2026-01-31T12:00:00.000Z",
        "apiVersion": API_VERSION, "sequence": 1, "data": object,
    });
    let header = |name: &str, about: &str| json!({ "name": name, "in": "header", "required": true, "description": about, "schema": { "type": "string" } });
    json!({
        "post": {
            "operationId": operation,
            "tags": ["events"],
            "summary": summary,
            "description": "Sent to every webhook of yours that wants it. Any 2xx answer accepts it.",
            "security": [],
            "parameters": [
                header("webhook-id", "The id of the event; the same in every delivery of it"),
                header("webhook-timestamp", "When this delivery was signed, in seconds since 1970"),
                header("webhook-signature", "By Standard Webhooks: v1, and the signature in Base64; several are separated by a space"),
            ],
            "requestBody": {
                "required": true,
                "content": { "application/json": { "schema": shape, "example": example } },
            },
            "responses": {
                "204": { "description": "Accepted: it is not sent again" },
                "4XX": { "description": "Refused: it is sent again later" },
            },
        },
    })
}
