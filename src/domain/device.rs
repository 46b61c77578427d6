//! Which devices take an eSIM, by name. The lists are those of the articles on devices: under one of three headings each
//! item names a line of devices in bold, then the devices of that line, then what else has to be known of them. An answer
//! is given for a name that is listed, and for no other: `iPhone 1` is not the beginning of `iPhone 13`. Whoever names only a
//! line or a maker is asked which of its devices is meant.

use std::collections::HashSet;

use super::near::{edits, forgiven};

/// The headings in small letters, and what holds for the names below them.
const HEADINGS: [(&str, Verdict); 3] = [
    ("devices that take an esim", Verdict::All),
    ("devices of which some take one", Verdict::Some),
    ("devices that take none", Verdict::None),
];
/// How many names are proposed.
const MOST_NEAR: usize = 6;
/// A shorter word begins too many names.
const BEGINNING: usize = 4;
/// Words in a name that tell nothing of the device.
const UNTOLD: &[&str] = &["generation", "gen", "inch"];
/// Words that people add to a name. They count only where they are part of a listed one: there is a Z Flip and a Z Flip 5G.
const ADDED: &[&str] = &["5g", "4g", "lte", "dual", "sim", "esim", "cellular", "wifi"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    All,
    Some,
    None,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Listed {
        name: String,
        verdict: Verdict,
        /// What else the article says of it.
        note: String,
    },
    /// It names a line of devices, or their maker. These are its devices, the newest of each list first.
    Several { names: Vec<String> },
    /// No article lists it, or several devices are called so. These names are near.
    Unknown { near: Vec<String> },
}

#[derive(Default)]
pub struct Devices {
    lines: Vec<Line>,
}

/// The devices of one item of a list.
struct Line {
    verdict: Verdict,
    /// `Apple iPhone`
    title: String,
    /// The words of the title, the longest first. A name may be said with any of them.
    words: Vec<String>,
    /// The last of them in the title: by itself it may name a device, as `iPad` does.
    last: String,
    devices: Vec<Device>,
    note: String,
}

struct Device {
    /// As the article writes it.
    written: String,
    /// Without the words of the line; empty where they are the whole name.
    own: String,
}

impl Devices {
    /// The lists of these articles.
    pub fn read<'a>(articles: impl Iterator<Item = &'a str>) -> Devices {
        let mut devices = Devices::default();
        for article in articles {
            let mut verdict = None;
            for block in blocks(article) {
                match (block.strip_prefix("## "), verdict) {
                    (Some(heading), _) => verdict = verdict_of(heading),
                    (None, Some(verdict)) => devices.lines.extend(Line::read(verdict, &block)),
                    (None, None) => {}
                }
            }
        }
        devices
    }

    pub fn find(&self, typed: &str) -> Answer {
        let words = words(typed);
        for name in [joined(&words), joined(&essential(&words))] {
            let mut found: Vec<(usize, &Line, &Device)> =
                self.lines.iter().flat_map(|line| line.devices_called(&name)).collect();
            let most = found.iter().map(|(said, ..)| *said).max().unwrap_or_default();
            found.retain(|(said, ..)| *said == most);
            if let [(_, line, device), others @ ..] = &found[..] {
                if others.iter().any(|(_, other, _)| other.verdict != line.verdict) {
                    return Answer::Unknown {
                        near: few(found.iter().map(|(_, line, device)| line.full(device))),
                    };
                }
                let (verdict, note) = (line.verdict, line.note.clone());
                return Answer::Listed { name: line.full(device), verdict, note };
            }
        }
        let name = joined(&essential(&words));
        match self.line_of(&name) {
            names if names.is_empty() => Answer::Unknown { near: self.near(&name) },
            names => Answer::Several { names },
        }
    }

    /// The devices of the lines that a name leaves nothing of.
    fn line_of(&self, name: &str) -> Vec<String> {
        let is_meant = |line: &&Line| !name.is_empty() && line.own_part(name).0.is_empty();
        let lines = self.lines.iter().filter(is_meant);
        once_each(lines.flat_map(|line| line.devices.iter().rev().map(|device| line.full(device)))).collect()
    }

    /// Names that may be meant, the nearest first.
    fn near(&self, name: &str) -> Vec<String> {
        let mut found: Vec<(usize, String)> = Vec::new();
        for line in &self.lines {
            let title = joined(&words(&line.title));
            for device in &line.devices {
                let spelt = [
                    device.own.clone(),
                    format!("{}{}", line.last, device.own),
                    format!("{title}{}", device.own),
                ];
                let far = spelt.iter().filter_map(|spelt| distance(name, spelt)).min();
                found.extend(far.map(|far| (far, line.full(device))));
            }
        }
        found.sort_by_key(|(far, _)| *far);
        few(found.into_iter().map(|(_, name)| name))
    }
}

/// The first names, each once.
fn few(names: impl Iterator<Item = String>) -> Vec<String> {
    once_each(names).take(MOST_NEAR).collect()
}

fn once_each(names: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut seen = HashSet::new();
    names.filter(move |name| seen.insert(name.clone()))
}

impl Line {
    /// `- **Apple iPhone**: XR, XS. Those from mainland China have none.`
    fn read(verdict: Verdict, item: &str) -> Option<Line> {
        let (title, rest) = item.strip_prefix("- **")?.split_once("**:")?;
        let (names, note) = rest.trim().split_once(". ").unwrap_or((rest.trim(), ""));
        let title_words = words(title);
        let last = title_words.last()?.clone();
        let mut line = Line {
            verdict,
            title: title.trim().to_string(),
            words: title_words,
            last,
            devices: Vec::new(),
            note: note.trim().to_string(),
        };
        line.words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        for name in names.trim_end_matches('.').split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let own = line.own_part(&joined(&words(name))).0;
            line.devices.push(Device { written: name.to_string(), own });
        }
        Some(line)
    }

    /// A name without the words of this line before it, how many letters these have, and whether the last one is among them.
    fn own_part(&self, name: &str) -> (String, usize, bool) {
        let (mut rest, mut has_last) = (name, false);
        let mut left: Vec<&String> = self.words.iter().collect();
        while let Some(at) = left.iter().position(|word| rest.starts_with(word.as_str())) {
            let word = left.remove(at);
            has_last |= *word == self.last;
            rest = &rest[word.len()..];
        }
        (rest.to_string(), name.len() - rest.len(), has_last)
    }

    /// The devices of this name, each with how much of the line the name says.
    fn devices_called<'a>(&'a self, name: &str) -> impl Iterator<Item = (usize, &'a Line, &'a Device)> {
        let (own, said, has_last) = self.own_part(name);
        let is_said = if own.is_empty() { has_last } else { said > 0 };
        let fits = move |device: &&Device| is_said && device.own == own;
        self.devices.iter().filter(fits).map(move |device| (said, self, device))
    }

    fn full(&self, device: &Device) -> String {
        if device.own.is_empty() { self.title.clone() } else { format!("{} {}", self.title, device.written) }
    }
}

/// How far a listed name is from what was typed, if it is near.
fn distance(typed: &str, listed: &str) -> Option<usize> {
    if typed.is_empty() || listed.is_empty() {
        return None;
    }
    if typed == listed {
        return Some(0);
    }
    let length = typed.chars().count();
    // All that begin alike are equally near, so they keep the order of the article.
    if length >= BEGINNING && listed.starts_with(typed) {
        return Some(1);
    }
    edits(typed, listed, forgiven(length))
}

fn verdict_of(heading: &str) -> Option<Verdict> {
    let heading = heading.trim().to_lowercase();
    HEADINGS.iter().find(|(known, _)| *known == heading).map(|(_, verdict)| *verdict)
}

/// Headings and items of lists, each in one line.
fn blocks(markdown: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in markdown.lines() {
        let begins = line.starts_with("- ") || line.starts_with("* ") || line.starts_with('#');
        if begins {
            blocks.push(line.replacen("* ", "- ", usize::from(line.starts_with("* "))));
            is_open = !line.starts_with('#');
        } else if line.trim().is_empty() {
            is_open = false;
        } else if let Some(last) = blocks.last_mut().filter(|_| is_open) {
            last.push(' ');
            last.push_str(line.trim());
        }
    }
    blocks
}

/// In small letters: `+` is a word, `2nd` is the number, and what tells nothing is left out.
fn words(name: &str) -> Vec<String> {
    let name = name.to_lowercase().replace('+', " plus ");
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(plain_number).filter(|word| !UNTOLD.contains(word)).map(String::from).collect()
}

fn plain_number(word: &str) -> &str {
    let number = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let is_ordinal = !number.is_empty() && ["st", "nd", "rd", "th"].contains(&&word[number.len()..]);
    if is_ordinal && number.bytes().all(|byte| byte.is_ascii_digit()) { number } else { word }
}

/// Without spaces, because people write `S 20` and `iphone13`. Two numbers stay two: `12.9` is not `129`.
fn joined(words: &[String]) -> String {
    let mut name = String::new();
    for word in words {
        let meets = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        if meets(name.chars().last()) && meets(word.chars().next()) {
            name.push('.');
        }
        name.push_str(word);
    }
    name
}

/// Without what people add to a name: storage, and the words for what any phone has.
fn essential(words: &[String]) -> Vec<String> {
    let is_unit = |word: &str| ["gb", "tb"].contains(&word);
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_size = |word: &str| {
        word.split_at_checked(word.len().saturating_sub(2))
            .is_some_and(|(number, unit)| is_number(number) && is_unit(unit))
    };
    let is_added = |word: &str| is_unit(word) || is_size(word) || ADDED.contains(&word);
    let mut kept: Vec<String> = Vec::new();
    for word in words {
        if is_unit(word) && kept.last().is_some_and(|last| is_number(last)) {
            kept.pop();
        } else if !is_added(word) {
            kept.push(word.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests;
