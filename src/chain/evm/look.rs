//! Reads a range of blocks from one node. The end of the range is asked for before and after the logs: a node that has
//! not got the block answers "no logs" as readily as one that has. A transfer's position is taken from its receipt. A
//! node that finds a single block too much is asked for less of it, down to the receipts of all its transactions.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::json;

use super::known::{Known, Place, Told};
use super::wire::{self, Spotted};
use super::{Evm, block_call, lags, receipt_call};
use crate::chain::rpc::{Call, Provider, RpcError};
use crate::chain::{Scanned, Watched};
use crate::domain::transfer::{Block, Sighting};

/// The most questions for named recipients; beyond that it is cheaper to read all transfers and pick ours.
const MOST_CHUNKS: usize = 8;
/// How many receipts are asked for at once, each with its block.
const RECEIPTS: usize = 10;

impl Evm {
    /// Reads as much of the range as the node allows, from its beginning.
    pub(super) async fn scan_at(
        &self,
        node: &Provider,
        from: i64,
        to: i64,
        watched: &Watched,
    ) -> Result<Scanned, RpcError> {
        let (asked, (last, spotted)) = loop {
            let asked = node.window().size().min(to - from + 1);
            match self.look(node, from, from + asked - 1, watched).await {
                Ok(found) => break (asked, found),
                Err(error) if wants_less(&error) && asked > 1 => node.window().shrink(asked),
                Err(error) if wants_less(&error) => {
                    break (asked, self.look_closely(node, from, watched).await?);
                }
                Err(error) => {
                    // A timeout may mean that the range was too wide, but another node may be quicker.
                    if error == RpcError::TimedOut {
                        node.window().shrink(asked);
                    }
                    return Err(error);
                }
            }
        };
        let sightings = self.sightings(node, &spotted, watched).await?;
        node.window().worked(asked);
        Ok(Scanned { last, sightings })
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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
            (Some(_), Some(_)) => return Err(changed_its_mind(to)),
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

    /// Whether these are too many recipients to name in the questions.
    pub(super) fn takes_all(&self, watched: &Watched) -> bool {
        watched.len().div_ceil(self.addresses_per_call) > MOST_CHUNKS
    }

    fn log_calls(&self, from: i64, to: i64, watched: &Watched) -> Vec<Call> {
        let contracts = self.contracts.as_hex();
        if self.takes_all(watched) {
            return vec![log_call(from, to, &contracts, None)];
        }
        let chunks = watched.addresses().chunks(self.addresses_per_call);
        chunks.map(|some| log_call(from, to, &contracts, Some(some))).collect()
    }

    /// Reads one block that is too much for a single question.
    async fn look_closely(
        &self,
        node: &Provider,
        number: i64,
        watched: &Watched,
    ) -> Result<(Block, Vec<Spotted>), RpcError> {
        let block = self.block_at(node, number).await?.ok_or_else(|| lags(number))?;
        let spotted = match self.look_in_parts(node, number, watched).await? {
            Some(spotted) => spotted,
            None => self.look_at_receipts(node, &block, watched).await?,
        };
        if self.block_at(node, number).await?.as_ref() != Some(&block) {
            return Err(changed_its_mind(number));
        }
        Ok((block, spotted))
    }

    /// Asks for each contract by itself, and fewer recipients at a time. `None` when one recipient is still too much.
    async fn look_in_parts(
        &self,
        node: &Provider,
        number: i64,
        watched: &Watched,
    ) -> Result<Option<Vec<Spotted>>, RpcError> {
        if self.takes_all(watched) {
            return Ok(None);
        }
        let contracts = self.contracts.as_hex();
        let all = || watched.addresses().chunks(self.addresses_per_call);
        let mut parts: Vec<(&String, &[[u8; 20]])> =
            contracts.iter().flat_map(|contract| all().map(move |some| (contract, some))).collect();
        let mut spotted = Vec::new();
        while let Some((contract, some)) = parts.pop() {
            let call = log_call(number, number, std::slice::from_ref(contract), Some(some));
            match node.call_all(&[call]).await {
                Ok(answers) => {
                    for logs in &answers {
                        let found = wire::parse_logs(logs.get(), &self.contracts, watched);
                        spotted.extend(found.map_err(RpcError::Unreadable)?);
                    }
                }
                Err(error) if !wants_less(&error) => return Err(error),
                Err(_) if some.len() > 1 => {
                    let (one, other) = some.split_at(some.len() / 2);
                    parts.extend([(contract, one), (contract, other)]);
                }
                Err(_) => return Ok(None),
            }
        }
        if spotted.iter().any(|spotted| spotted.block_number != number) {
            return Err(RpcError::Doubtful("shows logs of blocks that it was not asked for".into()));
        }
        Ok(Some(spotted))
    }

    /// Reads all receipts of a block; one by one where the node cannot give them all at once.
    async fn look_at_receipts(
        &self,
        node: &Provider,
        block: &Block,
        watched: &Watched,
    ) -> Result<Vec<Spotted>, RpcError> {
        let number = wire::as_quantity(block.number);
        let read = |raw: &str| wire::receipts(raw, &self.contracts).map_err(RpcError::Unreadable);
        let receipts = match node.call_all(&[("eth_getBlockReceipts", json!([number]))]).await {
            Ok(answers) => read(answers[0].get())?,
            Err(RpcError::Refused(..) | RpcError::TooMuch(_)) => {
                let answers = node.call_all(&[block_call(&number)]).await?;
                let hashes = wire::transactions(answers[0].get()).map_err(RpcError::Unreadable)?;
                let calls: Vec<Call> = hashes.iter().map(|hash| receipt_call(hash)).collect();
                let mut receipts = Vec::new();
                for answer in node.call_all(&calls).await? {
                    let receipt =
                        wire::receipt(answer.get(), &self.contracts).map_err(RpcError::Unreadable)?;
                    receipts.push(receipt.ok_or_else(|| changed_its_mind(block.number))?);
                }
                receipts
            }
            Err(error) => return Err(error),
        };
        let elsewhere = |receipt: &wire::Receipt| wire::spell(self.kind, &receipt.block_hash) != block.hash;
        if receipts.iter().any(elsewhere) {
            return Err(changed_its_mind(block.number));
        }
        Ok(receipts.iter().flat_map(|receipt| receipt.spotted(watched)).collect())
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
                match known.get(&place) {
                    Some(found) if found.shows(log) => drop(told.insert(place, found.clone())),
                    // A known receipt that lacks the log was wrong; the one read now replaces it.
                    Some(_) | None => drop(unknown.insert((log.block_number, place))),
                }
            }
        }
        let unknown: Vec<(i64, Place)> = unknown.into_iter().collect();
        for some in unknown.chunks(RECEIPTS) {
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

fn log_call(from: i64, to: i64, contracts: &[String], recipients: Option<&[[u8; 20]]>) -> Call {
    let (from, to) = (wire::as_quantity(from), wire::as_quantity(to));
    let topics = match recipients {
        Some(some) => json!([wire::TRANSFER, null, some.iter().map(wire::padded).collect::<Vec<String>>()]),
        None => json!([wire::TRANSFER]),
    };
    ("eth_getLogs", json!([{"fromBlock": from, "toBlock": to, "address": contracts, "topics": topics}]))
}

/// Some nodes call a range that is too wide for them a wrong parameter.
fn wants_less(error: &RpcError) -> bool {
    matches!(error, RpcError::TooMuch(_) | RpcError::Refused(-32602, _))
}

fn changed_its_mind(block: i64) -> RpcError {
    RpcError::Doubtful(format!("changed its mind about block {block}"))
}
