//! A real network, reached through the JSON-RPC of its nodes; TRON's nodes speak it too, and `tron.rs` holds the
//! differences. Any node may lie, lag or fall silent: `asking.rs` says which to believe, and contradictory answers
//! become `Trouble`. `check.rs` asks whether a node is on the right chain, `scan.rs` reads ranges of blocks, `look.rs`
//! reads a range from one node, `wire.rs` reads the JSON.

mod asking;
mod calls;
mod check;
mod known;
mod look;
mod scan;
mod wire;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::hex;
use futures_util::future::join_all;
use serde_json::json;
use serde_json::value::RawValue;

use self::known::Known;
use self::scan::Passes;
use super::rpc::{Call, Provider, RpcAnswer, RpcError};
use super::{Chain, Demoted, Mined, Reply, Scanned, Tip, Token, Trouble, Watched, Witness, address, tron};
use crate::clock::Clock;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::transfer::{Block, Sighting, TransferId};

pub use self::calls::{Broadcast, Called, Fees, GasPurse, Paid};
pub use self::wire::{Contracts, Movement, Spotted, abi_text, parse_logs};

/// The newest block, in the words of nodes.
const LATEST: &str = "latest";
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
/// How far the heads of several nodes behind one URL may differ.
const FLICKER: Duration = Duration::from_secs(4);
/// How far a block's clock may be ahead of ours.
const FUTURE_MS: i64 = 2 * 3_600_000;

pub struct EvmSettings {
    pub network: Network,
    /// URLs of nodes, the most trusted first.
    pub providers: Vec<String>,
    /// TRON's gateways take the key in a header; others take it in the URL.
    pub api_key: Option<String>,
    pub tokens: Vec<Token>,
    pub addresses_per_call: usize,
    pub clock: Arc<Clock>,
}

pub struct Evm {
    network: Network,
    kind: AddressKind,
    nodes: Vec<Provider>,
    /// By node: whether it was found to be on this chain and to have our tokens there.
    verified: Vec<AtomicBool>,
    tokens: Vec<Token>,
    contracts: Contracts,
    addresses_per_call: usize,
    clock: Arc<Clock>,
    known: Mutex<Known>,
    passes: Mutex<Passes>,
    /// The newest block that enough nodes had: a node that does not reach it lags.
    reached: AtomicI64,
}

impl Evm {
    pub fn new(settings: EvmSettings) -> Result<Evm, Trouble> {
        let EvmSettings { network, providers, api_key, tokens, addresses_per_call, clock } = settings;
        let kind = network.kind();
        let header = match kind {
            AddressKind::Evm => None,
            AddressKind::Tron => api_key.as_deref().map(|key| (tron::API_KEY_HEADER, key)),
        };
        if providers.is_empty() {
            return Err(Trouble::new(format_args!("{} has no node", network.as_str())));
        }
        let nodes: Vec<Provider> = providers
            .iter()
            .enumerate()
            .map(|(index, url)| Provider::new(network, index, url, header))
            .collect::<Result<_, _>>()?;
        Ok(Evm {
            network,
            kind,
            verified: nodes.iter().map(|_| AtomicBool::new(false)).collect(),
            nodes,
            contracts: Contracts::new(kind, &tokens)?,
            tokens,
            addresses_per_call: addresses_per_call.max(1),
            clock,
            known: Mutex::default(),
            passes: Mutex::default(),
            reached: AtomicI64::new(0),
        })
    }

    async fn tip_at(&self, node: &Provider) -> Result<Tip, RpcError> {
        let mut tags = vec![LATEST];
        tags.extend(self.words_for_final().iter().filter(|tag| node.may_know(tag)));
        let calls: Vec<Call> = tags.iter().map(|tag| block_call(tag)).collect();
        let mut answers = tags.into_iter().zip(node.call(&calls).await?);
        let (_, head) = answers.next().ok_or_else(|| RpcError::Unreadable("too few answers".into()))?;
        let head = self.block_of(&head?)?.ok_or_else(|| RpcError::Doubtful("has no blocks".into()))?;
        let (mut safe, mut finalized) = (0, 0);
        for (tag, answer) in answers {
            let number = self.marked(node, tag, answer)?.min(head.number);
            if tag == "finalized" { finalized = number } else { safe = number }
        }
        Ok(Tip { head, safe: safe.max(finalized), finalized })
    }

    /// TRON has no safe block between the newest and the solidified one.
    fn words_for_final(&self) -> &'static [&'static str] {
        match self.kind {
            AddressKind::Evm => &["finalized", "safe"],
            AddressKind::Tron => &["finalized"],
        }
    }

    /// The number of the block that a node marks with this tag. A young chain has none yet, and nodes say so in
    /// different ways; other nodes do not know the tag. In both cases nothing is final at this node: 0.
    fn marked(&self, node: &Provider, tag: &'static str, answer: RpcAnswer) -> Result<i64, RpcError> {
        match answer {
            Ok(raw) => Ok(self.block_of(&raw)?.map_or(0, |block| block.number)),
            Err(RpcError::Refused(_, why)) if why.contains("not found") || why.contains("unknown block") => {
                Ok(0)
            }
            Err(RpcError::Refused(..) | RpcError::TooMuch(_)) => {
                node.lacks(tag);
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    fn block_of(&self, raw: &RawValue) -> Result<Option<Block>, RpcError> {
        let block = wire::block(self.kind, raw.get()).map_err(RpcError::Unreadable)?;
        let latest = self.clock.now().plus_millis(FUTURE_MS);
        if let Some(block) = block.as_ref().filter(|block| block.time > latest) {
            return Err(RpcError::Doubtful(format!("shows block {} of the far future", block.number)));
        }
        Ok(block)
    }

    /// `None` only for a block that the chain is not known to have reached: a node that lacks an older one lags.
    async fn block_at(&self, node: &Provider, number: i64) -> Result<Option<Block>, RpcError> {
        let answers = node.call_all(&[block_call(&wire::as_quantity(number))]).await?;
        let block = self.block_of(&answers[0])?;
        match &block {
            None if number <= self.reached.load(Ordering::Relaxed) => Err(lags(number)),
            Some(block) if block.number != number => {
                Err(RpcError::Doubtful(format!("shows block {} for block {number}", block.number)))
            }
            _ => Ok(block),
        }
    }

    async fn transaction_at(&self, node: &Provider, hash: &str) -> Result<Option<Mined>, RpcError> {
        let answers = node.call_all(&[receipt_call(&wire::as_hash(hash)), head_call()]).await?;
        let receipt = wire::receipt(answers[0].get(), &self.contracts).map_err(RpcError::Unreadable)?;
        let head = head_of(&answers[1])?;
        let Some(receipt) = receipt else {
            let reached = self.reached.load(Ordering::Relaxed);
            return if head >= reached { Ok(None) } else { Err(lags(reached)) };
        };
        // A node that is far behind would make the transaction look shallow and keep everybody waiting.
        let needed = self.reached.load(Ordering::Relaxed) - asking::blocks_in(self.network, FLICKER);
        if head < needed {
            return Err(lags(needed));
        }
        if wire::spell(self.kind, &receipt.tx_hash) != hash {
            return Err(RpcError::Doubtful("shows the receipt of another transaction".into()));
        }
        // A receipt may name a block that is still being made, so the block itself is asked for.
        let Some(block) = self.block_at(node, receipt.block_number).await? else { return Ok(None) };
        if block.hash != wire::spell(self.kind, &receipt.block_hash) {
            return Err(RpcError::Doubtful(format!(
                "shows a receipt that is not in its block {}",
                block.number
            )));
        }
        self.known().drop_if_other(&receipt);
        let transfers = if receipt.succeeded { self.sightings_of(&receipt, &block) } else { Vec::new() };
        // The block may have been made since the head was asked for.
        let head = head.max(block.number);
        Ok(Some(Mined { block, succeeded: receipt.succeeded, transfers, head }))
    }

    /// `transaction_at`, agreed on by enough nodes.
    async fn transaction_by_quorum(&self, hash: &str) -> Result<Option<Mined>, Trouble> {
        let with_head =
            |mined: &Option<Mined>, head| mined.as_ref().map(|mined| Mined { head, ..mined.clone() });
        let same = |one: &Option<Mined>, other: &Option<Mined>| with_head(one, 0) == with_head(other, 0);
        let voices = self.agreeing(|node| self.transaction_at(node, hash), same).await?;
        let lowest = voices.iter().filter_map(|(_, mined)| mined.as_ref().map(|mined| mined.head)).min();
        Ok(voices.first().zip(lowest).and_then(|((_, mined), head)| with_head(mined, head)))
    }

    /// Every movement in a receipt, with its hash and addresses in our spelling.
    fn sightings_of(&self, receipt: &wire::Receipt, block: &Block) -> Vec<Sighting> {
        let tx_hash = wire::spell(self.kind, &receipt.tx_hash);
        let sighting = |(position, movement): &(i64, Movement)| {
            let id = TransferId { network: self.network, tx_hash: tx_hash.clone(), position: *position };
            let Some(amount) = movement.amount() else {
                tracing::error!(transfer = %id, "a transfer of over a billion dollars is not believed; look at it");
                return None;
            };
            Some(Sighting {
                id,
                currency: movement.currency,
                sender: address::text(self.kind, &movement.sender),
                recipient: address::text(self.kind, &movement.recipient),
                amount,
                block: block.clone(),
                payment_nonce: receipt.nonce_of(*position),
            })
        };
        receipt.movements.iter().filter_map(sighting).collect()
    }

    async fn balances_at(
        &self,
        node: &Provider,
        currency: Currency,
        addresses: &[[u8; 20]],
        at: &str,
    ) -> Result<Vec<Usd>, RpcError> {
        let call = |address: &[u8; 20]| {
            let mut data = [0; 36];
            data[..4].copy_from_slice(&BALANCE_OF);
            data[16..].copy_from_slice(address);
            self.view(currency, &data, at)
        };
        let calls: Vec<Call> = addresses.iter().map(call).collect();
        let beyond = || RpcError::Unreadable("a balance too large to believe".into());
        let balance = |answer: &RawValue| wire::word(answer.get()).and_then(wire::amount).ok_or_else(beyond);
        node.call_all(&calls).await?.iter().map(|answer| balance(answer)).collect()
    }

    /// A read-only call of a token's contract.
    fn view(&self, currency: Currency, data: &[u8], at: &str) -> Call {
        let contract = self.contracts.contract(currency).map(hex::encode_prefixed);
        ("eth_call", json!([{"to": contract, "data": hex::encode_prefixed(data)}, at]))
    }
}

fn block_call(which: &str) -> Call {
    ("eth_getBlockByNumber", json!([which, false]))
}

fn receipt_call(hash: &str) -> Call {
    ("eth_getTransactionReceipt", json!([hash]))
}

fn head_call() -> Call {
    ("eth_blockNumber", json!([]))
}

fn head_of(raw: &RawValue) -> Result<i64, RpcError> {
    let head = serde_json::from_str(raw.get()).ok().and_then(wire::height);
    head.ok_or_else(|| RpcError::Unreadable("a head that is not a number".into()))
}

fn lags(number: i64) -> RpcError {
    RpcError::Doubtful(format!("lags behind: it has no block {number}"))
}

impl Chain for Evm {
    fn network(&self) -> Network {
        self.network
    }

    fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    fn reads_all(&self, watched: &Watched) -> bool {
        self.takes_all(watched)
    }

    /// The gateway starts with unreachable or wrong nodes, as long as enough others may be right.
    fn check(&self) -> Reply<'_, ()> {
        Box::pin(async move {
            let (mut sound, mut wrong, mut said) = (0, 0, Vec::new());
            let checks = self.nodes.iter().map(async |node| (node, self.check_node(node).await));
            for (node, checked) in join_all(checks).await {
                match checked {
                    Ok(()) => {
                        node.succeeded();
                        sound += 1;
                    }
                    Err(error) => {
                        node.failed(&error);
                        wrong += usize::from(matches!(error, RpcError::Foreign(_)));
                        said.push(format!("{} {error}", node.name));
                    }
                }
            }
            let possible = self.nodes.len() - wrong;
            if sound > 0 && possible >= self.quorum() { Ok(()) } else { Err(self.trouble(said.join("; "))) }
        })
    }

    fn demoted(&self) -> Vec<Demoted> {
        let demoted = |node: &Provider| {
            let demotion = node.demotion()?;
            Some(Demoted { node: node.name.clone(), why: demotion.demerit.as_str(), said: demotion.said })
        };
        self.nodes.iter().filter_map(demoted).collect()
    }

    fn tip(&self) -> Reply<'_, Tip> {
        Box::pin(async move {
            let tips = self.all(|node| self.tip_at(node)).await?;
            let tip = self.common_tip(&tips).ok_or_else(|| self.trouble("nobody answered"))?;
            self.reached.store(tip.head.number, Ordering::Relaxed);
            Ok(tip)
        })
    }

    fn block(&self, number: i64) -> Reply<'_, Option<Block>> {
        Box::pin(self.agreed(move |node| self.block_at(node, number)))
    }

    fn scan<'a>(&'a self, from: i64, to: i64, watched: &'a Watched, witness: Witness) -> Reply<'a, Scanned> {
        Box::pin(async move {
            if from < 0 || to < from {
                return Err(self.trouble(format_args!("there are no blocks from {from} to {to}")));
            }
            match witness {
                Witness::Any => self.scan_in_turn(from, to, watched).await,
                Witness::Quorum => self.scan_by_quorum(from, to, watched).await,
            }
        })
    }

    fn transaction<'a>(&'a self, hash: &'a str, witness: Witness) -> Reply<'a, Option<Mined>> {
        Box::pin(async move {
            match witness {
                Witness::Any => self.any(|node| self.transaction_at(node, hash)).await,
                Witness::Quorum => self.transaction_by_quorum(hash).await,
            }
        })
    }

    fn balances<'a>(&'a self, currency: Currency, addresses: &'a [String], at: i64) -> Reply<'a, Vec<Usd>> {
        Box::pin(async move {
            if self.contracts.contract(currency).is_none() {
                return Err(self.trouble(format_args!("{} is not taken here", currency.as_str())));
            }
            let read = |text: &String| address::bytes(self.kind, text);
            let wanted: Option<Vec<[u8; 20]>> = addresses.iter().map(read).collect();
            let wanted = wanted.ok_or_else(|| self.trouble("an address cannot be read"))?;
            let at = match self.kind {
                AddressKind::Evm => wire::as_quantity(at),
                AddressKind::Tron => LATEST.to_string(),
            };
            self.agreed(|node| self.balances_at(node, currency, &wanted, &at)).await
        })
    }
}
