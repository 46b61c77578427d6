//! Request bodies that a handler left unread. Most refusals come before the body does. A client that is still sending
//! when its connection closes may lose the answer, and one that keeps the connection would lose its next request. So
//! the rest of the body is read and thrown away, within bounds.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::{Instant, timeout_at};

use super::PATIENCE;
use super::life::UnderWay;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// The most that is read of such a rest: an answer is not worth more.
const MOST: usize = 4 * 1024 * 1024;

/// A body that is read to its end: by its handler, or by a task when the handler drops it.
pub struct Unread {
    body: Option<Incoming>,
    until: Instant,
    courtesy: Option<Courtesy>,
    /// A connection is not idle while the rest of a body comes.
    request: Option<UnderWay>,
}

/// A client that asks before it sends its body. Reading the body tells it to go on; otherwise the body never comes.
#[derive(Clone, Default)]
struct Courtesy(Arc<AtomicBool>);

impl Courtesy {
    fn is_answered(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Unread {
    /// A request's body as its handler gets it. Most have none.
    pub fn watch(head: &Head, body: Incoming, request: &UnderWay) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        let (until, courtesy) = (Instant::now() + PATIENCE, head.courtesy.clone());
        Body::new(Unread { body: Some(body), until, courtesy, request: Some(request.clone()) })
    }
}

impl HttpBody for Unread {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        if let Some(Courtesy(answered)) = &self.courtesy {
            answered.store(true, Ordering::Relaxed);
        }
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let comes = self.courtesy.as_ref().is_none_or(Courtesy::is_answered);
        let left = self.body.take().filter(|body| comes && !body.is_end_stream());
        if let Some(body) = left {
            let (until, request) = (self.until, self.request.take());
            tokio::spawn(async move {
                let _request = request;
                let _ = timeout_at(until, discard(body)).await;
            });
        }
    }
}

async fn discard(mut body: Incoming) {
    let mut read = 0;
    while read <= MOST
        && let Some(Ok(frame)) = body.frame().await
    {
        read += frame.data_ref().map_or(0, Bytes::len);
    }
}

/// What a request's head says about when its connection must end.
pub struct Head {
    is_http1: bool,
    /// Whether the client means to go on, as clients of HTTP/1.1 do unless they say otherwise.
    goes_on: bool,
    courtesy: Option<Courtesy>,
}

impl Head {
    pub fn of<B>(request: &Request<B>) -> Head {
        Head {
            is_http1: request.version() <= Version::HTTP_11,
            goes_on: request.version() == Version::HTTP_11 && !says_close(request.headers()),
            courtesy: request.headers().contains_key(header::EXPECT).then(Courtesy::default),
        }
    }

    /// Says that the connection ends when the rest of a body may never be read: the client must not use it again.
    /// Otherwise it says how long the connection waits for the next request, if it does.
    pub fn say_what_follows(&self, mut response: Response, keep_alive: Option<HeaderValue>) -> Response {
        let cut_short =
            matches!(response.status(), StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT);
        let never_sent = self.courtesy.as_ref().is_some_and(|courtesy| !courtesy.is_answered());
        let headers = response.headers_mut();
        if self.is_http1 && (cut_short || never_sent) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        } else if let Some(timeout) = keep_alive
            && self.goes_on
            && !says_close(headers)
        {
            headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive"));
            headers.insert(KEEP_ALIVE, timeout);
        }
        response
    }
}

fn says_close(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|text| text.split(',')).any(|option| option.trim().eq_ignore_ascii_case("close"))
}
