//! Logging in by a mailed code: where a code is valid, how often one may ask and guess, and what an agent may be
//! called. Codes are short until somebody guesses at them; then the mailbox gets codes that are too long to guess.

use super::client::Shares;
use super::text;
use super::time::Time;
use super::words::words;

const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// How long a code is valid, however often it is mailed.
pub const CODE_MS: i64 = 10 * MINUTE_MS;
/// How many wrong tries end a short code. A long code cannot be guessed, so strangers must not be able to end it.
pub const MOST_WRONG: i64 = 5;
/// After this many wrong tries in a day, the address gets long codes until one of them is used.
pub const WRONG_BEFORE_LONG: i64 = 10;
pub const SILENT_DAYS: i64 = 30;
pub const SESSION_MS: i64 = DAY_MS;

/// At most `most` in any `within_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub most: i64,
    pub within_ms: i64,
}

/// What a client and its networks may do in an hour. Beyond its wrong tries a client is not refused: from then on it
/// may try only codes that it asked for itself, and its codes are long.
pub const ASKS_OF_CLIENT: Shares = Shares { client: 50, site: 250, area: 1_250 };
pub const WRONG_OF_CLIENT: Shares = Shares { client: 20, site: 100, area: 500 };

/// Mails to an address: a least time apart, from a bucket that holds a few and regains one at intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub apart_ms: i64,
    pub holds: i64,
    pub gains_every_ms: i64,
}

/// A code lives for less than two gains. So somebody who asks in the name of others leaves them without a live code for
/// at most five minutes in fifteen, and causes the next code to be mailed to them.
pub const MAILS: Bucket = Bucket { apart_ms: MINUTE_MS, holds: 3, gains_every_ms: 450_000 };

/// A mail taken out of a bucket, and all that must be known about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub at: Time,
    /// When the bucket is full again, unless more is taken.
    pub full_at: Time,
}

impl Bucket {
    /// When enough time has passed since the last one.
    pub fn apart_until(&self, last: Taken) -> Time {
        last.at.plus_millis(self.apart_ms)
    }

    /// When the next one may be taken.
    pub fn next_at(&self, last: Taken) -> Time {
        self.apart_until(last).max(self.filled_at(last))
    }

    /// When the bucket holds at least one again.
    fn filled_at(&self, last: Taken) -> Time {
        last.full_at.plus_millis(-(self.holds - 1) * self.gains_every_ms)
    }

    pub fn take(&self, last: Option<Taken>, now: Time) -> Taken {
        let full_at = last.map_or(now, |last| last.full_at.max(now));
        Taken { at: now, full_at: full_at.plus_millis(self.gains_every_ms) }
    }
}

const LEAST_SHARE: i64 = 50;

/// How many of a day's remaining mails one network may take: a tenth, so that a few networks cannot use them up for
/// all; but at least what a client may ask for in an hour, so that small budgets serve somebody.
pub fn share_of_budget(left: i64) -> i64 {
    (left / 10).max(LEAST_SHARE)
}

words! {
    /// Who logs in. Each realm has its own logins, codes and counters: a code of one opens nothing in another.
    pub enum Realm {
        /// Buyers: one account and one wallet, through any door.
        Buyers = "BUYERS",
        /// People of partners, in the portal.
        Partners = "PARTNERS",
    }
}

words! {
    /// Where somebody logs in. A live code opens every door of its realm; mails and logs say where it was asked for.
    pub enum Door: ALL, parse {
        Rest = "REST",
        Tools = "TOOLS",
        /// A form that proves an email for one deed: a claim, or a purchase from a wallet.
        Pages = "PAGES",
        /// The entrance of the account, where a browser stays signed in.
        Account = "ACCOUNT",
    }
}

impl Door {
    pub fn realm(self) -> Realm {
        match self {
            Door::Rest | Door::Tools | Door::Pages | Door::Account => Realm::Buyers,
        }
    }
}

/// A code as it was typed or pasted: case, spaces and hyphens do not count.
pub fn typed_code(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '-').map(|c| c.to_ascii_uppercase()).collect()
}

pub const AGENT_NAME_CHARS: usize = 64;
const NAMELESS: &str = "agent";

/// The name that an agent gives itself, without characters that hide, reorder or command. Mails and pages show it.
pub fn agent_name(given: Option<&str>) -> String {
    let name = text::visible(given.unwrap_or_default(), AGENT_NAME_CHARS);
    if name.is_empty() { NAMELESS.into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_hides_or_commands() {
        for (given, kept) in [
            ("Trip planner 2", "Trip planner 2"),
            ("  a\r\nBcc: b  ", "aBcc: b"),
            ("evil\u{202e}txt\u{200b}.exe\u{e0041}", "eviltxt.exe"),
            ("\u{feff}\u{2066}\u{0}\u{7f}\u{9b}", "agent"),
            ("\u{65c5}\u{884c} \u{1f5fa}\u{fe0f}", "\u{65c5}\u{884c} \u{1f5fa}"),
            ("", "agent"),
        ] {
            assert_eq!(agent_name(Some(given)), kept);
        }
        assert_eq!(agent_name(None), "agent");
        assert_eq!(agent_name(Some(&"x".repeat(99))).len(), AGENT_NAME_CHARS);
    }

    #[test]
    fn a_bucket_gives_three_and_then_one_at_a_time() {
        let at = |minutes: f64| Time::from_micros((minutes * 60e6) as i64);
        let mut last = None;
        let mut taken = Vec::new();
        // Somebody asks every half minute, for an hour.
        for half in 0..120 {
            let now = at(f64::from(half) / 2.0);
            if last.is_none_or(|last| MAILS.next_at(last) <= now) {
                last = Some(MAILS.take(last, now));
                taken.push(f64::from(half) / 2.0);
            }
        }
        assert_eq!(taken, [0.0, 1.0, 2.0, 7.5, 15.0, 22.5, 30.0, 37.5, 45.0, 52.5]);
        let last = last.unwrap();
        assert_eq!((last.full_at, MAILS.next_at(last)), (at(75.0), at(60.0)));
        // It never holds more than three.
        assert_eq!(MAILS.take(Some(last), at(600.0)).full_at, at(607.5));
    }

    #[test]
    fn few_networks_leave_something_of_a_budget() {
        let mut left = 10_000;
        for _ in 0..20 {
            left -= share_of_budget(left);
        }
        assert!(left > 1_000, "{left}");
        assert_eq!(share_of_budget(3), 50);
    }

    #[test]
    fn codes_may_be_typed_as_they_are_shown() {
        assert_eq!(typed_code(" 123-456\n"), "123456");
        assert_eq!(typed_code("abcde fghjk"), "ABCDEFGHJK");
    }
}
