//! Logging in by a mailed code: ask, verify, and "that was not me". Who has an account and who has not is never
//! looked at before a code was right, so neither answer nor time can tell. Doors differ only in their name: REST,
//! tools and pages call the same functions.

use std::net::IpAddr;

use metrics::counter;

use super::mail::{self, Letter, NOT_ME, Slip};
use crate::app::App;
use crate::domain::client;
use crate::domain::email::Email;
use crate::domain::ids::{AccountId, AccountNo, AttemptId, LoginId, TokenId};
use crate::domain::login::{
    ASKS_A_MINUTE, ASKS_AN_HOUR, ASKS_OF_CLIENT, CODE_MS, DAY_MS, Door, Limit, SESSION_MS, SILENT_DAYS,
    WRONG_BEFORE_LONG, WRONG_OF_CLIENT, typed_code,
};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::token::{TokenKind, shown_prefix};
use crate::error::{Error, Result};
use crate::store::logins::{self, Attempt, By, NewLogin};
use crate::store::tokens::{self, NewToken};
use crate::store::tx::Tx;
use crate::store::users;
use crate::vault::{self, Codes};

/// Logins have no wallet. One lane and one lock for all of them keep every limit exact, and they are few.
const LANE: i64 = 0;

#[derive(Clone)]
pub struct Ask {
    pub door: Door,
    pub email: Email,
    pub client: IpAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A mail is on its way, unless its owner wants none.
    Sent,
    /// Less than a minute after the last one: nothing was done.
    TooSoon { retry_after_secs: u64 },
}

/// Mails a code. While one is alive it is mailed again, and lives no longer for it.
pub async fn ask(app: &App, ask: Ask) -> Result<Asked> {
    let (now, client) = (app.now(), ask.client);
    let draft = AskDraft {
        attempt: AttemptId::new(now, vault::random()),
        login: LoginId::new(now, vault::random()),
        client: app.vault.codes.client(&client::counted(client)),
        budget: app.settings.logins.daily_budget,
        slip: mail::slip(app),
        door: ask.door,
        email: ask.email,
        now,
    };
    let about = draft.email.masked();
    let asked = app.store.write(LANE, move |tx| ask_once(tx, &draft)).await;
    match &asked {
        Ok(Asked::Sent) => {
            count("asked");
            mail::wake(app);
        }
        Ok(Asked::TooSoon { .. }) => count("too_soon"),
        Err(error) => note_limit(error, &about, client),
    }
    asked
}

/// Until when a code that was asked for at this door is good, if one is.
pub async fn waits_until(app: &App, email: &Email, door: Door) -> Result<Option<Time>> {
    let (email, now) = (email.clone(), app.now());
    let open = app.store.read(move |tx| logins::open(tx, &email, door, now)).await?;
    Ok(open.map(|login| login.expires_at))
}

struct AskDraft {
    attempt: AttemptId,
    login: LoginId,
    client: String,
    budget: i64,
    slip: Slip,
    door: Door,
    email: Email,
    now: Time,
}

fn ask_once(tx: &mut Tx, draft: &AskDraft) -> Result<Asked> {
    let AskDraft { email, now, .. } = draft;
    let now = *now;
    logins::lock(tx)?;
    if tx.is_rerun() && logins::is_recorded(tx, &draft.attempt)? {
        return Ok(Asked::Sent);
    }
    if let Some(until) = logins::full_until(tx, Attempt::Asked, By::Email(email), ASKS_A_MINUTE, now)? {
        return Ok(Asked::TooSoon { retry_after_secs: seconds(now, until) });
    }
    refuse_full(tx, Attempt::Asked, By::Email(email), ASKS_AN_HOUR, now)?;
    refuse_full(tx, Attempt::Asked, By::Client(&draft.client), ASKS_OF_CLIENT, now)?;
    if logins::asked_on(tx, now.day())? >= draft.budget {
        let tomorrow = Time::from_micros(0).plus_days(now.day() + 1);
        return Err(Refusal::RateLimited { retry_after_secs: seconds(now, tomorrow) }.into());
    }
    let open = logins::open(tx, email, draft.door, now)?;
    let mailbox = logins::mailbox(tx, email)?;
    logins::record(tx, &draft.attempt, Attempt::Asked, email, &draft.client, now)?;
    logins::count_day(tx, now.day())?;
    // A short code is not mailed again once the address gets long ones.
    let (alive, weak) = match open {
        Some(login) if mailbox.long_codes && !login.long => (None, Some(login)),
        other => (other, None),
    };
    if let Some(weak) = weak {
        logins::end(tx, &weak.id, now)?;
    }
    let (id, long, expires_at) = match alive {
        Some(login) => (login.id, login.long, login.expires_at),
        None => {
            let (long, expires_at) = (mailbox.long_codes, now.plus_millis(CODE_MS));
            let id = &draft.login;
            logins::create(tx, &NewLogin { id, email, door: draft.door, long, created_at: now, expires_at })?;
            (id.clone(), long, expires_at)
        }
    };
    if mailbox.silent_until <= now {
        let letter = Letter::Code { login: id.to_string(), long };
        mail::queue(tx, &draft.slip, email, &letter, Some(expires_at))?;
    }
    Ok(Asked::Sent)
}

/// Refuses one more than the limit allows.
pub(super) fn refuse_full(tx: &mut Tx, kind: Attempt, by: By, limit: Limit, now: Time) -> Result<()> {
    match logins::full_until(tx, kind, by, limit, now)? {
        Some(until) => Err(Refusal::RateLimited { retry_after_secs: seconds(now, until) }.into()),
        None => Ok(()),
    }
}

/// Whole seconds until then, at least one.
fn seconds(now: Time, until: Time) -> u64 {
    ((until.micros() - now.micros() + 999_999) / 1_000_000).max(1).unsigned_abs()
}

fn count(outcome: &'static str) {
    counter!("simgate_logins_total", "outcome" => outcome).increment(1);
}

/// Whoever reaches a limit may be guessing, or making us a nuisance to others.
fn note_limit(error: &Error, email: &str, from: IpAddr) {
    if let Error::Refused(Refusal::RateLimited { .. }) = error {
        count("limited");
        tracing::info!(email, from = client::logged(from), "a limit on sign-in codes was reached");
    }
}

pub struct Answer {
    pub door: Door,
    pub email: Email,
    /// As it was typed.
    pub code: String,
    pub client: IpAddr,
    /// From `domain::login::agent_name`.
    pub agent_name: String,
    pub kind: TokenKind,
}

/// Somebody who proved an email, with the token that says so; its text is shown this once.
pub struct LoggedIn {
    pub token: String,
    pub token_id: TokenId,
    pub account: AccountNo,
    pub email: Email,
    pub agent_name: String,
    pub created_at: Time,
    pub expires_at: Option<Time>,
}

/// Takes a code in exchange for a token. A new email gets its account here.
pub async fn verify(app: &App, answer: Answer) -> Result<LoggedIn> {
    let (proof, text) = Proof::new(app, &answer);
    let (token_id, expires_at) = (proof.token.id.clone(), proof.token.expires_at);
    let created_at = proof.now;
    let verified = app.store.write(LANE, move |tx| proof.check(tx)).await;
    let account = concluded(app, &answer, verified)?;
    Ok(LoggedIn {
        token: text,
        token_id,
        account,
        email: answer.email,
        agent_name: answer.agent_name,
        created_at,
        expires_at,
    })
}

/// What came of a write that checked a code: counted, and told to whoever watches.
pub(super) fn concluded<T>(app: &App, answer: &Answer, verified: Result<Option<T>>) -> Result<T> {
    let email = answer.email.masked();
    match verified.inspect_err(|error| note_limit(error, &email, answer.client))? {
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

/// A code that somebody typed, on its way into the write that checks it.
pub(super) struct Proof {
    attempt: AttemptId,
    user: AccountId,
    client: String,
    codes: Codes,
    typed: String,
    slip: Slip,
    door: Door,
    email: Email,
    token: NewToken,
    now: Time,
}

impl Proof {
    /// With the text of the token that a right code is exchanged for.
    pub(super) fn new(app: &App, answer: &Answer) -> (Proof, String) {
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
            client: app.vault.codes.client(&client::counted(answer.client)),
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

    /// What an earlier run of the same write came to, if there was one that counts.
    pub(super) fn checked_before(&self, tx: &mut Tx) -> Result<Option<Option<AccountNo>>> {
        if !tx.is_rerun() {
            return Ok(None);
        }
        if let Some(made) = tokens::by_id(tx, &self.token.id)? {
            return Ok(Some(Some(made.account)));
        }
        Ok(logins::is_recorded(tx, &self.attempt)?.then_some(None))
    }

    /// The account that the code opens; `None` when it is wrong, which is written down.
    pub(super) fn check(&self, tx: &mut Tx) -> Result<Option<AccountNo>> {
        let Proof { email, token, now, .. } = self;
        let now = *now;
        logins::lock(tx)?;
        if let Some(before) = self.checked_before(tx)? {
            return Ok(before);
        }
        refuse_full(tx, Attempt::Wrong, By::Client(&self.client), WRONG_OF_CLIENT, now)?;
        let open = logins::open(tx, email, self.door, now)?;
        // Without a login something is compared all the same: the time must not tell whether one waits.
        let (id, long) = match &open {
            Some(login) => (login.id.clone(), login.long),
            None => (LoginId::from_text(self.attempt.as_str()), false),
        };
        let expected = self.codes.code(&id, long);
        let right = vault::same(expected.as_bytes(), self.typed.as_bytes()) && open.is_some();
        if !right {
            logins::count_wrong(tx, &id)?;
            logins::record(tx, &self.attempt, Attempt::Wrong, email, &self.client, now)?;
            let a_day = Limit { most: WRONG_BEFORE_LONG, within_ms: DAY_MS };
            if logins::full_until(tx, Attempt::Wrong, By::Email(email), a_day, now)?.is_some() {
                logins::set_long_codes(tx, email, true)?;
            }
            return Ok(None);
        }
        users::require_room(tx, email)?;
        logins::end(tx, &id, now)?;
        logins::forgive(tx, email)?;
        if logins::mailbox(tx, email)?.long_codes {
            logins::set_long_codes(tx, email, false)?;
        }
        let account = users::find_or_create(tx, email, &self.user, now)?;
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
}

/// What a "not me" link is about.
pub struct NotMe {
    pub email: Email,
    pub silent: bool,
}

/// Looks without acting: mail programs open links by themselves.
pub async fn not_me(app: &App, link: &str) -> Result<NotMe> {
    let (email, now) = (opened(app, link)?, app.now());
    let asked = email.clone();
    let mailbox = app.store.read(move |tx| logins::mailbox(tx, &asked)).await?;
    Ok(NotMe { email, silent: mailbox.silent_until > now })
}

/// No more codes for 30 days, and those on their way open nothing; or codes again.
pub async fn silence(app: &App, link: &str, silent: bool) -> Result<()> {
    let (email, now) = (opened(app, link)?, app.now());
    tracing::info!(email = email.masked(), silent, "the owner of a mailbox spoke up about sign-in codes");
    app.store
        .write(LANE, move |tx| {
            logins::lock(tx)?;
            if !silent {
                return logins::set_silent_until(tx, &email, Time::from_micros(0));
            }
            logins::end_all(tx, &email, now)?;
            logins::set_silent_until(tx, &email, now.plus_days(SILENT_DAYS))
        })
        .await
}

/// A link is good as long as what it does lasts.
fn opened(app: &App, link: &str) -> Result<Email> {
    let matter = app.vault.links.open(NOT_ME, link).ok_or(Refusal::NotFound)?;
    let (mailed, email) = matter.split_once('\n').ok_or(Refusal::NotFound)?;
    let mailed = Time::from_micros(mailed.parse().map_err(|_| Refusal::NotFound)?);
    if mailed.plus_days(SILENT_DAYS) < app.now() {
        return Err(Refusal::NotFound.into());
    }
    Ok(Email::from_text(email))
}
