//! The rest of an account: where it is signed in, the data to take along, light or dark.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::domain::ids::SessionId;
use crate::domain::login::Realm;
use crate::error::Error;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Segment, session_id};
use crate::http::kit::html::{guard, page};
use crate::http::kit::session::see;
use crate::http::pages::look::{self, Theme};
use crate::http::pages::moment::Moment;
use crate::ops::{export, sessions};

/// A browser that is signed in.
struct Stay {
    id: SessionId,
    browser: String,
    network: String,
    made: Moment,
    seen: Moment,
    is_this: bool,
}

#[derive(Template)]
#[template(path = "account/settings.html")]
struct SettingsPage<'a> {
    frame: Frame<'a>,
    stays: Vec<Stay>,
}

pub async fn show(visit: Visit) -> Answer {
    let found = sessions::list(&visit.state.app, visit.me.account, Realm::Buyers).await?;
    let stay = |listed: sessions::Listed| Stay {
        is_this: listed.id == visit.me.id,
        id: listed.id,
        browser: listed.browser,
        network: listed.network,
        made: Moment::of(listed.made_at),
        seen: Moment::of(listed.seen_at),
    };
    let stays = found.into_iter().map(stay).collect();
    page(&visit.state, StatusCode::OK, &SettingsPage { frame: visit.frame(Section::Settings), stays })
}

/// Signs one browser out.
pub async fn end(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    sessions::end(&visit.state.app, visit.me.account, &session_id(&id)?).await?;
    Ok(see(&after(Done::Ended, &Section::Settings.path())))
}

/// Everything that is kept about this user, as a file.
pub async fn data(visit: Visit) -> Answer {
    let data = export::of_user(&visit.state.app, visit.me.account).await?;
    let json = serde_json::to_vec_pretty(&data).map_err(Error::fault)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"simgate-data.json\"")),
    ];
    let mut response: Response = (headers, json).into_response();
    guard(response.headers_mut());
    Ok(response)
}

/// Light, dark, or as the system says.
pub async fn theme(Sent(visit, fields): Sent) -> Answer {
    Ok(look::keep(&visit.state, &fields, see(&Section::Settings.path())))
}
