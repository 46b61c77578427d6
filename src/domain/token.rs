//! Bearer tokens: a prefix for the kind, 160 random bits, and a checksum, by which a mistyped or made-up token is
//! turned away without asking the database.

use super::ids::base62;
use super::words::words;

words! {
    pub enum TokenKind: ALL, parse {
        /// An agent's own, valid until it is revoked.
        Personal = "PERSONAL",
        /// Ends by itself after a day, and cannot manage other tokens.
        Session = "SESSION",
    }
}

const HIGH_DIGITS: usize = 6;
const LOW_DIGITS: usize = 22;
const CHECK_DIGITS: usize = 6;
const LENGTH: usize = 4 + HIGH_DIGITS + LOW_DIGITS + CHECK_DIGITS;
/// How many characters of a token are ever shown again.
const SHOWN: usize = 8;

impl TokenKind {
    pub fn prefix(self) -> &'static str {
        match self {
            TokenKind::Personal => "sgp_",
            TokenKind::Session => "sgs_",
        }
    }

    /// A new token from 160 random bits.
    pub fn make(self, high: u32, low: u128) -> String {
        let mut text = String::from(self.prefix());
        base62(u128::from(high), HIGH_DIGITS, &mut text);
        base62(low, LOW_DIGITS, &mut text);
        let check = checksum(&text);
        text + &check
    }
}

/// Whether this could be a token of ours; no other text is looked up in the database.
pub fn is_well_formed(text: &str) -> bool {
    if text.len() != LENGTH || !text.is_ascii() {
        return false;
    }
    let (body, check) = text.split_at(LENGTH - CHECK_DIGITS);
    TokenKind::ALL.into_iter().any(|kind| body.starts_with(kind.prefix())) && checksum(body) == check
}

pub fn shown_prefix(token: &str) -> String {
    token.chars().take(SHOWN).collect()
}

fn checksum(text: &str) -> String {
    let mut check = String::with_capacity(CHECK_DIGITS);
    base62(u128::from(crc32(text.as_bytes())), CHECK_DIGITS, &mut check);
    check
}

/// CRC-32 as in zip and PNG, bit by bit: a token is 32 bytes long.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    proptest! {
        #[test]
        fn a_changed_character_is_noticed(high: u32, low: u128, at in 0usize..LENGTH, new in "[0-9A-Za-z]") {
            let token = TokenKind::Personal.make(high, low);
            prop_assert_eq!(token.len(), LENGTH);
            prop_assert!(is_well_formed(&token));
            prop_assert!(!is_well_formed(&token[1..]));
            let mut changed = token.clone();
            changed.replace_range(at..=at, &new);
            prop_assert_eq!(is_well_formed(&changed), changed == token);
        }
    }
}
