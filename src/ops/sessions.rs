//! Staying signed in on pages (members of partners' teams: `sessions/portal.rs`): by a mailed code, until somebody signs out, is away for long, or is signed out by
//! themselves from elsewhere. A browser holds a random secret, we its hash. Each request reads the session's row, so
//! that its end counts at once on every instance.
//!
//! What a session buys counts against a session token that is made with it, with the same daily limit as those that
//! agents get for a code (`logins.token_daily_limit`): whoever gets hold of a browser can spend no more in a day than
//! whoever gets hold of such a token. The token's text is thrown away, so that nothing but the session can use it.

pub mod portal;

use super::LANE;
use super::login::{self, CodeAnswer, Proof};
use super::orders::Buyer;
use crate::app::App;
use crate::domain::client;
use crate::domain::ids::{AccountNo, SessionId, secret_text};
use crate::domain::login::Realm;
use crate::domain::refusal::Refusal;
use crate::domain::session::{self, LONGEST_MS, Limits, SEEN_EVERY_MS};
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::sessions::{self, NewSession};
pub use crate::store::sessions::{Listed, Session};
use crate::store::tokens;
use crate::store::tx::Tx;
use crate::vault;

/// How many sessions are listed; a mailbox is mailed far fewer codes in a day than that.
const MOST_LISTED: i64 = 100;
/// 256 bits in base 62.
const SECRET_CHARS: usize = 44;

impl Session {
    pub fn buyer(&self) -> Buyer {
        Buyer {
            account: self.account,
            key_id: self.token.to_string(),
            price_list: self.price_list.clone(),
            limited: self.limited,
            by_hand: None,
        }
    }
}

/// Somebody at a page who types a code.
pub struct SignIn {
    pub answer: CodeAnswer,
    /// What the browser says of itself.
    pub agent: String,
    /// What the browser held before, if anything. It ends: nobody goes on with a session that somebody else may have made.
    pub former: Option<String>,
}

/// Exchanges a code for a session, and answers its secret. A new email gets its account here.
pub async fn sign_in(app: &App, sign_in: SignIn) -> Result<String> {
    let SignIn { answer, agent, former } = sign_in;
    let now = app.now();
    let (proof, _) = Proof::new(app, &answer);
    let proof = proof.lasting(now.plus_millis(LONGEST_MS));
    let secret = secret_text("", [vault::random(), vault::random()]);
    let realm = answer.door.realm();
    let new = NewSession {
        id: SessionId::new(now, vault::random()),
        secret_hash: vault::hash_secret(&secret),
        realm,
        holder: proof.token_id().to_string(),
        awaits: false,
        made_at: now,
        seen_at: now,
        browser: session::browser(&agent),
        network: client::logged(answer.client),
    };
    let former = former.filter(|text| is_well_formed(text)).map(|text| vault::hash_secret(&text));
    let write = move |tx: &mut Tx| {
        let Some(account) = proof.check(tx)? else { return Ok(None) };
        if let Some(former) = &former
            && let Some((id, account)) = sessions::former(tx, former, realm)?
        {
            end_one(tx, account, &id, now)?;
        }
        // A second run finds what the first one made.
        if !tx.is_rerun() || !sessions::is_made(tx, &new.id)? {
            sessions::create(tx, account, &new)?;
        }
        Ok(Some(()))
    };
    let made = app.store.write(LANE, write).await;
    login::concluded(app, &answer, made)?;
    Ok(secret)
}

/// The session that a browser's secret stands for, if it has not ended. A text of another shape costs no look-up.
pub async fn find(app: &App, secret: &str) -> Result<Option<Session>> {
    if !is_well_formed(secret) {
        return Ok(None);
    }
    let (hash, now) = (vault::hash_secret(secret), app.now());
    let found = app.store.read(move |tx| sessions::by_hash(tx, &hash)).await?;
    let good = Limits::good(now);
    let found = found.filter(|session| good.admit(session.made_at, session.seen_at));
    if let Some(session) = &found {
        note_visit(app, &session.id, session.account, session.seen_at);
    }
    Ok(found)
}

fn is_well_formed(secret: &str) -> bool {
    secret.len() == SECRET_CHARS && secret.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Records the visit in a task of its own; the request does not wait for it.
fn note_visit(app: &App, id: &SessionId, account: AccountNo, seen_at: Time) {
    let now = app.now();
    let since = now.plus_millis(-SEEN_EVERY_MS);
    if seen_at > since {
        return;
    }
    let (app, id, lane) = (app.clone(), id.clone(), account.0);
    app.tasks.clone().spawn(async move {
        let noted = app.store.write(lane, move |tx| sessions::seen(tx, &id, now, since)).await;
        if let Err(error) = noted {
            tracing::debug!(%error, "a visit could not be noted");
        }
    });
}

/// The sessions of an account that have not ended, newest first.
pub async fn list(app: &App, account: AccountNo, realm: Realm) -> Result<Vec<Listed>> {
    let good = Limits::good(app.now());
    app.store.read(move |tx| sessions::of_account(tx, account, realm, good, MOST_LISTED)).await
}

/// Ends one session of this account; what it has bought goes on.
pub async fn end(app: &App, account: AccountNo, id: &SessionId) -> Result<()> {
    let (id, now) = (id.clone(), app.now());
    let write = move |tx: &mut Tx| end_one(tx, account, &id, now);
    if app.store.write(account.0, write).await? { Ok(()) } else { Err(Refusal::NotFound.into()) }
}

/// Ends every session of this account.
pub async fn end_all(app: &App, account: AccountNo, realm: Realm) -> Result<()> {
    let now = app.now();
    let write = move |tx: &mut Tx| {
        for id in sessions::all_of_account(tx, account, realm)? {
            end_one(tx, account, &id, now)?;
        }
        Ok(())
    };
    app.store.write(account.0, write).await
}

/// False when there is no such session.
fn end_one(tx: &mut Tx, account: AccountNo, id: &SessionId, now: Time) -> Result<bool> {
    let Some(token) = sessions::token_of(tx, account, id)? else { return Ok(false) };
    tokens::revoke(tx, &token, now)?;
    sessions::end(tx, id)?;
    Ok(true)
}
