//! Agents that go on buying while the gateway is killed under them: they ask until they are answered, and a key makes a
//! request whose answer was lost the same one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::harness::Reply;
use crate::support::logins::code_in;
use crate::support::process::{Server, Site};

/// The user that the n-th client acts for.
pub fn email(client: usize) -> String {
    format!("agent{client}@example.com")
}

pub struct Agents<'a> {
    pub site: &'a Site,
    base: Mutex<Option<String>>,
    closing: AtomicBool,
    pub bought: Mutex<Vec<Value>>,
}

impl<'a> Agents<'a> {
    pub fn new(site: &'a Site) -> Agents<'a> {
        Agents { site, base: Mutex::default(), closing: AtomicBool::new(false), bought: Mutex::default() }
    }

    /// Whether it is time to stop buying.
    pub fn closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

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
            let mut said = body.clone();
            said.as_object_mut().unwrap().remove("key");
            request = request.header("idempotency-key", key);
            request = request.header("content-type", "application/json").body(said.to_string());
        }
        let response = request.send().await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Some(Reply { status, headers, text: response.text().await.ok()? })
    }

    /// Asks until the server gives one of these answers. `key` in a body is the request's own reference, and is not sent in it.
    pub async fn ask(
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
        let outbox = self.ask(None, "GET", &format!("/sandbox/outbox?email={email}"), None, &[200]).await;
        let answer = json!({ "email": email, "otp": code_in(&outbox) });
        let made = self.ask(None, "POST", "/api/agentic/auth/verify-otp", Some(&answer), &[200]).await;
        made["token"].as_str().unwrap().to_string()
    }

    /// Pays a checkout and waits for its eSIM.
    pub async fn pay(&self, checkout: &Value) -> Value {
        let invoice = checkout["invoiceId"].as_str().unwrap();
        // Asked again when the answer is lost: a payer who pays twice has the second in his wallet.
        self.ask(None, "POST", "/sandbox/pay", Some(&json!({ "invoiceId": invoice })), &[200]).await;
        let path = format!("/api/agentic/order/{invoice}");
        // However long it takes: the gateway is killed again and again meanwhile.
        loop {
            let record = self.ask(None, "GET", &path, None, &[200]).await;
            if record["status"] == "COMPLETED" {
                return record;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Lets so many clients buy, each with its number and token, and kills the gateway so often meanwhile. Afterwards
    /// the books must agree with the chain.
    pub async fn through_kills(&self, clients: usize, kills: usize, buy: impl AsyncFn(usize, &str)) {
        let server = self.site.start().await;
        let tell = |server: &Server| *self.base.lock().unwrap() = Some(server.base.clone());
        tell(&server);
        let mut tokens = Vec::new();
        for client in 0..clients {
            tokens.push(self.sign_in(&email(client)).await);
        }
        let everyone = join_all(tokens.iter().enumerate().map(|(client, token)| buy(client, token)));
        let killer = async {
            let last = self.site.kill_often(server, kills, tell).await;
            self.closing.store(true, Ordering::Relaxed);
            last
        };
        let (_, _server) = join(everyone, killer).await;
        self.site.until_booked().await;
    }
}
