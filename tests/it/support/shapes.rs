//! What values look like on the wire. `mask` checks each one's form and replaces what differs from run to run, so
//! that a snapshot shows the rest to the letter. `money` looks at the text itself: a parsed number hides noise.

use serde_json::{Map, Value, json};
use simgate::chain::address;
use simgate::domain::esim::{iccid, luhn_digit};
use simgate::domain::money::Usd;
use simgate::domain::network::AddressKind;
use simgate::domain::transfer::parse_tx_hash;

pub const API: &str = "/api/b2b/v1";
pub const ORDERS: &str = "/api/b2b/v1/orders";
pub const DEPOSIT: &str = "/api/b2b/v1/balance/deposit";

/// Checks and hides ids, times, codes and addresses.
#[track_caller]
pub fn mask(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(mask).collect(),
        Value::Object(fields) => {
            let masked: Map<String, Value> =
                fields.iter().map(|(k, v)| (k.clone(), mask_field(k, v))).collect();
            masked.into()
        }
        other => other.clone(),
    }
}

#[track_caller]
fn mask_field(name: &str, value: &Value) -> Value {
    let Value::String(text) = value else { return mask(value) };
    match name {
        "id" | "orderId" | "invoiceId" => json!(format!("{}…", id_prefix(text))),
        "orderNo" => {
            assert!(is_order_no(text), "{text}");
            json!("SG…")
        }
        "iccid" => {
            assert!(
                iccid(text).as_deref() == Some(text.as_str())
                    && text.len() == 19
                    && text.as_bytes()[18] == luhn_digit(&text[..18]),
                "{text}"
            );
            json!("89…")
        }
        "createdAt" | "asOf" | "expiresAt" | "confirmedAt" | "until" => {
            assert!(is_time(text), "{text}");
            json!("…Z")
        }
        "matchingId" => {
            assert!(text.len() >= 16, "{text}");
            json!("SIM-…")
        }
        "lpaString" => {
            let parts: Vec<&str> = text.split('$').collect();
            assert_eq!((parts.len(), parts[0]), (3, "LPA:1"), "{text}");
            json!(format!("LPA:1${}$SIM-…", parts[1]))
        }
        "txHash" => {
            assert!(parse_tx_hash(AddressKind::Evm, text).is_some(), "{text}");
            json!("0x…")
        }
        "depositAddress" => {
            assert!(address::bytes(AddressKind::Evm, text).is_some(), "{text}");
            json!("0x…")
        }
        "qrCodeUrl" | "installUrl" | "checkoutUrl" => json!(absolute(text)),
        "requestId" => json!("…"),
        _ => value.clone(),
    }
}

/// A prefix, `_`, and at least 22 base-62 digits (131 bits).
#[track_caller]
pub fn id_prefix(text: &str) -> &str {
    let (prefix, rest) = text.split_once('_').unwrap_or_else(|| panic!("no prefix: {text}"));
    assert!(rest.len() >= 22 && rest.bytes().all(|b| b.is_ascii_alphanumeric()), "{text}");
    assert!(["ord", "top", "ptn", "key", "inv"].contains(&prefix), "{text}");
    &text[..=prefix.len()]
}

pub fn is_order_no(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_digit() || (c.is_ascii_uppercase() && !"ILOU".contains(c));
    text.len() == 12 && text.starts_with("SG") && text[2..].chars().all(allowed)
}

/// `2026-01-31T12:00:00.000Z`, to the letter.
pub fn is_time(text: &str) -> bool {
    let form = "0000-00-00T00:00:00.000Z";
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(b, f)| if f == b'0' { b.is_ascii_digit() } else { b == f })
}

/// Every URL in an answer is absolute: the host and the token are hidden, the rest is shown.
#[track_caller]
fn absolute(text: &str) -> String {
    let rest = text.strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("not absolute: {text}"));
    let mut parts = rest.splitn(3, '/').skip(1);
    let (door, token) = (parts.next().unwrap(), parts.next().unwrap());
    let (token, ending) = match token.split_once('.') {
        Some((token, kind)) => (token, format!(".{kind}")),
        None => (token, String::new()),
    };
    assert!(token.len() >= 32, "a short token: {text}");
    format!("http://…/{door}/…{ending}")
}

/// Every amount in this JSON text is written as the shortest plain decimal.
#[track_caller]
pub fn money(text: &str) {
    let mut seen = 0;
    for name in ["Usd\":", "lowBalanceThreshold\":"] {
        for (at, _) in text.match_indices(name) {
            let rest = &text[at + name.len()..];
            let end = rest.find([',', '}', ']']).unwrap();
            let number = rest[..end].trim();
            let amount = Usd::parse(number).unwrap_or_else(|e| panic!("{number}: {}", e.as_str()));
            assert_eq!(amount.to_string(), number, "an amount is not written plainly");
            seen += 1;
        }
    }
    assert!(seen > 0, "no amount in {text}");
}

/// The names of an object's fields, in order of the alphabet.
pub fn names(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Each order's field, for comparing lists.
pub fn column<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap()).collect()
}
