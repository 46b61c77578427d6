//! News of a page, as server-sent events: `change` with the version of what the page shows now, at once and whenever it
//! changes, and `end`. No event holds anything that is on the page: who hears of a change loads the page.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::{Anyone, Client};
use crate::http::kit::fields::{Segment, invoice_id};
use crate::http::kit::html::guard;
use crate::ops::live::shown::Shown;
use crate::ops::live::{self, News, Opened, Viewer};

/// How long a browser waits before it comes again when it was cut off, in milliseconds.
const AGAIN: &str = "retry: 2000\n";
/// A comment: nothing has happened.
const BEAT: &str = ":\n\n";
/// The page may still change, and is to be looked at now and then.
const TIME_IS_UP: &str = "event: end\ndata: time\n\n";
/// Nothing more happens.
const FINAL: &str = "event: end\ndata: final\n\n";
/// Proxies must pass on each event as it comes.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

pub async fn of_payment(_: Anyone, state: State, Client(from): Client, Segment(id): Segment) -> Answer {
    Ok(events(live::of_invoice(&state.app, &invoice_id(id)?, from).await?))
}

pub async fn of_esim(_: Anyone, state: State, Client(from): Client, Segment(token): Segment) -> Answer {
    Ok(events(live::of_esim(&state.app, &token, from).await?))
}

fn events(Opened { shown, viewer }: Opened) -> Response {
    let telling = Telling { first: Some(format!("{AGAIN}{}", changed(&shown))), viewer };
    let told = stream::unfold(telling, async |mut telling| {
        let text = telling.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), telling))
    });
    let mut response = Body::from_stream(told).into_response();
    let headers = response.headers_mut();
    guard(headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    response
}

struct Telling {
    first: Option<String>,
    /// Nobody any more, when all was told.
    viewer: Option<Viewer>,
}

impl Telling {
    async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let (text, goes_on) = match self.viewer.as_mut()?.news().await {
            News::Changed(shown) => (changed(&shown), !shown.is_over),
            News::Nothing => (BEAT.into(), true),
            News::TimeIsUp => (TIME_IS_UP.into(), false),
            News::NoMore => return None,
        };
        if !goes_on {
            self.viewer = None;
        }
        Some(text)
    }
}

fn changed(shown: &Shown) -> String {
    format!("event: change\ndata: {}\n\n{}", shown.version, if shown.is_over { FINAL } else { "" })
}
