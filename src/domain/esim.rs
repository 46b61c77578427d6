//! The profile an order delivered: its activation code, its state at the carrier, and its ICCID.

use super::ids::OrderId;
use super::time::Time;
use super::words::words;

words! {
    pub enum EsimStatus: ALL, parse {
        New = "NEW",
        Installed = "INSTALLED",
        Active = "ACTIVE",
        Depleted = "DEPLETED",
        Expired = "EXPIRED",
        Cancelled = "CANCELLED",
    }
}

impl EsimStatus {
    pub fn can_be_topped_up(self) -> bool {
        match self {
            EsimStatus::New | EsimStatus::Installed | EsimStatus::Active | EsimStatus::Depleted => true,
            EsimStatus::Expired | EsimStatus::Cancelled => false,
        }
    }
}

/// What a phone needs to fetch the profile. A bearer credential: encrypted at rest, never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Activation {
    pub smdp_address: String,
    pub matching_id: String,
}

impl Activation {
    pub fn lpa_string(&self) -> String {
        format!("LPA:1${}${}", self.smdp_address, self.matching_id)
    }
}

impl std::fmt::Debug for Activation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Activation(hidden)")
    }
}

/// A delivered profile as we keep it.
#[derive(Clone, Debug)]
pub struct Esim {
    /// The order that delivered it.
    pub order: OrderId,
    /// The supplier's own name for it: upstream calls use this, because ICCIDs are reused.
    pub profile: String,
    pub iccid: String,
    /// The activation code, encrypted.
    pub sealed: Vec<u8>,
    pub install_by: Option<Time>,
    pub last_usage: Option<Usage>,
}

/// A reading of the carrier's meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    pub status: EsimStatus,
    pub total_mb: i64,
    pub used_mb: i64,
    pub as_of: Time,
    pub expires_at: Option<Time>,
}

impl Usage {
    /// The reading of a profile that was given back: nothing of it can be used, so nothing is left and nothing expires.
    pub fn given_back(self) -> Usage {
        Usage { status: EsimStatus::Cancelled, total_mb: self.used_mb, expires_at: None, ..self }
    }
}

/// The times that decide how long an activation code is useful.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeLife {
    pub install_by: Option<Time>,
    pub installed_at: Option<Time>,
    pub expires_at: Option<Time>,
    pub cancelled_at: Option<Time>,
}

impl CodeLife {
    /// How many days a code is kept after its last use.
    pub const DAYS: i64 = 30;

    /// Whether the profile was installed, given back, expired or past its install date, long enough ago.
    pub fn is_over(&self, now: Time) -> bool {
        let ends = [self.install_by, self.installed_at, self.expires_at, self.cancelled_at];
        ends.into_iter().flatten().min().is_some_and(|end| end.plus_days(CodeLife::DAYS) < now)
    }
}

/// ICCIDs in a path are 19 or 20 digits. Their check digit is not tested, because many suppliers' ICCIDs fail it.
pub fn is_iccid(text: &str) -> bool {
    (19..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// The digit that makes `digits` pass the Luhn check.
pub fn luhn_digit(digits: &str) -> u8 {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, byte)| {
            let digit = u32::from(byte - b'0');
            if place % 2 == 1 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
        })
        .sum();
    b'0' + ((10 - sum % 10) % 10) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luhn_matches_known_numbers() {
        assert_eq!(luhn_digit("7992739871"), b'3');
        assert_eq!(luhn_digit("411111111111111"), b'1');
    }

    #[test]
    fn a_code_is_over_30_days_after_the_first_of_its_ends() {
        let day = |day: i64| Time::from_micros(0).plus_days(day);
        let life = CodeLife { install_by: Some(day(180)), expires_at: Some(day(40)), ..CodeLife::default() };
        assert!(!life.is_over(day(70)) && life.is_over(day(71)));
        let installed = CodeLife { installed_at: Some(day(5)), ..life };
        assert!(!installed.is_over(day(35)) && installed.is_over(day(36)));
        assert!(!CodeLife::default().is_over(day(9_999)), "nobody knows of an end");
    }

    #[test]
    fn iccids_are_19_or_20_digits() {
        assert!(is_iccid("8901234567890123456"));
        assert!(is_iccid("89012345678901234567"));
        assert!(!is_iccid("890123456789012345"));
        assert!(!is_iccid("890123456789012345F"));
    }
}
