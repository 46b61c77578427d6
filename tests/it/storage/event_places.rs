//! Places in the event log, on PostgreSQL: transactions do not commit in the order in which they took them.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use postgres::{Client, NoTls};
use serde_json::Value;
use simgate::store::Location;

use crate::support::events::{all, brief, read_on};
use crate::support::harness::{Db, Gateway, run};

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
