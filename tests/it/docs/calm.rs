//! Makes a recorded body calm: what differs from run to run becomes what the descriptions use as examples too. The same
//! id is the same in all bodies of a story, and a recording made anew differs only where the gateway does.

use simgate::domain::esim::luhn_digit;
use simgate::domain::time::Time;
use simgate::wire::dates;

use super::heard::Json;

const SCHEME: &str = "https://";
const HOST: &str = "gateway.example";
/// When every story begins.
const BEGIN: &str = "2026-01-31T12:00:00.000Z";
const MINUTE: i64 = 60_000_000;
const ID: &str = "0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U";
const ORDER_NO: &str = "SG4K7M2Q9XTB";
const TX_HASH: &str = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060";
const REQUEST_ID: &str = "3bcc7d02123382a171ad6e9847e55de1";
const ICCID: u64 = 890_123_456_789_012_345;
/// The first bytes of every PNG image.
const IMAGE: &str = "data:image/png;base64,iVBORw0KGgo=";
const HEAD: i64 = 1_000;
const DURATION_MS: i64 = 85;
/// A place in the log of events or deliveries.
const PLACE: &str = "5tVq0Zk2LmA";
const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
const MATCHING_ID: &str = "SIM-0123456789ABCDEF0123456A";
/// Longer texts are cut after a line.
const MOST_CHARS: usize = 600;

pub struct Calm {
    /// With its port, without a scheme.
    host: String,
    began: Time,
    /// What was met, and what it became.
    met: Vec<(String, String)>,
}

impl Calm {
    pub fn new(host: &str, began: Time) -> Calm {
        Calm { host: host.into(), began, met: Vec::new() }
    }

    /// Something that only this story knows.
    pub fn replace(&mut self, text: &str, with: &str) {
        self.met.push((text.into(), with.into()));
    }

    pub fn body(&mut self, heard: &Json) -> Json {
        self.within(heard, None)
    }

    /// A body, or a part of one that asks for so many confirmations: more than these are not shown.
    fn within(&mut self, heard: &Json, required: Option<&Json>) -> Json {
        match heard {
            Json::Text(text) => Json::Text(self.text(text)),
            // A list of objects is shown by its first.
            Json::List(items) => {
                let most = if matches!(items.first(), Some(Json::Object(_))) { 1 } else { items.len() };
                Json::List(items.iter().take(most).map(|item| self.within(item, required)).collect())
            }
            Json::Object(members) => {
                let required = heard.get("requiredConfirmations").or(required);
                let calm = |(name, value): &(String, Json)| {
                    let value = match (name.as_str(), value) {
                        ("confirmations", Json::Number(seen)) if seen.as_i64() > Some(0) => {
                            required.unwrap_or(value).clone()
                        }
                        ("expiresAt", Json::Number(millis)) => {
                            let at = Time::from_micros(millis.as_i64().unwrap() * 1_000);
                            Json::Number((self.time(at).micros() / 1_000).into())
                        }
                        ("durationMs", Json::Number(_)) => Json::Number(DURATION_MS.into()),
                        ("head", Json::Number(_)) => Json::Number(HEAD.into()),
                        (_, value) => self.within(value, required),
                    };
                    (name.clone(), value)
                };
                Json::Object(members.iter().map(calm).collect())
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        if text.starts_with("data:image/") {
            return IMAGE.into();
        }
        if text.starts_with("whsec_") {
            return WEBHOOK_SECRET.into();
        }
        let mut calm = String::new();
        let text = text.replace(&format!("http://{}", self.host), &format!("{SCHEME}{HOST}"));
        let text = text.replace(&self.host, HOST);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let of_word = |c: char| c.is_ascii_alphanumeric() || "_-:.".contains(c);
            let length = rest.find(|c| !of_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(length);
            // A sentence ends with a point that is no part of its last word.
            let bare = word.trim_end_matches(['.', ':']);
            calm.push_str(&self.word(bare));
            calm.push_str(&word[bare.len()..]);
            let gap = after.find(of_word).unwrap_or(after.len());
            calm.push_str(&after[..gap]);
            rest = &after[gap..];
        }
        match calm.char_indices().nth(MOST_CHARS) {
            Some((end, _)) => {
                format!("{}\n…", calm[..end].rsplit_once('\n').map_or(&calm[..end], |(whole, _)| whole))
            }
            None => calm,
        }
    }

    fn word(&mut self, word: &str) -> String {
        if let Some((_, known)) = self.met.iter().find(|(met, _)| met == word) {
            return known.clone();
        }
        if let Some(at) = dates::parse(word).filter(|_| word.len() == BEGIN.len()) {
            return dates::iso(self.time(at));
        }
        if let Some(at) = dates::parse(word).filter(|_| dates::is_date(word)) {
            let begin = dates::parse(BEGIN).unwrap();
            return dates::date(begin.plus_days(at.day() - self.began.day()));
        }
        if let Some((token, ending)) = word.rsplit_once('.').filter(|(token, _)| is_link(token)) {
            return format!("{}.{ending}", self.word(token));
        }
        let Some(calm) = self.named(word) else { return word.into() };
        self.met.push((word.into(), calm.clone()));
        calm
    }

    /// What a word becomes that is met for the first time, if it is one that differs from run to run.
    fn named(&self, word: &str) -> Option<String> {
        let digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        if let Some((prefix, id)) = word.split_once('_')
            && id.len() == ID.len()
        {
            return Some(format!("{prefix}_{}", self.next(&format!("{prefix}_"), ID)));
        }
        if let Some((prefix @ ("evt" | "dlv"), place)) = word.split_once('_')
            && place.len() == PLACE.len()
        {
            return Some(format!("{prefix}_{}", self.next(&format!("{prefix}_"), PLACE)));
        }
        if let Some((prefix @ ("sgp" | "sgs"), token)) = word.split_once('_') {
            return Some(format!("{prefix}_{}", "x".repeat(token.len())));
        }
        if word.len() == 19 && word.starts_with("89") && digits(word) {
            let before = self.met.iter().filter(|(met, _)| met.len() == 19 && digits(met)).count();
            let number = (ICCID + before as u64).to_string();
            return Some(format!("{number}{}", char::from(luhn_digit(&number))));
        }
        if word.len() == ORDER_NO.len() && word.starts_with("SG") {
            return Some(self.next("SG", ORDER_NO));
        }
        if word.len() == TX_HASH.len() && word.starts_with("0x") {
            return Some(self.next("0x", TX_HASH));
        }
        if word.len() == REQUEST_ID.len() && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(REQUEST_ID.into());
        }
        if word.len() == MATCHING_ID.len() && word.starts_with("SIM-") {
            return Some(self.next("SIM-", MATCHING_ID));
        }
        let as_long: String = ID.chars().cycle().take(word.len()).collect();
        is_link(word).then(|| self.next("", &as_long))
    }

    /// The usual example, with another last letter for each one of its kind.
    fn next(&self, kind: &str, usual: &str) -> String {
        let of_kind = |met: &str| if kind.is_empty() { is_link(met) } else { met.starts_with(kind) };
        let before = self.met.iter().filter(|(met, _)| of_kind(met)).count() as u8;
        let (head, last) = usual.split_at(usual.len() - 1);
        let letter = last.as_bytes()[0];
        let next = letter + before;
        // Small letters follow the capital ones.
        let gap = if letter.is_ascii_uppercase() && next > b'Z' { b'a' - b'Z' - 1 } else { 0 };
        format!("{head}{}", char::from(next + gap))
    }

    /// As many whole minutes after the calm beginning as it is after the true one.
    fn time(&self, at: Time) -> Time {
        let begin = dates::parse(BEGIN).unwrap();
        let passed = (at.micros() - self.began.micros()).div_euclid(MINUTE);
        Time::from_micros(begin.micros() + passed * MINUTE)
    }
}

/// A link's secret part.
fn is_link(word: &str) -> bool {
    word.len() > ID.len() && !word.starts_with("0x") && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
