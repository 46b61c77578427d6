//! The access token: kept in memory, and renewed after a day or when it is refused. Those who need a new one at the same
//! time wait for one renewal. It may be asked for three times a minute.

use std::collections::VecDeque;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::shapes::{AccessToken, Envelope};
use super::signature;
use crate::supplier::wire::{Lost, Reply, Wire};

/// It lives for 24 hours, whatever the answer says about a year.
const AGE: Duration = Duration::from_secs(23 * 3600 + 50 * 60);
const MINUTE: Duration = Duration::from_secs(60);
const A_MINUTE: usize = 3;

pub struct Tokens {
    client: SecretString,
    secret: SecretString,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    token: Option<Token>,
    /// When it was asked for in the last minute.
    asked: VecDeque<Instant>,
    renewals: u64,
}

#[derive(Clone)]
pub struct Token {
    pub text: SecretString,
    /// Which renewal brought it.
    pub renewal: u64,
    since: Instant,
}

impl Token {
    fn is_good(&self, now: Instant, refused: Option<u64>) -> bool {
        now.duration_since(self.since) < AGE && Some(self.renewal) != refused
    }
}

impl Tokens {
    pub fn new(client: SecretString, secret: SecretString) -> Tokens {
        Tokens { client, secret, kept: Mutex::default() }
    }

    pub fn secret(&self) -> &str {
        self.secret.expose_secret()
    }

    /// The token to use; not the one of the renewal that was refused. Without one nothing else can be sent, so every
    /// failure is `NotSent`.
    pub async fn current(&self, wire: &Wire, refused: Option<u64>) -> Result<Token, Lost> {
        let mut kept = self.kept.lock().await;
        let now = Instant::now();
        if let Some(token) = kept.token.as_ref().filter(|token| token.is_good(now, refused)) {
            return Ok(token.clone());
        }
        kept.asked.retain(|at| now.duration_since(*at) < MINUTE);
        if kept.asked.len() >= A_MINUTE {
            return Err(Lost::NotSent("a token may be asked for three times a minute, and was".into()));
        }
        kept.asked.push_back(now);
        let text =
            self.fetch(wire).await.map_err(|why| Lost::NotSent(format!("there is no token: {why}")))?;
        kept.renewals += 1;
        let token = Token { text, renewal: kept.renewals, since: now };
        kept.token = Some(token.clone());
        Ok(token)
    }

    /// The fields go as a form, and are signed as JSON.
    async fn fetch(&self, wire: &Wire) -> Result<SecretString, String> {
        let (client, secret) = (self.client.expose_secret(), self.secret.expose_secret());
        let fields = [("client_id", client), ("client_secret", secret), ("grant_type", "client_credentials")];
        let members: Vec<String> =
            fields.iter().map(|(name, value)| format!("{}:{}", json!(name), json!(value))).collect();
        let signed = signature::sign(secret, &format!("{{{}}}", members.join(",")));
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let told = |lost| match lost {
            Lost::NotSent(why) | Lost::Doubt(why) => why,
        };
        let request = wire.post("v2/token").map_err(told)?;
        let request = request
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded")
            .header("airalo-signature", signed)
            .body(form);
        let Reply { status, body, .. } = wire.send(request).await.map_err(told)?;
        if status.as_u16() != 200 {
            // What they say may hold what we sent.
            return Err(format!("the answer was {}", status.as_u16()));
        }
        let answer: Envelope<AccessToken> =
            serde_json::from_slice(&body).map_err(|_| "the answer cannot be read")?;
        let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        Some(answer.data.access_token)
            .filter(|text| is_plain(text))
            .map(SecretString::from)
            .ok_or("the token cannot be sent".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_less_than_a_day_and_until_it_is_refused() {
        let since = Instant::now();
        let token = Token { text: "t".into(), renewal: 2, since };
        let hours = |hours: u64| since + Duration::from_secs(hours * 3600);
        assert!(token.is_good(hours(0), None) && token.is_good(hours(23), Some(1)));
        assert!(!token.is_good(hours(24), None) && !token.is_good(hours(0), Some(2)));
    }
}
