//! The second factor of a person who signs in: six digits that an authenticator app shows for half a minute (TOTP, RFC
//! 6238), and recovery codes for when the app is lost. Which digits are right is known in `vault`; here is what may be
//! typed, when it counts, how a secret is handed to an app, and how long guessers have to wait.

use super::login::{DAY_MS, HOUR_MS, typed_code};
use super::time::Time;

const STEP_MICROS: i64 = 30_000_000;
/// How many digits a code has.
pub const DIGITS: usize = 6;
/// How many recovery codes are made at once.
pub const RECOVERY_CODES: usize = 10;
/// Letters of a recovery code: 18 of 22 letters are 80 bits, and nobody takes them for the six digits.
pub const RECOVERY_LETTERS: usize = 18;
const RECOVERY_GROUP: usize = 6;
/// A secret that was shown and not confirmed is good for so long.
pub const SETUP_MS: i64 = HOUR_MS;

/// Whoever sets one up has signed in within this time: somebody who found a browser open, or has its cookie, does not lock
/// its owner out.
const SIGNED_IN_MS: i64 = 15 * 60_000;

/// Whether somebody who signed in at that time may set one up.
pub fn may_set_up(signed_in_at: Time, now: Time) -> bool {
    now.is_within(SIGNED_IN_MS, signed_in_at)
}

/// The half minute that a moment is in, counted from 1970.
pub fn step(at: Time) -> i64 {
    at.micros().div_euclid(STEP_MICROS)
}

/// The half minutes whose codes count now, the newest last: people type slowly, and clocks of phones are off.
pub fn steps(now: Time) -> [i64; 3] {
    let step = step(now);
    [step - 1, step, step + 1]
}

/// What somebody typed who was asked for a second factor.
pub enum Typed {
    /// Six digits.
    Code(String),
    /// Letters in the form of a recovery code, without hyphens.
    Recovery(String),
    /// Neither, so nothing was guessed at.
    Other,
}

impl Typed {
    /// Case, spaces and hyphens do not count.
    pub fn read(text: &str) -> Typed {
        let text = typed_code(text);
        if text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit()) {
            Typed::Code(text)
        } else if text.len() == RECOVERY_LETTERS && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
            Typed::Recovery(text)
        } else {
            Typed::Other
        }
    }
}

/// The letters of a recovery code as they are shown: `ABCDEF-GHJKMN-PQRSTV`.
pub fn grouped(letters: &str) -> String {
    let mut text = String::with_capacity(letters.len() + letters.len() / RECOVERY_GROUP);
    for (nth, letter) in letters.chars().enumerate() {
        if nth > 0 && nth % RECOVERY_GROUP == 0 {
            text.push('-');
        }
        text.push(letter);
    }
    text
}

/// A secret as people type it into an app (RFC 4648, without padding).
pub fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let group = |chunk: &[u8]| {
        let bits = (0..5).fold(0u64, |bits, nth| bits << 8 | u64::from(*chunk.get(nth).unwrap_or(&0)));
        let letters = (chunk.len() * 8).div_ceil(5);
        (0..letters).map(move |nth| char::from(LETTERS[(bits >> (35 - 5 * nth) & 31) as usize]))
    };
    bytes.chunks(5).flat_map(group).collect()
}

/// What a QR code tells an app. Apps show issuer and account, and take what is before the first colon for the issuer.
pub fn setup_uri(issuer: &str, account: &str, secret: &str) -> String {
    let (issuer, account) = (percent(&issuer.replace(':', " ")), percent(account));
    format!("otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}")
}

/// As RFC 3986 has it: some apps take the `+` of forms for a plus.
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// This many wrong codes within a day, and the app's codes rest.
const MOST_WRONG: i64 = 10;
const WRONG_WITHIN_MS: i64 = DAY_MS;
const FIRST_REST_MS: i64 = HOUR_MS / 4;
const LONGEST_REST_MS: i64 = DAY_MS;
/// So long after a rest the next is the shortest again.
const RESTS_COUNT_MS: i64 = 30 * DAY_MS;

/// A person's wrong codes, over all sign-ins. A right code takes none of them back, or a guesser could wait for the owner to
/// do that; time does. So whoever reads all the mail of a person gets ten guesses a day in the long run, of which each
/// is right once in 333,333.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    pub wrong: i64,
    /// When the first of these was tried.
    pub since: Time,
    /// How many rests there were, one soon after the other.
    pub rests: i64,
    pub until: Time,
}

impl Tries {
    pub const NONE: Tries =
        Tries { wrong: 0, since: Time::from_micros(0), rests: 0, until: Time::from_micros(0) };

    /// Until when the app's codes rest. A promise for longer than a rest lasts came from a wrong clock.
    pub fn resting_until(&self, now: Time) -> Option<Time> {
        let longest = now.plus_millis(LONGEST_REST_MS).and_a_little();
        (self.until > now && self.until <= longest).then_some(self.until)
    }

    pub fn after_wrong(self, now: Time) -> Tries {
        let goes_on = now.is_within(WRONG_WITHIN_MS, self.since);
        let (wrong, since) = if goes_on { (self.wrong + 1, self.since) } else { (1, now) };
        if wrong < MOST_WRONG {
            return Tries { wrong, since, ..self };
        }
        let earlier = if now.is_within(RESTS_COUNT_MS, self.until) { self.rests } else { 0 };
        let rest = (FIRST_REST_MS << earlier.clamp(0, 10)).min(LONGEST_REST_MS);
        Tries { wrong: 0, since: now, rests: earlier + 1, until: now.plus_millis(rest) }
    }

    /// Nobody guesses a recovery code: the owner is there, and may use the app again at once.
    pub fn after_recovery(self, now: Time) -> Tries {
        Tries { wrong: 0, until: self.until.min(now), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: i64 = 60_000;

    #[test]
    fn steps_are_half_minutes_with_one_more_on_either_side() {
        let at = |seconds: i64| Time::from_micros(seconds * 1_000_000);
        assert_eq!((step(at(59)), step(at(60)), step(Time::from_micros(89_999_999))), (1, 2, 2));
        assert_eq!(steps(at(1_111_111_109)), [37_037_035, 37_037_036, 37_037_037]);
    }

    #[test]
    fn codes_are_read_as_people_type_them() {
        let read = |text: &str| match Typed::read(text) {
            Typed::Code(code) => format!("code {code}"),
            Typed::Recovery(code) => format!("recovery {code}"),
            Typed::Other => "other".into(),
        };
        for (typed, as_read) in [
            ("123456", "code 123456"),
            (" 123 456\n", "code 123456"),
            ("abcdef-ghjkmn-pqrstv", "recovery ABCDEFGHJKMNPQRSTV"),
            ("ABCDEF GHJKMN PQRSTV ", "recovery ABCDEFGHJKMNPQRSTV"),
            ("12345", "other"),
            ("1234567", "other"),
            ("12345a", "other"),
            ("\u{661}\u{662}\u{663}", "other"),
            ("ABCDEF-GHJKMN-PQRST1", "other"),
            ("ABCDEF-GHJKMN", "other"),
            ("", "other"),
        ] {
            assert_eq!(read(typed), as_read, "{typed:?}");
        }
        assert_eq!(grouped("ABCDEFGHJKMNPQRSTV"), "ABCDEF-GHJKMN-PQRSTV");
    }

    /// The examples of RFC 4648.
    #[test]
    fn secrets_are_written_in_base32() {
        for (bytes, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
            ("12345678901234567890", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"),
        ] {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn nothing_in_a_name_ends_its_place_in_the_uri() {
        assert_eq!(
            setup_uri("A&B: Caf\u{e9} + Co", "ann+x/y?z#%@example.com", "ABC"),
            "otpauth://totp/A%26B%20%20Caf%C3%A9%20%2B%20Co:ann%2Bx%2Fy%3Fz%23%25%40example.com?secret=ABC&issuer=A%26B%20%20Caf%C3%A9%20%2B%20Co"
        );
    }

    #[test]
    fn guessers_wait_longer_each_time() {
        let mut now = Time::from_micros(1_700_000_000_000_000);
        let mut tries = Tries::NONE;
        let mut waited = Vec::new();
        while waited.len() < 9 {
            for _ in 0..9 {
                tries = tries.after_wrong(now);
                assert_eq!(tries.resting_until(now), None);
            }
            tries = tries.after_wrong(now);
            let until = tries.resting_until(now).unwrap();
            waited.push((until.micros() - now.micros()) / 60_000_000);
            assert_eq!(tries.resting_until(until), None);
            now = until;
        }
        assert_eq!(waited, [15, 30, 60, 120, 240, 480, 960, 1_440, 1_440]);
        // A month later it begins anew.
        now = now.plus_days(30);
        let later = (0..10).fold(tries, |tries, _| tries.after_wrong(now));
        assert_eq!(later.resting_until(now), Some(now.plus_millis(15 * MINUTE_MS)));
    }

    #[test]
    fn wrong_codes_of_different_days_and_of_wrong_clocks_do_not_add_up() {
        let now = Time::from_micros(1_700_000_000_000_000);
        let nine = (0..9).fold(Tries::NONE, |tries, _| tries.after_wrong(now));
        let day = now.plus_days(1);
        assert_eq!(nine.after_wrong(day), Tries { wrong: 1, since: day, ..Tries::NONE });
        assert_eq!(nine.after_wrong(day.plus_millis(-1)).wrong, 0);
        let ahead = Tries { until: now.plus_days(365), ..Tries::NONE };
        assert_eq!(ahead.resting_until(now), None);
    }

    #[test]
    fn a_recovery_code_ends_a_rest_and_not_what_it_taught() {
        let now = Time::from_micros(1_700_000_000_000_000);
        let ten = |tries| (0..10).fold(tries, |tries: Tries, _| tries.after_wrong(now));
        let resting = ten(Tries::NONE);
        let owner = resting.after_recovery(now);
        assert_eq!((resting.resting_until(now).is_some(), owner.resting_until(now)), (true, None));
        assert_eq!(ten(owner).resting_until(now), Some(now.plus_millis(30 * MINUTE_MS)));
    }
}
