//! What every handler has at hand, made once and shared by all requests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::catalog::Catalog;
use super::limits::Limits;
use crate::app::App;

#[derive(Clone)]
pub struct State(Arc<Shared>);

pub struct Shared {
    pub app: App,
    pub limits: Limits,
    pub catalog: Catalog,
    pub texts: Texts,
}

/// Documents that are written once, at start.
pub struct Texts {
    pub partner_description: Bytes,
    pub agentic_description: Bytes,
    pub consumer_description: Bytes,
    /// Served in sandbox mode only.
    pub sandbox_description: Bytes,
    /// By the last part of their addresses.
    pub docs_pages: BTreeMap<&'static str, Bytes>,
    pub postman: Bytes,
    pub llms_text: Bytes,
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
    pub fn new(app: App, texts: Texts) -> State {
        let (limits, catalog) = (Limits::new(&app.settings), Catalog::new(&app));
        let shared = Arc::new(Shared { app, limits, catalog, texts });
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
