//! `/.well-known/security.txt` (RFC 9116): whom to tell about a hole in this deployment. Only the operator knows that:
//! without the setting there is no such file.

use axum::http::header;
use axum::response::IntoResponse;

use crate::domain::refusal::Refusal;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::wire::iso;

pub const PATH: &str = "/.well-known/security.txt";
/// How long the file says that it can be trusted. It is written anew for each request.
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
