//! The accept loop. Slow and silent clients are shown the door: a new connection that says nothing, a half-sent head
//! and a half-sent body each get five seconds. A client that has asked may stay for the next request (`connection.rs`).
//! Heads are bounded, and so are connections, for each client and in all (`places.rs`).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use super::connection::attend;
use super::drain_body::{Head, Unread};
use super::life::{Life, Served, UnderWay, Watched};
use super::places::{Full, Place, Places};
use super::tally::Tally;
use crate::config::Connections;

/// How soon to look again when there is no room.
const SOON: Duration = Duration::from_millis(50);
const HEAD_BYTES: usize = 32 * 1024;
const MAX_HEADERS: usize = 64;
/// The most that the system holds of an answer; Linux doubles it, for its own needs too. So a client that never reads
/// costs little. The system reports room again when about a third was read: over HTTP/1 a client must read some 80 KiB
/// in `write_stall`.
const SEND_BUFFER: usize = 128 * 1024;

/// The address at the other end of the socket.
#[derive(Clone, Copy)]
pub struct Peer(pub IpAddr);

/// What is left to do to a response when the router has finished it.
#[derive(Clone, Copy)]
pub struct Finish(pub fn(Response) -> Response);

/// Serves until `stop`; returns when every open request has been answered.
pub async fn serve(router: Router, listener: TcpListener, limits: Connections, stop: CancellationToken) {
    // Accepted sockets inherit this from the listener.
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER);
    let start = Instant::now();
    let places = Places::new(&limits);
    let house = Arc::new(House::new(router, limits));
    let guests = TaskTracker::new();
    let mut tally = Tally::default();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
            () = tally.next_line() => {
                tally.tell_in_time();
                continue;
            }
        };
        let (stream, peer) = match accepted {
            Ok((stream, address)) => (stream, address.ip().to_canonical()),
            Err(error) => {
                // Out of file descriptors, most likely: let some connections end first.
                tally.not_accepted(error);
                tokio::time::sleep(SOON).await;
                continue;
            }
        };
        let entered = stop.run_until_cancelled(room(&places, peer, start, &mut tally)).await;
        if let Some(Some((place, life))) = entered {
            let house = house.clone();
            guests.spawn(async move {
                let _place = place;
                house.receive(stream, peer, life).await;
            });
        }
    }
    drop(listener);
    places.close();
    guests.close();
    guests.wait().await;
}

/// A place for a newcomer, and its life, which begins with the place. Waits while all connections are being served.
async fn room(
    places: &Arc<Places>,
    peer: IpAddr,
    start: Instant,
    tally: &mut Tally,
) -> Option<(Place, Arc<Life>)> {
    let mut waits = false;
    loop {
        let life = Arc::new(Life::new(start));
        match places.enter(peer, &life) {
            Ok(place) => {
                if place.was_taken {
                    tally.crowded_out();
                }
                return Some((place, life));
            }
            Err(Full::Share) => {
                tally.refused();
                return None;
            }
            Err(Full::House) => {
                if !waits {
                    tally.waited();
                }
                waits = true;
                tokio::time::sleep(SOON).await;
            }
        }
    }
}

/// What all connections share.
struct House {
    router: Router,
    protocols: Builder<TokioExecutor>,
    limits: Connections,
    /// As answers tell it: `timeout=75`.
    keep_alive: HeaderValue,
}

impl House {
    fn new(router: Router, limits: Connections) -> House {
        let mut protocols = Builder::new(TokioExecutor::new());
        protocols.http1().header_read_timeout(None).max_headers(MAX_HEADERS).max_buf_size(HEAD_BYTES);
        // No pings: a client that is gone shows by what it does not read, and by the clock. A slow reader would see a
        // ping only after all that it has yet to read.
        protocols.http2().max_header_list_size(HEAD_BYTES as u32).max_concurrent_streams(64);
        let keep_alive = HeaderValue::try_from(format!("timeout={}", limits.keep_alive.as_secs()))
            .expect("digits are a header's value");
        House { router, protocols, limits, keep_alive }
    }

    async fn receive(&self, stream: TcpStream, peer: IpAddr, life: Arc<Life>) {
        let _ = stream.set_nodelay(true);
        let (router, keep_alive) = (&self.router, &self.keep_alive);
        let service = hyper::service::service_fn(|request: hyper::Request<Incoming>| {
            let begun = UnderWay::begin(&life, request.version()).map(|under_way| {
                let head = Head::of(&request);
                let mut request: Request = request.map(|body| Unread::watch(&head, body, &under_way));
                request.extensions_mut().insert(Peer(peer));
                (under_way, head, router.clone().call(request), keep_alive.clone())
            });
            async move {
                // This tells the client that nothing was done, and that it may ask again elsewhere.
                let refused = h2::Reason::REFUSED_STREAM;
                let (under_way, head, answering, keep_alive) = begun.ok_or(refused)?;
                let Ok(mut response) = answering.await;
                let response = match response.extensions_mut().remove() {
                    Some(Finish(finish)) => finish(response),
                    None => response,
                };
                let stays = !under_way.life().is_leaving();
                let response = head.say_what_follows(response, stays.then_some(keep_alive));
                Ok::<_, h2::Error>(response.map(|body| Served::new(body, under_way)))
            }
        });
        let socket = TokioIo::new(Watched { stream, life: life.clone() });
        attend(self.protocols.serve_connection(socket, service), &life, &self.limits).await;
    }
}
