//! The catalog as it goes out. Plans are written to JSON once for each snapshot: the first time when somebody asks for
//! them, later in the background, while the old ones are served.

pub mod memory;
pub mod packed;
pub mod products;
pub mod shelves;

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::OnceCell;

use self::products::Products;
use self::shelves::{Shelf, Shelves};
use crate::app::App;
use crate::error::{Error, Result};
use crate::ops::catalog::Snapshot;

pub struct Catalog {
    shelves: ArcSwap<OnDemand<Shelves>>,
    /// The shelf of a price list without plans.
    pub empty_shelf: Shelf,
    products: ArcSwap<OnDemand<Products>>,
}

impl Catalog {
    pub fn new(app: &App) -> Catalog {
        let snapshot = app.catalog.borrow().clone();
        Catalog {
            shelves: ArcSwap::from_pointee(OnDemand::new(snapshot.clone(), shelves)),
            empty_shelf: Shelf::default(),
            products: ArcSwap::from_pointee(OnDemand::new(snapshot, products)),
        }
    }

    /// For partners, at wholesale prices.
    pub async fn shelves(&self) -> Result<Arc<Shelves>> {
        self.shelves.load_full().get().await
    }

    /// For everybody, at retail prices.
    pub async fn products(&self) -> Result<Arc<Products>> {
        self.products.load_full().get().await
    }

    /// The same, if somebody has asked for them before.
    pub fn prepared_products(&self) -> Option<Arc<Products>> {
        self.products.load().prepared.get().cloned()
    }

    /// Writes the newest snapshot.
    pub fn renew(&self, app: &App) {
        let snapshot = app.catalog.borrow().clone();
        self.shelves.store(OnDemand::ready(snapshot.clone(), shelves).into());
        self.products.store(OnDemand::ready(snapshot, products).into());
    }
}

/// What is prepared of a snapshot, when it is first asked for.
struct OnDemand<T> {
    snapshot: Arc<Snapshot>,
    prepare: fn(Arc<Snapshot>) -> T,
    prepared: OnceCell<Arc<T>>,
}

impl<T: Send + Sync + 'static> OnDemand<T> {
    fn new(snapshot: Arc<Snapshot>, prepare: fn(Arc<Snapshot>) -> T) -> OnDemand<T> {
        OnDemand { snapshot, prepare, prepared: OnceCell::new() }
    }

    fn ready(snapshot: Arc<Snapshot>, prepare: fn(Arc<Snapshot>) -> T) -> OnDemand<T> {
        let prepared = OnceCell::new_with(Some(Arc::new(prepare(snapshot.clone()))));
        OnDemand { snapshot, prepare, prepared }
    }

    /// Many plans take a moment, so a thread prepares them that may take its time.
    async fn get(&self) -> Result<Arc<T>> {
        let prepare = || async {
            let (snapshot, prepare) = (self.snapshot.clone(), self.prepare);
            let work = tokio::task::spawn_blocking(move || Arc::new(prepare(snapshot)));
            work.await.map_err(Error::fault)
        };
        self.prepared.get_or_try_init(prepare).await.cloned()
    }
}

fn shelves(snapshot: Arc<Snapshot>) -> Shelves {
    Shelves::prepare(&snapshot).unwrap_or_else(|error| {
        tracing::error!(%error, "the catalog cannot be shown");
        Shelves::default()
    })
}

fn products(snapshot: Arc<Snapshot>) -> Products {
    Products::prepare(snapshot).unwrap_or_else(|error| {
        tracing::error!(%error, "the catalog cannot be searched");
        Products::default()
    })
}
