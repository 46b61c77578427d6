//! Places in typed text: first names and groups, the longest phrase at each point; then the same with typing errors;
//! then codes. A word that is also a country code counts only where the text shows that a code is meant: `it` alone,
//! `us and canada`, `a trip to IT`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::groups::{self, CountrySet, Group};
use super::names;
use super::text::{Token, words_of};
use crate::domain::country::{self, Country};
use crate::domain::near::{edits, forgiven};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Country(&'static Country),
    Group(&'static Group),
    World,
    /// Known by name, but sold by nobody.
    Unsold,
}

impl Place {
    /// The world gives none: it has no list.
    pub fn countries(&self) -> CountrySet {
        match self {
            Place::Country(country) => CountrySet::of([country.code]),
            Place::Group(group) => group.countries(),
            Place::World | Place::Unsold => CountrySet::default(),
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Place::Country(country) => country.name,
            Place::Group(group) => group.name,
            Place::World => "World",
            Place::Unsold => "Unsold",
        }
    }
}

/// A name as it is compared with misspelt ones.
pub(super) struct Name {
    words: Vec<String>,
    pub joined: String,
    pub length: usize,
    pub letters: u32,
    /// Whether this is the usual name; it ranks before other names.
    pub is_usual: bool,
    pub place: Place,
}

pub(super) struct Gazetteer {
    /// Names as words with spaces between them, and without spaces.
    exact: HashMap<String, Place>,
    /// Every name, shortest first.
    pub names: Vec<Name>,
    /// By number of words: the indexes in `names`, in the same order.
    by_words: [Vec<usize>; LONGEST_NAME + 1],
    /// Every word of a name, and every name as one word. No other word of a text is part of a name.
    spellings: HashSet<String>,
    /// The same words, shortest first.
    by_length: Vec<String>,
    /// The letters of each of `by_length`, close together: a search compares hundreds of them with every unknown word.
    their_letters: Vec<u32>,
    /// By length: how many of `by_length` are shorter.
    shorter_than: Vec<usize>,
    codes: HashMap<String, Place>,
    prose_codes: HashSet<&'static str>,
    abbreviations: HashSet<&'static str>,
    pub ordinary: HashSet<&'static str>,
    ordinary_places: HashSet<&'static str>,
}

pub(super) static GAZETTEER: LazyLock<Gazetteer> = LazyLock::new(Gazetteer::collect);
/// No name has more words than this.
pub(super) const LONGEST_NAME: usize = 6;

/// Which letters occur. An edit changes at most two of them, so this rules out most names at once.
pub(super) fn letters(word: &str) -> u32 {
    word.bytes().fold(0, |seen, b| seen | 1 << (if b.is_ascii_lowercase() { b - b'a' } else { 26 }))
}

fn misspelt(typed: &str, name: &str) -> Option<usize> {
    let shorter = typed.chars().count().min(name.chars().count());
    edits(typed, name, forgiven(shorter))
}

impl Gazetteer {
    fn collect() -> Gazetteer {
        let listed = |text: &'static str| text.split_whitespace().collect::<HashSet<_>>();
        let mut gazetteer = Gazetteer {
            exact: HashMap::new(),
            names: Vec::new(),
            by_words: Default::default(),
            spellings: HashSet::new(),
            by_length: Vec::new(),
            their_letters: Vec::new(),
            shorter_than: Vec::new(),
            codes: HashMap::new(),
            prose_codes: listed(names::PROSE_CODES),
            abbreviations: listed(names::ABBREVIATIONS),
            ordinary: listed(names::ORDINARY),
            ordinary_places: listed(names::ORDINARY_PLACES),
        };
        for (country, long_code) in country::ALL.iter().zip(names::LONG_CODES.split_whitespace()) {
            let place = Place::Country(country);
            gazetteer.codes.insert(country.code.to_lowercase(), place);
            gazetteer.codes.insert(long_code.to_lowercase(), place);
            gazetteer.add(country.name, country.aliases, place);
        }
        for (code, more) in names::MORE {
            if let Some(country) = country::by_code(code) {
                more.iter().for_each(|name| gazetteer.add_name(name, false, Place::Country(country)));
            }
        }
        for group in groups::ALL {
            gazetteer.add(group.name, group.aliases, Place::Group(group));
        }
        groups::WORLD.iter().for_each(|name| gazetteer.add_name(name, true, Place::World));
        groups::UNSOLD.iter().for_each(|name| gazetteer.add_name(name, true, Place::Unsold));
        gazetteer.names.sort_by_key(|name| name.length);
        for (place, name) in gazetteer.names.iter().enumerate() {
            gazetteer.by_words[name.words.len()].push(place);
        }
        let length = |text: &String| text.chars().count();
        let mut spellings: Vec<String> = gazetteer.spellings.iter().cloned().collect();
        spellings.sort_unstable_by_key(length);
        let longest = spellings.last().map_or(0, length);
        gazetteer.shorter_than =
            (0..longest + 2).map(|most| spellings.partition_point(|text| length(text) < most)).collect();
        gazetteer.their_letters = spellings.iter().map(|text| letters(text)).collect();
        gazetteer.by_length = spellings;
        gazetteer
    }

    fn add(&mut self, name: &str, aliases: &[&str], place: Place) {
        self.add_name(name, true, place);
        aliases.iter().for_each(|alias| self.add_name(alias, false, place));
    }

    fn add_name(&mut self, name: &str, is_usual: bool, place: Place) {
        let words = words_of(name);
        let joined = words.concat();
        self.exact.entry(words.join(" ")).or_insert(place);
        self.exact.entry(joined.clone()).or_insert(place);
        self.spellings.extend(words.iter().chain([&joined]).cloned());
        // Four capitals are an abbreviation; "mean" is not a misspelt "MENA".
        let is_abbreviation = name.chars().all(char::is_uppercase);
        let length = joined.chars().count();
        if length > 3 && !is_abbreviation {
            self.names.push(Name { letters: letters(&joined), words, joined, length, is_usual, place });
        }
    }

    /// Whether a word can be part of a misspelt name. Hardly any can, so the check is fast: one look-up for words that
    /// are spelt right, length and letters for the others.
    fn resembles_a_name(&self, word: &str) -> bool {
        if self.spellings.contains(word) {
            return true;
        }
        let length = word.chars().count();
        let most = forgiven(length);
        if most == 0 || self.ordinary.contains(word) {
            return false;
        }
        let seen = letters(word);
        let shorter_than =
            |letters: usize| self.shorter_than.get(letters).copied().unwrap_or(self.by_length.len());
        let range = shorter_than(length - most)..shorter_than(length + most + 1);
        let near = |known: &u32| (known ^ seen).count_ones() as usize <= 2 * most;
        let known = self.their_letters[range.clone()].iter().zip(&self.by_length[range]);
        known.filter(|(letters, _)| near(letters)).any(|(_, known)| misspelt(word, known).is_some())
    }

    /// The place whose name is nearest to these words, if they can be a misspelling of it.
    fn nearest(&'static self, typed: &[&str]) -> Option<Place> {
        let length: usize = typed.iter().map(|word| word.chars().count()).sum();
        let most = forgiven(length);
        if most == 0 {
            return None;
        }
        let seen = typed.iter().fold(0, |seen, word| seen | letters(word));
        let lengths = length - most..length + most + 1;
        let is_near = |name: &&Name| (name.letters ^ seen).count_ones() as usize <= 2 * most;
        // People leave letters out more often than they add them: of two equally near names the longer wins.
        let rank = |name: &'static Name, edits| {
            ((edits, !name.is_usual, usize::MAX - name.joined.len(), &name.joined), name.place)
        };
        let nearest = match typed {
            [word] => {
                let start = self.names.partition_point(|name| name.length < lengths.start);
                let end = self.names.partition_point(|name| name.length < lengths.end);
                let near = self.names[start..end].iter().filter(is_near);
                near.filter_map(|name| Some(rank(name, misspelt(word, &name.joined)?)))
                    .min_by_key(|found| found.0)
            }
            // Word by word: "north korea" is two edits from "south korea", but "north" is not "south".
            _ => {
                let near = self.by_words[typed.len()].iter().map(|place| &self.names[*place]);
                let near = near.filter(|name| lengths.contains(&name.length)).filter(is_near);
                near.filter_map(|name| Some(rank(name, self.misspelt_words(typed, name, most)?)))
                    .min_by_key(|found| found.0)
            }
        };
        nearest.map(|(_, place)| place)
    }

    fn misspelt_words(&self, typed: &[&str], name: &Name, most: usize) -> Option<usize> {
        let each = typed.iter().zip(&name.words).map(|(typed, word)| match *typed == word {
            true => Some(0),
            false if self.ordinary.contains(typed) => None,
            false => misspelt(typed, word),
        });
        each.sum::<Option<usize>>().filter(|sum| *sum <= most)
    }
}

/// The text while its places are being read.
struct Reader<'a> {
    gazetteer: &'static Gazetteer,
    tokens: &'a [Token],
    used: &'a mut [bool],
    found: Vec<(usize, Place)>,
}

/// Reads every place, in the order of the text, each once. `used` marks tokens that mean something else.
pub fn read(tokens: &[Token], used: &mut [bool]) -> Vec<Place> {
    let mut reader = Reader { gazetteer: &GAZETTEER, tokens, used, found: Vec::new() };
    reader.names(|gazetteer, word| gazetteer.spellings.contains(word), Reader::exact_name);
    reader.names(Gazetteer::resembles_a_name, Reader::misspelt_name);
    reader.codes();
    reader.found.sort_by_key(|(at, _)| *at);
    let mut places: Vec<Place> = Vec::new();
    for (_, place) in reader.found {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    // "The best in the world for Japan" is about Japan.
    if places.iter().any(|place| *place != Place::World) {
        places.retain(|place| *place != Place::World);
    }
    places
}

impl<'a> Reader<'a> {
    fn free(&self, at: usize) -> Option<&'a str> {
        match &self.tokens.get(at)? {
            Token::Word(word) if !self.used[at] => Some(&word.text),
            _ => None,
        }
    }

    /// Reads names that begin anywhere, the longest at each point. Only words that pass `may_belong` are looked at.
    fn names(
        &mut self,
        may_belong: impl Fn(&Gazetteer, &str) -> bool,
        look: impl Fn(&Reader<'a>, &[&str]) -> Option<Place>,
    ) {
        let words: Vec<Option<&str>> = (0..self.tokens.len())
            .map(|at| self.free(at).filter(|word| may_belong(self.gazetteer, word)))
            .collect();
        let mut at = 0;
        while at < words.len() {
            let window: Vec<&str> = words[at..].iter().take(LONGEST_NAME).map_while(|word| *word).collect();
            let match_here =
                (1..=window.len()).rev().find_map(|length| Some((length, look(self, &window[..length])?)));
            match match_here {
                Some((length, place)) => {
                    self.found.push((at, place));
                    self.used[at..at + length].fill(true);
                    at += length;
                }
                None => at += 1,
            }
        }
    }

    fn exact_name(&self, words: &[&str]) -> Option<Place> {
        match words {
            [word] if self.is_prose(word) => None,
            _ => self.gazetteer.exact.get(&words.join(" ")).copied(),
        }
    }

    fn misspelt_name(&self, words: &[&str]) -> Option<Place> {
        match words {
            [word] if self.is_prose(word) || self.gazetteer.ordinary.contains(word) || unit_like(word) => {
                None
            }
            _ => self.gazetteer.nearest(words),
        }
    }

    fn codes(&mut self) {
        let meant: Vec<(usize, Place)> = (0..self.tokens.len())
            .filter_map(|at| {
                let place = self.code_or_ordinary(self.free(at)?)?;
                self.is_meant(at).then_some((at, place))
            })
            .collect();
        meant.iter().for_each(|(at, _)| self.used[*at] = true);
        self.found.extend(meant);
    }

    fn code_or_ordinary(&self, word: &str) -> Option<Place> {
        match self.gazetteer.ordinary_places.contains(word) {
            true => self.gazetteer.exact.get(word).copied(),
            false => self.gazetteer.codes.get(word).copied(),
        }
    }

    /// Words that mean something else in most texts.
    fn is_prose(&self, word: &str) -> bool {
        self.gazetteer.abbreviations.contains(word)
            || self.gazetteer.prose_codes.contains(word)
            || self.gazetteer.ordinary_places.contains(word)
    }

    /// Whether a free word that may be a place is meant as one.
    fn is_meant(&self, at: usize) -> bool {
        let Token::Word(word) = &self.tokens[at] else { return false };
        if self.is_border(at) {
            return false;
        }
        let text = word.text.as_str();
        let is_abbreviation = self.gazetteer.abbreviations.contains(text);
        if !self.is_prose(text) {
            // "the 4th" is not Thailand.
            return at == 0 || !matches!(self.tokens[at - 1], Token::Number(_));
        }
        (word.is_shouted && !is_abbreviation)
            || self.is_listed(at)
            || (text == "us" && self.is_country_us(at))
    }

    /// Whether the word stands alone between commas and "and"s, and all other words are places or stand alone too.
    fn is_listed(&self, at: usize) -> bool {
        let (mut words, mut free, mut ours) = (0, 0, false);
        for place in 0..=self.tokens.len() {
            if place == self.tokens.len() || self.is_border(place) {
                if free > 0 && words > 1 || (ours && words != 1) {
                    return false;
                }
                (words, free, ours) = (0, 0, false);
                continue;
            }
            ours |= place == at;
            if let Token::Word(word) = &self.tokens[place] {
                let is_free = !self.used[place];
                let is_place = self.found.iter().any(|(at, _)| *at == place);
                words += usize::from(is_free || is_place);
                free += usize::from(is_free);
                if is_free && self.code_or_ordinary(&word.text).is_none() {
                    return false;
                }
            }
        }
        true
    }

    fn is_border(&self, at: usize) -> bool {
        match self.tokens.get(at) {
            Some(Token::Break) => true,
            Some(Token::Word(word)) => {
                !self.used[at]
                    && matches!(word.text.as_str(), "and" | "or" | "plus" | "y" | "e" | "und" | "then")
            }
            _ => false,
        }
    }

    /// "esim for us", "us and canada": "us" is a country when no other word suggests a pronoun.
    fn is_country_us(&self, at: usize) -> bool {
        let others = (0..self.tokens.len()).filter(|other| *other != at && !self.is_border(*other));
        let mut words = others.filter_map(|other| self.free(other));
        let beside = |word: &str| names::BESIDE_US.split_whitespace().any(|known| known == word);
        let is_joined =
            self.is_border(at + 1) || at.checked_sub(1).is_some_and(|before| self.is_border(before));
        words.all(beside) && (self.found.is_empty() || is_joined)
    }
}

/// A unit without its number, as in "how many gigs", is not a misspelt place.
pub(super) fn unit_like(word: &str) -> bool {
    matches!(
        word,
        "gigs" | "giga" | "megs" | "days" | "week" | "weeks" | "month" | "months" | "year" | "dollars"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_codes_belong_to_the_countries() {
        let codes: Vec<&str> = names::LONG_CODES.split_whitespace().collect();
        assert_eq!(codes.len(), country::ALL.len());
        assert_eq!(codes.iter().collect::<HashSet<_>>().len(), codes.len());
        for (code, long) in [
            ("DE", "DEU"),
            ("JP", "JPN"),
            ("MX", "MEX"),
            ("KM", "COM"),
            ("ZW", "ZWE"),
            ("SE", "SWE"),
            ("PL", "POL"),
        ] {
            let at = country::ALL.iter().position(|country| country.code == code).unwrap();
            assert_eq!(codes[at], long);
        }
    }

    /// The first owner of a name would silently keep it.
    #[test]
    fn no_name_is_given_twice() {
        let mut owners: HashMap<String, Place> = HashMap::new();
        for name in &GAZETTEER.names {
            let owner = owners.entry(name.words.join(" ")).or_insert(name.place);
            assert_eq!(*owner, name.place, "{}", name.joined);
            assert!(name.words.len() <= LONGEST_NAME, "{}", name.joined);
            assert_eq!(GAZETTEER.exact.get(&name.joined), Some(&name.place), "{}", name.joined);
        }
        for (code, _) in names::MORE {
            assert!(country::by_code(code).is_some(), "{code}");
        }
    }

    #[test]
    fn ordinary_words_are_no_names() {
        for word in &GAZETTEER.ordinary {
            assert!(!GAZETTEER.exact.contains_key(*word), "{word}");
        }
        for word in &GAZETTEER.ordinary_places {
            assert!(GAZETTEER.exact.contains_key(*word), "{word}");
        }
    }
}
