//! Connections that are used again, and those that are not.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::Barrier;

use super::receiver::{Manner, Names, Receiver, answer};
use super::{failed, post, sender, status};

#[tokio::test]
async fn a_line_is_used_again_while_the_name_leads_there() {
    let [first, second] = Receiver::pair(|_| answer("200 OK", "fine")).await;
    let names = Names::leading_to([first.address]);
    let (sender, port) = (sender(&names), first.port());
    for _ in 0..3 {
        assert_eq!(status(&post(&sender, port).await), Some(200));
    }
    assert_eq!((first.connections(), first.requests().len()), (1, 3));
    names.lead_to([second.address]);
    assert_eq!(status(&post(&sender, port).await), Some(200));
    assert_eq!((first.requests().len(), second.requests().len()), (3, 1));
    names.lead_to([second.address, first.address]);
    assert_eq!(status(&post(&sender, port).await), Some(200));
    assert_eq!((first.connections(), second.connections()), (1, 1));
    assert_eq!(names.asked(), 5, "every try asks where the name leads");
}

#[tokio::test]
async fn a_line_that_ended_while_it_waited_costs_a_connection_and_no_delivery() {
    // The receiver leaves at once, without a word of it in the answer.
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let receiver = Receiver::start(|_| Manner::Leave(whole.to_vec())).await;
    let names = Names::leading_to([receiver.address]);
    let sender = sender(&names);
    for connections in 1..=3 {
        assert_eq!(status(&post(&sender, receiver.port()).await), Some(200));
        assert_eq!(receiver.connections(), connections);
    }
    // It reads the second message, and leaves without an answer.
    let receiver = Receiver::start(|number| match number {
        2 => Manner::Leave(Vec::new()),
        _ => answer("200 OK", ""),
    })
    .await;
    names.lead_to([receiver.address]);
    for _ in 0..2 {
        assert_eq!(status(&post(&sender, receiver.port()).await), Some(200));
    }
    assert_eq!((receiver.connections(), receiver.requests().len()), (2, 3));
}

#[tokio::test]
async fn an_answer_that_has_begun_is_not_asked_for_again() {
    let receiver = Receiver::start(|number| match number {
        2 => Manner::Leave(b"HTTP/1.1 2".to_vec()),
        _ => answer("200 OK", ""),
    })
    .await;
    let names = Names::leading_to([receiver.address]);
    let sender = sender(&names);
    assert_eq!(status(&post(&sender, receiver.port()).await), Some(200));
    let attempt = post(&sender, receiver.port()).await;
    assert_eq!(failed(&attempt), "the answer cannot be read: the connection ended");
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_message_is_sent_again_once_and_not_for_ever() {
    let receiver = Receiver::start(|number| match number {
        1 => answer("200 OK", ""),
        _ => Manner::Leave(Vec::new()),
    })
    .await;
    let names = Names::leading_to([receiver.address]);
    let sender = sender(&names);
    assert_eq!(status(&post(&sender, receiver.port()).await), Some(200));
    assert_eq!(failed(&post(&sender, receiver.port()).await), "no answer: the connection ended");
    assert_eq!((receiver.connections(), receiver.requests().len()), (2, 3));
}

#[tokio::test]
async fn an_answer_that_says_close_ends_the_line() {
    let receiver = Receiver::start(|_| answer("200 OK\r\nConnection: close", "")).await;
    let names = Names::leading_to([receiver.address]);
    let sender = sender(&names);
    for connections in 1..=2 {
        assert_eq!(status(&post(&sender, receiver.port()).await), Some(200));
        assert_eq!(receiver.connections(), connections);
        receiver.until_open(0).await;
    }
}

#[tokio::test]
async fn four_lines_of_a_host_wait_and_none_without_its_sender() {
    // No message is answered before all of them have come, so each has a connection of its own.
    let barrier = Arc::new(Barrier::new(7));
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let receiver = Receiver::start(move |_| Manner::Meet(barrier.clone(), whole.to_vec())).await;
    let names = Names::leading_to([receiver.address]);
    let sender = sender(&names);
    let attempts = join_all((0..7).map(|_| post(&sender, receiver.port()))).await;
    assert!(attempts.iter().all(|attempt| status(attempt) == Some(200)), "{attempts:?}");
    assert_eq!(receiver.connections(), 7);
    receiver.until_open(4).await;
    drop(sender);
    receiver.until_open(0).await;
}
