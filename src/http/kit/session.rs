//! Who is signed in on pages, and whether a form is one that we gave to this very browser. For every realm alike: a page
//! for people who are signed in takes `SignedIn`, its forms `SignedForm`; the pages of a sign-in take `Visitor` and
//! `VisitorForm`; the forms of pages for everybody are an `OwnForm`.
//!
//! A form proves itself by a token that follows from what the browser holds (`Vault::form_token`): after a sign-in or a
//! sign-out that is something else, so older forms end. What browsers say of where a request comes from is asked first.

use std::convert::Infallible;
use std::ops::Deref;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::State;
use super::auth::Anyone;
use super::cookies::Cookie;
use super::fields::{Form, Query};
use super::next::{Next, entrance};
use super::problem::Refused;
use crate::app::App;
use crate::config::Settings;
use crate::domain::ids::secret_text;
use crate::domain::login::Realm;
use crate::domain::refusal::Refusal;
use crate::domain::session::LONGEST_MS;
use crate::error::Result;
use crate::ops::sessions::portal::{self, Stay};
use crate::ops::sessions::{self, Session};
use crate::vault;

/// The field of a form that carries its token.
const TOKEN_FIELD: &str = "form";
/// What an entrance is told of a form that came too late.
const FORM: &str = "form";
const ENDED: &str = "ended";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// Before a sign-in a browser holds this, for the forms that lead to one.
const VISIT: Cookie = Cookie::secret("simgate-visit");
const VISIT_SECS: i64 = 24 * 3_600;
const VISIT_CHARS: usize = 44;

/// The cookie of a realm's sessions.
fn cookie(realm: Realm) -> Cookie {
    match realm {
        Realm::Buyers => Cookie::secret("simgate"),
        Realm::Partners => Cookie::secret("simgate-portal"),
    }
}

/// Whose sessions a realm's cookie can stand for.
pub trait Stays: Send + Sync + Sized + 'static {
    const REALM: Realm;

    fn find(app: &App, secret: &str) -> impl Future<Output = Result<Option<Self>>> + Send;
}

impl Stays for Session {
    const REALM: Realm = Realm::Buyers;

    fn find(app: &App, secret: &str) -> impl Future<Output = Result<Option<Session>>> + Send {
        sessions::find(app, secret)
    }
}

impl Stays for Stay {
    const REALM: Realm = Realm::Partners;

    fn find(app: &App, secret: &str) -> impl Future<Output = Result<Option<Stay>>> + Send {
        portal::find(app, secret)
    }
}

/// A member whose second factor is awaited.
pub struct Awaited(pub Stay);

impl Stays for Awaited {
    const REALM: Realm = Realm::Partners;

    async fn find(app: &App, secret: &str) -> Result<Option<Awaited>> {
        Ok(portal::find_awaiting(app, secret).await?.map(Awaited))
    }
}

/// Somebody who is signed in, within the limit of the address: a buyer, unless another is named.
pub struct SignedIn<S = Session> {
    session: S,
    /// The token of every form on this page.
    pub form: String,
}

impl<S> Deref for SignedIn<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.session
    }
}

/// Why a page is not shown: a refusal, or nobody is signed in.
pub enum Turned {
    Refused(Refused),
    ToEntrance {
        realm: Realm,
        next: Next,
        /// A form was sent, which nobody was signed in for any more.
        form_ended: bool,
    },
    /// Something else comes first.
    To(&'static str),
}

impl From<Refused> for Turned {
    fn from(refused: Refused) -> Turned {
        Turned::Refused(refused)
    }
}

impl IntoResponse for Turned {
    fn into_response(self) -> Response {
        match self {
            Turned::Refused(refused) => refused.into_response(),
            Turned::To(path) => see(path),
            Turned::ToEntrance { realm, next, form_ended } => {
                let next = next.about.map(|_| format!("next={next}"));
                let ended = form_ended.then(|| format!("{FORM}={ENDED}"));
                let said: Vec<String> = next.into_iter().chain(ended).collect();
                let query = if said.is_empty() { String::new() } else { format!("?{}", said.join("&")) };
                see(&format!("{}{query}", entrance(realm)))
            }
        }
    }
}

/// Leads a browser to another page of ours.
pub fn see(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or_else(|_| HeaderValue::from_static("/"));
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

impl<S: Stays> FromRequestParts<State> for SignedIn<S> {
    type Rejection = Turned;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<SignedIn<S>, Turned> {
        Anyone::from_request_parts(parts, state).await?;
        found(parts, state).await
    }
}

/// Whoever is signed in, or the way to the entrance.
async fn found<S: Stays>(parts: &Parts, state: &State) -> Result<SignedIn<S>, Turned> {
    match signed_in(&parts.headers, state).await? {
        Some(signed_in) => Ok(signed_in),
        None => Err(Turned::ToEntrance {
            realm: S::REALM,
            next: Next::wanted(S::REALM, parts.uri.path()),
            form_ended: parts.method == Method::POST,
        }),
    }
}

/// Whether the entrance is asked for by somebody whose form was sent too late.
pub fn has_form_ended(query: &Query) -> bool {
    query.typed(FORM) == ENDED
}

async fn signed_in<S: Stays>(headers: &HeaderMap, state: &State) -> Result<Option<SignedIn<S>>, Refused> {
    let app = &state.app;
    let Some(secret) = cookie(S::REALM).sent(&app.settings, headers) else { return Ok(None) };
    let found = S::find(app, &secret).await?;
    let form = app.vault.form_token(S::REALM.as_str(), &secret);
    Ok(found.map(|session| SignedIn { session, form }))
}

/// A form that anybody may send, signed in or not; a browser must not say that it comes from another site. So no site uses
/// up what its visitors may ask for here.
pub struct OwnForm(pub Query);

impl FromRequest<State> for OwnForm {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &State) -> Result<OwnForm, Refused> {
        require_own(request.headers(), request.uri(), &state.app.settings)?;
        let Form(fields) = Form::from_request(request, state).await?;
        Ok(OwnForm(fields))
    }
}

/// Whether somebody looks at what is asked for: browsers say when it is an image, a frame or a script of another page.
pub fn is_looked_at(headers: &HeaderMap) -> bool {
    headers.get(FETCH_DEST).is_none_or(|kind| kind == "document")
}

/// A form that this session's browser was given, and what it says.
pub struct SignedForm<S = Session>(pub SignedIn<S>, pub Query);

impl<S: Stays> FromRequest<State> for SignedForm<S> {
    type Rejection = Turned;

    async fn from_request(request: Request, state: &State) -> Result<SignedForm<S>, Turned> {
        let (mut parts, body) = request.into_parts();
        require_own(&parts.headers, &parts.uri, &state.app.settings)?;
        Anyone::from_request_parts(&mut parts, state).await?;
        let Form(fields) = Form::from_request(Request::from_parts(parts.clone(), body), state).await?;
        // The session is asked for last: a body that comes slowly must not outlast it.
        let signed_in = found::<S>(&parts, state).await?;
        let fields = proven(fields, &signed_in.form)?;
        Ok(SignedForm(signed_in, fields))
    }
}

/// Somebody at the entrance of a realm.
pub struct Visitor {
    /// The token of the forms that lead to a sign-in.
    pub form: String,
    /// The cookie that a new visitor is given.
    cookie: Option<HeaderValue>,
}

impl Visitor {
    /// Has the browser hold what its forms are proven by.
    pub fn meet(&self, mut page: Response) -> Response {
        if let Some(cookie) = &self.cookie {
            page.headers_mut().append(header::SET_COOKIE, cookie.clone());
        }
        page
    }
}

impl FromRequestParts<State> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Visitor, Infallible> {
        let settings = &state.app.settings;
        let (held, cookie) = match visit(settings, &parts.headers) {
            Some(held) => (held, None),
            None => {
                let new = secret_text("", [vault::random(), vault::random()]);
                let cookie = VISIT.kept(settings, &new, VISIT_SECS);
                (new, Some(cookie))
            }
        };
        Ok(Visitor { form: visit_token(state, &held), cookie })
    }
}

fn visit(settings: &Settings, headers: &HeaderMap) -> Option<String> {
    let is_ours =
        |text: &String| text.len() == VISIT_CHARS && text.bytes().all(|b| b.is_ascii_alphanumeric());
    VISIT.sent(settings, headers).filter(is_ours)
}

fn visit_token(state: &State, held: &str) -> String {
    state.app.vault.form_token("visit", held)
}

/// A form that this visitor's browser was given, before a sign-in.
pub struct VisitorForm {
    pub fields: Query,
    /// The token of the next form.
    pub form: String,
    headers: HeaderMap,
}

impl VisitorForm {
    /// What the browser holds of a session in this realm, good or not.
    pub fn former(&self, state: &State, realm: Realm) -> Option<String> {
        cookie(realm).sent(&state.app.settings, &self.headers)
    }
}

impl FromRequest<State> for VisitorForm {
    type Rejection = Turned;

    async fn from_request(request: Request, state: &State) -> Result<VisitorForm, Turned> {
        let (mut parts, body) = request.into_parts();
        let settings = &state.app.settings;
        Anyone::from_request_parts(&mut parts, state).await?;
        require_own(&parts.headers, &parts.uri, settings)?;
        let held = visit(settings, &parts.headers).ok_or_else(|| Refused::from(Refusal::FormNotOurs))?;
        let form = visit_token(state, &held);
        let headers = parts.headers.clone();
        let Form(fields) = Form::from_request(Request::from_parts(parts, body), state).await?;
        Ok(VisitorForm { fields: proven(fields, &form)?, form, headers })
    }
}

/// Has the browser hold a new session, and nothing from before it.
pub fn enter(state: &State, realm: Realm, secret: &str, mut response: Response) -> Response {
    let settings = &state.app.settings;
    let kept = cookie(realm).kept(settings, secret, LONGEST_MS / 1_000);
    response.headers_mut().append(header::SET_COOKIE, kept);
    response.headers_mut().append(header::SET_COOKIE, VISIT.forgotten(settings));
    response
}

/// Has the browser forget its session.
pub fn leave(state: &State, realm: Realm, mut response: Response) -> Response {
    let forgotten = cookie(realm).forgotten(&state.app.settings);
    response.headers_mut().append(header::SET_COOKIE, forgotten);
    response
}

/// What a form says, if its token is the right one.
fn proven(mut fields: Query, expected: &str) -> Result<Query, Refused> {
    let token = fields.take(TOKEN_FIELD, "is not ours", |text| Some(text.to_string())).unwrap_or_default();
    match vault::same(token.as_bytes(), expected.as_bytes()) {
        true => Ok(fields),
        false => Err(Refusal::FormNotOurs.into()),
    }
}

/// Refuses a form that a browser says comes from another site.
fn require_own(headers: &HeaderMap, uri: &Uri, settings: &Settings) -> Result<(), Refused> {
    if is_own(headers, uri, &settings.checkout_url) { Ok(()) } else { Err(Refusal::FormNotOurs.into()) }
}

/// Our pages name no referrer, so their own forms have the origin `null`; so have forms of a page in a box on another site.
/// Browsers that send `Sec-Fetch-Site` tell these apart, and for others the form's token does; an `OwnForm` has none, and is
/// taken from such a browser.
fn is_own(headers: &HeaderMap, uri: &Uri, own_url: &str) -> bool {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if let Some(site) = text(&FETCH_SITE) {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(&header::ORIGIN).filter(|origin| *origin != "null") else { return true };
    let host = text(&header::HOST).or(uri.authority().map(|authority| authority.as_str()));
    let named = origin.split_once("://").map(|(_, name)| name);
    origin == own_url || (named.is_some() && named == host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_other_sites_are_told_by_what_browsers_say() {
        let own = "https://shop.example";
        for (site, origin, taken) in [
            (None, None, true),
            (Some("same-origin"), Some("null"), true),
            (Some("none"), None, true),
            (None, Some("null"), true),
            (None, Some("https://shop.example"), true),
            (None, Some("http://127.0.0.1:8402"), true),
            (Some("cross-site"), Some("null"), false),
            (Some("same-site"), Some("https://evil.shop.example"), false),
            (None, Some("https://evil.example"), false),
            (None, Some("https://shop.example.evil.example"), false),
            (None, Some("?"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:8402"));
            for (name, value) in [(FETCH_SITE, site), (header::ORIGIN, origin)] {
                headers.extend(value.map(|value| (name, HeaderValue::from_static(value))));
            }
            assert_eq!(is_own(&headers, &Uri::from_static("/account"), own), taken, "{site:?} {origin:?}");
        }
    }
}
