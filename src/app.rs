//! The application: everything an operation needs, built once at start and cloned cheaply.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::ids::{EntryId, KeyId, OrderId};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::catalog::Snapshot;
use crate::ops::keys::KeyRing;
use crate::ops::refresh::Versions;
use crate::store::Store;
use crate::supplier::Supplier;
use crate::supplier::sim::Sim;
use crate::vault::{self, Vault};

#[derive(Clone)]
pub struct App(Arc<Parts>);

pub struct Parts {
    pub settings: Settings,
    pub store: Arc<Store>,
    pub clock: Clock,
    pub vault: Vault,
    /// The simulated supplier, in sandbox mode.
    pub sim: Arc<Sim>,
    /// What is on sale. Watchers hear of every change.
    pub catalog: watch::Sender<Arc<Snapshot>>,
    pub keys: ArcSwap<KeyRing>,
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
        Ok(App(Arc::new(Parts {
            settings,
            store,
            clock: Clock::default(),
            vault,
            sim: Arc::new(sim),
            catalog: watch::Sender::new(Arc::new(Snapshot::default())),
            keys: ArcSwap::from_pointee(KeyRing::default()),
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
