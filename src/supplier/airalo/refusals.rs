//! What an answer without success means. Asking twice would buy twice here, so a wrong `Refused` costs a profile that
//! nobody gets, and a doubt costs only time: the sale is looked up. So only answers that can come only before anything
//! was sold are refusals, and everything that is not in this table is a doubt.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::shapes::Text;
use crate::domain::text::visible;
use crate::supplier::wire::Reply;
use crate::supplier::{Answer, Cause, No};

/// How many characters are kept of the supplier's words.
const MOST: usize = 300;

#[derive(Deserialize)]
struct Problem {
    code: Option<Text>,
    reason: Option<Text>,
    data: Option<Box<RawValue>>,
    meta: Option<ProblemMeta>,
}

#[derive(Deserialize)]
struct ProblemMeta {
    message: Option<Text>,
}

/// The body of an answer with this status, or what any other answer means.
pub fn verdict(reply: Reply, wanted: u16) -> Answer<Vec<u8>> {
    let status = reply.status.as_u16();
    if status == wanted {
        return Answer::Done(reply.body);
    }
    let problem = serde_json::from_slice::<Problem>(&reply.body).ok();
    let said = format!("{status}: {}", words(problem.as_ref()));
    match status {
        // Turned away at the door: nobody looked at the question. The next order would hear the same, so this is no
        // refusal of this one. 403 comes with 89: our address is not on the list.
        401 | 403 | 429 => Answer::NotSent(said),
        422 => match problem.as_ref().and_then(cause) {
            Some(cause) => Answer::Refused(No::because(cause, said)),
            None => Answer::Doubt(said),
        },
        _ => Answer::Doubt(said),
    }
}

/// Why nothing was sold; `None` when that is not certain.
fn cause(problem: &Problem) -> Option<Cause> {
    match problem.code.as_ref().map(|code| code.0.as_str()) {
        Some("11") => Some(Cause::NoFunds),
        Some("33" | "34") => Some(Cause::SoldOut),
        // Maintenance of the operator, a wrong signature, no top-ups for this profile, a recycled profile: each is
        // found out before a sale.
        Some("13" | "14" | "23" | "73") => Some(Cause::Rejected),
        // 43 is said of anything, and 53 of what nobody expected, also in the middle of a sale.
        Some(_) => None,
        None => invalid_field(problem),
    }
}

/// Without a code, a field was not valid: fields are checked first of all. Their names are the keys of `data`.
fn invalid_field(problem: &Problem) -> Option<Cause> {
    const OURS: [&str; 5] = ["quantity", "type", "description", "iccid", "iccids"];
    let data = problem.data.as_ref()?;
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(data.get()).ok()?;
    if fields.contains_key("package_id") {
        return Some(Cause::SoldOut);
    }
    OURS.iter().any(|field| fields.contains_key(*field)).then_some(Cause::Rejected)
}

/// The supplier's words, for people.
fn words(problem: Option<&Problem>) -> String {
    let Some(problem) = problem else { return "an answer that cannot be read".into() };
    let message = problem.meta.as_ref().and_then(|meta| meta.message.as_ref());
    let mut said: Vec<String> =
        [&problem.code, &problem.reason].into_iter().flatten().map(|text| text.0.clone()).collect();
    said.extend(message.map(|text| text.0.clone()));
    said.extend(
        problem
            .data
            .as_ref()
            .map(|data| data.get().to_string())
            .filter(|data| data != "[]" && data != "null"),
    );
    visible(&said.join(", "), MOST)
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use reqwest::header::HeaderMap;

    use super::*;

    fn told(status: u16, body: &str) -> (&'static str, Option<Cause>) {
        let status = StatusCode::from_u16(status).unwrap();
        match verdict(Reply { status, headers: HeaderMap::new(), body: body.into() }, 200) {
            Answer::Refused(no) => ("refused", Some(no.cause)),
            other => (other.outcome(), None),
        }
    }

    #[test]
    fn only_what_comes_before_a_sale_refuses_it() {
        let by_code = |code: &str| told(422, &format!(r#"{{"code":{code},"reason":"why"}}"#));
        assert_eq!(by_code("11"), ("refused", Some(Cause::NoFunds)));
        assert_eq!(by_code("\"33\""), ("refused", Some(Cause::SoldOut)));
        assert_eq!(by_code("34"), ("refused", Some(Cause::SoldOut)));
        for code in ["13", "14", "23", "73"] {
            assert_eq!(by_code(code), ("refused", Some(Cause::Rejected)), "{code}");
        }
        for code in ["43", "53", "999", "\"\""] {
            assert_eq!(by_code(code), ("doubt", None), "{code}");
        }
    }

    #[test]
    fn fields_are_checked_before_anything_is_sold() {
        let invalid = |data: &str| {
            told(422, &format!(r#"{{"data":{data},"meta":{{"message":"the parameter is invalid"}}}}"#))
        };
        assert_eq!(
            invalid(r#"{"package_id":"The selected package is invalid."}"#),
            ("refused", Some(Cause::SoldOut))
        );
        assert_eq!(
            invalid(r#"{"quantity":"The quantity may not be greater than 50."}"#),
            ("refused", Some(Cause::Rejected))
        );
        for data in ["[]", "{}", "null", r#"{"order":"failed"}"#] {
            assert_eq!(invalid(data), ("doubt", None), "{data}");
        }
    }

    #[test]
    fn the_door_is_no_refusal_and_the_rest_is_a_doubt() {
        for status in [401, 403, 429] {
            assert_eq!(told(status, r#"{"code":89}"#), ("not_sent", None), "{status}");
        }
        for status in [201, 204, 302, 400, 404, 409, 500, 502, 503] {
            assert_eq!(told(status, r#"{"code":11}"#), ("doubt", None), "{status}");
        }
        assert_eq!(told(422, "<html>"), ("doubt", None));
        assert_eq!(told(200, "anything"), ("done", None));
    }

    #[test]
    fn the_words_are_cut_and_visible() {
        let body = format!(r#"{{"code":53,"reason":"\u202e{}"}}"#, "x".repeat(900)).into_bytes();
        let reply = Reply { status: StatusCode::UNPROCESSABLE_ENTITY, headers: HeaderMap::new(), body };
        let Answer::Doubt(said) = verdict(reply, 200) else { panic!() };
        assert!(said.starts_with("422: 53, xxx") && said.len() < 320, "{said}");
    }
}
