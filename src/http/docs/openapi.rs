//! The OpenAPI descriptions, made from the handlers. What every operation has in common (errors, keys, limits) is
//! added here, once. The texts of the partner API are here too; those of the others are in
//! `agentic.rs`, `consumer.rs` and `sandbox.rs`.

mod agentic;
mod consumer;
mod headers;
mod sandbox;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::{PartialSchema, ToSchema};

pub use self::agentic::AGENTIC;
pub use self::consumer::CONSUMER;
pub use self::sandbox::SANDBOX;
use super::examples::Examples;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::is_unprintable;
use crate::http::kit::problem::Problem;
use crate::http::kit::schema::flat;
use crate::http::kit::{State, Written};
use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ContactBuilder, Content, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr,
    ResponseBuilder, Schema, SecurityRequirement, ServerBuilder,
};

const INTRODUCTION: &str = "Buy eSIM data plans at wholesale prices from a prepaid wallet, which is funded with stablecoins.\n\n\
Money is a JSON number of US dollars with at most six decimals. Times are ISO 8601 UTC. \
Send a `partnerRefId` with every purchase: the same reference is the same purchase, however often it is sent.";

/// One of the APIs that are described.
pub struct Surface {
    title: &'static str,
    introduction: &'static str,
    tags: &'static [(&'static str, &'static str)],
    /// The credentials of a request, which needs all of them.
    keys: fn() -> Vec<(&'static str, SecurityScheme)>,
    /// The refusals that all operations share.
    common: &'static [(u16, &'static str)],
    /// The request bodies that take no member but those described.
    strict: &'static [&'static str],
    /// The refusals of single operations; these replace a shared one with the same status.
    refusals: &'static [(&'static str, u16, &'static str)],
    /// Whether events are sent to its callers.
    webhooks: bool,
    /// Recorded bodies: a file of `examples/`.
    pub examples: &'static LazyLock<Examples>,
}

static PARTNER_EXAMPLES: LazyLock<Examples> =
    LazyLock::new(|| Examples::read(include_str!("examples/partner.json")));

pub static PARTNER: Surface = Surface {
    title: "simgate partner API",
    introduction: INTRODUCTION,
    tags: &[
        ("wallet", "The prepaid wallet and its statement"),
        ("deposits", "Funding the wallet with stablecoins"),
        ("plans", "What can be bought"),
        ("orders", "Buying eSIMs"),
        ("top-ups", "More data on an existing eSIM"),
        ("usage", "How much data is left"),
        ("events", "What happened, in order"),
        ("webhooks", "Having it sent to you"),
    ],
    keys: || {
        let header =
            |name, about| SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(name, about)));
        vec![
            ("partnerKey", header("X-B2B-Key", "The public half of an API key, which the operator makes")),
            ("partnerSecret", header("X-B2B-Secret", "The secret half of the same key")),
        ]
    },
    common: &[
        (400, "INVALID_REQUEST: every unknown query parameter is named"),
        (401, "UNAUTHENTICATED: key or secret missing, wrong or revoked"),
        (403, "LIMIT_EXCEEDED: this key may not do this, or not from this address"),
        (405, "METHOD_NOT_ALLOWED"),
        (406, "NOT_ACCEPTABLE: this API answers JSON"),
        (429, "RATE_LIMITED: slow down; Retry-After says for how long"),
        (500, "INTERNAL: our fault; quote the requestId"),
        (503, "OVERLOADED, ON_HOLD or SUPPLIER_UNAVAILABLE: nothing was charged, try again"),
    ],
    strict: &["OrderRequest", "DepositRequest", "VerifyRequest"],
    refusals: REFUSALS,
    webhooks: true,
    examples: &PARTNER_EXAMPLES,
};

/// The refusals of operations that take a body.
const WITH_BODY: &[(u16, &str)] = &[
    (408, "REQUEST_TIMEOUT: the body did not arrive in time"),
    (413, "PAYLOAD_TOO_LARGE: more than 64 KiB"),
    (415, "UNSUPPORTED_MEDIA_TYPE: the body is not JSON"),
];
/// The refusal of operations that take anything.
const WITH_INPUT: (u16, &str) = (400, "INVALID_REQUEST: every wrong field is named");

impl Surface {
    /// The refusals that many operations share.
    pub fn shared(&self) -> impl Iterator<Item = (u16, &'static str)> {
        self.common.iter().copied().chain([WITH_INPUT]).chain(WITH_BODY.iter().copied())
    }
}

pub fn base(surface: &Surface, server: &str) -> OpenApi {
    let info = InfoBuilder::new()
        .title(surface.title)
        .version("1.0.0")
        .description(Some(surface.introduction))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .contact(Some(ContactBuilder::new().name(Some("The operator of this gateway")).build()))
        .build();
    let tag = |(name, about): &(&str, &str)| TagBuilder::new().name(*name).description(Some(*about)).build();
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([ServerBuilder::new().url(server).description(Some("This gateway")).build()]))
        .tags(Some(surface.tags.iter().map(tag)))
        .build()
}

/// The refusals of single operations of the partner API.
#[rustfmt::skip]
const REFUSALS: &[(&str, u16, &str)] = &[
    ("openDeposit", 403, "ACCOUNT_SUSPENDED, or LIMIT_EXCEEDED by this key"),
    ("openDeposit", 422, "UNSUPPORTED_PAIR, with the pairs that work"),
    ("openDeposit", 429, "RATE_LIMITED: too many requests, or five invoices are open on this network; Retry-After says for how long"),
    ("verifyDeposit", 404, "INVOICE_NOT_FOUND"),
    ("verifyDeposit", 409, "TRANSFER_ALREADY_USED: the transaction was credited to another account"),
    ("verifyDeposit", 422, "TX_NOT_FOR_INVOICE: the transaction does not pay this invoice; TX_FAILED: it was reverted"),
    ("verifyDeposit", 503, "CHAIN_UNAVAILABLE or OVERLOADED: nothing is lost, try again"),
    ("getDeposit", 404, "INVOICE_NOT_FOUND"),
    ("getDepositAddress", 403, "ACCOUNT_SUSPENDED, or LIMIT_EXCEEDED by this key"),
    ("getDepositAddress", 422, "UNSUPPORTED_PAIR, with the pairs that work"),
    ("placeOrder", 402, "INSUFFICIENT_BALANCE"),
    ("placeOrder", 403, "ACCOUNT_SUSPENDED, or LIMIT_EXCEEDED by this key"),
    ("placeOrder", 404, "PLAN_NOT_FOUND"),
    ("placeOrder", 409, "IDEMPOTENCY_CONFLICT, with the orderId that holds the reference, or PRICE_CHANGED"),
    ("placeOrder", 422, "WRONG_PLAN_TYPE"),
    ("placeOrder", 502, "SUPPLIER_REJECTED: the money is back in the wallet"),
    ("getOrder", 404, "ORDER_NOT_FOUND"),
    ("cancelOrder", 404, "ORDER_NOT_FOUND"),
    ("cancelOrder", 408, "REQUEST_TIMEOUT: a body was announced and did not arrive in time"),
    ("cancelOrder", 409, "NOT_CANCELLABLE, with a reason"),
    ("cancelOrder", 413, "PAYLOAD_TOO_LARGE: a body of more than 64 KiB was sent"),
    ("cancelOrder", 415, "UNSUPPORTED_MEDIA_TYPE: a body was sent that is not JSON"),
    ("withdrawCancel", 404, "ORDER_NOT_FOUND"),
    ("withdrawCancel", 409, "NOT_CANCELLABLE: nobody at the supplier is deciding about a cancel of it"),
    ("listTopUpPlans", 404, "ESIM_NOT_FOUND, or ORDER_NOT_FOUND by an order id"),
    ("listTopUpPlans", 409, "ESIM_NOT_ACTIVE"),
    ("topUp", 402, "INSUFFICIENT_BALANCE"),
    ("topUp", 403, "ACCOUNT_SUSPENDED, or LIMIT_EXCEEDED by this key"),
    ("topUp", 404, "ESIM_NOT_FOUND, PLAN_NOT_FOUND, or ORDER_NOT_FOUND by an order id"),
    ("topUp", 409, "IDEMPOTENCY_CONFLICT, with the orderId that holds the reference, PRICE_CHANGED or ESIM_NOT_ACTIVE"),
    ("topUp", 422, "WRONG_PLAN_TYPE"),
    ("topUp", 502, "SUPPLIER_REJECTED: the money is back in the wallet"),
    ("getUsage", 404, "ESIM_NOT_FOUND, or ORDER_NOT_FOUND by an order id"),
    ("listEvents", 429, "RATE_LIMITED: too many requests, or ten calls of this account wait for events; Retry-After says for how long"),
    ("createWebhook", 403, "LIMIT_EXCEEDED: the account has ten webhooks, or by this key"),
    ("changeWebhook", 404, "NOT_FOUND"),
    ("deleteWebhook", 404, "NOT_FOUND"),
    ("testWebhook", 404, "NOT_FOUND"),
    ("testWebhook", 429, "RATE_LIMITED: too many requests, or this webhook is tried by hand already or was within a second; Retry-After says for how long"),
    ("rotateWebhookSecret", 404, "NOT_FOUND"),
    ("replayWebhook", 404, "NOT_FOUND"),
    ("replayWebhook", 409, "WEBHOOK_DISABLED: enable it first"),
    ("listDeliveries", 404, "NOT_FOUND"),
    ("redeliver", 404, "NOT_FOUND"),
    ("redeliver", 410, "NOT_FOUND: the event is not kept any more"),
    ("redeliver", 429, "RATE_LIMITED: too many requests, or this webhook is tried by hand already or was within a second; Retry-After says for how long"),
];

/// A whole description, as JSON.
pub fn described(surface: &'static Surface, api: OpenApi) -> Written {
    Written::later(|| {
        let description = complete(surface, api).to_json().unwrap_or_default();
        if surface.webhooks { webhooks::added(description).into() } else { description.into() }
    })
}

/// Adds its refusals and examples to every operation, and what all operations share.
fn complete(surface: &Surface, mut api: OpenApi) -> OpenApi {
    let components = api.components.get_or_insert_default();
    let mut problem = vec![(Problem::name().to_string(), Problem::schema())];
    Problem::schemas(&mut problem);
    components.schemas.extend(problem);
    if surface.webhooks {
        components.schemas.extend(webhooks::schemas());
    }
    PARTNER.examples.add_problem(components);
    let mut together = SecurityRequirement::default();
    for (name, scheme) in (surface.keys)() {
        components.security_schemes.insert(name.into(), RefOr::T(scheme));
        together = together.add(name, Vec::<String>::new());
    }
    let printable = format!("[^{}]", unprintable());
    for schema in components.schemas.values_mut() {
        *schema = flat(schema.clone());
        spell_out(schema, &printable);
    }
    components.schemas.iter_mut().for_each(|(name, schema)| name_words(name, schema));
    for (name, schema) in &mut components.schemas {
        if let RefOr::T(Schema::Object(object)) = schema
            && surface.strict.contains(&name.as_str())
        {
            object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        }
    }
    api.security = Some(vec![together]);
    for item in api.paths.paths.values_mut() {
        for operation in
            [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete].into_iter().flatten()
        {
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(Parameter { schema: Some(schema), .. }) = parameter {
                    spell_out(schema, &printable);
                }
            }
            add_errors(surface, operation);
            surface.examples.add(operation);
        }
    }
    api
}

/// Names the words of an enum after it: generators for Go make each a constant of the whole package, where two enums
/// may have the same word.
fn name_words(name: &str, schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::Object(object)) = schema else { return };
    let words = object.enum_values.iter().flatten().filter_map(|word| word.as_str());
    let names: Vec<String> = words.map(|word| format!("{name}{}", in_camel_case(word))).collect();
    if !names.is_empty() {
        object.extensions = Some(ExtensionsBuilder::new().add("x-enum-varnames", names).build());
    }
}

/// `PENDING_PAYMENT` as `PendingPayment`, `order.failed` as `OrderFailed`.
fn in_camel_case(word: &str) -> String {
    let part = |part: &str| {
        let (first, rest) = part.split_at(part.len().min(1));
        first.to_uppercase() + &rest.to_lowercase()
    };
    word.split(['_', '.']).map(part).collect()
}

/// The pattern that handlers write where a text of printable characters is taken, from 1 to its `max_length`. `spell_out`
/// replaces it with the full class, which is long.
const PRINTABLE: &str = "printable";
/// The same where an empty text stands for none.
const PRINTABLE_OR_EMPTY: &str = "printable or empty";

fn spell_out(schema: &mut RefOr<Schema>, printable: &str) {
    let RefOr::T(Schema::Object(object)) = schema else { return };
    let least = match object.pattern.as_deref() {
        Some(PRINTABLE) => Some(1),
        Some(PRINTABLE_OR_EMPTY) => Some(0),
        _ => None,
    };
    if let (Some(least), Some(most)) = (least, object.max_length) {
        object.pattern = Some(format!("^{printable}{{{least},{most}}}$"));
        object.min_length = Some(least);
    }
    object.properties.values_mut().for_each(|property| spell_out(property, printable));
}

/// The characters that `fields::printable` refuses, as the inside of a class in a pattern.
fn unprintable() -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for code in ('\0'..='\u{ffff}').filter(|c| is_unprintable(*c)).map(u32::from) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == code => *last = code,
            _ => ranges.push((code, code)),
        }
    }
    let written = |(first, last): (u32, u32)| match first == last {
        true => format!("\\u{first:04X}"),
        false => format!("\\u{first:04X}-\\u{last:04X}"),
    };
    ranges.into_iter().map(written).collect()
}

fn add_errors(surface: &Surface, operation: &mut Operation) {
    let mut errors: BTreeMap<u16, &str> = surface.common.iter().copied().collect();
    // An operation with a `security` of its own needs no key.
    if operation.security.is_some() {
        errors.retain(|status, _| !matches!(status, 401 | 403));
    }
    if operation.request_body.is_some() {
        errors.extend(WITH_BODY.iter().copied());
    }
    if operation.request_body.is_some() || operation.parameters.is_some() {
        errors.extend([WITH_INPUT]);
    }
    let problem = || Content::new(Some(Ref::from_schema_name("Problem")));
    let own = surface.refusals.iter().filter(|(id, ..)| operation.operation_id.as_deref() == Some(id));
    errors.extend(own.map(|(_, status, about)| (*status, *about)));
    for (status, about) in errors {
        operation.responses.responses.entry(status.to_string()).or_insert_with(|| {
            RefOr::T(
                ResponseBuilder::new()
                    .description(about)
                    .content("application/problem+json", problem())
                    .build(),
            )
        });
    }
    headers::add(operation);
}

pub async fn partner_file(_: Anyone, state: State) -> Answer {
    file(&state.texts.partner_description).await
}

pub async fn agentic_file(_: Anyone, state: State) -> Answer {
    file(&state.texts.agentic_description).await
}

pub async fn consumer_file(_: Anyone, state: State) -> Answer {
    file(&state.texts.consumer_description).await
}

pub async fn sandbox_file(_: Anyone, state: State) -> Answer {
    file(&state.texts.sandbox_description).await
}

pub async fn file(json: &Written) -> Answer {
    Ok(([(header::CONTENT_TYPE, "application/json")], json.get().await?.clone()).into_response())
}
