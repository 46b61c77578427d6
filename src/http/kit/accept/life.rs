//! What a connection is doing: whether a request is under way, since when it is idle, and whether its client reads.
//! Its own task, those of its requests and the accept loop look at it, so it is made of atomics: no request pays for
//! it with a lock or an allocation. `connection.rs` decides by it, `places.rs` too.

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

/// Far beyond all that happens, and far enough from the end of numbers to be added to.
pub const NEVER: Millis = u64::MAX / 2;

/// HTTP/2 gets an answer in pieces of this size, each as soon as the client has room for the first byte of the
/// one before. So the last byte of an answer is a piece of its own: until there is room for the rest, it is under way.
const PIECE: usize = 16 * 1024;

/// What is no longer than this goes as a whole. Most answers do, and all that a connection may ask for hold little.
const SHORT: usize = 2 * 1024;

/// Answers that wait for their client are counted by the round in which they last went on: this one, the one before,
/// or the one before that.
const ROUNDS: usize = 3;

/// How long a client may take to hear that its connection ends. What it asks for after that is refused.
pub const FAREWELL: Millis = 1_000;

/// A new connection is about to ask. Newcomers must not push each other out before they could.
const GREETING: Millis = 1_000;

/// Whoever looks at these only has to see each of them soon, in whatever order, but for what `UnderWay::begin` says.
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
    /// Answers over HTTP/2 that wait for their client. Each is watched for itself: what is read of one answer is no
    /// excuse for another that nobody reads.
    owed: [AtomicUsize; ROUNDS],
    round: AtomicUsize,
    /// Until when it takes requests: for ever while it stays, and no more at all when it must go at once.
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

    /// When its last request ended, or it began; nothing while one is being served.
    pub fn idle_since(&self) -> Option<Millis> {
        (!self.is_served()).then(|| self.idle_since.load(Relaxed))
    }

    /// The same where the connection may be closed to make room.
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

    /// Begins the next round. Tells through how many whole rounds, two at most, an answer has waited by now.
    pub fn next_round(&self) -> usize {
        let round = self.round.fetch_add(1, Relaxed);
        let left_from = |ago: usize| self.owed[(round + ROUNDS - ago) % ROUNDS].load(Relaxed) > 0;
        if left_from(2) { 2 } else { usize::from(left_from(1)) }
    }

    /// Asks the connection to end. It finishes what it serves; who is in a hurry does not wait for farewells.
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

    /// The task that is to be woken when something changes.
    pub fn attended_by(&self, cx: &Context) {
        self.task.register(cx.waker());
    }
}

/// A request from its head to the end of its answer, or to the end of its body.
pub struct UnderWay(Arc<Life>);

impl UnderWay {
    /// Nothing where the connection was sent away and the client must know it: else it could stay for as long as it
    /// asks, since over HTTP/2 nothing but its own answer to a ping would end the requests.
    pub fn begin(life: &Arc<Life>, version: Version) -> Option<UnderWay> {
        // In this order: who sends a connection away looks after that whether it is served.
        life.under_way.fetch_add(1, SeqCst);
        let open_until = life.open_until.load(SeqCst);
        if open_until != NEVER && open_until <= life.now() {
            // It is no less idle for that.
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
    /// What is left of a piece of it that was too long for one.
    rest: Bytes,
    request: UnderWay,
    /// Where it is counted while the client is waited for, and not we. Of no interest where the socket tells.
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
    /// The connection's task comes to write what is left, and tells when it has.
    fn drop(&mut self) {
        self.owe(false);
        self.request.life().unflushed.store(true, Relaxed);
    }
}

/// A socket that tells what comes and whether what goes is taken.
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
                // Being served ends here when the answer's last bytes were what it waited for.
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

    /// One that began so long ago and has not asked yet.
    pub fn silent(age: Millis) -> Arc<Life> {
        let start = Instant::now().checked_sub(std::time::Duration::from_millis(age));
        let mut life = Life::new(start.expect("the machine has been up for longer"));
        life.born = 0;
        Arc::new(life)
    }
}
