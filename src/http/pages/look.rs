//! Light or dark, where people stay: by the system, unless a browser chose. And what the browser says it is.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;

use crate::domain::words::words;
use crate::http::kit::State;
use crate::http::kit::cookies::Cookie;
use crate::http::kit::fields::Query;

const THEME: Cookie = Cookie::plain("theme");
const THEME_SECS: i64 = 365 * 86_400;

words! {
    /// Light or dark, where the reader does not leave it to the system.
    pub enum Theme: parse {
        Light = "light",
        Dark = "dark",
    }
}

/// The theme that this browser chose.
pub struct Look(pub Option<Theme>);

impl Look {
    pub fn of(state: &State, headers: &HeaderMap) -> Look {
        Look(THEME.sent(&state.app.settings, headers).and_then(|word| Theme::parse(&word)))
    }
}

impl FromRequestParts<State> for Look {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Look, Infallible> {
        Ok(Look::of(state, &parts.headers))
    }
}

/// What the browser says it is; nothing where it says none.
pub fn agent(headers: &HeaderMap) -> &str {
    headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Has the browser keep what a form chose: light, dark, or as the system says.
pub fn keep(state: &State, fields: &Query, mut response: Response) -> Response {
    let settings = &state.app.settings;
    let cookie = match Theme::parse(&fields.typed("theme")) {
        Some(theme) => THEME.kept(settings, theme.as_str(), THEME_SECS),
        None => THEME.forgotten(settings),
    };
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}
