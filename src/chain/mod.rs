//! Where transfers are seen. A `Chain` says what a network's blocks hold now; it keeps no state that matters, decides
//! nothing about money, and says plainly when it cannot be sure. `ops::scan` asks it.

pub mod address;
pub mod evm;
mod health;
mod limit;
pub(crate) mod rpc;
pub mod sim;
mod tron;
mod watched;

use std::fmt;
use std::pin::Pin;

use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::transfer::{Block, Sighting};

pub use self::watched::Watched;

/// Why a chain could not answer: no node was reached, or the nodes contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble(pub String);

impl Trouble {
    pub fn new(what: impl fmt::Display) -> Trouble {
        Trouble(what.to_string())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send + 'a>>;

/// How far a chain has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    pub head: Block,
    /// The newest block that the chain calls safe, and the newest that it calls final (on TRON: solidified).
    pub safe: i64,
    pub finalized: i64,
}

/// What lies in a range of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// The last block that was read: it may come before the one asked for, and the caller goes on from there.
    pub last: Block,
    /// In the order of the chain.
    pub sightings: Vec<Sighting>,
}

/// A transaction that is in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mined {
    pub block: Block,
    /// A transaction in a block may still have been reverted; then it moved nothing.
    pub succeeded: bool,
    /// Every movement of a token that we take, to any recipient.
    pub transfers: Vec<Sighting>,
    /// The head of the chain: the lowest that the agreeing nodes name, and never below the block.
    pub head: i64,
}

/// Which nodes must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// Any one node: a hint, on which no money moves.
    Any,
    /// More than half of all nodes: 2 of 2, 2 of 3, 3 of 5; a single node decides alone. When too few agree, the answer
    /// is `Trouble`.
    Quorum,
}

/// A node that counts less than the others at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demoted {
    pub node: String,
    pub why: &'static str,
    /// What the node did: a sentence continued from its name.
    pub said: String,
}

/// A token that this deployment takes on a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub currency: Currency,
    /// As people write it on that network.
    pub contract: String,
}

pub trait Chain: Send + Sync {
    fn network(&self) -> Network;

    fn tokens(&self) -> &[Token];

    /// Checks, at enough nodes, that chain id, decimals and symbols are as they must be.
    fn check(&self) -> Reply<'_, ()>;

    /// The nodes that failed or were wrong lately.
    fn demoted(&self) -> Vec<Demoted> {
        Vec::new()
    }

    /// The tip that a quorum of nodes has reached.
    fn tip(&self) -> Reply<'_, Tip>;

    /// `None` when the chain has no block of this number yet.
    fn block(&self, number: i64) -> Reply<'_, Option<Block>>;

    /// Whether a scan reads every transfer, because there are too many addresses to name. It is not repeated lightly.
    fn reads_all(&self, _watched: &Watched) -> bool {
        false
    }

    /// The transfers to watched addresses in the blocks `from..=to`. With `Witness::Any`, reading the same blocks again
    /// begins with another node.
    fn scan<'a>(&'a self, from: i64, to: i64, watched: &'a Watched, witness: Witness) -> Reply<'a, Scanned>;

    /// `None` when it is in no block. The hash is spelled as by `domain::transfer::parse_tx_hash`.
    fn transaction<'a>(&'a self, hash: &'a str, witness: Witness) -> Reply<'a, Option<Mined>>;

    /// The balance of each address at block `at`; on TRON, whose nodes keep no old balances, at the newest block.
    fn balances<'a>(&'a self, currency: Currency, addresses: &'a [String], at: i64) -> Reply<'a, Vec<Usd>>;
}
