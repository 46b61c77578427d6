//! The HTTP doors. Every route is on this page; what surrounds every request is in `doorway.rs`.

mod agentic;
mod auth;
mod checkout;
mod claim;
mod connection;
mod deposits;
pub mod descriptors;
mod docs;
mod doorway;
mod fields;
mod forwarded;
mod guest;
mod help;
mod hosts;
mod life;
mod limits;
mod llms;
mod mailed;
pub mod mcp;
mod memory;
mod openapi;
mod pages;
mod partner;
mod pay;
mod places;
mod plans;
mod problem;
mod products;
mod purchase;
mod qr;
mod sandbox;
mod security;
pub mod server;
mod tally;
mod topup;
mod unread;
mod wire;
mod x402;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State as FromState;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::auth::Anyone;
use self::hosts::Hosts;
use self::limits::Limits;
use self::mcp::discovery;
use self::openapi::{AGENTIC, PARTNER};
use self::plans::{Shelf, Shelves};
use self::problem::Refused;
use self::products::Products;
use crate::app::App;
use crate::config::Mode;
use crate::domain::refusal::Refusal;
use crate::ops::vitals;
use crate::telemetry;

#[derive(Clone)]
pub struct State(Arc<Shared>);

pub struct Shared {
    app: App,
    limits: Limits,
    shelves: ArcSwap<Shelves>,
    empty_shelf: Shelf,
    products: ArcSwap<Products>,
    partner_description: Bytes,
    agentic_description: Bytes,
    docs_page: Bytes,
    llms_text: Bytes,
}

impl std::ops::Deref for State {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// Every route of the service.
pub fn router(app: App) -> Router {
    let (partner_api, partner_description) =
        OpenApiRouter::with_openapi(openapi::base(&PARTNER, &app.settings.base_url))
            .routes(routes!(partner::balance))
            .routes(routes!(partner::transactions))
            .routes(routes!(deposits::open))
            .routes(routes!(deposits::verify))
            .routes(routes!(deposits::get))
            .routes(routes!(partner::plans))
            .routes(routes!(partner::place_order, partner::list_orders))
            .routes(routes!(partner::get_order))
            .routes(routes!(partner::cancel_order))
            .routes(routes!(partner::topup_plans))
            .routes(routes!(partner::top_up))
            .routes(routes!(partner::get_usage))
            .split_for_parts();
    let (agentic_api, agentic_description) =
        OpenApiRouter::with_openapi(openapi::base(&AGENTIC, &app.settings.agent_url))
            .routes(routes!(agentic::request_otp))
            .routes(routes!(agentic::verify_otp))
            .routes(routes!(agentic::list_tokens))
            .routes(routes!(agentic::revoke_token))
            .routes(routes!(products::search))
            .routes(routes!(checkout::open))
            .routes(routes!(purchase::get))
            .routes(routes!(purchase::list))
            .routes(routes!(checkout::wallet))
            .split_for_parts();
    let partner_description = openapi::complete(&PARTNER, partner_description);
    let agentic_description = openapi::complete(&AGENTIC, agentic_description);
    let router = partner_api
        .merge(agentic_api)
        .route("/api/b2b/v1/openapi.json", get(describe_partner_api))
        .route("/api/agentic/openapi.json", get(describe_agentic_api))
        .route("/docs", get(docs::page))
        .route("/llms.txt", get(llms::text))
        .route(security::PATH, get(security::text))
        .route("/esim/{token}", get(pages::install))
        .route("/qr/{file}", get(pages::qr_image))
        .route("/checkout", get(guest::form).post(guest::open))
        .route("/pay/{invoice}", get(pay::page))
        .route("/pay/{invoice}/code", post(claim::code))
        .route("/pay/{invoice}/claim", post(claim::claim))
        .route("/topup/{token}", get(topup::form).post(topup::pay_in))
        .route("/help", get(help::index))
        .route("/help/{*id}", get(help::article))
        .route("/not-me/{link}", get(mailed::not_me).post(mailed::silence))
        .route("/not-me/{link}/undo", post(mailed::unsilence))
        .route("/revoke-token/{link}", get(mailed::revocation).post(mailed::revoke))
        .route("/style.css", get(pages::style))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready));
    let mut private = Router::new();
    if app.settings.mode == Mode::Sandbox {
        private = private
            .route("/sandbox/outbox", get(sandbox::outbox))
            .route("/sandbox/usage", post(sandbox::usage))
            .route("/sandbox/supplier", post(sandbox::supplier))
            .route("/sandbox/pay", post(sandbox::pay))
            .route("/sandbox/chain", post(sandbox::chain))
            .route("/sandbox/job", post(sandbox::job));
    }
    if app.settings.metrics_on_main() {
        private = private.route("/metrics", get(metrics).with_state(app.clone()));
    }
    let hosts = Arc::new(Hosts::new(&app.settings));
    let router = router.merge(private.layer(middleware::from_fn_with_state(hosts, hosts::guard)));
    let state = State(Arc::new(Shared {
        limits: Limits::new(&app.settings),
        shelves: ArcSwap::from_pointee(prepare_shelves(&app)),
        empty_shelf: Shelf::default(),
        products: ArcSwap::from_pointee(prepare_products(&app)),
        docs_page: docs::render(&partner_description),
        llms_text: llms::render(&app.settings),
        partner_description: partner_description.to_json().unwrap_or_default().into(),
        agentic_description: agentic_description.to_json().unwrap_or_default().into(),
        app,
    }));
    let tools = Router::new()
        .route(mcp::PATH, get(mcp::describe).post(mcp::serve).delete(mcp::serve).options(mcp::serve))
        .route("/api/mcp/server-card", get(discovery::card))
        .route("/.well-known/mcp/server-card.json", get(discovery::plain_card))
        .route("/.well-known/ai-catalog.json", get(discovery::ai_catalog))
        .route("/.well-known/api-catalog", get(discovery::api_catalog))
        .with_state(mcp::Desk::new(&state));
    tokio::spawn(keep_shelves(Arc::downgrade(&state.0)));
    tokio::spawn(keep_limits(Arc::downgrade(&state.0)));
    router
        .merge(tools)
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn(doorway::pass))
        .with_state(state)
}

/// What the second, private listener serves.
pub fn metrics_router(app: App) -> Router {
    let router = Router::new().route("/metrics", get(metrics)).fallback(nowhere);
    router.layer(middleware::from_fn(doorway::pass)).with_state(app)
}

fn prepare_shelves(app: &App) -> Shelves {
    let snapshot = app.catalog.borrow().clone();
    Shelves::prepare(&snapshot).unwrap_or_else(|error| {
        tracing::error!(%error, "the catalog cannot be shown");
        Shelves::default()
    })
}

fn prepare_products(app: &App) -> Products {
    let snapshot = app.catalog.borrow().clone();
    Products::prepare(snapshot).unwrap_or_else(|error| {
        tracing::error!(%error, "the catalog cannot be searched");
        Products::default()
    })
}

/// Prepares the catalog anew whenever it changed; until that is done, the old one is served.
async fn keep_shelves(shared: std::sync::Weak<Shared>) {
    let Some(mut changes) = shared.upgrade().map(|shared| shared.app.catalog.subscribe()) else { return };
    while changes.changed().await.is_ok() {
        let Some(shared) = shared.upgrade() else { return };
        let prepared = tokio::task::spawn_blocking(move || {
            let shelves = prepare_shelves(&shared.app);
            shared.shelves.store(Arc::new(shelves));
            shared.products.store(Arc::new(prepare_products(&shared.app)));
        });
        if prepared.await.is_err() {
            tracing::error!("preparing the catalog panicked; the old one is still served");
        }
    }
}

async fn keep_limits(shared: std::sync::Weak<Shared>) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        match shared.upgrade() {
            Some(shared) => shared.limits.forget_quiet(shared.app.now()),
            None => return,
        }
    }
}

async fn describe_partner_api(_: Anyone, FromState(state): FromState<State>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], state.partner_description.clone()).into_response()
}

async fn describe_agentic_api(_: Anyone, FromState(state): FromState<State>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], state.agentic_description.clone()).into_response()
}

/// The process is there.
async fn healthy() -> Response {
    (StatusCode::OK, "ok\n").into_response()
}

/// Requests can be served: the database answers and takes what is written, there is something on sale, and no job that
/// money depends on is late.
async fn ready(FromState(state): FromState<State>) -> Response {
    let why = vitals::unready(&state.app).await;
    if why.is_empty() {
        return (StatusCode::OK, "ready\n").into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", why.join("; "))).into_response()
}

async fn metrics(FromState(app): FromState<App>) -> Response {
    vitals::tell(&app).await;
    let text = telemetry::metrics().map(|handle| handle.render()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

async fn nowhere() -> Refused {
    Refusal::NotFound.into()
}

async fn wrong_method() -> Refused {
    Refusal::MethodNotAllowed.into()
}
