//! The envelope of the eSIM Access family: every call is a POST of JSON with headers that prove who sends it, and every
//! answer says `success`, or a code and a message. The codes' meaning for a sale is in one table here.

use std::sync::Arc;

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::clock::Clock;
use crate::domain::text;
use crate::supplier::terms::{AuthMode, Terms};
use crate::supplier::wire::{Lost, Pace, Reply, Wire};
use crate::supplier::{Answer, Cause, No};
use crate::vault;

const ACCESS_CODE: HeaderName = HeaderName::from_static("rt-accesscode");
const REQUEST_ID: HeaderName = HeaderName::from_static("rt-requestid");
const SECRET_KEY: HeaderName = HeaderName::from_static("rt-secretkey");
const SIGNATURE: HeaderName = HeaderName::from_static("rt-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("rt-timestamp");
/// How much of a supplier's message is kept.
const WORDS: usize = 200;

pub const STILL_ALLOCATING: &str = "200010";
/// What was asked for is not allowed while the profile is as it is.
pub const WRONG_STATE: &str = "200002";
pub const PRICE_CODES: [&str; 2] = ["200005", "200006"];

/// The codes by which a sale is refused for good. All others leave a doubt:
/// - the service is busy or broken (900001, 000001): it may have sold all the same;
/// - our credentials, clock, address or request are not good (101001, 101002, 101003, 0001xx, 200008): this is decided
///   before anybody looks for the sale. It says nothing about an earlier question with the same id that may have sold,
///   and a refusal ends an order for good. The order waits until the operator has put it right;
/// - a code that nobody knows.
const REFUSALS: [(&str, Cause); 13] = [
    ("200002", Cause::Rejected),
    ("200005", Cause::PriceChanged),
    ("200006", Cause::PriceChanged),
    ("200007", Cause::NoFunds),
    ("200011", Cause::SoldOut),
    ("310201", Cause::SoldOut),
    ("310211", Cause::SoldOut),
    ("310221", Cause::SoldOut),
    ("310231", Cause::SoldOut),
    ("310241", Cause::SoldOut),
    ("310243", Cause::SoldOut),
    ("310251", Cause::SoldOut),
    ("310403", Cause::Rejected),
];

/// Why there is no answer to work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    NotSent(String),
    Doubt(String),
    /// The supplier answered in its own words that it did not do it.
    Said {
        code: String,
        words: String,
    },
}

impl Fault {
    pub fn is(&self, codes: &[&str]) -> bool {
        matches!(self, Fault::Said { code, .. } if codes.contains(&code.as_str()))
    }

    /// What a refusal means for a sale; `None` where it is no refusal.
    pub fn refusal(&self) -> Option<No> {
        let Fault::Said { code, words } = self else { return None };
        let (_, cause) = REFUSALS.iter().find(|(known, _)| known == code)?;
        Some(No::because(*cause, format!("{code} {words}")))
    }

    pub fn in_words(self) -> String {
        match self {
            Fault::NotSent(why) | Fault::Doubt(why) => why,
            Fault::Said { code, words } => format!("{code} {words}"),
        }
    }

    pub fn answer<T>(self) -> Answer<T> {
        match (self.refusal(), self) {
            (Some(no), _) => Answer::Refused(no),
            (None, Fault::NotSent(why)) => Answer::NotSent(why),
            (None, other) => Answer::Doubt(other.in_words()),
        }
    }
}

impl From<Lost> for Fault {
    fn from(lost: Lost) -> Fault {
        match lost {
            Lost::NotSent(why) => Fault::NotSent(why),
            Lost::Doubt(why) => Fault::Doubt(why),
        }
    }
}

/// A value that some sellers write as a text and others as a number: always as text, digit by digit. ICCIDs have more
/// digits than any number type keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        match raw.get().as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw.get()).map(Text).map_err(D::Error::custom),
            Some(b'n') => Ok(Text::default()),
            Some(b'{' | b'[') => Err(D::Error::custom("a text or a number was expected")),
            _ => Ok(Text(raw.get().to_string())),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(default)]
    success: Text,
    #[serde(default)]
    error_code: Text,
    #[serde(default)]
    error_msg: Text,
    #[serde(default)]
    error_message: Text,
    #[serde(borrow, default)]
    obj: Option<&'a RawValue>,
}

/// The supplier's address and what opens it.
pub struct Line {
    wire: Wire,
    clock: Arc<Clock>,
    auth: AuthMode,
    client: SecretString,
    secret: Option<SecretString>,
}

impl Line {
    pub fn new(terms: &Terms, pace: Arc<dyn Pace>, clock: Arc<Clock>) -> Result<Line, String> {
        let line = Line {
            wire: Wire::new(&terms.url, pace)?,
            clock,
            auth: terms.auth,
            client: terms.client.clone(),
            secret: terms.secret.clone(),
        };
        // What cannot be sent in a header fails now, and not at the first order.
        line.headers("{}").map(|_| line)
    }

    /// One call: its `obj`, or why there is none.
    pub async fn call<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Fault> {
        let body = body.to_string();
        let headers = self.headers(&body).map_err(Fault::NotSent)?;
        let request = self.wire.post(path)?.headers(headers).body(body);
        let reply = self.wire.send(request).await?;
        opened(&reply).map_err(|fault| self.without_secrets(fault))
    }

    fn headers(&self, body: &str) -> Result<HeaderMap, String> {
        let client = self.client.expose_secret();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCESS_CODE, hidden("access code", client)?);
        match self.auth {
            AuthMode::Code => {}
            AuthMode::Secret => {
                headers.insert(SECRET_KEY, hidden("secret key", self.secret()?)?);
            }
            AuthMode::Signed | AuthMode::SignedUpper => {
                let id = uuid(vault::random());
                let time = (self.clock.now().micros() / 1_000).to_string();
                let mut signature = signature(self.secret()?, &[&time, &id, client, body]);
                if self.auth == AuthMode::SignedUpper {
                    signature.make_ascii_uppercase();
                }
                let plain = [(REQUEST_ID, id), (TIMESTAMP, time), (SIGNATURE, signature)];
                for (name, value) in plain {
                    headers.insert(name, HeaderValue::try_from(value).map_err(|error| error.to_string())?);
                }
            }
        }
        Ok(headers)
    }

    fn secret(&self) -> Result<&str, String> {
        let secret = self.secret.as_ref().map(ExposeSecret::expose_secret);
        secret.ok_or_else(|| format!("auth mode {} needs a secret key", self.auth.as_str()))
    }

    /// A supplier may repeat our credentials in its message.
    fn without_secrets(&self, fault: Fault) -> Fault {
        let hide = |text: String| {
            let secrets = [Some(&self.client), self.secret.as_ref()].into_iter().flatten();
            secrets
                .map(ExposeSecret::expose_secret)
                .filter(|secret| !secret.is_empty())
                .fold(text, |text, secret| text.replace(secret, "…"))
        };
        match fault {
            Fault::NotSent(why) => Fault::NotSent(hide(why)),
            Fault::Doubt(why) => Fault::Doubt(hide(why)),
            Fault::Said { code, words } => Fault::Said { code: hide(code), words: hide(words) },
        }
    }
}

fn hidden(what: &str, text: &str) -> Result<HeaderValue, String> {
    let mut value =
        HeaderValue::try_from(text).map_err(|_| format!("the {what} has characters that no header takes"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// HMAC-SHA256 over the parts, one after the other, in lower-case hex.
fn signature(secret: &str, parts: &[&str]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    vault::hex(hmac::sign(&key, parts.concat().as_bytes()).as_ref())
}

/// A random number as a UUID of version 4.
fn uuid(random: u128) -> String {
    let marked = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let digits = format!("{marked:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// Takes an answer apart. A code in it counts under any status; without one, the status decides.
fn opened<T: DeserializeOwned>(reply: &Reply) -> Result<T, Fault> {
    let envelope: Envelope = match serde_json::from_slice(&reply.body) {
        Ok(envelope) => envelope,
        Err(_) => return Err(Fault::Doubt(unreadable(reply))),
    };
    let code = text::visible(&envelope.error_code.0, WORDS);
    let failed = !matches!(code.as_str(), "" | "0");
    // A broken or busy service may have done it all the same, whatever it says.
    if reply.status.is_server_error() || reply.status == StatusCode::TOO_MANY_REQUESTS {
        return Err(Fault::Doubt(unreadable(reply)));
    }
    match envelope.success.0.as_str() {
        "true" if !failed && reply.status.is_success() => {
            let obj = envelope.obj.map_or("null", RawValue::get);
            serde_json::from_str(obj)
                // The error's own words would quote what was sent, activation codes among it.
                .map_err(|error| {
                    Fault::Doubt(format!("the answer cannot be read at column {}", error.column()))
                })
        }
        "false" if failed => {
            let words = format!("{}{}", envelope.error_msg.0, envelope.error_message.0);
            Err(Fault::Said { code, words: text::visible(&words, WORDS) })
        }
        _ => Err(Fault::Doubt(unreadable(reply))),
    }
}

fn unreadable(reply: &Reply) -> String {
    let wait = reply.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let wait = wait.map(|wait| format!(", to be asked again after {}", text::visible(wait, 40)));
    format!("the supplier answered HTTP {}{}", reply.status.as_u16(), wait.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        let status = StatusCode::from_u16(status).unwrap();
        Reply { status, headers: HeaderMap::new(), body: body.as_bytes().to_vec() }
    }

    fn fault(status: u16, body: &str) -> Fault {
        opened::<Value>(&reply(status, body)).unwrap_err()
    }

    #[test]
    fn answers_are_taken_out_of_their_envelope() {
        for code in ["null", "\"0\"", "0", "\"\""] {
            let body =
                format!(r#"{{"success": true, "errorCode": {code}, "errorMsg": null, "obj": {{"a": 1}}}}"#);
            assert_eq!(opened::<Value>(&reply(200, &body)).unwrap()["a"], 1, "{code}");
        }
        assert_eq!(opened::<Option<Value>>(&reply(200, r#"{"success": true}"#)).unwrap(), None);
    }

    #[test]
    fn refusals_are_what_the_table_says() {
        let said = |code: &str| {
            fault(200, &format!(r#"{{"success": false, "errorCode": "{code}", "errorMsg": "no"}}"#))
        };
        let cause = |code: &str| said(code).refusal().map(|no| no.cause);
        assert_eq!(cause("200007"), Some(Cause::NoFunds));
        assert_eq!(cause("200011"), Some(Cause::SoldOut));
        assert_eq!(cause("200005"), Some(Cause::PriceChanged));
        for doubt in [
            "000001", "900001", "101001", "101002", "101003", "000101", "000102", "000103", "000104",
            "000105", "000106", "000107", "200008", "200009", "200010", "310272", "999999",
        ] {
            assert_eq!(cause(doubt), None, "{doubt}");
            assert!(matches!(said(doubt).answer::<()>(), Answer::Doubt(_)), "{doubt}");
        }
        let other = fault(200, r#"{"success": false, "errorCode": 200007, "errorMessage": "empty"}"#);
        assert_eq!(other, Fault::Said { code: "200007".into(), words: "empty".into() });
    }

    #[test]
    fn what_is_no_clear_answer_is_a_doubt() {
        let refusal = r#"{"success": false, "errorCode": "200011", "errorMsg": "none left"}"#;
        let unclear = [
            (200, "<html>"),
            (200, ""),
            (200, "[]"),
            (200, "{}"),
            (200, r#"{"success": true, "errorCode": "200011", "obj": {}}"#),
            (200, r#"{"success": false, "errorCode": null}"#),
            (200, r#"{"success": false, "errorCode": "0"}"#),
            (500, refusal),
            (502, refusal),
            (429, refusal),
            (302, ""),
            (403, r#"{"success": true, "obj": {}}"#),
        ];
        for (status, body) in unclear {
            assert!(matches!(fault(status, body), Fault::Doubt(_)), "{status} {body}");
        }
        assert!(matches!(fault(400, refusal), Fault::Said { .. }), "some send an HTTP status too");
    }

    #[test]
    fn the_time_to_wait_is_told() {
        let mut busy = reply(429, "");
        busy.headers.insert(RETRY_AFTER, HeaderValue::from_static("30"));
        let Err(Fault::Doubt(why)) = opened::<Value>(&busy) else { panic!("it is busy") };
        assert_eq!(why, "the supplier answered HTTP 429, to be asked again after 30");
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        let read = |text: &str| serde_json::from_str::<Text>(text).map(|text| text.0).ok();
        assert_eq!(read("89852245280001354019").unwrap(), "89852245280001354019");
        assert_eq!(read("\"8985224528000135401F\"").unwrap(), "8985224528000135401F");
        assert_eq!((read("null").unwrap(), read("true").unwrap()), (String::new(), "true".into()));
        assert_eq!((read("{}"), read("[1]")), (None, None));
    }

    #[test]
    fn signatures_are_over_time_id_code_and_body() {
        // `printf %s '17Xcode{}' | openssl dgst -sha256 -hmac key`
        assert_eq!(
            signature("key", &["17", "X", "code", "{}"]),
            "a402ccdd85945388ac14d7910ed5b0dda989da73c1d1a851329c5fb7a34fdd48"
        );
        let id = uuid(u128::MAX);
        assert_eq!(id, "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid(0), "00000000-0000-4000-8000-000000000000");
    }
}
