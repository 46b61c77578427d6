//! The addresses that a scan looks for. A busy chain shows thousands of transfers for each one of ours, so a look-up
//! must cost next to nothing, and a hundred thousand addresses must fit into a few megabytes: the table holds indexes
//! into a list of addresses, and another list holds their spelling.

use crate::domain::network::AddressKind;

use super::address;

#[derive(Clone, Debug)]
pub struct Watched {
    kind: AddressKind,
    addresses: Vec<[u8; 20]>,
    /// All spellings, one after the other; those of one kind have equal length.
    names: String,
    /// An open hash table: the index of an address in `addresses`, counted from 1, at the place that its own bytes give
    /// or the next free one. Its length is a power of two, and more than half of it is free.
    places: Vec<u32>,
}

impl Watched {
    /// Panics on a text that is not an address: we made them all, and an address that nobody watches is money lost.
    pub fn new(kind: AddressKind, addresses: impl IntoIterator<Item = String>) -> Watched {
        let texts = addresses.into_iter();
        let mut watched = Watched { kind, addresses: Vec::new(), names: String::new(), places: vec![0; 16] };
        for text in texts {
            watched.add(&text);
        }
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
        self.find(address).is_ok()
    }

    /// The address in the spelling that was given to us.
    pub fn name(&self, address: &[u8; 20]) -> Option<&str> {
        self.find(address).ok().map(|index| self.name_at(index))
    }

    /// In the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8; 20], &str)> {
        self.addresses.iter().enumerate().map(|(index, address)| (address, self.name_at(index)))
    }

    /// Only the bytes, in the same order.
    pub fn addresses(&self) -> &[[u8; 20]] {
        &self.addresses
    }

    fn name_at(&self, index: usize) -> &str {
        let width = width(self.kind);
        &self.names[index * width..(index + 1) * width]
    }

    /// Panics as `new` does.
    pub fn add(&mut self, text: &str) {
        let address = address::bytes(self.kind, text).expect("an address on record is well formed");
        assert_eq!(text.len(), width(self.kind), "addresses of a kind are equally long");
        let Err(free) = self.find(&address) else { return };
        self.addresses.push(address);
        self.names.push_str(text);
        self.places[free] = self.addresses.len() as u32;
        if self.addresses.len() * 2 >= self.places.len() {
            self.spread();
        }
    }

    fn spread(&mut self) {
        self.places = vec![0; self.places.len() * 2];
        for index in 0..self.addresses.len() {
            if let Err(free) = self.find(&self.addresses[index]) {
                self.places[free] = index as u32 + 1;
            }
        }
    }

    /// The index of the address in `addresses`, or the free place that it would take. Addresses are hashes, so their
    /// own bytes spread them; strangers choose what is looked up, but never what is stored, and a look-up passes only
    /// stored addresses.
    fn find(&self, address: &[u8; 20]) -> Result<usize, usize> {
        let mask = self.places.len() - 1;
        let mut at = u32::from_le_bytes([address[4], address[5], address[6], address[7]]) as usize & mask;
        loop {
            match self.places[at] {
                0 => return Err(at),
                place if self.addresses[place as usize - 1] == *address => return Ok(place as usize - 1),
                _ => at = (at + 1) & mask,
            }
        }
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
            assert!(watched.iter().map(|(_, name)| name).eq(texts.iter()));
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
