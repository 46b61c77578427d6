//! Who brings payments onto the chain, and on which networks that is possible now. What a terminal offers is checked
//! against its chain: a signature made for another EIP-712 domain than the token's own would be worthless.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::authorization::{Domain, NAME_CALL, SEPARATOR_CALL, VERSION_CALL};
use super::local::{GasKey, Price};
use super::remote::Facilitator;
use super::wire;
use crate::chain::evm::{Called, Evm, GasPurse, abi_text};
use crate::chain::{Trouble, Witness};
use crate::domain::network::Network;

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

/// One network on which payments by signature are taken.
pub struct Terminal {
    pub network: Network,
    pub chain: Arc<Evm>,
    /// The token's contract, as text and as bytes.
    pub asset: String,
    pub contract: [u8; 20],
    /// With a facilitator there is none.
    pub gas: Option<Gas>,
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
                let domain = Arc::new(domain);
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
        }
    }
}

impl Terminal {
    pub fn new(
        network: Network,
        chain: Arc<Evm>,
        contract: [u8; 20],
        asset: String,
        gas: Option<Gas>,
    ) -> Terminal {
        Terminal { network, chain, asset, contract, gas, offered: ArcSwapOption::empty() }
    }

    /// Whose transactions settle: the gas key's, or a facilitator's.
    pub fn sender(&self) -> &str {
        self.gas.as_ref().map_or("remote", |gas| &gas.key.address)
    }

    /// The domain that signatures are made for, while payments can be taken here.
    pub fn domain(&self) -> Option<Arc<Domain>> {
        self.offered.load_full()
    }

    /// What the gas key holds, and the least that it should hold, in gwei.
    pub async fn purse(&self) -> Result<(GasPurse, i64), Unfit> {
        let gas = self.gas.as_ref().ok_or_else(|| Unfit::Wrong("it has no gas key".into()))?;
        let purse = self.chain.purse(&gas.key.bytes).await?;
        let fees = self.chain.fees().await?;
        let price = Price { tip: fees.tip, max_fee: fees.base.saturating_add(fees.tip) };
        Ok((purse, price.gwei_for(TYPICAL_GAS).saturating_mul(LEAST_SETTLEMENTS)))
    }

    /// Reads the domain from the token; it must give the separator that the token uses.
    async fn read_domain(&self) -> Result<Domain, Unfit> {
        let domain = Domain {
            name: self.text(&NAME_CALL, "name").await?,
            version: self.text(&VERSION_CALL, "version").await?,
            chain_id: self.network.chain_id(),
            contract: self.contract,
        };
        if self.view(&SEPARATOR_CALL, "DOMAIN_SEPARATOR").await? != domain.separator() {
            return Err(Unfit::Wrong(format!(
                "the token's DOMAIN_SEPARATOR() is not that of {:?}, version {:?}",
                domain.name, domain.version
            )));
        }
        Ok(domain)
    }

    async fn text(&self, call: &[u8], name: &str) -> Result<String, Unfit> {
        let bytes = self.view(call, name).await?;
        abi_text(&bytes).ok_or_else(|| Unfit::Wrong(format!("the token's {name}() cannot be read")))
    }

    async fn view(&self, call: &[u8], name: &str) -> Result<Vec<u8>, Unfit> {
        match self.chain.call(CURRENCY, call, None, None, Witness::Quorum).await? {
            Called::Returned(bytes) if !bytes.is_empty() => Ok(bytes),
            Called::Returned(_) | Called::Reverted(_) => {
                Err(Unfit::Wrong(format!("the token has no {name}(): it takes no signatures")))
            }
        }
    }
}
