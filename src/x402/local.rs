//! Settling with a gas key of our own. The key pays for gas and nothing else: authorizations name their recipient,
//! so a thief can spend the gas that lies on it and nothing else. It is never shown, logged or put into an error.

use std::fmt;

use alloy_primitives::hex;
use k256::ecdsa::SigningKey;

use super::authorization::address_of;
use super::transaction::{SignedTransaction, Transaction};
use crate::chain::address;
use crate::chain::evm::Fees;
use crate::domain::network::AddressKind;

/// Nodes accept a replacement only if it raises both prices by a tenth; some want an eighth.
const RAISE_PERCENT: u64 = 15;

#[derive(Clone)]
pub struct GasKey {
    key: SigningKey,
    pub bytes: [u8; 20],
    pub address: String,
}

impl GasKey {
    /// Reads 32 bytes of hex, with or without `0x`.
    pub fn parse(text: &str) -> Option<GasKey> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        let key = SigningKey::from_slice(&bytes).ok()?;
        let bytes = address_of(key.verifying_key());
        Some(GasKey { key, bytes, address: address::text(AddressKind::Evm, &bytes) })
    }

    pub fn sign(&self, transaction: &Transaction) -> SignedTransaction {
        // One hash in 2^127 cannot be signed.
        transaction.sign(&self.key).expect("every hash can be signed")
    }
}

impl fmt::Debug for GasKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GasKey({})", self.address)
    }
}

/// What a transaction offers for each unit of gas, in wei.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    pub tip: u64,
    pub max_fee: u64,
}

impl Price {
    /// Enough for a base fee that doubles. `None` while gas costs more than we allow.
    pub fn fresh(fees: Fees, cap: u64) -> Option<Price> {
        let needed = fees.base.saturating_add(fees.tip);
        let max_fee = needed.saturating_add(fees.base).min(cap);
        (needed <= cap).then_some(Price { tip: fees.tip, max_fee })
    }

    /// Enough to take the place of a transaction that offers this. `None` when that is more than we allow.
    pub fn raised(self, fees: Fees, cap: u64) -> Option<Price> {
        let more = |price: u64| (u128::from(price) * u128::from(100 + RAISE_PERCENT)).div_ceil(100);
        let more = |price: u64| u64::try_from(more(price)).unwrap_or(u64::MAX).max(price.saturating_add(1));
        let fresh = Price::fresh(fees, cap);
        let tip = more(self.tip).max(fresh.map_or(0, |fresh| fresh.tip));
        let max_fee = more(self.max_fee).max(fresh.map_or(0, |fresh| fresh.max_fee)).max(tip);
        (max_fee <= cap).then_some(Price { tip, max_fee })
    }

    /// The most that this much gas can cost, in gwei.
    pub fn gwei_for(self, gas: u64) -> i64 {
        let gwei = (u128::from(self.max_fee) * u128::from(gas)).div_ceil(1_000_000_000);
        i64::try_from(gwei).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_to_their_address_and_stay_hidden() {
        let text = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
        let key = GasKey::parse(text).unwrap();
        assert_eq!(key.address, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
        assert_eq!(GasKey::parse(&text[2..]).unwrap().address, key.address);
        assert_eq!(format!("{key:?}"), "GasKey(0x70997970C51812dc3A010C7d01b50e0d17dc79C8)");
        for wrong in ["", "0x12", &"0".repeat(64), &"f".repeat(64), &text[..64]] {
            assert!(GasKey::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn prices_rise_until_the_cap() {
        let fees = Fees { base: 100, tip: 7 };
        let mut price = Price::fresh(fees, 1_000).unwrap();
        assert_eq!(price, Price { tip: 7, max_fee: 207 });
        assert_eq!(Price::fresh(fees, 150), Some(Price { tip: 7, max_fee: 150 }));
        assert_eq!(Price::fresh(fees, 106), None);
        let mut rises = 0;
        while let Some(next) = price.raised(fees, 1_000) {
            assert!(next.tip * 10 >= price.tip * 11 && next.max_fee * 10 >= price.max_fee * 11);
            assert!(next.max_fee <= 1_000);
            (price, rises) = (next, rises + 1);
        }
        assert_eq!(rises, 11);
        // When gas became dearer meanwhile, a small rise would not help.
        let dear = Fees { base: 400, tip: 9 };
        assert_eq!(Price { tip: 1, max_fee: 2 }.raised(dear, 10_000), Some(Price { tip: 9, max_fee: 809 }));
        assert_eq!(Price { tip: 1, max_fee: 1_500_000_000 }.gwei_for(80_001), 120_002);
    }
}
