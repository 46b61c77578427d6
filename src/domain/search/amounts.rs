//! Sizes, times and prices in typed text: `10GB`, `two weeks`, `under $20`. Recognised words are marked as used, so
//! that they are not taken for a country: the `gb` of `10 gb` is not Great Britain.

use super::Asked;
use super::text::{MILLION, Token};
use crate::domain::money::Usd;

const MB_PER_GB: i64 = 1024;
/// More than anybody sells; asking for it finds the largest first.
pub const UNLIMITED_MB: i64 = 1024 * MB_PER_GB;

/// What a word after a number counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// In megabytes.
    Data(i64),
    Days(i64),
    Dollars,
    /// A currency that we do not sell in; its amounts say nothing about ours.
    OtherMoney,
}

fn unit(word: &str) -> Option<Unit> {
    Some(match word {
        "gb" | "gbs" | "gig" | "gigs" | "giga" | "gigas" | "gigabyte" | "gigabytes" | "gib" => {
            Unit::Data(MB_PER_GB)
        }
        "mb" | "mbs" | "meg" | "megs" | "mega" | "megas" | "megabyte" | "megabytes" | "mib" => Unit::Data(1),
        "tb" | "terabyte" | "terabytes" => Unit::Data(MB_PER_GB * 1024),
        "d" | "day" | "days" | "night" | "nights" | "dia" | "dias" | "jour" | "jours" | "tag" | "tage"
        | "tagen" | "giorno" | "giorni" => Unit::Days(1),
        "w" | "wk" | "wks" | "week" | "weeks" | "semana" | "semanas" | "semaine" | "semaines" | "woche"
        | "wochen" | "settimana" | "settimane" => Unit::Days(7),
        "fortnight" | "fortnights" => Unit::Days(14),
        "mo" | "mth" | "mths" | "month" | "months" | "mes" | "meses" | "mois" | "monat" | "monate"
        | "mese" | "mesi" => Unit::Days(30),
        "year" | "years" | "yr" | "yrs" => Unit::Days(365),
        "usd" | "usdt" | "usdc" | "dollar" | "dollars" | "buck" | "bucks" => Unit::Dollars,
        "eur" | "euro" | "euros" | "gbp" | "pound" | "pounds" | "yen" | "jpy" | "chf" | "aud" | "cad"
        | "inr" | "rupees" | "cny" | "yuan" | "krw" | "won" | "baht" => Unit::OtherMoney,
        _ => return None,
    })
}

fn small_number(word: &str) -> Option<i64> {
    const WORDS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    if matches!(word, "a" | "an" | "un" | "una" | "une" | "ein" | "eine") {
        return Some(1);
    }
    let place = WORDS.iter().position(|known| *known == word)?;
    Some(place as i64 + 1)
}

/// How a price bounds the search: the words before it decide.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// `under`: less than that.
    Under,
    /// `up to`, or no word at all: that much is fine.
    UpTo,
    /// `more than`: gives no upper limit.
    AtLeast,
}

/// The text while its amounts are being read.
struct Reader<'a> {
    tokens: &'a [Token],
    used: &'a mut [bool],
    found: Asked,
    daily_mb: Option<i64>,
}

/// Reads every amount, and no place, and marks its tokens as used.
pub fn read(tokens: &[Token], used: &mut [bool]) -> Asked {
    let mut reader = Reader { tokens, used, found: Asked::default(), daily_mb: None };
    let mut at = 0;
    while at < tokens.len() {
        at += reader.amount(at).max(1);
    }
    reader.wish();
    // "1 GB a day for 7 days" is 7 GB.
    if let Some(daily) = reader.daily_mb {
        reader.found.data_mb = Some(daily.saturating_mul(reader.found.days.unwrap_or(1)));
    }
    reader.found
}

impl Reader<'_> {
    fn word(&self, at: usize) -> &str {
        match self.tokens.get(at) {
            Some(Token::Word(word)) => &word.text,
            _ => "",
        }
    }

    fn is_dollar(&self, at: usize) -> bool {
        matches!(self.tokens.get(at), Some(Token::Sign('$')))
    }

    fn is_break(&self, at: usize) -> bool {
        matches!(self.tokens.get(at), Some(Token::Break))
    }

    fn mark(&mut self, from: usize, to: usize) {
        let last = self.used.len().min(to);
        self.used[from..last].fill(true);
    }

    /// Finds words for a low price that belong to no amount; the `budget` of `a budget of $20` is a limit.
    fn wish(&mut self) {
        for at in 0..self.tokens.len() {
            let words = match (self.word(at), self.word(at + 1)) {
                _ if self.used[at] => 0,
                ("low" | "lowest" | "best", "price" | "prices" | "cost") | ("least", "expensive") => 2,
                (
                    "cheap" | "cheaper" | "cheapest" | "budget" | "affordable" | "inexpensive" | "barato"
                    | "barata" | "billig" | "gunstig",
                    _,
                ) => 1,
                _ => 0,
            };
            if words > 0 {
                self.found.cheapest = true;
                self.mark(at, at + words);
            }
        }
    }

    /// Reads the amount that begins here, if one does, and returns how many tokens it took.
    fn amount(&mut self, at: usize) -> usize {
        if matches!(self.word(at), "unlimited" | "unlimitted" | "ilimitado" | "illimite" | "unbegrenzt") {
            self.found.data_mb = Some(UNLIMITED_MB);
            self.mark(at, at + 1);
            return 1;
        }
        // "US$ 20", "$20", "USD 20".
        let prefix = match self.word(at) {
            "us" if self.is_dollar(at + 1) => 2,
            "usd" | "usdt" | "usdc" => 1,
            _ => usize::from(self.is_dollar(at)),
        };
        if prefix > 0 {
            return match self.tokens.get(at + prefix) {
                Some(Token::Number(number)) => self.price(*number, at, at + prefix + 1),
                _ => {
                    self.mark(at, at + prefix);
                    prefix
                }
            };
        }
        let number = match self.tokens.get(at) {
            Some(Token::Number(number)) => *number,
            Some(Token::Word(word)) => match small_number(&word.text) {
                Some(number) => number * MILLION,
                None => return 0,
            },
            _ => return 0,
        };
        self.counted(number, at)
    }

    /// Reads a number and its unit.
    fn counted(&mut self, number: i64, at: usize) -> usize {
        let is_digits = matches!(self.tokens[at], Token::Number(_));
        match unit(self.word(at + 1)) {
            Some(Unit::Data(megabytes)) => {
                let mb = number * megabytes / MILLION;
                let end = at + 2 + self.per_day(at + 2);
                if end > at + 2 {
                    self.daily_mb = Some(mb);
                }
                self.found.data_mb = Some(mb).filter(|mb| *mb > 0).or(self.found.data_mb);
                self.mark(at, end);
                end - at
            }
            Some(Unit::Days(days)) => {
                self.found.days = Some((number * days + MILLION - 1) / MILLION).filter(|days| *days > 0);
                self.mark(at, at + 2);
                2
            }
            Some(Unit::Dollars) => self.price(number, at, at + 2),
            Some(Unit::OtherMoney) => {
                self.mark(at, at + 2);
                2
            }
            None if self.is_dollar(at + 1) => self.price(number, at, at + 2),
            None if is_digits => {
                // "under 20" can only be a price; any other bare number says nothing.
                let (_, words) = self.bound(at);
                let is_money = matches!(self.tokens.get(at + 1), Some(Token::Sign(_)));
                if words > 0 && !is_money { self.price(number, at, at + 1) } else { 0 }
            }
            None => 0,
        }
    }

    /// How many tokens say "per day" here.
    fn per_day(&self, at: usize) -> usize {
        let is_day = |at| matches!(self.word(at), "day" | "d" | "dia" | "jour" | "tag");
        match self.word(at) {
            "daily" => 1,
            "per" | "a" | "each" | "every" if is_day(at + 1) => 2,
            _ if self.is_break(at) && is_day(at + 1) => 2,
            _ => 0,
        }
    }

    fn price(&mut self, number: i64, from: usize, to: usize) -> usize {
        let (bound, words) = self.bound(from);
        let mut end = to + usize::from(matches!(unit(self.word(to)), Some(Unit::Dollars)));
        // "$2 per GB" is a rate, not a price.
        let divides = matches!(self.word(end), "per" | "a") || self.is_break(end);
        if divides && matches!(unit(self.word(end + 1)), Some(Unit::Data(_) | Unit::Days(_))) {
            end += 2;
        } else {
            let most = match bound {
                Bound::Under => Some(number - 1),
                Bound::UpTo => Some(number),
                Bound::AtLeast => None,
            };
            // Of "$5 to $10" the larger is the limit.
            self.found.most = most.map(Usd::from_micros).max(self.found.most);
        }
        self.mark(from - words, end);
        end - from
    }

    /// The bound that the words before a price set, and how many words they are.
    fn bound(&self, at: usize) -> (Bound, usize) {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| self.word(at));
        let sign = at.checked_sub(1).and_then(|at| match self.tokens.get(at) {
            Some(Token::Sign(sign)) => Some(*sign),
            _ => None,
        });
        match (before(2), before(1)) {
            ("less" | "cheaper" | "lower", "than") => (Bound::Under, 2),
            ("more" | "higher", "than") | ("at", "least") => {
                let negated = before(3) == "no" || before(3) == "not";
                if negated { (Bound::UpTo, 3) } else { (Bound::AtLeast, 2) }
            }
            ("up", "to") | ("at", "most") | ("budget", "of" | "is") => (Bound::UpTo, 2),
            (_, "under" | "below") => (Bound::Under, 1),
            (_, "max" | "maximum" | "within" | "upto" | "budget") => (Bound::UpTo, 1),
            (_, "over" | "above" | "min" | "minimum" | "from") => (Bound::AtLeast, 1),
            _ => match sign {
                Some('<') => (Bound::Under, 1),
                Some('≤') => (Bound::UpTo, 1),
                Some('>' | '≥') => (Bound::AtLeast, 1),
                _ => (Bound::UpTo, 0),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::tokens;
    use super::*;

    /// Megabytes, days and micro-dollars, 0 for none, and the words that are left over.
    fn shown(text: &str) -> (i64, i64, i64, String) {
        let tokens = tokens(text);
        let mut used = vec![false; tokens.len()];
        let found = read(&tokens, &mut used);
        let left = tokens.iter().zip(&used).filter_map(|(token, used)| match token {
            Token::Word(word) if !used => Some(word.text.as_str()),
            _ => None,
        });
        let left = left.collect::<Vec<_>>().join(" ");
        let most = found.most.map_or(0, Usd::micros);
        (found.data_mb.unwrap_or(0), found.days.unwrap_or(0), most, left)
    }

    #[test]
    fn amounts_are_found_in_text() {
        for (text, mb, days, micros, left) in [
            ("Spain 10GB 30 days", 10_240, 30, 0, "spain"),
            ("spain 10 gigs, 30d", 10_240, 30, 0, "spain"),
            ("500MB", 500, 0, 0, ""),
            ("1.5 GB", 1536, 0, 0, ""),
            ("0,5gb", 512, 0, 0, ""),
            ("1 month in peru", 0, 30, 0, "in peru"),
            ("2 weeks", 0, 14, 0, ""),
            ("two weeks", 0, 14, 0, ""),
            ("a week", 0, 7, 0, ""),
            ("10-day trip", 0, 10, 0, "trip"),
            ("unlimited", UNLIMITED_MB, 0, 0, ""),
            ("1GB per day 7 days", 7168, 7, 0, ""),
            ("1gb/day for 5 days", 5120, 5, 0, "for"),
            ("2gb daily", 2048, 0, 0, ""),
            ("under $20", 0, 0, 19_999_999, ""),
            ("less than 5 usd", 0, 0, 4_999_999, ""),
            ("max 10 dollars", 0, 0, 10_000_000, ""),
            ("<$20", 0, 0, 19_999_999, ""),
            ("under 20", 0, 0, 19_999_999, ""),
            ("under 20 gb", 20_480, 0, 0, "under"),
            ("$12.50", 0, 0, 12_500_000, ""),
            ("US$8", 0, 0, 8_000_000, ""),
            ("no more than 9 USD", 0, 0, 9_000_000, ""),
            ("more than $5", 0, 0, 0, ""),
            ("from $5 to $10", 0, 0, 10_000_000, "to"),
            ("15 bucks", 0, 0, 15_000_000, ""),
            ("$2 per GB", 0, 0, 0, ""),
            ("under 20 euros", 0, 0, 0, "under"),
            ("under €20", 0, 0, 0, "under"),
            ("5g network", 0, 0, 0, "g network"),
            ("gb", 0, 0, 0, "gb"),
            ("us", 0, 0, 0, "us"),
            ("0 gb 0 days", 0, 0, 0, ""),
            ("9999999999999 tb 9999999999 years", 1_048_576_000_000, 365_000_000, 0, ""),
        ] {
            assert_eq!(shown(text), (mb, days, micros, left.to_string()), "{text}");
        }
    }
}
