//! Who is calling. Every instance keeps the live keys in memory. A change by any process is seen within a second; a
//! caller with a key that is not in memory waits for the next reload, so a new key works at once. A key that expires is in
//! memory with its end, and ends at that moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ipnet::IpNet;
use tokio::time::timeout;

use super::orders::Buyer;
use crate::app::App;
use crate::config::parse_networks;
use crate::domain::client::Whereabouts;
use crate::domain::ids::{AccountNo, KeyId};
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::role::{Ability, Scope};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::keys;
use crate::vault;

/// How often the use of a key is noted.
const NOTED_EVERY_MS: i64 = 60_000;

/// A partner as requests need it.
#[derive(Debug)]
pub struct Caller {
    pub key_id: String,
    /// The key whose limit its purchases count against: its own, or that of the key which takes its place.
    counts_for: String,
    pub account: AccountNo,
    pub company: String,
    pub price_list: String,
    pub low_balance: Usd,
    scope: Scope,
    limited: bool,
    expires_at: Option<Time>,
    networks: Vec<IpNet>,
    secret_hash: Vec<u8>,
    /// When its use was noted last.
    noted: AtomicI64,
}

impl Caller {
    /// Refuses what the key does not open.
    pub fn require(&self, ability: Ability) -> Result<()> {
        if self.scope.may(ability) { Ok(()) } else { Err(Refusal::ReadOnlyKey.into()) }
    }

    /// Who buys when this key is shown.
    pub fn buyer(&self) -> Result<Buyer> {
        self.require(Ability::Order)?;
        Ok(Buyer {
            account: self.account,
            key_id: self.counts_for.clone(),
            price_list: self.price_list.clone(),
            limited: self.limited,
            by_hand: None,
        })
    }
}

#[derive(Default)]
pub struct KeyRing {
    keys: HashMap<String, Arc<Caller>>,
}

pub async fn load(app: &App) -> Result<()> {
    let live = app.store.snapshot(keys::live).await?;
    let before = app.keys.load();
    let mut ring = HashMap::with_capacity(live.len());
    for key in live {
        let networks = parse_networks(&key.ips)
            .ok_or_else(|| Error::fault(format!("key {} has an unreadable network list", key.id)))?;
        // What is in memory may be on its way to the database.
        let known = before.keys.get(key.id.as_str()).map(|caller| caller.noted.load(Ordering::Relaxed));
        let noted = known.max(key.last_used_at.map(Time::micros)).unwrap_or_default();
        let caller = Caller {
            key_id: key.id.to_string(),
            counts_for: key.replaced_by.unwrap_or_else(|| key.id.to_string()),
            account: key.account,
            company: key.company,
            price_list: key.price_list,
            low_balance: key.low_balance,
            scope: if key.read_only { Scope::ReadOnly } else { Scope::Full },
            limited: key.has_daily_limit,
            expires_at: key.expires_at,
            networks,
            secret_hash: key.secret_hash,
            noted: AtomicI64::new(noted),
        };
        ring.insert(caller.key_id.clone(), Arc::new(caller));
    }
    app.keys.store(Arc::new(KeyRing { keys: ring }));
    Ok(())
}

/// The caller behind a key and secret. An unknown key costs the same comparison as a wrong secret. A key that is bound
/// to addresses is refused when the caller's address is unknown.
pub fn authenticate(app: &App, key: &str, secret: &str, from: Whereabouts) -> Result<Arc<Caller>> {
    let presented = vault::hash_secret(secret);
    let ring = app.keys.load();
    let found = ring.keys.get(key);
    let expected = found.map_or([0u8; 32].as_slice(), |caller| caller.secret_hash.as_slice());
    let (matches, now) = (vault::same(&presented, expected), app.now());
    match found {
        Some(caller) if matches && caller.expires_at.is_none_or(|end| now < end) => {
            let listed = |from| caller.networks.iter().any(|network| network.contains(&from));
            if caller.networks.is_empty() || from.known().is_some_and(listed) {
                note_use(app, caller, now);
                return Ok(caller.clone());
            }
            Err(Refusal::AddressNotAllowed.into())
        }
        _ => Err(Refusal::Unauthenticated.into()),
    }
}

/// Notes the use in a task of its own, once a minute; the request does not wait for it.
fn note_use(app: &App, caller: &Caller, now: Time) {
    let noted = caller.noted.load(Ordering::Relaxed);
    if now.is_within(NOTED_EVERY_MS, Time::from_micros(noted)) {
        return;
    }
    let first = caller.noted.compare_exchange(noted, now.micros(), Ordering::Relaxed, Ordering::Relaxed);
    if first.is_ok() {
        let (app, lane, id) = (app.clone(), caller.account.0, KeyId::from_text(&*caller.key_id));
        app.tasks.clone().spawn(async move {
            let since = now.plus_millis(-NOTED_EVERY_MS);
            let noted = app.store.write(lane, move |tx| keys::used(tx, &id, now, since)).await;
            if let Err(error) = noted {
                tracing::debug!(%error, "the use of a key could not be noted");
            }
        });
    }
}

/// How long a caller with a key that is not in memory waits; after that the key counts as unknown.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until the keys have been compared with the database once more. All waiting callers share one look, and looks
/// keep their distance however many wait (`jobs/watch.rs`). So made-up keys cost the database the same few small reads
/// a second, whether they are ten or ten thousand. They use up no budget that somebody with a new key needs, and
/// callers with a known key never come here.
pub async fn until_looked(app: &App) {
    // After the look, or when it takes too long, the caller sees what is in memory.
    let _ = timeout(PATIENCE, app.rounds.next()).await;
}
