//! `kill -9` while checkouts are paid, seen, settled, provisioned and answered: every payment that counts is one
//! eSIM, none is sold twice, and the books agree with the chain.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::harness::{Db, Reply, read_journal, until};
use crate::process::{Site, on_site};
use crate::shop::{CHECKOUT, PLAN};

const NETWORKS: [&str; 3] = ["POLYGON", "ARBITRUM", "TRON"];
const KILLS: usize = 8;
const CLIENTS: usize = 4;
/// Short times, so that recovery comes soon.
const SETTINGS: &[(&str, &str)] =
    &[("answer_within_ms", "400"), ("supplier_timeout_ms", "500"), ("token_daily_limit_usd", "0")];

struct Agents<'a> {
    site: &'a Site,
    base: Mutex<Option<String>>,
    closing: AtomicBool,
    bought: Mutex<Vec<Value>>,
}

impl Agents<'_> {
    async fn try_once(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<Reply> {
        let base = self.base.lock().unwrap().clone()?;
        let mut request = self.site.client.request(method.parse().unwrap(), format!("{base}{path}"));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(body) = body {
            let key = body["key"].as_str().unwrap_or("none").to_string();
            request = request.header("idempotency-key", key);
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Some(Reply { status, headers, text: response.text().await.ok()? })
    }

    /// Asks until the server gives one of these answers.
    async fn ask(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: Option<&Value>,
        good: &[u16],
    ) -> Value {
        loop {
            match self.try_once(token, method, path, body).await {
                Some(reply) if good.contains(&reply.status) => return reply.json(),
                Some(_) | None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    async fn sign_in(&self, email: &str) -> String {
        let asked = json!({ "email": email });
        self.ask(None, "POST", "/api/agentic/auth/request-otp", Some(&asked), &[200]).await;
        let mails = self.ask(None, "GET", &format!("/sandbox/outbox?email={email}"), None, &[200]).await;
        let text = mails["emails"][0]["text"].as_str().unwrap();
        let otp = text.lines().next().unwrap().rsplit(' ').next().unwrap();
        let answer = json!({ "email": email, "otp": otp });
        let made = self.ask(None, "POST", "/api/agentic/auth/verify-otp", Some(&answer), &[200]).await;
        made["token"].as_str().unwrap().to_string()
    }

    /// Buys one plan after the other. The key makes a checkout whose answer was lost the same one.
    async fn buy(&self, client: usize, token: &str) {
        let mut number = 0;
        while !self.closing.load(Ordering::Relaxed) {
            number += 1;
            let network = NETWORKS[(client + number) % NETWORKS.len()];
            let wish =
                json!({ "packageCode": PLAN, "preferredNetwork": network, "key": format!("wish-{number}") });
            let asked = self.ask(Some(token), "POST", CHECKOUT, Some(&wish), &[402]).await;
            let invoice = asked["invoiceId"].as_str().unwrap();
            // Not asked again when the answer is lost: a payer who pays twice has the second in his wallet.
            self.ask(None, "POST", "/sandbox/pay", Some(&json!({ "invoiceId": invoice })), &[200]).await;
            let path = format!("/api/agentic/order/{invoice}");
            let done = until("the eSIM is delivered", async || {
                let record = self.ask(None, "GET", &path, None, &[200]).await;
                (record["status"] == "COMPLETED").then_some(record)
            })
            .await;
            self.bought.lock().unwrap().push(done);
        }
    }
}

fn check(db: Db) {
    on_site(db, SETTINGS.to_vec(), async |site| {
        let mut server = site.start().await;
        let agents = Agents {
            site,
            base: Mutex::new(Some(server.base.clone())),
            closing: AtomicBool::new(false),
            bought: Mutex::default(),
        };
        let mut tokens = Vec::new();
        for client in 0..CLIENTS {
            tokens.push(agents.sign_in(&format!("agent{client}@example.com")).await);
        }
        let everyone = join_all(tokens.iter().enumerate().map(|(client, token)| agents.buy(client, token)));
        let killer = async {
            for _ in 0..KILLS {
                let pause = simgate::vault::random() % 1_200;
                tokio::time::sleep(Duration::from_millis(pause as u64)).await;
                server.kill();
                server = site.start().await;
                *agents.base.lock().unwrap() = Some(server.base.clone());
            }
            agents.closing.store(true, Ordering::Relaxed);
        };
        join(everyone, killer).await;
        until("books and chain agree", async || {
            let verdict = site.try_cli(&["ledger", "verify", "--chain"]).await;
            let quiet = verdict["chain"].as_array()?.iter().all(|line| line["pendingUsd"] == 0);
            (quiet && verdict["ok"] == true).then_some(())
        })
        .await;
        let bought = agents.bought.lock().unwrap();
        let orders: BTreeSet<&str> =
            bought.iter().map(|record| record["orderId"].as_str().unwrap()).collect();
        let esims: BTreeSet<&str> =
            bought.iter().map(|record| record["esim"]["iccid"].as_str().unwrap()).collect();
        assert_eq!((orders.len(), esims.len()), (bought.len(), bought.len()), "each has an eSIM of its own");
        let sold: BTreeSet<Vec<String>> = read_journal(&site.place.dir).into_iter().collect();
        assert_eq!(sold.len(), bought.len(), "the supplier sold what was bought, and nothing else");
    });
}

#[test]
fn sqlite() {
    check(Db::Sqlite);
}

#[test]
fn postgres() {
    check(Db::Postgres);
}
