//! A real network, asked through the JSON-RPC of its nodes; TRON's speak it too and differ by what `tron.rs` holds.
//! Any node may lie, lag or fall silent: answers are compared with each other before they are believed, another
//! node is asked when one fails, and what cannot be made to fit is `Trouble`. `check.rs` asks whether it is the right
//! chain at all, `scan.rs` reads ranges of blocks, `wire.rs` the JSON.

mod calls;
mod check;
mod scan;
mod wire;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::hex;
use serde_json::json;
use serde_json::value::RawValue;

use self::scan::{Known, Window};
use super::rpc::{Answer, Call, Provider, RpcError};
use super::{Chain, Mined, Reply, Scanned, Tip, Token, Trouble, Watched, Witness, address, tron};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::transfer::{Block, Sighting, TransferId};

pub use self::calls::{Broadcast, Called, Fees, Paid, Purse};
pub use self::wire::{Contracts, Movement, Spotted, abi_text, parse_logs};

/// How many calls go into one batch of small questions; public nodes allow few.
const BATCH: usize = 20;
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
/// So much of a chain may one node be ahead of another, and of what the time that went by allows.
const AHEAD: Duration = Duration::from_secs(600);

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
    /// By node: whether it is known to be on this chain and to show our tokens there.
    verified: Vec<AtomicBool>,
    /// By node: how many blocks it lets us ask for at once.
    windows: Vec<Mutex<Window>>,
    tokens: Vec<Token>,
    contracts: Contracts,
    addresses_per_call: usize,
    known: Mutex<Known>,
    /// The highest block that was shown to exist: a node that does not reach it lags.
    reached: AtomicI64,
    /// The last head that a second node vouched for, and when.
    vouched: Mutex<Option<(i64, Instant)>>,
}

/// Nodes that are still to be asked, and what those said who were of no use.
struct Asking<'a> {
    nodes: std::vec::IntoIter<&'a Provider>,
    said: Vec<String>,
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
            vouched: Mutex::default(),
        })
    }

    /// The best first.
    fn all(&self) -> Asking<'_> {
        let mut nodes: Vec<&Provider> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| node.disappointments());
        Asking { nodes: nodes.into_iter(), said: Vec::new() }
    }

    fn all_but(&self, node: &Provider) -> Asking<'_> {
        let mut asking = self.all();
        let others: Vec<&Provider> = asking.nodes.filter(|other| other.index != node.index).collect();
        asking.nodes = others.into_iter();
        asking
    }

    /// Asks one node after the other until one gives an answer that holds together. Who asks on hears from others.
    async fn ask<'a, T, F>(
        &'a self,
        asking: &mut Asking<'a>,
        question: impl Fn(&'a Provider) -> F + Send,
    ) -> Result<(&'a Provider, T), Trouble>
    where
        F: Future<Output = Result<T, RpcError>> + Send,
    {
        for node in asking.nodes.by_ref() {
            if !node.is_ready() {
                asking.said.push(format!("{} rests after failures", node.name));
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
                    asking.said.push(format!("{} {error}", node.name));
                }
            }
        }
        Err(self.trouble(asking.said.join("; ")))
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

    /// A chain cannot have come further than time allows since two nodes last agreed on how far it was: beyond that,
    /// and when nothing was agreed on yet, another node must be about as far. Otherwise a single lie would have us
    /// wait for blocks of the far future.
    async fn vouch(&self, node: &Provider, head: i64) -> Result<(), Trouble> {
        let (millis, ahead) = (fastest_block_ms(self.network), AHEAD.as_millis() as i64);
        let vouched = *self.vouched();
        let possible =
            vouched.map(|(head, at)| head.saturating_add((at.elapsed().as_millis() as i64 + ahead) / millis));
        if self.nodes.len() == 1 || possible.is_some_and(|possible| head <= possible) {
            return Ok(());
        }
        let mut asking = self.all_but(node);
        let mut contradicted = false;
        loop {
            let (other, there) = match self.ask(&mut asking, |node| self.head_at(node)).await {
                Ok(answer) => answer,
                Err(trouble) if !contradicted => return Err(trouble),
                Err(trouble) => {
                    node.failed(&RpcError::Doubtful(format!("claims a head that nobody else has: {head}")));
                    return Err(trouble);
                }
            };
            if head <= there.saturating_add(ahead / millis) {
                *self.vouched() = Some((head, Instant::now()));
                return Ok(());
            }
            contradicted = true;
            asking.said.push(format!("{} is at block {there} and {} at {head}", other.name, node.name));
        }
    }

    fn vouched(&self) -> MutexGuard<'_, Option<(i64, Instant)>> {
        self.vouched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn head_at(&self, node: &Provider) -> Result<i64, RpcError> {
        let answers = node.call_all(&[head_call()]).await?;
        head_of(&answers[0])
    }

    fn block_of(&self, raw: &RawValue) -> Result<Option<Block>, RpcError> {
        wire::block(self.kind, raw.get()).map_err(RpcError::Unreadable)
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
        self.known().drop_if_other(&receipt);
        let transfers = if receipt.succeeded { self.sightings_of(&receipt, &block) } else { Vec::new() };
        // The block may have been made since the head was asked for.
        let head = head.max(block.number);
        Ok(Some(Mined { block, succeeded: receipt.succeeded, transfers, head }))
    }

    /// The same from two nodes, unless there is but one.
    async fn transaction_at_two(&self, hash: &str) -> Result<Option<Mined>, Trouble> {
        let mut asking = self.all();
        let (first, one) = self.ask(&mut asking, |node| self.transaction_at(node, hash)).await?;
        if self.nodes.len() == 1 {
            return Ok(one);
        }
        let (second, other) = self.ask(&mut asking, |node| self.transaction_at(node, hash)).await?;
        let differ =
            || self.trouble(format_args!("{} and {} tell of different things", first.name, second.name));
        match (one, other) {
            (None, None) => Ok(None),
            (Some(one), Some(other)) => {
                let head = one.head.min(other.head);
                let agreed = Mined { head, ..one };
                if agreed == (Mined { head, ..other }) { Ok(Some(agreed)) } else { Err(differ()) }
            }
            (Some(_), None) | (None, Some(_)) => Err(differ()),
        }
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

fn head_call() -> Call {
    ("eth_blockNumber", json!([]))
}

fn head_of(raw: &RawValue) -> Result<i64, RpcError> {
    let head = serde_json::from_str(raw.get()).ok().and_then(wire::quantity);
    head.ok_or_else(|| RpcError::Unreadable("a head that is no number".into()))
}

/// No network makes blocks faster than this, today or soon.
fn fastest_block_ms(network: Network) -> i64 {
    match network {
        Network::Arbitrum => 100,
        Network::Base | Network::Polygon | Network::Tron => 1_000,
    }
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
            let (mut node, mut tip) = self.ask(&mut self.all(), |node| self.tip_at(node)).await?;
            if node.stands_still(tip.head.number)
                && let Ok((other, there)) = self.ask(&mut self.all_but(node), |node| self.tip_at(node)).await
                && there.head.number > tip.head.number
            {
                node.failed(&lags(there.head.number));
                (node, tip) = (other, there);
            }
            self.vouch(node, tip.head.number).await?;
            self.reached.store(tip.head.number, Ordering::Relaxed);
            Ok(tip)
        })
    }

    fn block(&self, number: i64) -> Reply<'_, Option<Block>> {
        Box::pin(async move {
            let (_, block) = self.ask(&mut self.all(), |node| self.block_at(node, number)).await?;
            Ok(block)
        })
    }

    fn scan<'a>(&'a self, from: i64, to: i64, watched: &'a Watched) -> Reply<'a, Scanned> {
        Box::pin(async move {
            if from < 0 || to < from {
                return Err(self.trouble(format_args!("there are no blocks from {from} to {to}")));
            }
            let question = |node| self.scan_at(node, from, to, watched);
            let (_, scanned) = self.ask(&mut self.all(), question).await?;
            self.reached.fetch_max(scanned.last.number, Ordering::Relaxed);
            Ok(scanned)
        })
    }

    fn transaction<'a>(&'a self, hash: &'a str, witness: Witness) -> Reply<'a, Option<Mined>> {
        Box::pin(async move {
            match witness {
                Witness::Any => {
                    let question = |node| self.transaction_at(node, hash);
                    self.ask(&mut self.all(), question).await.map(|(_, mined)| mined)
                }
                Witness::Second => self.transaction_at_two(hash).await,
            }
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
            let (_, balances) = self.ask(&mut self.all(), question).await?;
            Ok(balances)
        })
    }
}
