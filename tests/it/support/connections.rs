//! Connections by hand, for tests of connections: HTTP/1.1 on a plain socket, from an address of one's choice, and
//! HTTP/2 by its library.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Request};
use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Ping, RecvStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::support::harness::Gateway;

/// Whatever takes longer than this does not happen.
pub const LONG: Duration = Duration::from_secs(50);

pub const BALANCE: &str = "/api/b2b/v1/balance";
pub const ORDERS: &str = "/api/b2b/v1/orders";
pub const PLANS: &str = "/api/b2b/v1/plans";

/// A connection to a gateway from 127.0.0.`last`.
pub async fn dial(gateway: &Gateway, last: u8) -> TcpStream {
    dial_with(gateway, last, |_| {}).await
}

/// The same of a client whose system holds next to nothing for it.
pub async fn dial_narrow(gateway: &Gateway, last: u8) -> TcpStream {
    dial_with(gateway, last, |socket| socket.set_recv_buffer_size(8 * 1024).unwrap()).await
}

async fn dial_with(gateway: &Gateway, last: u8, prepare: impl Fn(&TcpSocket)) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    prepare(&socket);
    socket.bind(([127, 0, 0, last], 0).into()).unwrap();
    let address = gateway.base.strip_prefix("http://").unwrap().parse().unwrap();
    timeout(LONG, socket.connect(address)).await.expect("connected in time").unwrap()
}

pub fn head(gateway: &Gateway, method: &str, path: &str, more: &str) -> String {
    let (id, secret) = (&gateway.key.id, &gateway.key.secret);
    format!("{method} {path} HTTP/1.1\r\nhost: x\r\nx-b2b-key: {id}\r\nx-b2b-secret: {secret}\r\n{more}\r\n")
}

pub fn get(gateway: &Gateway, path: &str) -> String {
    head(gateway, "GET", path, "")
}

pub fn order(gateway: &Gateway) -> String {
    let body = r#"{"packageCode":"JP-1GB-7D"}"#;
    let more = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    format!("{}{body}", head(gateway, "POST", ORDERS, &more))
}

/// The head of an answer in lower case, and its body; nothing when the connection ended before all of it came.
pub async fn answer(stream: &mut TcpStream) -> Option<(String, String)> {
    timeout(LONG, read_answer(stream)).await.expect("an answer in time")
}

async fn read_answer(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

/// Asks on a connection that must be open, and answers the head of what came.
#[track_caller]
pub fn ask<'a>(stream: &'a mut TcpStream, request: &'a str) -> impl Future<Output = String> + 'a {
    let place = std::panic::Location::caller();
    async move {
        let sent = stream.write_all(request.as_bytes()).await.is_ok();
        let answered = if sent { answer(stream).await } else { None };
        answered.unwrap_or_else(|| panic!("the connection of {place} was closed")).0
    }
}

/// Says this and hears the end: how long that took.
pub async fn until_closed(stream: &mut TcpStream, said: &str) -> Duration {
    let started = Instant::now();
    let _ = stream.write_all(said.as_bytes()).await;
    let mut rest = Vec::new();
    // Reset is as good as closed.
    let _ = timeout(LONG, stream.read_to_end(&mut rest)).await.expect("closed in time");
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    started.elapsed()
}

/// An HTTP/2 connection. It pings for as long as it lives.
pub struct Http2 {
    pub requests: SendRequest<Bytes>,
    pub ended: JoinHandle<Result<(), h2::Error>>,
    pub pongs: Arc<AtomicUsize>,
}

pub async fn http2(stream: TcpStream, builder: &Builder) -> Http2 {
    let (requests, mut connection) = builder.handshake(stream).await.unwrap();
    let mut pings = connection.ping_pong().unwrap();
    let pongs = Arc::new(AtomicUsize::new(0));
    let heard = pongs.clone();
    tokio::spawn(async move {
        while pings.ping(Ping::opaque()).await.is_ok() {
            heard.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    Http2 { requests, ended: tokio::spawn(connection), pongs }
}

impl Http2 {
    /// Begins a request; its answer may be waited for meanwhile.
    pub async fn begin(
        &mut self,
        gateway: &Gateway,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<h2::client::ResponseFuture, h2::Error> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", gateway.base))
            .header("x-b2b-key", &gateway.key.id)
            .header("x-b2b-secret", &gateway.key.secret)
            .header("content-type", "application/json");
        let mut ready = self.requests.clone().ready().await?;
        let (response, mut sender) = ready.send_request(request.body(()).unwrap(), body.is_empty())?;
        if !body.is_empty() {
            sender.send_data(Bytes::copy_from_slice(body.as_bytes()), true)?;
        }
        Ok(response)
    }

    /// A request that must be answered: its status, headers and body.
    pub async fn get(&mut self, gateway: &Gateway, path: &str) -> (u16, HeaderMap, Vec<u8>) {
        let response = self.begin(gateway, "GET", path, "").await.unwrap();
        let (parts, body) = timeout(LONG, response).await.expect("an answer in time").unwrap().into_parts();
        (parts.status.as_u16(), parts.headers, read(body, Duration::ZERO).await)
    }

    /// Waits for the end of the connection.
    pub async fn until_ended(&mut self) -> Result<(), h2::Error> {
        timeout(LONG, &mut self.ended).await.expect("ended in time").unwrap()
    }
}

/// All of a body, with a pause after each piece of it.
pub async fn read(mut body: RecvStream, pause: Duration) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = timeout(LONG, body.data()).await.expect("a piece in time") {
        let piece = piece.unwrap();
        all.extend_from_slice(&piece);
        tokio::time::sleep(pause).await;
        let _ = body.flow_control().release_capacity(piece.len());
    }
    all
}
