//! The application: everything an operation needs, built once at start and cloned cheaply.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::chain::evm::{Evm, EvmSettings};
use crate::chain::sim::SimChain;
use crate::chain::{Chain, address};
use crate::clock::Clock;
use crate::config::{Mode, Settings, SettlerSetting};
use crate::domain::ids::{BatchId, EntryId, InvoiceId, KeyId, OrderId};
use crate::domain::network::{AddressKind, Network};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::knowledge::Library;
use crate::mail::Mailer;
use crate::ops::breaker::Breakers;
use crate::ops::catalog::Snapshot;
use crate::ops::deposits::Looks;
use crate::ops::events::tail::Tail;
use crate::ops::export::Exports;
use crate::ops::hooks::Messages;
use crate::ops::jobs::Jobs;
use crate::ops::keys::KeyRing;
use crate::ops::live::Live;
use crate::ops::refresh::{Rounds, Versions};
use crate::ops::sync::resync::Noted;
use crate::ops::tokens::Seen;
use crate::ops::usage::Readings;
use crate::ops::vitals::Heads;
use crate::ops::webhooks::by_hand::Tries;
use crate::store::Store;
use crate::supplier::Supplier;
use crate::supplier::airalo::Airalo;
use crate::supplier::esim_access::EsimAccess;
use crate::supplier::sim::Sim;
use crate::supplier::terms::{Kind, Terms};
use crate::supplier::turns::Turns;
use crate::supplier::wire::Pace;
use crate::vault::{self, Numbers, Vault};
use crate::webhook::{Sender, SystemDns};
use crate::x402::remote::Facilitator;
use crate::x402::settler::{CURRENCY, SettledBy, Settler, Terminal};
use crate::x402::simulated::SimToken;

#[derive(Clone)]
pub struct App(Arc<Parts>);

pub struct Parts {
    pub settings: Settings,
    pub store: Arc<Store>,
    pub clock: Arc<Clock>,
    pub vault: Vault,
    /// Order numbers, by this database's own key.
    pub numbers: Numbers,
    /// Everybody who sells to us, by name.
    pub suppliers: BTreeMap<&'static str, Arc<dyn Supplier>>,
    /// What suppliers have told us lately.
    pub messages: Messages,
    /// The suppliers that sell now, as this process sees them.
    pub breakers: Breakers,
    /// The plans that turned out to cost something else than we knew.
    pub resyncs: Noted,
    /// The simulated supplier, which a sandbox can tell how to behave.
    pub sim: Arc<Sim>,
    /// The networks that money can come by; those without nodes of their own are simulated.
    pub chains: BTreeMap<Network, Arc<dyn Chain>>,
    pub sim_chains: BTreeMap<Network, Arc<SimChain>>,
    /// Brings payments by signature onto the chains; `None` when the settings name no settler.
    pub settler: Option<Settler>,
    /// Counts the signatures claimed here; a change wakes the settlers.
    pub claimed: watch::Sender<u64>,
    /// The looks at chains that are under way, by invoice.
    pub looks: Looks,
    /// The questions to carriers that are under way, by order.
    pub readings: Readings,
    /// Whose data was taken along lately.
    pub exports: Exports,
    /// Counts the payments asked for here; a change wakes the scanners.
    pub expected: watch::Sender<u64>,
    /// The end of the event log, and who waits for more.
    pub tail: Tail,
    /// The pages that are open and told of news.
    pub live: Live,
    /// Sends messages to partners' endpoints.
    pub sender: Sender,
    /// The webhooks that are tried by hand now.
    pub tries: Tries,
    /// What is on sale. Watchers see every change.
    pub catalog: watch::Sender<Arc<Snapshot>>,
    pub keys: ArcSwap<KeyRing>,
    pub knowledge: Library,
    pub tokens: Seen,
    /// Absent in a sandbox without a mail server: people read its outbox instead.
    pub mailer: Option<Mailer>,
    /// Wakes the mail sender when a mail was queued.
    pub mail_now: Notify,
    /// Set while a restored backup waits for the operator to confirm it; see `ops::restore`.
    pub buying_on_hold: AtomicBool,
    /// The versions of catalog, keys and simulator that are loaded.
    pub seen: Mutex<Versions>,
    pub rounds: Rounds,
    pub jobs: Jobs,
    /// The newest block of each network that a node showed us.
    pub heads: Heads,
    /// Work that outlives the request that began it; a shutdown waits for it.
    pub tasks: TaskTracker,
    /// Cancelled when the gateway stops: whoever waits for something that may not come ends then.
    pub stopping: CancellationToken,
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl App {
    pub fn new(settings: Settings, store: Arc<Store>, vault: Vault, numbers: Numbers) -> Result<App> {
        let clock = Arc::new(Clock::default());
        let journal = settings.sandbox_journal.as_deref();
        let sim = Sim::new(store.clone(), clock.clone(), settings.sandbox_plans, journal)?;
        let sim = Arc::new(sim.read_every(Duration::from_secs(settings.sandbox_reading_s)));
        let suppliers = suppliers(&settings, &store, &clock, &sim)?;
        let mut chains: BTreeMap<Network, Arc<dyn Chain>> = BTreeMap::new();
        let mut sim_chains = BTreeMap::new();
        let mut nodes_of = BTreeMap::new();
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
                    clock: clock.clone(),
                };
                let chain = Arc::new(Evm::new(nodes).map_err(Error::settings)?);
                nodes_of.insert(network, chain.clone());
                chains.insert(network, chain);
            }
        }
        let settler = settler(&settings, &nodes_of, &sim_chains)?;
        let knowledge = Library::load(settings.knowledge_dir.as_deref(), settings.support_contact.as_deref())
            .map_err(|why| Error::settings(format!("knowledge_dir: {why}")))?;
        let mailer = settings.logins.smtp.as_ref().map(Mailer::new).transpose().map_err(Error::settings)?;
        let sender = Sender::new(settings.webhooks.clone(), Arc::new(SystemDns::default()));
        let sender = sender.map_err(Error::settings)?;
        Ok(App(Arc::new(Parts {
            settings,
            store,
            clock,
            vault,
            numbers,
            breakers: Breakers::new(suppliers.keys().copied()),
            suppliers,
            messages: Messages::default(),
            resyncs: Noted::default(),
            sim,
            chains,
            sim_chains,
            settler,
            claimed: watch::Sender::new(0),
            looks: Looks::default(),
            readings: Readings::default(),
            exports: Exports::default(),
            expected: watch::Sender::new(0),
            tail: Tail::default(),
            live: Live::default(),
            sender,
            tries: Tries::default(),
            catalog: watch::Sender::new(Arc::new(Snapshot::default())),
            keys: ArcSwap::from_pointee(KeyRing::default()),
            knowledge,
            tokens: Seen::default(),
            mailer,
            mail_now: Notify::new(),
            buying_on_hold: AtomicBool::new(false),
            seen: Mutex::default(),
            rounds: Rounds::default(),
            jobs: Jobs::default(),
            heads: Heads::default(),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        })))
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The supplier that an order belongs to, by the name in its row.
    pub fn supplier(&self, name: &str) -> Result<Arc<dyn Supplier>> {
        let supplier = self.suppliers.get(name).cloned();
        supplier.ok_or_else(|| Error::fault(format!("no supplier is called {name:?}")))
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

    pub fn new_batch_id(&self) -> BatchId {
        BatchId::new(self.now(), vault::random())
    }

    pub fn new_entry_id(&self) -> EntryId {
        EntryId::new(self.now(), vault::random())
    }

    pub fn new_key_id(&self) -> KeyId {
        KeyId::new(self.now(), vault::random())
    }
}

/// The suppliers that the settings name; a sandbox has its simulator besides.
fn suppliers(
    settings: &Settings,
    store: &Arc<Store>,
    clock: &Arc<Clock>,
    sim: &Arc<Sim>,
) -> Result<BTreeMap<&'static str, Arc<dyn Supplier>>> {
    let mut all: BTreeMap<&'static str, Arc<dyn Supplier>> = BTreeMap::new();
    if settings.mode == Mode::Sandbox {
        all.insert(sim.name(), sim.clone());
    }
    for terms in &settings.suppliers {
        let step = Duration::from_secs_f64(1.0 / terms.rate);
        let turns = Turns { store: store.clone(), clock: clock.clone(), supplier: terms.name, step };
        all.insert(terms.name, adapter(terms, Arc::new(turns), clock).map_err(Error::settings)?);
    }
    Ok(all)
}

fn adapter(terms: &Terms, pace: Arc<dyn Pace>, clock: &Arc<Clock>) -> Result<Arc<dyn Supplier>, String> {
    match terms.kind {
        Kind::EsimAccess => Ok(Arc::new(EsimAccess::new(terms, pace, clock.clone())?)),
        Kind::Airalo => Ok(Arc::new(Airalo::new(terms, pace)?)),
        Kind::Simulator => Err("a sandbox has its simulator by itself".into()),
    }
}

/// The settler that the settings name, with a terminal for each network it may settle on.
fn settler(
    settings: &Settings,
    nodes: &BTreeMap<Network, Arc<Evm>>,
    sim_chains: &BTreeMap<Network, Arc<SimChain>>,
) -> Result<Option<Settler>> {
    let x402 = &settings.x402;
    let by = match &x402.settler {
        SettlerSetting::Off => return Ok(None),
        SettlerSetting::Remote { url, headers } => {
            SettledBy::Facilitator(Facilitator::new(url, headers).map_err(Error::settings)?)
        }
        SettlerSetting::Local => SettledBy::Ourselves,
        SettlerSetting::Simulated => SettledBy::Simulated,
    };
    let terminal = |(network, terms): (Network, &crate::config::NetworkSettings)| {
        if matches!(by, SettledBy::Simulated) {
            let token = SimToken::new(network, sim_chains.get(&network)?.clone());
            return Some((network, Terminal::simulated(network, token)));
        }
        let token = terms.tokens.iter().find(|token| token.currency == CURRENCY)?;
        let contract = address::bytes(AddressKind::Evm, &token.contract)?;
        let gas = x402.gas.get(&network).filter(|_| matches!(by, SettledBy::Ourselves)).cloned();
        Some((network, Terminal::at_nodes(network, nodes.get(&network)?.clone(), contract, gas)))
    };
    let terminals = x402.networks(&settings.settlement).filter_map(terminal).collect();
    Ok(Some(Settler { by, terminals }))
}
