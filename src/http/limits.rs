//! Rate limits, in memory: per key on the partner API, per token for agents, per address elsewhere. Answers say how much is left.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use crate::config::{RateLimit, Settings};
use crate::domain::refusal::Refusal;

type Limiter<K> = RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock, StateInformationMiddleware>;

struct Limit<K: Hash + Eq + Clone> {
    limiter: Limiter<K>,
    policy: HeaderValue,
}

pub struct Limits {
    keys: Option<Limit<String>>,
    tokens: Option<Limit<String>>,
    addresses: Option<Limit<IpAddr>>,
    clock: DefaultClock,
}

/// How much a caller has left, for the response.
#[derive(Clone)]
pub struct Allowance {
    policy: HeaderValue,
    left: u32,
}

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEFT: HeaderName = HeaderName::from_static("ratelimit");

impl Allowance {
    pub fn write(&self, headers: &mut HeaderMap) {
        headers.insert(POLICY, self.policy.clone());
        if let Ok(value) = HeaderValue::try_from(format!("\"default\";r={};t=1", self.left)) {
            headers.insert(LEFT, value);
        }
    }
}

fn limit<K: Hash + Eq + Clone>(setting: Option<RateLimit>) -> Option<Limit<K>> {
    let setting = setting?;
    let (per_second, burst) = (NonZeroU32::new(setting.per_second)?, NonZeroU32::new(setting.burst)?);
    let quota = Quota::per_second(per_second).allow_burst(burst);
    let window = setting.burst.div_ceil(setting.per_second);
    let policy = HeaderValue::try_from(format!("\"default\";q={};w={window}", setting.burst)).ok()?;
    Some(Limit { limiter: RateLimiter::keyed(quota).with_middleware(), policy })
}

impl Limits {
    pub fn new(settings: &Settings) -> Limits {
        Limits {
            keys: limit(settings.key_limit),
            tokens: limit(settings.logins.token_limit),
            addresses: limit(settings.ip_limit),
            clock: DefaultClock::default(),
        }
    }

    pub fn by_key(&self, key: &String) -> Result<Option<Allowance>, (Refusal, Allowance)> {
        self.check(self.keys.as_ref(), key)
    }

    pub fn by_token(&self, token: &str) -> Result<Option<Allowance>, (Refusal, Allowance)> {
        self.check(self.tokens.as_ref(), &token.to_string())
    }

    pub fn by_address(&self, address: IpAddr) -> Result<Option<Allowance>, (Refusal, Allowance)> {
        self.check(self.addresses.as_ref(), &address)
    }

    fn check<K: Hash + Eq + Clone>(
        &self,
        limit: Option<&Limit<K>>,
        key: &K,
    ) -> Result<Option<Allowance>, (Refusal, Allowance)> {
        let Some(limit) = limit else { return Ok(None) };
        match limit.limiter.check_key(key) {
            Ok(state) => {
                Ok(Some(Allowance { policy: limit.policy.clone(), left: state.remaining_burst_capacity() }))
            }
            Err(not_until) => {
                let wait = not_until.wait_time_from(self.clock.now());
                let refusal = Refusal::RateLimited { retry_after_secs: wait.as_secs().max(1) };
                Err((refusal, Allowance { policy: limit.policy.clone(), left: 0 }))
            }
        }
    }

    /// Forgets callers that have been quiet; without this, every address ever seen would be kept.
    pub fn forget_quiet(&self) {
        for keyed in [&self.keys, &self.tokens].into_iter().flatten() {
            keyed.limiter.retain_recent();
        }
        if let Some(addresses) = &self.addresses {
            addresses.limiter.retain_recent();
        }
    }
}
