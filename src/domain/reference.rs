//! References: each purchase of a reference is made once. Callers give their own; where none was given, we make one. Ours
//! begin with a character that no door takes, so nobody can give one of ours, and none that was given is taken for ours.

use std::fmt::Display;

/// It is hidden, and doors refuse hidden characters (`domain/text.rs`) or take them out.
const OURS: char = '\u{1f}';

/// A reference of our own.
pub fn ours(name: impl Display) -> String {
    format!("{OURS}{name}")
}

/// A reference, if somebody gave it.
pub fn given(reference: &str) -> Option<&str> {
    (!reference.starts_with(OURS)).then_some(reference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::text::is_hidden;

    #[test]
    fn ours_and_theirs_are_told_apart_by_what_nobody_can_give() {
        for name in ["portal 0123", "bat_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U-9"] {
            assert_eq!(given(&ours(name)), None);
            assert_eq!(given(name), Some(name), "somebody may give one that looks like ours");
        }
        assert!(is_hidden(OURS));
    }
}
