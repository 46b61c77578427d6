//! What the operations of the agentic API have in common: a bearer token, and what is refused.

use std::sync::LazyLock;

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use super::Surface;
use crate::http::docs::examples::Examples;

const INTRODUCTION: &str = "Buy eSIM data plans as an agent, at retail prices.\n\n\
An agent proves an email address once, by a code that is mailed to it, and gets a personal access token that never \
expires. Searching needs no token.\n\n\
A checkout answers 402 with the exact amount of USDT or USDC to send, and where. Anyone who knows its invoice id can follow it, \
until the eSIM is delivered.\n\n\
Money is a JSON number of US dollars with at most six decimals. Times are ISO 8601 UTC.";

static EXAMPLES: LazyLock<Examples> =
    LazyLock::new(|| Examples::read(include_str!("../examples/agentic.json")));

pub static AGENTIC: Surface = Surface {
    title: "simgate agentic API",
    introduction: INTRODUCTION,
    tags: &[
        ("login", "From an email address to a token, and the tokens of an account"),
        ("products", "What can be bought"),
        ("checkout", "Buying: what to pay where, and how it stands"),
        ("wallet", "The account's money and orders"),
    ],
    keys: || {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("sgp_…")
            .description(Some("A personal access token, from verify-otp"));
        vec![("token", SecurityScheme::Http(bearer.build()))]
    },
    common: &[
        (401, "UNAUTHENTICATED: token missing, wrong or revoked"),
        (403, "LIMIT_EXCEEDED: a session token may not do this"),
        (405, "METHOD_NOT_ALLOWED"),
        (406, "NOT_ACCEPTABLE: this API answers JSON"),
        (429, "RATE_LIMITED: slow down; Retry-After says for how long"),
        (500, "INTERNAL: our fault; quote the requestId"),
        (503, "OVERLOADED: nothing was done, try again"),
    ],
    strict: &["CheckoutRequest"],
    refusals: REFUSALS,
    webhooks: false,
    examples: &EXAMPLES,
};

#[rustfmt::skip]
const REFUSALS: &[(&str, u16, &str)] = &[
    ("requestOtp", 429, "RATE_LIMITED: an address gets one mail a minute, from a bucket of three that gains one every seven and a half minutes; a client fifty an hour; Retry-After says for how long, and `detail` whether the code mailed before is still good"),
    ("verifyOtp", 401, "OTP_INVALID: the code is wrong, used or expired, or your client guessed too often and did not ask for it"),
    ("revokeToken", 404, "NOT_FOUND: no token of this account has this id"),
    ("checkout", 403, "ACCOUNT_SUSPENDED, or LIMIT_EXCEEDED by this token's daily limit"),
    ("checkout", 404, "PLAN_NOT_FOUND"),
    ("checkout", 409, "IDEMPOTENCY_CONFLICT: this Idempotency-Key belongs to another request, which orderId names"),
    ("checkout", 422, "WRONG_PLAN_TYPE, UNSUPPORTED_PAIR (with the pairs that work) or COUPON_INVALID"),
    ("checkout", 429, "RATE_LIMITED: too many requests, 50 open checkouts, or 200 unpaid ones in a day; Retry-After says for how long"),
    ("checkout", 502, "SUPPLIER_REJECTED, when the wallet pays: the money is back in it"),
    ("checkout", 503, "OVERLOADED, ON_HOLD or SUPPLIER_UNAVAILABLE: nothing was charged, try again"),
    ("getPurchase", 401, "UNAUTHENTICATED: a token was sent and is not valid, or an order id was asked for without one"),
    ("getPurchase", 404, "INVOICE_NOT_FOUND or ORDER_NOT_FOUND: there is none, or it is somebody else's"),
];
