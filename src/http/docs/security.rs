//! `/.well-known/security.txt` (RFC 9116): whom to tell about a hole in this deployment. Only the operator can say that,
//! so there is none without the setting.

use axum::http::header;
use axum::response::IntoResponse;

use crate::domain::refusal::Refusal;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::wire::iso;

pub const PATH: &str = "/.well-known/security.txt";
/// The file says until when it can be trusted; it is written anew for everybody who asks.
const GOOD_FOR_DAYS: i64 = 90;

pub async fn text(_: Anyone, state: State) -> Answer {
    let settings = &state.app.settings;
    let contact = settings.security_contact.as_ref().ok_or(Refusal::NotFound)?;
    let expires = iso(state.app.now().plus_days(GOOD_FOR_DAYS));
    let text = format!(
        "Contact: {contact}\nExpires: {expires}\nPreferred-Languages: en\nCanonical: {}{PATH}\n",
        settings.base_url
    );
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}
