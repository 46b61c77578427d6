//! Who calls: the two headers of the partner API, the bearer token of an agent, and the client's address behind
//! trusted proxies.

use std::convert::Infallible;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use metrics::counter;

use super::accept::server::Peer;
use super::limits::{Allowance, Checked};
use super::problem::Refused;
use super::{State, forwarded};
use crate::app::App;
use crate::config::Settings;
use crate::domain::client::{self, Whereabouts};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::ops::keys::{self, Caller};
use crate::ops::tokens::{self, Holder};

const KEY: HeaderName = HeaderName::from_static("x-b2b-key");
const SECRET: HeaderName = HeaderName::from_static("x-b2b-secret");

/// An authenticated partner, within its rate limit. What its key opens is decided by what is asked for.
pub struct Partner(Arc<Caller>);

impl Deref for Partner {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.0
    }
}

/// Set where callers are told apart, for the outermost layer.
#[derive(Clone, Default)]
pub struct Shown(pub Arc<Seen>);

#[derive(Default)]
pub struct Seen {
    /// What is left of the limit, to be put on the response.
    pub allowance: OnceLock<Allowance>,
    /// The partner, where its calls are written down.
    pub visit: OnceLock<Visit>,
}

/// A call of a partner that is not answered yet.
pub struct Visit {
    pub app: App,
    pub caller: Arc<Caller>,
}

impl FromRequestParts<State> for Partner {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Partner, Refused> {
        let from = whereabouts(parts, &state.app.settings);
        let shown = parts.extensions.get::<Shown>().cloned().unwrap_or_default();
        let credentials = header(&parts.headers, &KEY).zip(header(&parts.headers, &SECRET));
        let known = match credentials {
            Some((key, secret)) => keys::authenticate(&state.app, key, secret, from),
            None => Err(Refusal::Unauthenticated.into()),
        };
        let caller = match (known, credentials) {
            (Ok(caller), _) => caller,
            // Counted before the look-up. A wrong secret takes the same way as an unknown key, so the time does not
            // tell which of the two it was.
            (Err(Error::Refused(Refusal::Unauthenticated)), Some((key, secret))) => {
                let allowance = counted(state, from, &shown)?;
                keys::until_looked(&state.app).await;
                match keys::authenticate(&state.app, key, secret, from) {
                    Ok(caller) => caller,
                    Err(error) => {
                        show(allowance, &shown);
                        return Err(noted(from, error));
                    }
                }
            }
            (Err(error), _) => return Err(turned_away(state, from, &shown, error)),
        };
        if state.app.settings.log_api_calls {
            let _ = shown.0.visit.set(Visit { app: state.app.clone(), caller: caller.clone() });
        }
        allow(state.limits.by_key(&caller.key_id), &shown)?;
        Ok(Partner(caller))
    }
}

/// A user's agent with a token, within its rate limit.
pub struct Bearer(Arc<Holder>);

impl Deref for Bearer {
    type Target = Holder;

    fn deref(&self) -> &Holder {
        &self.0
    }
}

impl FromRequestParts<State> for Bearer {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Bearer, Refused> {
        let MaybeBearer(holder) = MaybeBearer::from_request_parts(parts, state).await?;
        Ok(Bearer(holder.ok_or(Refusal::TokenRequired)?))
    }
}

/// A caller that needs no token. A token that is sent must be good; without one the limit of the address applies.
pub struct MaybeBearer(pub Option<Arc<Holder>>);

impl FromRequestParts<State> for MaybeBearer {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<MaybeBearer, Refused> {
        let shown = parts.extensions.get::<Shown>().cloned().unwrap_or_default();
        let from = whereabouts(parts, &state.app.settings);
        let holder = match bearer(&parts.headers) {
            Sent::Nothing => {
                allow(state.limits.by_address(from.counted()), &shown)?;
                return Ok(MaybeBearer(None));
            }
            Sent::Token(text) => holder(state, text, from.counted()).await,
            Sent::Other => Err(Refusal::TokenRequired.into()),
        };
        match holder {
            Ok(holder) => {
                allow(state.limits.by_token(holder.token.as_str()), &shown)?;
                Ok(MaybeBearer(Some(holder)))
            }
            Err(error) => Err(turned_away(state, from, &shown, error)),
        }
    }
}

enum Sent<'a> {
    Nothing,
    Token(&'a str),
    Other,
}

/// `Authorization: Bearer …`; the scheme's case does not count.
fn bearer(headers: &HeaderMap) -> Sent<'_> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    match (sent.next(), sent.next()) {
        (None, _) => Sent::Nothing,
        (Some(value), None) => match value.to_str().ok().and_then(|text| text.trim().split_once(' ')) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Sent::Token(token.trim()),
            _ => Sent::Other,
        },
        (Some(_), Some(_)) => Sent::Other,
    }
}

/// The address that a request comes from, for limits that are rows in the database.
pub struct Client(pub IpAddr);

impl FromRequestParts<State> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Client, Infallible> {
        Ok(Client(client_address(parts, &state.app.settings)))
    }
}

/// A caller without a login, within the limit of its address.
pub struct Anyone;

impl FromRequestParts<State> for Anyone {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Anyone, Refused> {
        let shown = parts.extensions.get::<Shown>().cloned().unwrap_or_default();
        allow(state.limits.by_address(client_address(parts, &state.app.settings)), &shown)?;
        Ok(Anyone)
    }
}

/// Counts a call of a tool, by a good token in the header or else by address. A stale token is no reason to refuse.
pub async fn count_visitor(parts: &Parts, state: &State) -> Result<(), Refused> {
    let shown = parts.extensions.get::<Shown>().cloned().unwrap_or_default();
    let from = client_address(parts, &state.app.settings);
    if let Some(text) = bearer_token(&parts.headers)
        && let Ok(holder) = holder(state, text, from).await
    {
        return allow(state.limits.by_token(holder.token.as_str()), &shown);
    }
    allow(state.limits.by_address(from), &shown)
}

/// The holder of this token. A token that has to be looked up is first counted, by the address that it comes from.
pub async fn holder(state: &State, text: &str, from: IpAddr) -> Result<Arc<Holder>> {
    let app = &state.app;
    if !tokens::is_unknown(app, text)? {
        return tokens::authenticate(app, text).await;
    }
    state.limits.may_look_up(from, app.now())?;
    counter!("simgate_lookups_total", "of" => "token").increment(1);
    let found = tokens::authenticate(app, text).await;
    if !matches!(found, Err(Error::Refused(Refusal::TokenRequired))) {
        state.limits.was_known(from);
    }
    found
}

/// The token in the header, valid or not.
pub fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    match bearer(headers) {
        Sent::Token(text) => Some(text),
        Sent::Nothing | Sent::Other => None,
    }
}

/// Counts a caller without valid credentials against the limit of its address, and logs it.
fn turned_away(state: &State, from: Whereabouts, shown: &Shown, error: Error) -> Refused {
    match counted(state, from, shown) {
        Ok(allowance) => {
            show(allowance, shown);
            noted(from, error)
        }
        Err(limited) => limited,
    }
}

fn counted(state: &State, from: Whereabouts, shown: &Shown) -> Result<Option<Allowance>, Refused> {
    within(state.limits.by_address(from.counted()), shown)
}

fn noted(from: Whereabouts, error: Error) -> Refused {
    if let Error::Refused(Refusal::Unauthenticated | Refusal::TokenRequired) = error {
        counter!("simgate_strangers_total").increment(1);
        tracing::info!(from = client::logged(from.counted()), "a caller without valid credentials");
    }
    error.into()
}

fn show(allowance: Option<Allowance>, shown: &Shown) {
    if let Some(allowance) = allowance {
        let _ = shown.0.allowance.set(allowance);
    }
}

fn allow(checked: Checked, shown: &Shown) -> Result<(), Refused> {
    within(checked, shown).map(|allowance| show(allowance, shown))
}

/// Whoever is over the limit is shown it at once; what others have left is for the caller to show.
fn within(checked: Checked, shown: &Shown) -> Result<Option<Allowance>, Refused> {
    checked.map_err(|(refusal, allowance)| {
        show(Some(allowance), shown);
        refusal.into()
    })
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty())
}

fn whereabouts(parts: &Parts, settings: &Settings) -> Whereabouts {
    let peer = parts.extensions.get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
    forwarded::whereabouts(peer, &parts.headers, &settings.trusted_proxies)
}

/// The address that limits count by.
pub fn client_address(parts: &Parts, settings: &Settings) -> IpAddr {
    whereabouts(parts, settings).counted()
}
