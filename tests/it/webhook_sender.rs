//! One message out to a partner's endpoint: what is refused before a connection is made, what receivers may do to us, and
//! which connections are used again. Receivers listen on loopback, so most senders here may reach private addresses.

mod answers;
mod guarded;
mod lines;
pub mod receiver;
mod refusals;

use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use simgate::webhook::{Attempt, Outcome, Rules, Secret, Sender, Target, headers};

use self::receiver::{Names, Receiver, answer};

/// A name that the script of the test leads somewhere.
const NAME: &str = "hooks.partner.example";

fn rules(allow_private: bool) -> Rules {
    Rules { plain_http: true, ports: None, allow_private, own_hosts: Vec::new() }
}

fn sender(names: &Arc<Names>) -> Sender {
    Sender::new(rules(true), names.clone()).unwrap()
}

/// For receivers that would never come to an end.
fn hasty(names: &Arc<Names>) -> Sender {
    sender(names).within(Duration::from_secs(1))
}

async fn post(sender: &Sender, port: u16) -> Attempt {
    let url = format!("http://{NAME}:{port}/in?key=hush");
    let target = Target::parse(&url, sender.rules()).unwrap();
    let attempt = sender.post(&target, &[], Bytes::from_static(b"{}")).await;
    let told = format!("{attempt:?}");
    assert!(!told.contains("hush") && !told.contains("/in"), "{told}");
    attempt
}

#[track_caller]
fn failed(attempt: &Attempt) -> &str {
    match &attempt.outcome {
        Outcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(attempt: &Attempt) -> &str {
    match &attempt.outcome {
        Outcome::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

fn status(attempt: &Attempt) -> Option<u16> {
    match attempt.outcome {
        Outcome::Answered { status, .. } => Some(status),
        _ => None,
    }
}

#[tokio::test]
async fn a_message_arrives_as_it_was_written() {
    let receiver = Receiver::start(|_| answer("202 Accepted", "thank\nyou\0")).await;
    let names = Names::leading_to([receiver.address]);
    let sender = sender(&names);
    let secret = Secret::new([1, 2]);
    let body = r#"{"type":"order.fulfilled"}"#;
    let signed = headers("evt_1", 1_700_000_000, &[secret], body.as_bytes());
    let url = format!("http://{NAME}:{}/in/ü?key=a%20b", receiver.port());
    let target = Target::parse(&url, sender.rules()).unwrap();
    let attempt = sender.post(&target, &signed, body.into()).await;
    assert_eq!(attempt.outcome, Outcome::Answered { status: 202, body: "thank you\u{fffd}".into() });
    assert!(attempt.outcome.is_success() && attempt.ms >= 0);
    let [request] = &receiver.requests()[..] else { panic!("one request") };
    let (head, sent) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<String> = head.lines().skip(1).map(str::to_lowercase).collect();
    lines.sort();
    assert_eq!(head.lines().next(), Some("POST /in/%C3%BC?key=a%20b HTTP/1.1"));
    let signature = signed[2].1.to_lowercase();
    let expected = [
        format!("content-length: {}", body.len()),
        "content-type: application/json".into(),
        format!("host: {NAME}:{}", receiver.port()),
        format!("user-agent: simgate/{}", env!("CARGO_PKG_VERSION")),
        "webhook-id: evt_1".into(),
        format!("webhook-signature: {signature}"),
        "webhook-timestamp: 1700000000".into(),
    ];
    assert_eq!((lines, sent), (expected.to_vec(), body));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let elsewhere = Receiver::start(|_| answer("200 OK", "")).await;
    let location = format!("http://{}/", elsewhere.address);
    for code in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let head = format!("{code}\r\nLocation: {location}");
        let receiver = Receiver::start(move |_| answer(&head, "")).await;
        let names = Names::leading_to([receiver.address]);
        let attempt = post(&sender(&names), receiver.port()).await;
        assert_eq!(status(&attempt), code[..3].parse().ok());
        assert!(!attempt.outcome.is_success());
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_cannot_be_reached() {
    let receiver = Receiver::start(|_| answer("200 OK", "")).await;
    let nobody: IpAddr = "127.0.0.77".parse().unwrap();
    let names = Names::leading_to([(nobody, receiver.port()).into(), receiver.address]);
    assert_eq!(status(&post(&sender(&names), receiver.port()).await), Some(200));
    names.lead_to([(nobody, receiver.port()).into()]);
    let attempt = post(&sender(&names), receiver.port()).await;
    assert!(failed(&attempt).starts_with("no connection: Connection refused"), "{attempt:?}");
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn names_that_lead_nowhere_fail() {
    let names = Names::leading_to([]);
    assert_eq!(failed(&post(&sender(&names), 80).await), "the name has no address");
    names.break_down();
    let attempt = post(&sender(&names), 80).await;
    assert_eq!(failed(&attempt), "the name was not resolved: no such name");
    names.fall_silent();
    assert_eq!(failed(&post(&hasty(&names), 80).await), "the name was not resolved within 1s");
}

/// The same delivery in a process whose environment names a proxy that is not there.
#[test]
fn proxies_of_the_environment_are_not_used() {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", "webhook_sender::a_message_arrives_as_it_was_written"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:9");
    }
    command.env_remove("no_proxy").env_remove("NO_PROXY");
    let ended = command.output().unwrap();
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && told.contains("1 passed"), "{told}");
}
