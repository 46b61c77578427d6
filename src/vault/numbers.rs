//! The key of order numbers and of the ids of events and deliveries. It is made once for a database and kept there, sealed: a number once
//! shown never changes, even if the server secret does.

use ring::hmac;

use super::{Vault, hashing_key, hex, keyed, random};
use crate::domain::checkout::Checkout;
use crate::domain::event;
use crate::domain::number::Number;
use crate::domain::order::Order;
use crate::domain::webhook;
use crate::error::{Error, Result};

/// The purpose that a sealed key is bound to.
const PURPOSE: &[u8] = b"simgate order numbers";

/// The rounds of events begin here, so that they have nothing in common with those of numbers.
const EVENT_ROUNDS: u8 = 128;
/// And those of deliveries here.
const DELIVERY_ROUNDS: u8 = 160;

/// Writes and reads order numbers and the ids of events and deliveries.
#[derive(Clone)]
pub struct Numbers(hmac::Key);

impl Numbers {
    fn new(key: &[u8]) -> Numbers {
        Numbers(hashing_key(key))
    }

    /// Makes a new key, sealed for storage.
    pub fn make(vault: &Vault) -> Result<String> {
        let key = [random().to_be_bytes(), random().to_be_bytes()].concat();
        Ok(hex(&vault.encrypt(PURPOSE, &key)?))
    }

    /// Opens a stored key.
    pub fn open(vault: &Vault, sealed: &str) -> Result<Numbers> {
        let sealed = alloy_primitives::hex::decode(sealed).map_err(Error::fault)?;
        let key = vault
            .decrypt(PURPOSE, &sealed)
            .ok_or_else(|| Error::fault("the key of order numbers does not open with this secret"))?;
        Ok(Numbers::new(&key))
    }

    fn round(&self, turn: u8, half: u64) -> u64 {
        let hash = keyed(&self.0, &[&[turn], &half.to_be_bytes()]);
        u64::from_be_bytes(*hash.first_chunk().expect("8 of 32 bytes"))
    }

    fn text(&self, number: Number) -> Option<String> {
        number.text(|turn, half| self.round(turn, half))
    }

    /// The number that this text spells, whether it is in use or not.
    pub fn parse(&self, text: &str) -> Option<Number> {
        Number::parse(text, |turn, half| self.round(turn, half))
    }

    /// The reference for people; a top-up has none of its own.
    pub fn of_order(&self, order: &Order) -> Option<String> {
        self.text(order.number?)
    }

    /// The reference for people, which its order will have too.
    pub fn of_checkout(&self, checkout: &Checkout) -> String {
        self.text(checkout.number()).unwrap_or_default()
    }

    /// The id of the event at this place.
    pub fn event_id(&self, place: i64) -> String {
        event::id_of(event::PREFIX, place, |turn, half| self.round(EVENT_ROUNDS + turn, half))
    }

    /// The place that an event's id names, whether there is an event or not.
    pub fn event_place(&self, id: &str) -> Option<i64> {
        event::place_of(event::PREFIX, id, |turn, half| self.round(EVENT_ROUNDS + turn, half))
    }

    /// The id of the delivery with this number.
    pub fn delivery_id(&self, no: i64) -> String {
        event::id_of(webhook::DELIVERY_PREFIX, no, |turn, half| self.round(DELIVERY_ROUNDS + turn, half))
    }

    /// The number that a delivery's id names, whether there is a delivery or not.
    pub fn delivery_no(&self, id: &str) -> Option<i64> {
        event::place_of(webhook::DELIVERY_PREFIX, id, |turn, half| self.round(DELIVERY_ROUNDS + turn, half))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::domain::ids::AccountNo;
    use crate::domain::number::Series;

    fn order(n: i64) -> Number {
        Number { series: Series::Orders, account: AccountNo(3), n }
    }

    #[test]
    fn a_key_is_kept_sealed() {
        let (vault, other) = (Vault::new("one"), Vault::new("two"));
        let sealed = Numbers::make(&vault).unwrap();
        let (numbers, again) =
            (Numbers::open(&vault, &sealed).unwrap(), Numbers::open(&vault, &sealed).unwrap());
        let text = numbers.text(order(7)).unwrap();
        assert_eq!(again.text(order(7)).as_ref(), Some(&text));
        assert_eq!(again.parse(&text), Some(order(7)));
        assert!(Numbers::open(&other, &sealed).is_err());
        assert!(Numbers::open(&vault, &sealed[2..]).is_err() && Numbers::open(&vault, "").is_err());
        // Another database has another key.
        let stranger = Numbers::open(&vault, &Numbers::make(&vault).unwrap()).unwrap();
        assert_ne!(stranger.text(order(7)), Some(text.clone()));
        assert_ne!(stranger.parse(&text), Some(order(7)));
    }

    #[test]
    fn neighbours_look_like_strangers() {
        let numbers = Numbers::new(b"key");
        assert_eq!(numbers.text(order(7)).as_deref(), Some("SGY02XXKBDH0"));
        let texts: Vec<String> = (1..=2_000).map(|n| numbers.text(order(n)).unwrap()).collect();
        assert_eq!(texts.iter().collect::<HashSet<_>>().len(), texts.len());
        // Two random numbers share a third of a letter on average, of ten.
        let shared: usize = texts
            .windows(2)
            .map(|pair| pair[0][2..].bytes().zip(pair[1][2..].bytes()).filter(|(a, b)| a == b).count())
            .sum();
        let expected = 1_999.0 * 10.0 / 32.0;
        assert!((expected * 0.7..expected * 1.3).contains(&(shared as f64)), "{shared}");
    }
}
