//! Connections to endpoints: one that is open and carries one message at a time, and those that wait for the next one. A
//! line that waits is used only if it leads to where the name leads now.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout_at;
use tokio_util::task::AbortOnDropHandle;

/// How many bytes the head of an answer may have.
const LONGEST_HEAD: usize = 16 << 10;
/// How much of an answer is read.
const MOST_READ: usize = 64 << 10;
const IDLE: Duration = Duration::from_secs(30);
const IDLE_PER_HOST: usize = 4;
/// Of all hosts together: each is a file descriptor.
const MOST_IDLE: usize = 256;

/// An open connection. It ends when it is dropped.
pub struct Line {
    request: SendRequest<Full<Bytes>>,
    peer: SocketAddr,
    heard: Arc<AtomicBool>,
    _driver: AbortOnDropHandle<()>,
}

/// An answer, as far as it was read.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// Whether it was read to its end, so that the line can carry another message.
    pub is_whole: bool,
}

/// Why there is no answer, or only a part of it.
pub enum Broken {
    /// The line ended before a byte of an answer came.
    Silent(String),
    /// An answer began, but cannot be read; with its status, if that came.
    Midway(Option<u16>, String),
    Late(Option<u16>),
}

impl Line {
    pub async fn open<S>(stream: S, peer: SocketAddr) -> hyper::Result<Line>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let heard = Arc::new(AtomicBool::new(false));
        let stream = Ear { stream, heard: heard.clone() };
        let (request, connection) =
            Builder::new().max_buf_size(LONGEST_HEAD).handshake(TokioIo::new(stream)).await?;
        // What goes wrong with it is told to whoever waits for an answer.
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Line { request, peer, heard, _driver: AbortOnDropHandle::new(driver) })
    }

    /// Sends a message and reads the answer.
    pub async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        deadline: tokio::time::Instant,
    ) -> Result<Answer, Broken> {
        self.heard.store(false, Ordering::Relaxed);
        let asked = timeout_at(deadline, self.ask(request)).await.map_err(|_| Broken::Late(None))?;
        let answer = asked.map_err(|error| match self.heard.load(Ordering::Relaxed) {
            true => Broken::Midway(None, why(&error)),
            false => Broken::Silent(why(&error)),
        })?;
        let status = answer.status().as_u16();
        let (mut incoming, mut body) = (answer.into_body(), Vec::new());
        while body.len() < MOST_READ {
            let next = timeout_at(deadline, incoming.frame()).await;
            match next.map_err(|_| Broken::Late(Some(status)))? {
                Some(Ok(frame)) => body.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(error)) => return Err(Broken::Midway(Some(status), why(&error))),
                None => return Ok(Answer { status, body, is_whole: true }),
            }
        }
        Ok(Answer { status, body, is_whole: false })
    }

    async fn ask(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        self.request.ready().await?;
        self.request.send_request(request).await
    }
}

fn why(error: &hyper::Error) -> String {
    if error.is_parse_too_large() {
        return format!("its head is larger than {} KB", LONGEST_HEAD >> 10);
    }
    if error.is_parse() {
        return "it is not HTTP".into();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return "the connection ended".into();
    }
    let mut reason: &dyn Error = error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    reason.to_string()
}

/// Notes whether anything was heard from the other end.
struct Ear<S> {
    stream: S,
    heard: Arc<AtomicBool>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Ear<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.heard.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Ear<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Lines that wait for the next message.
#[derive(Default)]
pub struct Idle {
    lines: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// By scheme, host and port.
    of: HashMap<String, Vec<(Instant, Line)>>,
    /// Whether somebody will come and end those that waited too long.
    is_watched: bool,
}

impl Waiting {
    fn end_old(&mut self) {
        for lines in self.of.values_mut() {
            lines.retain(|(since, line)| since.elapsed() < IDLE && !line.request.is_closed());
        }
        self.of.retain(|_, lines| !lines.is_empty());
    }
}

impl Idle {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line to one of these addresses, the youngest first: it is the least likely to have ended.
    pub fn take(&self, origin: &str, addresses: &[SocketAddr]) -> Option<Line> {
        let mut waiting = self.waiting();
        waiting.end_old();
        let lines = waiting.of.get_mut(origin)?;
        let at = lines.iter().rposition(|(_, line)| addresses.contains(&line.peer))?;
        Some(lines.remove(at).1)
    }

    pub fn keep(self: &Arc<Idle>, origin: String, line: Line) {
        let mut waiting = self.waiting();
        waiting.end_old();
        let count: usize = waiting.of.values().map(Vec::len).sum();
        let of_host = waiting.of.get(&origin).map_or(0, Vec::len);
        if of_host >= IDLE_PER_HOST || count >= MOST_IDLE {
            return;
        }
        waiting.of.entry(origin).or_default().push((Instant::now(), line));
        if !waiting.is_watched {
            waiting.is_watched = true;
            tokio::spawn(watch(Arc::downgrade(self)));
        }
    }
}

/// Ends lines that waited too long, until none waits or nobody sends any more.
async fn watch(idle: Weak<Idle>) {
    loop {
        tokio::time::sleep(IDLE / 10).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut waiting = idle.waiting();
        waiting.end_old();
        if waiting.of.is_empty() {
            waiting.is_watched = false;
            return;
        }
    }
}
