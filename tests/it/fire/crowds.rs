//! Who gets a place when there are not enough: no client holds all of them, the longest idle makes room, nobody who is
//! being served does, and file descriptors are enough for as many as are let in.

use std::fs::File;
use std::time::Instant;

use futures_util::future::join_all;
use h2::client::Builder;
use simgate::ops::sandbox;
use simgate::supplier::sim::{Mood, SupplierMode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::connections::{BALANCE, answer, ask, dial, get, http2, order, until_closed};
use crate::support::harness::{Db, Gateway, open_orders, run, until};
use crate::support::process::on_site;

/// Longer than all that a test does meanwhile.
const SLOW_MS: i64 = 15_000;

/// A connection that has been served once and waits.
async fn idle(gateway: &Gateway, last: u8) -> TcpStream {
    let mut stream = dial(gateway, last).await;
    assert!(ask(&mut stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
    stream
}

/// Connections on which an order is being placed, each from its own of these addresses.
async fn busy(gateway: &Gateway, from: &[u8]) -> Vec<TcpStream> {
    sandbox::set_supplier(&gateway.app, Mood { delay_ms: SLOW_MS, ..SupplierMode::Slow.into() })
        .await
        .unwrap();
    let mut streams = Vec::new();
    for last in from {
        let mut stream = dial(gateway, *last).await;
        stream.write_all(order(gateway).as_bytes()).await.unwrap();
        streams.push(stream);
    }
    until("the orders are with the supplier", async || {
        let open = open_orders(&gateway.app).await;
        (open == from.len() as i64).then_some(())
    })
    .await;
    streams
}

async fn all_are_answered(streams: Vec<TcpStream>) {
    join_all(streams.into_iter().map(async |mut stream| {
        let (head, body) = answer(&mut stream).await.expect("a connection that was served is open");
        assert!(head.starts_with("http/1.1 200") && body.contains("FULFILLED"), "{head}{body}");
    }))
    .await;
}

/// What was carried out: as many connections as there are places, each asked once and then only pinged.
#[test]
fn a_crowd_that_only_pings_shuts_nobody_out() {
    run(Db::Sqlite, vec![("max_connections", "64"), ("ip_rate_limit", "0")], async |gateway| {
        let mut crowd = Vec::new();
        for _ in 0..64 {
            let mut line = http2(dial(gateway, 2).await, &Builder::new()).await;
            assert_eq!(line.get(gateway, "/healthz").await.0, 200);
            crowd.push(line);
        }
        for _ in 0..3 {
            let mut stream = idle(gateway, 1).await;
            assert!(ask(&mut stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        }
        let _ = crowd[0].until_ended().await;
    });
}

#[test]
fn one_address_cannot_hold_all() {
    run(Db::Sqlite, vec![("max_connections", "20"), ("connections_per_client", "3")], async |gateway| {
        // Its own idle connections make room for its new ones, and nobody else's do.
        let mut other = idle(gateway, 3).await;
        let mut own = Vec::new();
        for _ in 0..10 {
            own.push(idle(gateway, 2).await);
        }
        for stream in &mut own[..7] {
            until_closed(stream, "").await;
        }
        for stream in &mut own[7..] {
            assert!(ask(stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        }
        drop(own);
        // Where all of them are being served, a new one is refused.
        let served = busy(gateway, &[2, 2, 2]).await;
        for _ in 0..3 {
            until_closed(&mut dial(gateway, 2).await, &get(gateway, BALANCE)).await;
        }
        assert!(ask(&mut other, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        idle(gateway, 4).await;
        all_are_answered(served).await;
    });
}

#[test]
fn proxies_that_are_trusted_may_hold_more() {
    let settings = vec![("connections_per_client", "2"), ("trusted_proxies", "127.0.0.9")];
    run(Db::Sqlite, settings, async |gateway| {
        let mut streams = Vec::new();
        for _ in 0..10 {
            streams.push(idle(gateway, 9).await);
        }
        for stream in &mut streams {
            assert!(ask(stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        }
    });
}

#[test]
fn the_longest_idle_of_the_largest_makes_room_and_a_busy_one_never_does() {
    run(Db::Sqlite, vec![("max_connections", "5")], async |gateway| {
        let mut lone = idle(gateway, 3).await;
        let mut first = idle(gateway, 2).await;
        let mut second = idle(gateway, 2).await;
        let served = busy(gateway, &[2]).await;
        let mut late = idle(gateway, 4).await;
        // 127.0.0.2 has three of five, two of them idle.
        let mut news = vec![idle(gateway, 5).await];
        until_closed(&mut first, "").await;
        news.push(idle(gateway, 6).await);
        until_closed(&mut second, "").await;
        // Now everybody has one, and who waits longest goes.
        news.push(idle(gateway, 7).await);
        until_closed(&mut lone, "").await;
        news.insert(0, late);
        for stream in &mut news {
            assert!(ask(stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        }
        late = idle(gateway, 8).await;
        until_closed(&mut news[0], "").await;
        assert!(ask(&mut late, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        all_are_answered(served).await;
    });
}

/// Who comes while everybody is being served waits for the first to be done, and is not turned away.
#[test]
fn newcomers_wait_while_all_are_served() {
    run(Db::Sqlite, vec![("max_connections", "2")], async |gateway| {
        let served = busy(gateway, &[2, 3]).await;
        let waits = async {
            idle(gateway, 4).await;
        };
        futures_util::future::join(all_are_answered(served), waits).await;
    });
}

/// Nor do newcomers push each other out before they were heard. Some may be heard too late on a slow machine; those ask
/// again.
#[test]
fn a_rush_for_the_last_place_is_served() {
    run(Db::Sqlite, vec![("max_connections", "3")], async |gateway| {
        let served = busy(gateway, &[2, 3]).await;
        let request = get(gateway, BALANCE);
        let rush = join_all((10..40).map(async |last| {
            let mut tries = 0;
            loop {
                tries += 1;
                let mut stream = dial(gateway, last).await;
                let sent = stream.write_all(request.as_bytes()).await.is_ok();
                if sent && let Some((head, _)) = answer(&mut stream).await {
                    assert!(head.starts_with("http/1.1 200"), "{head}");
                    break (stream, tries);
                }
            }
        }));
        let tries: Vec<u32> = rush.await.iter().map(|(_, tries)| *tries).collect();
        assert!(tries.iter().filter(|tries| **tries == 1).count() > tries.len() / 2, "{tries:?}");
        all_are_answered(served).await;
    });
}

#[test]
fn connections_fit_into_the_file_descriptors() {
    on_site(Db::Sqlite, vec![], async |site| {
        let log = site.place.dir.join("log");
        let server = site.start_limited("-n 500", File::create(&log).unwrap()).await;
        let written = || std::fs::read_to_string(&log).unwrap();
        assert!(written().contains("too few file descriptors: at most"), "{}", written());
        let (started, mut streams) = (Instant::now(), Vec::new());
        for _ in 0..280 {
            let mut stream = TcpStream::connect(&server.address).await.unwrap();
            let told = ask(&mut stream, "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await;
            assert!(told.starts_with("http/1.1 200"), "{told}");
            streams.push(stream);
        }
        until_closed(&mut streams[0], "").await;
        // However many had to go, it is said once a minute, and nothing else went wrong.
        let log = written();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("no room")).collect();
        assert!((1..=1 + started.elapsed().as_secs() / 60).contains(&(lines.len() as u64)), "{log}");
        assert!(lines[0].contains("crowded_out=1 "), "{log}");
        assert!(lines.iter().all(|line| line.contains("not_accepted=0")), "{log}");
        let metrics = site.client.get(format!("{}/metrics", server.base)).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        let value = |name: &str| -> f64 {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{name} is not in {metrics}")).trim().parse().unwrap()
        };
        assert!(value("simgate_connections_closed_total{reason=\"crowded\"}") >= 20.0);
        assert!((100.0..320.0).contains(&value("simgate_connections_open")));
    });
}

#[test]
fn file_descriptors_are_raised_where_they_may_be() {
    on_site(Db::Sqlite, vec![("max_connections", "350")], async |site| {
        let log = site.place.dir.join("log");
        let server = site.start_limited("-S -n 200", File::create(&log).unwrap()).await;
        let request = "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
        let mut streams = Vec::new();
        for _ in 0..300 {
            let mut stream = TcpStream::connect(&server.address).await.unwrap();
            assert!(ask(&mut stream, request).await.starts_with("http/1.1 200"));
            streams.push(stream);
        }
        assert!(ask(&mut streams[0], request).await.starts_with("http/1.1 200"));
        let written = std::fs::read_to_string(&log).unwrap();
        assert!(!written.contains("too few file descriptors") && !written.contains("no room"), "{written}");
    });
}
