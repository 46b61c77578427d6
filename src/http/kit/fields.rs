//! Reading requests: JSON bodies, and in `query.rs` query strings and forms, field by field, so that a caller hears of
//! every mistake at once. Numbers that are money stay text until `Usd::parse`; they never pass through a float.

mod query;

use axum::http::HeaderMap;

pub use self::query::{Form, NoQuery, Query};
pub use super::body::{JsonBody, OptionalBody, OptionalUntyped, UntypedJson, is_json, read};
use super::members::Members;
pub use super::path::{
    ICCID_RULE, ID_CHARS, Segment, Segments, batch_id, iccid, invoice_id, key_id, member_id, named_iccid,
    order_id, session_id, token_id, webhook_id,
};
use crate::domain::email::Email;
use crate::domain::money::Usd;
use crate::domain::near;
use crate::domain::plan;
use crate::domain::refusal::{FieldError, Refusal};
use crate::domain::text::{is_hidden, visible};
use crate::error::Result;

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
pub const EMAIL_CHARS: usize = 254;
/// How many characters a caller's own reference may have.
pub const REFERENCE_CHARS: usize = 128;
/// The longest code: of a plan, of a coupon, or from a mail, however it is spaced.
pub const CODE_CHARS: usize = 64;

impl OptionalBody {
    /// Refuses a body that says anything else.
    pub fn require_only(&self, names: &[&str]) -> Result<(), Refusal> {
        let Some(body) = &self.0 else { return Ok(()) };
        let mut fields = Fields::parse(body)?;
        fields.allow(names);
        fields.finish()
    }
}

/// The caller's own reference, from the header `Idempotency-Key`.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    sent_key(headers).map_err(|message| Refusal::field(IDEMPOTENCY_KEY, message))
}

/// The same, or what is wrong with it.
fn sent_key(headers: &HeaderMap) -> Result<Option<String>, String> {
    let mut sent = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = sent.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| sent.next().is_none() && printable(text, REFERENCE_CHARS));
    let message = || format!("must have 1 to {REFERENCE_CHARS} printable ASCII characters, and be sent once");
    text.map(|text| Some(text.to_string())).ok_or_else(message)
}

fn unless_wrong<T>(errors: Vec<FieldError>, required: Option<T>) -> Result<T, Refusal> {
    required.filter(|_| errors.is_empty()).ok_or(Refusal::Invalid(errors))
}

/// Whether a text has 1 to `most` characters, none of them hidden.
pub fn printable(text: &str, most: usize) -> bool {
    let length = text.chars().take(most + 1).count();
    (1..=most).contains(&length) && !text.chars().any(is_unprintable)
}

/// Hidden characters that our OpenAPI patterns can express.
pub fn is_unprintable(c: char) -> bool {
    c <= '\u{ffff}' && is_hidden(c)
}

/// The most unknown names that are told of.
const MOST_UNKNOWN: usize = 20;
/// How much of a name that somebody else made up is shown.
const NAME_CHARS: usize = 64;
const GIVEN_ONCE: &str = "must be given once";

/// A mistake for each name that none of the known ones equals. `listed` says what to do, by the name that was meant.
fn unknown<'a>(
    names: impl Iterator<Item = &'a String>,
    known: &[&str],
    listed: impl Fn(Option<&str>) -> String,
) -> Vec<FieldError> {
    let mut others: Vec<&String> = names.filter(|name| !known.contains(&name.as_str())).collect();
    others.sort_unstable();
    others.truncate(MOST_UNKNOWN);
    others.into_iter().map(|name| FieldError::unknown(name, &listed(near::meant(name, known)))).collect()
}

/// Names in a sentence.
fn in_words(names: &[&str]) -> String {
    if names.is_empty() { "none is taken here".into() } else { format!("known are {}", names.join(", ")) }
}

/// The words of a closed set, as messages list them.
pub fn listed(words: impl IntoIterator<Item = &'static str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// What a closed set of words allows.
fn one_of(allowed: &str) -> String {
    if allowed.contains(", ") { format!("must be one of {allowed}") } else { format!("must be {allowed}") }
}

const REQUIRED: &str = "is required";

/// A JSON object being read. Ask for each field, then `finish`.
pub struct Fields<'a> {
    members: Members<'a>,
    errors: Vec<FieldError>,
    /// Whether unknown members were reported.
    is_strict: bool,
    /// A language model reads what is echoed, so every hidden character is refused, Unicode tags included.
    for_models: bool,
}

impl<'a> Fields<'a> {
    pub fn parse(body: &'a JsonBody) -> Result<Fields<'a>, Refusal> {
        Fields::of(&body.0)
    }

    pub fn of(json: &'a [u8]) -> Result<Fields<'a>, Refusal> {
        let members = Members::read(json).map_err(Refusal::Malformed)?;
        Ok(Fields { members, errors: Vec::new(), is_strict: false, for_models: false })
    }

    pub fn for_models(mut self) -> Fields<'a> {
        self.for_models = true;
        self
    }

    fn wrong(&mut self, field: &str, message: impl Into<String>) {
        self.errors.push(FieldError { field: field.into(), message: message.into() });
    }

    /// The field's raw text; null counts as absent.
    fn raw(&self, field: &str) -> Option<&'a str> {
        self.members.values.get(field).map(|value| value.get()).filter(|text| *text != "null")
    }

    fn require(&mut self, field: &str) {
        if self.raw(field).is_none() {
            self.wrong(field, REQUIRED);
        }
    }

    /// Names the member that a missing one may have been sent as. Where unknown members are reported, that was said. Nobody
    /// misspells a body of many members, and comparing them all would be work that anyone could ask for.
    fn explain_missing(&mut self) {
        if self.members.values.len() > MOST_UNKNOWN {
            return;
        }
        for wrong in self.errors.iter_mut().filter(|wrong| wrong.message == REQUIRED) {
            let sent_as = |name: &&String| near::meant(name, &[wrong.field.as_str()]).is_some();
            if let Some(name) = self.members.values.keys().filter(sent_as).min() {
                wrong.message = format!("{REQUIRED}; was it sent as \"{}\"?", visible(name, NAME_CHARS));
            }
        }
    }

    /// A number or a truth as it was written. Models and people also write it as a string; an empty one is absent.
    fn unquoted(&self, field: &str) -> Option<&'a str> {
        let raw = self.raw(field)?;
        let inner = raw.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        match inner.filter(|_| self.for_models) {
            Some(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            None => Some(raw),
        }
    }

    /// An object, as it was written.
    pub fn object(&mut self, field: &str) -> Option<&'a str> {
        let raw = self.raw(field)?;
        if !raw.starts_with('{') {
            self.wrong(field, "must be an object");
        }
        Some(raw)
    }

    pub fn text(&mut self, field: &str, most: usize) -> Option<String> {
        let raw = self.raw(field)?;
        let read = match self.for_models && raw.bytes().all(|b| b.is_ascii_digit()) {
            // Some clients make a number of whatever looks like one.
            true => Ok(raw.to_string()),
            false => serde_json::from_str::<String>(raw),
        };
        match read {
            Ok(text) if printable(&text, most) && !(self.for_models && text.chars().any(is_hidden)) => {
                Some(text)
            }
            Ok(_) => {
                self.wrong(field, format!("must have 1 to {most} printable characters"));
                None
            }
            Err(_) => {
                self.wrong(field, "must be a string");
                None
            }
        }
    }

    /// Reports every field without one of these names as a mistake, and every one that is there twice.
    pub fn allow(&mut self, names: &[&str]) {
        self.is_strict = true;
        self.errors.extend(unknown(self.members.values.keys(), names, |meant| match meant {
            Some(name) => format!("; did you mean {name}?"),
            None => format!("; {}", in_words(names)),
        }));
        let known = self.members.doubled.iter().filter(|name| names.contains(&name.as_str()));
        self.errors.extend(known.map(|name| FieldError { field: name.clone(), message: GIVEN_ONCE.into() }));
    }

    /// The caller's own reference: a member of the body, or the header `Idempotency-Key`. They are one thing by two
    /// names.
    pub fn reference(&mut self, member: &str, headers: &HeaderMap) -> Option<String> {
        let own = self.text(member, REFERENCE_CHARS);
        match sent_key(headers) {
            Ok(sent) => self.agreed([(member, own), (IDEMPOTENCY_KEY, sent)]),
            Err(message) => {
                self.wrong(IDEMPOTENCY_KEY, message);
                own
            }
        }
    }

    /// The code of a plan, in any case.
    pub fn package_code(&mut self) -> String {
        plan::typed_code(&self.required_text("packageCode", CODE_CHARS))
    }

    /// One value by several names. Two that are given and differ are a mistake.
    pub fn agreed<T: PartialEq>(&mut self, given: [(&str, Option<T>); 2]) -> Option<T> {
        let [(name, value), (other, another)] = given;
        if value.is_some() && another.is_some() && value != another {
            self.wrong(other, format!("must be the same as {name}, or be left out"));
        }
        value.or(another)
    }

    /// As `text`, but an empty text counts as absent: models send it for nothing.
    pub fn filled(&mut self, field: &str, most: usize) -> Option<String> {
        if self.raw(field) == Some("\"\"") { None } else { self.text(field, most) }
    }

    /// A string of at most `most` characters of any kind, for text that is cleaned afterwards.
    pub fn free_text(&mut self, field: &str, most: usize) -> Option<String> {
        let text = serde_json::from_str::<String>(self.raw(field)?);
        if text.as_ref().is_ok_and(|text| text.chars().count() <= most) {
            return text.ok();
        }
        self.wrong(field, format!("must be a string of at most {most} characters"));
        None
    }

    pub fn email(&mut self, field: &str) -> Option<Email> {
        let email = Email::parse(&self.text(field, EMAIL_CHARS)?);
        if email.is_none() {
            self.wrong(field, "must be an email address");
        }
        email
    }

    pub fn required_email(&mut self, field: &str) -> Option<Email> {
        self.require(field);
        self.email(field)
    }

    pub fn required_text(&mut self, field: &str, most: usize) -> String {
        self.require(field);
        self.text(field, most).unwrap_or_default()
    }

    /// One of the words that `parse` knows.
    pub fn word<T>(&mut self, field: &str, allowed: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(field, 64)?;
        let found = parse(&text);
        if found.is_none() {
            self.wrong(field, one_of(allowed));
        }
        found
    }

    pub fn required_word<T>(
        &mut self,
        field: &str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        self.require(field);
        self.word(field, allowed, parse)
    }

    /// A text that `parse` reads, or says what is wrong with.
    pub fn parsed<T>(
        &mut self,
        field: &str,
        most: usize,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(field, most)?;
        parse(&text).map_err(|why| self.wrong(field, why)).ok()
    }

    pub fn required_parsed<T>(
        &mut self,
        field: &str,
        most: usize,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.require(field);
        self.parsed(field, most, parse)
    }

    /// A list of words of a closed set, at least one of them.
    pub fn words<T: PartialEq>(
        &mut self,
        field: &str,
        known: &[&'static str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Ok(words) = serde_json::from_str::<Vec<String>>(self.raw(field)?) else {
            self.wrong(field, "must be a list of strings");
            return None;
        };
        let others: Vec<&String> = words.iter().filter(|word| parse(word).is_none()).collect();
        if let Some(other) = others.first() {
            let hint = match near::meant(other, known) {
                Some(word) => format!("did you mean {word}?"),
                None => format!("known are {}", known.join(", ")),
            };
            self.wrong(field, format!("has the unknown \"{}\"; {hint}", visible(other, NAME_CHARS)));
            return None;
        }
        let mut found: Vec<T> = Vec::new();
        for word in words.iter().filter_map(|word| parse(word)) {
            if !found.contains(&word) {
                found.push(word);
            }
        }
        if found.is_empty() {
            self.wrong(field, "must name at least one, or be left out for all");
            return None;
        }
        Some(found)
    }

    /// As `text`, but it may be empty, which takes away what was there.
    pub fn text_or_empty(&mut self, field: &str, most: usize) -> Option<String> {
        if self.raw(field) == Some("\"\"") { Some(String::new()) } else { self.text(field, most) }
    }

    /// Exactly one of two must be there.
    pub fn one_of_two(&mut self, [one, other]: [&str; 2]) {
        match (self.raw(one), self.raw(other)) {
            (None, None) => self.wrong(one, format!("is required, unless {other} is sent")),
            (Some(_), Some(_)) => self.wrong(other, format!("must be left out when {one} is sent")),
            (Some(_), None) | (None, Some(_)) => {}
        }
    }

    fn usd(&mut self, field: &str) -> Option<Usd> {
        let raw = self.raw(field)?;
        let is_number = raw.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        match (is_number, Usd::parse(raw)) {
            (true, Ok(amount)) => return Some(amount),
            (true, Err(error)) => self.wrong(field, error.as_str()),
            (false, _) => self.wrong(field, "must be a number"),
        }
        None
    }

    pub fn positive_usd(&mut self, field: &str) -> Option<Usd> {
        let amount = self.usd(field)?;
        if !amount.is_positive() {
            self.wrong(field, "must be more than 0");
            return None;
        }
        Some(amount)
    }

    /// An amount from `least` to `most`.
    pub fn required_usd(&mut self, field: &str, least: Usd, most: Usd) -> Option<Usd> {
        self.require(field);
        let amount = self.usd(field)?;
        if amount < least {
            self.wrong(field, format!("must be at least {least}"));
        } else if amount > most {
            self.wrong(field, format!("must be at most {most}"));
        }
        Some(amount)
    }

    pub fn whole(&mut self, field: &str, least: i64, most: i64) -> Option<i64> {
        let raw = self.unquoted(field)?;
        // A whole number may be written 5, 5.0 or 5e0; all are the same JSON number.
        match serde_json::from_str::<f64>(raw) {
            Ok(number) if number.fract() == 0.0 && number >= least as f64 && number <= most as f64 => {
                Some(number as i64)
            }
            _ => {
                self.wrong(field, format!("must be a whole number from {least} to {most}"));
                None
            }
        }
    }

    /// Whether it says `true`; absent means no.
    pub fn truth(&mut self, field: &str) -> bool {
        let Some(raw) = self.unquoted(field) else { return false };
        let said = serde_json::from_str::<bool>(raw);
        if said.is_err() {
            self.wrong(field, "must be true or false");
        }
        said.unwrap_or_default()
    }

    /// `true` or `false`, if it is one of them; anything else is the caller's to read.
    pub fn flag(&self, field: &str) -> Option<bool> {
        serde_json::from_str(self.raw(field)?).ok()
    }

    /// A quantity of data in GB, as megabytes. Not money: rounded to the megabyte.
    pub fn gigabytes(&mut self, field: &str) -> Option<i64> {
        let raw = self.raw(field)?;
        match serde_json::from_str::<f64>(raw) {
            Ok(number) if (0.0..=1_000_000.0).contains(&number) => Some((number * 1024.0).round() as i64),
            _ => {
                self.wrong(field, "must be a number from 0 to 1000000");
                None
            }
        }
    }

    pub fn finish(self) -> Result<(), Refusal> {
        self.finish_with(Some(()))
    }

    /// Returns the required value, which is present unless something was wrong.
    pub fn finish_with<T>(mut self, required: Option<T>) -> Result<T, Refusal> {
        if !self.is_strict {
            self.explain_missing();
        }
        unless_wrong(self.errors, required)
    }
}
