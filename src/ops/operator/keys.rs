//! API keys of partners: made, listed, replaced and ended, by operators and by members of a partner's team.

use super::super::LANE;
use crate::app::App;
use crate::config::parse_networks;
use crate::domain::ids::{AccountNo, KeyId, secret_text};
use crate::domain::money::Usd;
use crate::domain::refusal::{FieldError, Refusal};
use crate::domain::role::Ability;
use crate::domain::text;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::audit::audit_line;
use crate::ops::by_hand::ByHand;
use crate::ops::team::Member;
use crate::store::audit::Line;
pub use crate::store::keys::Key;
use crate::store::keys::{self, NewKey};
use crate::store::tx::Tx;
use crate::store::{audit, wallet};
use crate::vault;
use crate::wire::dates::iso;

/// How many keys in use a partner may have when a member makes one. An operator may make more.
pub const MOST_KEYS: usize = 100;
/// How many keys the members of a team may make in a day, and how many they may replace. The rows of ended keys stay.
pub const KEYS_A_DAY: i64 = 100;
/// The longest name of a key that a member makes.
pub const KEY_NAME_CHARS: usize = 100;
/// From how many networks such a key may be used.
pub const MOST_NETWORKS: usize = 50;
/// How long an old key may work beside the new one when a member replaces it.
const LONGEST_OVERLAP_MS: i64 = 7 * 86_400_000;

/// A key with its secret, which is shown this once and stored only as a hash.
pub struct IssuedKey {
    pub id: KeyId,
    pub secret: String,
}

#[derive(Clone, Default)]
pub struct KeyTerms {
    pub daily_limit: Option<Usd>,
    pub ips: String,
    pub read_only: bool,
    /// What it is for; empty for none. No two keys in use of one partner share a name.
    pub name: String,
    pub expires_at: Option<Time>,
}

impl KeyTerms {
    /// What a member may ask for. A key of a member has a name: sent twice, its form makes one key.
    fn of_member(mut self, now: Time) -> Result<KeyTerms> {
        let mut wrong = Vec::new();
        let mut refuse =
            |field: &str, message: String| wrong.push(FieldError { field: field.into(), message });
        self.name = text::visible(&self.name, KEY_NAME_CHARS);
        if self.name.is_empty() {
            refuse("name", "is required".into());
        }
        if self.daily_limit.is_some_and(|limit| !limit.is_positive()) {
            refuse("limitUsd", "must be more than 0".into());
        }
        if self.ips.split(',').count() > MOST_NETWORKS {
            refuse("ips", format!("must be at most {MOST_NETWORKS}"));
        }
        if self.expires_at.is_some_and(|end| end <= now) {
            refuse("expires", "must not be over".into());
        }
        if wrong.is_empty() { Ok(self) } else { Err(Refusal::Invalid(wrong).into()) }
    }

    /// For the audit log.
    fn in_words(&self) -> String {
        let mut words = Vec::new();
        words.extend(Some(format!("name {:?}", self.name)).filter(|_| !self.name.is_empty()));
        words.extend(self.daily_limit.map(|limit| format!("{limit} USD a day")));
        words.extend(Some(format!("from {}", self.ips)).filter(|_| !self.ips.is_empty()));
        words.extend(Some("read-only".to_string()).filter(|_| self.read_only));
        words.extend(self.expires_at.map(|at| format!("until {}", iso(at))));
        if words.is_empty() { "no limits".into() } else { words.join(", ") }
    }
}

/// A key with all that its write must not make itself. Whose it is is said there: a new partner is made in the same write.
pub(super) struct KeyDraft {
    id: KeyId,
    secret_hash: [u8; 32],
    terms: KeyTerms,
    created_at: Time,
    made_by: String,
}

impl KeyDraft {
    pub(super) fn new(app: &App, terms: KeyTerms) -> (KeyDraft, IssuedKey) {
        let secret = secret_text("sk_", [vault::random(), vault::random()]);
        let (id, secret_hash, created_at) = (app.new_key_id(), vault::hash_secret(&secret), app.now());
        let issued = IssuedKey { id: id.clone(), secret };
        (KeyDraft { id, secret_hash, terms, created_at, made_by: String::new() }, issued)
    }

    fn of(&self, account: AccountNo) -> NewKey {
        let KeyTerms { daily_limit, ips, read_only, name, expires_at } = self.terms.clone();
        let (id, secret_hash, created_at) = (self.id.clone(), self.secret_hash, self.created_at);
        let made_by = self.made_by.clone();
        NewKey {
            id,
            account,
            secret_hash,
            daily_limit,
            ips,
            read_only,
            name,
            expires_at,
            created_at,
            made_by,
        }
    }

    pub(super) fn enter(&self, tx: &mut Tx, account: AccountNo, deed: &ByHand) -> Result<()> {
        if tx.is_rerun() && audit::exists(tx, &deed.line.id)? {
            return Ok(());
        }
        let key = self.of(account);
        wallet::lock(tx, account)?;
        deed.check(tx)?;
        require_few(tx, &key, &deed.line)?;
        let in_use = keys::in_use(tx, account, key.created_at)?;
        require_room(&key, in_use.len())?;
        require_new_name(&in_use, &key)?;
        keys::create(tx, &key)?;
        audit::record(tx, &deed.line.changing("no key", self.terms.in_words()))
    }
}

pub async fn create_key(app: &App, actor: &str, account: AccountNo, terms: KeyTerms) -> Result<IssuedKey> {
    let (key, issued) = KeyDraft::new(app, terms);
    let deed = audit_line(app, actor, "key create", issued.id.to_string()).into();
    app.store.write(account.0, move |tx| key.enter(tx, account, &deed)).await?;
    Ok(issued)
}

/// The same by a member of the partner's team.
pub async fn create_key_as(app: &App, member: &Member, terms: KeyTerms) -> Result<IssuedKey> {
    let mut deed = member.deed(app, Ability::Keys, "key create", String::new())?;
    let account = member.account;
    let (mut key, issued) = KeyDraft::new(app, terms.of_member(app.now())?);
    key.made_by = member.id.to_string();
    deed.line.detail = issued.id.to_string();
    app.store.write(account.0, move |tx| key.enter(tx, account, &deed)).await?;
    Ok(issued)
}

/// A key of this partner.
pub async fn key_of(app: &App, account: AccountNo, id: &KeyId) -> Result<Key> {
    let id = id.clone();
    let found = app.store.read(move |tx| keys::find(tx, &id)).await?;
    Ok(found.filter(|key| key.account == account).ok_or(Refusal::KeyNotFound)?)
}

/// The networks in a text, in one spelling, which is empty for none.
pub fn networks(text: &str) -> Option<String> {
    let networks = parse_networks(text)?;
    Some(networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

/// Refuses one more key of a member's where there are enough.
fn require_room(new: &NewKey, in_use: usize) -> Result<()> {
    if new.made_by.is_empty() || in_use < MOST_KEYS {
        return Ok(());
    }
    let message = format!("is one too many: {MOST_KEYS} may be in use at a time, so revoke one first");
    Err(Refusal::field("key", message).into())
}

/// Refuses one more key of a member's where the team has made so many within a day.
fn require_few(tx: &mut Tx, new: &NewKey, line: &Line) -> Result<()> {
    if new.made_by.is_empty() {
        return Ok(());
    }
    let made = audit::lately(tx, new.account, line.at.plus_days(-1), line.command, "", KEYS_A_DAY)?;
    if (made.len() as i64) < KEYS_A_DAY {
        return Ok(());
    }
    let message = format!("must wait: a team makes at most {KEYS_A_DAY} keys in a day, and replaces as many");
    Err(Refusal::field("key", message).into())
}

/// Refuses the name of a key that is in use: the command was pasted twice, and the first secret is on the screen.
fn require_new_name(in_use: &[Key], new: &NewKey) -> Result<()> {
    let same = |key: &&Key| key.name == new.name && key.replaced_by.is_none();
    if new.name.is_empty() {
        return Ok(());
    }
    match in_use.iter().find(same) {
        Some(key) => Err(Refusal::field(
            "name",
            format!("is taken by {}; choose another, or revoke that key first", key.id),
        )
        .into()),
        None => Ok(()),
    }
}

pub async fn list_keys(app: &App, account: Option<AccountNo>) -> Result<Vec<Key>> {
    app.store.read(move |tx| keys::list(tx, account)).await
}

/// The keys of a partner that have not ended, the oldest first.
pub async fn keys_in_use(app: &App, account: AccountNo) -> Result<Vec<Key>> {
    let now = app.now();
    app.store.read(move |tx| keys::in_use(tx, account, now)).await
}

/// Those that have ended, the newest first; on from before a key, if one is given.
pub async fn ended_keys(
    app: &App,
    account: AccountNo,
    before: Option<&KeyId>,
    most: i64,
) -> Result<Vec<Key>> {
    let before = match before {
        Some(id) => Some(key_of(app, account, id).await?),
        None => None,
    };
    let now = app.now();
    let look = move |tx: &mut Tx| {
        let before = before.as_ref().map(|key| (key.created_at, key.id.as_str()));
        keys::ended(tx, account, now, before.unwrap_or((Time::from_micros(i64::MAX), "")), most)
    };
    app.store.read(look).await
}

pub async fn revoke_key(app: &App, actor: &str, id: &str) -> Result<()> {
    end_key(app, KeyId::from_text(id), audit_line(app, actor, "key revoke", id.into()).into()).await
}

/// The same by a member of the partner's team.
pub async fn revoke_key_as(app: &App, member: &Member, id: &KeyId) -> Result<()> {
    let deed = member.deed(app, Ability::Keys, "key revoke", id.to_string())?;
    let key = key_of(app, member.account, id).await?;
    end_key(app, key.id, deed).await
}

async fn end_key(app: &App, key: KeyId, deed: ByHand) -> Result<()> {
    let now = app.now();
    let found = app
        .store
        .write(LANE, move |tx| {
            deed.check(tx)?;
            let Some(found) = keys::lock(tx, &key)? else { return Ok(false) };
            if found.revoked_at.is_none() && keys::revoke(tx, &key, now)? {
                let before = if found.has_ended(now) { "expired" } else { "in use" };
                audit::record(tx, &deed.line.changing(before, "revoked"))?;
            }
            Ok(true)
        })
        .await?;
    if found { Ok(()) } else { Err(Refusal::KeyNotFound.into()) }
}

/// A new key in the place of an old one.
pub struct Rotated {
    pub key: IssuedKey,
    pub account: AccountNo,
    pub terms: KeyTerms,
    /// When the old key ends.
    pub old_ends_at: Time,
}

/// Makes a key with another's rights, and ends that one after the overlap. Unless `expires_at` says otherwise, the new
/// key lives as long as the old one was made to live.
pub async fn rotate_key(
    app: &App,
    actor: &str,
    id: &str,
    overlap_ms: i64,
    expires_at: Option<Time>,
) -> Result<Rotated> {
    let wanted = KeyId::from_text(id);
    let old = app.store.read(move |tx| keys::find(tx, &wanted)).await?.ok_or(Refusal::KeyNotFound)?;
    let deed = audit_line(app, actor, "key rotate", String::new()).into();
    take_place(app, old, deed, String::new(), overlap_ms, expires_at).await
}

/// The same by a member of the partner's team.
pub async fn rotate_key_as(app: &App, member: &Member, id: &KeyId, overlap_ms: i64) -> Result<Rotated> {
    let deed = member.deed(app, Ability::Keys, "key rotate", String::new())?;
    if !(0..=LONGEST_OVERLAP_MS).contains(&overlap_ms) {
        return Err(Refusal::field("overlap", "must be at most 7 days").into());
    }
    let old = key_of(app, member.account, id).await?;
    take_place(app, old, deed, member.id.to_string(), overlap_ms, None).await
}

async fn take_place(
    app: &App,
    old: Key,
    deed: ByHand,
    made_by: String,
    overlap_ms: i64,
    expires_at: Option<Time>,
) -> Result<Rotated> {
    let (old_id, now) = (old.id.clone(), app.now());
    let life =
        old.expires_at.map(|end| Time::from_micros(now.micros() + end.micros() - old.created_at.micros()));
    let terms = KeyTerms {
        daily_limit: old.daily_limit,
        ips: old.ips,
        read_only: old.read_only,
        name: old.name,
        expires_at: expires_at.or(life),
    };
    let (mut draft, key) = KeyDraft::new(app, terms.clone());
    draft.made_by = made_by;
    let new = draft.of(old.account);
    let line = Line { detail: format!("{old_id} by {}", new.id), ..deed.line.clone() };
    let account = old.account;
    let write = move |tx: &mut Tx| {
        // What a key has spent is exact under this lock.
        wallet::lock(tx, account)?;
        deed.check(tx)?;
        let old = keys::lock(tx, &old_id)?.ok_or_else(|| Error::fault("a key vanished"))?;
        let ends = now.plus_millis(overlap_ms);
        let ends = old.expires_at.map_or(ends, |end| end.min(ends));
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(ends);
        }
        require_in_use(&old, now)?;
        require_few(tx, &new, &line)?;
        let in_use = keys::in_use(tx, account, now)?;
        let beside = in_use.iter().filter(|key| key.id != old.id || now < ends);
        require_room(&new, beside.count())?;
        keys::create(tx, &new)?;
        keys::replace(tx, &old, &new.id, ends)?;
        let before = old.expires_at.map_or("without an end".into(), |end| format!("until {}", iso(end)));
        audit::record(tx, &line.changing(before, format!("until {}", iso(ends))))?;
        Ok(ends)
    };
    let old_ends_at = app.store.write(account.0, write).await?;
    Ok(Rotated { key, account, terms, old_ends_at })
}

fn require_in_use(key: &Key, now: Time) -> Result<()> {
    let refuse = |message: String| Err(Refusal::field("key", message).into());
    if let Some(next) = &key.replaced_by {
        return refuse(format!("was replaced by {next} already"));
    }
    if key.has_ended(now) {
        return refuse("has ended; make a new one".into());
    }
    Ok(())
}
