//! What Airalo's answers look like, and how their words become ours. Numbers are read as text, so that no amount passes
//! through a float. What a rule cannot read is `None`: the caller decides what that means.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::domain::amount::{Amount, Fiat};
use crate::domain::esim::{Activation, ServiceState, iccid};
use crate::domain::time::Time;
use crate::supplier::Profile;

/// Every answer is wrapped.
#[derive(Deserialize)]
pub struct Envelope<T> {
    pub data: T,
    #[serde(default)]
    pub meta: Meta,
}

#[derive(Default, Deserialize)]
pub struct Meta {
    pub last_page: Option<Text>,
    pub total: Option<Text>,
}

/// A string, a number or a truth value: the same field is now the one and now the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        match serde_json::from_str::<String>(raw.get()) {
            Ok(text) => Ok(Text(text)),
            Err(_) => Ok(Text(raw.get().to_string())),
        }
    }
}

impl Text {
    pub fn is_true(&self) -> bool {
        matches!(self.0.as_str(), "true" | "1")
    }

    /// A whole number; `7`, `"7"` and `7.0` are the same.
    pub fn whole(&self) -> Option<i64> {
        let (whole, fraction) = self.0.split_once('.').unwrap_or((&self.0, ""));
        whole.parse().ok().filter(|_| fraction.bytes().all(|digit| digit == b'0'))
    }

    /// A number without its decimals: readings of a meter have them now and then.
    pub fn floor(&self) -> Option<i64> {
        let (whole, fraction) = self.0.split_once('.').unwrap_or((&self.0, ""));
        whole.parse().ok().filter(|_| fraction.bytes().all(|digit| digit.is_ascii_digit()))
    }

    pub fn amount(&self, currency: Fiat) -> Option<Amount> {
        Amount::parse(&self.0, currency).ok().filter(|amount| amount.micros >= 0)
    }
}

/// A list. Beyond the first page the API numbers its items, which makes them an object.
pub struct Rows<T>(pub Vec<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Rows<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rows<T>, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let read = match raw.get().starts_with('{') {
            true => serde_json::from_str::<BTreeMap<String, T>>(raw.get())
                .map(|rows| rows.into_values().collect()),
            false => serde_json::from_str(raw.get()),
        };
        read.map(Rows).map_err(serde::de::Error::custom)
    }
}

#[derive(Deserialize)]
pub struct AccessToken {
    pub access_token: String,
}

/// An order or a top-up, as its own answer and the list of orders have it.
#[derive(Deserialize)]
pub struct Order {
    pub code: Option<Text>,
    pub package_id: Option<Text>,
    pub quantity: Option<Text>,
    #[serde(rename = "type")]
    pub kind: Option<Text>,
    pub description: Option<Text>,
    pub net_price: Option<Text>,
    pub currency: Option<Text>,
    pub created_at: Option<Text>,
    pub status: Option<Status>,
    pub sims: Option<Rows<Sim>>,
}

#[derive(Deserialize)]
pub struct Status {
    pub slug: Option<Text>,
}

#[derive(Deserialize)]
pub struct Sim {
    pub id: Option<Text>,
    pub iccid: Option<Text>,
    pub lpa: Option<Text>,
    pub matching_id: Option<Text>,
    pub qrcode: Option<Text>,
}

#[derive(Deserialize)]
pub struct Meter {
    pub remaining: Option<Text>,
    pub total: Option<Text>,
    pub expired_at: Option<Text>,
    pub status: Option<Text>,
}

/// Without an account there is an empty list in its place.
#[derive(Deserialize)]
pub struct Balances {
    pub balances: Balance,
}

#[derive(Deserialize)]
pub struct Balance {
    #[serde(rename = "availableBalance")]
    pub available: Money,
}

#[derive(Deserialize)]
pub struct Money {
    pub amount: Text,
    pub currency: Text,
}

#[derive(Deserialize)]
pub struct Refund {
    pub refund_id: Text,
}

impl Order {
    /// What it cost us, where the answer says so.
    pub fn cost(&self) -> Option<Amount> {
        let currency = self.currency.as_ref().and_then(|text| Fiat::parse(&text.0))?;
        self.net_price.as_ref()?.amount(currency)
    }

    pub fn at(&self) -> Option<Time> {
        time(&self.created_at.as_ref()?.0)
    }

    pub fn sims(&self) -> &[Sim] {
        self.sims.as_ref().map_or(&[], |sims| &sims.0)
    }

    /// Whether nothing is sold any more: it failed there, or its money was given back.
    pub fn is_void(&self) -> bool {
        let slug = self.status.as_ref().and_then(|status| status.slug.as_ref());
        slug.is_some_and(|slug| matches!(slug.0.as_str(), "failed" | "refunded"))
    }
}

impl Sim {
    /// A profile is named by its number and its ICCID: a recycled ICCID is sold again under another number.
    pub fn profile(&self) -> Option<Profile> {
        let iccid = iccid(self.iccid.as_ref()?.0.trim())?;
        let id = self.id.as_ref().map(|id| id.0.as_str()).filter(|id| !id.is_empty() && !id.contains('.'))?;
        let word = |text: &Option<Text>| text.as_ref().map(|text| text.0.trim().to_string());
        let activation = match (word(&self.lpa), word(&self.matching_id)) {
            (Some(smdp_address), Some(matching_id)) => read_code(&smdp_address, &matching_id),
            _ => None,
        };
        let activation = activation.or_else(|| from_qr_code(&word(&self.qrcode)?))?;
        Some(Profile { id: format!("{id}.{iccid}"), iccid, activation, install_by: None })
    }
}

/// The ICCID in our name of a profile.
pub fn iccid_of(profile: &str) -> Option<&str> {
    profile.split_once('.').map(|(_, iccid)| iccid)
}

/// The profile that a message is about.
pub fn about(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Told {
        iccid: Text,
    }
    iccid(serde_json::from_slice::<Told>(body).ok()?.iccid.0.trim())
}

fn from_qr_code(text: &str) -> Option<Activation> {
    let mut parts = text.strip_prefix("LPA:1$")?.split('$');
    read_code(parts.next()?, parts.next()?)
}

fn read_code(smdp_address: &str, matching_id: &str) -> Option<Activation> {
    // An address may come with the prefix of a QR code.
    let address = smdp_address.strip_prefix("LPA:1$").unwrap_or(smdp_address);
    let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b'$');
    let plain = is_plain(address) && is_plain(matching_id);
    plain.then(|| Activation { smdp_address: address.into(), matching_id: matching_id.into() })
}

/// `2024-05-14 11:48:47`, in UTC.
pub fn time(text: &str) -> Option<Time> {
    let moment = DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(Time::from_micros(moment.timestamp().as_microsecond()))
}

/// The state that a word of the meter means; `None` for a word that we do not know.
pub fn state(word: &str, used: bool) -> Option<ServiceState> {
    match word {
        "NOT_ACTIVE" => Some(ServiceState::New),
        "ACTIVE" => Some(ServiceState::Active),
        "FINISHED" => Some(ServiceState::Depleted),
        "EXPIRED" if used => Some(ServiceState::ExpiredUsed),
        "EXPIRED" => Some(ServiceState::ExpiredUnused),
        "RECYCLED" => Some(ServiceState::Recycled),
        "UNKNOWN" => Some(ServiceState::Unknown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Text {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn amounts_are_read_digit_by_digit() {
        for (json, micros) in [
            ("2.7", Some(2_700_000)),
            ("\"2.70\"", Some(2_700_000)),
            ("3", Some(3_000_000)),
            ("0.1", Some(100_000)),
            // As a float this is 0.30000000000000004.
            ("0.3", Some(300_000)),
            ("1.0000001", None),
            ("-1", None),
            ("\"\"", None),
            ("true", None),
            ("{}", None),
        ] {
            assert_eq!(text(json).amount(Fiat::USD).map(|amount| amount.micros), micros, "{json}");
        }
    }

    #[test]
    fn numbers_and_flags_come_in_many_spellings() {
        for (json, whole) in
            [("7", Some(7)), ("\"7\"", Some(7)), ("7.0", Some(7)), ("7.5", None), ("\"x\"", None)]
        {
            assert_eq!(text(json).whole(), whole, "{json}");
        }
        assert_eq!(
            (text("767.9").floor(), text("\"-1\"").floor(), text("\"1.x\"").floor()),
            (Some(767), Some(-1), None)
        );
        let truths: Vec<bool> =
            ["true", "1", "\"1\"", "false", "0", "null"].map(|json| text(json).is_true()).into();
        assert_eq!(truths, [true, true, true, false, false, false]);
    }

    #[test]
    fn lists_may_be_numbered() {
        let read = |json| serde_json::from_str::<Rows<Text>>(json).map(|rows| rows.0.len());
        assert_eq!(read("[\"a\",\"b\"]").unwrap(), 2);
        assert_eq!(read("{\"50\":\"a\",\"51\":\"b\"}").unwrap(), 2);
        assert!(read("\"a\"").is_err());
    }

    #[test]
    fn messages_about_low_data_name_a_profile() {
        let told = br#"{"level":"90%","package_name":"kallur-digital-7days-1gb","remaining_percentage":10,"iccid":"891000000000009125"}"#;
        assert_eq!(about(told).as_deref(), Some("891000000000009125"));
        for other in [
            &br#"{"message":"Surpassed 80% of the credit limit balance","remaining":225.35}"#[..],
            b"[]",
            b"\xff",
            br#"{"iccid":"1"}"#,
        ] {
            assert_eq!(about(other), None);
        }
    }

    fn profile(json: &str) -> Option<(String, String)> {
        let profile = serde_json::from_str::<Sim>(json).unwrap().profile()?;
        Some((profile.id, profile.activation.lpa_string()))
    }

    #[test]
    fn a_code_comes_in_parts_or_whole() {
        let parts =
            r#"{"id":11047,"iccid":"891000000000009125","lpa":"lpa.airalo.com","matching_id":"TEST"}"#;
        let named = Some(("11047.891000000000009125".into(), "LPA:1$lpa.airalo.com$TEST".into()));
        assert_eq!(profile(parts), named);
        assert_eq!(iccid_of("11047.891000000000009125"), Some("891000000000009125"));
        let whole =
            r#"{"id":"11047","iccid":891000000000009125,"lpa":null,"qrcode":"LPA:1$lpa.airalo.com$TEST$$1"}"#;
        assert_eq!(profile(whole), named);
        for wrong in [
            r#"{"id":1,"iccid":"891000000000009125"}"#,
            r#"{"id":1,"iccid":"891000000000009125","lpa":"","matching_id":"A","qrcode":"https://x"}"#,
            r#"{"id":1,"iccid":"891000000000009125","lpa":"a b","matching_id":"A"}"#,
            r#"{"id":1,"iccid":"12","lpa":"a","matching_id":"A"}"#,
            r#"{"iccid":"891000000000009125","lpa":"a","matching_id":"A"}"#,
        ] {
            assert_eq!(profile(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_utc_without_a_zone() {
        assert_eq!(time("1970-01-02 00:00:01"), Some(Time::from_micros(86_401_000_000)));
        for wrong in ["", "2024-05-14", "2024-13-14 00:00:00", "2024-05-14T11:48:47Z"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_word_of_the_meter_is_known() {
        let words = ["NOT_ACTIVE", "ACTIVE", "FINISHED", "EXPIRED", "RECYCLED", "UNKNOWN"];
        let states = words.map(|word| state(word, true).map_or("", |state| state.as_str()));
        assert_eq!(states, ["NEW", "ACTIVE", "DEPLETED", "EXPIRED_USED", "RECYCLED", "UNKNOWN"]);
        assert_eq!(
            (state("EXPIRED", false), state("active", true)),
            (Some(ServiceState::ExpiredUnused), None)
        );
    }

    #[test]
    fn failed_and_refunded_orders_are_no_sales() {
        let order = |slug: &str| {
            serde_json::from_str::<Order>(&format!(r#"{{"status":{{"slug":"{slug}"}}}}"#)).unwrap()
        };
        assert!(order("failed").is_void() && order("refunded").is_void() && !order("completed").is_void());
        assert!(!serde_json::from_str::<Order>("{}").unwrap().is_void());
    }
}
