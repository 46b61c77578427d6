//! How long connections last: patient clients keep theirs, and say-nothings, never-readers and the very old do not.
//! Nothing here depends on the database, so SQLite is enough.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use h2::client::Builder;
use simgate::ops::{operator, sandbox};
use simgate::supplier::sim::Mood;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::harness::{Db, run, until};
use crate::lines::{
    BALANCE, LONG, PLANS, answer, ask, dial, dial_narrow, get, head, http2, order, read, until_closed,
};

/// What a head gets that has begun to arrive.
const FIVE: Duration = Duration::from_secs(5);

#[test]
fn a_poller_is_never_reset() {
    run(Db::Sqlite, vec![], async |gateway| {
        let mut stream = dial(gateway, 1).await;
        for _ in 0..2 {
            let told = ask(&mut stream, &order(gateway)).await;
            assert!(told.starts_with("http/1.1 200"), "{told}");
            assert!(told.contains("\r\nkeep-alive: timeout=75\r\n"), "{told}");
            assert!(told.contains("\r\nconnection: keep-alive\r\n"), "{told}");
            tokio::time::sleep(FIVE + Duration::from_secs(1)).await;
        }
        let told = ask(&mut stream, &order(gateway)).await;
        assert!(told.starts_with("http/1.1 200"), "{told}");
    });
}

#[test]
fn answers_say_how_long_a_connection_stays_where_it_does() {
    run(Db::Sqlite, vec![("keep_alive_s", "40")], async |gateway| {
        let mut stream = dial(gateway, 1).await;
        for path in [BALANCE, "/no/such/page"] {
            let told = ask(&mut stream, &get(gateway, path)).await;
            assert!(told.contains("\r\nkeep-alive: timeout=40\r\n"), "{told}");
        }
        let old = get(gateway, BALANCE).replace("HTTP/1.1", "HTTP/1.0");
        let close = head(gateway, "GET", BALANCE, "connection: Close\r\n");
        let long = "content-type: application/json\r\ncontent-length: 70000\r\nexpect: 100-continue\r\n";
        let never_sent = head(gateway, "POST", "/api/b2b/v1/orders", long);
        for last in [old, close, never_sent] {
            let mut stream = dial(gateway, 1).await;
            let told = ask(&mut stream, &last).await;
            assert!(!told.contains("keep-alive"), "{told}");
            until_closed(&mut stream, "").await;
        }
        let (status, headers, _) =
            http2(dial(gateway, 1).await, &Builder::new()).await.get(gateway, BALANCE).await;
        assert_eq!(status, 200);
        assert!(!headers.contains_key("keep-alive") && !headers.contains_key("connection"), "{headers:?}");
    });
}

#[test]
fn a_half_sent_head_is_not_an_idle_connection() {
    run(Db::Sqlite, vec![], async |gateway| {
        let mut stream = dial(gateway, 1).await;
        // A body in a packet of its own is no head.
        let whole = order(gateway);
        let (first, second) = whole.split_at(whole.len() - 5);
        stream.write_all(first.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(ask(&mut stream, second).await.starts_with("http/1.1 200"));
        tokio::time::sleep(FIVE + Duration::from_secs(1)).await;
        assert!(ask(&mut stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        let took = until_closed(&mut stream, "GET /healthz HTTP/1.1\r\nhost: ").await;
        assert!(took > Duration::from_millis(4_500) && took < LONG, "closed after {took:?}");
    });
}

#[test]
fn idle_connections_end() {
    run(Db::Sqlite, vec![("keep_alive_s", "1")], async |gateway| {
        let mut stream = dial(gateway, 1).await;
        assert!(ask(&mut stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        let took = until_closed(&mut stream, "").await;
        assert!(took > Duration::from_millis(900), "closed after {took:?}");
        // Pings do not count.
        let mut line = http2(dial(gateway, 1).await, &Builder::new()).await;
        assert_eq!(line.get(gateway, BALANCE).await.0, 200);
        let asked = Instant::now();
        let ended = line.until_ended().await;
        assert!(asked.elapsed() > Duration::from_millis(900), "{ended:?} after {:?}", asked.elapsed());
        assert!(line.pongs.load(Ordering::Relaxed) > 0);
    });
}

#[test]
fn old_http2_is_asked_to_end_and_answered_first() {
    run(Db::Sqlite, vec![("http2_age_s", "2")], async |gateway| {
        sandbox::set_mood(&gateway.app, Mood::Slow, 10_000, None).await.unwrap();
        let mut line = http2(dial(gateway, 1).await, &Builder::new()).await;
        let order = r#"{"packageCode":"JP-1GB-7D"}"#;
        let mut response = line.begin(gateway, "POST", "/api/b2b/v1/orders", order).await.unwrap();
        // Nothing new may be asked, while the order is still open.
        let refused = until("the client is told", async || line.requests.clone().ready().await.err());
        let refused = tokio::select! {
            refused = refused => refused,
            early = &mut response => panic!("answered before it was told: {early:?}"),
        };
        assert!(refused.is_go_away(), "{refused:?}");
        assert_eq!(refused.reason(), Some(h2::Reason::NO_ERROR));
        assert_eq!(operator::open_orders(&gateway.app).await.unwrap(), 1);
        let response = timeout(LONG, response).await.expect("an answer in time").unwrap();
        assert_eq!(response.status(), 200);
        let body = read(response.into_body(), Duration::ZERO).await;
        assert!(String::from_utf8(body).unwrap().contains("FULFILLED"));
        let _ = line.until_ended().await;
    });
}

#[test]
fn who_never_reads_gives_its_place_up() {
    let settings = vec![("write_stall_s", "1"), ("max_connections", "2")];
    run(Db::Sqlite, settings, async |gateway| {
        let mut silent = Vec::new();
        for last in [2, 3] {
            let mut stream = dial_narrow(gateway, last).await;
            stream.write_all(get(gateway, PLANS).as_bytes()).await.unwrap();
            // The answer has begun to come.
            timeout(LONG, stream.peek(&mut [0])).await.unwrap().unwrap();
            silent.push(stream);
        }
        let mut stream = dial(gateway, 4).await;
        assert!(ask(&mut stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        assert_eq!(answer(&mut silent[0]).await, None);
        drop((silent, stream));
        // Nor does one that answers every ping and takes nothing of what it asked for.
        let mut line = http2(dial(gateway, 2).await, Builder::new().initial_window_size(0)).await;
        let response = line.begin(gateway, "GET", PLANS, "").await.unwrap();
        let response = timeout(LONG, response).await.expect("an answer in time").unwrap();
        assert_eq!(response.status(), 200);
        let _ = line.until_ended().await;
    });
}

#[test]
fn who_reads_slowly_is_served() {
    let settings = vec![("write_stall_s", "5"), ("keep_alive_s", "2")];
    run(Db::Sqlite, settings, async |gateway| {
        let all = gateway.get(PLANS).await.text.len();
        let pieces = |size: usize| (all / size) as u32 + 1;
        // About three times as long as nothing at all may be read.
        let pause = |size: usize| Duration::from_secs(14) / pieces(size);
        let plain = async {
            let mut stream = dial_narrow(gateway, 1).await;
            let request = head(gateway, "GET", PLANS, "connection: close\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let (mut heard, mut buffer) = (0, vec![0; 8 * 1024]);
            loop {
                let read = timeout(LONG, stream.read(&mut buffer)).await.expect("a piece in time").unwrap();
                if read == 0 {
                    break heard;
                }
                heard += read;
                tokio::time::sleep(pause(8 * 1024)).await;
            }
        };
        let streamed = async {
            let builder = Builder::new().initial_window_size(8 * 1024).clone();
            let mut line = http2(dial(gateway, 1).await, &builder).await;
            let response = line.begin(gateway, "GET", PLANS, "").await.unwrap();
            let response = timeout(LONG, response).await.expect("an answer in time").unwrap();
            read(response.into_body(), pause(8 * 1024)).await.len()
        };
        let started = Instant::now();
        let (plain, streamed) = futures_util::future::join(plain, streamed).await;
        assert!(started.elapsed() > 2 * FIVE, "too quick to prove anything: {:?}", started.elapsed());
        assert!(plain > all, "{plain} of {all}");
        assert_eq!(streamed, all);
    });
}
