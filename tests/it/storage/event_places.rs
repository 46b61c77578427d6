//! Places in the event log, on PostgreSQL: transactions do not commit in the order in which they took them.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use postgres::{Client, NoTls};
use serde_json::{Value, json};
use simgate::store::Location;

use crate::support::database::{execute, rows};
use crate::support::events::{all, brief, read_on};
use crate::support::harness::{Db, Gateway, run};
use crate::support::receiver::WEBHOOKS;

/// A transaction that has taken a place in the log for an event of the partner. It ends as it is told, on a thread of its own.
struct Elsewhere {
    tell: Sender<&'static str>,
    thread: JoinHandle<()>,
}

impl Elsewhere {
    fn begin(gateway: &Gateway) -> Elsewhere {
        let Location::Postgres(url) = gateway.app.settings.database.clone() else { panic!("not PostgreSQL") };
        let ((tell, told), (began, begun)) = (channel(), channel());
        let thread = std::thread::spawn(move || {
            let mut client = Client::connect(&url, NoTls).unwrap();
            let taken = "BEGIN; INSERT INTO events (account, kind, subject, sequence, at, data)
                SELECT account, 'order.failed', 'elsewhere', 1, 0, '{}' FROM events ORDER BY no DESC LIMIT 1";
            client.batch_execute(taken).unwrap();
            began.send(()).unwrap();
            client.batch_execute(told.recv().unwrap_or("ROLLBACK")).unwrap();
        });
        begun.recv().unwrap();
        Elsewhere { tell, thread }
    }

    fn end(self, how: &'static str) {
        self.tell.send(how).unwrap();
        self.thread.join().unwrap();
    }
}

fn check(how: &'static str, then: &'static [&'static str]) {
    run(Db::Postgres, vec![], async move |gateway| {
        gateway.order("JP-1GB-7D").await;
        assert_eq!(all(gateway).await.len(), 1);
        let elsewhere = Elsewhere::begin(gateway);
        gateway.order("JP-1GB-7D").await;
        // What came later cannot be read while something may still appear before it.
        let (known, end_of_log) = read_on(gateway, "").await;
        assert_eq!(known.len(), 1);
        assert_eq!(read_on(gateway, &format!("after={end_of_log}")).await.0, Vec::<Value>::new());
        elsewhere.end(how);
        let (later, _) = read_on(gateway, &format!("after={end_of_log}")).await;
        let kinds: Vec<&str> = brief(&later).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, then);
        assert_eq!(all(gateway).await.len(), 1 + then.len());
    });
}

/// As after a failover to a server that had not got everything.
#[test]
#[ignore = "needs PostgreSQL"]
fn places_of_lost_events_are_not_given_again() {
    run(Db::Postgres, vec![], async |gateway| {
        gateway.order("JP-1GB-7D").await;
        let (_, begin) = read_on(gateway, "").await;
        gateway.order("JP-1GB-7D").await;
        let (lost, end_of_log) = read_on(gateway, &format!("after={begin}")).await;
        assert_eq!(lost.len(), 1);
        let kept = gateway.app.numbers.event_place(&begin).unwrap();
        let database = &gateway.app.settings.database;
        execute(database, &format!("DELETE FROM events WHERE no > {kept}")).unwrap();
        execute(database, &format!("SELECT setval('events_no_seq', {kept})")).unwrap();
        assert_eq!(read_on(gateway, &format!("after={end_of_log}")).await.0, Vec::<Value>::new());
        gateway.order("JP-1GB-7D").await;
        let (later, _) = read_on(gateway, &format!("after={end_of_log}")).await;
        assert_eq!(brief(&later), [("order.fulfilled", 1)]);
        assert_ne!(later[0]["id"], lost[0]["id"]);
    });
}

/// A webhook begins at the end of the log: what happened before it must not be sent to it.
#[test]
#[ignore = "needs PostgreSQL"]
fn no_webhook_begins_while_the_end_of_the_log_is_unknown() {
    run(Db::Postgres, vec![("webhook_allow_private", "true")], async |gateway| {
        gateway.order("JP-1GB-7D").await;
        let elsewhere = Elsewhere::begin(gateway);
        let wish = json!({ "url": "http://127.0.0.1:9/" });
        assert_eq!(gateway.post(WEBHOOKS, wish.clone()).await.problem(503), "OVERLOADED");
        elsewhere.end("COMMIT");
        gateway.post(WEBHOOKS, wish).await.expect(200);
        let cursor = rows(&gateway.app.settings.database, "SELECT CAST(cursor AS TEXT) FROM webhooks")[0][0]
            .parse()
            .unwrap();
        let last = all(gateway).await.pop().unwrap();
        assert_eq!(gateway.app.numbers.event_place(last["id"].as_str().unwrap()), Some(cursor));
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_place_that_is_filled_late_is_not_missed() {
    check("COMMIT", &["order.failed", "order.fulfilled"]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_place_that_stays_empty_holds_nobody_up() {
    check("ROLLBACK", &["order.fulfilled"]);
}
