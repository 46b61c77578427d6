//! How long connections last: patient clients keep theirs, and say-nothings, never-readers and the very old do not.
//! Nothing here depends on the database, so SQLite is enough.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use h2::client::Builder;
use simgate::ops::sandbox;
use simgate::supplier::sim::{Mood, SupplierMode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::support::connections::{
    BALANCE, LONG, PLANS, answer, ask, dial, dial_narrow, get, head, http2, order, read, until_closed,
};
use crate::support::harness::{Db, open_orders, run, until};
use crate::support::http2_frames::{
    DATA, Frame, Frames, GOAWAY, HEADERS, REFUSED, RST_STREAM, asking, opening,
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
        // Not before what was sent in the last moment can have come.
        let least = Duration::from_secs(3);
        let mut stream = dial(gateway, 1).await;
        let asked = Instant::now();
        assert!(ask(&mut stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        until_closed(&mut stream, "").await;
        assert!(asked.elapsed() >= least, "closed after {:?}", asked.elapsed());
        // Pings do not count.
        let mut line = http2(dial(gateway, 1).await, &Builder::new()).await;
        let asked = Instant::now();
        assert_eq!(line.get(gateway, BALANCE).await.0, 200);
        let ended = line.until_ended().await;
        assert!(asked.elapsed() >= least, "{ended:?} after {:?}", asked.elapsed());
        assert!(line.pongs.load(Ordering::Relaxed) > 0);
    });
}

#[test]
fn old_http2_is_asked_to_end_and_answered_first() {
    let settings =
        vec![("http2_age_s", "5"), ("answer_within_ms", "60000"), ("supplier_timeout_ms", "90000")];
    run(Db::Sqlite, settings, async |gateway| {
        sandbox::set_supplier(&gateway.app, Mood { delay_ms: 20_000, ..SupplierMode::Slow.into() })
            .await
            .unwrap();
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
        assert_eq!(open_orders(&gateway.app).await, 1);
        let response = timeout(LONG, response).await.expect("an answer in time").unwrap();
        assert_eq!(response.status(), 200);
        let body = read(response.into_body(), Duration::ZERO).await;
        assert!(String::from_utf8(body).unwrap().contains("FULFILLED"));
        let _ = line.until_ended().await;
    });
}

/// Over HTTP/2 it is the client's answer to a ping that ends its requests. Who does not give it could stay for ever.
#[test]
fn who_does_not_hear_that_it_is_over_is_refused() {
    run(Db::Sqlite, vec![("http2_age_s", "1")], async |gateway| {
        let again = async |frames: &mut Frames| {
            frames.ask(gateway, "GET", BALANCE).await;
        };
        // On a slow machine a whole second may pass between two of them.
        let heard = until("an answer, the farewell and a refusal", async || {
            let mut frames = Frames::open(dial(gateway, 1).await, 65_535).await;
            let heard = frames.until(|_| false, again).await;
            let first = |kind: u8| heard.iter().position(|frame| frame.kind == kind);
            let (answer, farewell, refusal) = (first(HEADERS)?, first(GOAWAY)?, first(RST_STREAM)?);
            (answer < farewell && farewell < refusal).then_some(heard)
        })
        .await;
        for frame in heard.iter().filter(|frame| frame.kind == RST_STREAM) {
            assert_eq!(frame.payload, REFUSED);
        }
    });
}

#[test]
fn who_never_reads_gives_its_place_up() {
    let settings = vec![("write_stall_s", "1"), ("max_connections", "1")];
    run(Db::Sqlite, settings, async |gateway| {
        // What connects before the gateway listens has what the system gives it.
        gateway.get(BALANCE).await.expect(200);
        let mut silent = dial_narrow(gateway, 2).await;
        silent.write_all(get(gateway, PLANS).as_bytes()).await.unwrap();
        // The answer has begun to come.
        timeout(LONG, silent.peek(&mut [0])).await.unwrap().unwrap();
        let mut stream = dial(gateway, 4).await;
        assert!(ask(&mut stream, &get(gateway, BALANCE)).await.starts_with("http/1.1 200"));
        assert_eq!(answer(&mut silent).await, None);
        // Nor does one that answers every ping and takes nothing of what it asked for.
        let mut line = http2(dial(gateway, 2).await, Builder::new().initial_window_size(0)).await;
        let response = line.begin(gateway, "GET", PLANS, "").await.unwrap();
        let response = timeout(LONG, response).await.expect("an answer in time").unwrap();
        assert_eq!(response.status(), 200);
        let _ = line.until_ended().await;
        // Nor one that takes a byte of an answer which is ready to go as a whole.
        let mut frames = Frames::open(dial(gateway, 2).await, 1).await;
        frames.ask(gateway, "GET", "/llms.txt").await;
        while let Some(frame) = frames.next().await {
            assert!(frame.kind != DATA || frame.payload.len() == 1);
        }
    });
}

/// However much else is read on its connection; and that is not cut off for it at once.
#[test]
fn an_answer_that_nobody_reads_ends_its_connection() {
    run(Db::Sqlite, vec![("write_stall_s", "8")], async |gateway| {
        let all = gateway.get(PLANS).await.text.len();
        let mut frames = Frames::open(dial(gateway, 1).await, 0).await;
        let dead = frames.ask(gateway, "GET", PLANS).await;
        let live = frames.ask(gateway, "GET", PLANS).await;
        let again = async |frames: &mut Frames| {
            frames.ask(gateway, "HEAD", BALANCE).await;
            frames.allow(live, 1024).await;
        };
        let mut heard = frames.until(|frame| frame.kind == GOAWAY, again).await;
        assert_eq!(heard.last().map(|frame| frame.kind), Some(GOAWAY));
        let of_live = |frame: &Frame| frame.kind == DATA && frame.stream == live;
        assert!(!heard.iter().any(|frame| of_live(frame) && frame.is_last), "too quick to prove anything");
        frames.allow(live, all as u32).await;
        heard.extend(frames.until(|frame| of_live(frame) && frame.is_last, async |_| {}).await);
        assert!(heard.last().is_some_and(|frame| frame.is_last));
        assert_eq!(
            heard.iter().filter(|frame| of_live(frame)).map(|frame| frame.payload.len()).sum::<usize>(),
            all
        );
        while let Some(frame) = frames.next().await {
            heard.push(frame);
        }
        assert!(!heard.iter().any(|frame| frame.kind == DATA && frame.stream == dead));
    });
}

#[test]
fn who_reads_slowly_is_served() {
    let settings = vec![("write_stall_s", "10"), ("keep_alive_s", "2")];
    run(Db::Sqlite, settings, async |gateway| {
        let all = gateway.get(PLANS).await.text.len();
        let pieces = |size: usize| (all / size) as u32 + 1;
        // About three times as long as nothing at all may be read.
        let pause = |size: usize| Duration::from_secs(28) / pieces(size);
        let from_the_socket = async |request: Vec<u8>| {
            let mut stream = dial_narrow(gateway, 1).await;
            stream.write_all(&request).await.unwrap();
            let (mut heard, mut buffer) = (0, vec![0; 8 * 1024]);
            // Heads come on top.
            while heard <= all {
                let read = timeout(LONG, stream.read(&mut buffer)).await.expect("a piece in time").unwrap();
                assert!(read > 0, "closed after {heard} of {all}");
                heard += read;
                tokio::time::sleep(pause(8 * 1024)).await;
            }
        };
        let plain = from_the_socket(get(gateway, PLANS).into_bytes());
        // With room for all of it, were it not for the line.
        let wide = from_the_socket([opening(1 << 30), asking(gateway, 1, "GET", PLANS)].concat());
        let streamed = async {
            let builder = Builder::new().initial_window_size(8 * 1024).clone();
            let mut line = http2(dial(gateway, 1).await, &builder).await;
            let response = line.begin(gateway, "GET", PLANS, "").await.unwrap();
            let response = timeout(LONG, response).await.expect("an answer in time").unwrap();
            read(response.into_body(), pause(8 * 1024)).await.len()
        };
        let started = Instant::now();
        let ((), (), streamed) = futures_util::future::join3(plain, wide, streamed).await;
        assert!(started.elapsed() > 4 * FIVE, "too quick to prove anything: {:?}", started.elapsed());
        assert_eq!(streamed, all);
    });
}
