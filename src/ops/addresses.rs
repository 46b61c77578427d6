//! Our addresses and the money on them, for the operator who sweeps them. All chains are asked at once, part by part; a
//! chain that does not answer leaves its share unknown and delays no other.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::app::App;
use crate::chain::address::Xpub;
use crate::chain::{Chain, Reply};
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::addresses;
pub use crate::store::addresses::Address;
use crate::store::tx::Tx;

/// How many balances are asked for at once.
const AT_ONCE: usize = 100;
/// How long a chain may take for one part; after that it is not asked for the rest.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stores the address at an index that was taken for this owner; without an owner it is the house's.
pub fn derive(
    tx: &mut Tx,
    xpub: &Xpub,
    index: i64,
    account: Option<AccountNo>,
    watch_until: Time,
    now: Time,
) -> Result<String> {
    let short = u32::try_from(index).map_err(|_| Error::fault("no address index is left"))?;
    let address = Address {
        address: xpub.address(short),
        kind: xpub.kind(),
        fingerprint: xpub.fingerprint().into(),
        index,
        account,
        watch_until,
        standing: false,
    };
    addresses::insert(tx, &address, now)?;
    Ok(address.address)
}

/// The balance of one address in one token; `None` when the network did not answer.
pub struct Holding {
    pub network: Network,
    pub currency: Currency,
    pub amount: Option<Usd>,
}

pub struct Held {
    pub address: Address,
    pub holdings: Vec<Holding>,
}

impl Held {
    /// Whether some money certainly lies here.
    pub fn is_funded(&self) -> bool {
        self.holdings.iter().any(|holding| holding.amount.is_some_and(Usd::is_positive))
    }
}

pub struct Survey {
    pub addresses: Vec<Held>,
    /// Networks that did not answer, and why.
    pub silent: Vec<(Network, String)>,
}

impl Survey {
    /// The sum over all our addresses; `None` when the network did not answer or is not enabled.
    pub fn sum(&self, app: &App, network: Network, currency: Currency) -> Option<Usd> {
        let asked = app.chains.get(&network)?.tokens().iter().any(|token| token.currency == currency);
        if !asked || self.silent.iter().any(|(silent, _)| *silent == network) {
            return None;
        }
        let here = self.addresses.iter().flat_map(|held| &held.holdings);
        let here = here.filter(|holding| (holding.network, holding.currency) == (network, currency));
        Some(here.filter_map(|holding| holding.amount).fold(Usd::ZERO, Usd::plus))
    }
}

/// Every address there is, with its balances on the chains.
pub async fn survey(app: &App) -> Result<Survey> {
    let all = app.store.snapshot(addresses::list).await?;
    let mut of_kind: HashMap<AddressKind, Vec<String>> = HashMap::new();
    for address in &all {
        of_kind.entry(address.kind).or_default().push(address.address.clone());
    }
    let asking: Vec<_> = app
        .chains
        .values()
        .map(|chain| {
            let texts = of_kind.get(&chain.network().kind()).cloned().unwrap_or_default();
            (chain.clone(), tokio::spawn(ask(chain.clone(), texts)))
        })
        .collect();
    let mut held: Vec<Held> = all.into_iter().map(|address| Held { address, holdings: Vec::new() }).collect();
    let mut silent = Vec::new();
    for (chain, answer) in asking {
        let network = chain.network();
        let answer = answer.await.map_err(Error::fault)?;
        let mut amounts = match answer {
            Ok(amounts) => amounts,
            Err(why) => {
                silent.push((network, why));
                HashMap::new()
            }
        };
        for token in chain.tokens() {
            let mut amounts = amounts.remove(&token.currency).unwrap_or_default().into_iter();
            for held in held.iter_mut().filter(|held| held.address.kind == network.kind()) {
                let amount = amounts.next();
                held.holdings.push(Holding { network, currency: token.currency, amount });
            }
        }
    }
    Ok(Survey { addresses: held, silent })
}

async fn ask(chain: Arc<dyn Chain>, addresses: Vec<String>) -> Result<HashMap<Currency, Vec<Usd>>, String> {
    let mut found = HashMap::new();
    let at = in_time(chain.tip()).await?.head.number;
    for token in chain.tokens() {
        let mut amounts = Vec::with_capacity(addresses.len());
        for part in addresses.chunks(AT_ONCE) {
            amounts.extend(in_time(chain.balances(token.currency, part, at)).await?);
        }
        if amounts.len() != addresses.len() {
            return Err("the node answered for a different number of addresses".into());
        }
        found.insert(token.currency, amounts);
    }
    Ok(found)
}

async fn in_time<T>(answer: Reply<'_, T>) -> Result<T, String> {
    match timeout(PATIENCE, answer).await {
        Ok(answer) => answer.map_err(|trouble| trouble.to_string()),
        Err(_) => Err("no answer within 10 s".into()),
    }
}
