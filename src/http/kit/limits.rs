//! Rate limits, in memory: per key on the partner API, per token for agents, per client elsewhere. A client is an IPv4
//! address or an IPv6 /64; the /56 and the /48 around it have limits too, because the owner of such a network has as
//! many clients as it likes. Answers say how much is left. `LookUps` limits how often unknown tokens are looked up.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use crate::config::{RateLimit, Settings};
use crate::domain::client::{self, Shares, Width};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;

type Limiter<K> = RateLimiter<K, DefaultKeyedStateStore<K>, DefaultClock, StateInformationMiddleware>;

struct Limit<K: Hash + Eq + Clone> {
    limiter: Limiter<K>,
    policy: HeaderValue,
}

/// How many times as much as one client a wider network may do. So one client does not use up what its neighbours may
/// do, and the owner of a whole network is limited too.
const TIMES: Shares = Shares { client: 1, site: 4, area: 16 };

pub struct Limits {
    keys: Option<Limit<String>>,
    tokens: Option<Limit<String>>,
    clients: Option<Limit<IpAddr>>,
    sites: Option<Limit<IpAddr>>,
    areas: Option<Limit<IpAddr>>,
    look_ups: Option<LookUps>,
    clock: DefaultClock,
}

/// How much a caller has left, for the response.
#[derive(Clone)]
pub struct Allowance {
    policy: HeaderValue,
    left: u32,
}

/// What is left to whoever is within a limit, and the refusal of whoever is not. `None`: there is no limit.
pub type Checked = Result<Option<Allowance>, (Refusal, Allowance)>;

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

/// What a network of this width may do.
fn widened(setting: Option<RateLimit>, width: Width) -> Option<RateLimit> {
    let times = u32::try_from(TIMES.of(width)).ok()?;
    let RateLimit { per_second, burst } = setting?;
    Some(RateLimit { per_second: per_second.saturating_mul(times), burst: burst.saturating_mul(times) })
}

impl Limits {
    pub fn new(settings: &Settings) -> Limits {
        Limits {
            keys: limit(settings.key_limit),
            tokens: limit(settings.logins.token_limit),
            clients: limit(widened(settings.ip_limit, Width::Client)),
            sites: limit(widened(settings.ip_limit, Width::Site)),
            areas: limit(widened(settings.ip_limit, Width::Area)),
            look_ups: settings.ip_limit.map(LookUps::new),
            clock: DefaultClock::default(),
        }
    }

    pub fn by_key(&self, key: &String) -> Checked {
        self.check(self.keys.as_ref(), key)
    }

    pub fn by_token(&self, token: &str) -> Checked {
        self.check(self.tokens.as_ref(), &token.to_string())
    }

    /// Counts in every network that the address is in, the narrowest first: a refused request does not count against
    /// the client's neighbours. The allowance is that of the network that has the least left.
    pub fn by_address(&self, address: IpAddr) -> Checked {
        let mut tightest: Option<Allowance> = None;
        for (width, network) in client::networks(address).into_iter().rev() {
            let limit = match width {
                Width::Client => &self.clients,
                Width::Site => &self.sites,
                Width::Area => &self.areas,
            };
            if let Some(allowance) = self.check(limit.as_ref(), &network)?
                && tightest.as_ref().is_none_or(|least| allowance.left < least.left)
            {
                tightest = Some(allowance);
            }
        }
        Ok(tightest)
    }

    /// Counts the look-up of a token that this process does not know, before it is made.
    pub fn may_look_up(&self, from: IpAddr, now: Time) -> Result<(), Refusal> {
        match &self.look_ups {
            Some(look_ups) if !look_ups.take(from, now) => Err(Refusal::RateLimited { retry_after_secs: 1 }),
            Some(_) | None => Ok(()),
        }
    }

    /// Takes that count back: the token is good.
    pub fn was_known(&self, from: IpAddr) {
        if let Some(look_ups) = &self.look_ups {
            look_ups.give_back(from);
        }
    }

    fn check<K: Hash + Eq + Clone>(&self, limit: Option<&Limit<K>>, key: &K) -> Checked {
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
    pub fn forget_quiet(&self, now: Time) {
        if let Some(look_ups) = &self.look_ups {
            look_ups.forget_quiet(now);
        }
        for keyed in [&self.keys, &self.tokens].into_iter().flatten() {
            keyed.limiter.retain_recent();
        }
        for keyed in [&self.clients, &self.sites, &self.areas].into_iter().flatten() {
            keyed.limiter.retain_recent();
        }
    }
}

/// Limits how often an address makes us look up tokens that this process does not know. It is a limit of its own and
/// comes before the look-up: made-up tokens cannot overload the database, nor hold up other requests of their address.
/// Good tokens cost nothing, so a host that speaks for many people can bring as many of them as it has.
struct LookUps {
    each_micros: i64,
    burst: i64,
    /// When each network will have its whole allowance again, by the database's clock.
    unused_at: Mutex<HashMap<(Width, IpAddr), i64>>,
}

impl LookUps {
    fn new(setting: RateLimit) -> LookUps {
        let each_micros = 1_000_000 / i64::from(setting.per_second.max(1));
        LookUps { each_micros, burst: i64::from(setting.burst.max(1)), unused_at: Mutex::default() }
    }

    /// What one look-up costs a network of this width, in time.
    fn cost(&self, width: Width) -> i64 {
        (self.each_micros / TIMES.of(width)).max(1)
    }

    /// When a network that has none left now would have its whole allowance again.
    fn latest(&self, width: Width, now: i64) -> i64 {
        now + self.cost(width) * self.burst * TIMES.of(width)
    }

    /// False when one of the networks has none left.
    fn take(&self, from: IpAddr, now: Time) -> bool {
        let now = now.micros();
        let mut unused_at = self.unused_at.lock().unwrap_or_else(PoisonError::into_inner);
        let networks = client::networks(from);
        for network in &networks {
            // A clock that was set back must not lock anybody out.
            let at = unused_at.entry(*network).or_insert(now);
            *at = (*at).clamp(now, self.latest(network.0, now));
        }
        let passes = networks.iter().all(|network| {
            let at = unused_at.get(network).copied().unwrap_or(now);
            at + self.cost(network.0) <= self.latest(network.0, now)
        });
        if passes {
            for network in &networks {
                unused_at.entry(*network).and_modify(|at| *at += self.cost(network.0));
            }
        }
        passes
    }

    fn forget_quiet(&self, now: Time) {
        let mut unused_at = self.unused_at.lock().unwrap_or_else(PoisonError::into_inner);
        unused_at.retain(|_, at| *at > now.micros());
    }

    fn give_back(&self, from: IpAddr) {
        let mut unused_at = self.unused_at.lock().unwrap_or_else(PoisonError::into_inner);
        for network in client::networks(from) {
            if let Some(at) = unused_at.get_mut(&network) {
                *at -= self.cost(network.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::from_micros(1_000_000_000_000).plus_millis(millis)
    }

    fn address(site: u16, client: u16, host: u16) -> IpAddr {
        format!("2001:db8:1:{:x}::{host:x}", site << 8 | client).parse().unwrap()
    }

    #[test]
    fn look_ups_are_shared_by_a_network_and_given_back() {
        let look_ups = LookUps::new(RateLimit { per_second: 10, burst: 20 });
        let count =
            |from: &dyn Fn(u16) -> IpAddr, now| (0..1_000).filter(|n| look_ups.take(from(*n), now)).count();
        assert_eq!(count(&|host| address(0, 0, host), at(0)), 20, "a /64");
        assert_eq!(count(&|client| address(0, client % 256, 0), at(0)), 60, "the rest of its /56");
        assert_eq!(count(&|n| address(n % 256, n % 256, 0), at(0)), 240, "the rest of its /48");
        assert_eq!(count(&|_| "192.0.2.7".parse().unwrap(), at(0)), 20);
        assert_eq!(count(&|_| "192.0.2.8".parse().unwrap(), at(0)), 20, "a neighbour");
        assert_eq!(count(&|_| "192.0.2.8".parse().unwrap(), at(500)), 5, "half a second later");
        for _ in 0..1_000 {
            assert!(look_ups.take("192.0.2.9".parse().unwrap(), at(500)));
            look_ups.give_back("192.0.2.9".parse().unwrap());
        }
        assert_eq!(count(&|_| "192.0.2.7".parse().unwrap(), at(-3_600_000)), 0, "the clock was set back");
        assert_eq!(count(&|_| "192.0.2.7".parse().unwrap(), at(-3_600_000 + 2_000)), 20);
    }

    #[test]
    fn quiet_networks_are_forgotten() {
        let look_ups = LookUps::new(RateLimit { per_second: 10, burst: 20 });
        for (n, millis) in [(1, 0), (2, 0), (3, 950)] {
            assert!(look_ups.take(std::net::Ipv4Addr::from(n).into(), at(millis)));
        }
        look_ups.forget_quiet(at(1_000));
        assert_eq!(look_ups.unused_at.lock().unwrap().len(), 1);
    }

    #[test]
    fn what_a_client_is_refused_costs_its_neighbours_nothing() {
        let setting = Some(RateLimit { per_second: 1, burst: 10 });
        let limits = Limits {
            keys: None,
            tokens: None,
            clients: limit(widened(setting, Width::Client)),
            sites: limit(widened(setting, Width::Site)),
            areas: limit(widened(setting, Width::Area)),
            look_ups: None,
            clock: DefaultClock::default(),
        };
        let passed =
            |from: &dyn Fn(u16) -> IpAddr| (0..500).filter(|n| limits.by_address(from(*n)).is_ok()).count();
        // At least the burst of each; what comes back while this test runs is not counted exactly.
        assert!((10..400).contains(&passed(&|host| address(0, 0, host))));
        assert!((10..400).contains(&passed(&|host| address(0, 1, host))), "a neighbour");
        assert!((20..400).contains(&passed(&|n| address(0, 2 + n % 200, 0))), "what is left of the /56");
        assert!(
            (120..400).contains(&passed(&|n| address(1 + n % 255, n % 256, 0))),
            "what is left of the /48"
        );
        let left = |from| limits.by_address(from).map(|allowance| allowance.map(|allowance| allowance.left));
        assert!(matches!(left("192.0.2.7".parse().unwrap()), Ok(Some(9))));
    }
}
