//! Receipts that fit their logs, kept because the newest blocks are read many times.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::wire::{self, Hash, Spotted};
use crate::chain::{Scanned, Watched, address};
use crate::domain::transfer::{Sighting, TransferId};

/// How many transfers are remembered, over all receipts: about ten megabytes.
const REMEMBERED: usize = 20_000;

/// A transaction and its block. This pair never changes: in another block it is another place.
pub(super) type Place = (Hash, Hash);

/// The contents of a receipt.
pub(super) struct Told {
    pub receipt: wire::Receipt,
    pub sightings: Vec<Sighting>,
}

impl Told {
    pub fn shows(&self, log: &Spotted) -> bool {
        self.receipt.movements.iter().any(|(_, movement)| *movement == log.movement)
    }
}

/// Receipts that were read before, the oldest dropped first.
#[derive(Default)]
pub(super) struct Known {
    told: HashMap<Place, Arc<Told>>,
    order: VecDeque<Place>,
    weight: usize,
}

impl Known {
    pub fn add(&mut self, place: Place, told: Arc<Told>) {
        let weight = |told: &Told| told.sightings.len() + 1;
        self.weight += weight(&told);
        if let Some(before) = self.told.insert(place, told) {
            self.weight -= weight(&before);
            return;
        }
        self.order.push_back(place);
        while self.weight > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.weight -= self.told.remove(&oldest).map_or(0, |told| weight(&told));
        }
    }

    /// One node's receipt serves for all nodes: when another node shows a different one, it is forgotten and read anew.
    pub fn drop_if_other(&mut self, receipt: &wire::Receipt) {
        let place = (receipt.tx_hash, receipt.block_hash);
        if self.told.get(&place).is_some_and(|told| told.receipt != *receipt) {
            self.forget(&place);
        }
    }

    pub fn get(&self, place: &Place) -> Option<&Arc<Told>> {
        self.told.get(place)
    }

    pub fn forget(&mut self, place: &Place) {
        if let Some(told) = self.told.remove(place) {
            self.weight -= told.sightings.len() + 1;
            self.order.retain(|other| other != place);
        }
    }

    /// A transaction that another node showed in these blocks and this scan did not.
    pub fn missed(&self, from: i64, scanned: &Scanned, watched: &Watched) -> Option<Place> {
        let shown: HashSet<&TransferId> = scanned.sightings.iter().map(|seen| &seen.id).collect();
        let ours = |seen: &Sighting| {
            address::bytes(watched.kind(), &seen.recipient)
                .is_some_and(|recipient| watched.contains(&recipient))
        };
        let missed = |told: &&Arc<Told>| {
            (from..=scanned.last.number).contains(&told.receipt.block_number)
                && told.sightings.iter().any(|seen| !shown.contains(&seen.id) && ours(seen))
        };
        let missed = self.told.values().find(missed)?;
        Some((missed.receipt.tx_hash, missed.receipt.block_hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut known = Known::default();
        for n in 0..30_000u32 {
            let mut hash = [0; 32];
            hash[..4].copy_from_slice(&n.to_be_bytes());
            let receipt = wire::Receipt {
                tx_hash: hash,
                block_hash: hash,
                block_number: 1,
                index: 0,
                succeeded: true,
                movements: Vec::new(),
                authorized: Vec::new(),
            };
            known.add((hash, hash), Arc::new(Told { receipt, sightings: Vec::new() }));
        }
        assert_eq!((known.told.len(), known.order.len(), known.weight), (REMEMBERED, REMEMBERED, REMEMBERED));
    }
}
