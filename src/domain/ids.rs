//! Identifiers: a prefix for the kind, the time it was made, and 128 random bits. The time comes first so that new rows
//! land at the end of an index; the randomness makes an id unguessable. Callers pass both in, from `crate::vault` and
//! `crate::clock`.

use std::fmt;

use super::time::Time;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TIME_DIGITS: usize = 8;
const RANDOM_DIGITS: usize = 22;

/// `digits` base-62 digits of `value`, most significant first; the alphabet is in byte order, so text order is number order.
pub(super) fn base62(mut value: u128, digits: usize, out: &mut String) {
    let mut buffer = [b'0'; 24];
    for slot in buffer[..digits].iter_mut().rev() {
        *slot = ALPHABET[(value % 62) as usize];
        value /= 62;
    }
    out.push_str(std::str::from_utf8(&buffer[..digits]).expect("the alphabet is ASCII"));
}

/// The number that these base-62 digits spell; `None` for other characters, or when it is too large.
pub(super) fn from_base62(digits: &str) -> Option<u128> {
    digits.bytes().try_fold(0u128, |value, byte| {
        let digit = ALPHABET.iter().position(|known| *known == byte)?;
        value.checked_mul(62)?.checked_add(digit as u128)
    })
}

fn make(prefix: &str, at: Time, random: u128) -> String {
    let mut text = String::with_capacity(prefix.len() + TIME_DIGITS + RANDOM_DIGITS);
    text.push_str(prefix);
    base62((at.micros() / 1_000) as u128, TIME_DIGITS, &mut text);
    base62(random, RANDOM_DIGITS, &mut text);
    text
}

/// A long secret in base 62, for API secrets: 44 digits hold 256 bits.
pub fn secret_text(prefix: &str, random: [u128; 2]) -> String {
    let mut text = String::from(prefix);
    base62(random[0], 22, &mut text);
    base62(random[1], 22, &mut text);
    text
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $($prefix:literal)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            $(
                pub const PREFIX: &'static str = $prefix;

                pub fn new(at: Time, random: u128) -> $name {
                    $name(make($prefix, at, random))
                }
            )?

            /// Takes an id as it was stored or sent; only the database knows whether it exists.
            pub fn from_text(text: impl Into<String>) -> $name {
                $name(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// An API key; it is also the public half that a partner sends.
    KeyId "key_";
    /// A ledger entry that belongs to no order.
    EntryId "ent_";
    /// A request for an on-chain payment. Anybody who holds it may read the invoice, so it is never logged.
    InvoiceId "inv_";
    /// A bearer token's public name.
    TokenId "tok_";
    /// A stay on pages, by which its owner ends it. It opens nothing.
    SessionId "ses_";
    /// A pending login by mailed code. The code is derived from it, so it is never shown.
    LoginId "lgn_";
    /// A request for a code, or a wrong try.
    AttemptId "att_";
    MailId "mai_";
    /// A person in a partner's team; it stands on the orders that this person places by hand.
    MemberId "mbr_";
    WebhookId "whk_";
    /// Orders that were placed at once by hand.
    BatchId "bat_";
    /// A test event, which is in no log. It is made when its id is.
    TestId "tst_";
    /// An account: a partner (`ptn_`) or a user (`usr_`).
    AccountId;
    /// An order (`ord_`) or a top-up (`top_`): both are bought the same way and share one table.
    OrderId;
}

impl AccountId {
    pub fn partner(at: Time, random: u128) -> AccountId {
        AccountId(make("ptn_", at, random))
    }

    pub fn user(at: Time, random: u128) -> AccountId {
        AccountId(make("usr_", at, random))
    }
}

impl OrderId {
    pub fn esim(at: Time, random: u128) -> OrderId {
        OrderId(make("ord_", at, random))
    }

    pub fn topup(at: Time, random: u128) -> OrderId {
        OrderId(make("top_", at, random))
    }

    pub fn is_topup(&self) -> bool {
        self.0.starts_with("top_")
    }
}

impl TestId {
    /// When it was made, to the millisecond; `None` for any other text.
    pub fn made_at(&self) -> Option<Time> {
        let millis = from_base62(self.0.strip_prefix(Self::PREFIX)?.get(..TIME_DIGITS)?)?;
        Some(Time::from_micros(i64::try_from(millis).ok()?.checked_mul(1_000)?))
    }
}

/// An account's short number inside the database. Never shown: `AccountId` is its public name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountNo(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let early = OrderId::esim(Time::from_micros(1_700_000_000_000_000), u128::MAX);
        let late = OrderId::esim(Time::from_micros(1_700_000_000_001_000), 0);
        assert!(early < late);
        assert_eq!(early.as_str().len(), 34);
    }

    #[test]
    fn a_test_knows_when_it_was_made() {
        let at = Time::from_micros(1_700_000_000_123_000);
        assert_eq!(TestId::new(at.plus_millis(0), 7).made_at(), Some(at));
        for other in ["", "tst_", "tst_0", "ord_0TgGbAA9", "tst_\u{e4}\u{e4}\u{e4}\u{e4}", "tst_zzzzzz-z"] {
            assert_eq!(TestId::from_text(other).made_at(), None, "{other}");
        }
    }
}
