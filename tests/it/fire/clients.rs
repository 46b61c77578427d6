//! Slow and hostile clients: each is shown the door after about five seconds, none is heard at length, and an
//! honest request is served meanwhile. Nothing here depends on the database, so SQLite is enough.

use std::time::{Duration, Instant};

use futures_util::future::{join_all, join3};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::harness::{Db, Gateway, run};

const ORDERS: &str = "/api/b2b/v1/orders";
/// Five seconds, and what a busy machine adds to them.
const CLOSED_BETWEEN: std::ops::Range<Duration> = Duration::from_millis(3_500)..Duration::from_secs(25);

async fn connect(gateway: &Gateway) -> TcpStream {
    TcpStream::connect(gateway.base.strip_prefix("http://").unwrap()).await.unwrap()
}

fn head(gateway: &Gateway, method: &str, path: &str, more: &str) -> String {
    let (id, secret) = (&gateway.key.id, &gateway.key.secret);
    format!("{method} {path} HTTP/1.1\r\nhost: x\r\nx-b2b-key: {id}\r\nx-b2b-secret: {secret}\r\n{more}")
}

/// Reads until the other side closes: what it said, and how long that took.
async fn listen(stream: &mut TcpStream, started: Instant) -> (String, Duration) {
    let mut said = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut said)).await;
    assert!(read.is_ok(), "still open after 30 s, having said {:?}", String::from_utf8_lossy(&said));
    (String::from_utf8_lossy(&said).into_owned(), started.elapsed())
}

/// Sends this, stays silent, and hears the end.
async fn stall(gateway: &Gateway, sent: &str) -> (String, Duration) {
    let started = Instant::now();
    let mut stream = connect(gateway).await;
    stream.write_all(sent.as_bytes()).await.unwrap();
    listen(&mut stream, started).await
}

/// Sends a byte a second for as long as the other side takes it.
async fn drip(gateway: &Gateway, sent: &str) -> Duration {
    let started = Instant::now();
    let (mut reader, mut writer) = connect(gateway).await.into_split();
    let speak = async {
        for byte in sent.bytes().cycle() {
            if writer.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let mut said = Vec::new();
    tokio::select! {
        () = speak => {}
        _ = reader.read_to_end(&mut said) => {}
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("still open after 30 s"),
    }
    started.elapsed()
}

fn problem_in(answer: &str) -> Value {
    let (head, body) =
        answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no whole answer in {answer:?}"));
    assert!(head.to_lowercase().contains("content-type: application/problem+json"), "{head}");
    serde_json::from_str(body).unwrap()
}

#[test]
fn the_silent_are_shown_the_door() {
    run(Db::Sqlite, vec![("ip_rate_limit", "0"), ("keep_alive_s", "5")], async |gateway| {
        let half_head = head(gateway, "POST", ORDERS, "content-type: application/json\r\n");
        let half_body = format!("{half_head}content-length: 100\r\n\r\n{{\"packageCode\":");
        let chunked = format!("{half_head}transfer-encoding: chunked\r\n\r\n5\r\n{{\"pac\r\n");
        let served = head(gateway, "GET", "/api/b2b/v1/balance", "\r\n");
        let silent = [
            ("nothing", "", ""),
            ("one letter", "P", ""),
            ("half a preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM", ""),
            ("half a head", half_head.as_str(), ""),
            ("half a body", half_body.as_str(), "HTTP/1.1 408"),
            ("half a chunk", chunked.as_str(), "HTTP/1.1 408"),
            ("silence after an answer", served.as_str(), "HTTP/1.1 200"),
        ];
        let everyone = join_all(silent.iter().map(async |(name, sent, expected)| {
            let (said, took) = stall(gateway, sent).await;
            assert!(said.starts_with(expected), "{name}: {said}");
            assert!(CLOSED_BETWEEN.contains(&took), "{name}: closed after {took:?}");
            if *expected == "HTTP/1.1 408" {
                assert_eq!(problem_in(&said)["code"], "REQUEST_TIMEOUT", "{name}");
            }
        }));
        let dripping = async {
            let took = drip(gateway, "GET /healthz HTTP/1.1\r\nx-a: b\r\n").await;
            assert!(CLOSED_BETWEEN.contains(&took), "a dripping head: closed after {took:?}");
        };
        let honest = async {
            gateway.order("JP-1GB-7D").await;
        };
        join3(everyone, dripping, honest).await;
    });
}

#[test]
fn an_http2_client_that_says_nothing_more_is_shown_the_door() {
    run(Db::Sqlite, vec![], async |gateway| {
        let (_, took) = stall(gateway, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        assert!(took < Duration::from_secs(20), "closed after {took:?}");
    });
}

#[test]
fn the_long_winded_are_cut_short() {
    run(Db::Sqlite, vec![], async |gateway| {
        let long = "x".repeat(60 * 1024);
        let json = "content-type: application/json\r\n";
        let many: String = (0..200).map(|number| format!("x-{number}: y\r\n")).collect();
        let declared = format!("{json}content-length: 70000\r\n\r\n");
        let chunk = format!("{json}transfer-encoding: chunked\r\n\r\n{:x}\r\n{}", 70_000, "x".repeat(70_000));
        for (name, sent, expected, code) in [
            ("a long header", head(gateway, "GET", ORDERS, &format!("x-long: {long}\r\n\r\n")), "431", ""),
            ("many headers", head(gateway, "GET", ORDERS, &format!("{many}\r\n")), "431", ""),
            ("a declared long body", head(gateway, "POST", ORDERS, &declared), "413", "PAYLOAD_TOO_LARGE"),
            ("a long body in chunks", head(gateway, "POST", ORDERS, &chunk), "413", "PAYLOAD_TOO_LARGE"),
        ] {
            let mut stream = connect(gateway).await;
            // The other side may hang up before all of it is sent.
            let _ = stream.write_all(sent.as_bytes()).await;
            let mut said = vec![0; 4096];
            let length = stream.read(&mut said).await.unwrap();
            let said = String::from_utf8_lossy(&said[..length]).into_owned();
            assert!(said.starts_with(&format!("HTTP/1.1 {expected}")), "{name}: {said}");
            if !code.is_empty() {
                assert_eq!(problem_in(&said)["code"], code, "{name}");
            }
        }
        assert_eq!(gateway.balance().await, "1000");
    });
}

#[test]
fn an_answer_that_comes_before_the_body_is_not_lost() {
    run(Db::Sqlite, vec![], async |gateway| {
        let body = "x".repeat(50_000);
        let stranger = format!("POST {ORDERS} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        let untyped = head(gateway, "POST", ORDERS, &format!("content-length: {}\r\n\r\n", body.len()));
        let served = head(gateway, "GET", "/api/b2b/v1/balance", "connection: close\r\n\r\n");
        for (refused, expected) in [(stranger, "HTTP/1.1 401"), (untyped, "HTTP/1.1 415")] {
            let mut stream = connect(gateway).await;
            stream.write_all(refused.as_bytes()).await.unwrap();
            let mut said = vec![0; 4096];
            let length = stream.read(&mut said).await.unwrap();
            assert!(said.starts_with(expected.as_bytes()), "{}", String::from_utf8_lossy(&said[..length]));
            // The body goes on, and so does the connection.
            stream.write_all(body.as_bytes()).await.unwrap();
            stream.write_all(served.as_bytes()).await.unwrap();
            let (said, _) = listen(&mut stream, Instant::now()).await;
            assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        }
        // Who sends everything before it listens hears the answer, too, and that this connection ends.
        let long = "x".repeat(3_000_000);
        let json = "content-type: application/json\r\n";
        let chunked =
            format!("{json}transfer-encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
        let declared = format!("{json}content-length: {}\r\n\r\n{long}", long.len());
        for more in [chunked, declared] {
            let (said, _) = stall(gateway, &head(gateway, "POST", ORDERS, &more)).await;
            assert!(said.starts_with("HTTP/1.1 413"), "{said}");
            assert!(said.contains("connection: close\r\n"), "{said}");
        }
        // Who asks first is not told to go on.
        let asks = format!("{json}content-length: 90000\r\nexpect: 100-continue\r\n\r\n");
        let (said, _) = stall(gateway, &head(gateway, "POST", ORDERS, &asks)).await;
        assert!(said.starts_with("HTTP/1.1 413"), "{said}");
        assert!(said.contains("connection: close\r\n"), "{said}");
        // Who is told to go on keeps the connection, whatever the answer.
        let order = r#"{"packageCode":"no such plan"}"#;
        let asks = format!("{json}content-length: {}\r\nexpect: 100-continue\r\n\r\n{order}", order.len());
        let (said, _) = stall(gateway, &format!("{}{served}", head(gateway, "POST", ORDERS, &asks))).await;
        assert!(said.starts_with("HTTP/1.1 100"), "{said}");
        assert!(said.contains("HTTP/1.1 404") && said.contains("HTTP/1.1 200"), "{said}");
    });
}

#[test]
fn idle_crowds_do_not_stop_the_others() {
    run(Db::Sqlite, vec![], async |gateway| {
        let mut idle = Vec::new();
        for _ in 0..300 {
            idle.push(connect(gateway).await);
        }
        // The harness's client gives up after a while; being served at all is what counts.
        gateway.order("JP-1GB-7D").await;
    });
}
