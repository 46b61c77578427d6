//! Proves the books: every law of the ledger, over one consistent state of the database; and compares what the books
//! say we have with what the chains say.

use std::time::Duration;

use super::addresses;
use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::error::Result;
use crate::store::ledger::{self, Breach, Counts};
use crate::store::transfers;
use crate::store::tx::Tx;

pub struct Verdict {
    pub counts: Counts,
    /// Every row that breaks a law (at most ten for each law). Empty when the books are right.
    pub breaches: Vec<Breach>,
}

pub async fn verify(app: &App) -> Result<Verdict> {
    let (counts, breaches) = app.store.study(ledger::check).await?;
    Ok(Verdict { counts, breaches })
}

/// One token on one network, in the books and on the chain.
pub struct Holding {
    pub network: Network,
    pub currency: Currency,
    pub booked: Usd,
    /// Seen on the chain, but not final or not booked yet.
    pub pending: Usd,
    /// `None` when the network did not answer or is not enabled.
    pub on_chain: Option<Usd>,
}

impl Holding {
    /// Negative when money is missing on the chain.
    pub fn difference(&self) -> Option<Usd> {
        Some(self.on_chain?.minus(self.booked).minus(self.pending))
    }
}

pub struct Comparison {
    pub holdings: Vec<Holding>,
    /// Networks that did not answer, and why.
    pub silent: Vec<(Network, String)>,
}

impl Comparison {
    /// Whether everything was compared and is equal.
    pub fn holds(&self) -> bool {
        self.holdings.iter().all(|holding| holding.difference() == Some(Usd::ZERO))
    }

    pub fn differs(&self) -> bool {
        self.holdings.iter().any(|holding| holding.difference().is_some_and(|off| off != Usd::ZERO))
    }
}

/// A chain is ahead of the books until its scanner has caught up, so a difference is checked again.
const LOOKS: usize = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// Compares the books with every chain.
pub async fn against_chains(app: &App) -> Result<Comparison> {
    let mut found = compare(app).await?;
    for _ in 1..LOOKS {
        if !found.differs() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        found = compare(app).await?;
    }
    Ok(found)
}

async fn compare(app: &App) -> Result<Comparison> {
    let survey = addresses::survey(app).await?;
    let read = |tx: &mut Tx| {
        let mut sums = Vec::new();
        for network in Network::ALL {
            for currency in Currency::ALL {
                let booked = ledger::cash(tx, network, currency)?;
                sums.push((network, currency, booked, transfers::pending_sum(tx, network, currency)?));
            }
        }
        Ok(sums)
    };
    let holdings =
        app.store.study(read).await?.into_iter().filter_map(|(network, currency, booked, pending)| {
            let taken =
                app.settings.settlement.networks.get(&network).is_some_and(|terms| terms.takes(currency));
            let on_chain = survey.sum(app, network, currency);
            // A network that is turned off still matters while the books hold money there.
            let matters = taken || booked != Usd::ZERO || pending != Usd::ZERO;
            matters.then_some(Holding { network, currency, booked, pending, on_chain })
        });
    Ok(Comparison { holdings: holdings.collect(), silent: survey.silent })
}
