//! Reads a range of blocks from one node. The end of the range is asked for before and after the logs, in the same
//! batch: a node that has not got the block answers "no logs" as readily as one that has. A transfer's position is
//! taken from its receipt; receipts that fit their logs are kept, because the newest blocks are read again and again.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::json;

use super::wire::{self, Hash, Spotted};
use super::{BATCH, Evm, block_call, lags, receipt_call};
use crate::chain::rpc::{Call, Provider, RpcError};
use crate::chain::{Scanned, Watched};
use crate::domain::transfer::{Block, Sighting};

/// Beyond so many questions it is cheaper to take all transfers and look for ours in them.
const MOST_CHUNKS: usize = 8;
/// Of remembered transfers, over all receipts: about ten megabytes.
const REMEMBERED: usize = 20_000;

/// How many blocks a node lets us ask for: learnt, since each provider has its own limit and changes it.
pub struct Window {
    size: i64,
    successes: u32,
}

const FIRST_WINDOW: i64 = 500;
const WIDEST_WINDOW: i64 = 10_000;
const SUCCESSES_TO_GROW: u32 = 20;

impl Default for Window {
    fn default() -> Window {
        Window { size: FIRST_WINDOW, successes: 0 }
    }
}

impl Window {
    fn shrink(&mut self, asked: i64) {
        *self = Window { size: (asked.min(self.size) / 2).max(1), successes: 0 };
    }

    /// Only a question that used the whole window tells anything about it.
    fn worked(&mut self, asked: i64) {
        if asked < self.size {
            return;
        }
        self.successes += 1;
        if self.successes >= SUCCESSES_TO_GROW {
            *self = Window { size: (self.size * 2).min(WIDEST_WINDOW), successes: 0 };
        }
    }
}

/// A transaction in a certain block, which never changes: in another block it is another one.
type Place = (Hash, Hash);

/// What a receipt said.
struct Told {
    receipt: wire::Receipt,
    sightings: Vec<Sighting>,
}

impl Told {
    fn shows(&self, log: &Spotted) -> bool {
        self.receipt.movements.iter().any(|(_, movement)| *movement == log.movement)
    }
}

/// Receipts that were read before, the oldest dropped first.
#[derive(Default)]
pub struct Known {
    told: HashMap<Place, Arc<Told>>,
    order: VecDeque<Place>,
    weight: usize,
}

impl Known {
    fn add(&mut self, place: Place, told: Arc<Told>) {
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

    /// One node's receipt answers for all: as soon as another tells it differently, it is read anew.
    pub(super) fn drop_if_other(&mut self, receipt: &wire::Receipt) {
        let place = (receipt.tx_hash, receipt.block_hash);
        if self.told.get(&place).is_some_and(|told| told.receipt != *receipt)
            && let Some(told) = self.told.remove(&place)
        {
            self.weight -= told.sightings.len() + 1;
            self.order.retain(|other| *other != place);
        }
    }
}

impl Evm {
    /// Sees as much of the range as the node allows, from its beginning.
    pub(super) async fn scan_at(
        &self,
        node: &Provider,
        from: i64,
        to: i64,
        watched: &Watched,
    ) -> Result<Scanned, RpcError> {
        loop {
            let asked = self.window(node).size.min(to - from + 1);
            match self.look(node, from, from + asked - 1, watched).await {
                Ok((last, spotted)) => {
                    let sightings = self.sightings(node, &spotted, watched).await?;
                    self.window(node).worked(asked);
                    return Ok(Scanned { last, sightings });
                }
                Err(RpcError::TooMuch(_)) if asked > 1 => self.window(node).shrink(asked),
                Err(error) => {
                    // Too much to do in time is too much as well, but here another node may be quicker.
                    if error == RpcError::TimedOut {
                        self.window(node).shrink(asked);
                    }
                    return Err(error);
                }
            }
        }
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn window(&self, node: &Provider) -> MutexGuard<'_, Window> {
        self.windows[node.index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One batch: the last block, the logs, and the last block once more.
    async fn look(
        &self,
        node: &Provider,
        from: i64,
        to: i64,
        watched: &Watched,
    ) -> Result<(Block, Vec<Spotted>), RpcError> {
        let end = block_call(&wire::as_quantity(to));
        let mut calls = vec![end.clone()];
        calls.extend(self.log_calls(from, to, watched));
        calls.push(end);
        let answers = node.call_all(&calls).await?;
        let before = self.block_of(&answers[0])?;
        let after = self.block_of(&answers[answers.len() - 1])?;
        let block = match (before, after) {
            (Some(before), Some(after)) if before == after && before.number == to => before,
            (Some(_), Some(_)) => {
                return Err(RpcError::Doubtful(format!("changed its mind about block {to}")));
            }
            _ => return Err(lags(to)),
        };
        let mut spotted = Vec::new();
        for logs in &answers[1..answers.len() - 1] {
            spotted.extend(
                wire::parse_logs(logs.get(), &self.contracts, watched).map_err(RpcError::Unreadable)?,
            );
        }
        if spotted.iter().any(|spotted| spotted.block_number < from || spotted.block_number > to) {
            return Err(RpcError::Doubtful("shows logs of blocks that it was not asked for".into()));
        }
        Ok((block, spotted))
    }

    fn log_calls(&self, from: i64, to: i64, watched: &Watched) -> Vec<Call> {
        let call = |topics| {
            let (from, to) = (wire::as_quantity(from), wire::as_quantity(to));
            let filter = json!({"fromBlock": from, "toBlock": to, "address": self.contracts.as_hex(), "topics": topics});
            ("eth_getLogs", json!([filter]))
        };
        if watched.len().div_ceil(self.addresses_per_call) > MOST_CHUNKS {
            return vec![call(json!([wire::TRANSFER]))];
        }
        let chunks = watched.addresses().chunks(self.addresses_per_call);
        chunks
            .map(|some| {
                let recipients: Vec<String> = some.iter().map(wire::padded).collect();
                call(json!([wire::TRANSFER, null, recipients]))
            })
            .collect()
    }

    /// Everything that the receipts of these logs show for watched addresses, in the order of the chain.
    async fn sightings(
        &self,
        node: &Provider,
        spotted: &[Spotted],
        watched: &Watched,
    ) -> Result<Vec<Sighting>, RpcError> {
        let mut told = HashMap::new();
        let mut unknown = BTreeSet::new();
        {
            let known = self.known();
            for log in spotted {
                let place = (log.tx_hash, log.block_hash);
                match known.told.get(&place) {
                    Some(found) if found.shows(log) => drop(told.insert(place, found.clone())),
                    // One that lacks the log was wrong, and the next one takes its place.
                    Some(_) | None => drop(unknown.insert((log.block_number, place))),
                }
            }
        }
        let unknown: Vec<(i64, Place)> = unknown.into_iter().collect();
        for some in unknown.chunks(BATCH / 2) {
            told.extend(self.receipts(node, some).await?);
        }
        if spotted.iter().any(|log| !told[&(log.tx_hash, log.block_hash)].shows(log)) {
            return Err(RpcError::Doubtful("shows a log that its receipt does not have".into()));
        }
        for (_, place) in unknown {
            self.known().add(place, told[&place].clone());
        }
        let mut all: Vec<&Arc<Told>> = told.values().collect();
        all.sort_by_key(|told| (told.receipt.block_number, told.receipt.index));
        let ours = all.into_iter().flat_map(|told| &told.sightings).filter_map(|sighting| {
            let recipient = crate::chain::address::bytes(self.kind, &sighting.recipient)?;
            let name = watched.name(&recipient)?;
            Some(Sighting { recipient: name.to_string(), ..sighting.clone() })
        });
        Ok(ours.collect())
    }

    /// Receipts with their blocks; each must be where its log said.
    async fn receipts(
        &self,
        node: &Provider,
        wanted: &[(i64, Place)],
    ) -> Result<Vec<(Place, Arc<Told>)>, RpcError> {
        let mut calls = Vec::new();
        for (number, (tx_hash, _)) in wanted {
            calls.push(receipt_call(&wire::as_hash(&wire::spell(self.kind, tx_hash))));
            calls.push(block_call(&wire::as_quantity(*number)));
        }
        let answers = node.call_all(&calls).await?;
        let mut found = Vec::new();
        for ((number, place), answers) in wanted.iter().zip(answers.chunks(2)) {
            let moved = || RpcError::Doubtful(format!("shows a log that is not in block {number} any more"));
            let receipt = wire::receipt(answers[0].get(), &self.contracts).map_err(RpcError::Unreadable)?;
            let receipt = receipt.filter(|r| (r.tx_hash, r.block_hash) == *place).ok_or_else(moved)?;
            let block = self.block_of(&answers[1])?;
            let block =
                block.filter(|block| block.hash == wire::spell(self.kind, &place.1)).ok_or_else(moved)?;
            if !receipt.succeeded || receipt.block_number != *number || block.number != *number {
                return Err(RpcError::Doubtful("shows a receipt that contradicts its log".into()));
            }
            let sightings = self.sightings_of(&receipt, &block);
            found.push((*place, Arc::new(Told { receipt, sightings })));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shrinks_at_once_and_grows_slowly() {
        let mut window = Window::default();
        window.shrink(500);
        assert_eq!(window.size, 250);
        // What was asked for was less than it might have been.
        window.shrink(10);
        assert_eq!(window.size, 5);
        for _ in 0..SUCCESSES_TO_GROW {
            window.worked(4);
        }
        assert_eq!(window.size, 5);
        for _ in 0..SUCCESSES_TO_GROW {
            window.worked(5);
        }
        assert_eq!(window.size, 10);
        for _ in 0..10 {
            window.shrink(window.size);
        }
        assert_eq!(window.size, 1);
    }

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
