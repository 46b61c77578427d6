//! What every handler has at hand, made once and shared by all requests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::catalog::Catalog;
use super::limits::Limits;
use super::site::Site;
use crate::app::App;
use crate::error::{Error, Result};

#[derive(Clone)]
pub struct State(Arc<Shared>);

pub struct Shared {
    pub app: App,
    pub limits: Limits,
    pub catalog: Catalog,
    pub texts: Texts,
    pub site: Arc<Site>,
}

/// Documents that are written once.
pub struct Texts {
    pub partner_description: Written,
    pub agentic_description: Written,
    pub consumer_description: Written,
    /// Served in sandbox mode only.
    pub sandbox_description: Written,
    /// By the last part of their addresses.
    pub docs_pages: Written<BTreeMap<&'static str, Bytes>>,
    pub postman: Written,
    pub llms_text: Bytes,
}

/// Something that is written when it is first asked for: most starts of a gateway are never asked for documents.
pub struct Written<T = Bytes>(Arc<LazyLock<T, Write<T>>>);

type Write<T> = Box<dyn FnOnce() -> T + Send>;

impl<T> Clone for Written<T> {
    fn clone(&self) -> Written<T> {
        Written(self.0.clone())
    }
}

impl<T: Send + Sync + 'static> Written<T> {
    pub fn later(write: impl FnOnce() -> T + Send + 'static) -> Written<T> {
        Written(Arc::new(LazyLock::new(Box::new(write))))
    }

    /// For other writers.
    pub fn now(&self) -> &T {
        &self.0
    }

    /// For requests. Writing takes a moment, so a thread does it that may take its time.
    pub async fn get(&self) -> Result<&T> {
        let written = self.clone();
        let write = move || {
            LazyLock::force(&written.0);
        };
        tokio::task::spawn_blocking(write).await.map_err(Error::fault)?;
        Ok(&self.0)
    }
}

impl Deref for State {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// A handler takes it by its type.
impl FromRequestParts<State> for State {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, state: &State) -> Result<State, Infallible> {
        Ok(state.clone())
    }
}

impl State {
    /// Also spawns the tasks that keep it up to date; they end with the last clone.
    pub fn new(app: App, texts: Texts, site: Arc<Site>) -> State {
        let (limits, catalog) = (Limits::new(&app.settings), Catalog::new(&app));
        let shared = Arc::new(Shared { app, limits, catalog, texts, site });
        tokio::spawn(keep_catalog(Arc::downgrade(&shared)));
        tokio::spawn(keep_limits(Arc::downgrade(&shared)));
        State(shared)
    }
}

/// Prepares the catalog anew whenever it changed.
async fn keep_catalog(shared: Weak<Shared>) {
    let Some(mut changes) = shared.upgrade().map(|shared| shared.app.catalog.subscribe()) else { return };
    while changes.changed().await.is_ok() {
        let Some(shared) = shared.upgrade() else { return };
        let renewed = tokio::task::spawn_blocking(move || shared.catalog.renew(&shared.app));
        if renewed.await.is_err() {
            tracing::error!("preparing the catalog panicked; the old one is still served");
        }
    }
}

async fn keep_limits(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        match shared.upgrade() {
            Some(shared) => shared.limits.forget_quiet(shared.app.now()),
            None => return,
        }
    }
}
