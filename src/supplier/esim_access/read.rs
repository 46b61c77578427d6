//! What the values of the eSIM Access family mean: money in ten-thousandths, data in bytes, times without a colon,
//! activation codes, and the states of a profile. Whatever cannot be read is an error in words or an
//! unknown value, never a guess about money.

use jiff::Timestamp;
use serde_json::Value;

use crate::domain::amount::{Amount, Fiat};
use crate::domain::esim::{Activation, ProfileState, ServiceState, iccid};
use crate::domain::ids::OrderId;
use crate::domain::order::CancelReason;
use crate::domain::time::Time;
use crate::supplier::{Heard, unknown};

/// Money is counted in ten-thousandths of the currency's unit.
const MICROS: i64 = 100;
/// 1 MB is 1024 × 1024 bytes.
const MB: i64 = 1 << 20;
/// `ord_` or `top_`.
const KIND: usize = 4;
const WHOLE_ID: usize = 34;
/// An id with one letter for its kind.
pub const SHORT_ID: usize = WHOLE_ID - KIND + 1;

/// A whole number that is not negative; `1.0` and `1E3` are whole.
pub fn whole(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is no whole number");
    let (mantissa, power) = match text.split_once(['e', 'E']) {
        Some((mantissa, power)) => {
            (mantissa, power.trim_start_matches('+').parse::<u32>().map_err(|_| wrong())?)
        }
        None => (text, 0),
    };
    let (units, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let decimals = decimals.trim_end_matches('0');
    let places = u32::try_from(decimals.len()).ok().filter(|places| *places <= power).ok_or_else(wrong)?;
    let digits = format!("{units}{decimals}");
    if units.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let scale = 10i64.checked_pow(power - places);
    let value = digits.parse::<i64>().ok().zip(scale).and_then(|(value, scale)| value.checked_mul(scale));
    value.ok_or_else(wrong)
}

/// Money as they write it.
pub fn money(text: &str, currency: Fiat) -> Result<Amount, String> {
    let micros = whole(text)?.checked_mul(MICROS).ok_or_else(|| format!("{text} is too much money"))?;
    Ok(Amount { micros, currency })
}

/// Money as they read it, rounded down: they are never told to take more than we mean.
pub fn units(amount: Amount) -> i64 {
    amount.micros / MICROS
}

/// Whole megabytes; a part of one is not sold.
pub fn megabytes(bytes: i64) -> i64 {
    bytes / MB
}

/// `2024-05-29T18:34:17+0000`, with or without a colon or a fraction; without an offset it is UTC.
pub fn time(text: &str) -> Option<Time> {
    let (date, clock) = text.trim().split_once(['T', ' '])?;
    let at = clock.find(['+', '-', 'Z', 'z']).unwrap_or(clock.len());
    let (clock, offset) = clock.split_at(at);
    let offset = match offset.len() {
        0 => "Z".to_string(),
        5 if !offset.contains(':') => format!("{}:{}", offset.get(..3)?, offset.get(3..)?),
        _ => offset.to_string(),
    };
    let moment: Timestamp = format!("{date}T{clock}{offset}").parse().ok()?;
    Some(Time::from_micros(moment.as_microsecond()))
}

/// A time as their look-ups take it, in whole seconds.
pub fn time_text(time: Time) -> String {
    Timestamp::from_microsecond(time.micros()).unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `LPA:1$address$matching-id`, and two fields that may follow: the SM-DP+'s object id, which phones do without, and `1`
/// when a confirmation code is needed. We are not given that code, so such a profile could never be installed: it is an
/// error, and the order waits for the operator.
pub fn activation(text: &str) -> Result<Activation, String> {
    let text = text.trim();
    let is_prefixed = text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("LPA:"));
    let code = if is_prefixed { &text[4..] } else { text };
    let fields: Vec<&str> = code.split('$').collect();
    let sound = |field: &str| field.bytes().all(|byte| byte.is_ascii_graphic());
    let ["1", address, matching_id, more @ ..] = &fields[..] else {
        return Err("its activation code cannot be read".into());
    };
    if address.is_empty() || !sound(address) || !sound(matching_id) || more.len() > 2 {
        return Err("its activation code cannot be read".into());
    }
    if more.get(1).is_some_and(|needed| *needed == "1") {
        return Err("its activation code needs a confirmation code, which the supplier does not tell".into());
    }
    Ok(Activation { smdp_address: (*address).to_string(), matching_id: (*matching_id).to_string() })
}

/// Our order id as they know it: whole where they take as much, else with one letter for its kind. Both ways can be
/// undone, so no two orders are ever the same to them.
pub fn transaction(order: &OrderId, longest: usize) -> Result<String, String> {
    let id = order.as_str();
    if id.len() <= longest {
        return Ok(id.to_string());
    }
    let short = match (id.get(..KIND), id.get(KIND..)) {
        (Some("ord_"), Some(rest)) => format!("o{rest}"),
        (Some("top_"), Some(rest)) => format!("t{rest}"),
        _ => return Err(format!("{id} is no id of an order")),
    };
    if short.len() > longest { Err(format!("{id} is longer than the supplier takes")) } else { Ok(short) }
}

/// The order that a transaction id of theirs belongs to. Ids that somebody else made stay as they are.
pub fn order(transaction: &str) -> OrderId {
    let kind = match transaction.get(..1).filter(|_| transaction.len() == SHORT_ID) {
        Some("o") => "ord_",
        Some("t") => "top_",
        _ => return OrderId::from_text(transaction),
    };
    OrderId::from_text(format!("{kind}{}", &transaction[1..]))
}

/// How the plan on a profile stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Sold, and not yet there.
    Coming,
    New,
    InUse,
    UsedUp,
    Expired,
    Suspended,
    /// Given back, with our money.
    Cancelled,
    /// Closed without our money.
    Revoked,
    Unknown,
}

impl Service {
    pub fn read(supplier: &'static str, text: &str) -> Service {
        match text {
            "CREATE" | "PAYING" | "PAID" | "GETTING_RESOURCE" => Service::Coming,
            "GOT_RESOURCE" => Service::New,
            "IN_USE" => Service::InUse,
            "USED_UP" => Service::UsedUp,
            "UNUSED_EXPIRED" | "USED_EXPIRED" => Service::Expired,
            "SUSPENDED" => Service::Suspended,
            "CANCEL" => Service::Cancelled,
            "REVOKE" | "REVOKED" => Service::Revoked,
            other => {
                unknown::note(supplier, "esimStatus", other);
                Service::Unknown
            }
        }
    }
}

/// Whether a device has taken the profile. A state that nobody knows counts as taken: what is on a phone must not be
/// given back.
pub fn is_downloaded(supplier: &'static str, smdp_status: &str) -> bool {
    match smdp_status {
        "" | "RELEASED" => false,
        "DOWNLOAD" | "INSTALLATION" | "ENABLED" | "DISABLED" | "DELETED" => true,
        other => {
            unknown::note(supplier, "smdpStatus", other);
            true
        }
    }
}

/// How the plan stands, by its word and the meter.
pub fn service_state(service: Service, used: i64, total: i64) -> ServiceState {
    match service {
        Service::Expired if used > 0 => ServiceState::ExpiredUsed,
        Service::Expired => ServiceState::ExpiredUnused,
        Service::Cancelled => ServiceState::Cancelled,
        Service::Revoked => ServiceState::Revoked,
        Service::Suspended => ServiceState::Suspended,
        Service::UsedUp => ServiceState::Depleted,
        Service::InUse => ServiceState::Active,
        Service::Coming | Service::New | Service::Unknown if used > 0 && used >= total => {
            ServiceState::Depleted
        }
        Service::Coming | Service::New | Service::Unknown if used > 0 => ServiceState::Active,
        Service::Coming | Service::New => ServiceState::New,
        Service::Unknown => ServiceState::Unknown,
    }
}

/// Where the profile is; `None` when the supplier does not say, or says what nobody knows.
pub fn profile_state(smdp_status: &str) -> Option<ProfileState> {
    match smdp_status {
        "RELEASED" => Some(ProfileState::Released),
        "DOWNLOAD" => Some(ProfileState::Downloaded),
        "INSTALLATION" => Some(ProfileState::Installed),
        "ENABLED" => Some(ProfileState::Enabled),
        "DISABLED" => Some(ProfileState::Disabled),
        "DELETED" => Some(ProfileState::Deleted),
        _ => None,
    }
}

/// Why a profile is not taken back; `None` when nothing speaks against it.
pub fn kept_because(service: Service, downloaded: bool, used: i64) -> Option<CancelReason> {
    match service {
        Service::InUse | Service::UsedUp => Some(CancelReason::Used),
        Service::Expired => Some(CancelReason::Expired),
        Service::Suspended | Service::Revoked => Some(CancelReason::SupplierCannotCancel),
        Service::Coming | Service::New | Service::Unknown | Service::Cancelled if used > 0 => {
            Some(CancelReason::Used)
        }
        Service::Coming | Service::New | Service::Unknown | Service::Cancelled => {
            downloaded.then_some(CancelReason::Downloaded)
        }
    }
}

/// What a message is about. All but the check of our address name an order of theirs; those about a profile name that too.
pub fn message(body: &[u8]) -> Heard {
    let Ok(told) = serde_json::from_slice::<Value>(body) else { return Heard::Nothing };
    let text = |value: &Value| value.as_str().map(str::to_string);
    let about = &told["content"];
    match (text(&about["orderNo"]), about["iccid"].as_str().and_then(|text| iccid(text.trim()))) {
        (None, None) => Heard::Nothing,
        (number, iccid) => Heard::About { message: text(&told["notifyId"]), number, iccid },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn money_is_whole_ten_thousandths() {
        let micros = |text: &str| money(text, Fiat::USD).map(|amount| amount.micros).ok();
        assert_eq!(micros("15000"), Some(1_500_000));
        assert_eq!(micros("15000.0"), Some(1_500_000));
        assert_eq!(micros("1.5E4"), Some(1_500_000));
        assert_eq!(micros("0"), Some(0));
        for wrong in
            ["", "-1", "1.5", "15000.25", "1e-2", "0x10", "NaN", "1e999999999999", "9223372036854775807"]
        {
            assert_eq!(micros(wrong), None, "{wrong}");
        }
        assert_eq!(units(Amount { micros: 1_500_099, currency: Fiat::USD }), 15_000);
    }

    #[test]
    fn a_part_of_a_megabyte_is_not_sold() {
        assert_eq!(megabytes(1_073_741_824), 1024);
        assert_eq!((megabytes(1_073_741_823), megabytes(1_048_575)), (1023, 0));
        assert_eq!(whole("1.073741824E9").map(megabytes), Ok(1024));
    }

    #[test]
    fn times_need_no_colon() {
        let micros = |text: &str| time(text).map(Time::micros);
        let expected = Some(1_717_007_657_000_000);
        for text in [
            "2024-05-29T18:34:17+0000",
            "2024-05-29T18:34:17+00:00",
            "2024-05-29T18:34:17Z",
            "2024-05-29T18:34:17.000+0000",
            "2024-05-29 18:34:17",
            "2024-05-29T20:34:17+0200",
            "2024-05-29T13:34:17-0500",
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
        for wrong in ["", "2024-05-29", "yesterday", "2024-13-29T18:34:17+0000", "2024-05-29T18:34:17+é00"] {
            assert_eq!(micros(wrong), None, "{wrong}");
        }
        assert_eq!(time_text(time("2024-05-29T18:34:17+0000").unwrap()), "2024-05-29T18:34:17Z");
    }

    #[test]
    fn activation_codes_are_taken_apart() {
        let read = |text: &str| activation(text).map(|code| (code.smdp_address, code.matching_id));
        let expected = Ok(("rsp.example".to_string(), "AB-12".to_string()));
        for text in [
            "LPA:1$rsp.example$AB-12",
            "1$rsp.example$AB-12",
            "lpa:1$rsp.example$AB-12$1.3.6$",
            "LPA:1$rsp.example$AB-12$$0",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        assert_eq!(read("LPA:1$rsp.example$").unwrap().1, "", "a matching id may be empty");
        assert!(read("LPA:1$rsp.example$AB-12$$1").unwrap_err().contains("confirmation code"));
        for wrong in ["", "LPA:", "LPA:2$a$b", "LPA:1$$b", "LPA:1$a", "LPA:1$a b$c", "LPA:1$a$b$c$0$e", "héé"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_name_an_order_or_a_profile() {
        let told = br#"{"notifyType":"ORDER_STATUS","notifyId":"n1","content":{"orderNo":"B1","orderStatus":"GOT_RESOURCE"}}"#;
        let about = |iccid: Option<&str>, number: Option<&str>| Heard::About {
            message: Some("n1".into()),
            number: number.map(str::to_string),
            iccid: iccid.map(str::to_string),
        };
        assert_eq!(message(told), about(None, Some("B1")));
        let told = br#"{"notifyType":"DATA_USAGE","notifyId":"n1","content":{"orderNo":"B1","iccid":"8985224528000135401F","remain":5}}"#;
        assert_eq!(message(told), about(Some("8985224528000135401"), Some("B1")));
        let told = br#"{"notifyType":"SMDP_EVENT","notifyId":"n1","content":{"iccid":"898522452800013540"}}"#;
        assert_eq!(message(told), about(Some("898522452800013540"), None));
        for other in [&b"{}"[..], b"[]", b"\xff", br#"{"content":{"orderNo":7,"iccid":"89"}}"#] {
            assert_eq!(message(other), Heard::Nothing);
        }
    }

    #[test]
    fn states_are_two_axes() {
        let seen = |text: &str, used: i64| service_state(Service::read("test", text), used, 100).as_str();
        for (word, used, state) in [
            ("PAID", 0, "NEW"),
            ("GOT_RESOURCE", 0, "NEW"),
            ("GOT_RESOURCE", 1, "ACTIVE"),
            ("IN_USE", 0, "ACTIVE"),
            ("USED_UP", 100, "DEPLETED"),
            ("UNUSED_EXPIRED", 0, "EXPIRED_UNUSED"),
            ("USED_EXPIRED", 7, "EXPIRED_USED"),
            ("REVOKE", 0, "REVOKED"),
            ("REVOKED", 0, "REVOKED"),
            ("CANCEL", 0, "CANCELLED"),
            ("SUSPENDED", 100, "SUSPENDED"),
            ("MELTED", 5, "ACTIVE"),
            ("MELTED", 0, "UNKNOWN"),
        ] {
            assert_eq!(seen(word, used), state, "{word}");
        }
        assert_eq!(profile_state("INSTALLATION"), Some(ProfileState::Installed));
        assert_eq!((profile_state(""), profile_state("FROZEN")), (None, None));
    }

    #[test]
    fn what_was_touched_is_kept() {
        let kept = |text: &str, smdp: &str, used: i64| {
            kept_because(Service::read("test", text), is_downloaded("test", smdp), used)
        };
        assert_eq!(kept("GOT_RESOURCE", "RELEASED", 0), None);
        assert_eq!(kept("GOT_RESOURCE", "DELETED", 0), Some(CancelReason::Downloaded));
        assert_eq!(kept("GOT_RESOURCE", "ENABLED", 7), Some(CancelReason::Used));
        assert_eq!(kept("IN_USE", "ENABLED", 0), Some(CancelReason::Used));
        assert_eq!(kept("USED_EXPIRED", "ENABLED", 1), Some(CancelReason::Expired));
        assert_eq!(kept("REVOKE", "RELEASED", 0), Some(CancelReason::SupplierCannotCancel));
    }

    #[test]
    fn ids_of_others_stay_as_they_are() {
        for id in ["", "sdk-journey-1", "Ordnung", "äöü"] {
            assert_eq!(order(id).as_str(), id);
        }
        assert!(transaction(&OrderId::from_text("x".repeat(40)), 32).is_err());
    }

    proptest! {
        #[test]
        fn ids_are_short_enough_and_come_back(time in 0i64..4_000_000_000_000_000, random: u128, longest in SHORT_ID..70) {
            for id in [OrderId::esim(Time::from_micros(time), random), OrderId::topup(Time::from_micros(time), random)] {
                let sent = transaction(&id, longest).unwrap();
                prop_assert!(sent.len() <= longest);
                prop_assert_eq!(order(&sent), id);
            }
        }

        #[test]
        fn nothing_that_they_send_makes_us_panic(text in ".{0,40}") {
            let _ = (whole(&text), time(&text), activation(&text), order(&text));
        }
    }
}
