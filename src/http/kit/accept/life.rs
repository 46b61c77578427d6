//! What a connection is doing: whether a request is under way, since when it is idle, and whether its client reads.
//! Its own task, those of its requests and the accept loop look at it, so it is made of atomics: no request pays for
//! it with a lock or an allocation. `connection.rs` and `places.rs` decide by it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Version;
use futures_util::task::AtomicWaker;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Milliseconds since the server began to listen.
pub type Millis = u64;

/// Later than anything that happens, and small enough to be added to.
pub const NEVER: Millis = u64::MAX / 2;

/// HTTP/2 gets an answer in pieces of this size, each as soon as the client has room for the first byte of the
/// one before. So the last byte of an answer is a piece of its own: it stays under way until the rest finds room.
const PIECE: usize = 16 * 1024;

/// An answer of at most this size goes as a whole. Most do, and all that a connection may ask for at once hold little.
const SHORT: usize = 2 * 1024;

/// Answers that wait for their client are counted by the round of their last progress: this one, the one before, or the
/// one before that.
const ROUNDS: usize = 3;

/// How long a client may take to hear that its connection ends. Later requests are refused.
pub const FAREWELL: Millis = 1_000;

/// How long a new connection has for its first request: newcomers must not push each other out before that.
const GREETING: Millis = 1_000;

/// Readers need to see each change soon, in any order; `UnderWay::begin` names the exception.
pub struct Life {
    /// When the server began.
    start: Instant,
    pub born: Millis,
    under_way: AtomicUsize,
    /// An answer is complete, and its last bytes may not have reached the socket.
    unflushed: AtomicBool,
    idle_since: AtomicU64,
    /// Bytes came that no request has claimed yet.
    heard: AtomicBool,
    asked: AtomicBool,
    http2: AtomicBool,
    /// Since when the socket takes no more bytes, or never.
    stalled_since: AtomicU64,
    /// Answers over HTTP/2 that wait for their client. Each is watched by itself: reading one answer is no excuse for
    /// leaving another unread.
    owed: [AtomicUsize; ROUNDS],
    round: AtomicUsize,
    /// Until when it takes requests: `NEVER` while it stays, 0 when it must go at once.
    open_until: AtomicU64,
    task: AtomicWaker,
}

impl Life {
    pub fn new(start: Instant) -> Life {
        let born = start.elapsed().as_millis() as Millis;
        Life {
            start,
            born,
            under_way: AtomicUsize::new(0),
            unflushed: AtomicBool::new(false),
            idle_since: AtomicU64::new(born),
            heard: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            stalled_since: AtomicU64::new(NEVER),
            owed: Default::default(),
            round: AtomicUsize::new(0),
            open_until: AtomicU64::new(NEVER),
            task: AtomicWaker::new(),
        }
    }

    pub fn now(&self) -> Millis {
        self.start.elapsed().as_millis() as Millis
    }

    pub fn at(&self, time: Millis) -> tokio::time::Instant {
        (self.start + std::time::Duration::from_millis(time)).into()
    }

    /// When its last request ended, or it began; `None` while a request is being served.
    pub fn idle_since(&self) -> Option<Millis> {
        (!self.is_served()).then(|| self.idle_since.load(Relaxed))
    }

    /// The same for a connection that may be closed to make room; otherwise `None`.
    pub fn dispensable_since(&self) -> Option<Millis> {
        self.idle_since().filter(|_| self.has_asked() || self.born + GREETING <= self.now())
    }

    /// An answer counts until the socket has taken it.
    pub fn is_served(&self) -> bool {
        self.under_way.load(SeqCst) > 0
            || self.unflushed.load(Relaxed)
            || self.stalled_since.load(Relaxed) != NEVER
    }

    pub fn has_asked(&self) -> bool {
        self.asked.load(Relaxed)
    }

    pub fn is_http2(&self) -> bool {
        self.http2.load(Relaxed)
    }

    /// Whether a head has begun to arrive. Over HTTP/2 much else arrives between requests. A head that came together
    /// with the request before it is not seen; it has as long as an idle connection.
    pub fn hears_a_head(&self) -> bool {
        self.heard.load(Relaxed) && !self.is_http2() && self.under_way.load(Relaxed) == 0
    }

    /// Since when the socket takes no more bytes, or never.
    pub fn stalled_since(&self) -> Millis {
        self.stalled_since.load(Relaxed)
    }

    /// Whether an answer over HTTP/2 waits for its client.
    pub fn owes(&self) -> bool {
        self.owed.iter().any(|owed| owed.load(Relaxed) > 0)
    }

    /// Begins the next round. Returns for how many whole rounds, at most two, an answer has waited.
    pub fn next_round(&self) -> usize {
        let round = self.round.fetch_add(1, Relaxed);
        let left_from = |ago: usize| self.owed[(round + ROUNDS - ago) % ROUNDS].load(Relaxed) > 0;
        if left_from(2) { 2 } else { usize::from(left_from(1)) }
    }

    /// Asks the connection to end. It finishes what it serves; with `at_once` it does not wait for the farewell.
    pub fn send_away(&self, at_once: bool) {
        self.open_until.fetch_min(if at_once { 0 } else { self.now() + FAREWELL }, SeqCst);
        self.task.wake();
    }

    pub fn is_leaving(&self) -> bool {
        self.open_until.load(Relaxed) != NEVER
    }

    pub fn leaves_at_once(&self) -> bool {
        self.open_until.load(Relaxed) == 0
    }

    /// Registers the task to wake when something changes.
    pub fn attended_by(&self, cx: &Context) {
        self.task.register(cx.waker());
    }
}

/// A request from its head to the end of its answer, or to the end of its body.
pub struct UnderWay(Arc<Life>);

impl UnderWay {
    /// `None` when the connection was sent away and the client must know it by now. Otherwise a client could stay for
    /// as long as it asks: over HTTP/2 only its own answer to a ping would end the requests.
    pub fn begin(life: &Arc<Life>, version: Version) -> Option<UnderWay> {
        // In this order: `make_room` sends a connection away first and then looks whether it is served.
        life.under_way.fetch_add(1, SeqCst);
        let open_until = life.open_until.load(SeqCst);
        if open_until != NEVER && open_until <= life.now() {
            // The connection stays as idle as it was.
            life.under_way.fetch_sub(1, SeqCst);
            return None;
        }
        life.heard.store(false, Relaxed);
        life.asked.store(true, Relaxed);
        life.http2.store(version == Version::HTTP_2, Relaxed);
        Some(UnderWay(life.clone()))
    }

    pub fn life(&self) -> &Life {
        &self.0
    }
}

impl Clone for UnderWay {
    fn clone(&self) -> UnderWay {
        self.0.under_way.fetch_add(1, Relaxed);
        UnderWay(self.0.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let life = &self.0;
        life.idle_since.store(life.now(), Relaxed);
        // What was heard meanwhile was the body.
        life.heard.store(false, Relaxed);
        // Over HTTP/2 a request ends in a task of its own, and the connection's must set its clock.
        if life.under_way.fetch_sub(1, SeqCst) == 1 && life.is_http2() {
            life.task.wake();
        }
    }
}

/// The body of an answer, which keeps its request under way.
pub struct Served {
    body: Body,
    /// The rest of a frame that was too long for one piece.
    rest: Bytes,
    request: UnderWay,
    /// The round it is counted in while it waits for the client, not for us. Unused over HTTP/1: the socket tells.
    owed: Option<usize>,
}

impl Served {
    pub fn new(body: Body, request: UnderWay) -> Served {
        let mut served = Served { body, rest: Bytes::new(), request, owed: None };
        served.owe(true);
        served
    }

    fn owe(&mut self, owed: bool) {
        let life = self.request.life();
        if !life.is_http2() {
            return;
        }
        let owed = owed.then(|| life.round.load(Relaxed) % ROUNDS);
        if owed == self.owed {
            return;
        }
        if let Some(round) = owed {
            life.owed[round].fetch_add(1, Relaxed);
        }
        if let Some(round) = self.owed {
            life.owed[round].fetch_sub(1, Relaxed);
        }
        self.owed = owed;
    }
}

impl HttpBody for Served {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            self.owe(polled.is_ready());
            match ready!(polled) {
                Some(Ok(frame)) if self.owed.is_some() => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return Poll::Ready(other),
            }
        } else {
            self.owe(true);
        }
        let length = match self.rest.len() {
            short @ ..=SHORT => short,
            long => PIECE.min(long - 1),
        };
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

impl Drop for Served {
    /// The connection's task writes what is left, and clears `unflushed` when it has.
    fn drop(&mut self) {
        self.owe(false);
        self.request.life().unflushed.store(true, Relaxed);
    }
}

/// A socket that notes when bytes arrive, and whether it takes the bytes that we write.
pub struct Watched {
    pub stream: TcpStream,
    pub life: Arc<Life>,
}

impl Watched {
    fn written(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let stalled = &self.life.stalled_since;
        match (result.is_pending(), stalled.load(Relaxed)) {
            (true, NEVER) => stalled.store(self.life.now(), Relaxed),
            (true, _) | (false, NEVER) => {}
            (false, _) => {
                // If it waited for the last bytes of an answer, it is idle from now on.
                self.life.idle_since.store(self.life.now(), Relaxed);
                stalled.store(NEVER, Relaxed);
            }
        }
        result
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.life.heard.store(true, Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.written(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        if polled.is_ready() {
            self.life.unflushed.store(false, Relaxed);
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
impl Life {
    /// One that has been idle since this moment.
    pub fn idle(since: Millis) -> Arc<Life> {
        let life = Life::new(Instant::now());
        life.idle_since.store(since, Relaxed);
        life.asked.store(true, Relaxed);
        Arc::new(life)
    }

    /// One of this age that has not asked yet.
    pub fn silent(age: Millis) -> Arc<Life> {
        let start = Instant::now().checked_sub(std::time::Duration::from_millis(age));
        let mut life = Life::new(start.expect("the machine has been up for longer"));
        life.born = 0;
        Arc::new(life)
    }
}
