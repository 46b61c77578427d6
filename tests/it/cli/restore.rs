//! `simgate restore`: taking over an older backup, by real processes on both databases.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::store::Location;

use crate::support::command_line::run;
use crate::support::database;
use crate::support::harness::{Db, Key, until};
use crate::support::process::{Server, Site, on_site};
use crate::support::shapes::{DEPOSIT, ORDERS, column};

/// The simulated chains' rows. A real chain stands outside our database and knows nothing of our backups; the
/// simulated one lives in it, so a test that restores an older backup must carry the chain over by hand.
fn chains_of(location: &Location) -> String {
    let tables: [(&str, &[&str], &[&str]); 3] = [
        ("sim_chains", &["network", "mood"], &["genesis", "behind", "lie_block"]),
        ("sim_forks", &["network"], &["fork", "from_block"]),
        (
            "sim_transfers",
            &["network", "tx_hash", "currency", "sender", "recipient"],
            &["position", "amount", "succeeded", "block"],
        ),
    ];
    let mut all = String::new();
    for (table, texts, numbers) in tables {
        let columns = [texts, numbers].concat();
        let wanted: Vec<String> =
            columns.iter().map(|name| format!("COALESCE(CAST({name} AS TEXT), 'NULL')")).collect();
        all.push_str(&format!("DELETE FROM {table};\n"));
        for row in database::rows(location, &format!("SELECT {} FROM {table}", wanted.join(", "))) {
            let value = |(n, text): (usize, &String)| {
                if n < texts.len() { format!("'{text}'") } else { text.clone() }
            };
            let values: Vec<String> = row.iter().enumerate().map(value).collect();
            all.push_str(&format!(
                "INSERT INTO {table} ({}) VALUES ({});\n",
                columns.join(", "),
                values.join(", ")
            ));
        }
    }
    all
}

struct Client<'a> {
    site: &'a Site,
    server: &'a Server,
    key: &'a Key,
}

impl Client<'_> {
    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> crate::support::harness::Reply {
        self.site.send(&self.server.base, self.key, method, path, body.as_ref()).await.unwrap()
    }

    async fn invoice(&self, usd: i64) -> Value {
        let body = json!({ "amountUsd": usd, "currency": "USDC", "network": "BASE" });
        self.call("POST", DEPOSIT, Some(body)).await.expect(200)
    }

    async fn pay(&self, invoice: &Value) {
        let body = json!({ "invoiceId": invoice["invoiceId"] });
        let request = self.site.client.post(format!("{}/sandbox/pay", self.server.base));
        let request = request.header("content-type", "application/json").body(body.to_string());
        crate::support::harness::reply(request).await.expect(200);
    }

    async fn balance(&self) -> String {
        self.call("GET", "/api/b2b/v1/balance", None).await.expect(200)["balanceUsd"].to_string()
    }

    async fn until_balance(&self, wanted: &str) {
        until(&format!("a balance of {wanted}"), async || (self.balance().await == wanted).then_some(()))
            .await;
    }
}

fn address(invoice: &Value) -> String {
    invoice["depositAddress"].as_str().unwrap().to_string()
}

fn an_older_backup_is_taken_over(db: Db) {
    on_site(db, vec![], async move |site| {
        let location = Location::parse(&site.place.url).unwrap();
        let command = |args: &[&str]| {
            let env = [("SIMGATE_SANDBOX_JOURNAL", "journal")];
            run(&site.place.url, &site.place.dir, &env, &[args, &["--json"]].concat())
        };
        let mut server = site.start().await;
        let (partner, key) = site.partner(&server, "Acme", "100").await;
        let client = Client { site, server: &server, key: &key };
        let order = |reference: &str| json!({ "packageCode": "JP-1GB-7D", "partnerRefId": reference });
        client.call("POST", ORDERS, Some(order("known"))).await.expect(200);
        let start: Usd = Usd::parse(&client.balance().await).unwrap();
        let with = |usd: i64| start.plus(Usd::dollars(usd)).to_string();
        let first = client.invoice(25).await;
        client.pay(&first).await;
        client.until_balance(&with(25)).await;

        let backup = site.place.dir.join("older.backup").display().to_string();
        command(&["backup", &backup]).document(0);

        // All this the backup does not know: an old address paid again, two new ones, and a sale.
        let again = client.invoice(30).await;
        let new = client.invoice(40).await;
        let unpaid = client.invoice(50).await;
        assert_eq!(address(&again), address(&first));
        client.pay(&again).await;
        client.pay(&new).await;
        client.until_balance(&with(95)).await;
        let lost = client.call("POST", ORDERS, Some(order("lost"))).await.expect(200);

        let busy = command(&["restore", &backup, "--force"]);
        let why = busy.refused(1, "INTERNAL");
        assert!(why.contains(if db == Db::Sqlite { "in use" } else { "not empty" }), "{why}");
        server.terminate();
        assert_eq!(server.exit_code().await, Some(0));
        let chains = chains_of(&location);
        let missing = site.place.dir.join("missing").display().to_string();
        command(&["restore", &missing, "--force"]).refused(1, "INTERNAL");
        if db == Db::Sqlite {
            assert!(command(&["restore", &backup]).refused(1, "INTERNAL").contains("--force"));
            std::fs::write(site.place.dir.join("junk"), "junk").unwrap();
            command(&["restore", "junk", "--force"]).refused(1, "INTERNAL");
        } else {
            database::execute(&location, "DROP SCHEMA public CASCADE; CREATE SCHEMA public").unwrap();
        }
        let restored = command(&["restore", &backup, "--force"]).document(0);
        assert_eq!((&restored["buyingOnHold"], &restored["salesTold"]), (&json!(true), &json!(true)));
        assert_eq!(column(&restored["unknownSales"], "orderId"), [lost["order"]["id"].as_str().unwrap()]);
        assert_eq!(restored["skippedIndexes"][0], json!({ "kind": "EVM", "from": 1, "to": 1000 }));
        assert!(column(&restored["scansOnFrom"], "network").contains(&"BASE"), "{restored}");
        if db == Db::Sqlite {
            let aside = restored["movedAside"].as_str().unwrap();
            let old = run(&format!("sqlite:{aside}"), &site.place.dir, &[], &["ledger", "verify", "--json"]);
            assert_eq!(old.document(0)["ok"], true, "what was replaced is still whole");
            assert!(!site.place.dir.join("simgate.db.restoring").exists());
        }
        database::execute(&location, &chains).unwrap();

        let server = site.start().await;
        let client = Client { site, server: &server, key: &key };
        assert_eq!(client.call("POST", ORDERS, Some(order("new"))).await.problem(503), "ON_HOLD");
        client.call("POST", ORDERS, Some(order("known"))).await.expect(200);
        // No address that was given out is given out again, but for the account's own.
        let mut fresh = BTreeSet::new();
        for _ in 0..3 {
            fresh.insert(address(&client.invoice(10).await));
        }
        assert_eq!(fresh.len(), 3);
        assert!(fresh.contains(&address(&first)), "its own address serves it again");
        assert!(!fresh.contains(&address(&new)) && !fresh.contains(&address(&unpaid)));

        // What was paid since: to its own address, credited once; to one that the backup does not know, unmatched.
        client.until_balance(&with(55)).await;
        let waiting = until("the unmatched transfer", async || {
            let found = command(&["transfers", "unmatched"]).document(0)["transfers"].clone();
            (!found.as_array().unwrap().is_empty()).then_some(found)
        })
        .await;
        assert_eq!(column(&waiting, "address"), [address(&new)]);
        assert_eq!(waiting[0]["amountUsd"], 40);
        command(&["transfers", "assign", waiting[0]["id"].as_str().unwrap(), &partner]).document(0);
        client.until_balance(&with(95)).await;
        let statement = command(&["wallet", "statement", &partner]).document(0);
        let kinds = column(&statement["transactions"], "type");
        let count = |kind: &str| kinds.iter().filter(|found| **found == kind).count();
        assert_eq!((count("DEPOSIT"), count("ASSIGNED")), (2, 1), "{kinds:?}");
        assert_eq!(command(&["ledger", "verify", "--chain"]).document(0)["ok"], true);

        command(&["restore", "--confirm"]).document(0);
        until("buying goes on", async || {
            let reply = client.call("POST", ORDERS, Some(order("new"))).await;
            (reply.status == 200).then_some(())
        })
        .await;
        site.verify_books().await;
    });
}

#[test]
fn an_older_backup_on_sqlite() {
    an_older_backup_is_taken_over(Db::Sqlite);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn an_older_backup_on_postgres() {
    an_older_backup_is_taken_over(Db::Postgres);
}

/// Without `pg_restore` the operator is told what to run, and that nothing was done.
#[test]
#[ignore = "needs PostgreSQL"]
fn without_pg_restore_the_command_is_printed() {
    on_site(Db::Postgres, vec![], async |site| {
        std::fs::write(site.place.dir.join("some.backup"), "x").unwrap();
        let told = run(
            &site.place.url,
            &site.place.dir,
            &[("PATH", "/nowhere")],
            &["restore", "some.backup", "--json"],
        );
        let sentence = told.refused(1, "INTERNAL");
        assert!(
            sentence.contains("pg_restore --no-owner") && sentence.contains("restore --adopt"),
            "{sentence}"
        );
        assert!(!sentence.contains("127.0.0.1"), "the URL may hold a password: {sentence}");
    });
}
