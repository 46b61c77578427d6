//! Bearer tokens: who holds one, what its owner sees, and how it ends. A token is looked up by its hash and kept for
//! half a second, so that a revocation takes effect everywhere within a second.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use super::mail::REVOKE;
use super::orders::Buyer;
use super::owned::Owned;
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, TokenId};
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::token::{self, TokenKind};
use crate::error::{Error, Result};
use crate::store::sessions;
pub use crate::store::tokens::Token;
use crate::store::tokens::{self, LiveToken};
use crate::store::tx::Tx;
use crate::store::wallet;
use crate::vault;

const KEPT_MS: i64 = 500;
const _: () = assert!(KEPT_MS * 2 <= 1_000, "a revocation counts everywhere within a second");
/// How many tokens are kept in memory; beyond that all are looked up again.
const MOST_KEPT: usize = 10_000;
/// The highest daily limit where the operator sets none.
const HIGHEST_LIMIT: Usd = Usd::dollars(1_000_000);
/// How often the use of a token is recorded.
const NOTED_EVERY_MS: i64 = 60_000;

/// A user as requests need it.
#[derive(Debug)]
pub struct Holder {
    pub token: TokenId,
    pub kind: TokenKind,
    pub account: AccountNo,
    pub email: Email,
    pub price_list: String,
    limited: bool,
    expires_at: Option<Time>,
    noted: AtomicI64,
    looked_up: Time,
}

impl Holder {
    pub fn buyer(&self) -> Buyer {
        Buyer {
            account: self.account,
            key_id: self.token.to_string(),
            price_list: self.price_list.clone(),
            limited: self.limited,
            by_hand: None,
        }
    }

    /// Session tokens come from a chat and end by themselves; they must not make or end others.
    pub fn require_personal(&self) -> Result<()> {
        match self.kind {
            TokenKind::Personal => Ok(()),
            TokenKind::Session => Err(Refusal::PersonalTokenOnly.into()),
        }
    }
}

/// Tokens seen in the last half second.
#[derive(Default)]
pub struct Seen {
    holders: Mutex<HashMap<[u8; 32], Arc<Holder>>>,
}

/// Who holds this token. A malformed token costs no look-up in the database.
pub async fn authenticate(app: &App, text: &str) -> Result<Arc<Holder>> {
    if !token::is_well_formed(text) {
        return Err(Refusal::TokenRequired.into());
    }
    let (hash, now) = (vault::hash_secret(text), app.now());
    let kept = app.tokens.holders.lock().map_err(Error::fault)?.get(&hash).cloned();
    // A clock that was set back must not keep a token longer.
    let fresh = |holder: &Arc<Holder>| (holder.looked_up.micros() - now.micros()).abs() < KEPT_MS * 1_000;
    let holder = match kept.filter(fresh) {
        Some(holder) => holder,
        None => look_up(app, hash, now).await?,
    };
    if holder.expires_at.is_some_and(|end| end <= now) {
        return Err(Refusal::TokenRequired.into());
    }
    note_use(app, &holder, now);
    Ok(holder)
}

/// Whether this may be a token that was not seen here yet, so that only a look-up tells its worth. A token that was
/// valid a while ago is not unknown, although it is looked up again.
pub fn is_unknown(app: &App, text: &str) -> Result<bool> {
    let kept = app.tokens.holders.lock().map_err(Error::fault)?;
    Ok(token::is_well_formed(text) && !kept.contains_key(&vault::hash_secret(text)))
}

async fn look_up(app: &App, hash: [u8; 32], now: Time) -> Result<Arc<Holder>> {
    let found = app.store.read(move |tx| tokens::by_hash(tx, &hash)).await?;
    let mut kept = app.tokens.holders.lock().map_err(Error::fault)?;
    let Some(LiveToken { id, account, kind, has_daily_limit, last_used_at, expires_at, email, price_list }) =
        found
    else {
        kept.remove(&hash);
        return Err(Refusal::TokenRequired.into());
    };
    let holder = Arc::new(Holder {
        token: id,
        kind,
        account,
        email,
        price_list,
        limited: has_daily_limit,
        expires_at,
        noted: AtomicI64::new(last_used_at.map_or(0, Time::micros)),
        looked_up: now,
    });
    if kept.len() >= MOST_KEPT {
        kept.clear();
    }
    kept.insert(hash, holder.clone());
    Ok(holder)
}

/// Records the use in a task of its own; the request does not wait for it.
fn note_use(app: &App, holder: &Arc<Holder>, now: Time) {
    let noted = holder.noted.load(Ordering::Relaxed);
    if now.micros() - noted < NOTED_EVERY_MS * 1_000 {
        return;
    }
    let first = holder.noted.compare_exchange(noted, now.micros(), Ordering::Relaxed, Ordering::Relaxed);
    if first.is_ok() {
        let (app, id, lane) = (app.clone(), holder.token.clone(), holder.account.0);
        app.tasks.clone().spawn(async move {
            let since = now.plus_millis(-NOTED_EVERY_MS);
            let noted = app.store.write(lane, move |tx| tokens::used(tx, &id, now, since)).await;
            if let Err(error) = noted {
                tracing::debug!(%error, "a use could not be noted");
            }
        });
    }
}

/// The personal tokens of an account, newest first.
pub async fn list(app: &App, account: AccountNo) -> Result<Vec<Token>> {
    app.store.read(move |tx| tokens::of_account(tx, account)).await
}

/// Every token of an account that an agent can use now, newest first: those that were made for good, and those that an
/// assistant got for a code and that end by themselves.
pub async fn held_by_agents(app: &App, account: AccountNo) -> Result<Vec<Token>> {
    let now = app.now();
    app.store.read(move |tx| tokens::held_by_agents(tx, account, now)).await
}

/// One of these.
pub async fn held_by_agent(app: &App, account: AccountNo, id: &TokenId) -> Result<Token> {
    let held = held_by_agents(app, account).await?;
    Ok(held.into_iter().find(|token| token.id == *id).ok_or(Refusal::TokenNotFound)?)
}

/// The most that an owner may let a token spend in a day: what a new token may, where the operator limits that.
pub fn highest_limit(app: &App) -> Usd {
    app.settings.logins.token_daily_limit.unwrap_or(HIGHEST_LIMIT)
}

/// Changes what a token may spend in a day from now on; what it has spent today counts. With 0 it buys nothing.
pub async fn set_daily_limit(app: &App, account: AccountNo, id: &TokenId, limit: Usd) -> Result<()> {
    let most = highest_limit(app);
    if limit < Usd::ZERO || limit > most {
        return Err(Refusal::field("limitUsd", format!("must be from 0 to {most}")).into());
    }
    let changed = id.clone();
    let write = move |tx: &mut Tx| {
        // A purchase reads the limit under this lock.
        wallet::lock(tx, account)?;
        tokens::set_limit(tx, account, &changed, Some(limit))
    };
    let found = app.store.write(account.0, write).await?;
    forget(app, id)?;
    if found { Ok(()) } else { Err(Refusal::TokenNotFound.into()) }
}

/// Ends a token of this account, and the page session that it stands behind; purchases that it began continue.
pub async fn revoke(app: &App, account: AccountNo, id: &TokenId) -> Result<()> {
    let (id, now) = (id.clone(), app.now());
    let ended = id.clone();
    let found = app
        .store
        .write(account.0, move |tx| {
            let owned = tokens::by_id(tx, &id)?.is_some_and(|token| token.belongs_to(account));
            sessions::end_of_token(tx, account, &id)?;
            Ok(owned && tokens::revoke(tx, &id, now)?)
        })
        .await?;
    forget(app, &ended)?;
    if found { Ok(()) } else { Err(Refusal::TokenNotFound.into()) }
}

/// Forgets a token in memory: it ends here at once, and elsewhere within half a second.
fn forget(app: &App, id: &TokenId) -> Result<()> {
    app.tokens.holders.lock().map_err(Error::fault)?.retain(|_, holder| holder.token != *id);
    Ok(())
}

/// The token that a mailed link would end; `None` when it has ended. Looking changes nothing.
pub async fn of_link(app: &App, link: &str) -> Result<Option<Token>> {
    let id = opened(app, link)?;
    app.store.read(move |tx| tokens::by_id(tx, &id)).await
}

/// Ends the token of a mailed link. Doing it again changes nothing.
pub async fn revoke_by_link(app: &App, link: &str) -> Result<()> {
    match of_link(app, link).await? {
        Some(token) => match revoke(app, token.account, &token.id).await {
            // Somebody else ended it first, which is what was wanted.
            Err(Error::Refused(Refusal::TokenNotFound)) => Ok(()),
            other => other,
        },
        None => Ok(()),
    }
}

fn opened(app: &App, link: &str) -> Result<TokenId> {
    let id = app.vault.links.open(REVOKE, link).ok_or(Refusal::NotFound)?;
    Ok(TokenId::from_text(id))
}
