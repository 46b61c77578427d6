//! `airalo-signature`: HMAC-SHA512 over the compact JSON of a body, with `/` written `\/` as PHP does. Requests and
//! webhooks are signed alike.

use ring::hmac::{self, HMAC_SHA512, Key};
use serde::de::IgnoredAny;

/// The header that a signature comes in.
pub const HEADER: &str = "airalo-signature";

/// The signature of a compact JSON body, in hexadecimal digits.
pub fn sign(secret: &str, compact: &str) -> String {
    let signed = hmac::sign(&key(secret), compact.replace('/', "\\/").as_bytes());
    signed.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a webhook's header is the signature of its body. The sender decodes and encodes a body before it signs, so
/// the body as it came is tried, and its compact forms: with letters as they are, as the SDKs write them, and with
/// `\u` escapes, as PHP does when it is told nothing else. Every comparison takes the same time wherever they differ.
pub fn is_signed(secret: &str, body: &[u8], header: &str) -> bool {
    let Some(signature) = bytes(header.trim()) else { return false };
    let key = key(secret);
    let fits = |text: &[u8]| hmac::verify(&key, text, &signature).is_ok();
    if fits(body) {
        return true;
    }
    let Some(compact) = compact(body) else { return false };
    let slashed = compact.replace('/', "\\/");
    fits(slashed.as_bytes()) || fits(in_ascii(&slashed).as_bytes())
}

fn key(secret: &str) -> Key {
    Key::new(HMAC_SHA512, secret.as_bytes())
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// The same JSON without spaces, with strings encoded anew. Keys stay in their order and numbers as they are written:
/// a parser would change both.
fn compact(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(open) = rest.find('"') {
        out.extend(rest[..open].chars().filter(|c| !c.is_ascii_whitespace()));
        let end = open + length_of_string(&rest[open..])?;
        let plain: String = serde_json::from_str(&rest[open..end]).ok()?;
        out.push_str(&serde_json::to_string(&plain).ok()?);
        rest = &rest[end..];
    }
    out.extend(rest.chars().filter(|c| !c.is_ascii_whitespace()));
    Some(out)
}

/// How long the string is that this text begins with, quotes included.
fn length_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn in_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with both of the vendor's SDKs for the secret `s3cret`; they agree.
    const SIGNED: [(&str, &str); 2] = [
        (
            "{\"package_id\":\"kallur-digital-7days-1gb\",\"quantity\":1,\"type\":\"sim\",\"description\":\"ord_a/b\"}",
            "d67d668050fe2364a55a2dee10930285193bc9e3025123ee67f03eec36138e2008586f6f3c3e08e23d1530ec8e552622e29d150894da998c535ea9962e876515",
        ),
        (
            "{\n \"event\": \"async_orders\",\n \"data\": {\n  \"id\": 10,\n  \"qrcode_url\": \"https://a.example/qr?id=1&x=é\",\n  \"price\": 4.5\n }\n}",
            "aff0f115d6e56cc7ec369e7c54d4e7d23d9a73f565a5a3ddfb1b023523b699e12d3dd343c5a0211488f429b852532d2ad3128cf669ff03035495bebc4c20e117",
        ),
    ];

    #[test]
    fn requests_are_signed_as_the_sdks_do() {
        for (body, signature) in SIGNED {
            assert_eq!(sign("s3cret", &compact(body.as_bytes()).unwrap()), signature);
        }
    }

    #[test]
    fn a_webhook_may_be_signed_before_or_after_it_was_encoded_anew() {
        let (body, signature) = SIGNED[1];
        assert!(is_signed("s3cret", body.as_bytes(), signature));
        let raw = hmac::sign(&key("s3cret"), body.as_bytes());
        let raw: String = raw.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        assert!(is_signed("s3cret", body.as_bytes(), &raw), "also in capitals");
        // PHP's own way, with escapes for letters beyond ASCII.
        let php = r#"{"url":"https:\/\/a.example\/\u00e9\ud83d\ude00","n":1.50}"#;
        let body = "{ \"url\": \"https://a.example/é😀\",\n \"n\": 1.50 }";
        let signature = hmac::sign(&key("s3cret"), php.as_bytes());
        let signature: String = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(is_signed("s3cret", body.as_bytes(), &signature));
    }

    #[test]
    fn anything_else_is_not_signed() {
        let (body, signature) = SIGNED[1];
        assert!(!is_signed("other", body.as_bytes(), signature));
        assert!(!is_signed("s3cret", body.replace("10", "11").as_bytes(), signature));
        assert!(!is_signed("s3cret", body.as_bytes(), &signature[..126]));
        for header in ["", "zz", "a", "é", &"0".repeat(128)] {
            assert!(!is_signed("s3cret", body.as_bytes(), header), "{header}");
        }
        for body in ["", "{", "\"", "{\"a\":\"\\\"}", "\u{0}"] {
            assert!(!is_signed("s3cret", body.as_bytes(), signature), "{body}");
        }
    }

    #[test]
    fn compact_json_keeps_order_and_numbers() {
        let body = "{ \"b\" : [1.0, 2e3 ,\t\"x\\/y \\u00e9\"], \"a\": null }\n";
        assert_eq!(compact(body.as_bytes()).unwrap(), "{\"b\":[1.0,2e3,\"x/y é\"],\"a\":null}");
    }
}
