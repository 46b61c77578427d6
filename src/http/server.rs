//! The accept loop. Slow and silent clients are shown the door: an idle socket, a half-sent head and a half-sent
//! body each get five seconds, heads are bounded, and so is the number of connections.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::unread::{Head, Unread};

pub const PATIENCE: Duration = Duration::from_secs(5);
const HEAD_BYTES: usize = 32 * 1024;
const MAX_HEADERS: usize = 64;

/// Who is on the other end of the socket.
#[derive(Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Serves until `stop`; returns when every open request has been answered.
pub async fn serve(router: Router, listener: TcpListener, connections: usize, stop: CancellationToken) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_headers(MAX_HEADERS)
        .max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(PATIENCE)
        .max_header_list_size(HEAD_BYTES as u32)
        .max_concurrent_streams(64);
    let builder = Arc::new(builder);
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(connections));
    while let Some(Ok(place)) = stop.run_until_cancelled(room.clone().acquire_owned()).await {
        let (stream, peer) = match stop.run_until_cancelled(listener.accept()).await {
            None => break,
            Some(Ok(accepted)) => accepted,
            Some(Err(error)) => {
                // Out of file descriptors, most likely: let some connections end first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (router, builder, watcher) = (router.clone(), builder.clone(), graceful.watcher());
        let stop = stop.clone();
        tokio::spawn(async move {
            let _place = place;
            // Whoever has said nothing yet does not hold up a shutdown.
            if stop.run_until_cancelled(speaks(&stream)).await != Some(true) {
                return;
            }
            let asked = Arc::new(AtomicBool::new(false));
            let heard = asked.clone();
            let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
                heard.store(true, Ordering::Relaxed);
                let head = Head::of(&request);
                let mut request: Request = request.map(|body| Unread::watch(&head, body));
                request.extensions_mut().insert(Peer(peer.ip().to_canonical()));
                let answering = router.clone().call(request);
                async move { answering.await.map(|response| head.close_if_unread(response)) }
            });
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            tokio::select! {
                // Broken connections are the client's affair.
                _ = watcher.watch(connection) => {}
                () = never_asks(&asked) => {}
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Ends when a client that spoke has not made a request in time. The protocol is told apart by the first bytes,
/// and no time-out of hyper's covers those, nor an HTTP/2 connection without a request.
async fn never_asks(asked: &AtomicBool) {
    tokio::time::sleep(PATIENCE).await;
    if asked.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

async fn speaks(stream: &TcpStream) -> bool {
    let _ = stream.set_nodelay(true);
    let mut first = [0u8; 1];
    matches!(tokio::time::timeout(PATIENCE, stream.peek(&mut first)).await, Ok(Ok(1)))
}
