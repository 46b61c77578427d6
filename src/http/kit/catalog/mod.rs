//! The catalog as it goes out. Plans are written to JSON once for each snapshot: the first time when somebody asks for
//! them, later in the background, while the old ones are served.

pub mod memory;
pub mod packed;
pub mod products;
pub mod shelves;

use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;

use self::products::Products;
use self::shelves::{Shelf, Shelves};
use crate::app::App;
use crate::ops::catalog::Snapshot;

/// Prepared when it is first used.
pub type OnDemand<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

pub struct Catalog {
    /// For partners, at wholesale prices.
    pub shelves: ArcSwap<OnDemand<Shelves>>,
    /// The shelf of a price list without plans.
    pub empty_shelf: Shelf,
    /// For everybody, at retail prices.
    pub products: ArcSwap<OnDemand<Products>>,
}

impl Catalog {
    pub fn new(app: &App) -> Catalog {
        Catalog {
            shelves: ArcSwap::from_pointee(on_demand(app, shelves)),
            empty_shelf: Shelf::default(),
            products: ArcSwap::from_pointee(on_demand(app, products)),
        }
    }

    /// Writes the newest snapshot.
    pub fn renew(&self, app: &App) {
        let (shelves, products) = (on_demand(app, shelves), on_demand(app, products));
        LazyLock::force(&shelves);
        LazyLock::force(&products);
        self.shelves.store(shelves.into());
        self.products.store(products.into());
    }
}

fn on_demand<T: 'static>(app: &App, prepare: fn(Arc<Snapshot>) -> T) -> OnDemand<T> {
    let snapshot = app.catalog.borrow().clone();
    LazyLock::new(Box::new(move || prepare(snapshot)))
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
