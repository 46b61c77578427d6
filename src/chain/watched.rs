//! The addresses that a scan looks for. A busy chain shows us thousands of transfers for each one of ours, so a
//! look-up must cost next to nothing, and a hundred thousand addresses must fit into a few megabytes: the addresses lie
//! in a row, and so does their spelling.

use std::collections::hash_map::{Entry, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::address;
use crate::domain::network::AddressKind;

#[derive(Clone, Debug)]
pub struct Watched {
    kind: AddressKind,
    addresses: Vec<[u8; 20]>,
    /// All spellings, one after the other; those of one kind have equal length.
    names: String,
    /// Where an address lies in `addresses`.
    places: HashMap<[u8; 20], u32, BuildHasherDefault<OwnBytes>>,
}

/// Addresses are hashes, so their own bytes spread them. Strangers can choose what is looked up, but never what is
/// stored, and a look-up passes only stored ones.
#[derive(Default)]
struct OwnBytes(u64);

impl Hasher for OwnBytes {
    fn write(&mut self, address: &[u8]) {
        self.0 = address.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    }

    /// The length, which is the same for all.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Watched {
    /// Panics on a text that is not an address: we made them all, and an address that nobody watches is money lost.
    pub fn new(kind: AddressKind, addresses: impl IntoIterator<Item = String>) -> Watched {
        let (names, places) = (String::new(), HashMap::default());
        let mut watched = Watched { kind, addresses: Vec::new(), names, places };
        addresses.into_iter().for_each(|text| watched.add(&text));
        watched
    }

    pub fn kind(&self) -> AddressKind {
        self.kind
    }

    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    pub fn contains(&self, address: &[u8; 20]) -> bool {
        self.places.contains_key(address)
    }

    /// The address in the spelling that was given to us.
    pub fn name(&self, address: &[u8; 20]) -> Option<&str> {
        let (width, index) = (width(self.kind), *self.places.get(address)? as usize);
        Some(&self.names[index * width..(index + 1) * width])
    }

    /// In the order in which they were added.
    pub fn addresses(&self) -> &[[u8; 20]] {
        &self.addresses
    }

    /// Panics as `new` does.
    pub fn add(&mut self, text: &str) {
        let address = address::bytes(self.kind, text).expect("an address on record is well formed");
        assert_eq!(text.len(), width(self.kind), "addresses of a kind are equally long");
        let Entry::Vacant(place) = self.places.entry(address) else { return };
        place.insert(self.addresses.len() as u32);
        self.addresses.push(address);
        self.names.push_str(text);
    }
}

fn width(kind: AddressKind) -> usize {
    match kind {
        AddressKind::Evm => 42,
        AddressKind::Tron => 34,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::keccak256;

    fn made(number: u32) -> [u8; 20] {
        keccak256(number.to_be_bytes())[..20].try_into().unwrap()
    }

    #[test]
    fn finds_all_of_many_and_no_others() {
        for kind in AddressKind::ALL {
            let texts: Vec<String> = (0..3_000).map(|n| address::text(kind, &made(n))).collect();
            let twice = texts.iter().chain(&texts[..100]).cloned();
            let watched = Watched::new(kind, twice);
            assert_eq!(watched.len(), 3_000);
            for n in 0..3_000 {
                assert_eq!(watched.name(&made(n)), Some(texts[n as usize].as_str()));
                assert!(!watched.contains(&made(n + 3_000)));
            }
            assert!(watched.addresses().iter().map(|one| watched.name(one).unwrap()).eq(texts.iter()));
        }
    }

    #[test]
    fn none_and_one() {
        let none = Watched::new(AddressKind::Evm, []);
        assert!(none.is_empty() && !none.contains(&[0; 20]));
        let lower = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
        let one = Watched::new(AddressKind::Evm, [lower.to_string()]);
        let bytes = address::bytes(AddressKind::Evm, lower).unwrap();
        assert_eq!(one.name(&bytes), Some(lower), "as it was given");
    }

    #[test]
    #[should_panic(expected = "well formed")]
    fn an_address_on_record_is_an_address() {
        Watched::new(AddressKind::Tron, ["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266".to_string()]);
    }
}
