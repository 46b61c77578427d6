//! Query strings, and the forms of pages, which are written like them.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Display;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;

use super::super::body::{essence, read};
use super::super::problem::Refused;
use super::super::wire::parse_time;
use super::{GIVEN_ONCE, REQUIRED, in_words, printable, unknown, unless_wrong};
use crate::domain::email::Email;
use crate::domain::refusal::{FieldError, Refusal};
use crate::domain::time::Time;

/// How many parameters are read. The largest form has far fewer.
const MOST_PAIRS: usize = 100;

/// What a page's form sends. Fields that were left empty are absent.
pub struct Form(pub Query);

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<Form, Refused> {
        if essence(request.headers()) != "application/x-www-form-urlencoded" {
            return Err(Refusal::UnsupportedMediaType.into());
        }
        let (parts, body) = request.into_parts();
        let body = read(&parts.headers, body).await?;
        Ok(Form(Query::parse(Some(&String::from_utf8_lossy(&body))).filled()))
    }
}

/// A query string being read, in the same way. A parameter given twice is a mistake.
pub struct Query {
    values: HashMap<String, String>,
    errors: Vec<FieldError>,
    /// The parameters that were asked for, where any other is a mistake.
    known: Option<Vec<String>>,
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query, Infallible> {
        Ok(Query::parse(parts.uri.query()))
    }
}

/// A query without any parameter, where a stray one is a mistake.
pub struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<NoQuery, Refused> {
        Query::parse(parts.uri.query()).strictly().finish()?;
        Ok(NoQuery)
    }
}

impl Query {
    pub fn parse(query: Option<&str>) -> Query {
        let query = query.unwrap_or_default();
        let mut parsed = Query { values: HashMap::new(), errors: Vec::new(), known: None };
        // Bytes that are no text are decoded to the replacement character, which hardly anyone sends on purpose.
        let meant = LazyCell::new(|| query.to_ascii_lowercase().contains("%ef%bf%bd"));
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        for (name, value) in pairs.by_ref().take(MOST_PAIRS) {
            if value.contains(char::REPLACEMENT_CHARACTER) && !*meant {
                parsed.wrong(&name, "must be valid UTF-8");
            }
            if parsed.values.insert(name.to_string(), value.to_string()).is_some() {
                parsed.wrong(&name, GIVEN_ONCE);
            }
        }
        if pairs.next().is_some() {
            parsed.wrong("query", format!("must have at most {MOST_PAIRS} parameters"));
        }
        parsed
    }

    /// Without the empty values that forms send.
    pub fn filled(mut self) -> Query {
        self.values.retain(|_, value| !value.trim().is_empty());
        self
    }

    /// From now on a parameter that nobody asks for is a mistake.
    pub fn strictly(mut self) -> Query {
        self.known = Some(Vec::new());
        self
    }

    /// A value as it was typed, to show it again.
    pub fn typed(&self, name: &str) -> String {
        self.values.get(name).cloned().unwrap_or_default()
    }

    pub fn wrong(&mut self, field: &str, message: impl Into<String>) {
        self.errors.push(FieldError { field: field.into(), message: message.into() });
    }

    /// Takes a parameter that `parse` accepts; anything else is a mistake that `allowed` explains.
    pub fn take<T>(
        &mut self,
        name: &str,
        allowed: impl Display,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        if let Some(known) = &mut self.known {
            known.push(name.to_string());
        }
        let value = self.values.remove(name)?;
        let found = parse(&value);
        if found.is_none() {
            self.wrong(name, allowed.to_string());
        }
        found
    }

    /// The same for a required parameter.
    pub fn require<T>(
        &mut self,
        name: &str,
        allowed: impl Display,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        if !self.values.contains_key(name) {
            self.wrong(name, REQUIRED);
        }
        self.take(name, allowed, parse)
    }

    pub fn required_email(&mut self, name: &str) -> Option<Email> {
        self.require(name, "must look like name@example.com", Email::parse)
    }

    pub fn text(&mut self, name: &str, most: usize) -> Option<String> {
        let allowed = format_args!("must have 1 to {most} printable characters");
        self.take(name, allowed, |text| printable(text, most).then(|| text.to_string()))
    }

    pub fn whole(&mut self, name: &str, least: i64, most: i64) -> Option<i64> {
        let allowed = format_args!("must be a whole number from {least} to {most}");
        self.take(name, allowed, |text| text.parse().ok().filter(|n| (least..=most).contains(n)))
    }

    /// A moment: RFC 3339, or a date, which is its midnight UTC.
    pub fn time(&mut self, name: &str) -> Option<Time> {
        self.take(name, "must be a time like 2026-01-31T12:00:00Z or a date", parse_time)
    }

    pub fn finish(self) -> Result<(), Refusal> {
        self.finish_with(Some(()))
    }

    /// Returns the required value, which is present unless something was wrong.
    pub fn finish_with<T>(mut self, required: Option<T>) -> Result<T, Refusal> {
        if let Some(known) = self.known {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            self.errors.extend(unknown(self.values.keys(), &known, |meant| match meant {
                Some(name) => format!("; did you mean {name}? {}", in_words(&known)),
                None => format!("; {}", in_words(&known)),
            }));
        }
        unless_wrong(self.errors, required)
    }
}
