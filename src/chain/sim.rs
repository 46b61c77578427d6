//! The simulated chain of one network. A block comes every 200 ms by the clock, its hash follows from its number
//! and the newest fork below it, and only transfers, forks and the mode are rows: every instance and every restart
//! sees one chain. It can be paid on, reorganised and made to misbehave by `/sandbox/pay` and `/sandbox/chain`.
//! A block that was shown once never changes without a new hash, not even when the database is slow.
//! `sim/signed.rs` is what payers sign for.

mod signed;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ring::digest::{SHA256, digest};

pub use self::signed::Signed;
use super::{Chain, Mined, Reply, Scanned, Tip, Token, Trouble, Watched, Witness, address};
use crate::clock::Clock;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::time::Time;
use crate::domain::transfer::{Block, Sighting, TransferId};
use crate::domain::words::words;
use crate::error::{Error, Result};
use crate::store::sim_chain::{self, Fork, Transfer};
use crate::store::tx::Tx;
use crate::store::{Store, meta};
use crate::vault::{self, hex};

const BLOCK_MICROS: i64 = 200_000;
/// A new chain already has a past, because scanners ask for blocks below the head.
const PAST_MILLIS: i64 = -60_000;
/// The time it takes to write a payment. A payment that is later than this before a block goes into the next one.
const NOTICE_MILLIS: i64 = 100;
/// How soon a node that begins to lie shows its lie.
const LIE_IN_MILLIS: i64 = 1_000;
const LIE_AMOUNT: Usd = Usd::dollars(1_000);
/// The first bytes of every made-up transaction hash; the address that it pays follows them.
const LIE_MARK: &[u8; 12] = b"simgate lie!";
/// Sim writes have no wallet; they share one lane.
const LANE: i64 = 0;

words! {
    pub enum ChainMode: ALL, parse {
        Ok = "ok",
        /// No node answers.
        Down = "down",
        /// The first node lacks the newest blocks. Two more have them, and agree.
        Lagging = "lagging",
        /// The first node shows every watched address a transfer that never happened. Two more show none, and agree.
        Lying = "lying",
    }
}

/// What becomes of the transfers in blocks that are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Nothing,
    /// Mined again this many blocks later, as the same transactions.
    Later(i64),
}

#[derive(Clone, Debug)]
pub struct Payment {
    pub recipient: String,
    pub currency: Currency,
    pub amount: Usd,
}

pub struct SimChain {
    store: Arc<Store>,
    clock: Arc<Clock>,
    network: Network,
    tokens: Vec<Token>,
    /// The newest moment at which this chain was read: a clock that is set back a little removes no block.
    latest: AtomicI64,
}

/// What the rows say at one moment.
#[derive(Clone)]
struct World {
    network: Network,
    now: Time,
    genesis: Time,
    mode: ChainMode,
    behind: i64,
    lie_block: i64,
    forks: Vec<Fork>,
}

impl World {
    fn read(tx: &mut Tx, network: Network, now: Time) -> Result<Option<World>> {
        let Some(chain) = sim_chain::chain(tx, network)? else { return Ok(None) };
        let mode =
            ChainMode::parse(&chain.mode.word).ok_or_else(|| Error::fault("unknown simulator mode"))?;
        Ok(Some(World {
            network,
            now,
            genesis: chain.genesis,
            mode,
            behind: chain.mode.behind,
            lie_block: chain.mode.lie_block,
            forks: chain.forks,
        }))
    }

    fn height(&self, at: Time) -> i64 {
        ((at.micros() - self.genesis.micros()) / BLOCK_MICROS).max(0)
    }

    fn head(&self) -> i64 {
        self.height(self.now)
    }

    /// The newest block that this witness has.
    fn head_of(&self, witness: Witness) -> i64 {
        match (self.mode, witness) {
            (ChainMode::Lagging, Witness::Any) => (self.head() - self.behind).max(0),
            (ChainMode::Ok | ChainMode::Down | ChainMode::Lagging | ChainMode::Lying, _) => self.head(),
        }
    }

    fn block(&self, number: i64) -> Block {
        let fork = self.forks.iter().rev().find(|fork| fork.from_block <= number);
        let seed = format!("{}:{number}:{}", self.network.as_str(), fork.map_or(0, |fork| fork.number));
        Block {
            number,
            hash: spell_hash(self.network.kind(), digest(&SHA256, seed.as_bytes()).as_ref()),
            time: Time::from_micros(self.genesis.micros() + number * BLOCK_MICROS),
        }
    }

    fn sighting(&self, transfer: Transfer) -> Sighting {
        Sighting {
            id: TransferId { network: self.network, tx_hash: transfer.tx_hash, position: transfer.position },
            currency: transfer.currency,
            sender: transfer.sender,
            recipient: transfer.recipient,
            amount: transfer.amount,
            block: self.block(transfer.block),
            payment_nonce: transfer.payment_nonce,
        }
    }

    /// Whether this witness shows its lie by now.
    fn lies(&self, witness: Witness) -> bool {
        self.mode == ChainMode::Lying && witness == Witness::Any && self.lie_block <= self.head()
    }
}

impl SimChain {
    pub fn new(store: Arc<Store>, clock: Arc<Clock>, network: Network, tokens: Vec<Token>) -> SimChain {
        SimChain { store, clock, network, tokens, latest: AtomicI64::new(0) }
    }

    /// The newest block, whatever the mode.
    pub async fn head(&self) -> Result<i64> {
        self.look(|_, world| Ok(world.head())).await
    }

    /// The mode, and how many blocks a lagging node lacks.
    pub async fn mood(&self) -> Result<(ChainMode, i64)> {
        self.look(|_, world| Ok((world.mode, world.behind))).await
    }

    /// Behaves like this until told otherwise; `behind` is how many blocks a lagging node lacks.
    pub async fn behave(&self, mode: ChainMode, behind: i64) -> Result<()> {
        let network = self.network;
        let lie_block = self.height_in(LIE_IN_MILLIS).await?;
        let word = mode.as_str().to_string();
        let mode = sim_chain::Mode { word, behind, lie_block };
        self.store.write(LANE, move |tx| sim_chain::set_mode(tx, network, &mode)).await
    }

    /// Pays in the next block and returns the hash of the transaction.
    pub async fn pay(&self, recipient: &str, currency: Currency, amount: Usd) -> Result<String> {
        self.pay_many(&[Payment { recipient: recipient.into(), currency, amount }]).await
    }

    /// Several transfers in one transaction, at the positions of the list.
    pub async fn pay_many(&self, payments: &[Payment]) -> Result<String> {
        self.mine(payments, true).await
    }

    /// A transaction that is mined, but reverted: it moves nothing.
    pub async fn pay_in_vain(&self, payment: Payment) -> Result<String> {
        self.mine(&[payment], false).await
    }

    /// Replaces the newest `depth` blocks, final ones too, and returns the first of them.
    pub async fn reorg(&self, depth: i64, keep: Keep) -> Result<i64> {
        self.fork(|head| (head - depth + 1).clamp(0, head), keep).await
    }

    async fn mine(&self, payments: &[Payment], succeeded: bool) -> Result<String> {
        let kind = self.network.kind();
        let tx_hash = spell_hash(kind, &random_bytes());
        let sender = address::text(kind, random_bytes().first_chunk().expect("20 of 32 bytes"));
        let block = self.next_block().await?;
        let mut transfers = Vec::new();
        for (payment, position) in payments.iter().zip(0..) {
            let recipient = address::bytes(kind, &payment.recipient)
                .ok_or_else(|| Error::fault("a simulated payment to something that is not an address"))?;
            transfers.push(Transfer {
                tx_hash: tx_hash.clone(),
                position,
                currency: payment.currency,
                sender: sender.clone(),
                recipient: address::text(kind, &recipient),
                amount: payment.amount,
                succeeded,
                block,
                payment_nonce: None,
            });
        }
        self.publish(block, transfers).await?;
        Ok(tx_hash)
    }

    /// The block that a payment goes into which is written now.
    async fn next_block(&self) -> Result<i64> {
        Ok(self.height_in(NOTICE_MILLIS).await? + 1)
    }

    async fn publish(&self, block: i64, transfers: Vec<Transfer>) -> Result<()> {
        let network = self.network;
        let write = move |tx: &mut Tx| {
            let mut added = tx.is_rerun();
            for transfer in &transfers {
                added |= sim_chain::add_transfer(tx, network, transfer)?;
            }
            Ok(added)
        };
        let added = self.store.write(LANE, write).await?;
        // The database took so long that somebody may have read the block without the transfers: it is replaced.
        if added && self.height_in(0).await? >= block {
            self.fork(|_| block, Keep::Later(0)).await?;
        }
        Ok(())
    }

    async fn fork(&self, from_block: impl Fn(i64) -> i64, keep: Keep) -> Result<i64> {
        let network = self.network;
        let later = match keep {
            Keep::Nothing => None,
            Keep::Later(blocks) => Some(blocks),
        };
        loop {
            let newest = |world: &World| world.forks.last().map_or(0, |fork| fork.number);
            let (head, newest) = self.look(move |_, world| Ok((world.head(), newest(world)))).await?;
            let fork = Fork { number: newest + 1, from_block: from_block(head) };
            let write = move |tx: &mut Tx| sim_chain::fork(tx, network, fork, head, later);
            if self.store.finish(LANE, write).await? {
                return Ok(fork.from_block);
            }
        }
    }

    /// The height that any instance may have reached in this many milliseconds. The database's clock, as read here, may
    /// be ahead of an instance's by the time an answer takes to arrive.
    async fn height_in(&self, millis: i64) -> Result<i64> {
        self.look(move |tx, world| {
            let newest =
                meta::database_now(tx)?.map_or(world.now, |now| world.now.max(Time::from_micros(now)));
            Ok(world.height(newest.plus_millis(millis)))
        })
        .await
    }

    /// The transfer that the lying node shows to an address.
    fn lie(&self, world: &World, recipient: &[u8; 20]) -> Option<Sighting> {
        let kind = self.network.kind();
        let mut bytes = [0; 32];
        bytes[..12].copy_from_slice(LIE_MARK);
        bytes[12..].copy_from_slice(recipient);
        Some(world.sighting(Transfer {
            tx_hash: spell_hash(kind, &bytes),
            position: 0,
            currency: self.tokens.first()?.currency,
            sender: address::text(kind, &[0x1e; 20]),
            recipient: address::text(kind, recipient),
            amount: LIE_AMOUNT,
            succeeded: true,
            block: world.lie_block,
            payment_nonce: None,
        }))
    }

    fn now(&self) -> Time {
        let now = self.clock.now().micros();
        Time::from_micros(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }

    /// Reads with the world in view. The order matters: first the time, then the forks, then transfers. So every
    /// payment in a block up to the head can be read. A reorganisation in between shows old hashes with new transfers,
    /// which the next look corrects; new hashes with old transfers would never be corrected.
    async fn look<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx, &World) -> Result<T> + Clone + Send + 'static,
    {
        let (network, now) = (self.network, self.now());
        let read = move |tx: &mut Tx| match World::read(tx, network, now)? {
            Some(world) => body(tx, &world).map(Some),
            None => Ok(None),
        };
        if let Some(found) = self.store.read(read.clone()).await? {
            return Ok(found);
        }
        let genesis = now.plus_millis(PAST_MILLIS);
        self.store
            .finish(LANE, move |tx| sim_chain::found(tx, network, genesis, ChainMode::Ok.as_str()))
            .await?;
        self.store.read(read).await?.ok_or_else(|| Error::fault("a simulated chain was founded and is gone"))
    }

    /// A question to the nodes, which may be down.
    async fn ask<T, F>(&self, body: F) -> Result<T, Trouble>
    where
        T: Send + 'static,
        F: Fn(&mut Tx, &World) -> Result<T> + Clone + Send + 'static,
    {
        let answer = self.look(move |tx, world| match world.mode {
            ChainMode::Down => Ok(None),
            ChainMode::Ok | ChainMode::Lagging | ChainMode::Lying => body(tx, world).map(Some),
        });
        let answer = answer.await.map_err(Trouble::new)?;
        answer.ok_or_else(|| Trouble::new("the simulated nodes were told to be down"))
    }
}

impl Chain for SimChain {
    fn network(&self) -> Network {
        self.network
    }

    fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    fn check(&self) -> Reply<'_, ()> {
        Box::pin(self.ask(|_, _| Ok(())))
    }

    fn tip(&self) -> Reply<'_, Tip> {
        Box::pin(self.ask(|_, world| {
            let head = world.head_of(Witness::Any);
            let last = (head - world.network.confirmations() + 1).max(0);
            Ok(Tip { head: world.block(head), safe: last, finalized: last })
        }))
    }

    fn block(&self, number: i64) -> Reply<'_, Option<Block>> {
        Box::pin(self.ask(move |_, world| {
            let exists = (0..=world.head_of(Witness::Any)).contains(&number);
            Ok(exists.then(|| world.block(number)))
        }))
    }

    fn scan<'a>(&'a self, from: i64, to: i64, watched: &'a Watched, witness: Witness) -> Reply<'a, Scanned> {
        Box::pin(async move {
            let look = move |tx: &mut Tx, world: &World| {
                let last = to.min(world.head_of(witness));
                Ok((world.clone(), last, sim_chain::in_blocks(tx, world.network, from, last)?))
            };
            let (world, last, moved) = self.ask(look).await?;
            if last < from {
                return Err(Trouble::new(format!("the simulated node has no block {from} yet")));
            }
            let kind = self.network.kind();
            let mut sightings = Vec::new();
            for transfer in moved {
                let recipient = address::bytes(kind, &transfer.recipient);
                if recipient.is_some_and(|recipient| watched.contains(&recipient)) {
                    sightings.push(world.sighting(transfer));
                }
            }
            if world.lies(witness) && (from..=last).contains(&world.lie_block) {
                sightings
                    .extend(watched.addresses().iter().filter_map(|recipient| self.lie(&world, recipient)));
                sightings.sort_by_key(|sighting| sighting.block.number);
            }
            Ok(Scanned { last: world.block(last), sightings })
        })
    }

    fn transaction<'a>(&'a self, hash: &'a str, witness: Witness) -> Reply<'a, Option<Mined>> {
        Box::pin(async move {
            let asked = hash.to_string();
            let look = move |tx: &mut Tx, world: &World| {
                let head = world.head_of(witness);
                Ok((world.clone(), head, sim_chain::of_transaction(tx, world.network, &asked, head)?))
            };
            let (world, head, moved) = self.ask(look).await?;
            let Some(first) = moved.first() else {
                let told = lied_to(hash).filter(|_| world.lies(witness));
                let lie = told.and_then(|recipient| self.lie(&world, &recipient));
                return Ok(lie.map(|lie| Mined {
                    block: lie.block.clone(),
                    succeeded: true,
                    transfers: vec![lie],
                    head,
                }));
            };
            let (block, succeeded) = (world.block(first.block), first.succeeded);
            let moved = moved.into_iter().filter(|transfer| transfer.succeeded);
            let transfers = moved.map(|transfer| world.sighting(transfer)).collect();
            Ok(Some(Mined { block, succeeded, transfers, head }))
        })
    }

    fn balances<'a>(&'a self, currency: Currency, addresses: &'a [String], at: i64) -> Reply<'a, Vec<Usd>> {
        // Rows hold addresses as `address::text` writes them.
        let kind = self.network.kind();
        let spelled =
            addresses.iter().map(|text| address::bytes(kind, text).map(|it| address::text(kind, &it)));
        let spelled: Vec<_> = spelled.flatten().collect();
        if spelled.len() < addresses.len() {
            return Box::pin(async { Err(Trouble::new("the balance of something that is not an address")) });
        }
        Box::pin(self.ask(move |tx, world| {
            let (network, at) = (world.network, world.head_of(Witness::Any).min(at));
            let one = |address: &String| sim_chain::balance(tx, network, address, currency, at);
            spelled.iter().map(one).collect()
        }))
    }
}

/// As `parse_tx_hash` writes them.
fn spell_hash(kind: AddressKind, bytes: &[u8]) -> String {
    match kind {
        AddressKind::Evm => format!("0x{}", hex(bytes)),
        AddressKind::Tron => hex(bytes),
    }
}

/// The address that a made-up transaction pays; `None` for an honest one.
fn lied_to(hash: &str) -> Option<[u8; 20]> {
    let digits = hash.strip_prefix("0x").unwrap_or(hash).strip_prefix(&hex(LIE_MARK))?;
    let mut recipient = [0; 20];
    for (byte, at) in recipient.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
    }
    Some(recipient)
}

fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&vault::random().to_be_bytes());
    bytes[16..].copy_from_slice(&vault::random().to_be_bytes());
    bytes
}
