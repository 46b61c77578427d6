//! A story told to a gateway: each call is noted with what was sent and answered, and in the end compared with the file of
//! examples, or written to it.

use std::path::PathBuf;

use serde_json::Value;

use super::calm::Calm;
use super::heard::Json;
use crate::support::harness::{Gateway, Reply, reply};

/// Set, it makes these tests write the files that they otherwise compare.
const RECORD: &str = "RECORD_EXAMPLES";
pub const PROBLEM: &str = "Problem";

/// Short enough that a slow supplier is not waited for. The secret decides the amounts that checkouts ask for.
pub const HASTY: [(&str, &str); 4] = [
    ("answer_within_ms", "500"),
    ("supplier_timeout_ms", "1000"),
    ("secret", "the same in every recording of a story"),
    // Where the endpoints of stories are.
    ("webhook_allow_private", "true"),
];

/// One call of a story.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The operation's id.
    pub id: &'a str,
    pub method: &'a str,
    pub path: &'a str,
    pub body: Option<&'a str>,
    /// An `Idempotency-Key`.
    pub key: Option<&'a str>,
    pub status: u16,
}

pub fn get<'a>(id: &'a str, path: &'a str) -> Call<'a> {
    Call { id, method: "GET", path, body: None, key: None, status: 200 }
}

pub fn press<'a>(id: &'a str, path: &'a str) -> Call<'a> {
    Call { method: "POST", ..get(id, path) }
}

pub fn delete<'a>(id: &'a str, path: &'a str) -> Call<'a> {
    Call { method: "DELETE", ..get(id, path) }
}

pub fn post<'a>(id: &'a str, path: &'a str, body: &'a str) -> Call<'a> {
    Call { body: Some(body), ..press(id, path) }
}

pub fn patch<'a>(id: &'a str, path: &'a str, body: &'a str) -> Call<'a> {
    Call { method: "PATCH", ..post(id, path, body) }
}

pub struct Story<'a> {
    pub gateway: &'a Gateway,
    pub calm: Calm,
    /// The headers of whoever acts.
    pub login: Vec<(&'static str, String)>,
    api: &'static str,
    /// By operation: what was sent, and the answers by their status.
    noted: Vec<(String, Vec<(String, Json)>)>,
    problem: Option<Json>,
}

pub fn file(api: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("src/http/docs/examples/{api}.json"))
}

impl<'a> Story<'a> {
    pub fn new(gateway: &'a Gateway, api: &'static str) -> Story<'a> {
        let host = gateway.base.strip_prefix("http://").unwrap();
        let calm = Calm::new(host, gateway.app.now());
        Story { gateway, calm, login: Vec::new(), api, noted: Vec::new(), problem: None }
    }

    /// Makes a call and notes it.
    pub async fn tell(&mut self, call: Call<'_>) -> Value {
        self.tell_until(call, |_| true).await
    }

    /// The same, again and again until the answer is the one that is waited for. Whoever is hasty may also be told 202
    /// first, by a slow machine; the same reference again tells how it ended.
    pub async fn tell_until(&mut self, call: Call<'_>, good: impl Fn(&Value) -> bool) -> Value {
        let asked = self.gateway.until(call.id, async || {
            let answer = self.send(call).await;
            if answer.status == 202 && call.status == 200 {
                return None;
            }
            good(&answer.expect(call.status)).then_some(answer)
        });
        let answer = asked.await;
        self.note(call, &answer);
        answer.json()
    }

    pub async fn send(&self, call: Call<'_>) -> Reply {
        let url = format!("{}{}", self.gateway.base, call.path);
        let mut request = self.gateway.client.request(call.method.parse().unwrap(), url);
        let key = call.key.map(|key| ("idempotency-key", key.to_string()));
        let kind = call.body.map(|_| ("content-type", "application/json".to_string()));
        for (name, value) in self.login.clone().into_iter().chain(key).chain(kind) {
            request = request.header(name, value);
        }
        reply(request.body(call.body.unwrap_or_default().to_string())).await
    }

    pub fn note(&mut self, call: Call<'_>, answer: &Reply) {
        let sent = call.body.map(|body| ("request".to_string(), self.calm.body(&Json::parse(body))));
        let heard = self.calm.body(&Json::parse(&answer.text));
        if call.id == PROBLEM {
            self.problem = Some(heard);
            return;
        }
        let place = self.noted.iter().position(|(id, _)| id == call.id).unwrap_or_else(|| {
            self.noted.push((call.id.to_string(), Vec::new()));
            self.noted.len() - 1
        });
        let bodies = &mut self.noted[place].1;
        let known = |name: &str, bodies: &[(String, Json)]| bodies.iter().any(|(known, _)| known == name);
        bodies.extend(sent.filter(|(name, _)| !known(name, bodies)));
        let status = answer.status.to_string();
        assert!(!known(&status, bodies), "{} {status} was told before", call.id);
        bodies.push((status, heard));
        // What is sent comes first, then the answers by their status.
        bodies.sort_by_key(|(name, _)| name.parse().unwrap_or(0));
    }

    /// Compares what was told with the file, or writes it.
    pub fn end(self) {
        let noted = self.noted.into_iter().map(|(id, bodies)| (id, Json::Object(bodies)));
        let problem = self.problem.map(|problem| (PROBLEM.to_string(), problem));
        let told = Json::Object(noted.chain(problem).collect());
        let file = file(self.api);
        if std::env::var_os(RECORD).is_some() {
            std::fs::write(&file, told.pretty() + "\n").unwrap();
            return;
        }
        let recorded = Json::parse(&std::fs::read_to_string(&file).unwrap());
        if let Err(why) = told.compare(&recorded, self.api) {
            panic!(
                "The examples in {} are not what the gateway says: {why}.\nIf it is right, record them anew, look at the \
                 difference and commit it: {RECORD}=1 cargo test --release docs::stories",
                file.display()
            );
        }
    }
}
