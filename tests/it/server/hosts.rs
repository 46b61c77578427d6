//! The doors that are for this machine: a page that made its own name lead here reads nothing, by either version of
//! HTTP, and metrics are not brought to the world by a proxy. Nothing here depends on the database, so SQLite is enough.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::harness::{Db, Gateway, reply, run};

const OUTBOX: &str = "/sandbox/outbox?email=ann@example.com";

async fn connect(gateway: &Gateway) -> TcpStream {
    TcpStream::connect(gateway.base.strip_prefix("http://").unwrap()).await.unwrap()
}

/// What the gateway says to these lines of a head, and no more.
async fn say(gateway: &Gateway, lines: &[&str]) -> String {
    let mut stream = connect(gateway).await;
    let head = format!("{}\r\nconnection: close\r\n\r\n", lines.join("\r\n"));
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    String::from_utf8_lossy(&said).into_owned()
}

fn status(said: &str) -> u16 {
    said.split(' ').nth(1).unwrap_or_else(|| panic!("{said:?}")).parse().unwrap()
}

/// The status of a GET by this name.
async fn by_name(gateway: &Gateway, path: &str, host: &str) -> u16 {
    status(&say(gateway, &[&format!("GET {path} HTTP/1.1"), &format!("host: {host}")]).await)
}

/// The body of a GET by HTTP/2: a preface, settings, and one head whose names are all in the static table.
async fn by_http2(gateway: &Gateway, path: &str, authority: Option<&str>) -> String {
    const DATA: u8 = 0;
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
        [&[a, b, c, kind, flags, 0, 0, 0, stream][..], payload].concat()
    };
    let text = |name: u8, value: &str| [&[name, value.len() as u8][..], value.as_bytes()].concat();
    // GET, http, the path, the authority.
    let mut head = [vec![0x82, 0x86], text(0x04, path)].concat();
    head.extend(authority.map(|authority| text(0x01, authority)).unwrap_or_default());
    let mut stream = connect(gateway).await;
    let sent = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[]), frame(1, 0x5, 1, &head)];
    stream.write_all(&sent.concat()).await.unwrap();
    let mut body = Vec::new();
    loop {
        let mut start = [0; 9];
        stream.read_exact(&mut start).await.unwrap();
        let length = u32::from_be_bytes([0, start[0], start[1], start[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.unwrap();
        if start[3] == DATA {
            body.extend(payload);
        }
        if matches!(start[3], 0 | 1) && start[4] & 1 == 1 {
            return String::from_utf8(body).unwrap();
        }
    }
}

const OURS: [&str; 10] = [
    "localhost",
    "localhost:9",
    "LOCALHOST",
    "localhost.",
    "127.0.0.1",
    "127.0.0.1:65535",
    "127.9.9.9",
    "[::1]",
    "[::1]:80",
    "[::ffff:127.0.0.1]",
];
const FOREIGN: [&str; 14] = [
    "evil.example",
    "evil.example:8402",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.localhost",
    "0.0.0.0",
    "192.0.2.7",
    "[2001:db8::1]",
    "[::]",
    "evil@localhost",
    "localhost,evil.example",
    "127.1",
    "localhost:80:80",
    "x",
];

#[test]
fn the_sandbox_answers_to_its_own_names_only() {
    run(Db::Sqlite, vec![], async |gateway| {
        for path in [OUTBOX, "/sandbox/openapi.json", "/metrics"] {
            for host in OURS {
                assert_eq!(by_name(gateway, path, host).await, 200, "{path} by {host}");
            }
            for host in FOREIGN {
                assert_eq!(by_name(gateway, path, host).await, 403, "{path} by {host}");
            }
        }
        // A foreign page learns nothing, and moves nothing.
        let get = format!("GET {OUTBOX} HTTP/1.1");
        let told = say(gateway, &[&get, "host: evil.example"]).await;
        assert!(told.contains("application/problem+json") && told.contains("LIMIT_EXCEEDED"), "{told}");
        let moods =
            ["supplier", "usage", "pay", "chain"].map(|helper| format!("POST /sandbox/{helper} HTTP/1.1"));
        for line in &moods {
            let body = ["host: evil.example", "content-type: application/json", "content-length: 0"];
            assert_eq!(
                status(&say(gateway, &[&[line.as_str()][..], &body[..]].concat()).await),
                403,
                "{line}"
            );
        }
        // Whoever says nothing, or two things, or hides it in the address.
        assert_eq!(status(&say(gateway, &[&format!("GET {OUTBOX} HTTP/1.0")]).await), 403);
        assert_eq!(status(&say(gateway, &[&format!("GET {OUTBOX} HTTP/1.0"), "host: localhost"]).await), 200);
        let twice = say(gateway, &[&get, "host: localhost", "host: evil.example"]).await;
        assert!(matches!(status(&twice), 400 | 403), "{twice}");
        let absolute = format!("GET http://evil.example{OUTBOX} HTTP/1.1");
        assert_eq!(status(&say(gateway, &[&absolute, "host: localhost"]).await), 403);
        // The rest answers to every name, and a helper that is none is not there.
        for host in ["evil.example", "localhost"] {
            assert_eq!(by_name(gateway, "/healthz", host).await, 200, "{host}");
            assert_eq!(by_name(gateway, "/sandbox/none", host).await, 404, "{host}");
        }
    });
}

#[test]
fn http2_names_the_host_in_its_address() {
    run(Db::Sqlite, vec![], async |gateway| {
        for host in ["localhost:1", "127.0.0.1", "[::1]:8402"] {
            let told = by_http2(gateway, OUTBOX, Some(host)).await;
            assert!(told.contains("\"emails\""), "{host}: {told}");
        }
        for host in ["evil.example", "localhost.evil.example:8402", "127.0.0.1.evil.example"] {
            let told = by_http2(gateway, OUTBOX, Some(host)).await;
            assert!(told.contains("LIMIT_EXCEEDED") && !told.contains("emails"), "{host}: {told}");
        }
        let nameless = by_http2(gateway, OUTBOX, None).await;
        assert!(!nameless.contains("emails"), "{nameless}");
    });
}

/// Whether metrics are served beside the API.
async fn shows_metrics(gateway: &Gateway) -> bool {
    match reply(gateway.client.get(format!("{}/metrics", gateway.base))).await.status {
        200 => true,
        404 => false,
        status => panic!("{status}"),
    }
}

#[test]
fn metrics_are_beside_the_api_on_a_lone_machine() {
    run(Db::Sqlite, vec![], async |gateway| assert!(shows_metrics(gateway).await));
}

#[test]
fn metrics_are_not_brought_to_the_world_by_a_proxy() {
    run(Db::Sqlite, vec![("trusted_proxies", "127.0.0.1")], async |gateway| {
        assert!(!shows_metrics(gateway).await);
    });
}
