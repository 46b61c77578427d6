//! Typed text as words and numbers. Case and accents are removed, but each word remembers whether it was in capitals:
//! people mark a code (`IT`) that way in a sentence. Nothing here knows a place or a unit.

/// One piece of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Word(Word),
    /// In millionths, so that `1.5` and `19.99` are whole.
    Number(i64),
    /// `$`, `€`, `<` and the like.
    Sign(char),
    /// A comma, a slash, a new line: it separates the text on its two sides.
    Break,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Lower case, without accents.
    pub text: String,
    /// Whether it was all capitals, in a text where that means something.
    pub is_shouted: bool,
}

pub const MILLION: i64 = 1_000_000;
/// Larger numbers are no size, time or price; they are cut to this so that arithmetic stays small.
const LARGEST: i64 = 1_000_000;

/// Plain letters, each with its marked forms in other languages.
#[rustfmt::skip]
const MARKED: &[(&str, &str)] = &[
    ("a", "àáâãäåāăąǎạảấầẩẫậắằẳẵặ"), ("c", "çćĉċč"), ("d", "ďđð"), ("e", "èéêëēĕėęěẹẻẽếềểễệ"), ("g", "ĝğġģ"),
    ("h", "ĥħ"), ("i", "ìíîïĩīĭįıǐỉị"), ("j", "ĵ"), ("k", "ķ"), ("l", "ĺļľŀł"), ("n", "ñńņňŋ"),
    ("o", "òóôõöøōŏőǒọỏốồổỗộớờởỡợơ"), ("r", "ŕŗř"), ("s", "śŝşšș"), ("t", "ţťŧț"),
    ("u", "ùúûüũūŭůűųưǔụủứừửữự"), ("w", "ŵ"), ("y", "ýÿŷỳỵỷỹ"), ("z", "źżž"), ("ss", "ß"), ("ae", "æ"),
    ("oe", "œ"), ("th", "þ"),
];

/// Adds a character in lower case and without its mark.
fn fold_into(folded: &mut String, typed: char) {
    if typed.is_ascii() {
        folded.push(typed.to_ascii_lowercase());
        return;
    }
    for lower in typed.to_lowercase() {
        match MARKED.iter().find(|(_, marked)| marked.contains(lower)) {
            Some((plain, _)) => folded.push_str(plain),
            // Accents that follow their letter as separate characters.
            None if ('\u{300}'..='\u{36f}').contains(&lower) => {}
            None => folded.push(lower),
        }
    }
}

/// A name as its words, in the form in which `tokens` gives them.
pub fn words_of(name: &str) -> Vec<String> {
    let words = tokens(name).into_iter().filter_map(|token| match token {
        Token::Word(word) => Some(word.text),
        Token::Number(_) | Token::Sign(_) | Token::Break => None,
    });
    words.collect()
}

pub fn tokens(text: &str) -> Vec<Token> {
    // Capitals mean nothing when everything is in capitals, unless it is a list of codes.
    let longest = text.split(|c| !is_letter(c)).map(str::len).max().unwrap_or(0);
    let capitals_count = longest <= 3 || text.chars().any(char::is_lowercase);
    let mut rest = text;
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if first.is_ascii_digit() => number(rest, &mut found),
            _ if is_letter(first) => word(rest, capitals_count, &mut found),
            '$' | '€' | '£' | '¥' | '<' | '>' | '≤' | '≥' => {
                found.push(Token::Sign(first));
                first.len_utf8()
            }
            '&' => {
                found.push(Token::Word(Word { text: "and".into(), is_shouted: false }));
                1
            }
            ',' | ';' | '/' | '+' | '|' | '\n' | '(' | ')' | ':' | '→' | '、' | '，' => {
                found.push(Token::Break);
                first.len_utf8()
            }
            _ => first.len_utf8(),
        };
        rest = &rest[length..];
    }
    found
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic() || ('\u{300}'..='\u{36f}').contains(&c)
}

/// Reads a word and returns its length in the text. Apostrophes belong to it, and so do the dots of `U.S.A.`
fn word(text: &str, capitals_count: bool, found: &mut Vec<Token>) -> usize {
    let (mut folded, mut capitals, mut length) = (String::new(), true, 0);
    let mut letters_since_dot = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let is_inner_dot =
            || letters_since_dot == 1 && chars.clone().next().is_some_and(|(_, c)| is_letter(c));
        match c {
            _ if is_letter(c) => {
                fold_into(&mut folded, c);
                capitals &= !c.is_lowercase();
                letters_since_dot += 1;
            }
            '\'' | '’' | '`' => {}
            '.' if is_inner_dot() => letters_since_dot = 0,
            _ => break,
        }
        length = at + c.len_utf8();
    }
    let is_initials = text[..length].contains('.');
    // "Saint" and "St" are the same in every name.
    let folded = if folded == "saint" { "st".into() } else { folded };
    // Initials are always a name: `u.s.` is never the word "us".
    let is_shouted = is_initials || (capitals && capitals_count && folded.len() > 1);
    found.push(Token::Word(Word { text: folded, is_shouted }));
    length
}

/// Reads a number with its decimals; `1,000` is a thousand and `1,5` one and a half.
fn number(text: &str, found: &mut Vec<Token>) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    let mut whole = text[..end].to_string();
    let mut decimals = String::new();
    while let Some(mark) = text[end..].chars().next().filter(|c| matches!(c, '.' | ',')) {
        let count = digits(end + 1);
        let part = &text[end + 1..end + 1 + count];
        match (mark, count) {
            (_, 0) => break,
            (',', 3) => whole.push_str(part),
            _ => decimals = part.to_string(),
        }
        end += 1 + count;
        if !decimals.is_empty() {
            break;
        }
    }
    let whole = whole.parse::<i64>().unwrap_or(LARGEST).min(LARGEST);
    let millionths = format!("{decimals:0<6}")[..6].parse::<i64>().unwrap_or(0);
    found.push(Token::Number(whole * MILLION + millionths));
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let pieces = tokens(text).into_iter().map(|token| match token {
            Token::Word(word) if word.is_shouted => word.text.to_uppercase(),
            Token::Word(word) => word.text,
            Token::Number(n) if n % MILLION == 0 => (n / MILLION).to_string(),
            Token::Number(n) => format!("{n}m"),
            Token::Sign(sign) => sign.to_string(),
            Token::Break => ",".into(),
        });
        pieces.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn text_is_cut_into_words_and_numbers() {
        for (text, pieces) in [
            ("Spain 10GB 30 days", "spain 10 GB 30 days"),
            ("Côte d’Ivoire", "cote divoire"),
            ("ÖSTERREICH", "osterreich"),
            ("Việt Nam, TÜRKIYE", "viet nam , TURKIYE"),
            ("Espan\u{303}a", "espana"),
            ("the U.S.A. and u.k.", "the USA and UK"),
            ("esim for IT.", "esim for IT"),
            ("St. Lucia", "st lucia"),
            ("Saint-Martin", "st martin"),
            ("under $19.99!", "under $ 19990000m"),
            ("1,000 MB 1,5gb", "1000 MB 1500000m gb"),
            ("Trinidad & Tobago", "trinidad and tobago"),
            ("japan/korea", "japan , korea"),
            ("10-day", "10 day"),
            ("99999999999999999999 days", "1000000 days"),
            ("1.2.3", "1200000m 3"),
            ("日本 5", "日本 5"),
            ("... '' ,", ","),
        ] {
            assert_eq!(shown(text).trim(), pieces, "{text}");
        }
    }
}
