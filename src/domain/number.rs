//! Short references for people: `SG` and ten characters, 50 bits. A number names an account and a place in one of its
//! series, so it is unique without an index and leads back to its order. The key that hides both comes from outside
//! (`crate::vault::Numbers`); the arithmetic is here.
//!
//! Numbers from before there was a key are scrambled by fixed rounds alone, over all 50 bits. Before those rounds,
//! their first bit is 0, because no gateway had half of all accounts; the first bit of numbers with a key is 1. So the
//! two kinds never overlap, and either is recognised without a look-up.

use super::account::GUESTS;
use super::ids::AccountNo;

/// How many accounts can have numbers.
pub const ACCOUNTS: i64 = 1 << 24;
/// Accounts that had numbers before there was a key are below this.
pub const FIRST_ACCOUNTS: i64 = 1 << 23;
/// When only this many numbers are left, no new purchase begins: those in progress still get one.
const SPARE: i64 = 10_000;

/// What an account's numbers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Series {
    /// From before there was a key: orders and checkouts together.
    First,
    /// Orders paid from a wallet.
    Orders,
    /// Checkouts, paid or not, and the orders that they become. Most are never paid, and use up no order numbers.
    Checkouts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    pub series: Series,
    pub account: AccountNo,
    /// Counted from 1.
    pub n: i64,
}

/// How many numbers every account has in a series. Early accounts have more, because an account that sells much most
/// likely began early; and all guests share one account.
const EACH_BITS: u32 = 23;
const EARLY_ACCOUNT_BITS: u32 = 20;
const EARLY_ORDERS_BITS: u32 = 27;
const EARLY_CHECKOUTS_BITS: u32 = 26;
const GUESTS_BITS: u32 = 46;
const FIRST_BITS: u32 = 26;
/// The size of a place with a key, before it is scrambled.
const KEYED_BITS: u32 = 49;

impl Series {
    /// How many numbers an account has in this series.
    fn room(self, account: AccountNo) -> i64 {
        let early = (0..1 << EARLY_ACCOUNT_BITS).contains(&account.0);
        match self {
            Series::First => 1 << FIRST_BITS,
            Series::Checkouts if account == GUESTS => 1 << GUESTS_BITS,
            Series::Orders if early => (1 << EACH_BITS) + (1 << EARLY_ORDERS_BITS),
            Series::Checkouts if early => (1 << EACH_BITS) + (1 << EARLY_CHECKOUTS_BITS),
            Series::Orders | Series::Checkouts => 1 << EACH_BITS,
        }
    }

    /// Whether an account that has drawn this many gets no more.
    pub fn is_used_up(self, account: AccountNo, drawn: i64) -> bool {
        drawn >= self.room(account) - SPARE
    }

    /// Whether an account has used up half, so that the operator should know.
    pub fn is_half_used_up(self, account: AccountNo, drawn: i64) -> bool {
        drawn >= self.room(account) / 2
    }

    /// No account has used up half before it has drawn this many.
    pub const LEAST_HALF: i64 = 1 << (EACH_BITS - 1);
}

/// Whether the next account would be one of the last that can have numbers.
pub fn is_last_account(account: AccountNo) -> bool {
    account.0 >= ACCOUNTS - SPARE
}

impl Number {
    /// As people read it; `None` beyond the end of its series. `round` is a keyed hash of a round's number and a half.
    pub fn text(self, round: impl Fn(u8, u64) -> u64) -> Option<String> {
        let plain = match self.series {
            Series::First => self.first_place()?,
            Series::Orders | Series::Checkouts => 1 << KEYED_BITS | spread(self.keyed_place()?, round),
        };
        Some(spell(scramble(plain)))
    }

    /// Reads a reference; `None` for any other text.
    pub fn parse(text: &str, round: impl Fn(u8, u64) -> u64) -> Option<Number> {
        let plain = unscramble(read(text)?);
        if plain >> KEYED_BITS == 0 {
            let (account, n) = (plain >> FIRST_BITS, plain & mask(FIRST_BITS));
            return Some(Number { series: Series::First, account: AccountNo(account as i64), n: n as i64 });
        }
        let place = gather(plain & mask(KEYED_BITS), round);
        // Guests have places of their own, and none among the places of other accounts.
        Some(Number::at(place)).filter(|number| number.keyed_place() == Some(place))
    }

    fn first_place(self) -> Option<u64> {
        let fits = (0..FIRST_ACCOUNTS).contains(&self.account.0) && (0..1 << FIRST_BITS).contains(&self.n);
        fits.then_some((self.account.0 as u64) << FIRST_BITS | self.n as u64)
    }

    /// Orders begin with a 0 and checkouts with a 1. Then come a 0, the account and the number; or, for the extra
    /// numbers of early accounts, a 1 and the same with fewer bits for the account.
    fn keyed_place(self) -> Option<u64> {
        let Number { series, account, n } = self;
        if !(0..ACCOUNTS).contains(&account.0) || !(0..series.room(account)).contains(&n) {
            return None;
        }
        let (owner, n) = (account.0 as u64, n as u64);
        let more = n.wrapping_sub(1 << EACH_BITS);
        Some(match series {
            Series::First => return None,
            Series::Checkouts if account == GUESTS => 0b111 << GUESTS_BITS | n,
            Series::Orders if n >> EACH_BITS == 0 => owner << EACH_BITS | n,
            Series::Orders => 0b01 << (KEYED_BITS - 2) | owner << EARLY_ORDERS_BITS | more,
            Series::Checkouts if n >> EACH_BITS == 0 => 0b10 << (KEYED_BITS - 2) | owner << EACH_BITS | n,
            Series::Checkouts => 0b110 << (KEYED_BITS - 3) | owner << EARLY_CHECKOUTS_BITS | more,
        })
    }

    /// The inverse of `keyed_place`.
    fn at(place: u64) -> Number {
        let each = 1 << EACH_BITS;
        let cut = |bits: u32, account_bits: u32| (place >> bits & mask(account_bits), place & mask(bits));
        let (series, (account, n)) = match place >> (KEYED_BITS - 3) {
            0b000 | 0b001 => (Series::Orders, cut(EACH_BITS, 24)),
            0b010 | 0b011 => {
                let (account, more) = cut(EARLY_ORDERS_BITS, EARLY_ACCOUNT_BITS);
                (Series::Orders, (account, more + each))
            }
            0b100 | 0b101 => (Series::Checkouts, cut(EACH_BITS, 24)),
            0b110 => {
                let (account, more) = cut(EARLY_CHECKOUTS_BITS, EARLY_ACCOUNT_BITS);
                (Series::Checkouts, (account, more + each))
            }
            _ => (Series::Checkouts, (GUESTS.0 as u64, place & mask(GUESTS_BITS))),
        };
        Number { series, account: AccountNo(account as i64), n: n as i64 }
    }
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

fn spell(mut value: u64) -> String {
    let mut text = [0u8; 12];
    text[..2].copy_from_slice(b"SG");
    for slot in text[2..].iter_mut().rev() {
        *slot = LETTERS[(value & 31) as usize];
        value >>= 5;
    }
    text.iter().map(|&letter| char::from(letter)).collect()
}

fn read(text: &str) -> Option<u64> {
    let letters = text.strip_prefix("SG").filter(|rest| rest.len() == 10)?;
    letters.bytes().try_fold(0, |value, byte| {
        Some(value << 5 | LETTERS.iter().position(|&letter| letter == byte)? as u64)
    })
}

/// How many rounds make a place look random without the key.
const KEYED_ROUNDS: u8 = 10;
/// The sizes of the two halves of a keyed place, in bits.
const WIDE: u32 = 25;
const NARROW: u32 = 24;

/// A Feistel network over 49 bits, whose halves take turns: a bijection for any `round`.
fn spread(place: u64, round: impl Fn(u8, u64) -> u64) -> u64 {
    let (mut wide, mut narrow) = (place >> NARROW, place & mask(NARROW));
    for turn in 0..KEYED_ROUNDS {
        mix(&mut wide, &mut narrow, turn, &round);
    }
    wide << NARROW | narrow
}

fn gather(spread: u64, round: impl Fn(u8, u64) -> u64) -> u64 {
    let (mut wide, mut narrow) = (spread >> NARROW, spread & mask(NARROW));
    for turn in (0..KEYED_ROUNDS).rev() {
        mix(&mut wide, &mut narrow, turn, &round);
    }
    wide << NARROW | narrow
}

/// Changes one half by the other; doing it twice restores the half.
fn mix(wide: &mut u64, narrow: &mut u64, turn: u8, round: impl Fn(u8, u64) -> u64) {
    if turn.is_multiple_of(2) {
        *wide ^= round(turn, *narrow) & mask(WIDE);
    } else {
        *narrow ^= round(turn, *wide) & mask(NARROW);
    }
}

const HALF_BITS: u32 = 25;
const ROUNDS: [u64; 4] = [0x51A1, 0x6A7E, 0xE51A, 0x0B2B];

/// The fixed rounds that all numbers were always made with. They are no secret: this source shows them.
fn scramble(value: u64) -> u64 {
    let (mut left, mut right) = (value >> HALF_BITS & mask(HALF_BITS), value & mask(HALF_BITS));
    for key in ROUNDS {
        (left, right) = (right, left ^ fixed_round(right, key));
    }
    left << HALF_BITS | right
}

fn unscramble(value: u64) -> u64 {
    let (mut left, mut right) = (value >> HALF_BITS & mask(HALF_BITS), value & mask(HALF_BITS));
    for key in ROUNDS.into_iter().rev() {
        (left, right) = (right ^ fixed_round(left, key), left);
    }
    left << HALF_BITS | right
}

fn fixed_round(half: u64, key: u64) -> u64 {
    let mixed = (half ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32 & mask(HALF_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rounds with a key that needs no library.
    fn keyed(key: u64) -> impl Fn(u8, u64) -> u64 {
        move |turn, half| fixed_round(half ^ key, u64::from(turn) + 1) ^ (half << 3 ^ key) >> 7
    }

    fn number(series: Series, account: i64, n: i64) -> Number {
        Number { series, account: AccountNo(account), n }
    }

    const OLD: [(i64, i64, &str); 6] = [
        (0, 1, "SGQSGYC8CABH"),
        (1, 1, "SGTVX9FFJMVT"),
        (1, 2, "SGN8AB48BFMM"),
        (2, 1, "SG4XTBX5KCJX"),
        (77, 123_456, "SG9BQ7CSNF8X"),
        (FIRST_ACCOUNTS - 1, (1 << 26) - 1, "SGFVVZQNSXRD"),
    ];

    const ALL: [Series; 3] = [Series::First, Series::Orders, Series::Checkouts];

    /// The edges of every shape, and any place inside.
    fn any_number() -> impl Strategy<Value = Number> {
        let edges = [0, 1, (1 << 20) - 1, 1 << 20, (1 << 23) - 1, 1 << 23, ACCOUNTS - 1];
        let account = prop_oneof![proptest::sample::select(edges.to_vec()), 0..ACCOUNTS];
        (0..3usize, account, any::<prop::sample::Index>(), 0..6i64).prop_map(
            |(series, account, place, edge)| {
                let series = ALL[series];
                let account = if series == Series::First { account % FIRST_ACCOUNTS } else { account };
                let room = series.room(AccountNo(account));
                let n = match edge {
                    0 => 1,
                    1 => (1 << EACH_BITS) - 1,
                    2 => (1 << EACH_BITS).min(room - 1),
                    3 => room - 1,
                    _ => (place.index(usize::MAX) as i64 & i64::MAX) % room,
                };
                number(series, account, n)
            },
        )
    }

    proptest! {
        #[test]
        fn numbers_lead_back(number in any_number(), key: u64) {
            let text = number.text(keyed(key)).unwrap();
            prop_assert!(text.len() == 12 && text.starts_with("SG") && !text[2..].contains(['I', 'L', 'O', 'U']), "{}", text);
            prop_assert_eq!(Number::parse(&text, keyed(key)), Some(number));
        }

        #[test]
        fn two_are_never_spelled_alike(one in any_number(), other in any_number(), key: u64) {
            prop_assume!(one != other);
            prop_assert_ne!(one.text(keyed(key)), other.text(keyed(key)));
        }

        /// Every text that is read as a number is spelled the same way again: no number has two names.
        #[test]
        fn every_spelling_is_one_number(value in 0..1u64 << 50, key: u64) {
            let text = spell(value);
            if let Some(number) = Number::parse(&text, keyed(key)) {
                prop_assert_eq!(number.text(keyed(key)), Some(text));
            }
        }

        #[test]
        fn another_key_reads_something_else(number in any_number(), key: u64) {
            prop_assume!(number.series != Series::First);
            let text = number.text(keyed(key)).unwrap();
            prop_assert_ne!(Number::parse(&text, keyed(key ^ 0x5555_0000_0001)), Some(number));
        }
    }

    #[test]
    fn what_was_shown_before_there_was_a_key_stays() {
        // Recorded from the program that made them.
        for (account, n, text) in OLD {
            let number = number(Series::First, account, n);
            for key in [0, 1, u64::MAX] {
                assert_eq!(number.text(keyed(key)).as_deref(), Some(text));
                assert_eq!(Number::parse(text, keyed(key)), Some(number));
            }
        }
    }

    #[test]
    fn guests_have_one_place_for_a_number() {
        for place in [0b10 << 47 | 5, 0b110 << 46 | 5] {
            assert_eq!(Number::at(place).account, GUESTS);
            let text = spell(scramble(1 << KEYED_BITS | spread(place, keyed(9))));
            assert_eq!(Number::parse(&text, keyed(9)), None);
        }
        let last = number(Series::Checkouts, 0, (1 << GUESTS_BITS) - 1);
        assert_eq!(Number::parse(&last.text(keyed(9)).unwrap(), keyed(9)), Some(last));
    }

    #[test]
    fn beyond_a_series_there_is_nothing() {
        for series in ALL {
            for account in [0, 1, 1 << 20, FIRST_ACCOUNTS - 1] {
                let room = series.room(AccountNo(account));
                assert!(number(series, account, room - 1).text(keyed(1)).is_some());
                for n in [room, i64::MAX, -1] {
                    assert_eq!(number(series, account, n).text(keyed(1)), None, "{series:?} {account} {n}");
                }
                assert!(!series.is_used_up(AccountNo(account), room / 2));
                assert!(series.is_used_up(AccountNo(account), room - SPARE));
                assert!(series.is_half_used_up(AccountNo(account), room / 2));
                assert!(series == Series::First || room / 2 >= Series::LEAST_HALF);
            }
            for account in [ACCOUNTS, -1, i64::MAX, i64::MIN] {
                assert_eq!(number(series, account, 1).text(keyed(1)), None);
            }
        }
        assert!(
            is_last_account(AccountNo(ACCOUNTS - SPARE)) && !is_last_account(AccountNo(ACCOUNTS - SPARE - 1))
        );
        for wrong in [
            "",
            "SG",
            "SG000000000",
            "SG00000000000",
            "XX0000000000",
            "SG000000000I",
            "sg0000000000",
            "SG00000000é",
        ] {
            assert_eq!(Number::parse(wrong, keyed(1)), None, "{wrong}");
        }
    }
}
