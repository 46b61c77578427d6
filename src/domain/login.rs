//! Logging in by a mailed code: where a code is good, how often one may ask and guess, and what an agent may be
//! called. A code is short until somebody guesses at it; then the mailbox gets codes that nobody can guess.

use super::text;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// A code is good for so long, however often it is mailed.
pub const CODE_MS: i64 = 10 * MINUTE_MS;
/// So many wrong tries end a short code. A long one cannot be guessed, and whoever tries must not end it for its owner.
pub const MOST_WRONG: i64 = 5;
/// So many wrong tries in a day, and the address gets long codes until one of them is used.
pub const WRONG_BEFORE_LONG: i64 = 10;
pub const SILENT_DAYS: i64 = 30;
pub const SESSION_MS: i64 = DAY_MS;

/// At most `most` in any `within_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub most: i64,
    pub within_ms: i64,
}

pub const ASKS_A_MINUTE: Limit = Limit { most: 1, within_ms: MINUTE_MS };
pub const ASKS_AN_HOUR: Limit = Limit { most: 5, within_ms: HOUR_MS };
pub const ASKS_OF_CLIENT: Limit = Limit { most: 50, within_ms: HOUR_MS };
pub const WRONG_OF_CLIENT: Limit = Limit { most: 20, within_ms: HOUR_MS };

/// Where somebody logs in. A code opens only the door it was asked for at; limits count over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Rest,
    Tools,
    Pages,
}

impl Door {
    pub const ALL: [Door; 3] = [Door::Rest, Door::Tools, Door::Pages];

    pub fn as_str(self) -> &'static str {
        match self {
            Door::Rest => "REST",
            Door::Tools => "TOOLS",
            Door::Pages => "PAGES",
        }
    }

    pub fn parse(text: &str) -> Option<Door> {
        Door::ALL.into_iter().find(|door| door.as_str() == text)
    }
}

/// A code as it was typed or pasted: case, spaces and hyphens do not count.
pub fn typed_code(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '-').map(|c| c.to_ascii_uppercase()).collect()
}

pub const AGENT_NAME_CHARS: usize = 64;
const NAMELESS: &str = "agent";

/// What an agent calls itself, without characters that hide, reorder or command. It is shown in mails and pages.
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
    fn codes_may_be_typed_as_they_are_shown() {
        assert_eq!(typed_code(" 123-456\n"), "123456");
        assert_eq!(typed_code("abcde fghjk"), "ABCDEFGHJK");
    }
}
