//! The part of an article that answers a search best: a few words of it around those that were asked for.

use pulldown_cmark::{Event, Parser, TagEnd};

use crate::knowledge::is_meant;

/// About as many characters are shown.
const LENGTH: usize = 160;
/// How many of them come before the first word that was asked for.
const BEFORE: usize = 50;

/// A piece of text, and whether it was asked for.
pub type Piece = (bool, String);

/// The block of the text with most of the words, cut to size. Without any of them, the beginning.
pub fn excerpt(markdown: &str, words: &[String]) -> Vec<Piece> {
    let count = |block: &String| {
        let pieces = pieces(block, words);
        words
            .iter()
            .filter(|word| pieces.iter().any(|(_, text)| is_meant(&text.to_lowercase(), word)))
            .count()
    };
    let blocks = blocks(markdown);
    let most = blocks.iter().map(count).max().unwrap_or_default();
    let best = blocks.iter().find(|block| count(block) == most);
    best.map(|block| cut(pieces(block, words))).unwrap_or_default()
}

/// Paragraphs and items of lists, without their marks.
fn blocks(markdown: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for event in Parser::new(markdown) {
        let text: &str = match &event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => text,
            Event::SoftBreak | Event::HardBreak => " ",
            Event::Start(tag) if !is_inline(&tag.to_end()) => "",
            Event::End(tag) if !is_inline(tag) => "",
            _ => continue,
        };
        match (text, blocks.last_mut()) {
            ("", Some(last)) if !last.is_empty() => blocks.push(String::new()),
            (text, Some(last)) => last.push_str(text),
            (_, None) => {}
        }
    }
    blocks.retain(|block| !block.trim().is_empty());
    blocks
}

fn is_inline(tag: &TagEnd) -> bool {
    matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}

/// Words and what stands between them, in order.
fn pieces(text: &str, words: &[String]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_word = first.is_alphanumeric();
        let end = rest.find(|c: char| c.is_alphanumeric() != in_word).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        let is_asked = in_word && words.iter().any(|word| is_meant(&piece.to_lowercase(), word));
        pieces.push((is_asked, piece.to_string()));
        rest = behind;
    }
    pieces
}

/// About `LENGTH` characters around the first piece that was asked for; neighbours of one kind become one.
fn cut(pieces: Vec<Piece>) -> Vec<Piece> {
    let lengths: Vec<usize> = pieces.iter().map(|(_, text)| text.chars().count()).collect();
    let asked = pieces.iter().position(|(is_asked, _)| *is_asked).unwrap_or_default();
    let (mut start, mut before) = (asked, 0);
    while start > 0 && before + lengths[start - 1] <= BEFORE {
        start -= 1;
        before += lengths[start];
    }
    let (mut end, mut all) = (start, 0);
    while end < pieces.len() && (all + lengths[end] <= LENGTH || end <= asked) {
        all += lengths[end];
        end += 1;
    }
    let is_whole = end == pieces.len();
    let mut shown: Vec<Piece> = if start > 0 { vec![(false, "… ".into())] } else { Vec::new() };
    for (is_asked, text) in pieces.into_iter().take(end).skip(start) {
        match shown.last_mut() {
            Some((was_asked, last)) if *was_asked == is_asked => last.push_str(&text),
            _ => shown.push((is_asked, text)),
        }
    }
    if !is_whole {
        shown.push((false, " …".into()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(markdown: &str, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        let marked = |(is_asked, text): Piece| if is_asked { format!("[{text}]") } else { text };
        excerpt(markdown, &words).into_iter().map(marked).collect()
    }

    #[test]
    fn the_best_block_is_shown_with_what_was_asked_for() {
        let article = "## Money\n\nFirst **things** first.\n\n- Refunds go to\n  the wallet.\n- A [refund](x) of `money` is quick.";
        assert_eq!(told(article, &["refund"]), "[Refunds] go to the wallet.");
        assert_eq!(told(article, &["money", "refund"]), "A [refund] of [money] is quick.");
        assert_eq!(told(article, &["thing"]), "First [things] first.");
        assert_eq!(told(article, &["nowhere"]), "Money");
        assert_eq!(told("", &["nowhere"]), "");
    }

    #[test]
    fn a_long_block_is_cut_around_the_words() {
        let article = format!("{} wanted {}", "word ".repeat(100), "tail ".repeat(100));
        let shown = told(&article, &["wanted"]);
        assert!(shown.starts_with("… ") && shown.ends_with(" …") && shown.contains("[wanted]"), "{shown}");
        assert!((100..LENGTH + 20).contains(&shown.chars().count()), "{shown}");
    }
}
