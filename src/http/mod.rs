//! The HTTP doors. Every route is on this page; what surrounds every request is in `kit/doorway.rs`.

mod agentic;
mod consumer;
mod docs;
mod hooks;
mod kit;
pub mod mcp;
mod pages;
mod partner;
mod sandbox;

use std::sync::Arc;

use axum::Router;
use axum::extract::State as FromState;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::docs::openapi::{self, AGENTIC, CONSUMER, PARTNER, SANDBOX};
use self::docs::page::Source;
use self::docs::{llms, security, story};
pub use self::kit::accept::{descriptors, server};
use self::kit::auth::Anyone;
use self::kit::doorway::{self, Docs};
use self::kit::hosts::{self, Hosts};
use self::kit::problem::Refused;
use self::kit::site::Site;
use self::kit::{State, Texts, Written};
use self::mcp::discovery;
use self::pages::{
    account, assets, claim, devices, guest, help, install, landing, live, mailed, pay, portal, refill, topup,
};
use self::partner::{deposits, events, orders, plans, topups, wallet, webhooks};
use crate::app::App;
use crate::config::Mode;
use crate::domain::refusal::Refusal;
use crate::ops::vitals;
use crate::telemetry;

/// Every route of the service.
pub fn router(app: App) -> Router {
    let (partner_api, partner_description) =
        OpenApiRouter::with_openapi(openapi::base(&PARTNER, &app.settings.base_url))
            .routes(routes!(wallet::balance))
            .routes(routes!(wallet::transactions))
            .routes(routes!(deposits::open))
            .routes(routes!(deposits::verify))
            .routes(routes!(deposits::get))
            .routes(routes!(deposits::address))
            .routes(routes!(plans::plans))
            .routes(routes!(orders::place_order, orders::list_orders))
            .routes(routes!(orders::get_order))
            .routes(routes!(orders::cancel_order, orders::withdraw_cancel))
            .routes(routes!(topups::topup_plans))
            .routes(routes!(topups::top_up))
            .routes(routes!(topups::get_usage))
            .routes(routes!(events::list))
            .routes(routes!(webhooks::list, webhooks::create))
            .routes(routes!(webhooks::change, webhooks::delete))
            .routes(routes!(webhooks::test))
            .routes(routes!(webhooks::rotate))
            .routes(routes!(webhooks::replay))
            .routes(routes!(webhooks::deliveries))
            .routes(routes!(webhooks::redeliver))
            .split_for_parts();
    let (agentic_api, agentic_description) =
        OpenApiRouter::with_openapi(openapi::base(&AGENTIC, &app.settings.agent_url))
            .routes(routes!(agentic::login::request_otp))
            .routes(routes!(agentic::login::verify_otp))
            .routes(routes!(agentic::login::list_tokens))
            .routes(routes!(agentic::login::revoke_token))
            .routes(routes!(agentic::search::search))
            .routes(routes!(agentic::checkout::open))
            .routes(routes!(agentic::orders::get))
            .routes(routes!(agentic::orders::list))
            .routes(routes!(agentic::wallet::wallet))
            .routes(routes!(agentic::events::list))
            .split_for_parts();
    let (consumer_api, mut consumer_description) =
        OpenApiRouter::with_openapi(openapi::base(&CONSUMER, &app.settings.agent_url))
            .routes(routes!(consumer::knowledge::text))
            .routes(routes!(consumer::login::send))
            .routes(routes!(consumer::login::verify))
            .routes(routes!(consumer::coupons::validate))
            .routes(routes!(consumer::wallet::balance))
            .routes(routes!(consumer::wallet::transactions))
            .routes(routes!(consumer::orders::place, consumer::orders::list))
            .routes(routes!(consumer::orders::cancel, consumer::orders::withdraw_cancel))
            .routes(routes!(consumer::esims::refresh))
            .routes(routes!(consumer::esims::packages, consumer::esims::top_up))
            .split_for_parts();
    let (sandbox_api, sandbox_description) =
        OpenApiRouter::with_openapi(openapi::base(&SANDBOX, &app.settings.base_url))
            .routes(routes!(sandbox::pay))
            .routes(routes!(sandbox::chain_moods, sandbox::chain))
            .routes(routes!(sandbox::usage))
            .routes(routes!(sandbox::event))
            .routes(routes!(sandbox::supplier_mood, sandbox::supplier))
            .routes(routes!(sandbox::outbox))
            .routes(routes!(sandbox::job))
            .split_for_parts();
    // Search belongs to both, and is served once.
    let search = OpenApiRouter::<State>::default().routes(routes!(agentic::search::search));
    consumer_description.merge(search.into_openapi());
    let partner_description = openapi::described(&PARTNER, partner_description);
    let agentic_description = openapi::described(&AGENTIC, agentic_description);
    let consumer_description = openapi::described(&CONSUMER, consumer_description);
    let sandbox_description = openapi::described(&SANDBOX, sandbox_description);
    let router = partner_api
        .merge(agentic_api)
        .merge(consumer_api)
        .route("/api/b2b/v1/openapi.json", get(openapi::partner_file))
        .route("/api/agentic/openapi.json", get(openapi::agentic_file))
        .route("/api/consumer/openapi.json", get(openapi::consumer_file))
        .route("/api/b2b/v1/postman.json", get(docs::postman::collection))
        .route("/", get(landing::show))
        .route("/docs", get(docs::page::first))
        .route("/docs/", get(to_docs))
        .route("/docs/{page}", get(docs::page::further))
        .route("/llms.txt", get(llms::text))
        .route(security::PATH, get(security::text))
        .route("/esim/{token}", get(install::page))
        .route("/esim/{token}/events", get(live::of_esim))
        .route("/esim/{token}/data", get(refill::form).post(refill::open))
        .route("/qr/{file}", get(install::qr_image))
        .route("/checkout", get(guest::form).post(guest::open))
        .route("/checkout/code", post(pages::wallet::code))
        .route("/checkout/wallet", post(pages::wallet::buy))
        .route("/pay/{invoice}", get(pay::page))
        .route("/pay/{invoice}/events", get(live::of_payment))
        .route("/pay/{invoice}/code", post(claim::code))
        .route("/pay/{invoice}/claim", post(claim::claim))
        .route("/topup/{token}", get(topup::form).post(topup::pay_in))
        .route("/account", get(account::overview::show))
        .route("/account/code", post(account::sign_in::code))
        .route("/account/sign-in", post(account::sign_in::sign_in))
        .route("/account/sign-out", post(account::sign_in::sign_out))
        .route("/account/sign-out-everywhere", post(account::sign_in::sign_out_everywhere))
        .route("/account/wallet", get(account::money::wallet))
        .route("/account/deposit", get(account::money::deposit_form).post(account::money::deposit))
        .route("/account/buy", get(account::buy::search))
        .route("/account/buy/{plan}", get(account::buy::confirm).post(account::buy::buy))
        .route("/account/orders", get(account::orders::list))
        .route("/account/orders/{id}", get(account::orders::one))
        .route("/account/orders/{id}/data", get(account::orders::refill_form).post(account::orders::refill))
        .route(
            "/account/orders/{id}/give-back",
            get(account::orders::give_back_form).post(account::orders::give_back),
        )
        .route("/account/agents", get(account::agents::list))
        .route("/account/agents/{id}", get(account::agents::one).post(account::agents::limit))
        .route("/account/agents/{id}/revoke", get(account::agents::revoke_form).post(account::agents::revoke))
        .route("/account/settings", get(account::settings::show))
        .route("/account/settings/data", get(account::settings::data))
        .route("/account/settings/theme", post(account::settings::theme))
        .route("/account/sessions/{id}/end", post(account::settings::end))
        .route("/portal", get(portal::overview::show))
        .route("/portal/code", post(portal::sign_in::code))
        .route("/portal/sign-in", post(portal::sign_in::sign_in))
        .route("/portal/sign-out", post(portal::sign_in::sign_out))
        .route("/portal/sign-out-everywhere", post(portal::sign_in::sign_out_everywhere))
        .route("/portal/join/{link}", get(portal::join::show))
        .route("/portal/logs", get(portal::logs::show))
        .route("/portal/plans", get(portal::plans::list))
        .route("/portal/plans.csv", get(portal::plans::file))
        .route("/portal/deposits", get(portal::deposits::list).post(portal::deposits::open))
        .route("/portal/deposits/address", post(portal::deposits::make_address))
        .route("/portal/deposits/{id}", get(portal::deposits::one))
        .route("/portal/statement", get(portal::statement::list))
        .route("/portal/statement.csv", get(portal::statement::file))
        .route("/portal/statement/{month}", get(portal::month::show))
        .route("/portal/keys", get(portal::keys::list))
        .route("/portal/keys/new", get(portal::keys::form).post(portal::keys::create))
        .route("/portal/keys/{id}/rotate", get(portal::keys::rotate_form).post(portal::keys::rotate))
        .route("/portal/keys/{id}/revoke", get(portal::keys::revoke_form).post(portal::keys::revoke))
        .route("/portal/webhooks", get(portal::webhooks::list))
        .route("/portal/webhooks/new", get(portal::webhooks::form).post(portal::webhooks::create))
        .route("/portal/webhooks/{id}", get(portal::webhook::show).post(portal::webhook::change))
        .route("/portal/webhooks/{id}/test", post(portal::webhook::test))
        .route("/portal/webhooks/{id}/enable", post(portal::webhook::enable))
        .route("/portal/webhooks/{id}/disable", post(portal::webhook::disable))
        .route("/portal/webhooks/{id}/replay", post(portal::webhook::replay))
        .route(
            "/portal/webhooks/{id}/rotate",
            get(portal::webhooks::rotate_form).post(portal::webhooks::rotate),
        )
        .route(
            "/portal/webhooks/{id}/delete",
            get(portal::webhook::delete_form).post(portal::webhook::delete),
        )
        .route("/portal/webhooks/{id}/deliveries", get(portal::deliveries::list))
        .route("/portal/webhooks/{id}/deliveries/{delivery}", get(portal::deliveries::one))
        .route("/portal/webhooks/{id}/deliveries/{delivery}/redeliver", post(portal::deliveries::redeliver))
        .route("/portal/search", get(portal::search::find))
        .route("/portal/orders", get(portal::orders::list::show))
        .route("/portal/orders.csv", get(portal::orders::csv::file))
        .route("/portal/orders/new", get(portal::orders::place::form).post(portal::orders::place::buy))
        .route("/portal/orders/batch", get(portal::orders::batch::form).post(portal::orders::batch::place))
        .route("/portal/orders/batches/{id}", get(portal::orders::progress::show))
        .route("/portal/orders/{id}", get(portal::orders::one::show))
        .route("/portal/orders/{id}/data", get(portal::orders::data::form).post(portal::orders::data::top_up))
        .route(
            "/portal/orders/{id}/cancel",
            get(portal::orders::cancel::form).post(portal::orders::cancel::give_back),
        )
        .route("/portal/orders/{id}/keep", post(portal::orders::cancel::keep))
        .route("/portal/orders/{id}/send", get(portal::orders::send::form).post(portal::orders::send::mail))
        .route("/portal/team", get(portal::team::list).post(portal::team::invite))
        .route("/portal/team/log", get(portal::team::deeds))
        .route("/portal/team/{id}", get(portal::team::one).post(portal::team::change_role))
        .route("/portal/team/{id}/remove", post(portal::team::remove))
        .route("/portal/settings", get(portal::settings::show))
        .route("/portal/settings/company", post(portal::settings::rename))
        .route("/portal/settings/warning", post(portal::settings::warn))
        .route("/portal/second-factor", get(portal::second_factor::asked).post(portal::second_factor::pass))
        .route("/portal/settings/second-factor", get(portal::second_factor::show))
        .route("/portal/settings/second-factor/begin", post(portal::second_factor::begin))
        .route("/portal/settings/second-factor/confirm", post(portal::second_factor::confirm))
        .route("/portal/settings/second-factor/codes", post(portal::second_factor::renew))
        .route("/portal/settings/second-factor/off", post(portal::second_factor::turn_off))
        .route("/portal/settings/theme", post(portal::settings::theme))
        .route("/portal/sessions/{id}/end", post(portal::settings::end))
        .route("/portal/switch", post(portal::settings::switch))
        .route("/help", get(help::index))
        .route("/help/devices", get(devices::show))
        .route("/help/{*id}", get(help::article))
        .route("/not-me/{link}", get(mailed::not_me).post(mailed::silence))
        .route("/not-me/{link}/undo", post(mailed::unsilence))
        .route("/revoke-token/{link}", get(mailed::revocation).post(mailed::revoke))
        .route("/hooks/{path}", post(hooks::message))
        .route("/assets/{folder}/{file}", get(assets::file))
        .route("/favicon.svg", get(assets::favicon))
        .route("/favicon.ico", get(assets::favicon))
        .route("/robots.txt", get(assets::robots))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready));
    let mut private = Router::new();
    if app.settings.mode == Mode::Sandbox {
        private = private
            .merge(sandbox_api)
            .route("/sandbox/openapi.json", get(openapi::sandbox_file))
            .route("/sandbox/pay/{invoice}", post(pay::with_test_money))
            .route("/sandbox/parts", get(pages::parts::all));
    }
    if app.settings.metrics_on_main() {
        private = private.route("/metrics", get(metrics).with_state(app.clone()));
    }
    let hosts = Arc::new(Hosts::new(&app.settings));
    let router = router.merge(private.layer(middleware::from_fn_with_state(hosts, hosts::guard)));
    let site = Arc::new(Site::new(&app.settings));
    let source = |story, surface, api: &Written| Source { story, surface, api: api.clone() };
    let mut sources = vec![
        source(&story::PARTNER, &PARTNER, &partner_description),
        source(&story::AGENTIC, &AGENTIC, &agentic_description),
        source(&story::CONSUMER, &CONSUMER, &consumer_description),
    ];
    if app.settings.mode == Mode::Sandbox {
        sources.push(source(&story::SANDBOX, &SANDBOX, &sandbox_description));
    }
    let texts = Texts {
        docs_pages: docs::page::render(sources, site.clone()),
        postman: docs::postman::render(partner_description.clone()),
        llms_text: llms::render(&app.settings, mcp::in_brief()),
        partner_description,
        agentic_description,
        consumer_description,
        sandbox_description,
    };
    let docs = Docs::of(&app.settings, site.clone());
    let state = State::new(app, texts, site);
    let tools = Router::new()
        .route(mcp::PATH, get(mcp::describe).post(mcp::serve).options(mcp::serve).fallback(mcp::serve))
        .route("/api/mcp/server-card", get(discovery::card))
        .route("/.well-known/mcp/server-card.json", get(discovery::plain_card))
        .route("/.well-known/ai-catalog.json", get(discovery::ai_catalog))
        .route("/.well-known/api-catalog", get(discovery::api_catalog))
        .with_state(mcp::Desk::new(&state));
    router
        .merge(tools)
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(docs, doorway::pass))
        .with_state(state)
}

/// What the second, private listener serves.
pub fn metrics_router(app: App) -> Router {
    let docs = Docs::of(&app.settings, Arc::new(Site::new(&app.settings)));
    let router = Router::new().route("/metrics", get(metrics)).fallback(nowhere);
    router.layer(middleware::from_fn_with_state(docs, doorway::pass)).with_state(app)
}

/// The address that people make of the one without a stroke.
async fn to_docs(_: Anyone) -> Redirect {
    Redirect::temporary("/docs")
}

/// The process is alive.
async fn healthy() -> Response {
    (StatusCode::OK, "ok\n").into_response()
}

/// Requests can be served: the database answers and takes writes, something is on sale, and no job that money depends
/// on is late.
async fn ready(state: State) -> Response {
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
    Refusal::MethodNotAllowed { allowed: None }.into()
}
