//! A corpus of broken requests. Each gets a 4xx problem with the right code, and nothing changes: not the balance,
//! not the orders, not the statement. They go out over a bare socket, because a client library would mend them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{API, ORDERS};

/// A request as bytes: everything can be wrong with it.
#[derive(Clone)]
struct Sent {
    method: &'static str,
    target: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
    /// Sent instead of the body's own length; empty for none.
    length: Option<String>,
}

fn get(target: impl Into<String>) -> Sent {
    Sent { method: "GET", target: target.into(), headers: Vec::new(), body: Vec::new(), length: None }
}

fn post(target: impl Into<String>, body: impl AsRef<[u8]>) -> Sent {
    let headers = vec![("Content-Type", b"application/json".to_vec())];
    Sent { method: "POST", target: target.into(), headers, body: body.as_ref().to_vec(), length: None }
}

fn order(body: impl AsRef<[u8]>) -> Sent {
    post(ORDERS, body)
}

impl Sent {
    fn method(mut self, method: &'static str) -> Sent {
        self.method = method;
        self
    }

    /// Replaces a header of the same name.
    fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Sent {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name, value.as_ref().to_vec()));
        self
    }

    fn without(mut self, name: &str) -> Sent {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    fn bytes(&self, gateway: &Gateway) -> Vec<u8> {
        let mut bytes =
            format!("{} {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", self.method, self.target)
                .into_bytes();
        let keyed = |name: &str| self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        for (name, value) in [("X-B2B-Key", &gateway.key.id), ("X-B2B-Secret", &gateway.key.secret)] {
            if !keyed(name) {
                bytes.extend(format!("{name}: {value}\r\n").bytes());
            }
        }
        for (name, value) in &self.headers {
            bytes.extend(name.bytes().chain(*b": "));
            bytes.extend(value);
            bytes.extend(b"\r\n");
        }
        let length = self.length.clone().unwrap_or_else(|| self.body.len().to_string());
        if !length.is_empty() && (self.method != "GET" || !self.body.is_empty()) {
            bytes.extend(format!("Content-Length: {length}\r\n").bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(&self.body);
        bytes
    }
}

struct Heard {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Heard {
    fn header(&self, name: &str) -> Option<&str> {
        let line =
            self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line[name.len() + 1..].trim())
    }
}

async fn send(gateway: &Gateway, bytes: &[u8]) -> Heard {
    let address = gateway.base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that refuses early may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let heard = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    assert!(heard.is_ok(), "the connection stayed open");
    let split = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("no head in {answer:?}"));
    let head = String::from_utf8(answer[..split].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Heard { status, head, body: answer[split + 4..].to_vec() }
}

/// What must not change.
async fn state(gateway: &Gateway) -> Value {
    json!([
        gateway.get(&format!("{API}/balance")).await.expect(200),
        gateway.get(&format!("{API}/balance/transactions")).await.expect(200),
        gateway.get(ORDERS).await.expect(200),
        gateway.get(&format!("{ORDERS}?status=FAILED")).await.expect(200),
        gateway.get(&format!("{ORDERS}?status=PROVISIONING")).await.expect(200),
    ])
}

type Case = (&'static str, Sent, u16, &'static str);

const BAD: (u16, &str) = (400, "INVALID_REQUEST");

fn broken_bodies() -> Vec<Case> {
    let long = |n: usize| "x".repeat(n);
    let bodies: Vec<(&'static str, Vec<u8>)> = vec![
        ("no body", b"".to_vec()),
        ("only space", b"   ".to_vec()),
        ("not JSON", b"packageCode=JP-1GB-7D".to_vec()),
        ("cut short", br#"{"packageCode":"JP-1GB-7D""#.to_vec()),
        ("cut in a string", br#"{"packageCode":"JP-1G"#.to_vec()),
        ("a trailing comma", br#"{"packageCode":"JP-1GB-7D",}"#.to_vec()),
        ("more after the end", br#"{"packageCode":"JP-1GB-7D"} {}"#.to_vec()),
        ("single quotes", br#"{'packageCode':'JP-1GB-7D'}"#.to_vec()),
        ("a comment", br#"{"packageCode":"JP-1GB-7D"/**/}"#.to_vec()),
        ("null", b"null".to_vec()),
        ("true", b"true".to_vec()),
        ("a number", b"5".to_vec()),
        ("a string", br#""JP-1GB-7D""#.to_vec()),
        ("a list", br#"[{"packageCode":"JP-1GB-7D"}]"#.to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("a byte order mark", b"\xEF\xBB\xBF{\"packageCode\":\"JP-1GB-7D\"}".to_vec()),
        ("UTF-16", "{\"packageCode\":\"JP-1GB-7D\"}".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("invalid UTF-8", b"{\"packageCode\":\"\xFF\xFE\"}".to_vec()),
        ("an overlong encoding", b"{\"packageCode\":\"\xC0\xAF\"}".to_vec()),
        ("a half surrogate", br#"{"packageCode":"\ud800"}"#.to_vec()),
        ("a bad escape", br#"{"packageCode":"\x41"}"#.to_vec()),
        ("a raw NUL", b"{\"packageCode\":\"JP\x00\"}".to_vec()),
        ("a raw newline in a string", b"{\"packageCode\":\"JP\n\"}".to_vec()),
        ("an escaped NUL", br#"{"packageCode":"JP-1GB-7D\u0000"}"#.to_vec()),
        ("an escaped control character", br#"{"packageCode":"\u001b[31m"}"#.to_vec()),
        ("a C1 control character", br#"{"packageCode":"JP\u0085"}"#.to_vec()),
        ("a NUL in the reference", br#"{"packageCode":"JP-1GB-7D","partnerRefId":"a\u0000b"}"#.to_vec()),
        ("a newline in the reference", br#"{"packageCode":"JP-1GB-7D","partnerRefId":"a\nb"}"#.to_vec()),
        (
            "a hidden character in the reference",
            "{\"packageCode\":\"JP-1GB-7D\",\"partnerRefId\":\"a\u{200b}b\"}".into(),
        ),
        (
            "a reference that runs backwards",
            "{\"packageCode\":\"JP-1GB-7D\",\"partnerRefId\":\"\u{202e}ab\"}".into(),
        ),
        ("an empty reference", br#"{"packageCode":"JP-1GB-7D","partnerRefId":""}"#.to_vec()),
        ("an empty code", br#"{"packageCode":""}"#.to_vec()),
        ("a null code", br#"{"packageCode":null}"#.to_vec()),
        ("a code that is a number", br#"{"packageCode":5}"#.to_vec()),
        ("a code that is a list", br#"{"packageCode":["JP-1GB-7D"]}"#.to_vec()),
        ("a code that is an object", br#"{"packageCode":{"$ne":null}}"#.to_vec()),
        ("a code that is a flag", br#"{"packageCode":true}"#.to_vec()),
        ("a code in another case", br#"{"packagecode":"JP-1GB-7D"}"#.to_vec()),
        ("a reference that is a number", br#"{"packageCode":"JP-1GB-7D","partnerRefId":7}"#.to_vec()),
        ("a reference that is a list", br#"{"packageCode":"JP-1GB-7D","partnerRefId":[]}"#.to_vec()),
        ("a reference that is an object", br#"{"packageCode":"JP-1GB-7D","partnerRefId":{}}"#.to_vec()),
        ("a long code", format!(r#"{{"packageCode":"{}"}}"#, long(65)).into()),
        (
            "a long reference",
            format!(r#"{{"packageCode":"JP-1GB-7D","partnerRefId":"{}"}}"#, long(129)).into(),
        ),
        ("a limit that is text", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":"5"}"#.to_vec()),
        ("a limit that is a flag", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":true}"#.to_vec()),
        ("a limit of nothing", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":0}"#.to_vec()),
        ("a negative limit", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":-5}"#.to_vec()),
        ("a limit with 7 decimals", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":5.0000001}"#.to_vec()),
        ("a limit of 1e-7", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":1e-7}"#.to_vec()),
        ("a huge limit", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":1e309}"#.to_vec()),
        ("a huge exponent", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":1e99999999999}"#.to_vec()),
        ("a limit of a billion", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":1000000000}"#.to_vec()),
        (
            "a number of 400 digits",
            format!(r#"{{"packageCode":"JP-1GB-7D","maxPriceUsd":{}}}"#, "9".repeat(400)).into(),
        ),
        ("a hexadecimal limit", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":0x10}"#.to_vec()),
        ("a limit with a plus", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":+5}"#.to_vec()),
        ("a limit that begins with a point", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":.5}"#.to_vec()),
        ("a limit that is not a number", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":NaN}"#.to_vec()),
        ("a limit without end", br#"{"packageCode":"JP-1GB-7D","maxPriceUsd":Infinity}"#.to_vec()),
        ("a deep list", format!("{}{}", "[".repeat(30_000), "]".repeat(30_000)).into()),
        ("a deep object", format!("{}1{}", "{\"packageCode\":".repeat(2_000), "}".repeat(2_000)).into()),
        (
            "a deep list in a field",
            format!("{{\"packageCode\":{}{}}}", "[".repeat(30_000), "]".repeat(30_000)).into(),
        ),
    ];
    bodies.into_iter().map(|(name, body)| (name, order(body), BAD.0, BAD.1)).collect()
}

fn broken_heads() -> Vec<Case> {
    let good = r#"{"packageCode":"JP-1GB-7D"}"#;
    let media = (415, "UNSUPPORTED_MEDIA_TYPE");
    let mut cases = vec![
        (
            "a body over 64 KiB",
            order(format!("{{\"packageCode\":\"{}\"}}", "x".repeat(70_000))),
            413,
            "PAYLOAD_TOO_LARGE",
        ),
        (
            "a huge declared body",
            Sent { length: Some("99999999999".into()), ..order("{") },
            413,
            "PAYLOAD_TOO_LARGE",
        ),
        ("a stranger", order(good).header("X-B2B-Secret", "sk_wrong"), 401, "UNAUTHENTICATED"),
        ("an empty key", order(good).header("X-B2B-Key", ""), 401, "UNAUTHENTICATED"),
        ("a key with odd bytes", order(good).header("X-B2B-Key", b"\xFF\xFE"), 401, "UNAUTHENTICATED"),
        ("a secret with odd bytes", order(good).header("X-B2B-Secret", b"\xC3\xA9"), 401, "UNAUTHENTICATED"),
        ("a very long key", order(good).header("X-B2B-Key", "k".repeat(8_000)), 401, "UNAUTHENTICATED"),
        (
            "wanting a page",
            get(format!("{API}/balance")).header("Accept", "text/html"),
            406,
            "NOT_ACCEPTABLE",
        ),
        ("wanting a picture", order(good).header("Accept", "image/png, image/*"), 406, "NOT_ACCEPTABLE"),
        (
            "wanting XML from a wrong path",
            get(format!("{API}/nothing")).header("Accept", "application/xml"),
            406,
            "NOT_ACCEPTABLE",
        ),
        (
            "wanting no JSON at all",
            get(format!("{API}/balance")).header("Accept", "application/json;q=0"),
            406,
            "NOT_ACCEPTABLE",
        ),
    ];
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "json",
        "",
        "application/jsonp",
        "application/json, text/plain",
    ] {
        cases.push(("another kind of body", order(good).header("Content-Type", kind), media.0, media.1));
    }
    cases.push(("no kind of body", order(good).without("Content-Type"), media.0, media.1));
    cases.push((
        "a compressed body",
        order(b"\x1f\x8b\x08\x00\x00\x00\x00\x00").header("Content-Encoding", "gzip"),
        BAD.0,
        BAD.1,
    ));
    cases
}

fn broken_paths() -> Vec<Case> {
    let (nowhere, wrong) = ((404, "NOT_FOUND"), (405, "METHOD_NOT_ALLOWED"));
    let mut cases: Vec<Case> = Vec::new();
    for path in [
        "/api",
        "/api/",
        "/api/b2b",
        "/api/b2b/v1",
        "/api/b2b/v1/",
        "/api/b2b/v2/balance",
        "/api/b2b/v1/Balance",
        "/api/b2b/v1/balance/",
        "//api/b2b/v1/balance",
        "/api/b2b/v1/../v1/balance",
        "/api/b2b/v1/%62alance%00",
        "/api/b2b/v1/orders/",
        "/api/b2b/v1/orders/a/b/c",
        "/api/mcp/",
        "/api/b2b/v1/balance%2Ftransactions",
        "/nothing",
        "/%FF",
        "/..%2f..%2fetc%2fpasswd",
        "/api/b2b/v1/orders/1/topups",
    ] {
        cases.push(("an unknown path", get(path), nowhere.0, nowhere.1));
    }
    for id in
        ["", "%FF", "%C3%28", "%00", "%zz", "%", "%E2%82", "ord_%0d%0aX:1", "a%2Fb", "%20", "'%20OR%201=1--"]
    {
        let code = if id.is_empty() { "NOT_FOUND" } else { "ORDER_NOT_FOUND" };
        cases.push(("an id of no shape", get(format!("{ORDERS}/{id}")), 404, code));
        cases.push(("cancelling no id", post(format!("{ORDERS}/{id}/cancel"), ""), 404, "ORDER_NOT_FOUND"));
        // The id of an order stands for its eSIM.
        let (status, code) = if id.starts_with("ord_") { (404, "ORDER_NOT_FOUND") } else { BAD };
        cases.push(("usage of no ICCID", get(format!("{ORDERS}/{id}/usage")), status, code));
        cases.push(("bundles of no ICCID", get(format!("{ORDERS}/{id}/topup-plans")), status, code));
        let body = r#"{"packageCode":"JP-1GB-7D-TOPUP"}"#;
        cases.push(("filling no ICCID", post(format!("{ORDERS}/{id}/topup"), body), status, code));
    }
    for (method, path) in [
        ("POST", "/balance"),
        ("DELETE", "/balance"),
        ("PUT", "/orders"),
        ("PATCH", "/orders"),
        ("DELETE", "/orders/ord_1"),
        ("POST", "/plans"),
        ("GET", "/orders/ord_1/cancel"),
        ("GET", "/orders/1/topup"),
        ("POST", "/orders/1/usage"),
        ("OPTIONS", "/orders"),
        ("TRACE", "/plans"),
        ("BREW", "/plans"),
    ] {
        cases.push(("a wrong method", get(format!("{API}{path}")).method(method), wrong.0, wrong.1));
    }
    cases
}

fn broken_queries() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (path, queries) in [
        (
            "/orders",
            [
                "page=0",
                "limit=101",
                "limit=1e1",
                "limit=%31%30%30%30",
                "page=%00",
                "status=X",
                "iccid=%FF",
                "after=%22",
                "from=1700000000",
                "partnerRefId=%00",
                "partnerRefId=a%EF%BB%BF",
                "partnerRefId=%FF",
                "limit=1&limit=1",
                "from=2026-02-30",
                "to=2026-01-01T00:00:00",
                "limit=9223372036854775808",
                "after=c9223372036854775808",
            ]
            .as_slice(),
        ),
        (
            "/plans",
            [
                "country=%FF%FF",
                "country=%00%00",
                "type=top-up",
                "query=%FF",
                "query=%7F",
                "limit=1001",
                "page=",
                "type=BASE&type=BASE",
                "country=J+",
            ]
            .as_slice(),
        ),
        (
            "/balance/address",
            [
                "network=",
                "network=BASE+",
                "currency=%FF",
                "currency=EUR",
                "network=BASE&network=TRON",
                "amount=5",
            ]
            .as_slice(),
        ),
        (
            "/balance/transactions",
            ["limit=1001", "after=%FF", "after=c", "from=now", "to=%00", "limit=0x10"].as_slice(),
        ),
    ] {
        for query in queries {
            cases.push(("a bad query", get(format!("{API}{path}?{query}")), BAD.0, BAD.1));
        }
    }
    cases
}

async fn refuse_all(gateway: &Gateway, cases: Vec<Case>) {
    gateway.order("JP-1GB-7D").await;
    let before = state(gateway).await;
    for (name, sent, status, code) in cases {
        let shown = format!("{name}: {} {}", sent.method, sent.target);
        let heard = send(gateway, &sent.bytes(gateway)).await;
        let text = String::from_utf8_lossy(&heard.body);
        assert_eq!(heard.status, status, "{shown}: {text}");
        assert_eq!(heard.header("content-type"), Some("application/problem+json"), "{shown}: {text}");
        assert!(heard.header("x-request-id").is_some(), "{shown}");
        let problem: Value =
            serde_json::from_slice(&heard.body).unwrap_or_else(|error| panic!("{shown}: {error}: {text}"));
        assert_eq!(problem["code"], code, "{shown}");
        assert_eq!((&problem["success"], &problem["status"]), (&json!(false), &json!(status)), "{shown}");
        assert_eq!(problem["error"], problem["detail"], "{shown}");
        for member in ["type", "title", "detail", "requestId"] {
            assert!(!problem[member].as_str().unwrap().is_empty(), "{shown}: {member}");
        }
        if status == 405 {
            let allowed = heard.header("allow").unwrap_or_else(|| panic!("{shown}: no Allow"));
            assert!(allowed.contains("GET") || allowed.contains("POST"), "{shown}: {allowed}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(
                detail.ends_with(&format!("It takes {}.", allowed.replace(',', ", "))),
                "{shown}: {detail}"
            );
        }
        for leak in ["SELECT ", "sqlite", "postgres", "/src/", "panicked", &gateway.key.secret] {
            assert!(!text.contains(leak), "{shown} leaks {leak}: {text}");
        }
    }
    assert_eq!(state(gateway).await, before, "a refused request changed something");
}

both_databases! {
    async fn bodies(gateway) { refuse_all(gateway, broken_bodies()).await }
    async fn heads(gateway) { refuse_all(gateway, broken_heads()).await }
    async fn paths(gateway) { refuse_all(gateway, broken_paths()).await }
    async fn queries(gateway) { refuse_all(gateway, broken_queries()).await }

    /// What the HTTP library refuses before we see it: at least the status is right and the connection ends.
    async fn what_is_not_even_http(gateway) {
        let key = format!("X-B2B-Key: {}\r\nX-B2B-Secret: {}\r\n", gateway.key.id, gateway.key.secret);
        for (name, bytes, statuses) in [
            ("a head of 60 KB", format!("GET {API}/balance HTTP/1.1\r\nHost: x\r\n{key}X-Big: {}\r\n\r\n", "y".repeat(60_000)), [431, 431]),
            ("a path of 60 KB", format!("GET {API}/{} HTTP/1.1\r\nHost: x\r\n\r\n", "y".repeat(60_000)), [431, 414]),
            ("many headers", format!("GET {API}/balance HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(200)), [431, 431]),
            ("a header without a colon", format!("GET {API}/balance HTTP/1.1\r\nnonsense\r\n\r\n"), [400, 400]),
            ("no method", "\u{1}\u{2}\u{3}\r\n\r\n".to_string(), [400, 400]),
            ("two lengths", format!("POST {ORDERS} HTTP/1.1\r\nHost: x\r\n{key}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{{}}"), [400, 400]),
            ("a negative length", format!("POST {ORDERS} HTTP/1.1\r\nHost: x\r\n{key}Content-Length: -1\r\n\r\n"), [400, 400]),
            ("length and chunks", format!("POST {ORDERS} HTTP/1.1\r\nHost: x\r\n{key}Content-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: nonsense\r\n\r\n{{}}"), [400, 400]),
        ] {
            let heard = send(gateway, bytes.as_bytes()).await;
            assert!(statuses.contains(&heard.status), "{name}: {}", heard.status);
        }
    }

    /// A body that never comes is given up after five seconds, and told so.
    async fn a_body_that_does_not_arrive(gateway) {
        let sent = Sent { length: Some("100".into()), ..order("{\"packageCode\":") };
        let heard = send(gateway, &sent.bytes(gateway)).await;
        assert_eq!(heard.status, 408);
        let problem: Value = serde_json::from_slice(&heard.body).unwrap();
        assert_eq!(problem["code"], "REQUEST_TIMEOUT");
    }
}
