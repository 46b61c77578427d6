//! A partner's endpoint: it keeps every delivery, checks its signature by itself, and answers as it is told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::harness::{Gateway, Key};

pub const WEBHOOKS: &str = "/api/b2b/v1/webhooks";

#[derive(Clone, Debug)]
pub struct Got {
    pub id: String,
    pub timestamp: i64,
    pub signatures: String,
    pub body: String,
    /// What it was answered.
    pub status: u16,
}

impl Got {
    pub fn event(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Whether one of its signatures was made with this secret.
    pub fn is_signed_by(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let signed = format!("{}.{}.{}", self.id, self.timestamp, self.body);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes());
        let expected = format!("v1,{}", STANDARD.encode(tag));
        self.signatures.split(' ').any(|signature| signature == expected)
    }
}

/// What to answer to an event; 0 is no answer at all.
type Mood = Box<dyn FnMut(&Value) -> u16 + Send>;

struct Desk {
    got: Vec<Got>,
    mood: Mood,
    /// How many deliveries wait for their answer, and how many did at most.
    waiting: usize,
    peak: usize,
}

/// A delivery that waits for its answer, until it is dropped: also when the sender hangs up.
struct Visit(Arc<Mutex<Desk>>);

impl Visit {
    fn begin(desk: &Arc<Mutex<Desk>>) -> Visit {
        let mut counts = desk.lock().unwrap();
        counts.waiting += 1;
        counts.peak = counts.peak.max(counts.waiting);
        Visit(desk.clone())
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.lock().unwrap().waiting -= 1;
    }
}

pub struct Receiver {
    desk: Arc<Mutex<Desk>>,
    /// Whether answers are held back.
    held: watch::Sender<bool>,
    address: SocketAddr,
    pub url: String,
    /// Of its own, so that it can die with all its connections.
    runtime: Option<Runtime>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.die();
    }
}

type Door = (Arc<Mutex<Desk>>, watch::Receiver<bool>);

async fn take(State((desk, mut held)): State<Door>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let _visit = Visit::begin(&desk);
    let text = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_string();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let event: Value = serde_json::from_str(&body).unwrap();
    let status = {
        let mut desk = desk.lock().unwrap();
        let status = (desk.mood)(&event);
        let timestamp = text("webhook-timestamp").parse().unwrap();
        desk.got.push(Got {
            id: text("webhook-id"),
            timestamp,
            signatures: text("webhook-signature"),
            body,
            status,
        });
        status
    };
    let _ = held.wait_for(|held| !held).await;
    if status == 0 {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    StatusCode::from_u16(status.max(200)).unwrap()
}

impl Receiver {
    pub async fn start() -> Receiver {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let desk =
            Arc::new(Mutex::new(Desk { got: Vec::new(), mood: Box::new(|_| 204), waiting: 0, peak: 0 }));
        let url = format!("http://{address}/hooks");
        let mut receiver = Receiver { desk, held: watch::Sender::new(false), address, url, runtime: None };
        receiver.rise().await;
        receiver
    }

    /// Ends at once, whatever it is doing. What it has got stays known.
    pub fn die(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Serves again at the same address.
    pub async fn rise(&mut self) {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (door, address) = ((self.desk.clone(), self.held.subscribe()), self.address);
        let serving = runtime.spawn(async move {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            socket.bind(address).unwrap();
            let router = Router::new().route("/hooks", post(take)).with_state(door);
            let listener = socket.listen(1024).unwrap();
            tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        });
        serving.await.unwrap();
        self.runtime = Some(runtime);
    }

    pub fn answers(&self, mood: impl FnMut(&Value) -> u16 + Send + 'static) {
        self.desk.lock().unwrap().mood = Box::new(mood);
    }

    /// Takes what comes and answers nothing until `release`.
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    pub fn release(&self) {
        self.held.send_replace(false);
    }

    /// Everything that came, tests included.
    pub fn all(&self) -> Vec<Got> {
        self.desk.lock().unwrap().got.clone()
    }

    /// How many deliveries waited for their answers at once, at most.
    pub fn peak(&self) -> usize {
        self.desk.lock().unwrap().peak
    }

    /// The events that were accepted, in the order in which they came.
    pub fn accepted(&self) -> Vec<Value> {
        let all = self.all().into_iter().filter(|got| (200..300).contains(&got.status));
        all.map(|got| got.event()).filter(|event| event["type"] != "webhook.test").collect()
    }
}

/// Makes a webhook of the gateway's own partner that leads here, and waits until it is active: its id and secret.
pub async fn subscribe(gateway: &Gateway, receiver: &Receiver, kinds: &[&str]) -> (String, String) {
    let (id, secret) = make(gateway, &gateway.key, receiver, kinds).await;
    until_status(gateway, &id, "ACTIVE").await;
    (id, secret)
}

pub async fn make(gateway: &Gateway, key: &Key, receiver: &Receiver, kinds: &[&str]) -> (String, String) {
    let mut wish = json!({ "url": receiver.url });
    if !kinds.is_empty() {
        wish["events"] = json!(kinds);
    }
    let made = gateway.send_as(key, "POST", WEBHOOKS, Some(wish)).await.expect(200);
    let text = |value: &Value| value.as_str().unwrap().to_string();
    (text(&made["webhook"]["id"]), text(&made["secret"]))
}

pub async fn webhook(gateway: &Gateway, id: &str) -> Value {
    let all = gateway.get(WEBHOOKS).await.expect(200);
    all["webhooks"].as_array().unwrap().iter().find(|webhook| webhook["id"] == id).unwrap().clone()
}

pub async fn until_status(gateway: &Gateway, id: &str, status: &str) {
    gateway.until(status, async || (webhook(gateway, id).await["status"] == status).then_some(())).await;
}
