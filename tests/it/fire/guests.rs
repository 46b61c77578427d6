//! `kill -9` while guests pay, the supplier refuses, and what is owed is claimed: every payment ends in one wallet, none
//! twice and none lost, and a code is never used up without its claim.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::browser::onward;
use crate::support::buying::PLAN;
use crate::support::harness::{Db, Reply, each_database, read_journal, until};
use crate::support::logins::{code_in, elsewhere};
use crate::support::process::{Server, Site, on_site};

const KILLS: usize = 5;
const GUESTS: usize = 3;
/// Short times, so that recovery comes soon; and clients that can be told apart.
const SETTINGS: &[(&str, &str)] =
    &[("answer_within_ms", "400"), ("supplier_timeout_ms", "500"), ("trusted_proxies", "127.0.0.1")];

struct Visitors<'a> {
    site: &'a Site,
    base: Mutex<Option<String>>,
    closing: AtomicBool,
    /// Invoices whose money was claimed.
    claimed: Mutex<Vec<String>>,
}

impl Visitors<'_> {
    /// Sends a form, or opens an address when there is none, until the server gives one of these answers.
    async fn ask(&self, path: &str, form: Option<&[(&str, &str)]>, good: &[u16]) -> Reply {
        loop {
            if let Some(reply) = self.try_once(path, form).await
                && good.contains(&reply.status)
            {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn try_once(&self, path: &str, form: Option<&[(&str, &str)]>) -> Option<Reply> {
        let base = self.base.lock().unwrap().clone()?;
        let client = &self.site.client;
        let request = match form {
            Some(fields) => client
                .post(format!("{base}{path}"))
                .header("content-type", "application/x-www-form-urlencoded")
                .body(form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()),
            None => client.get(format!("{base}{path}")),
        };
        let response = request.header("x-forwarded-for", elsewhere()).send().await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Some(Reply { status, headers, text: response.text().await.ok()? })
    }

    /// Whoever pays again because the answer was lost has paid twice, and is owed both.
    async fn pay(&self, invoice: &str) {
        loop {
            let base = self.base.lock().unwrap().clone();
            if let Some(base) = base {
                let body = json!({ "invoiceId": invoice }).to_string();
                let request = self.site.client.post(format!("{base}/sandbox/pay"));
                let sent = request.header("content-type", "application/json").body(body).send().await;
                if sent.is_ok_and(|response| response.status() == 200) {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Buys what is not delivered, and claims the money, again and again.
    async fn come(&self, guest: usize) {
        let mut number = 0;
        while !self.closing.load(Ordering::Relaxed) {
            number += 1;
            let (once, email) = (format!("{guest}-{number}"), format!("guest{guest}.{number}@example.com"));
            let wish = [("plan", PLAN), ("once", once.as_str()), ("email", email.as_str())];
            let page = self.ask("/checkout", Some(&wish), &[200]).await;
            let invoice = onward(&page);
            self.pay(&invoice).await;
            let record = format!("/api/agentic/order/{invoice}");
            until("the money is owed", async || {
                let found = self.ask(&record, None, &[200]).await.json();
                found.get("owed").is_some().then_some(())
            })
            .await;
            self.ask(&format!("/pay/{invoice}/code"), Some(&[("email", email.as_str())]), &[200]).await;
            let otp = self.code(&email).await;
            let answer = [("email", email.as_str()), ("code", otp.as_str())];
            // Refused with 409: the answer to an earlier try was lost, and that one has claimed it.
            self.ask(&format!("/pay/{invoice}/claim"), Some(&answer), &[200, 409]).await;
            self.claimed.lock().unwrap().push(invoice);
        }
    }

    async fn code(&self, email: &str) -> String {
        code_in(&self.ask(&format!("/sandbox/outbox?email={email}"), None, &[200]).await.json())
    }
}

fn check(db: Db) {
    on_site(db, SETTINGS.to_vec(), async |site| {
        let server = site.start().await;
        site.supplier(&server, json!({ "mode": "reject" })).await;
        let visitors = Visitors {
            site,
            base: Mutex::new(Some(server.base.clone())),
            closing: AtomicBool::new(false),
            claimed: Mutex::default(),
        };
        let everyone = join_all((0..GUESTS).map(|guest| visitors.come(guest)));
        let killer = async {
            let tell = |server: &Server| *visitors.base.lock().unwrap() = Some(server.base.clone());
            let last = site.kill_often(server, KILLS, tell).await;
            visitors.closing.store(true, Ordering::Relaxed);
            last
        };
        let (_, _server) = join(everyone, killer).await;
        let claimed = visitors.claimed.lock().unwrap().clone();
        assert!(claimed.len() >= GUESTS, "everybody came at least once");
        for invoice in &claimed {
            until("it is in a wallet", async || {
                let record =
                    visitors.ask(&format!("/api/agentic/order/{invoice}"), None, &[200]).await.json();
                (record["refund"]["to"] == "WALLET" && record.get("owed").is_none()).then_some(())
            })
            .await;
        }
        site.until_booked().await;
        // What came by the chain is in the wallets of who claimed, all of it.
        let sums = site.cli(&["report", "trial-balance"]).await;
        let balance = |account: &str| -> f64 {
            let lines = sums["accounts"].as_array().unwrap().iter().filter(|line| line["account"] == account);
            lines.map(|line: &Value| line["balanceUsd"].as_f64().unwrap()).sum()
        };
        let promised: f64 = balance("promo");
        let cash = balance("cash:POLYGON:USDT");
        assert!(cash > 0.0 && balance("owed") == 0.0 && balance("held") == 0.0, "{sums}");
        assert!((balance("wallet") + cash + promised).abs() < 0.000_000_5, "{sums}");
        assert!(read_journal(&site.place.dir).is_empty(), "nothing was sold");
    });
}

each_database!(check);
