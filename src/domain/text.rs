//! Text that came from outside: names of plans and agents, descriptions of coupons. People and language models read it,
//! so characters that hide, reorder or command are removed where it comes in.

/// The visible part of a text, at most `most` characters of it.
pub fn visible(text: &str, most: usize) -> String {
    let seen: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    let cut: String = seen.trim().chars().take(most).collect();
    cut.trim_end().to_string()
}

/// Control, bidi, zero-width, line and paragraph separators, variation selectors, tags, and noncharacters.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_taken_out_and_the_rest_is_cut() {
        for (given, kept) in [
            ("Japan 1 GB \u{2013} 7 days", "Japan 1 GB \u{2013} 7 days"),
            ("\u{202e}Japan\u{200b}\u{e0049}\u{e0067} 1 GB\r\n\u{1b}[2J", "Japan 1 GB[2J"),
            ("  \u{feff} ", ""),
        ] {
            assert_eq!(visible(given, 100), kept);
        }
        assert_eq!(visible("abc def", 4), "abc");
    }
}
