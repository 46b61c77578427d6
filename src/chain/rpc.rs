//! A thin JSON-RPC client: sends one batch to one node and returns its answers, or an error sorted by what to do about
//! it. It remembers what a node allows (`limit.rs`) and how well it does (`health.rs`). A node's URL often holds an API
//! key: nodes are called "node 1" and "node 2", and the key is removed from their messages before anybody reads them.

mod error;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics::{counter, gauge};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub use self::error::RpcError;
use self::error::TIMEOUT;
use super::Trouble;
use super::health::{Demerit, Demotion, Health};
use super::limit::Limit;
use crate::domain::network::Network;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// More than any provider sends in one answer; an endless answer must not fill our memory.
const LARGEST_ANSWER: usize = 160 << 20;
/// Public nodes allow few calls in one request.
const BATCH: Limit = Limit::new(20, 20);
/// How many blocks' logs are asked for at once.
const WINDOW: Limit = Limit::new(500, 10_000);
/// How long a node that did not know a tag is not asked for it again.
const TAGS_EVERY: Duration = Duration::from_secs(3_600);

/// A method and its parameters.
pub type Call = (&'static str, Value);
/// What a node answers to one call of a batch.
pub type RpcAnswer = Result<Box<RawValue>, RpcError>;

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(default)]
    id: Option<usize>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ReplyError>,
}

#[derive(Deserialize)]
struct ReplyError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

impl ReplyError {
    /// Some nodes refuse a batch that is too long once for each of its calls.
    fn is_about_batch(&self) -> bool {
        self.code == -32014 || self.message.to_lowercase().contains("batch")
    }
}

/// One node, or many behind one URL.
pub struct Provider {
    pub index: usize,
    /// The name that people may read.
    pub name: String,
    network: Network,
    url: Url,
    headers: HeaderMap,
    client: Client,
    /// Parts of the URL and of the headers that give access to the node.
    secrets: Vec<String>,
    health: Mutex<Health>,
    batch: Mutex<Limit>,
    window: Mutex<Limit>,
    /// Block tags that the node does not know, and when it was last asked.
    lacks: Mutex<HashMap<&'static str, Instant>>,
}

impl Provider {
    pub fn new(
        network: Network,
        index: usize,
        url: &str,
        header: Option<(&'static str, &str)>,
    ) -> Result<Provider, Trouble> {
        let name = format!("node {}", index + 1);
        let wrong = |what: &str| Trouble::new(format_args!("{name} of {}: {what}", network.as_str()));
        let url: Url = url.parse().map_err(|_| wrong("its URL cannot be read"))?;
        let mut headers = HeaderMap::new();
        let mut secrets = secrets_of(&url);
        if let Some((header, key)) = header {
            let mut value =
                HeaderValue::from_str(key).map_err(|_| wrong("its API key cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(header), value);
            secrets.push(key.to_string());
        }
        // The longest first: replacing a shorter one inside it would leave a rest that is not recognised.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let client = client(&url, TIMEOUT).map_err(|error| wrong(&error.without_url().to_string()))?;
        Ok(Provider {
            index,
            name,
            network,
            url,
            headers,
            client,
            secrets,
            health: Mutex::default(),
            batch: Mutex::new(BATCH),
            window: Mutex::new(WINDOW),
            lacks: Mutex::default(),
        })
    }

    /// The answers in the order of the calls, in as many requests as the node wants.
    pub async fn call(&self, calls: &[Call]) -> Result<Vec<RpcAnswer>, RpcError> {
        let mut answers = Vec::with_capacity(calls.len());
        while answers.len() < calls.len() {
            let rest = &calls[answers.len()..];
            let asked = (rest.len() as i64).min(lock(&self.batch).size());
            match self.send(&rest[..asked as usize]).await {
                Ok(some) => {
                    lock(&self.batch).worked(asked);
                    answers.extend(some);
                }
                // Whatever the reason, the node may accept fewer calls at a time; a refused single call is final.
                Err(RpcError::TooMuch(_) | RpcError::Refused(..)) if asked > 1 => {
                    lock(&self.batch).shrink(asked)
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    /// One request: a batch, or a single call by itself, as some nodes want it.
    async fn send(&self, calls: &[Call]) -> Result<Vec<RpcAnswer>, RpcError> {
        let mut batch: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(id, (method, params))| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .collect();
        let body = if batch.len() == 1 { batch.swap_remove(0) } else { Value::Array(batch) };
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).json(&body);
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::FORBIDDEN | StatusCode::SERVICE_UNAVAILABLE => {
                return Err(RpcError::Busy(format!("HTTP {}", status.as_u16()), retry_after));
            }
            StatusCode::PAYLOAD_TOO_LARGE => return Err(RpcError::TooMuch("HTTP 413".into())),
            _ => {}
        }
        let body = self.read(response).await?;
        let replies = match serde_json::from_slice::<Vec<Reply>>(&body) {
            Ok(replies) => replies,
            Err(error) => self.single(status, &body, &error, calls.len() == 1)?,
        };
        if !status.is_success() {
            return Err(RpcError::Unreachable(format!("HTTP {}", status.as_u16())));
        }
        let mut answers: Vec<Option<RpcAnswer>> = calls.iter().map(|_| None).collect();
        for reply in replies {
            let Some(place) = reply.id.and_then(|id| answers.get_mut(id)) else { continue };
            let answer = match reply.error {
                Some(error) if calls.len() > 1 && error.is_about_batch() => {
                    return Err(RpcError::TooMuch(self.clean(&error.message)));
                }
                Some(error) => Err(self.refusal(error)),
                None => Ok(reply.result.unwrap_or(RawValue::NULL).to_owned()),
            };
            if place.replace(answer).is_some() {
                return Err(RpcError::Unreadable("an answer came twice".into()));
            }
        }
        let missing = || RpcError::Unreadable("an answer is missing from the batch".into());
        answers.into_iter().map(|answer| answer.ok_or_else(missing)).collect()
    }

    /// Like `call`, but one refused call fails all of them.
    pub async fn call_all(&self, calls: &[Call]) -> Result<Vec<Box<RawValue>>, RpcError> {
        self.call(calls).await?.into_iter().collect()
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, RpcError> {
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            if body.len() + part.len() > LARGEST_ANSWER {
                return Err(RpcError::TooMuch(format!("the answer is over {} MiB", LARGEST_ANSWER >> 20)));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    /// Reads a single object: the answer to a single call, or a node's refusal of a whole batch.
    fn single<'a>(
        &self,
        status: StatusCode,
        body: &'a [u8],
        error: &serde_json::Error,
        wanted: bool,
    ) -> Result<Vec<Reply<'a>>, RpcError> {
        match serde_json::from_slice::<Reply>(body) {
            Ok(reply) if wanted && reply.id.is_some() && status.is_success() => Ok(vec![reply]),
            Ok(Reply { error: Some(error), .. }) => Err(self.refusal(error)),
            _ if !status.is_success() => Err(RpcError::Unreachable(format!("HTTP {}", status.as_u16()))),
            _ => Err(RpcError::Unreadable(self.clean(&error.to_string()))),
        }
    }

    fn unreachable(&self, error: reqwest::Error) -> RpcError {
        if error.is_timeout() {
            return RpcError::TimedOut;
        }
        let error = error.without_url();
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            text = deeper.to_string();
            cause = deeper.source();
        }
        RpcError::Unreachable(self.clean(&text))
    }

    fn refusal(&self, error: ReplyError) -> RpcError {
        let said = error.message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let message = self.clean(&error.message);
        // Both kinds of limit share a code and half their words; only these words mean a limit over time.
        if says(&["rate limit", "too many requests", "request count", "per second", "capacity"]) {
            return RpcError::Busy(message, None);
        }
        if [-32005, 413].contains(&error.code)
            || says(&["range", "more than", "limit exceeded", "exceeds max", "response size", "too many"])
        {
            return RpcError::TooMuch(message);
        }
        RpcError::Refused(error.code, message)
    }

    /// Short, on one line, and without secrets.
    fn clean(&self, text: &str) -> String {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(2_000).collect();
        let text = self.secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "…"));
        text.chars().take(160).collect()
    }

    /// How many blocks the node lets us ask for.
    pub fn window(&self) -> MutexGuard<'_, Limit> {
        lock(&self.window)
    }

    /// Whether it is worth asking the node for this tag.
    pub fn may_know(&self, tag: &str) -> bool {
        lock(&self.lacks).get(tag).is_none_or(|since| since.elapsed() > TAGS_EVERY)
    }

    pub fn lacks(&self, tag: &'static str) {
        lock(&self.lacks).insert(tag, Instant::now());
    }

    /// Whether the node may be asked now.
    pub fn is_ready(&self) -> bool {
        lock(&self.health).is_ready(Instant::now(), TIMEOUT)
    }

    /// The lower, the sooner the node is asked; true for one that was wrong lately.
    pub fn rank(&self) -> (bool, u32) {
        lock(&self.health).rank(Instant::now())
    }

    pub fn demotion(&self) -> Option<Demotion> {
        lock(&self.health).demotion().cloned()
    }

    pub fn succeeded(&self) {
        if lock(&self.health).succeeded(Instant::now()) {
            tracing::info!(
                network = self.network.as_str(),
                node = self.name,
                "the node counts like the others again"
            );
            self.tell(None);
        }
    }

    pub fn failed(&self, error: &RpcError) {
        counter!("simgate_provider_errors_total", "network" => self.network.as_str(), "node" => self.name.clone())
            .increment(1);
        let silent = lock(&self.health).disappointed(error.is_outage());
        let (demerit, least) = match error {
            RpcError::Busy(_, seconds) => (Demerit::Busy, Duration::from_secs(seconds.unwrap_or(1))),
            RpcError::Foreign(_) => (Demerit::Foreign, Duration::ZERO),
            _ if silent => (Demerit::Silent, Duration::ZERO),
            _ => return,
        };
        self.demote_for(demerit, error.to_string(), least);
    }

    /// The node was wrong: it is asked last for a while.
    pub fn demote(&self, demerit: Demerit, said: impl fmt::Display) {
        self.demote_for(demerit, said.to_string(), Duration::ZERO);
    }

    fn demote_for(&self, demerit: Demerit, said: String, least: Duration) {
        let demoted = lock(&self.health).demote(Instant::now(), demerit, said.clone(), least);
        // Logged once for each demotion: a line for every try would bury everything else.
        if demoted {
            let (network, why) = (self.network.as_str(), demerit.as_str());
            tracing::warn!(network, node = self.name, why, "a node is demoted: it {said}");
            self.tell(Some(demerit));
        }
    }

    fn tell(&self, now: Option<Demerit>) {
        for demerit in Demerit::ALL {
            gauge!("simgate_node_demoted", "network" => self.network.as_str(), "node" => self.name.clone(),
                "why" => demerit.as_str())
            .set(f64::from(now == Some(demerit)));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything in a URL that may be a key: all but the host's name.
fn secrets_of(url: &Url) -> Vec<String> {
    let parts = url.path_segments().into_iter().flatten().map(str::to_string);
    let pairs = url.query_pairs().map(|(_, value)| value.into_owned());
    let login = [url.username().to_string(), url.password().unwrap_or_default().to_string()];
    let all = parts.chain(pairs).chain(login).chain([url.to_string(), url.path().to_string()]);
    // Shorter ones are words such as "v2", which occur in innocent text.
    all.filter(|part| part.len() >= 6).collect()
}

/// Builds a client that never carries a key to another host.
pub(crate) fn client(url: &Url, timeout: Duration) -> reqwest::Result<Client> {
    // The first provider that is installed stays, and any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .timeout(timeout)
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would carry the key to somewhere else.
        .redirect(redirect::Policy::none())
        .user_agent("simgate");
    match url.scheme() {
        // A local node must not fail because the machine has no certificates.
        "http" => builder.tls_certs_only([]).build(),
        _ => builder.build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(url: &str) -> Provider {
        Provider::new(Network::Polygon, 1, url, Some(("tron-pro-api-key", "header-key-123"))).unwrap()
    }

    #[test]
    fn keys_are_cut_out_of_what_nodes_say() {
        let node = provider("https://someone:pass-word@node.example/v2/key_abcdef?token=tok-998877");
        let said = "no key_abcdef, tok-998877,\npass-word or header-key-123 at https://someone:pass-word@node.example/v2/key_abcdef?token=tok-998877 in v2";
        assert_eq!(node.clean(said), "no …, …, … or … at … in v2");
        assert_eq!(node.name, "node 2");
    }

    #[test]
    fn refusals_are_sorted_by_what_to_do() {
        let node = provider("http://127.0.0.1:1");
        let sort = |code: i64, message: &str| node.refusal(ReplyError { code, message: message.into() });
        for (code, message) in [
            (-32005, "query returned more than 10000 results"),
            (-32602, "eth_getLogs is limited to a 10,000 range"),
            (-32602, "query exceeds max results 20000"),
            (-32000, "Log response size exceeded"),
            (-32000, "exceed max block range: 5000"),
        ] {
            assert_eq!(sort(code, message), RpcError::TooMuch(message.into()));
        }
        let slow = "daily request count exceeded, request rate limited";
        assert_eq!(sort(-32005, slow), RpcError::Busy(slow.into(), None));
        for (code, message) in [(-32601, "the method does not exist"), (-32602, "TAG safe not supported")] {
            assert_eq!(sort(code, message), RpcError::Refused(code, message.into()));
        }
    }
}
