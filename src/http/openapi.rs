//! The OpenAPI description, made from the handlers. What every operation has in common (errors, keys, limits) is
//! added here, once.

use std::collections::BTreeMap;

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ContactBuilder, Content, HeaderBuilder, InfoBuilder, LicenseBuilder, ObjectBuilder, OpenApi,
    OpenApiBuilder, Ref, RefOr, ResponseBuilder, SecurityRequirement, ServerBuilder, Type,
};

const INTRODUCTION: &str = "Buy eSIM data plans at wholesale prices from a prepaid wallet.\n\n\
Money is a JSON number of US dollars with at most six decimals. Times are ISO 8601 UTC. \
Send a `partnerRefId` with every purchase: the same reference is the same purchase, however often it is sent.";

pub fn base(server: &str) -> OpenApi {
    let info = InfoBuilder::new()
        .title("simgate partner API")
        .version("1.0.0")
        .description(Some(INTRODUCTION))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .contact(Some(ContactBuilder::new().name(Some("The operator of this gateway")).build()))
        .build();
    let tags = [
        ("wallet", "The prepaid wallet and its statement"),
        ("plans", "What can be bought"),
        ("orders", "Buying eSIMs"),
        ("top-ups", "More data on an existing eSIM"),
        ("usage", "How much data is left"),
    ];
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([ServerBuilder::new().url(server).description(Some("This gateway")).build()]))
        .tags(Some(tags.map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build())))
        .build()
}

/// Adds to every operation what all of them share.
pub fn complete(mut api: OpenApi) -> OpenApi {
    let components = api.components.get_or_insert_default();
    for (scheme, header, about) in [
        ("partnerKey", "X-B2B-Key", "The public half of an API key"),
        ("partnerSecret", "X-B2B-Secret", "The secret half of the same key"),
    ] {
        let key = ApiKeyValue::with_description(header, about);
        components
            .security_schemes
            .insert(scheme.into(), RefOr::T(SecurityScheme::ApiKey(ApiKey::Header(key))));
    }
    let both = SecurityRequirement::new("partnerKey", Vec::<String>::new())
        .add("partnerSecret", Vec::<String>::new());
    api.security = Some(vec![both]);
    for item in api.paths.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            add_common_errors(operation);
        }
    }
    api
}

fn add_common_errors(operation: &mut Operation) {
    let mut common = BTreeMap::from([
        (401, "UNAUTHENTICATED: key or secret missing, wrong or revoked"),
        (403, "LIMIT_EXCEEDED: this key may not do this, or not from this address"),
        (405, "METHOD_NOT_ALLOWED"),
        (406, "NOT_ACCEPTABLE: this API answers JSON"),
        (429, "RATE_LIMITED: slow down; Retry-After says for how long"),
        (500, "INTERNAL: our fault; quote the requestId"),
        (503, "OVERLOADED or SUPPLIER_UNAVAILABLE: nothing was charged, try again"),
    ]);
    if operation.request_body.is_some() {
        common.insert(408, "REQUEST_TIMEOUT: the body did not arrive in time");
        common.insert(413, "PAYLOAD_TOO_LARGE: more than 64 KiB");
        common.insert(415, "UNSUPPORTED_MEDIA_TYPE: the body is not JSON");
    }
    if operation.request_body.is_some() || operation.parameters.is_some() {
        common.insert(400, "INVALID_REQUEST: every wrong field is named");
    }
    let problem = || Content::new(Some(Ref::from_schema_name("Problem")));
    for (status, about) in common {
        operation.responses.responses.entry(status.to_string()).or_insert_with(|| {
            RefOr::T(
                ResponseBuilder::new()
                    .description(about)
                    .content("application/problem+json", problem())
                    .build(),
            )
        });
    }
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            let text = ObjectBuilder::new().schema_type(Type::String);
            let id = HeaderBuilder::new().schema(Some(text)).description(Some("Names this request")).build();
            response.headers.insert("X-Request-Id".into(), RefOr::T(id));
        }
    }
}
