//! A thin JSON-RPC client: one batch to one node, its answers or what went wrong, sorted by what to do about it.
//! It remembers how a node fares, so that a dead one is left alone for a while. A node's URL often holds an API
//! key: nodes are called "node 1" and "node 2", and what they say is stripped of it before anybody reads it.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics::counter;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Trouble;
use crate::domain::network::Network;

const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// More than any provider sends in one answer; a node that goes on and on shall not fill our memory.
const LARGEST_ANSWER: usize = 160 << 20;
/// So many failures in a row, and the node is left alone: first this long, then twice as long each time.
const PATIENCE: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A head that has not moved for so long makes one look at another node's.
const STANDSTILL: Duration = Duration::from_secs(30);

/// A method and its parameters.
pub type Call = (&'static str, Value);
/// What a node says to one call of a batch.
pub type Answer = Result<Box<RawValue>, RpcError>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RpcError {
    /// No connection, no answer in time, or none that is HTTP.
    Unreachable(String),
    TimedOut,
    /// The node wants to be left alone, for so many seconds when it says so.
    Busy(String, Option<u64>),
    /// Too many blocks or too large an answer: ask for less.
    TooMuch(String),
    /// It understood and said no.
    Refused(i64, String),
    /// Its answer cannot be read.
    Unreadable(String),
    /// Its answers do not fit together, or it lags behind: another node may know better.
    Doubtful(String),
}

impl RpcError {
    /// The node itself is ill; in all other cases it may be right about the next thing.
    fn is_outage(&self) -> bool {
        matches!(
            self,
            RpcError::Unreachable(_) | RpcError::TimedOut | RpcError::Busy(..) | RpcError::Unreadable(_)
        )
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RpcError::Unreachable(why) => write!(f, "cannot be reached: {why}"),
            RpcError::TimedOut => write!(f, "did not answer within {} s", TIMEOUT.as_secs()),
            RpcError::Busy(why, _) => write!(f, "wants to be left alone: {why}"),
            RpcError::TooMuch(why) => write!(f, "wants to be asked for less: {why}"),
            RpcError::Refused(code, why) => write!(f, "refused ({code}): {why}"),
            RpcError::Unreadable(why) => write!(f, "answered something unreadable: {why}"),
            RpcError::Doubtful(why) => f.write_str(why),
        }
    }
}

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

/// One node, or many behind one URL.
pub struct Provider {
    pub index: usize,
    /// What people may read.
    pub name: String,
    network: Network,
    url: Url,
    headers: HeaderMap,
    client: Client,
    /// Parts of the URL and of the headers that open the node's door.
    secrets: Vec<String>,
    health: Mutex<Health>,
}

#[derive(Default)]
struct Health {
    /// In a row, of any sort: the lower, the sooner a node is asked.
    disappointments: u32,
    /// In a row, those for which a node is left alone.
    outages: u32,
    pause: Duration,
    resting_until: Option<Instant>,
    head: Option<(i64, Instant)>,
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
        // The longest first: what is left of a longer one would not be recognised.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let client = client(&url, TIMEOUT).map_err(|error| wrong(&error.without_url().to_string()))?;
        Ok(Provider { index, name, network, url, headers, client, secrets, health: Mutex::default() })
    }

    /// The answers in the order of the calls, whatever the order in which they came.
    pub async fn call(&self, calls: &[Call]) -> Result<Vec<Answer>, RpcError> {
        let batch: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(id, (method, params))| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .collect();
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).json(&batch);
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
            Err(error) => return Err(self.no_batch(status, &body, &error)),
        };
        if !status.is_success() {
            return Err(RpcError::Unreachable(format!("HTTP {}", status.as_u16())));
        }
        let mut answers: Vec<Option<Answer>> = calls.iter().map(|_| None).collect();
        for reply in replies {
            let Some(place) = reply.id.and_then(|id| answers.get_mut(id)) else { continue };
            *place = Some(match reply.error {
                Some(error) => Err(self.refusal(error)),
                None => Ok(reply.result.unwrap_or(RawValue::NULL).to_owned()),
            });
        }
        let missing = || RpcError::Unreadable("an answer is missing from the batch".into());
        answers.into_iter().map(|answer| answer.ok_or_else(missing)).collect()
    }

    /// As `call`, where one refusal spoils all.
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

    /// A node that cannot serve a batch as a whole says so in one object, some with an HTTP error.
    fn no_batch(&self, status: StatusCode, body: &[u8], error: &serde_json::Error) -> RpcError {
        match serde_json::from_slice::<Reply>(body) {
            Ok(Reply { error: Some(error), .. }) => self.refusal(error),
            _ if !status.is_success() => RpcError::Unreachable(format!("HTTP {}", status.as_u16())),
            _ => RpcError::Unreadable(self.clean(&error.to_string())),
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
        // Both kinds of limit share a code and half their words; only these tell that the clock is meant.
        if says(&["rate limit", "too many requests", "request count", "per second", "capacity"]) {
            return RpcError::Busy(message, None);
        }
        if [-32005, -32602, 413].contains(&error.code)
            || says(&["range", "more than", "limit exceeded", "response size", "too many"])
        {
            return RpcError::TooMuch(message);
        }
        RpcError::Refused(error.code, message)
    }

    /// Short, on one line, and without anything that opens a door.
    fn clean(&self, text: &str) -> String {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(2_000).collect();
        let text = self.secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "…"));
        text.chars().take(160).collect()
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it may be asked now. After its rest one caller is let through, and the others wait for what comes
    /// of it.
    pub fn is_ready(&self) -> bool {
        let mut health = self.health();
        let now = Instant::now();
        match health.resting_until {
            Some(until) if now < until => false,
            Some(_) => {
                health.resting_until = Some(now + TIMEOUT);
                true
            }
            None => true,
        }
    }

    /// How many times in a row it has disappointed.
    pub fn disappointments(&self) -> u32 {
        self.health().disappointments
    }

    pub fn succeeded(&self) {
        let mut health = self.health();
        if health.resting_until.is_some() {
            tracing::info!(network = self.network.as_str(), node = self.name, "the node is back");
        }
        *health = Health { head: health.head, ..Health::default() };
    }

    pub fn failed(&self, error: &RpcError) {
        counter!("simgate_provider_errors_total", "network" => self.network.as_str(), "node" => self.name.clone())
            .increment(1);
        let mut health = self.health();
        health.disappointments += 1;
        if !error.is_outage() {
            // It answered, so it is not resting any more.
            health.resting_until = None;
            return;
        }
        health.outages += 1;
        let asked_for = match error {
            RpcError::Busy(_, seconds) => Some(Duration::from_secs(seconds.unwrap_or(1))),
            _ => None,
        };
        if health.outages < PATIENCE && asked_for.is_none() {
            return;
        }
        let again = health.resting_until.is_some();
        health.pause =
            (health.pause * 2).max(FIRST_PAUSE).max(asked_for.unwrap_or_default()).min(LONGEST_PAUSE);
        health.resting_until = Some(Instant::now() + health.pause);
        if !again {
            tracing::warn!(network = self.network.as_str(), node = self.name, "the node rests: it {error}");
        }
    }

    /// Notes where its chain ends; true when that has been the same for suspiciously long.
    pub fn stands_still(&self, head: i64) -> bool {
        let mut health = self.health();
        match health.head {
            Some((known, since)) if known == head => since.elapsed() > STANDSTILL,
            _ => {
                health.head = Some((head, Instant::now()));
                false
            }
        }
    }
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

/// Asks whom the operator trusts with a key, and nobody else.
pub(crate) fn client(url: &Url, timeout: Duration) -> reqwest::Result<Client> {
    // Whoever installs one first wins, and any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .timeout(timeout)
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect would carry the key to somewhere else.
        .redirect(redirect::Policy::none())
        .user_agent("simgate");
    match url.scheme() {
        // A node next door must not fail because the machine has no certificates.
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
            (-32000, "Log response size exceeded"),
            (-32000, "exceed max block range: 5000"),
        ] {
            assert_eq!(sort(code, message), RpcError::TooMuch(message.into()));
        }
        let slow = "daily request count exceeded, request rate limited";
        assert_eq!(sort(-32005, slow), RpcError::Busy(slow.into(), None));
        assert_eq!(
            sort(-32601, "the method does not exist"),
            RpcError::Refused(-32601, "the method does not exist".into())
        );
    }

    #[test]
    fn a_dead_node_is_left_alone() {
        let node = provider("http://127.0.0.1:1");
        for _ in 0..PATIENCE - 1 {
            node.failed(&RpcError::TimedOut);
            assert!(node.is_ready());
        }
        node.failed(&RpcError::TimedOut);
        assert!(!node.is_ready());
        std::thread::sleep(FIRST_PAUSE);
        assert!(node.is_ready(), "one may try");
        assert!(!node.is_ready(), "and only one");
        node.failed(&RpcError::TimedOut);
        assert!(node.health().pause == FIRST_PAUSE * 2 && !node.is_ready());
        node.succeeded();
        assert!(node.is_ready() && node.disappointments() == 0);
        node.failed(&RpcError::Busy("HTTP 429".into(), Some(7)));
        assert!(node.health().pause == Duration::from_secs(7) && !node.is_ready());
    }
}
