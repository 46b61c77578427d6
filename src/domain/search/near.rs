//! Places that a text may mean when none was read in it: names farther away than a typing error, and names of which only
//! the beginning was written. They are proposed, never searched for.

use super::POPULAR;
use super::names;
use super::places::{GAZETTEER, LONGEST_NAME, Name, Place, letters, unit_like};
use super::text::words_of;
use crate::domain::near::edits;

/// How many names are proposed.
const MOST: usize = 3;
/// How many words of a text are looked at; a place is hardly ever named later.
const MOST_WORDS: usize = 8;
/// So many letters at least begin a name inside a text.
const BEGINNING: usize = 4;
/// The same for a text that is one word.
const LONE_BEGINNING: usize = 3;

/// Words of a request that are no place, however near one they are.
#[rustfmt::skip]
const ASKING: &str = "\
    about again airport also another anything area around available because before between bring buy cell cellular cities \
    city connection cost coverage days everywhere find from give going good have hello help here holidays instant just \
    like looking month months need network offer offers people phone place places please price prices provider regional \
    region service should show something somewhere speed that thanks their them then there these they this tourist town \
    unlimited using want week weeks what when where which will with without work worldwide would your";

/// Names that are near the text, the nearest first.
pub fn near(text: &str) -> Vec<&'static str> {
    let words = words_of(text);
    let is_alone = words.len() == 1;
    let telling: Vec<&str> = words.iter().map(String::as_str).filter(|word| is_telling(word)).collect();
    let together = telling.concat();
    let is_phrase = (2..=LONGEST_NAME).contains(&telling.len());
    let typed = telling.iter().copied().take(MOST_WORDS).chain(is_phrase.then_some(together.as_str()));
    let mut found: Vec<(usize, bool, usize, &'static str)> = Vec::new();
    for word in typed {
        let beginning = if is_alone { LONE_BEGINNING } else { BEGINNING };
        let known = GAZETTEER.names.iter().filter(|name| name.place != Place::Unsold);
        found.extend(known.filter_map(|name| {
            let called = name.place.name();
            Some((distance(word, name, beginning)?, !name.is_usual, popularity(called), called))
        }));
    }
    found.sort_unstable();
    let mut names: Vec<&'static str> = Vec::new();
    for (.., name) in found {
        if names.len() < MOST && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn is_telling(word: &str) -> bool {
    let listed = |words: &str| words.split(' ').any(|known| known == word);
    !(GAZETTEER.ordinary.contains(word) || listed(ASKING) || listed(names::BESIDE_US) || unit_like(word))
}

/// One edit more than a search forgives, two in long words.
fn proposed(letters: usize) -> usize {
    match letters {
        0..=3 => 0,
        4..=7 => 2,
        8..=11 => 3,
        _ => 4,
    }
}

/// How far a name is from a word; the beginning of one counts as an edit. People hardly ever mistype a first letter.
fn distance(word: &str, name: &Name, beginning: usize) -> Option<usize> {
    if word.chars().next() != name.joined.chars().next() {
        return None;
    }
    let length = word.chars().count();
    if length >= beginning && name.joined.starts_with(word) {
        return Some(1);
    }
    let most = proposed(length.min(name.length));
    let differ = (letters(word) ^ name.letters).count_ones() as usize;
    if most == 0 || length.abs_diff(name.length) > most || differ > 2 * most {
        return None;
    }
    edits(word, &name.joined, most)
}

fn popularity(name: &str) -> usize {
    POPULAR.iter().position(|popular| *popular == name).unwrap_or(POPULAR.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_proposed() {
        for (text, names) in [
            ("Jappaan", "Japan"),
            ("Jpnn", "Japan"),
            ("esim for Jappaan please", "Japan"),
            ("Swizterlnad", "Switzerland"),
            ("unitd arb emrites", "United Arab Emirates"),
            ("ger", "Germany"),
            ("Phil", "Philippines"),
            ("", ""),
            ("Atlantis", ""),
            ("asdfgh", ""),
            ("what is it", ""),
            ("show me plans", ""),
            ("10GB 30 days", ""),
            ("????", ""),
        ] {
            let first = near(text).first().copied().unwrap_or_default();
            assert_eq!(first, names, "{text}: {:?}", near(text));
        }
        assert_eq!(near("Slov"), ["Slovakia", "Slovenia"]);
        assert!(near("ma").is_empty() && near("mal").len() == MOST);
    }

    #[test]
    fn any_text_is_looked_at() {
        for text in ["x".repeat(200), "ab ".repeat(66), "日本国 ".repeat(50), "mala ".repeat(40)] {
            assert!(near(&text).len() <= MOST);
        }
    }
}
