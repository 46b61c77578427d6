//! Many orders that somebody places at once by hand: how they are written down, one order a line, and what becomes of
//! each. `ops/batches.rs` checks and buys them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::email::Email;
use super::ids::{AccountNo, BatchId, OrderId};
use super::money::Usd;
use super::order::OrderStatus;
use super::plan;
use super::reference::ours;
use super::refusal::FieldError;
use super::text::visible;
use super::time::Time;
use super::words::words;

/// How many eSIMs can be bought at once.
pub const MOST: usize = 100;
/// How many days a batch is kept; its orders stay.
pub const KEPT_DAYS: i64 = 90;
/// What a mistake is about that is no line's.
pub const LIST: &str = "the list";
const CODE_CHARS: usize = 64;
const REFERENCE_CHARS: usize = 128;
/// So much of somebody's text is shown to them again.
const SHOWN_CHARS: usize = 40;
/// What the first column of a table may be called, without spaces.
const HEADERS: &[&str] =
    &["plan", "plans", "plancode", "planid", "packagecode", "package", "code", "product", "sku", "esim"];

/// One eSIM that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The line of the text that asks for it, counted from 1.
    pub row: usize,
    pub package_code: String,
    pub reference: Option<String>,
    pub customer_email: Option<Email>,
}

/// Reads one order a line: `JP-1GB-7D, booking-1001, ann@example.com`. Reference and email may be left out, and several
/// of a plan are `3 x JP-1GB-7D`, whose references then end in `-1`, `-2` and `-3`. Tabs and semicolons separate as commas
/// do, and a header is forgiven. Otherwise everything that is wrong.
pub fn read(text: &str) -> Result<Vec<Wanted>, Vec<FieldError>> {
    let (mut wanted, mut mistakes) = (Vec::new(), Vec::new());
    let (mut asked, mut references) = (0usize, HashMap::new());
    let lines = (1..).zip(text.lines()).map(|(row, line)| (row, parts(line)));
    let mut lines = lines.filter(|(_, parts)| parts.iter().any(|part| !part.is_empty())).peekable();
    lines.next_if(|(_, parts)| is_header(&parts[0]));
    for (nth, (row, parts)) in lines.enumerate() {
        let (count, code) = counted(&parts[0]);
        asked = asked.saturating_add(count.max(1));
        // Whoever pasted far too much is told that, and what is wrong with the beginning.
        if nth >= MOST {
            continue;
        }
        match line(row, count, code, &parts) {
            Ok(line) => {
                for one in each(line, count.min(MOST)) {
                    // Those of one line are told apart by their ends.
                    if let Some(reference) = &one.reference
                        && let first = *references.entry(reference.clone()).or_insert(row)
                        && first != row
                    {
                        let shown = visible(reference, SHOWN_CHARS);
                        mistakes.push(mistake(row, format!("has the reference {shown} of line {first}")));
                    }
                    wanted.push(one);
                }
            }
            Err(wrong) => mistakes.extend(wrong.into_iter().map(|message| mistake(row, message))),
        }
    }
    if asked > MOST {
        let message = format!("asks for {asked} eSIMs, and {MOST} can be bought at once");
        mistakes.push(FieldError { field: LIST.into(), message });
    }
    if asked == 0 {
        let message = "is empty; write one order a line, like JP-1GB-7D, booking-1001, ann@example.com";
        mistakes.push(FieldError { field: LIST.into(), message: message.into() });
    }
    if mistakes.is_empty() { Ok(wanted) } else { Err(mistakes) }
}

/// What is wrong with a line, to be read after its number.
pub fn mistake(row: usize, message: impl Into<String>) -> FieldError {
    FieldError { field: format!("line {row}"), message: message.into() }
}

/// The parts of a line, by whichever separator comes first in it. Spreadsheets put some parts in quotes.
fn parts(line: &str) -> Vec<String> {
    let separator = line.chars().find(|c| matches!(c, '\t' | ';' | ',')).unwrap_or(',');
    let cleaned = |part| visible(part, usize::MAX).trim_matches('"').trim().to_string();
    line.split(separator).map(cleaned).collect()
}

fn is_header(first: &str) -> bool {
    let letters: String = first.chars().filter(char::is_ascii_alphanumeric).collect();
    HEADERS.contains(&letters.to_ascii_lowercase().as_str())
}

/// `3 x CODE`, `CODE x 3` or `CODE`: how many, and the code.
fn counted(part: &str) -> (usize, String) {
    let spaced = part.replace(['\u{d7}', '*'], " x ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let found = match words[..] {
        [first, code] if times(first).is_some() => times(first).zip(Some(code)),
        [code, last] => times(last).zip(Some(code)),
        [first, "x" | "X", last] => match number(first) {
            Some(count) => Some((count, last)),
            None => number(last).zip(Some(first)),
        },
        _ => None,
    };
    found.map_or_else(|| (1, part.to_string()), |(count, code)| (count, code.to_string()))
}

/// `3x` or `x3`.
fn times(word: &str) -> Option<usize> {
    let x = ['x', 'X'];
    number(word.strip_suffix(x).or_else(|| word.strip_prefix(x))?)
}

fn number(digits: &str) -> Option<usize> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().unwrap_or(usize::MAX))
}

/// What a line asks for, or everything that is wrong with it.
fn line(row: usize, count: usize, code: String, parts: &[String]) -> Result<Wanted, Vec<String>> {
    let mut wrong = Vec::new();
    let part = |nth: usize| parts.get(nth).map(String::as_str).filter(|part| !part.is_empty());
    if code.is_empty() {
        wrong.push("names no plan; its code comes first, like JP-1GB-7D".to_string());
    } else if code.chars().count() > CODE_CHARS {
        wrong.push(format!(
            "names {} \u{2026}, which is too long for the code of a plan",
            visible(&code, SHOWN_CHARS)
        ));
    }
    if count == 0 {
        wrong.push("asks for 0 eSIMs".to_string());
    }
    // Whoever has no reference of their own may write the address behind the plan.
    let (reference, address) = match (part(1), part(2)) {
        (Some(second), None) if Email::parse(second).is_some() => (None, Some(second)),
        both => both,
    };
    let end = if count > 1 { format!("-{count}").len() } else { 0 };
    if reference.is_some_and(|reference| reference.chars().count() + end > REFERENCE_CHARS) {
        wrong.push(format!("has a reference of more than {} characters", REFERENCE_CHARS - end));
    }
    let customer_email = address.and_then(Email::parse);
    if let Some(address) = address
        && customer_email.is_none()
    {
        wrong.push(format!(
            "has {} where the email address of its customer would be",
            visible(address, SHOWN_CHARS)
        ));
    }
    if (3..parts.len()).any(|nth| part(nth).is_some()) {
        wrong.push("has more than a plan, a reference and an email address".to_string());
    }
    let reference = reference.map(str::to_string);
    let wanted = Wanted { row, package_code: plan::typed_code(&code), reference, customer_email };
    if wrong.is_empty() { Ok(wanted) } else { Err(wrong) }
}

/// So many of it, each with a reference of its own.
fn each(wanted: Wanted, count: usize) -> impl Iterator<Item = Wanted> {
    (1..=count).map(move |nth| {
        let ended = |reference: &String| match count {
            1 => reference.clone(),
            _ => format!("{reference}-{nth}"),
        };
        Wanted { reference: wanted.reference.as_ref().map(ended), ..wanted.clone() }
    })
}

/// What each plan cost on the page that somebody agreed to. A form carries it as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices(BTreeMap<String, Usd>);

impl Prices {
    pub fn of(&self, package_code: &str) -> Option<Usd> {
        self.0.get(package_code).copied()
    }

    /// Reads what a form brought back. What is unreadable was not shown.
    pub fn parse(text: &str) -> Prices {
        let pair = |line: &str| {
            let (price, code) = line.trim().split_once(' ')?;
            Some((code.to_string(), Usd::parse(price).ok()?))
        };
        Prices(text.lines().filter_map(pair).collect())
    }
}

impl FromIterator<(String, Usd)> for Prices {
    fn from_iter<I: IntoIterator<Item = (String, Usd)>>(pairs: I) -> Prices {
        Prices(pairs.into_iter().collect())
    }
}

impl fmt::Display for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(code, price)| writeln!(f, "{price} {code}"))
    }
}

/// Orders that were placed at once.
#[derive(Clone, Debug)]
pub struct Batch {
    pub id: BatchId,
    pub account: AccountNo,
    pub made_by: String,
    pub made_at: Time,
    /// What its orders carry.
    pub price_list: String,
    pub key_id: String,
    /// What all of its lines cost when it was made.
    pub total: Usd,
    pub lines: i64,
    pub done: i64,
    pub refused: i64,
}

impl Batch {
    /// How many lines have no answer yet.
    pub fn waiting(&self) -> i64 {
        self.lines - self.done - self.refused
    }
}

words! {
    pub enum LineState: ALL, parse {
        Waiting = "WAITING",
        /// There is an order, which itself tells how it ends.
        Done = "DONE",
        Refused = "REFUSED",
    }
}

/// What a line was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Bought {
        order: OrderId,
        charged: Usd,
    },
    /// In words for people.
    Refused(String),
}

impl LineState {
    /// `None` when the answer changes nothing. An order that exists counts, whoever was refused before it was seen.
    pub fn after(self, answer: &Answer) -> Option<LineState> {
        match (self, answer) {
            (LineState::Waiting | LineState::Refused, Answer::Bought { .. }) => Some(LineState::Done),
            (LineState::Waiting, Answer::Refused(_)) => Some(LineState::Refused),
            (LineState::Refused, Answer::Refused(_)) | (LineState::Done, _) => None,
        }
    }
}

/// A line of a batch.
#[derive(Clone, Debug)]
pub struct Line {
    /// Counted from 1.
    pub n: i64,
    pub package_code: String,
    /// The person's own.
    pub reference: Option<String>,
    pub customer_email: Option<Email>,
    /// Its customer has had enough mails that day, and gets none.
    pub unmailed: bool,
    pub max_price: Usd,
    pub state: LineState,
    pub order: Option<OrderId>,
    /// What was taken for it: nothing when its reference had bought it before.
    pub charged: Option<Usd>,
    pub why: Option<String>,
}

impl Line {
    /// The reference of its order: however often it is bought, it is one order.
    pub fn bought_as(&self, batch: &BatchId) -> String {
        self.reference.clone().unwrap_or_else(|| ours(format_args!("{batch}-{}", self.n)))
    }

    /// Who gets the eSIM by mail when it is delivered.
    pub fn mailed_to(&self) -> Option<&Email> {
        self.customer_email.as_ref().filter(|_| !self.unmailed)
    }

    /// Whether its reference had bought it before the batch was made.
    pub fn was_bought_before(&self) -> bool {
        self.charged == Some(Usd::ZERO)
    }
}

/// How the order of a line stands.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub status: OrderStatus,
    pub price: Usd,
    pub refunded: Option<Usd>,
}

/// A line with its order.
#[derive(Clone, Debug)]
pub struct Listed {
    pub line: Line,
    pub order: Option<Standing>,
}

impl Listed {
    fn charged(&self) -> Usd {
        self.line.charged.unwrap_or(Usd::ZERO)
    }

    /// What it has cost up to now.
    pub fn spent(&self) -> Usd {
        self.charged().minus(self.given_back())
    }

    /// What came back of what was taken for it.
    pub fn given_back(&self) -> Usd {
        match &self.order {
            Some(Standing { status: OrderStatus::Failed | OrderStatus::Cancelled, price, refunded }) => {
                refunded.unwrap_or(*price).min(self.charged())
            }
            _ => Usd::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brief(text: &str) -> Vec<String> {
        let one = |wanted: Wanted| {
            let (reference, email) = (wanted.reference, wanted.customer_email.map(|email| email.to_string()));
            let [reference, email] = [reference, email].map(|part| part.unwrap_or("-".into()));
            format!("{} {} {reference} {email}", wanted.row, wanted.package_code)
        };
        read(text).unwrap().into_iter().map(one).collect()
    }

    fn wrong(text: &str) -> Vec<String> {
        read(text).unwrap_err().iter().map(FieldError::to_string).collect()
    }

    #[test]
    fn one_order_a_line() {
        let text = "JP-1GB-7D, booking-1001, ann@example.com\r\n\n  jp-1gb-7d  \nKR-1GB-7D,b-2\nKR-1GB-7D,,Bo@Example.com,\n";
        assert_eq!(
            brief(text),
            [
                "1 JP-1GB-7D booking-1001 ann@example.com",
                "3 JP-1GB-7D - -",
                "4 KR-1GB-7D b-2 -",
                "5 KR-1GB-7D - bo@example.com"
            ]
        );
        assert_eq!(brief("JP-1GB-7D, ann@example.com"), ["1 JP-1GB-7D - ann@example.com"]);
    }

    #[test]
    fn tables_are_read_as_they_are_pasted() {
        let tabs = "\u{feff}Package code\tReference\tEmail\nJP-1GB-7D\t\"a, b\"\tann@example.com\n\t\t\n";
        assert_eq!(brief(tabs), ["2 JP-1GB-7D a, b ann@example.com"]);
        assert_eq!(brief("\nplan;ref\n\"JP-1GB-7D\";7;\n"), ["3 JP-1GB-7D 7 -"]);
        // Only the first line can be a header.
        assert_eq!(brief("JP-1GB-7D\nplan"), ["1 JP-1GB-7D - -", "2 PLAN - -"]);
    }

    #[test]
    fn several_of_a_plan_are_so_many_lines() {
        for count in [
            "2 x JP-1",
            "2x JP-1",
            "2 X jp-1",
            "2 \u{d7} JP-1",
            "2*JP-1",
            "JP-1 x 2",
            "JP-1 x2",
            "JP-1 \u{d7}2",
        ] {
            assert_eq!(brief(&format!("{count}, b")), ["1 JP-1 b-1 -", "1 JP-1 b-2 -"], "{count}");
        }
        assert_eq!(brief("1 x JP-1, b"), ["1 JP-1 b -"]);
        assert_eq!(brief("100 x JP-1").len(), MOST);
        // A code may look like a count.
        assert_eq!(brief("5XGLOBAL\nX2"), ["1 5XGLOBAL - -", "2 X2 - -"]);
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let long = "r".repeat(REFERENCE_CHARS + 1);
        let text = format!(
            "JP-1, a\n\n, b\n0 x JP-1, {long}, ann\nJP-1, a\nJP-1, c, ann@example.com, 7\n3 x JP-1, d\nJP-1, d-2"
        );
        assert_eq!(
            wrong(&text),
            [
                "line 3 names no plan; its code comes first, like JP-1GB-7D",
                "line 4 asks for 0 eSIMs",
                "line 4 has a reference of more than 128 characters",
                "line 4 has ann where the email address of its customer would be",
                "line 5 has the reference a of line 1",
                "line 6 has more than a plan, a reference and an email address",
                "line 8 has the reference d-2 of line 7",
            ]
        );
        assert_eq!(
            wrong(&format!("2 x JP-1, {}", "r".repeat(127))),
            ["line 1 has a reference of more than 126 characters"]
        );
        for nothing in ["", " \n\t\t\n,,\n;\n", "plan, reference"] {
            assert!(wrong(nothing)[0].starts_with("the list is empty"), "{nothing}");
        }
    }

    #[test]
    fn a_list_has_an_end() {
        assert_eq!(
            wrong("60 x JP-1\n41 x JP-1"),
            ["the list asks for 101 eSIMs, and 100 can be bought at once"]
        );
        let far = wrong(&"99999999999999999999999 x JP-1\n,x\n".repeat(300));
        assert_eq!(far.len(), MOST / 2 + 1, "{far:?}");
    }

    #[test]
    fn prices_go_through_a_form_and_back() {
        let prices: Prices =
            [("JP-1".to_string(), Usd::from_micros(4_490_000)), ("A B".to_string(), Usd::dollars(5))]
                .into_iter()
                .collect();
        assert_eq!(Prices::parse(&prices.to_string().replace('\n', "\r\n")), prices);
        assert_eq!(prices.of("JP-1"), Some(Usd::from_micros(4_490_000)));
        assert_eq!(Prices::parse("nothing\n1,5 JP-1\n\n"), Prices::default());
    }

    #[test]
    fn an_order_that_exists_counts() {
        let bought = Answer::Bought { order: OrderId::from_text("ord_1"), charged: Usd::ZERO };
        let refused = Answer::Refused("no".into());
        for (state, answer, next) in [
            (LineState::Waiting, &bought, Some(LineState::Done)),
            (LineState::Refused, &bought, Some(LineState::Done)),
            (LineState::Done, &bought, None),
            (LineState::Waiting, &refused, Some(LineState::Refused)),
            (LineState::Refused, &refused, None),
            (LineState::Done, &refused, None),
        ] {
            assert_eq!(state.after(answer), next);
        }
    }
}
