//! The profile an order delivered: its activation code, its state at the carrier, and its ICCID. What its owner is told of
//! it is in `esim/tidings.rs`.

pub mod tidings;

use super::ids::OrderId;
use super::time::Time;
use super::words::words;

words! {
    /// What everybody outside sees: one word for a profile and its plan.
    pub enum EsimStatus: ALL, parse {
        New = "NEW",
        Installed = "INSTALLED",
        Active = "ACTIVE",
        Depleted = "DEPLETED",
        Expired = "EXPIRED",
        Cancelled = "CANCELLED",
    }
}

words! {
    /// Where the profile is, between its server and a phone.
    pub enum ProfileState: ALL, parse {
        Pending = "PENDING",
        Released = "RELEASED",
        Downloaded = "DOWNLOADED",
        Installed = "INSTALLED",
        Enabled = "ENABLED",
        Disabled = "DISABLED",
        Deleted = "DELETED",
        Error = "ERROR",
        Unavailable = "UNAVAILABLE",
    }
}

words! {
    /// How its plan stands.
    pub enum ServiceState: ALL, parse {
        New = "NEW",
        /// Bought, and begins when another plan ends.
        Queued = "QUEUED",
        Active = "ACTIVE",
        Depleted = "DEPLETED",
        ExpiredUsed = "EXPIRED_USED",
        ExpiredUnused = "EXPIRED_UNUSED",
        Suspended = "SUSPENDED",
        Revoked = "REVOKED",
        Cancelled = "CANCELLED",
        /// Its ICCID went to somebody else.
        Recycled = "RECYCLED",
        /// The supplier uses a word that we do not know.
        Unknown = "UNKNOWN",
    }
}

impl EsimStatus {
    /// The states of a profile that reads so; `used` tells whether it was ever used.
    pub fn states(self, used: bool) -> (ServiceState, Option<ProfileState>) {
        match self {
            EsimStatus::New => (ServiceState::New, Some(ProfileState::Released)),
            EsimStatus::Installed => (ServiceState::New, Some(ProfileState::Installed)),
            EsimStatus::Active => (ServiceState::Active, Some(ProfileState::Enabled)),
            EsimStatus::Depleted => (ServiceState::Depleted, Some(ProfileState::Enabled)),
            EsimStatus::Expired if used => (ServiceState::ExpiredUsed, None),
            EsimStatus::Expired => (ServiceState::ExpiredUnused, None),
            EsimStatus::Cancelled => (ServiceState::Cancelled, None),
        }
    }
}

impl ProfileState {
    /// Whether a phone has or had the profile. There is no way back from there.
    pub fn was_taken(self) -> bool {
        match self {
            ProfileState::Pending
            | ProfileState::Released
            | ProfileState::Error
            | ProfileState::Unavailable => false,
            ProfileState::Downloaded
            | ProfileState::Installed
            | ProfileState::Enabled
            | ProfileState::Disabled
            | ProfileState::Deleted => true,
        }
    }
}

impl ServiceState {
    /// How far the plan is. It never comes back to an earlier stage; within one, the newest reading is right.
    fn stage(self) -> u8 {
        match self {
            ServiceState::Unknown => 0,
            ServiceState::New | ServiceState::Queued => 1,
            ServiceState::Active | ServiceState::Depleted | ServiceState::Suspended => 2,
            ServiceState::ExpiredUsed | ServiceState::ExpiredUnused => 3,
            ServiceState::Recycled => 4,
            ServiceState::Revoked => 5,
            ServiceState::Cancelled => 6,
        }
    }

    /// Whether the plan is over for good.
    pub fn is_over(self) -> bool {
        self.stage() >= ServiceState::ExpiredUsed.stage()
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
    /// When the carrier was last asked for a reading, and when it last answered.
    pub asked_at: Option<Time>,
    pub answered_at: Option<Time>,
    /// When it is to be read without anybody asking.
    pub due_at: Option<Time>,
}

/// Time, megabytes in all, megabytes used, and end of a reading.
type Moment = (Time, i64, i64, Option<Time>);

/// A reading of the carrier's meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    pub service: ServiceState,
    /// `None` when the supplier does not say.
    pub profile: Option<ProfileState>,
    pub total_mb: i64,
    pub used_mb: i64,
    /// When the carrier took it, by the supplier's clock.
    pub as_of: Time,
    pub expires_at: Option<Time>,
}

impl Usage {
    /// The one word for outside.
    pub fn status(&self) -> EsimStatus {
        let taken = self.profile.is_some_and(ProfileState::was_taken);
        match self.service {
            ServiceState::Unknown if self.used_mb > 0 => EsimStatus::Active,
            ServiceState::New | ServiceState::Queued | ServiceState::Unknown if taken => {
                EsimStatus::Installed
            }
            ServiceState::New | ServiceState::Queued | ServiceState::Unknown => EsimStatus::New,
            ServiceState::Active | ServiceState::Suspended => EsimStatus::Active,
            ServiceState::Depleted => EsimStatus::Depleted,
            ServiceState::ExpiredUsed | ServiceState::ExpiredUnused | ServiceState::Recycled => {
                EsimStatus::Expired
            }
            ServiceState::Revoked | ServiceState::Cancelled => EsimStatus::Cancelled,
        }
    }

    pub fn can_be_topped_up(&self) -> bool {
        match self.service {
            ServiceState::New
            | ServiceState::Queued
            | ServiceState::Active
            | ServiceState::Depleted
            // The supplier decides.
            | ServiceState::Unknown => true,
            ServiceState::ExpiredUsed
            | ServiceState::ExpiredUnused
            | ServiceState::Suspended
            | ServiceState::Revoked
            | ServiceState::Cancelled
            | ServiceState::Recycled => false,
        }
    }

    /// The reading without what cannot be: less than nothing, and times to come. A time to come would make every later
    /// reading look late.
    pub fn plausible(self, now: Time) -> Usage {
        let (total_mb, used_mb) = (self.total_mb.max(0), self.used_mb.max(0));
        Usage { total_mb, used_mb, as_of: self.as_of.min(now), ..self }
    }

    /// What is known after a reading, whichever order readings arrive in. The newer one has the meter; neither the plan
    /// nor the profile comes back to an earlier stage, whatever is newer.
    pub fn after(known: Option<&Usage>, reading: &Usage) -> Usage {
        let Some(known) = known else { return reading.clone() };
        let newer = if reading.moment() >= known.moment() { reading } else { known };
        let stays = known.service_key() > reading.service_key();
        let service = if stays { known.service } else { reading.service };
        let stays = known.profile_key() > reading.profile_key();
        let profile = if stays { known.profile } else { reading.profile };
        Usage { service, profile, ..newer.clone() }
    }

    /// Decides which of two readings is newer. Suppliers count a top-up, and data that is used, before they move the time
    /// of the reading, and neither becomes less at one moment.
    fn moment(&self) -> Moment {
        (self.as_of, self.total_mb, self.used_mb, self.expires_at)
    }

    fn service_key(&self) -> (u8, Moment, u8) {
        (self.service.stage(), self.moment(), self.service as u8)
    }

    fn profile_key(&self) -> (Option<bool>, Moment, Option<u8>) {
        (self.profile.map(ProfileState::was_taken), self.moment(), self.profile.map(|state| state as u8))
    }

    /// The reading of a profile that was given back: nothing of it can be used, so nothing is left and nothing expires.
    pub fn given_back(self) -> Usage {
        Usage { service: ServiceState::Cancelled, total_mb: self.used_mb, expires_at: None, ..self }
    }
}

/// What a profile had used at the end of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageDay {
    /// The UTC day, counted from 1970.
    pub day: i64,
    pub used_mb: i64,
    pub total_mb: i64,
}

/// How long what was used on each day is kept: thirteen months.
pub const USAGE_DAYS: i64 = 396;

/// How often profiles are read without anybody asking, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    /// Those that are installed or in use.
    pub active_s: i64,
    /// The others.
    pub idle_s: i64,
}

impl Rhythm {
    /// For how many days a profile is read after its last date: suppliers are late to say that it is over.
    const GRACE_DAYS: i64 = 30;

    /// When to read a profile again that now reads so; `None` when nothing can change any more.
    pub fn next(&self, usage: Option<&Usage>, install_by: Option<Time>, now: Time) -> Option<Time> {
        let status = usage.map_or(EsimStatus::New, Usage::status);
        let last = match status {
            EsimStatus::New => install_by,
            _ => usage.and_then(|usage| usage.expires_at),
        };
        let is_past = last.is_some_and(|last| last.plus_days(Rhythm::GRACE_DAYS) < now);
        if usage.is_some_and(|usage| usage.service.is_over()) || is_past {
            return None;
        }
        let seconds = match status {
            EsimStatus::Installed | EsimStatus::Active => self.active_s,
            EsimStatus::New | EsimStatus::Depleted | EsimStatus::Expired | EsimStatus::Cancelled => {
                self.idle_s
            }
        };
        Some(now.plus_millis(seconds * 1_000))
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

/// An ICCID: 18 to 20 digits. The `F`s that fill its last byte up may follow, and are no part of it. Its check digit is
/// not tested, because many suppliers' ICCIDs fail it.
pub fn iccid(text: &str) -> Option<String> {
    let digits = text.trim_end_matches(['F', 'f']);
    let is_filled_up = text.len() - digits.len() <= 2;
    let fits = (18..=20).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    (fits && is_filled_up).then(|| digits.to_string())
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
    use proptest::prelude::*;

    #[test]
    fn luhn_matches_known_numbers() {
        assert_eq!(luhn_digit("7992739871"), b'3');
        assert_eq!(luhn_digit("411111111111111"), b'1');
    }

    fn reading(service: ServiceState, profile: Option<ProfileState>, at: i64) -> Usage {
        let as_of = Time::from_micros(at);
        Usage { service, profile, total_mb: 1024, used_mb: 0, as_of, expires_at: None }
    }

    #[test]
    fn every_pair_of_states_has_one_word() {
        use ServiceState::*;
        for (service, word) in [
            (Active, "ACTIVE"),
            (Depleted, "DEPLETED"),
            (ExpiredUsed, "EXPIRED"),
            (ExpiredUnused, "EXPIRED"),
            (Suspended, "ACTIVE"),
            (Revoked, "CANCELLED"),
            (Cancelled, "CANCELLED"),
            (Recycled, "EXPIRED"),
        ] {
            for profile in ProfileState::ALL.into_iter().map(Some).chain([None]) {
                assert_eq!(reading(service, profile, 0).status().as_str(), word);
            }
        }
        for service in [New, Queued, Unknown] {
            for (profile, word) in [
                (None, "NEW"),
                (Some(ProfileState::Pending), "NEW"),
                (Some(ProfileState::Released), "NEW"),
                (Some(ProfileState::Downloaded), "INSTALLED"),
                (Some(ProfileState::Installed), "INSTALLED"),
                (Some(ProfileState::Enabled), "INSTALLED"),
                (Some(ProfileState::Disabled), "INSTALLED"),
                (Some(ProfileState::Deleted), "INSTALLED"),
                (Some(ProfileState::Error), "NEW"),
                (Some(ProfileState::Unavailable), "NEW"),
            ] {
                assert_eq!(reading(service, profile, 0).status().as_str(), word);
            }
        }
        assert_eq!(Usage { used_mb: 1, ..reading(Unknown, None, 0) }.status(), EsimStatus::Active);
    }

    #[test]
    fn each_word_comes_from_states() {
        for (status, used) in EsimStatus::ALL.into_iter().flat_map(|status| [(status, false), (status, true)])
        {
            let (service, profile) = status.states(used);
            assert_eq!(reading(service, profile, 0).status(), status);
        }
    }

    #[test]
    fn a_top_up_makes_a_depleted_plan_active_again() {
        let depleted = Usage { used_mb: 1024, ..reading(ServiceState::Depleted, None, 5) };
        let filled = Usage { total_mb: 2048, used_mb: 1024, ..reading(ServiceState::Active, None, 6) };
        assert_eq!(Usage::after(Some(&depleted), &filled), filled);
        let same_time = Usage { as_of: depleted.as_of, ..filled };
        assert_eq!(Usage::after(Some(&depleted), &same_time), same_time);
        let late = Usage { as_of: Time::from_micros(4), ..same_time };
        assert_eq!(Usage::after(Some(&depleted), &late), depleted);
    }

    #[test]
    fn what_is_over_stays_over() {
        use ServiceState::*;
        for (before, later, after) in [
            (ExpiredUsed, Active, ExpiredUsed),
            (ExpiredUnused, ExpiredUsed, ExpiredUsed),
            (ExpiredUsed, Recycled, Recycled),
            (Recycled, Active, Recycled),
            (Revoked, New, Revoked),
            (Cancelled, ExpiredUnused, Cancelled),
            (Active, New, Active),
            (Active, Unknown, Active),
            (Unknown, New, New),
            (Suspended, Active, Active),
            (New, Queued, Queued),
        ] {
            let merged = Usage::after(Some(&reading(before, None, 1)), &reading(later, None, 2));
            assert_eq!((merged.service, merged.as_of.micros()), (after, 2), "{before:?} {later:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_left_out() {
        let now = Time::from_micros(10);
        let wrong = Usage { total_mb: -1, used_mb: -7, ..reading(ServiceState::Active, None, 99) };
        let right = wrong.plausible(now);
        assert_eq!((right.total_mb, right.used_mb, right.as_of), (0, 0, now));
    }

    #[test]
    fn profiles_are_read_while_something_can_change() {
        let (rhythm, now) = (Rhythm { active_s: 60, idle_s: 600 }, Time::from_micros(0).plus_days(100));
        let soon = |millis| Some(now.plus_millis(millis));
        assert_eq!(rhythm.next(None, None, now), soon(600_000));
        let next = |service, profile| rhythm.next(Some(&reading(service, profile, 0)), None, now);
        assert_eq!(next(ServiceState::New, Some(ProfileState::Installed)), soon(60_000));
        assert_eq!(next(ServiceState::Active, None), soon(60_000));
        assert_eq!(next(ServiceState::Depleted, None), soon(600_000));
        assert_eq!(next(ServiceState::ExpiredUnused, None), None);
        let ended = Usage { expires_at: Some(now.plus_days(-31)), ..reading(ServiceState::Active, None, 0) };
        assert_eq!(rhythm.next(Some(&ended), None, now), None);
        assert_eq!(rhythm.next(None, Some(now.plus_days(-31)), now), None, "nobody installed it in time");
    }

    fn any_usage() -> impl Strategy<Value = Usage> {
        let profile = prop::option::of(prop::sample::select(ProfileState::ALL.to_vec()));
        let service = prop::sample::select(ServiceState::ALL.to_vec());
        (service, profile, 0..3_i64, 0..3_i64, 0..4_i64, prop::option::of(0..3_i64)).prop_map(
            |(service, profile, total_mb, used_mb, at, end)| {
                let (as_of, expires_at) = (Time::from_micros(at), end.map(Time::from_micros));
                Usage { service, profile, total_mb, used_mb, as_of, expires_at }
            },
        )
    }

    fn after_all<'a>(readings: impl IntoIterator<Item = &'a Usage>) -> Option<Usage> {
        readings.into_iter().fold(None, |known, reading| Some(Usage::after(known.as_ref(), reading)))
    }

    proptest! {
        /// Two instances may store the same two readings in either order.
        #[test]
        fn the_order_of_two_readings_does_not_matter(one in any_usage(), other in any_usage()) {
            prop_assert_eq!(Usage::after(Some(&one), &other), Usage::after(Some(&other), &one));
            prop_assert_eq!(&Usage::after(Some(&one), &one), &one);
        }

        #[test]
        fn no_reading_moves_anything_back(readings in prop::collection::vec(any_usage(), 1..12)) {
            let mut known = readings[0].clone();
            for reading in &readings[1..] {
                let next = Usage::after(Some(&known), reading);
                prop_assert!(next.service.stage() >= known.service.stage());
                prop_assert!(next.profile.map(ProfileState::was_taken) >= known.profile.map(ProfileState::was_taken));
                prop_assert!(next.moment() >= known.moment());
                // What is the same comes from one of the two, and nothing is made up.
                prop_assert!(next.service == known.service || next.service == reading.service);
                known = next;
            }
        }

        /// A life as it can be, heard of in any order, ends as it ended.
        #[test]
        fn late_messages_change_nothing(mut life in prop::collection::vec(any_usage(), 1..10), seed in any::<u64>()) {
            life.retain(|usage| usage.service != ServiceState::Unknown && usage.profile.is_some());
            life.sort_by_key(|usage| (usage.service.stage(), usage.profile.map(ProfileState::was_taken)));
            for (at, usage) in life.iter_mut().enumerate() {
                usage.as_of = Time::from_micros(at as i64);
            }
            // The stages of both must only grow.
            let mut taken = false;
            for usage in &mut life {
                taken |= usage.profile.is_some_and(ProfileState::was_taken);
                if taken && !usage.profile.is_some_and(ProfileState::was_taken) {
                    usage.profile = Some(ProfileState::Deleted);
                }
            }
            let mut heard: Vec<&Usage> = life.iter().collect();
            let mut random = seed;
            for place in (1..heard.len()).rev() {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                heard.swap(place, (random >> 33) as usize % (place + 1));
            }
            prop_assert_eq!(after_all(heard), life.last().cloned());
        }
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
    fn iccids_are_18_to_20_digits_and_what_fills_them_up_is_left_out() {
        for digits in ["890123456789012345", "8901234567890123456", "89012345678901234567"] {
            for filler in ["", "F", "f", "FF"] {
                assert_eq!(iccid(&format!("{digits}{filler}")).as_deref(), Some(digits), "{digits}{filler}");
            }
        }
        for wrong in [
            "",
            "F",
            "89012345678901234",
            "890123456789012345678",
            "890123456789012345FFF",
            "8901234567890F2345",
            "8910000000000091e5",
            "8.985224528e18",
            " 8901234567890123456",
        ] {
            assert_eq!(iccid(wrong), None, "{wrong}");
        }
    }
}
