//! Logging in by a mailed code: ask (`login/ask.rs`), verify, and "that was not me". REST, tools and pages call the
//! same functions and differ only in the door's name; a live code opens all of them. Whether an account exists is
//! looked up only after a right code, or else for everybody, so neither answer nor time reveals it.
//!
//! Guessing is limited in three ways. A short code ends after 5 wrong tries. An address that was guessed at gets long
//! codes, which nobody can guess. And a client that guessed too often may try only codes that it asked for itself, and
//! gets long ones: it can neither guess nor end other people's short codes, and the people who share its address can
//! still sign in with codes that they ask for.

mod ask;

use std::net::IpAddr;

use metrics::counter;

pub use self::ask::{Ask, Asked, ask};
// One lane and one lock for all logins keep every limit exact; logins are rare enough for that.
use super::LANE;
use super::mail::{self, Letter, NOT_ME, Slip};
use crate::app::App;
use crate::domain::client::{self, Origin, Rows};
use crate::domain::email::Email;
use crate::domain::ids::{AccountId, AccountNo, AttemptId, LoginId, TokenId};
use crate::domain::login::{
    DAY_MS, Door, HOUR_MS, Limit, Realm, SESSION_MS, SILENT_DAYS, WRONG_BEFORE_LONG, WRONG_OF_CLIENT,
    typed_code,
};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::token::{TokenKind, shown_prefix};
use crate::error::Result;
use crate::store::logins::{self, Attempt, By, Counted, Last, Login, Mailed, Try};
use crate::store::tokens::{self, NewToken};
use crate::store::tx::Tx;
use crate::store::users;
use crate::vault::{self, Codes};

/// Whole seconds until then, at least one.
pub(super) fn seconds(now: Time, until: Time) -> u64 {
    ((until.micros() - now.micros() + 999_999) / 1_000_000).max(1).unsigned_abs()
}

fn count(outcome: &'static str) {
    counter!("simgate_logins_total", "outcome" => outcome).increment(1);
}

pub struct CodeAnswer {
    pub door: Door,
    pub email: Email,
    /// As it was typed.
    pub code: String,
    pub client: IpAddr,
    /// From `domain::login::agent_name`.
    pub agent_name: String,
    pub kind: TokenKind,
}

/// Somebody who proved an email, with the new token; its text is shown this once.
pub struct LoggedIn {
    pub token: String,
    pub token_id: TokenId,
    pub email: Email,
    pub agent_name: String,
    pub created_at: Time,
    pub expires_at: Option<Time>,
}

/// Exchanges a code for a token. A new email gets its account here.
pub async fn verify(app: &App, answer: CodeAnswer) -> Result<LoggedIn> {
    let (proof, text) = Proof::new(app, &answer);
    let (token_id, expires_at) = (proof.token.id.clone(), proof.token.expires_at);
    let created_at = proof.now;
    let verified = app.store.write(LANE, move |tx| proof.check(tx)).await;
    concluded(app, &answer, verified)?;
    Ok(LoggedIn {
        token: text,
        token_id,
        email: answer.email,
        agent_name: answer.agent_name,
        created_at,
        expires_at,
    })
}

/// Counts and logs the outcome of a write that checked a code.
pub(super) fn concluded<T>(app: &App, answer: &CodeAnswer, verified: Result<Option<T>>) -> Result<T> {
    let email = answer.email.masked();
    match verified? {
        Some(found) => {
            count("verified");
            mail::wake(app);
            Ok(found)
        }
        None => {
            count("wrong");
            let (door, from) = (answer.door.as_str(), client::logged(answer.client));
            tracing::info!(email, door, from, "a wrong sign-in code");
            Err(Refusal::OtpInvalid.into())
        }
    }
}

/// A typed code and all that the write needs to check it.
pub(super) struct Proof {
    attempt: AttemptId,
    user: AccountId,
    origin: Origin,
    codes: Codes,
    typed: String,
    slip: Slip,
    door: Door,
    email: Email,
    token: NewToken,
    now: Time,
}

/// The result of an earlier run of the same write.
pub(super) enum CheckedBefore {
    No,
    Right(AccountNo),
    Wrong,
}

impl Proof {
    /// A proof, and the text of the token that a right code is exchanged for.
    pub(super) fn new(app: &App, answer: &CodeAnswer) -> (Proof, String) {
        let now = app.now();
        let random = vault::random();
        let text = answer.kind.make((vault::random() >> 96) as u32, random);
        let token = NewToken {
            id: TokenId::new(now, vault::random()),
            kind: answer.kind,
            hash: vault::hash_secret(&text),
            prefix: shown_prefix(&text),
            agent_name: answer.agent_name.clone(),
            daily_limit: app.settings.logins.token_daily_limit,
            created_at: now,
            expires_at: (answer.kind == TokenKind::Session).then(|| now.plus_millis(SESSION_MS)),
        };
        let proof = Proof {
            attempt: AttemptId::new(now, vault::random()),
            user: AccountId::user(now, vault::random()),
            origin: app.vault.codes.origin(answer.client),
            codes: app.vault.codes.clone(),
            typed: typed_code(&answer.code),
            slip: mail::slip(app),
            door: answer.door,
            email: answer.email.clone(),
            token,
            now,
        };
        (proof, text)
    }

    /// The same with a token that ends then.
    pub(super) fn lasting(mut self, until: Time) -> Proof {
        self.token.expires_at = Some(until);
        self
    }

    pub(super) fn token_id(&self) -> &TokenId {
        &self.token.id
    }

    fn whose(&self) -> Mailed<'_> {
        Mailed { realm: self.door.realm(), email: &self.email }
    }

    /// Whether an earlier run of the same write found the code wrong.
    pub(super) fn was_wrong(&self, tx: &mut Tx) -> Result<bool> {
        Ok(tx.is_rerun() && logins::is_recorded(tx, &self.attempt)?)
    }

    /// The result of an earlier run of the same write.
    pub(super) fn checked_before(&self, tx: &mut Tx) -> Result<CheckedBefore> {
        if !tx.is_rerun() {
            return Ok(CheckedBefore::No);
        }
        if let Some(made) = tokens::by_id(tx, &self.token.id)? {
            return Ok(CheckedBefore::Right(made.account));
        }
        let wrong = logins::is_recorded(tx, &self.attempt)?;
        Ok(if wrong { CheckedBefore::Wrong } else { CheckedBefore::No })
    }

    /// The account that the code opens; `None` when it is wrong, which is recorded.
    pub(super) fn check(&self, tx: &mut Tx) -> Result<Option<AccountNo>> {
        let Proof { email, token, now, .. } = self;
        logins::lock(tx)?;
        match self.checked_before(tx)? {
            CheckedBefore::Right(account) => return Ok(Some(account)),
            CheckedBefore::Wrong => return Ok(None),
            CheckedBefore::No => {}
        }
        if !self.is_right(tx, |tx| users::require_room(tx, email))? {
            return Ok(None);
        }
        let account = users::find_or_create(tx, email, &self.user, *now)?;
        tokens::create(tx, account, token)?;
        if token.kind == TokenKind::Personal {
            let letter = Letter::NewToken {
                token: token.id.to_string(),
                prefix: token.prefix.clone(),
                agent_name: token.agent_name.clone(),
                made: now.micros(),
            };
            mail::queue(tx, &self.slip, email, &letter, None)?;
        }
        Ok(Some(account))
    }

    /// Uses the code up if it is right; a wrong one is recorded. Before anything is written for a right one, `may` can
    /// refuse. The caller holds the lock of logins.
    pub(super) fn is_right(&self, tx: &mut Tx, may: impl FnOnce(&mut Tx) -> Result<()>) -> Result<bool> {
        let (whose, now) = (self.whose(), self.now);
        let limited = limited(tx, &self.origin, now)?;
        let mut open = logins::open(tx, whose, now)?;
        if let Some(network) = limited {
            let own = logins::asked_for(tx, whose, network, now)?;
            open = open.only(|login| own.contains(&login.id));
        }
        let (short, long) =
            (self.is_code_of(open.short.as_ref(), false), self.is_code_of(open.long.as_ref(), true));
        let Some(right) = open.short.as_ref().filter(|_| short).or(open.long.as_ref().filter(|_| long))
        else {
            self.count_wrong(tx, limited.is_some(), open.short.as_ref())?;
            return Ok(false);
        };
        may(tx)?;
        logins::end(tx, &right.id, now)?;
        logins::forgive(tx, whose)?;
        if logins::mailbox(tx, whose)?.long_codes {
            logins::set_long_codes(tx, whose, false)?;
        }
        Ok(true)
    }

    /// Compares even without a login, so that the time does not reveal whether one waits.
    fn is_code_of(&self, login: Option<&Login>, long: bool) -> bool {
        let nobody = LoginId::from_text(self.attempt.as_str());
        let expected = self.codes.code(login.map_or(&nobody, |login| &login.id), long);
        vault::same(expected.as_bytes(), self.typed.as_bytes()) && login.is_some()
    }

    /// Counts a wrong try against the client, the address and the short code that may have been meant.
    ///
    /// Except when the client is limited and may not try a short code here: then it cannot have guessed one. If such a
    /// try counted against the address or its code, limited clients could end other people's codes for ever; if it were
    /// recorded, they could fill the table. The time it takes tells them only whether a short code that they asked for
    /// themselves is still alive.
    fn count_wrong(&self, tx: &mut Tx, limited: bool, short: Option<&Login>) -> Result<()> {
        let (whose, now) = (self.whose(), self.now);
        let nobody = LoginId::from_text(self.attempt.as_str());
        if limited && short.is_none() {
            return Ok(());
        }
        logins::count_wrong(tx, short.map_or(&nobody, |login| &login.id))?;
        let wrong = Try {
            id: &self.attempt,
            kind: Attempt::Wrong,
            whose,
            origin: &self.origin,
            login: None,
            at: now,
            taken: Last::default(),
        };
        logins::note(tx, &wrong)?;
        let a_day = Limit { most: WRONG_BEFORE_LONG, within_ms: DAY_MS };
        if logins::full_until(tx, Counted::Wrong, By::Email(whose), a_day, now)?.is_some() {
            logins::set_long_codes(tx, whose, true)?;
        }
        Ok(())
    }
}

/// The network that sent too many wrong codes within the hour: the narrowest, if there are several. It may try only
/// codes that it asked for itself, including short ones that it asked for before, because many people may share one
/// address. All that is left to guess are five tries at each code of an hour's asks.
fn limited<'a>(tx: &mut Tx, origin: &'a Origin, now: Time) -> Result<Option<Rows<'a>>> {
    let mut narrowest = None;
    for (width, network) in origin.networks() {
        let limit = Limit { most: WRONG_OF_CLIENT.of(width), within_ms: HOUR_MS };
        if logins::full_until(tx, Counted::Wrong, By::Network(width, network), limit, now)?.is_some() {
            narrowest = Some(network);
        }
    }
    Ok(narrowest)
}

/// What a "not me" link is about: an address, in the realm that the mail came from.
pub struct NotMe {
    pub email: Email,
    pub silent: bool,
}

/// Looks without acting: mail programs open links by themselves.
pub async fn not_me(app: &App, link: &str) -> Result<NotMe> {
    let ((realm, email), now) = (opened(app, link)?, app.now());
    let asked = email.clone();
    let mailbox = app.store.read(move |tx| logins::mailbox(tx, Mailed { realm, email: &asked })).await?;
    Ok(NotMe { email, silent: mailbox.silent_until > now })
}

/// Stops codes for 30 days and ends those already mailed; or allows codes again.
pub async fn silence(app: &App, link: &str, silent: bool) -> Result<()> {
    let ((realm, email), now) = (opened(app, link)?, app.now());
    tracing::info!(email = email.masked(), silent, "the owner of a mailbox turned sign-in codes off or on");
    app.store
        .write(LANE, move |tx| {
            let whose = Mailed { realm, email: &email };
            logins::lock(tx)?;
            if !silent {
                return logins::set_silent_until(tx, whose, Time::from_micros(0));
            }
            logins::end_all(tx, whose, now)?;
            logins::set_silent_until(tx, whose, now.plus_days(SILENT_DAYS))
        })
        .await
}

/// What is sealed in a link.
pub(super) fn not_me_matter(mailed: Time, email: &Email, realm: Realm) -> String {
    match realm {
        Realm::Buyers => format!("{}\n{email}", mailed.micros()),
        Realm::Partners => format!("{}\n{email}\n{}", mailed.micros(), realm.as_str()),
    }
}

/// Opens a link, which is valid as long as its effect lasts. One of buyers names no realm.
fn opened(app: &App, link: &str) -> Result<(Realm, Email)> {
    let matter = app.vault.links.open(NOT_ME, link).ok_or(Refusal::NotFound)?;
    let mut parts = matter.split('\n');
    let (mailed, email) = parts.next().zip(parts.next()).ok_or(Refusal::NotFound)?;
    let realm = parts.next().map_or(Some(Realm::Buyers), Realm::parse).ok_or(Refusal::NotFound)?;
    let mailed = Time::from_micros(mailed.parse().map_err(|_| Refusal::NotFound)?);
    if mailed.plus_days(SILENT_DAYS) < app.now() {
        return Err(Refusal::NotFound.into());
    }
    Ok((realm, Email::from_text(email)))
}
