//! Who brings payments onto the chain, and on which networks that is possible now. What a terminal offers is checked
//! against its chain: a signature made for another EIP-712 domain than the token's own would be worthless.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::authorization::{Domain, NAME_CALL, Permission, SEPARATOR_CALL, Seal, VERSION_CALL, state_call};
use super::local::{GasKey, Price};
use super::remote::Facilitator;
use super::simulated::SimToken;
use super::wire;
use crate::chain::evm::{Called, Evm, GasPurse, abi_text};
use crate::chain::{Chain, Trouble, Witness, address};
use crate::domain::authorization::Reason;
use crate::domain::network::{AddressKind, Network};

/// The only token that can be paid by signature.
pub use crate::domain::authorization::CURRENCY;
/// About how much gas a settlement takes, and how many settlements a gas key should be able to pay for.
const TYPICAL_GAS: u64 = 100_000;
const LEAST_SETTLEMENTS: i64 = 10;

pub struct Settler {
    pub by: SettledBy,
    pub terminals: BTreeMap<Network, Terminal>,
}

pub enum SettledBy {
    Facilitator(Facilitator),
    /// With a gas key of our own.
    Ourselves,
    /// On a simulated chain.
    Simulated,
}

/// A gas key and what may be spent with it.
#[derive(Clone, Debug)]
pub struct Gas {
    pub key: GasKey,
    /// In wei for each unit of gas.
    pub cap: u64,
    /// In gwei.
    pub per_day: i64,
    pub per_account: i64,
}

/// A gas key and the nodes that take its transactions.
pub struct Sender {
    pub gas: Gas,
    pub nodes: Arc<Evm>,
}

/// Where a terminal's token lives.
pub enum Place {
    Nodes(Arc<Evm>),
    Simulated(SimToken),
}

/// One network on which payments by signature are taken.
pub struct Terminal {
    pub network: Network,
    pub place: Place,
    /// The token's contract, as text and as bytes.
    pub asset: String,
    pub contract: [u8; 20],
    /// Only where we settle ourselves.
    pub sender: Option<Sender>,
    offered: ArcSwapOption<Domain>,
}

/// Why a terminal cannot settle anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is known to be impossible.
    Wrong(String),
    /// It could not be found out.
    Unknown(Trouble),
}

impl From<Trouble> for Unfit {
    fn from(trouble: Trouble) -> Unfit {
        Unfit::Unknown(trouble)
    }
}

impl Settler {
    /// The terminals that can take a payment now.
    pub fn open_terminals(&self) -> impl Iterator<Item = (&Terminal, Arc<Domain>)> {
        self.terminals.values().filter_map(|terminal| Some((terminal, terminal.domain()?)))
    }
}

impl SettledBy {
    /// Whether payments can be settled at this terminal, and the domain that they are signed for. Called again and
    /// again: nodes come and go, and gas runs out. When it cannot be found out, the terminal stays as it was.
    pub async fn check(&self, terminal: &Terminal) -> Result<Arc<Domain>, Unfit> {
        let checked = match self.able(terminal).await {
            Ok(()) => terminal.read_domain().await,
            Err(unfit) => Err(unfit),
        };
        match checked {
            Ok(domain) => {
                terminal.offered.store(Some(domain.clone()));
                Ok(domain)
            }
            Err(unfit) => {
                if matches!(unfit, Unfit::Wrong(_)) {
                    terminal.offered.store(None);
                }
                Err(unfit)
            }
        }
    }

    async fn able(&self, terminal: &Terminal) -> Result<(), Unfit> {
        match self {
            SettledBy::Facilitator(facilitator) => {
                let id = wire::network_id(terminal.network);
                if facilitator.supported().await?.contains(&id) {
                    return Ok(());
                }
                Err(Unfit::Wrong(format!("the facilitator does not settle on {id}")))
            }
            SettledBy::Ourselves => {
                let (purse, needed) = terminal.purse().await?;
                if purse.gwei >= needed {
                    return Ok(());
                }
                Err(Unfit::Wrong(format!(
                    "the gas key has too little on it for {LEAST_SETTLEMENTS} settlements"
                )))
            }
            SettledBy::Simulated => Ok(()),
        }
    }
}

impl Terminal {
    /// With nodes; nothing is offered before the first check.
    pub fn at_nodes(network: Network, nodes: Arc<Evm>, contract: [u8; 20], gas: Option<Gas>) -> Terminal {
        let sender = gas.map(|gas| Sender { gas, nodes: nodes.clone() });
        Terminal {
            network,
            place: Place::Nodes(nodes),
            asset: address::text(AddressKind::Evm, &contract),
            contract,
            sender,
            offered: ArcSwapOption::empty(),
        }
    }

    /// On a simulated chain, whose token is always there.
    pub fn simulated(network: Network, token: SimToken) -> Terminal {
        let contract = token.domain.contract;
        Terminal {
            network,
            asset: address::text(AddressKind::Evm, &contract),
            contract,
            sender: None,
            offered: Some(token.domain.clone()).into(),
            place: Place::Simulated(token),
        }
    }

    pub fn chain(&self) -> &dyn Chain {
        match &self.place {
            Place::Nodes(nodes) => &**nodes,
            Place::Simulated(token) => &*token.chain,
        }
    }

    /// Whose transactions settle: the gas key's, a facilitator's, or the simulator's.
    pub fn sender_name(&self) -> &str {
        match (&self.sender, &self.place) {
            (Some(sender), _) => &sender.gas.key.address,
            (None, Place::Nodes(_)) => "remote",
            (None, Place::Simulated(_)) => "simulated",
        }
    }

    /// Why the token would refuse this transfer now; `None` when it would make it.
    pub async fn refusal(&self, permission: &Permission, seal: &Seal) -> Result<Option<Reason>, Trouble> {
        let nodes = match &self.place {
            Place::Nodes(nodes) => nodes,
            Place::Simulated(token) => return Ok(token.check(permission, seal).await?.err()),
        };
        let call = permission.transfer_call(seal);
        let caller = self.sender.as_ref().map_or(permission.to, |sender| sender.gas.key.bytes);
        Ok(match nodes.call(CURRENCY, &call, Some(&caller), None, Witness::Any).await? {
            Called::Returned(_) => None,
            Called::Reverted(why) => Some(reason_of(&why)),
        })
    }

    /// Whether the token has seen this nonce by this block, as enough nodes say.
    pub async fn is_used(&self, permission: &Permission, block: i64) -> Result<bool, Trouble> {
        let nodes = match &self.place {
            Place::Nodes(nodes) => nodes,
            Place::Simulated(token) => return token.is_used(permission, block).await,
        };
        let call = state_call(&permission.from, &permission.nonce);
        match nodes.call(CURRENCY, &call, None, Some(block), Witness::Quorum).await? {
            Called::Returned(word) => Ok(word.iter().any(|byte| *byte != 0)),
            Called::Reverted(why) => Err(Trouble(format!("a token does not tell its nonces: {why}"))),
        }
    }

    /// The domain that signatures are made for, while payments can be taken here.
    pub fn domain(&self) -> Option<Arc<Domain>> {
        self.offered.load_full()
    }

    /// What the gas key holds, and the least that it should hold, in gwei.
    pub async fn purse(&self) -> Result<(GasPurse, i64), Unfit> {
        let sender = self.sender.as_ref().ok_or_else(|| Unfit::Wrong("it has no gas key".into()))?;
        let purse = sender.nodes.purse(&sender.gas.key.bytes).await?;
        let fees = sender.nodes.fees().await?;
        let price = Price { tip: fees.tip, max_fee: fees.base.saturating_add(fees.tip) };
        Ok((purse, price.gwei_for(TYPICAL_GAS).saturating_mul(LEAST_SETTLEMENTS)))
    }

    /// Reads the domain from the token; it must give the separator that the token uses.
    async fn read_domain(&self) -> Result<Arc<Domain>, Unfit> {
        let nodes = match &self.place {
            Place::Nodes(nodes) => nodes,
            Place::Simulated(token) => return Ok(token.domain.clone()),
        };
        let domain = Domain {
            name: text(nodes, &NAME_CALL, "name").await?,
            version: text(nodes, &VERSION_CALL, "version").await?,
            chain_id: self.network.chain_id(),
            contract: self.contract,
        };
        if view(nodes, &SEPARATOR_CALL, "DOMAIN_SEPARATOR").await? != domain.separator() {
            return Err(Unfit::Wrong(format!(
                "the token's DOMAIN_SEPARATOR() is not that of {:?}, version {:?}",
                domain.name, domain.version
            )));
        }
        Ok(Arc::new(domain))
    }
}

async fn text(nodes: &Evm, call: &[u8], name: &str) -> Result<String, Unfit> {
    let bytes = view(nodes, call, name).await?;
    abi_text(&bytes).ok_or_else(|| Unfit::Wrong(format!("the token's {name}() cannot be read")))
}

async fn view(nodes: &Evm, call: &[u8], name: &str) -> Result<Vec<u8>, Unfit> {
    match nodes.call(CURRENCY, call, None, None, Witness::Quorum).await? {
        Called::Returned(bytes) if !bytes.is_empty() => Ok(bytes),
        Called::Returned(_) | Called::Reverted(_) => {
            Err(Unfit::Wrong(format!("the token has no {name}(): it takes no signatures")))
        }
    }
}

/// What a token says when it refuses, as payers know it.
pub fn reason_of(revert: &str) -> Reason {
    let said = revert.to_lowercase();
    let words = [
        ("expired", Reason::ValidBefore),
        ("not yet valid", Reason::ValidAfter),
        ("used or canceled", Reason::Used),
        ("exceeds balance", Reason::Funds),
        ("invalid signature", Reason::Signature),
    ];
    words.into_iter().find(|(word, _)| said.contains(word)).map_or(Reason::Transaction, |(_, reason)| reason)
}
