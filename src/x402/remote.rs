//! A facilitator: somebody else who brings payments onto the chain. It is asked what it can do and told to settle;
//! it is not asked to verify, because asking gives the signature away and its answer would prove nothing. Its word
//! is a hint: our own view of the chain decides whether a payment arrived.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::{self, Requirements};
use crate::chain::{Trouble, rpc};
use crate::domain::authorization::Authorization;
use crate::domain::network::AddressKind;
use crate::domain::transfer::parse_tx_hash;

/// Facilitators answer when the transaction is in a block.
const TIMEOUT: Duration = Duration::from_secs(60);
/// For asking what it can do, which happens often and is not worth a long wait.
const SUPPORTED_TIMEOUT: Duration = Duration::from_secs(5);
const LARGEST_ANSWER: usize = 256 << 10;

pub struct Facilitator {
    url: Url,
    headers: HeaderMap,
    client: Client,
}

/// What a facilitator says about a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is in this transaction.
    Settled(String),
    /// It is not, for this reason. That does not make the signature unusable.
    Failed(String),
    /// No answer, or none that can be read.
    Doubt(String),
}

#[derive(Deserialize)]
struct Supported {
    kinds: Vec<Kind>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    #[serde(rename = "x402Version")]
    version: u32,
    scheme: String,
    network: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settlement {
    success: bool,
    #[serde(default)]
    transaction: String,
    error_reason: Option<String>,
}

impl Facilitator {
    pub fn new(url: &str, headers: &[(String, String)]) -> Result<Facilitator, Trouble> {
        let wrong = |what: &str| Trouble::new(format_args!("the facilitator's {what}"));
        // Joined below: a path without a slash at its end would lose its last part.
        let url: Url =
            format!("{}/", url.trim_end_matches('/')).parse().map_err(|_| wrong("URL cannot be read"))?;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::try_from(name).map_err(|_| wrong("header has a wrong name"))?;
            let mut value =
                HeaderValue::try_from(value).map_err(|_| wrong("header has a value that cannot be sent"))?;
            value.set_sensitive(true);
            map.insert(name, value);
        }
        let client = rpc::client(&url, TIMEOUT).map_err(|error| wrong(&error.without_url().to_string()))?;
        Ok(Facilitator { url, headers: map, client })
    }

    /// On which networks it settles, as CAIP-2 ids.
    pub async fn supported(&self) -> Result<Vec<String>, Trouble> {
        let wrong = |what: String| Trouble::new(format_args!("the facilitator {what}"));
        let request = self.client.get(self.at("supported")).headers(self.headers.clone());
        let request = request.timeout(SUPPORTED_TIMEOUT);
        let response = request.send().await.map_err(|error| wrong(unreachable(error)))?;
        if !response.status().is_success() {
            return Err(wrong(format!("answers HTTP {}", response.status().as_u16())));
        }
        let body = read(response).await.map_err(wrong)?;
        let supported: Supported =
            serde_json::from_slice(&body).map_err(|_| wrong("answers something unreadable".into()))?;
        let ours = |kind: &Kind| kind.version == wire::VERSION && kind.scheme == wire::SCHEME;
        Ok(supported.kinds.into_iter().filter(ours).map(|kind| kind.network).collect())
    }

    /// Gives it a payment to settle.
    pub async fn settle(&self, authorization: &Authorization, requirements: &Requirements) -> Said {
        let body = settlement_request(authorization, requirements);
        let request = self.client.post(self.at("settle")).headers(self.headers.clone()).json(&body);
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Said::Doubt(unreachable(error)),
        };
        let status = response.status();
        let body = match read(response).await {
            Ok(body) => body,
            Err(why) => return Said::Doubt(why),
        };
        match serde_json::from_slice::<Settlement>(&body) {
            Ok(Settlement { success: true, transaction, .. }) => {
                match parse_tx_hash(AddressKind::Evm, &transaction) {
                    Some(hash) => Said::Settled(hash),
                    None => Said::Doubt("names no transaction hash that can be read".into()),
                }
            }
            Ok(Settlement { error_reason, .. }) => {
                let why = error_reason.unwrap_or_else(|| "no reason".into());
                Said::Failed(why.chars().filter(|c| !c.is_control()).take(120).collect())
            }
            Err(_) => Said::Doubt(format!("answers HTTP {} and something unreadable", status.as_u16())),
        }
    }

    fn at(&self, path: &str) -> Url {
        self.url.join(path).expect("a plain word joins every URL")
    }
}

fn settlement_request(authorization: &Authorization, requirements: &Requirements) -> Value {
    let Authorization { id, pay_to, amount, valid_after, valid_before, signature, .. } = authorization;
    let seconds = |time: crate::domain::time::Time| (time.micros() / 1_000_000).to_string();
    let payload = json!({
        "signature": signature,
        "authorization": {
            "from": id.payer,
            "to": pay_to,
            "value": amount.micros().to_string(),
            "validAfter": seconds(*valid_after),
            "validBefore": seconds(*valid_before),
            "nonce": id.nonce,
        },
    });
    json!({
        "x402Version": wire::VERSION,
        "paymentPayload": {"x402Version": wire::VERSION, "accepted": requirements, "payload": payload},
        "paymentRequirements": requirements,
    })
}

async fn read(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(unreachable)? {
        if body.len() + part.len() > LARGEST_ANSWER {
            return Err("answers too much".into());
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

/// Without the URL, which may hold a key.
fn unreachable(error: reqwest::Error) -> String {
    if error.is_timeout() { "does not answer in time".into() } else { "cannot be reached".into() }
}
