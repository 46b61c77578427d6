//! Where transfers are seen. A `Chain` answers what a network's blocks hold now; it remembers nothing that
//! counts, decides nothing about money, and says plainly when it cannot be sure. `ops::scan` asks it.

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

/// Why a chain could not answer: no node was reached, or what the nodes said does not fit together.
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
    /// The last block that was looked at: it may come before the one asked for, and the caller goes on from there.
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
    /// Every movement of a token that we take, to whomever.
    pub transfers: Vec<Sighting>,
    /// How far the chain has come, by the lowest word of the nodes that say so: never below the block.
    pub head: i64,
}

/// Whose word to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// Whichever node answers: a hint, for which no money moves.
    Any,
    /// What most nodes say: 2 of 2, 2 of 3, 3 of 5; a node that is the only one counts alone. Where too few agree,
    /// there is `Trouble`.
    Quorum,
}

/// A node that does not count like the others at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demoted {
    pub node: String,
    pub why: &'static str,
    /// What it did, as a sentence goes on after its name.
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

    /// Chain id, decimals and symbols are what they must be, at enough nodes.
    fn check(&self) -> Reply<'_, ()>;

    /// The nodes that failed or were wrong lately.
    fn demoted(&self) -> Vec<Demoted> {
        Vec::new()
    }

    /// How far enough nodes have come.
    fn tip(&self) -> Reply<'_, Tip>;

    /// `None` when the chain has no block of this number yet.
    fn block(&self, number: i64) -> Reply<'_, Option<Block>>;

    /// Whether these are so many that every transfer in a block is read to find theirs: such a look is not repeated lightly.
    fn reads_all(&self, _watched: &Watched) -> bool {
        false
    }

    /// What moved to watched addresses in the blocks `from..=to`. Any witness: who reads the same blocks again hears
    /// another node.
    fn scan<'a>(&'a self, from: i64, to: i64, watched: &'a Watched, witness: Witness) -> Reply<'a, Scanned>;

    /// `None` when it is in no block. The hash is spelled as `domain::transfer::parse_tx_hash` does.
    fn transaction<'a>(&'a self, hash: &'a str, witness: Witness) -> Reply<'a, Option<Mined>>;

    /// What lies on each of these addresses at this block; on TRON, which cannot tell, in the newest.
    fn balances<'a>(&'a self, currency: Currency, addresses: &'a [String], at: i64) -> Reply<'a, Vec<Usd>>;
}
