//! What receivers may answer: nonsense, too much, too slowly, or nothing.

use std::time::Duration;

use simgate::webhook::Outcome;

use super::receiver::{Manner, Names, Receiver, answer};
use super::{failed, hasty, post, sender, status};

#[tokio::test]
async fn answers_that_cannot_be_read_fail() {
    let not_http = "the answer cannot be read: it is not HTTP";
    let too_large = "the answer cannot be read: its head is larger than 16 KB";
    let many = "X: y\r\n".repeat(200);
    for (bytes, told) in [
        (String::new(), "no answer: the connection ended"),
        ("HTTP/1.1 2".into(), "the answer cannot be read: the connection ended"),
        ("HTTP/1.1 200 OK\r\nX: y\r\n".into(), "the answer cannot be read: the connection ended"),
        ("SSH-2.0-OpenSSH_9.9\r\n".into(), not_http),
        ("220 mail.example ESMTP\r\n".into(), not_http),
        ("<html>hello</html>\r\n\r\n".into(), not_http),
        ("\u{0}\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}".into(), not_http),
        ("HTTP/1.1 two hundred\r\n\r\n".into(), not_http),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".into(), not_http),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx".into(), not_http),
        ("HTTP/1.1 200 OK\r\nb\0d: y\r\n\r\n".into(), not_http),
        (format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(20_000)), too_large),
        (format!("HTTP/1.1 200 OK\r\n{many}\r\n"), too_large),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".into(), "the answer 200 cannot be read: "),
        (
            "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".into(),
            "the answer 503 cannot be read: ",
        ),
    ] {
        let script = bytes.clone();
        let receiver = Receiver::start(move |_| Manner::Leave(script.clone().into())).await;
        let names = Names::leading_to([receiver.address]);
        let attempt = post(&sender(&names), receiver.port()).await;
        assert!(failed(&attempt).starts_with(told), "{bytes:.60} {attempt:?}");
        assert_eq!(receiver.connections(), 1, "{bytes:.60}");
    }
}

#[tokio::test]
async fn answers_are_kept_as_a_kilobyte_of_plain_text() {
    let wide = "€".repeat(500);
    let texts =
        [("", ""), ("ok", "ok"), ("a\r\nb\u{1b}[0m", "a  b\u{fffd}[0m"), (wide.as_str(), &wide[..1_023])];
    for (said, kept) in texts {
        let script = said.to_string();
        let receiver = Receiver::start(move |_| answer("500 Oh", &script)).await;
        let names = Names::leading_to([receiver.address]);
        let attempt = post(&sender(&names), receiver.port()).await;
        assert_eq!(attempt.outcome, Outcome::Answered { status: 500, body: kept.into() });
    }
    let no_text = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\xff\xfe".to_vec();
    let receiver = Receiver::start(move |_| Manner::Answer(no_text.clone())).await;
    let attempt = post(&sender(&Names::leading_to([receiver.address])), receiver.port()).await;
    assert_eq!(attempt.outcome, Outcome::Answered { status: 200, body: "a\u{fffd}\u{fffd}".into() });
}

/// Any 2xx counts, with or without a body.
#[tokio::test]
async fn answers_without_a_body_are_answers() {
    for (bytes, expected) in [
        ("HTTP/1.1 204 No Content\r\n\r\n", 204),
        ("HTTP/1.0 200 OK\r\n\r\nuntil the end", 200),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200),
        ("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 201),
        ("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n", 410),
    ] {
        let receiver = Receiver::start(move |_| Manner::Leave(bytes.into())).await;
        let names = Names::leading_to([receiver.address]);
        assert_eq!(status(&post(&sender(&names), receiver.port()).await), Some(expected), "{bytes}");
    }
}

/// Reading stops, and the connection ends, when there is more than we want to know.
#[tokio::test]
async fn an_endless_body_is_read_for_64_kilobytes() {
    for head in ["Content-Length: 99999999999", "Connection: close", "Transfer-Encoding: chunked"] {
        let first = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").into_bytes();
        let mut again = vec![b'x'; 4_096];
        if head.ends_with("chunked") {
            again = [b"1000\r\n".to_vec(), again, b"\r\n".to_vec()].concat();
        }
        let receiver =
            Receiver::start(move |_| Manner::Drip(first.clone(), again.clone(), Duration::ZERO)).await;
        let names = Names::leading_to([receiver.address]);
        let sender = sender(&names);
        let attempt = post(&sender, receiver.port()).await;
        assert_eq!(attempt.outcome, Outcome::Answered { status: 200, body: "x".repeat(1_024) });
        receiver.until_open(0).await;
    }
}

/// Each byte comes in time, but all of them together do not.
#[tokio::test]
async fn slow_answers_end_with_the_time_of_a_try() {
    let pause = Duration::from_millis(20);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n".to_vec();
    let scripts: [fn(Vec<u8>, Duration) -> Manner; 5] = [
        |_, _| Manner::Hang(Vec::new()),
        |head, _| Manner::Hang(head[..20].to_vec()),
        |_, pause| Manner::Drip(b"HTTP/1.1 200 OK\r\nX: ".to_vec(), b"y".to_vec(), pause),
        |_, pause| Manner::Drip(Vec::new(), b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec(), pause),
        |head, pause| Manner::Drip(head, b"y".to_vec(), pause),
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let head = head.clone();
        let receiver = Receiver::start(move |_| script(head.clone(), pause)).await;
        let names = Names::leading_to([receiver.address]);
        let sender = hasty(&names);
        let attempt = post(&sender, receiver.port()).await;
        assert!(failed(&attempt).ends_with(" within 1s"), "{number} {attempt:?}");
        assert!((1_000..9_000).contains(&attempt.ms), "{number} {attempt:?}");
        receiver.until_open(0).await;
        assert!(receiver.requests().len() <= 1);
    }
}
