//! What the operations of the consumer API have in common: a bearer token, and what is refused.

use std::sync::LazyLock;

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use super::Surface;
use crate::http::docs::examples::Examples;

const INTRODUCTION: &str = "What a customer does with a wallet: search, log in by a mailed code, buy, top up, look at usage, \
give back. Prices are retail.\n\n\
The token is a session's, from `/api/auth/otp/verify`, and ends after 24 hours; a personal access token of the agentic API \
works too. A failure has a status other than 2xx and a sentence for people in `error`. Bodies are JSON; their \
Content-Type may be left out, but must not be another. Pages of any origin may call this API.\n\n\
A wallet is filled by a person: when it is short, the 402 has a `magicLink`, a page that asks for an amount and leads to \
the payment.\n\n\
Money is a JSON number of US dollars with at most six decimals. Times are ISO 8601 UTC.";

static EXAMPLES: LazyLock<Examples> =
    LazyLock::new(|| Examples::read(include_str!("../examples/consumer.json")));

pub static CONSUMER: Surface = Surface {
    title: "simgate consumer API",
    introduction: INTRODUCTION,
    tags: &[
        ("products", "What can be bought, and what a coupon takes off"),
        ("help", "What people ask about eSIMs"),
        ("login", "From an email address to a session"),
        ("wallet", "The customer's money"),
        ("orders", "Buying eSIMs"),
        ("eSIMs", "Usage and top-ups"),
    ],
    keys: || {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("sgs_…")
            .description(Some("A session token, from /api/auth/otp/verify"));
        vec![("token", SecurityScheme::Http(bearer.build()))]
    },
    common: &[
        (401, "UNAUTHENTICATED: token missing, wrong, ended or revoked"),
        (405, "METHOD_NOT_ALLOWED"),
        (406, "NOT_ACCEPTABLE: this API answers JSON"),
        (429, "RATE_LIMITED: slow down; Retry-After says for how long"),
        (500, "INTERNAL: our fault; quote the requestId"),
        (503, "OVERLOADED: nothing was done, try again"),
    ],
    strict: &["OrderRequest", "TopUpRequest"],
    refusals: REFUSALS,
    webhooks: false,
    examples: &EXAMPLES,
};

#[rustfmt::skip]
const REFUSALS: &[(&str, u16, &str)] = &[
    ("sendCode", 429, "RATE_LIMITED: an address gets one mail a minute, from a bucket of three that gains one every seven and a half minutes; a client fifty an hour; Retry-After says for how long"),
    ("verifyCode", 401, "OTP_INVALID: the code is wrong, used or expired, or your client guessed too often and did not ask for it"),
    ("verifyCode", 403, "LIMIT_EXCEEDED: this gateway is full and takes no new accounts"),
    ("validateCoupon", 404, "PLAN_NOT_FOUND"),
    ("validateCoupon", 422, "COUPON_INVALID: unknown, expired, used up, an affiliate's, or not for this plan"),
    ("validateCoupon", 429, "RATE_LIMITED: too many requests, or too many codes that are not good; Retry-After says for how long"),
    ("placeOrder", 402, "INSUFFICIENT_BALANCE: `error` begins with `Insufficient wallet balance` and holds a link to pay in, as does `magicLink`"),
    ("placeOrder", 403, "ACCOUNT_SUSPENDED, or LIMIT_EXCEEDED by this token's daily limit"),
    ("placeOrder", 404, "PLAN_NOT_FOUND"),
    ("placeOrder", 409, "IDEMPOTENCY_CONFLICT: this Idempotency-Key belongs to another request; or PRICE_CHANGED"),
    ("placeOrder", 422, "WRONG_PLAN_TYPE or COUPON_INVALID"),
    ("placeOrder", 429, "RATE_LIMITED: too many requests, or too many coupons that are not good; Retry-After says for how long"),
    ("placeOrder", 502, "SUPPLIER_REJECTED: the money is back in the wallet"),
    ("placeOrder", 503, "OVERLOADED, ON_HOLD or SUPPLIER_UNAVAILABLE: nothing was charged, try again"),
    ("cancelOrder", 404, "ORDER_NOT_FOUND: there is none, it is a top-up, or it is somebody else's"),
    ("cancelOrder", 409, "NOT_CANCELLABLE, with a reason; or IDEMPOTENCY_CONFLICT"),
    ("withdrawCancel", 404, "ORDER_NOT_FOUND: there is none, it is a top-up, or it is somebody else's"),
    ("withdrawCancel", 409, "NOT_CANCELLABLE: nobody at the supplier is deciding about a cancel of it"),
    ("refreshUsage", 404, "ORDER_NOT_FOUND, or ESIM_NOT_FOUND: it is not delivered yet"),
    ("refreshUsage", 503, "OVERLOADED, or SUPPLIER_UNAVAILABLE: the carrier did not answer and no earlier reading is known"),
    ("listTopUps", 404, "ORDER_NOT_FOUND, or ESIM_NOT_FOUND: it is not delivered yet"),
    ("listTopUps", 409, "ESIM_NOT_ACTIVE: it is expired or was given back"),
    ("topUp", 402, "INSUFFICIENT_BALANCE: `error` begins with `Insufficient wallet balance` and holds a link to pay in, as does `magicLink`"),
    ("topUp", 403, "ACCOUNT_SUSPENDED, or LIMIT_EXCEEDED by this token's daily limit"),
    ("topUp", 404, "ORDER_NOT_FOUND, ESIM_NOT_FOUND or PLAN_NOT_FOUND"),
    ("topUp", 409, "IDEMPOTENCY_CONFLICT, PRICE_CHANGED or ESIM_NOT_ACTIVE"),
    ("topUp", 422, "WRONG_PLAN_TYPE: not one of this eSIM's top-ups"),
    ("topUp", 502, "SUPPLIER_REJECTED: the money is back in the wallet"),
    ("topUp", 503, "OVERLOADED, ON_HOLD or SUPPLIER_UNAVAILABLE: nothing was charged, try again"),
];
