//! Addresses that are refused before a connection is made, whatever the name's servers answer, and whenever.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use simgate::webhook::{Sender, SystemDns, Target};

use super::receiver::{Names, Receiver, answer};
use super::{failed, post, refused, rules, sender, status};

const NOT_PUBLIC: &str = "the name leads to an address that is not public";

fn at(port: u16, addresses: &[&str]) -> Vec<SocketAddr> {
    addresses.iter().map(|text| SocketAddr::new(text.parse::<IpAddr>().unwrap(), port)).collect()
}

#[tokio::test]
async fn one_address_that_is_not_public_spoils_all_of_them() {
    let receiver = Receiver::start(|_| answer("200 OK", "")).await;
    for addresses in [
        &["127.0.0.1"][..],
        &["127.0.0.1", "8.8.8.8"],
        &["8.8.8.8", "127.0.0.1"],
        &["2606:4700::1111", "8.8.8.8", "::1"],
        &["8.8.8.8", "::ffff:127.0.0.1"],
        &["0.0.0.0"],
        &["::"],
        &["10.0.0.1"],
        &["172.16.0.1"],
        &["192.168.0.1"],
        &["100.64.0.1"],
        &["169.254.169.254"],
        &["64:ff9b::7f00:1"],
        &["2002:7f00:1::"],
        &["2001:0:1::1"],
        &["fc00::1"],
        &["fe80::1"],
        &["224.0.0.1"],
    ] {
        let names = Names::leading_to(at(receiver.port(), addresses));
        let sender = Sender::new(rules(false), names).unwrap();
        assert_eq!(refused(&post(&sender, receiver.port()).await), NOT_PUBLIC, "{addresses:?}");
    }
    assert_eq!(receiver.connections(), 0);
}

/// The name was public when the webhook was made, and leads to us now.
#[tokio::test]
async fn a_name_that_turns_to_loopback_is_refused_from_then_on() {
    let receiver = Receiver::start(|_| answer("200 OK", "")).await;
    let names = Names::leading_to([]);
    let sender = Sender::new(rules(false), names.clone()).unwrap();
    assert_eq!(failed(&post(&sender, receiver.port()).await), "the name has no address");
    names.lead_to([receiver.address]);
    assert_eq!(refused(&post(&sender, receiver.port()).await), NOT_PUBLIC);
    assert_eq!(receiver.connections(), 0);
}

/// A name server that answers the check with one address, and the connection with another.
#[tokio::test]
async fn a_try_asks_once_and_connects_to_what_it_checked() {
    let [checked, other] = Receiver::pair(|_| answer("200 OK", "")).await;
    let names = Names::changing([checked.address, other.address]);
    assert_eq!(status(&post(&sender(&names), checked.port()).await), Some(200));
    assert_eq!((names.asked(), checked.connections(), other.connections()), (1, 1, 0));
}

/// An open connection does not outlive the answer that allowed it.
#[tokio::test]
async fn a_line_that_waits_does_not_spare_the_check() {
    let receiver = Receiver::start(|_| answer("200 OK", "")).await;
    let names = Names::leading_to([receiver.address]);
    let sender = sender(&names);
    assert_eq!(status(&post(&sender, receiver.port()).await), Some(200));
    for addresses in [&["169.254.169.254"][..], &["127.0.0.1", "169.254.169.254"], &["::ffff:127.0.0.1"]] {
        names.lead_to(at(receiver.port(), addresses));
        assert_eq!(refused(&post(&sender, receiver.port()).await), NOT_PUBLIC);
    }
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 1));
}

/// A target that was allowed by other rules than the sender's: an address in a URL is checked like those of names.
#[tokio::test]
async fn an_address_in_the_url_is_checked_at_each_try() {
    let receiver = Receiver::start(|_| answer("200 OK", "")).await;
    let target = Target::parse(&format!("http://{}/", receiver.address), &rules(true)).unwrap();
    let sender = Sender::new(rules(false), Names::leading_to([])).unwrap();
    let attempt = sender.post(&target, &[], Bytes::from_static(b"{}")).await;
    assert_eq!(refused(&attempt), NOT_PUBLIC);
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn the_resolver_of_the_system_knows_this_machine() {
    let receiver = Receiver::start(|_| answer("200 OK", "")).await;
    for (allowed, expected) in [(true, Some(200)), (false, None)] {
        let sender = Sender::new(rules(allowed), Arc::new(SystemDns::default())).unwrap();
        let url = format!("http://localhost:{}/", receiver.port());
        let target = Target::parse(&url, &rules(true)).unwrap();
        assert_eq!(status(&sender.post(&target, &[], Bytes::from_static(b"{}")).await), expected);
    }
    assert_eq!(receiver.connections(), 1);
}
