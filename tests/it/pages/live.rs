//! Pages that are told of news: what is heard, when and by whom, what it costs, and how it ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::network::Network;
use simgate::ops::recover;

use crate::support::browser::{guest, open};
use crate::support::buying::{self, HOUR_MS, MINUTE_MS, UNTIL_FINAL_MS, address, amount, id};
use crate::support::deposits;
use crate::support::harness::{Db, Gateway, both_databases, on_place, reply, start_gateway};
use crate::support::shapes::{DEPOSIT, ORDERS};

const TRANSFER: &str = "0.000001";

fn news(checkout: &Value) -> String {
    format!("/pay/{}/events", id(checkout))
}

/// The news of a page, as a browser hears them.
struct Events {
    answer: reqwest::Response,
    heard: String,
    /// Where the next event begins.
    at: usize,
}

#[derive(Debug, PartialEq)]
enum Event {
    Change(String),
    End(String),
}

impl Events {
    async fn open(gateway: &Gateway, path: &str) -> Events {
        let request = gateway.client.get(format!("{}{path}", gateway.base));
        let answer = request.header("accept", "text/event-stream").send().await.unwrap();
        assert_eq!(answer.status(), 200);
        Events { answer, heard: String::new(), at: 0 }
    }

    /// The next event; `None` when there are no more.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(length) = self.heard[self.at..].find("\n\n") {
                let message = &self.heard[self.at..self.at + length];
                self.at += length + 2;
                let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name));
                match (field("event: "), field("data: ")) {
                    (Some("change"), Some(version)) => return Some(Event::Change(version.into())),
                    (Some("end"), Some(why)) => return Some(Event::End(why.into())),
                    _ => assert!(message.starts_with(':'), "{message:?}"),
                }
                continue;
            }
            let chunk = tokio::time::timeout(Duration::from_secs(60), self.answer.chunk()).await;
            self.heard.push_str(std::str::from_utf8(&chunk.expect("something is heard").ok()??).unwrap());
        }
    }

    /// The version that the next event tells; an end is not expected.
    #[track_caller]
    fn changed(event: Option<Event>) -> String {
        let Some(Event::Change(version)) = event else { panic!("{event:?} is no change") };
        assert!(version.len() == 16 && version.bytes().all(|b| b.is_ascii_hexdigit()), "{version}");
        version
    }

    async fn change(&mut self) -> String {
        Events::changed(self.next().await)
    }

    /// Hears until the end, or until the page is as it should be. Answers how many changes there were, and the end if it came.
    async fn until(&mut self, gateway: &Gateway, page: &str, text: &str) -> (usize, Option<Event>) {
        let (mut changes, mut last) = (0, String::new());
        loop {
            match self.next().await {
                Some(Event::Change(version)) => {
                    assert_ne!(version, last, "the same is told once");
                    (changes, last) = (changes + 1, version);
                    if open(gateway, page).await.text.contains(text) {
                        return (changes, None);
                    }
                }
                end => return (changes, end),
            }
        }
    }
}

/// The version that a page says it has.
#[track_caller]
fn version(html: &str) -> String {
    let (_, rest) = html.split_once("data-version=\"").expect("the page has a version");
    rest.split('"').next().unwrap().to_string()
}

async fn page_version(gateway: &Gateway, path: &str) -> String {
    version(&open(gateway, path).await.text)
}

fn counts(gateway: &Gateway) -> (usize, usize) {
    gateway.app.live.counts()
}

async fn until_counts(gateway: &Gateway, wanted: (usize, usize)) {
    gateway.until("so many are watched", async || (counts(gateway) == wanted).then_some(())).await;
}

both_databases! {
    async fn a_checkout_is_followed_to_the_esim(gateway) with [("polygon_confirmations", "500")] {
        let made = guest(gateway, "kid@example.com").await;
        let page = format!("/pay/{}", id(&made));
        let mut events = Events::open(gateway, &news(&made)).await;
        for (name, value) in [
            ("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no"),
            ("referrer-policy", "no-referrer"), ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(events.answer.headers()[name], value, "{name}");
        }
        assert!(!events.answer.headers().contains_key("content-encoding"));
        assert_eq!(events.change().await, page_version(gateway, &page).await, "what is there is told at once");
        buying::pay(gateway, &made).await;
        let (_, end) = events.until(gateway, &page, "of 500 confirmations").await;
        assert_eq!(end, None, "a payment is heard of when it is seen");
        for _ in 0..2 {
            events.change().await;
        }
        // The blocks that are left.
        gateway.pass_time(110_000);
        let (_, end) = events.until(gateway, &page, "Your eSIM is ready").await;
        let end = match end {
            Some(end) => end,
            None => events.next().await.expect("the end"),
        };
        assert_eq!(end, Event::End("final".into()));
        assert_eq!(events.next().await, None, "it is over");
        let done = open(gateway, &page).await;
        assert!(done.text.contains("Your eSIM is ready") && events.heard.contains(&version(&done.text)), "{}", events.heard);
        let record = buying::record(gateway, &made).await;
        let secrets = [
            id(&made).to_string(), address(&made).to_string(), amount(&made).to_string(),
            record["esim"]["matchingId"].as_str().unwrap().to_string(), "kid@example.com".into(),
        ];
        assert!(secrets.iter().all(|secret| !events.heard.contains(secret)), "{}", events.heard);
        until_counts(gateway, (0, 0)).await;
        // Who comes later hears what there is, and that nothing more comes.
        let mut late = Events::open(gateway, &news(&made)).await;
        assert_eq!(late.change().await, version(&done.text));
        assert_eq!((late.next().await, late.next().await), (Some(Event::End("final".into())), None));
        assert_eq!(counts(gateway), (0, 0), "nobody has to watch it");
    }

    async fn a_deposit_is_followed_to_its_credit(gateway) {
        let invoice = gateway.post(DEPOSIT, json!({ "amountUsd": 25, "currency": "USDC", "network": "ARBITRUM" })).await.expect(200);
        let page = format!("/pay/{}", id(&invoice));
        let mut events = Events::open(gateway, &news(&invoice)).await;
        assert_eq!(events.change().await, page_version(gateway, &page).await);
        deposits::pay(gateway, &invoice, TRANSFER).await;
        let (_, end) = events.until(gateway, &page, TRANSFER).await;
        assert_eq!(end, None, "even dust is on the page");
        deposits::pay(gateway, &invoice, "24").await;
        gateway.pass_time(UNTIL_FINAL_MS);
        let (_, end) = events.until(gateway, &page, "Paid in part").await;
        assert_eq!(end, None, "something is still due");
        deposits::pay(gateway, &invoice, "0.999999").await;
        gateway.pass_time(UNTIL_FINAL_MS);
        let (_, end) = events.until(gateway, &page, "no page says this").await;
        assert_eq!(end, Some(Event::End("final".into())));
    }

    async fn expiry_and_failure_are_heard_of(gateway) {
        let made = guest(gateway, "kid@example.com").await;
        let mut events = Events::open(gateway, &news(&made)).await;
        let before = events.change().await;
        gateway.pass_time(31 * MINUTE_MS);
        assert_ne!(events.change().await, before);
        let page = format!("/pay/{}", id(&made));
        gateway.until("it has expired", async || {
            open(gateway, &page).await.text.contains("The time to pay is over").then_some(())
        }).await;
        let mut events = Events::open(gateway, &news(&made)).await;
        events.change().await;
        gateway.supplier("reject").await;
        buying::pay(gateway, &made).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        events.until(gateway, &page, "Not delivered").await;
        let lost = guest(gateway, "kid@example.com").await;
        gateway.pass_time(26 * HOUR_MS);
        let page = format!("/pay/{}", id(&lost));
        gateway.until("it has expired", async || {
            open(gateway, &page).await.text.contains("The time to pay is over").then_some(())
        }).await;
        let mut events = Events::open(gateway, &news(&lost)).await;
        events.change().await;
        assert_eq!(events.next().await, Some(Event::End("final".into())), "what comes now counts no more");
    }

    async fn a_payment_that_nearly_fits_is_heard_of(gateway) {
        let made = guest(gateway, "kid@example.com").await;
        let mut events = Events::open(gateway, &news(&made)).await;
        events.change().await;
        let near = amount(&made).minus(Usd::from_micros(amount(&made).micros() / 20));
        buying::send(gateway, Network::Polygon, address(&made), near).await;
        let (changes, end) = events.until(gateway, &format!("/pay/{}", id(&made)), "nearly fits").await;
        assert_eq!((changes, end), (1, None));
    }

    async fn an_esim_is_awaited(gateway) with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")] {
        gateway.supplier("timeout").await;
        let order = gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(202)["order"].clone();
        let path = order["installUrl"].as_str().unwrap().strip_prefix(&gateway.base).unwrap().to_string();
        let mut events = Events::open(gateway, &format!("{path}/events")).await;
        assert_eq!(events.change().await, page_version(gateway, &path).await);
        gateway.supplier("ok").await;
        gateway.until("it is delivered", async || {
            gateway.pass_time(60_000);
            recover::round(&gateway.app).await.unwrap();
            open(gateway, &path).await.text.contains("Install your eSIM").then_some(())
        }).await;
        assert_eq!(events.change().await, page_version(gateway, &path).await);
        assert_eq!((events.next().await, events.next().await), (Some(Event::End("final".into())), None));
        // A page that is withheld or gone has no news.
        gateway.supplier("timeout").await;
        let cancel = format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap());
        gateway.send_as(&gateway.key, "POST", &cancel, None).await.expect(202);
        let (page, news) = (open(gateway, &path).await, open(gateway, &format!("{path}/events")).await);
        assert!(page.status == 409 && news.status == 409, "{} {}", page.status, news.status);
    }

    async fn all_who_look_at_one_page_share_a_watch(gateway) {
        let (one, other) = (guest(gateway, "ann@example.com").await, guest(gateway, "bob@example.com").await);
        let mut viewers = Vec::new();
        for path in [news(&one), news(&one), news(&one), news(&other)] {
            viewers.push(Events::open(gateway, &path).await);
        }
        assert_eq!(counts(gateway), (4, 2));
        for events in &mut viewers {
            events.change().await;
        }
        buying::pay(gateway, &one).await;
        for events in &mut viewers[..3] {
            events.change().await;
        }
        viewers.truncate(2);
        until_counts(gateway, (2, 1)).await;
        viewers.clear();
        until_counts(gateway, (0, 0)).await;
        // Whoever comes after the last one has left is served as well.
        let mut events = Events::open(gateway, &news(&other)).await;
        events.change().await;
        buying::pay(gateway, &other).await;
        events.change().await;
    }

    async fn more_than_allowed_are_sent_away(gateway) with [("live_streams", "2")] {
        let made = guest(gateway, "kid@example.com").await;
        let first = Events::open(gateway, &news(&made)).await;
        let _second = Events::open(gateway, &news(&made)).await;
        let third = reply(gateway.client.get(format!("{}{}", gateway.base, news(&made)))).await;
        assert_eq!((third.problem(503).as_str(), third.header("retry-after")), ("OVERLOADED", "60"));
        drop(first);
        until_counts(gateway, (1, 1)).await;
        Events::open(gateway, &news(&made)).await.change().await;
    }

    async fn one_client_has_so_many_and_no_more(gateway) with [("connections_per_client", "500")] {
        let made = guest(gateway, "kid@example.com").await;
        let mut viewers = Vec::new();
        for _ in 0..50 {
            viewers.push(Events::open(gateway, &news(&made)).await);
        }
        assert_eq!(reply(gateway.client.get(format!("{}{}", gateway.base, news(&made)))).await.problem(503), "OVERLOADED");
        assert_eq!(counts(gateway), (50, 1));
    }

    async fn live_pages_can_be_turned_off(gateway) with [("live_streams", "0")] {
        let made = guest(gateway, "kid@example.com").await;
        assert_eq!(reply(gateway.client.get(format!("{}{}", gateway.base, news(&made)))).await.problem(503), "OVERLOADED");
        assert_eq!(open(gateway, &format!("/pay/{}", id(&made))).await.status, 200);
    }

    async fn what_is_not_there_has_no_news(gateway) {
        let unknown = ["/pay/inv_000000000000000000000000000000/events", "/pay/x/events", "/esim/abc/events"];
        for path in unknown {
            for method in ["GET", "HEAD"] {
                let request = gateway.client.request(method.parse().unwrap(), format!("{}{path}", gateway.base));
                assert_eq!(reply(request).await.status, 404, "{method} {path}");
            }
        }
        let made = guest(gateway, "kid@example.com").await;
        assert_eq!(reply(gateway.client.head(format!("{}{}", gateway.base, news(&made)))).await.status, 200);
        until_counts(gateway, (0, 0)).await;
    }

    async fn nobody_is_told_for_ever(gateway) {
        let made = guest(gateway, "kid@example.com").await;
        let mut events = Events::open(gateway, &news(&made)).await;
        events.change().await;
        gateway.pass_time(5 * MINUTE_MS);
        assert_eq!((events.next().await, events.next().await), (Some(Event::End("time".into())), None));
        until_counts(gateway, (0, 0)).await;
    }
}

mod a_gateway_that_stops_does_not_wait_for_viewers {
    use super::*;

    fn check(db: Db) {
        on_place(db, async |place| {
            let (gateway, stop, served) = start_gateway(place, &[]).await;
            let made = guest(&gateway, "kid@example.com").await;
            let mut events = Events::open(&gateway, &news(&made)).await;
            events.change().await;
            let asked = Instant::now();
            stop.cancel();
            assert_eq!(events.next().await, None);
            served.await.unwrap();
            assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        });
    }
    crate::support::harness::each_database!(check);
}

/// Whichever instance sees the payment and delivers: all who look hear of it.
#[test]
#[ignore = "needs PostgreSQL"]
fn what_one_instance_does_is_heard_at_the_other() {
    on_place(Db::Postgres, async |place| {
        let (one, stop_one, served_one) = start_gateway(place, &[]).await;
        let (other, stop_other, served_other) = start_gateway(place, &[]).await;
        let made = guest(&one, "kid@example.com").await;
        let page = format!("/pay/{}", id(&made));
        let (mut here, mut there) =
            (Events::open(&one, &news(&made)).await, Events::open(&other, &news(&made)).await);
        let versions = [here.change().await, there.change().await, page_version(&other, &page).await];
        assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
        buying::pay(&one, &made).await;
        for (gateway, events) in [(&one, &mut here), (&other, &mut there)] {
            events.until(gateway, &page, "Your eSIM is ready").await;
        }
        for stop in [stop_one, stop_other] {
            stop.cancel();
        }
        served_one.await.unwrap();
        served_other.await.unwrap();
    });
}
