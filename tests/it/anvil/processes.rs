//! Real servers before a real node: three of them on one PostgreSQL database, and one that dies again and again
//! while payments are seen, confirmed and credited.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use super::desk::{CONFIRMATIONS, LAG, settings_for};
use super::node::{Kind, Node};
use crate::support::environment::number;
use crate::support::harness::{Db, Key, until};
use crate::support::place::{Place, execute};
use crate::support::process::{Server, Site, on_site};

const DEPOSIT: &str = "/api/b2b/v1/balance/deposit";
const VERIFY: &str = "/api/b2b/v1/balance/verify-deposit";
const BALANCE: &str = "/api/b2b/v1/balance";
const STATEMENT: &str = "/api/b2b/v1/balance/transactions?limit=100";

/// A partner, the site of the servers, and the node that they watch.
pub struct Partner<'a> {
    pub site: &'a Site,
    pub node: &'a Node,
    pub key: Key,
}

pub struct Invoice {
    id: String,
    address: String,
    amount: Usd,
}

/// Runs a test on a site whose servers and commands find the node in a file of settings.
pub fn on_node(db: Db, test: impl AsyncFnOnce(&Site, &Node) + 'static) {
    on_site(db, vec![], async move |site| {
        let node = Node::start(Kind::default()).await;
        let lines = settings_for(&node, &[]).into_iter();
        let text: String = lines.map(|(name, value)| format!("{name} = \"{value}\"\n")).collect();
        std::fs::write(site.place.dir.join("simgate.toml"), text).unwrap();
        test(site, &node).await;
    });
}

impl Partner<'_> {
    async fn send(&self, server: &Server, method: &str, path: &str, body: Option<Value>) -> Value {
        let reply = self.site.send(&server.base, &self.key, method, path, body.as_ref()).await;
        reply.expect("the server answers").expect(200)
    }

    pub async fn invoice(&self, server: &Server, dollars: i64) -> Invoice {
        let wish = json!({ "amountUsd": dollars, "currency": "USDC", "network": "POLYGON" });
        let opened = self.send(server, "POST", DEPOSIT, Some(wish)).await;
        let text = |field: &str| opened[field].as_str().unwrap().to_string();
        Invoice { id: text("invoiceId"), address: text("depositAddress"), amount: Usd::dollars(dollars) }
    }

    pub async fn pay(&self, invoice: &Invoice) -> String {
        self.node.pay(&self.node.usdc, &invoice.address, invoice.amount).await
    }

    pub async fn status(&self, server: &Server, invoice: &Invoice) -> Value {
        self.send(server, "GET", &format!("{DEPOSIT}/{}", invoice.id), None).await
    }

    /// Waits until a server shows it as credited, with what was paid and no more.
    pub async fn until_confirmed(&self, server: &Server, invoice: &Invoice) {
        let shown = until("the deposit is confirmed", async || {
            let shown = self.status(server, invoice).await;
            (shown["status"] == "CONFIRMED").then_some(shown)
        })
        .await;
        assert_eq!(shown["creditedUsd"].to_string(), invoice.amount.to_string());
        assert_eq!(shown["exception"], Value::Null);
    }

    /// The wallet holds these payments and nothing else, each as one line; books and chain agree.
    pub async fn check(&self, server: &Server, invoices: &[Invoice]) {
        let total = invoices.iter().fold(Usd::ZERO, |sum, invoice| sum.plus(invoice.amount));
        let balance = self.send(server, "GET", BALANCE, None).await;
        assert_eq!(balance["balanceUsd"].to_string(), total.to_string());
        let lines = self.send(server, "GET", STATEMENT, None).await;
        assert_eq!(lines["transactions"].as_array().unwrap().len(), invoices.len(), "one line each");
        let verdict = self.site.cli(&["ledger", "verify", "--chain"]).await;
        assert_eq!(verdict["ok"], true, "{verdict}");
    }
}

/// A killed server's turn at the network ends by itself after some seconds; here nobody has to wait for it.
fn end_turn(place: &Place) {
    let statement = "UPDATE cursors SET held_until = 0";
    match place.db {
        Db::Postgres => execute(&place.url, statement),
        Db::Sqlite => {
            let connection = rusqlite::Connection::open(place.url.strip_prefix("sqlite:").unwrap()).unwrap();
            connection.busy_timeout(Duration::from_secs(5)).unwrap();
            connection.execute_batch(statement).unwrap();
        }
    }
}

/// All three watch, and partners ask each of them about each payment at the same moment.
#[test]
#[ignore = "needs anvil"]
fn three_gateways_credit_once() {
    on_node(Db::Postgres, async |site, node| {
        let mut servers = vec![site.start().await];
        let (_, key) = site.partner(&servers[0], "Shared Travel", "0").await;
        let partner = Partner { site, node, key };
        while servers.len() < 3 {
            servers.push(site.start().await);
        }
        let mut invoices = Vec::new();
        for (number, dollars) in [10, 20, 40, 80].into_iter().enumerate() {
            invoices.push(partner.invoice(&servers[number % 3], dollars).await);
        }
        let both = [&invoices[2], &invoices[3]].map(|invoice| (&*invoice.address, invoice.amount));
        let shared = node.pay_two(&node.usdc, both[0], both[1]).await;
        let hashes =
            [partner.pay(&invoices[0]).await, partner.pay(&invoices[1]).await, shared.clone(), shared];
        for confirmations in 1..=CONFIRMATIONS {
            node.mine(1).await;
            let asking = servers.iter().flat_map(|server| {
                let asked = invoices.iter().zip(&hashes);
                asked.map(|(invoice, hash)| {
                    let body = json!({ "invoiceId": invoice.id, "txHash": hash });
                    partner.send(server, "POST", VERIFY, Some(body))
                })
            });
            // Looks at the chain are shared for two seconds, so the last answers may be older than the last block.
            for answer in join_all(asking).await {
                assert!(answer["status"] != "CONFIRMED" || confirmations == CONFIRMATIONS, "{answer}");
            }
        }
        for server in &servers {
            for invoice in &invoices {
                partner.until_confirmed(server, invoice).await;
            }
            partner.check(server, &invoices).await;
        }

        // Nobody asks about this one, and whoever had the turn may be the one that is killed.
        servers[0].kill();
        invoices.push(partner.invoice(&servers[1], 160).await);
        partner.pay(&invoices[4]).await;
        node.mine(CONFIRMATIONS + LAG).await;
        for server in &servers[1..] {
            partner.until_confirmed(server, &invoices[4]).await;
            partner.check(server, &invoices).await;
        }
    });
}

/// Each death comes while one payment is being seen, one waits for confirmations, and one is being credited.
fn killed_again_and_again(db: Db) {
    let kills = number("SIMGATE_TEST_KILLS").map_or(4, |kills| (kills as usize).div_ceil(4));
    on_node(db, async move |site, node| {
        let mut server = site.start().await;
        let (_, key) = site.partner(&server, "Crash Travel", "0").await;
        let partner = Partner { site, node, key };
        let mut invoices = Vec::new();
        for kill in 0..kills {
            let mut batch = Vec::new();
            for dollars in [100, 10, 1_000] {
                batch.push(partner.invoice(&server, dollars + kill as i64).await);
            }
            for invoice in &batch {
                partner.pay(invoice).await;
                node.mine(1).await;
            }
            // The second one is about to be seen, or has been: from here on the scanner keeps up.
            node.mine(CONFIRMATIONS - 4).await;
            until("the first one is seen", async || {
                (partner.status(&server, &batch[0]).await["status"] == "CONFIRMING").then_some(())
            })
            .await;
            node.mine(1).await;
            let moment = simgate::vault::random() as u64 % 120;
            tokio::time::sleep(Duration::from_millis(moment)).await;
            server.kill();
            if kill + 1 < kills {
                end_turn(&site.place);
            }
            server = site.start().await;
            node.mine(CONFIRMATIONS).await;
            for invoice in &batch {
                partner.until_confirmed(&server, invoice).await;
            }
            invoices.extend(batch);
            partner.check(&server, &invoices).await;
        }
    });
}

#[test]
#[ignore = "needs anvil"]
fn killed_again_and_again_sqlite() {
    killed_again_and_again(Db::Sqlite);
}

#[test]
#[ignore = "needs anvil"]
fn killed_again_and_again_postgres() {
    killed_again_and_again(Db::Postgres);
}
