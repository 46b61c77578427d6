//! How arguments are read: amounts, times, networks, and words of a fixed set. What cannot be read is a usage
//! error that says what is allowed.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::domain::cost::Rate;
use crate::domain::ledger::CreditKind;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::order::OrderStatus;
use crate::domain::plan::PlanType;
use crate::domain::time::Time;
use crate::ops::operator;
use crate::wire::dates;

/// An amount of USD, zero or more.
pub fn usd(text: &str) -> Result<Usd, String> {
    match Usd::parse(text) {
        Ok(amount) if amount >= Usd::ZERO => Ok(amount),
        Ok(_) => Err("must not be negative".into()),
        Err(error) => Err(error.as_str().into()),
    }
}

/// An amount of USD, more than zero.
pub fn some_usd(text: &str) -> Result<Usd, String> {
    usd(text).and_then(
        |amount| {
            if amount.is_positive() { Ok(amount) } else { Err("must be more than 0".into()) }
        },
    )
}

/// An amount in millionths of a currency's unit, more than zero.
pub fn some_micros(text: &str) -> Result<i64, String> {
    some_usd(text).map(Usd::micros)
}

/// Dollars for one unit of a currency.
pub fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).map_err(Into::into)
}

/// A day.
pub fn date(text: &str) -> Result<Time, String> {
    dates::parse(text).filter(|_| dates::is_date(text)).ok_or_else(|| "must be a day, YYYY-MM-DD".into())
}

/// The beginning of a period: a moment, or the first moment of a day.
pub fn from(text: &str) -> Result<Time, String> {
    moment(text, 0)
}

/// The end of a period, exclusive; a date includes its whole day.
pub fn to(text: &str) -> Result<Time, String> {
    moment(text, 1)
}

fn moment(text: &str, days_on: i64) -> Result<Time, String> {
    let moment = dates::parse(text).ok_or("must be YYYY-MM-DD or a timestamp like 2026-01-31T12:00:00Z")?;
    Ok(if dates::is_date(text) { moment.plus_days(days_on) } else { moment })
}

/// A span of time in milliseconds: 90d, 24h or 30m.
pub fn span(text: &str) -> Result<i64, String> {
    let wrong = || "must be days, hours or minutes, like 90d, 24h or 30m".to_string();
    let unit = match text.chars().last() {
        Some('d') => 86_400_000,
        Some('h') => 3_600_000,
        Some('m') => 60_000,
        _ => return Err(wrong()),
    };
    let number = &text[..text.len() - 1];
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let count: i64 = number.parse().ok().filter(|_| digits).ok_or_else(wrong)?;
    match count.checked_mul(unit) {
        Some(millis) if millis <= LONGEST_SPAN_MS => Ok(millis),
        _ => Err("must be at most ten years".into()),
    }
}

const LONGEST_SPAN_MS: i64 = 3_653 * 86_400_000;

/// When something ends: after a span of time from now, or with a day or at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    After(i64),
    At(Time),
}

impl End {
    pub fn seen_from(self, now: Time) -> Time {
        match self {
            End::After(millis) => now.plus_millis(millis),
            End::At(time) => time,
        }
    }
}

pub fn end(text: &str) -> Result<End, String> {
    match (span(text), to(text)) {
        (Ok(0), _) => Err("must be more than 0".into()),
        (Ok(millis), _) => Ok(End::After(millis)),
        (_, Ok(time)) => Ok(End::At(time)),
        (Err(_), Err(_)) => {
            Err("must be like 90d or 24h, YYYY-MM-DD, or a timestamp like 2026-01-31T12:00:00Z".into())
        }
    }
}

/// Text that a person will read: not blank, not endless.
pub fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("must not be empty".into()),
        1..=200 if !text.chars().any(char::is_control) => Ok(text.into()),
        1..=200 => Err("must not have control characters".into()),
        _ => Err("must have at most 200 characters".into()),
    }
}

/// Emails are kept in lower case, so that one address has one spelling.
pub fn email(text: &str) -> Result<String, String> {
    let text = name(text)?.to_lowercase();
    let well_formed = text.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && domain.contains('.')
            && !domain.contains('@')
            && !text.contains(char::is_whitespace)
    });
    if well_formed { Ok(text) } else { Err("must be an email address".into()) }
}

/// Networks or addresses, separated by commas, in one spelling.
pub fn networks(text: &str) -> Result<String, String> {
    let wrong = || "must be addresses or networks like 192.0.2.7,10.0.0.0/8".to_string();
    operator::networks(text).filter(|networks| !networks.is_empty()).ok_or_else(wrong)
}

pub fn status() -> impl TypedValueParser<Value = OrderStatus> {
    let words = OrderStatus::ALL.map(OrderStatus::as_str);
    PossibleValuesParser::new(words)
        .try_map(|word| OrderStatus::parse(&word.to_uppercase()).ok_or("unknown status"))
}

pub fn plan_type() -> impl TypedValueParser<Value = PlanType> {
    let words = [PlanType::Base.as_str(), PlanType::Topup.as_str()];
    PossibleValuesParser::new(words)
        .try_map(|word| PlanType::parse(&word.to_uppercase()).ok_or("unknown type"))
}

pub fn network() -> impl TypedValueParser<Value = Network> {
    let words = Network::ALL.map(Network::as_str);
    PossibleValuesParser::new(words)
        .try_map(|word| Network::parse(&word.to_uppercase()).ok_or("unknown network"))
}

pub fn currency() -> impl TypedValueParser<Value = Currency> {
    let words = Currency::ALL.map(Currency::as_str);
    PossibleValuesParser::new(words)
        .try_map(|word| Currency::parse(&word.to_uppercase()).ok_or("unknown currency"))
}

pub fn credit_kind() -> impl TypedValueParser<Value = CreditKind> {
    let words = CreditKind::ALL.map(CreditKind::as_str);
    PossibleValuesParser::new(words)
        .try_map(|word| CreditKind::parse(&word.to_lowercase()).ok_or("unknown kind"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_meant_as_a_whole() {
        assert_eq!(from("1970-01-02").unwrap().micros(), 86_400_000_000);
        assert_eq!(to("1970-01-02").unwrap().micros(), 2 * 86_400_000_000);
        assert_eq!(to("1970-01-02T00:00:00Z").unwrap().micros(), 86_400_000_000);
        assert_eq!(from("1970-01-01T02:00:00+02:00").unwrap().micros(), 0);
        for wrong in ["yesterday", "2026-02-30", "2026-01-01T10:00:00", "2026-1-1", ""] {
            assert!(from(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ends_are_spans_days_or_moments() {
        assert_eq!((span("90d"), span("24h"), span("0m")), (Ok(7_776_000_000), Ok(86_400_000), Ok(0)));
        assert_eq!(end("1970-01-02"), Ok(End::At(Time::from_micros(2 * 86_400_000_000))));
        assert_eq!(end("2h").unwrap().seen_from(Time::from_micros(5)).micros(), 7_200_000_005);
        for wrong in
            ["", "d", "1", "1.5h", "-1d", "0d", "+1d", "4000d", "99999999999999999999d", "soon", "1é"]
        {
            assert!(end(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_and_networks_are_checked() {
        assert_eq!(some_usd("0"), Err("must be more than 0".into()));
        assert_eq!(usd("-1"), Err("must not be negative".into()));
        assert_eq!(usd("1.0000001"), Err("must have at most 6 decimals".into()));
        assert_eq!(networks("10.0.0.0/8, 192.0.2.7").unwrap(), "10.0.0.0/8,192.0.2.7/32");
        assert!(networks("").is_err() && networks("x").is_err());
        assert_eq!(email("Ann@Example.COM").unwrap(), "ann@example.com");
        assert!(email("ann").is_err());
    }
}
