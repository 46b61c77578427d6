//! Places in the event log, on PostgreSQL: transactions do not commit in the order in which they took them.

use postgres::{Client, NoTls};
use serde_json::Value;
use simgate::store::Location;

use crate::support::database::on_plain_thread;
use crate::support::events::{all, brief, read_on};
use crate::support::harness::{Db, Gateway, run};

/// A transaction that has taken a place in the log for an event of the partner, and neither commits nor goes back.
fn begin(gateway: &Gateway) -> Client {
    let Location::Postgres(url) = gateway.app.settings.database.clone() else { panic!("not PostgreSQL") };
    on_plain_thread(move || {
        let mut client = Client::connect(&url, NoTls).unwrap();
        // As in the gateway, something is changed before the event takes its place.
        let taken = "BEGIN; UPDATE meta SET value = value WHERE name = (SELECT MIN(name) FROM meta);
            INSERT INTO events (account, kind, subject, sequence, at, data)
            SELECT account, 'order.failed', 'elsewhere', 1, 0, '{}' FROM events ORDER BY no DESC LIMIT 1";
        client.batch_execute(taken).unwrap();
        client
    })
}

fn end(mut client: Client, how: &'static str) {
    on_plain_thread(move || {
        client.batch_execute(how).unwrap();
        drop(client);
    });
}

fn check(how: &'static str, then: &'static [&'static str]) {
    run(Db::Postgres, vec![], async move |gateway| {
        gateway.order("JP-1GB-7D").await;
        let elsewhere = begin(gateway);
        gateway.order("JP-1GB-7D").await;
        // What came later cannot be read while something may still appear before it.
        let (known, end_of_log) = read_on(gateway, "").await;
        assert_eq!(known.len(), 1);
        assert_eq!(read_on(gateway, &format!("after={end_of_log}")).await.0, Vec::<Value>::new());
        end(elsewhere, how);
        let (later, _) = read_on(gateway, &format!("after={end_of_log}")).await;
        let kinds: Vec<&str> = brief(&later).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, then);
        assert_eq!(all(gateway).await.len(), 1 + then.len());
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
