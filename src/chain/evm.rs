//! A real network, asked through the JSON-RPC of its nodes; TRON's speak it too and differ by what `tron.rs` holds.
//! Any node may lie, lag or fall silent: answers are compared with each other before they are believed, another
//! node is asked when one fails, and what cannot be made to fit is `Trouble`. `check.rs` asks whether it is the right
//! chain at all, `scan.rs` reads ranges of blocks, `wire.rs` the JSON.

mod check;
mod scan;
mod wire;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use alloy_primitives::hex;
use serde_json::json;
use serde_json::value::RawValue;

use self::scan::{Known, Window};
use super::rpc::{Answer, Call, Provider, RpcError};
use super::{Chain, Mined, Reply, Scanned, Tip, Token, Trouble, Watched, Witness, address, tron};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::transfer::{Block, Sighting, TransferId};

pub use self::wire::{Contracts, Movement, Spotted, parse_logs};

/// How many calls go into one batch of small questions; public nodes allow few.
const BATCH: usize = 20;
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
const NOBODY: usize = usize::MAX;

pub struct EvmSettings {
    pub network: Network,
    /// URLs of nodes, the most trusted first.
    pub providers: Vec<String>,
    /// TRON's gateways want one in a header; others have it in the URL.
    pub api_key: Option<String>,
    pub tokens: Vec<Token>,
    pub addresses_per_call: usize,
}

pub struct Evm {
    network: Network,
    kind: AddressKind,
    nodes: Vec<Provider>,
    /// By node: whether it is known to be on this chain.
    verified: Vec<AtomicBool>,
    /// By node: how many blocks it lets us ask for at once.
    windows: Vec<Mutex<Window>>,
    tokens: Vec<Token>,
    contracts: Contracts,
    addresses_per_call: usize,
    known: Mutex<Known>,
    /// The highest block that was shown to exist: a node that does not reach it lags.
    reached: AtomicI64,
    /// The node that answered the last scan.
    scanned_by: AtomicUsize,
}

impl Evm {
    pub fn new(settings: EvmSettings) -> Result<Evm, Trouble> {
        let EvmSettings { network, providers, api_key, tokens, addresses_per_call } = settings;
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
            windows: nodes.iter().map(|_| Mutex::default()).collect(),
            nodes,
            contracts: Contracts::new(kind, &tokens)?,
            tokens,
            addresses_per_call: addresses_per_call.max(1),
            known: Mutex::default(),
            reached: AtomicI64::new(0),
            scanned_by: AtomicUsize::new(NOBODY),
        })
    }

    /// The best first. For a second opinion the node that answered the last scan is left out, unless it is alone.
    fn nodes(&self, witness: Witness) -> Vec<&Provider> {
        let first = self.scanned_by.load(Ordering::Relaxed);
        let left_out =
            |node: &Provider| witness == Witness::Second && self.nodes.len() > 1 && node.index == first;
        let mut nodes: Vec<&Provider> = self.nodes.iter().filter(|node| !left_out(node)).collect();
        nodes.sort_by_key(|node| node.disappointments());
        nodes
    }

    /// Asks one node after the other until one gives an answer that holds together.
    async fn ask<'a, T, F>(
        &'a self,
        nodes: Vec<&'a Provider>,
        question: impl Fn(&'a Provider) -> F + Send,
    ) -> Result<(&'a Provider, T), Trouble>
    where
        F: Future<Output = Result<T, RpcError>> + Send,
    {
        let mut said = Vec::new();
        for node in nodes {
            if !node.is_ready() {
                said.push(format!("{} rests after failures", node.name));
                continue;
            }
            let answer = match self.verify(node).await {
                Ok(()) => question(node).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(answer) => {
                    node.succeeded();
                    return Ok((node, answer));
                }
                Err(error) => {
                    node.failed(&error);
                    said.push(format!("{} {error}", node.name));
                }
            }
        }
        Err(self.trouble(said.join("; ")))
    }

    fn trouble(&self, what: impl std::fmt::Display) -> Trouble {
        Trouble::new(format_args!("{}: {what}", self.network.as_str()))
    }

    async fn tip_at(&self, node: &Provider) -> Result<Tip, RpcError> {
        let tags: &[&str] = match self.kind {
            AddressKind::Evm => &["latest", "finalized", "safe"],
            AddressKind::Tron => tron::TAGS,
        };
        let calls: Vec<Call> = tags.iter().map(|tag| block_call(tag)).collect();
        let mut answers = node.call(&calls).await?.into_iter();
        let mut next =
            || answers.next().unwrap_or_else(|| Err(RpcError::Unreadable("too few answers".into())));
        let head = self.block_of(&next()?)?.ok_or_else(|| RpcError::Doubtful("has no blocks".into()))?;
        // A young chain has no such block yet, and its nodes say so in different ways: nothing is final then.
        let marked = |answer: Answer| match answer {
            Ok(raw) => Ok(self.block_of(&raw)?.map_or(0, |block| block.number.min(head.number))),
            Err(RpcError::Refused(_, why)) if why.contains("not found") || why.contains("unknown block") => {
                Ok(0)
            }
            Err(error) => Err(error),
        };
        let finalized = marked(next())?;
        let safe = match self.kind {
            AddressKind::Evm => marked(next())?.max(finalized),
            AddressKind::Tron => finalized,
        };
        Ok(Tip { head, safe, finalized })
    }

    fn block_of(&self, raw: &RawValue) -> Result<Option<Block>, RpcError> {
        wire::block(self.kind, raw.get()).map_err(RpcError::Unreadable)
    }

    /// Whether a node that lacks something can be expected to have it.
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
        let calls = [receipt_call(&wire::as_hash(hash)), ("eth_blockNumber", json!([]))];
        let answers = node.call_all(&calls).await?;
        let receipt = wire::receipt(answers[0].get(), &self.contracts).map_err(RpcError::Unreadable)?;
        let Some(receipt) = receipt else {
            let head = serde_json::from_str(answers[1].get()).ok().and_then(wire::quantity);
            let reached = self.reached.load(Ordering::Relaxed);
            return if head.is_some_and(|head| head >= reached) { Ok(None) } else { Err(lags(reached)) };
        };
        if wire::spell(self.kind, &receipt.tx_hash) != hash {
            return Err(RpcError::Doubtful("shows the receipt of another transaction".into()));
        }
        // A receipt may tell of a block that is still being made: only a block makes it true.
        let Some(block) = self.block_at(node, receipt.block_number).await? else { return Ok(None) };
        if block.hash != wire::spell(self.kind, &receipt.block_hash) {
            return Err(RpcError::Doubtful(format!(
                "shows a receipt that is not in its block {}",
                block.number
            )));
        }
        let transfers = if receipt.succeeded { self.sightings_of(&receipt, &block) } else { Vec::new() };
        Ok(Some(Mined { block, succeeded: receipt.succeeded, transfers }))
    }

    /// Every movement in a receipt, as the world may see it.
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
            })
        };
        receipt.movements.iter().filter_map(sighting).collect()
    }

    async fn balances_at(
        &self,
        node: &Provider,
        currency: Currency,
        addresses: &[[u8; 20]],
    ) -> Result<Vec<Usd>, RpcError> {
        let mut balances = Vec::with_capacity(addresses.len());
        for some in addresses.chunks(BATCH) {
            let call = |address: &[u8; 20]| {
                let mut data = [0; 36];
                data[..4].copy_from_slice(&BALANCE_OF);
                data[16..].copy_from_slice(address);
                self.view(currency, &data)
            };
            let calls: Vec<Call> = some.iter().map(call).collect();
            for answer in node.call_all(&calls).await? {
                let balance = wire::word(answer.get()).and_then(wire::amount);
                balances.push(balance.ok_or_else(|| RpcError::Unreadable("a balance beyond belief".into()))?);
            }
        }
        Ok(balances)
    }

    /// A call that only reads, of a token's contract.
    fn view(&self, currency: Currency, data: &[u8]) -> Call {
        let contract = self.contracts.contract(currency).map(hex::encode_prefixed);
        ("eth_call", json!([{"to": contract, "data": hex::encode_prefixed(data)}, "latest"]))
    }
}

fn block_call(which: &str) -> Call {
    ("eth_getBlockByNumber", json!([which, false]))
}

fn receipt_call(hash: &str) -> Call {
    ("eth_getTransactionReceipt", json!([hash]))
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

    /// A node that cannot be reached is no reason not to start while another can; one that is wrong is.
    fn check(&self) -> Reply<'_, ()> {
        Box::pin(async move {
            let (mut sound, mut said, mut wrong) = (false, Vec::new(), false);
            for node in &self.nodes {
                let error = match self.check_node(node).await {
                    Ok(()) => {
                        node.succeeded();
                        sound = true;
                        continue;
                    }
                    Err(error) => error,
                };
                node.failed(&error);
                wrong |= matches!(error, RpcError::Doubtful(_));
                said.push(format!("{} {error}", node.name));
            }
            if sound && !wrong { Ok(()) } else { Err(self.trouble(said.join("; "))) }
        })
    }

    fn tip(&self) -> Reply<'_, Tip> {
        Box::pin(async move {
            let (node, mut tip) = self.ask(self.nodes(Witness::Any), |node| self.tip_at(node)).await?;
            if node.stands_still(tip.head.number) {
                let others = self.nodes(Witness::Any).into_iter().filter(|other| other.index != node.index);
                if let Ok((_, other)) = self.ask(others.collect(), |node| self.tip_at(node)).await
                    && other.head.number > tip.head.number
                {
                    node.failed(&lags(other.head.number));
                    tip = other;
                }
            }
            self.reached.store(tip.head.number, Ordering::Relaxed);
            Ok(tip)
        })
    }

    fn block(&self, number: i64) -> Reply<'_, Option<Block>> {
        Box::pin(async move {
            let (_, block) = self.ask(self.nodes(Witness::Any), |node| self.block_at(node, number)).await?;
            Ok(block)
        })
    }

    fn scan<'a>(&'a self, from: i64, to: i64, watched: &'a Watched) -> Reply<'a, Scanned> {
        Box::pin(async move {
            if from < 0 || to < from {
                return Err(self.trouble(format_args!("there are no blocks from {from} to {to}")));
            }
            let nodes = self.nodes(Witness::Any);
            let (node, scanned) = self.ask(nodes, |node| self.scan_at(node, from, to, watched)).await?;
            self.scanned_by.store(node.index, Ordering::Relaxed);
            self.reached.fetch_max(scanned.last.number, Ordering::Relaxed);
            Ok(scanned)
        })
    }

    fn transaction<'a>(&'a self, hash: &'a str, witness: Witness) -> Reply<'a, Option<Mined>> {
        Box::pin(async move {
            let (_, mined) = self.ask(self.nodes(witness), |node| self.transaction_at(node, hash)).await?;
            Ok(mined)
        })
    }

    fn balances<'a>(&'a self, currency: Currency, addresses: &'a [String]) -> Reply<'a, Vec<Usd>> {
        Box::pin(async move {
            if self.contracts.contract(currency).is_none() {
                return Err(self.trouble(format_args!("{} is not taken here", currency.as_str())));
            }
            let read = |text: &String| address::bytes(self.kind, text);
            let wanted: Option<Vec<[u8; 20]>> = addresses.iter().map(read).collect();
            let wanted = wanted.ok_or_else(|| self.trouble("an address cannot be read"))?;
            let question = |node| self.balances_at(node, currency, &wanted);
            let (_, balances) = self.ask(self.nodes(Witness::Any), question).await?;
            Ok(balances)
        })
    }
}
