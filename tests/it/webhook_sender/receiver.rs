//! An endpoint that does as the test says, and names that lead where the test says.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustls::ServerConfig;
use simgate::webhook::Dns;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;

/// What a receiver does with a request.
pub enum Manner {
    /// Answers, and waits for the next one.
    Answer(Vec<u8>),
    /// Answers when as many requests have come as the barrier is wide.
    Meet(Arc<Barrier>, Vec<u8>),
    /// Writes this, and ends the connection.
    Leave(Vec<u8>),
    /// Writes the first, then the second again and again, with pauses.
    Drip(Vec<u8>, Vec<u8>, Duration),
    /// Writes this, and nothing after it.
    Hang(Vec<u8>),
}

/// An answer with this status and body; more lines of the head may stand behind the status.
pub fn answer(status: &str, body: &str) -> Manner {
    Manner::Answer(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into())
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    open: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

pub struct Receiver {
    pub address: SocketAddr,
    seen: Arc<Seen>,
    _listening: tokio_util::task::AbortOnDropHandle<()>,
}

type Script = dyn Fn(usize) -> Manner + Send + Sync;

impl Receiver {
    /// The script says what to do with each request, counted from 1.
    pub async fn start(script: impl Fn(usize) -> Manner + Send + Sync + 'static) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Receiver::serve(listener, None, Arc::new(script))
    }

    pub async fn with_tls(config: ServerConfig, script: fn(usize) -> Manner) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Receiver::serve(listener, Some(TlsAcceptor::from(Arc::new(config))), Arc::new(script))
    }

    /// Two receivers with one port, on two addresses.
    pub async fn pair(script: fn(usize) -> Manner) -> [Receiver; 2] {
        loop {
            let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = first.local_addr().unwrap().port();
            // Somebody else may have it there.
            if let Ok(second) = TcpListener::bind(("127.0.0.2", port)).await {
                return [first, second].map(|listener| Receiver::serve(listener, None, Arc::new(script)));
            }
        }
    }

    fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, script: Arc<Script>) -> Receiver {
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let ours = seen.clone();
        let listening = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                ours.connections.fetch_add(1, Ordering::SeqCst);
                let (seen, script, tls) = (ours.clone(), script.clone(), tls.clone());
                tokio::spawn(async move {
                    seen.open.fetch_add(1, Ordering::SeqCst);
                    // Either end may leave at any time.
                    let _ = match tls {
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => converse(stream, &seen, &*script).await,
                            Err(error) => Err(error),
                        },
                        None => converse(stream, &seen, &*script).await,
                    };
                    seen.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Receiver { address, seen, _listening: tokio_util::task::AbortOnDropHandle::new(listening) }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Waits until so many connections are open.
    pub async fn until_open(&self, count: usize) {
        while self.seen.open.load(Ordering::SeqCst) != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Seen,
    script: &Script,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let Some(request) = read_request(&mut stream, &mut buffer).await? else { return Ok(()) };
        let number = {
            let mut requests = seen.requests.lock().unwrap();
            requests.push(request);
            requests.len()
        };
        match script(number) {
            Manner::Answer(bytes) => {
                stream.write_all(&bytes).await?;
                stream.flush().await?;
            }
            Manner::Meet(barrier, bytes) => {
                barrier.wait().await;
                stream.write_all(&bytes).await?;
            }
            Manner::Leave(bytes) => {
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
            Manner::Drip(first, again, pause) => {
                stream.write_all(&first).await?;
                loop {
                    stream.write_all(&again).await?;
                    stream.flush().await?;
                    tokio::time::sleep(pause).await;
                }
            }
            Manner::Hang(bytes) => {
                stream.write_all(&bytes).await?;
                stream.flush().await?;
                stream.read_u8().await?;
            }
        }
    }
}

/// A whole request, or nothing when the other end has left.
async fn read_request(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<String>> {
    loop {
        let text = String::from_utf8_lossy(buffer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() >= length.parse().unwrap() {
                buffer.clear();
                return Ok(Some(text));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

enum Leads {
    Addresses(Vec<SocketAddr>),
    /// One answer for each question, in turn.
    Turns(Vec<SocketAddr>),
    Broken,
    Silent,
}

/// Leads every name to where the test says.
pub struct Names {
    script: Mutex<Leads>,
    asked: AtomicUsize,
}

impl Names {
    fn new(script: Leads) -> Arc<Names> {
        Arc::new(Names { script: Mutex::new(script), asked: AtomicUsize::new(0) })
    }

    pub fn leading_to(addresses: impl IntoIterator<Item = SocketAddr>) -> Arc<Names> {
        Names::new(Leads::Addresses(addresses.into_iter().collect()))
    }

    /// Leads to the first when it is asked for the first time, then to the second, and so on.
    pub fn changing(addresses: impl IntoIterator<Item = SocketAddr>) -> Arc<Names> {
        Names::new(Leads::Turns(addresses.into_iter().collect()))
    }

    pub fn lead_to(&self, addresses: impl IntoIterator<Item = SocketAddr>) {
        *self.script.lock().unwrap() = Leads::Addresses(addresses.into_iter().collect());
    }

    pub fn break_down(&self) {
        *self.script.lock().unwrap() = Leads::Broken;
    }

    pub fn fall_silent(&self) {
        *self.script.lock().unwrap() = Leads::Silent;
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Dns for Names {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let found = match &*self.script.lock().unwrap() {
            Leads::Addresses(addresses) => Ok(addresses.clone()),
            Leads::Turns(addresses) => Ok(vec![addresses[turn]]),
            Leads::Broken => Err(io::Error::other("no such name")),
            Leads::Silent => return Box::pin(std::future::pending()),
        };
        Box::pin(std::future::ready(found))
    }
}
