//! A stay on pages: how long somebody who signed in there remains so, and how a browser is named in the list of stays.

use super::text;
use super::time::Time;

const HOUR_MS: i64 = 3_600_000;
/// Without a visit for so long, a session ends.
pub const IDLE_MS: i64 = 12 * HOUR_MS;
/// However much it is used, a session ends then.
pub const LONGEST_MS: i64 = 30 * 24 * HOUR_MS;
/// How often a visit is written down.
pub const SEEN_EVERY_MS: i64 = 60_000;
const BROWSER_CHARS: usize = 40;

/// When sessions must have begun, and have been used, to be good.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub made_after: Time,
    pub seen_after: Time,
}

impl Limits {
    /// For sessions that are good at this time.
    pub fn good(now: Time) -> Limits {
        Limits { made_after: now.plus_millis(-LONGEST_MS), seen_after: now.plus_millis(-IDLE_MS) }
    }

    pub fn admit(&self, made_at: Time, seen_at: Time) -> bool {
        made_at > self.made_after && seen_at > self.seen_after
    }
}

/// What a browser says of itself, in two words where they are known.
pub fn browser(agent: &str) -> String {
    let named = |names: &[(&str, &'static str)]| {
        names.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name)
    };
    // The order matters: browsers say that they are others too.
    let browser = named(&[
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("SamsungBrowser", "Samsung Internet"),
        ("Firefox", "Firefox"),
        ("FxiOS", "Firefox"),
        ("CriOS", "Chrome"),
        ("Chrome", "Chrome"),
        ("Safari", "Safari"),
    ]);
    let system = named(&[
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Mac OS X", "Mac"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        _ => Some(text::visible(agent, BROWSER_CHARS))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "Unknown browser".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_end_by_rest_and_by_age() {
        let now = Time::from_micros(LONGEST_MS * 2_000);
        let ago = |ms: i64| now.plus_millis(-ms);
        let good = |made, seen| Limits::good(now).admit(ago(made), ago(seen));
        assert!(good(0, 0) && good(LONGEST_MS - 1, 0) && good(IDLE_MS, IDLE_MS - 1));
        assert!(!good(LONGEST_MS, 0) && !good(IDLE_MS, IDLE_MS));
    }

    #[test]
    fn browsers_are_named_in_short() {
        for (agent, name) in [
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605 Version/17.4 Mobile Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537 Chrome/120 Mobile Safari/537",
                "Chrome on Android",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537 Chrome/120 Safari/537 Edg/120",
                "Edge on Windows",
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:120) Gecko Firefox/120", "Firefox on Linux"),
            ("curl/8.5\u{202e}", "curl/8.5"),
            ("", "Unknown browser"),
        ] {
            assert_eq!(browser(agent), name);
        }
    }
}
