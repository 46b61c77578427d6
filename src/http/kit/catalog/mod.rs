//! The catalog as it goes out. Plans are written to JSON once for each snapshot, in the background; until that is done the
//! old ones are served.

pub mod memory;
pub mod packed;
pub mod products;
pub mod shelves;

use arc_swap::ArcSwap;

use self::products::Products;
use self::shelves::{Shelf, Shelves};
use crate::app::App;

pub struct Catalog {
    /// For partners, at wholesale prices.
    pub shelves: ArcSwap<Shelves>,
    /// The shelf of a price list without plans.
    pub empty_shelf: Shelf,
    /// For everybody, at retail prices.
    pub products: ArcSwap<Products>,
}

impl Catalog {
    pub fn new(app: &App) -> Catalog {
        Catalog {
            shelves: ArcSwap::from_pointee(shelves(app)),
            empty_shelf: Shelf::default(),
            products: ArcSwap::from_pointee(products(app)),
        }
    }

    /// Writes the newest snapshot.
    pub fn renew(&self, app: &App) {
        self.shelves.store(shelves(app).into());
        self.products.store(products(app).into());
    }
}

fn shelves(app: &App) -> Shelves {
    let snapshot = app.catalog.borrow().clone();
    Shelves::prepare(&snapshot).unwrap_or_else(|error| {
        tracing::error!(%error, "the catalog cannot be shown");
        Shelves::default()
    })
}

fn products(app: &App) -> Products {
    let snapshot = app.catalog.borrow().clone();
    Products::prepare(snapshot).unwrap_or_else(|error| {
        tracing::error!(%error, "the catalog cannot be searched");
        Products::default()
    })
}
