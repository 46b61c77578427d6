//! A chain of the stories' own: blocks come only when a step says so, transfers may carry the nonce of the signature
//! that moved them, and a reorganisation drops, keeps, delays or changes what was in the replaced blocks. A node of it
//! can be down, behind, or lie; the second witness is always honest.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use simgate::chain::{Chain, Mined, Reply, Scanned, Tip, Token, Trouble, Watched, Witness, address};
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency, Network};
use simgate::domain::time::Time;
use simgate::domain::transfer::{Block, Sighting, TransferId};

/// Every network of a story waits for so many blocks, its own included.
pub const CONFIRMATIONS: i64 = 6;
/// How many blocks a node lacks that is behind.
const BEHIND: i64 = 4;
/// More blocks than a scanner looks at again in every round.
const OUT_OF_SIGHT: usize = 700;
const LIE: Usd = Usd::dollars(1_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Honest,
    Down,
    Lagging,
    Lying,
}

/// What becomes of what was in replaced blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Nothing,
    /// In a block of the same number.
    Same,
    /// In the next block.
    Later,
    /// In the next block, and so many micro-dollars more.
    Changed(i64),
}

/// One movement of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub currency: Currency,
    pub sender: String,
    pub recipient: String,
    pub amount: Usd,
    /// Of the signature that moved it.
    pub nonce: Option<String>,
}

#[derive(Clone, Debug)]
struct Transaction {
    hash: String,
    /// None while it is in no block.
    block: Option<i64>,
    moves: Vec<Move>,
}

struct State {
    mood: Mood,
    /// The time of each block, and how often it was replaced.
    blocks: Vec<(Time, i64)>,
    forks: i64,
    sent: u64,
    transactions: Vec<Transaction>,
}

pub struct StoryChain {
    network: Network,
    tokens: Vec<Token>,
    state: Mutex<State>,
}

impl StoryChain {
    pub fn new(network: Network, tokens: Vec<Token>, now: Time) -> StoryChain {
        let blocks = vec![(now, 0); 1_000];
        let state = State { mood: Mood::Honest, blocks, forks: 0, sent: 0, transactions: Vec::new() };
        StoryChain { network, tokens, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn behave(&self, mood: Mood) {
        self.state().mood = mood;
    }

    pub fn mine(&self, count: usize, now: Time) {
        let mut state = self.state();
        let end = state.blocks.len() + count;
        state.blocks.resize(end, (now, 0));
    }

    /// Mines these movements as one transaction, in a block of its own.
    pub fn send(&self, moves: Vec<Move>, now: Time) -> String {
        self.mine(1, now);
        let mut state = self.state();
        state.sent += 1;
        let number = state.sent;
        let hash = self.spell(&format!("{:x}{number:08x}", 0xfeed_0000_0000 + self.network as u64));
        let block = Some(state.head());
        state.transactions.push(Transaction { hash: hash.clone(), block, moves });
        hash
    }

    /// Whether the token has seen this payer's nonce.
    pub fn is_used(&self, payer: &str, nonce: &str) -> bool {
        self.state().is_used(payer, nonce)
    }

    /// Replaces the newest blocks.
    pub fn reorg(&self, depth: usize, keep: Keep, now: Time) {
        let mut state = self.state();
        state.forks += 1;
        let (forks, first) = (state.forks, state.blocks.len().saturating_sub(depth) as i64);
        for block in &mut state.blocks[first as usize..] {
            block.1 = forks;
        }
        if !matches!(keep, Keep::Nothing | Keep::Same) {
            state.blocks.push((now, forks));
        }
        let head = state.head();
        let replaced = |transaction: &&mut Transaction| transaction.block.is_some_and(|block| block >= first);
        for transaction in state.transactions.iter_mut().filter(replaced) {
            match keep {
                Keep::Nothing => transaction.block = None,
                Keep::Same => {}
                Keep::Later => transaction.block = Some(head),
                Keep::Changed(micros) => {
                    transaction.block = Some(head);
                    let moved = transaction.moves.iter_mut().filter(|moved| moved.nonce.is_none());
                    let least = Usd::from_micros(1);
                    moved.for_each(|moved| {
                        moved.amount = moved.amount.plus(Usd::from_micros(micros)).max(least);
                    });
                }
            }
        }
    }

    /// What was dropped is mined again, unless its nonce was used meanwhile.
    pub fn bring_back(&self, now: Time) {
        self.mine(1, now);
        let mut state = self.state();
        let head = state.head();
        for index in 0..state.transactions.len() {
            let transaction = &state.transactions[index];
            let spent =
                |moved: &Move| moved.nonce.as_ref().is_some_and(|nonce| state.is_used(&moved.sender, nonce));
            if transaction.block.is_none() && !transaction.moves.iter().any(spent) {
                state.transactions[index].block = Some(head);
            }
        }
    }

    /// A new story begins, so far above the last one that nobody looks back.
    pub fn begin(&self, now: Time) {
        self.behave(Mood::Honest);
        self.state().transactions.clear();
        self.mine(OUT_OF_SIGHT, now);
    }

    /// Everything that is on the chain, oldest first, and how far the node is that is asked first; none when it is down.
    pub fn all(&self) -> Option<(Vec<Sighting>, i64)> {
        let state = self.state();
        let mut found: Vec<Sighting> =
            state.transactions.iter().flat_map(|transaction| self.sightings(&state, transaction)).collect();
        found.sort_by_key(|sighting| (sighting.block.number, sighting.id.position));
        Some((found, self.head(&state, Witness::Any).ok()?))
    }

    fn sightings(&self, state: &State, transaction: &Transaction) -> Vec<Sighting> {
        let Some(block) = transaction.block.map(|number| self.at(state, number)) else { return Vec::new() };
        let sighting = |(position, moved): (i64, &Move)| Sighting {
            id: TransferId { network: self.network, tx_hash: transaction.hash.clone(), position },
            currency: moved.currency,
            sender: moved.sender.clone(),
            recipient: moved.recipient.clone(),
            amount: moved.amount,
            block: block.clone(),
            payment_nonce: moved.nonce.clone(),
        };
        (0..).zip(&transaction.moves).map(sighting).collect()
    }

    fn at(&self, state: &State, number: i64) -> Block {
        let (time, fork) = state.blocks[number as usize];
        Block { number, hash: self.spell(&format!("b10c{fork:08x}{number:08x}")), time }
    }

    fn spell(&self, digits: &str) -> String {
        match self.network.kind() {
            AddressKind::Evm => format!("0x{digits:0>64}"),
            AddressKind::Tron => format!("{digits:0>64}"),
        }
    }

    /// How far this witness is.
    fn head(&self, state: &State, witness: Witness) -> Result<i64, Trouble> {
        match (state.mood, witness) {
            (Mood::Down, _) => Err(Trouble::new("the node is down")),
            (Mood::Lagging, Witness::Any) => Ok(state.head() - BEHIND),
            (Mood::Honest | Mood::Lagging | Mood::Lying, _) => Ok(state.head()),
        }
    }

    /// A transfer that never was, to each of these addresses.
    fn lies(&self, state: &State, block: i64, watched: &Watched) -> Vec<Sighting> {
        let kind = self.network.kind();
        let lie = |(index, recipient): (i64, &[u8; 20])| Sighting {
            id: TransferId { network: self.network, tx_hash: self.spell("11e"), position: index },
            currency: Currency::Usdt,
            sender: address::text(kind, &[0x1e; 20]),
            recipient: address::text(kind, recipient),
            amount: LIE,
            block: self.at(state, block),
            payment_nonce: None,
        };
        (0..).zip(watched.addresses()).map(lie).collect()
    }
}

impl State {
    fn head(&self) -> i64 {
        self.blocks.len() as i64 - 1
    }

    fn is_used(&self, payer: &str, nonce: &str) -> bool {
        let on_chain = self.transactions.iter().filter(|transaction| transaction.block.is_some());
        let used: BTreeSet<(&str, &str)> = on_chain
            .flat_map(|transaction| &transaction.moves)
            .filter(|moved| moved.currency == Currency::Usdc)
            .filter_map(|moved| Some((moved.sender.as_str(), moved.nonce.as_deref()?)))
            .collect();
        used.contains(&(payer, nonce))
    }
}

fn at_once<'a, T: Send + 'a>(answer: Result<T, Trouble>) -> Reply<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Chain for StoryChain {
    fn network(&self) -> Network {
        self.network
    }

    fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    fn check(&self) -> Reply<'_, ()> {
        let state = self.state();
        at_once(self.head(&state, Witness::Any).map(drop))
    }

    fn tip(&self) -> Reply<'_, Tip> {
        let state = self.state();
        at_once(self.head(&state, Witness::Any).map(|head| {
            let last = head - CONFIRMATIONS + 1;
            Tip { head: self.at(&state, head), safe: last, finalized: last }
        }))
    }

    fn block(&self, number: i64) -> Reply<'_, Option<Block>> {
        let state = self.state();
        let head = self.head(&state, Witness::Any);
        at_once(head.map(|head| (0..=head).contains(&number).then(|| self.at(&state, number))))
    }

    fn scan<'a>(&'a self, from: i64, to: i64, watched: &'a Watched, _: Witness) -> Reply<'a, Scanned> {
        let state = self.state();
        at_once(self.head(&state, Witness::Any).map(|head| {
            let last = to.min(head);
            let kind = self.network.kind();
            let here = |sighting: &Sighting| {
                let recipient = address::bytes(kind, &sighting.recipient);
                (from..=last).contains(&sighting.block.number)
                    && recipient.is_some_and(|recipient| watched.contains(&recipient))
            };
            let transactions = state.transactions.iter();
            let all = transactions.flat_map(|transaction| self.sightings(&state, transaction));
            let mut sightings: Vec<Sighting> = all.filter(here).collect();
            if state.mood == Mood::Lying {
                sightings.extend(self.lies(&state, last, watched));
            }
            sightings.sort_by_key(|sighting| (sighting.block.number, sighting.id.position));
            Scanned { last: self.at(&state, last), sightings }
        }))
    }

    fn transaction<'a>(&'a self, hash: &'a str, witness: Witness) -> Reply<'a, Option<Mined>> {
        let state = self.state();
        at_once(self.head(&state, witness).map(|head| {
            let found = state.transactions.iter().find(|transaction| transaction.hash == hash)?;
            let block = self.at(&state, found.block.filter(|block| *block <= head)?);
            Some(Mined { block, succeeded: true, transfers: self.sightings(&state, found), head })
        }))
    }

    fn balances<'a>(&'a self, currency: Currency, addresses: &'a [String], _: i64) -> Reply<'a, Vec<Usd>> {
        let state = self.state();
        let on_chain = state.transactions.iter().filter(|transaction| transaction.block.is_some());
        let moves: Vec<&Move> = on_chain.flat_map(|transaction| &transaction.moves).collect();
        let lies_at = |address: &String| {
            let here = moves.iter().filter(|moved| moved.currency == currency && moved.recipient == *address);
            here.fold(Usd::ZERO, |sum, moved| sum.plus(moved.amount))
        };
        at_once(self.head(&state, Witness::Any).map(|_| addresses.iter().map(lies_at).collect()))
    }
}
