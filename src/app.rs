//! The application: everything an operation needs, built once at start and cloned cheaply.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

use crate::chain::Chain;
use crate::chain::evm::{Evm, EvmSettings};
use crate::chain::sim::SimChain;
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::ids::{EntryId, InvoiceId, KeyId, OrderId};
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::mail::Mailer;
use crate::ops::catalog::Snapshot;
use crate::ops::deposits::Looks;
use crate::ops::keys::KeyRing;
use crate::ops::refresh::Versions;
use crate::ops::tokens::Seen;
use crate::store::Store;
use crate::supplier::Supplier;
use crate::supplier::sim::Sim;
use crate::vault::{self, Vault};

#[derive(Clone)]
pub struct App(Arc<Parts>);

pub struct Parts {
    pub settings: Settings,
    pub store: Arc<Store>,
    pub clock: Arc<Clock>,
    pub vault: Vault,
    /// The simulated supplier, in sandbox mode.
    pub sim: Arc<Sim>,
    /// The networks that money can come by; those without nodes of their own are simulated.
    pub chains: BTreeMap<Network, Arc<dyn Chain>>,
    pub sim_chains: BTreeMap<Network, Arc<SimChain>>,
    /// Who is looking at a chain for which invoice.
    pub looks: Looks,
    /// Counts what scanners need not wait for: somebody is about to pay.
    pub expected: watch::Sender<u64>,
    /// What is on sale. Watchers hear of every change.
    pub catalog: watch::Sender<Arc<Snapshot>>,
    pub keys: ArcSwap<KeyRing>,
    pub tokens: Seen,
    /// Absent in a sandbox without a mail server, whose outbox is read instead.
    pub mailer: Option<Mailer>,
    /// Wakes the sender: a mail was queued.
    pub mail_now: Notify,
    /// A restored backup waits for the operator's word; see `ops::restore`.
    pub buying_on_hold: AtomicBool,
    /// Up to which change catalog, keys and simulator are loaded.
    pub seen: Mutex<Versions>,
    /// Work that outlives the request that began it; a shutdown waits for it.
    pub tasks: TaskTracker,
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl App {
    pub fn new(settings: Settings, store: Arc<Store>, vault: Vault) -> Result<App> {
        let sim = Sim::new(store.clone(), settings.sandbox_plans, settings.sandbox_journal.as_deref())?;
        let clock = Arc::new(Clock::default());
        let mut chains: BTreeMap<Network, Arc<dyn Chain>> = BTreeMap::new();
        let mut sim_chains = BTreeMap::new();
        for (&network, terms) in &settings.settlement.networks {
            if terms.is_simulated() {
                let chain =
                    Arc::new(SimChain::new(store.clone(), clock.clone(), network, terms.tokens.clone()));
                sim_chains.insert(network, chain.clone());
                chains.insert(network, chain);
            } else {
                let nodes = EvmSettings {
                    network,
                    providers: terms.providers.clone(),
                    api_key: settings.settlement.tron_api_key.clone(),
                    tokens: terms.tokens.clone(),
                    addresses_per_call: settings.settlement.scan_addresses,
                };
                chains.insert(network, Arc::new(Evm::new(nodes).map_err(Error::settings)?));
            }
        }
        let mailer = settings.logins.smtp.as_ref().map(Mailer::new).transpose().map_err(Error::settings)?;
        Ok(App(Arc::new(Parts {
            settings,
            store,
            clock,
            vault,
            sim: Arc::new(sim),
            chains,
            sim_chains,
            looks: Looks::default(),
            expected: watch::Sender::new(0),
            catalog: watch::Sender::new(Arc::new(Snapshot::default())),
            keys: ArcSwap::from_pointee(KeyRing::default()),
            tokens: Seen::default(),
            mailer,
            mail_now: Notify::new(),
            buying_on_hold: AtomicBool::new(false),
            seen: Mutex::default(),
            tasks: TaskTracker::new(),
        })))
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The supplier that an order belongs to, by the name in its row.
    pub fn supplier(&self, name: &str) -> Result<Arc<dyn Supplier>> {
        if name == self.sim.name() {
            return Ok(self.sim.clone());
        }
        Err(Error::fault(format!("no supplier is called {name:?}")))
    }

    pub fn new_invoice_id(&self) -> InvoiceId {
        InvoiceId::new(self.now(), vault::random())
    }

    pub fn new_order_id(&self) -> OrderId {
        OrderId::esim(self.now(), vault::random())
    }

    pub fn new_topup_id(&self) -> OrderId {
        OrderId::topup(self.now(), vault::random())
    }

    pub fn new_entry_id(&self) -> EntryId {
        EntryId::new(self.now(), vault::random())
    }

    pub fn new_key_id(&self) -> KeyId {
        KeyId::new(self.now(), vault::random())
    }
}
