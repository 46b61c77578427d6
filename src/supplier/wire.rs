//! HTTP to a supplier: one request, in its turn, with an answer of bounded size. It tells a request that never left us
//! from one whose fate is unknown. Credentials are in no error or log.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder, StatusCode, Url, redirect};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(60);
/// A whole catalog with all its networks is some ten megabytes.
const LARGEST_ANSWER: usize = 64 << 20;

/// Gives turns, so that all instances together keep to a supplier's rate.
pub trait Pace: Send + Sync {
    /// Waits for a turn. `Err` says why there is none: nothing may be sent then.
    fn turn(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;
}

/// A supplier's address, and our turn to use it.
pub struct Wire {
    client: Client,
    base: Url,
    pace: Arc<dyn Pace>,
}

/// What came back, whatever its status.
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Why there is no reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Lost {
    /// The request certainly never left us.
    NotSent(String),
    Doubt(String),
}

impl Wire {
    pub fn new(base: &str, pace: Arc<dyn Pace>) -> Result<Wire, String> {
        // Paths are joined to it: without a slash its last part would be lost.
        let base: Url = format!("{}/", base.trim_end_matches('/'))
            .parse()
            .map_err(|_| "the supplier's URL cannot be read".to_string())?;
        // The first provider that is installed stays, and any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would carry credentials to somewhere else.
            .redirect(redirect::Policy::none())
            .user_agent("simgate");
        let built = match base.scheme() {
            // A local supplier must not fail because the machine has no certificates.
            "http" => builder.tls_certs_only([]).build(),
            _ => builder.build(),
        };
        let client = built.map_err(|error| error.without_url().to_string())?;
        Ok(Wire { client, base, pace })
    }

    /// A request to a path below the supplier's address.
    pub fn post(&self, path: &str) -> Result<RequestBuilder, Lost> {
        Ok(self.client.post(self.url(path)?))
    }

    pub fn get(&self, path: &str) -> Result<RequestBuilder, Lost> {
        Ok(self.client.get(self.url(path)?))
    }

    fn url(&self, path: &str) -> Result<Url, Lost> {
        let joined = self.base.join(path.trim_start_matches('/'));
        joined.map_err(|_| Lost::NotSent(format!("{path} is no path of the supplier")))
    }

    /// Waits for a turn, sends, and reads the answer.
    pub async fn send(&self, request: RequestBuilder) -> Result<Reply, Lost> {
        self.pace.turn().await.map_err(Lost::NotSent)?;
        let sent = request.send().await;
        let mut response = sent.map_err(|error| match error.is_connect() || error.is_builder() {
            true => Lost::NotSent(cause(error)),
            false => Lost::Doubt(cause(error)),
        })?;
        let (status, headers, mut body) = (response.status(), response.headers().clone(), Vec::new());
        loop {
            match response.chunk().await {
                Ok(Some(part)) if body.len() + part.len() <= LARGEST_ANSWER => body.extend_from_slice(&part),
                Ok(Some(_)) => return Err(Lost::Doubt("the answer is too large".into())),
                Ok(None) => return Ok(Reply { status, headers, body }),
                Err(error) => return Err(Lost::Doubt(cause(error))),
            }
        }
    }
}

/// The innermost reason, such as "connection refused", without the address.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut reason: &dyn std::error::Error = &error;
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    match error.is_timeout() {
        true => "no answer in time".into(),
        false => reason.to_string(),
    }
}
