//! Asking for a code: how often, which length, and who is mailed when the day's budget, or a network's share of it, is
//! spent. Everybody gets the same answer after the same work, whatever is known about an address.
//!
//! An address has two buckets for that. A request beyond the budget may be mailed to nobody, so it must not delay the
//! requests within it: these check the one bucket, from which only they take. Requests beyond the budget check the
//! bucket of all mails. When that one is empty, a request within the budget takes nothing from it: an account that was
//! not mailed for this reason is mailed as soon as the bucket gains. Neither bucket depends on whether there is an
//! account.

use std::net::IpAddr;

use super::{LANE, count, limited, seconds};
use crate::app::App;
use crate::domain::client::{self, Origin};
use crate::domain::email::Email;
use crate::domain::ids::{AttemptId, LoginId};
use crate::domain::login::{
    ASKS_OF_CLIENT, CODE_MS, Door, HOUR_MS, Limit, MAILS, Realm, Taken, share_of_budget,
};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::mail::{self, Letter, Slip};
use crate::ops::team;
use crate::store::logins::{self, Attempt, By, Counted, Last, Login, Mailed, NewLogin, Try};
use crate::store::tx::Tx;
use crate::store::{members, users};
use crate::vault;

#[derive(Clone)]
pub struct Ask {
    pub door: Door,
    pub email: Email,
    pub client: IpAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A mail was queued, unless the owner wants none; its code is valid until then.
    Sent { until: Time },
    /// Less than a minute after the last mail: nothing was mailed. The asker may use an earlier code until then.
    TooSoon { retry_after_secs: u64, until: Option<Time> },
    /// The address has had its share of mails: nothing was mailed. The asker may use an earlier code until then.
    Enough { retry_after_secs: u64, until: Option<Time> },
}

impl Asked {
    /// Why nothing was mailed, for a door that says so with an error.
    pub fn refusal(self, now: Time) -> Option<Refusal> {
        match self {
            Asked::Sent { .. } => None,
            Asked::TooSoon { retry_after_secs, until } | Asked::Enough { retry_after_secs, until } => {
                Some(match until {
                    Some(until) => {
                        Refusal::CodeStillGood { retry_after_secs, good_for_secs: seconds(now, until) }
                    }
                    None => Refusal::RateLimited { retry_after_secs },
                })
            }
        }
    }
}

/// Mails a code. A valid code is sent again; its expiry does not change.
pub async fn ask(app: &App, ask: Ask) -> Result<Asked> {
    let (now, client) = (app.now(), ask.client);
    let draft = LoginDraft {
        attempt: AttemptId::new(now, vault::random()),
        joining: [(); 2].map(|()| AttemptId::new(now, vault::random())),
        login: LoginId::new(now, vault::random()),
        origin: app.vault.codes.origin(client),
        budget: app.settings.logins.daily_budget,
        slip: mail::slip(app),
        door: ask.door,
        email: ask.email,
        now,
    };
    let (about, budget) = (draft.email.masked(), draft.budget);
    let asked = app.store.write(LANE, move |tx| draft.ask(tx)).await;
    let Done { asked, unmailed, spent } = asked.inspect_err(|error| {
        if let Error::Refused(Refusal::RateLimited { .. }) = error {
            note_limit(&about, client);
        }
    })?;
    match asked {
        Asked::Sent { .. } => {
            count(if unmailed { "unmailed" } else { "asked" });
            mail::wake(app);
        }
        Asked::TooSoon { .. } => count("too_soon"),
        Asked::Enough { .. } => note_limit(&about, client),
    }
    if spent {
        tracing::error!(
            budget,
            "the day's budget of sign-in codes is spent: until tomorrow only addresses with an account are mailed"
        );
    }
    Ok(asked)
}

/// Logs a limit that was reached: the client may be using us to annoy others.
fn note_limit(email: &str, from: IpAddr) {
    count("limited");
    tracing::info!(email, from = client::logged(from), "a limit on sign-in codes was reached");
}

/// The outcome, with details for the operator only.
struct Done {
    asked: Asked,
    /// Whether no mail was left for somebody without an account.
    unmailed: bool,
    /// Whether this was the last mail of the day's budget.
    spent: bool,
}

impl Done {
    fn of(asked: Asked) -> Done {
        Done { asked, unmailed: false, spent: false }
    }
}

struct LoginDraft {
    attempt: AttemptId,
    joining: [AttemptId; 2],
    login: LoginId,
    origin: Origin,
    budget: i64,
    slip: Slip,
    door: Door,
    email: Email,
    now: Time,
}

impl LoginDraft {
    fn whose(&self) -> Mailed<'_> {
        Mailed { realm: self.door.realm(), email: &self.email }
    }

    /// Whether somebody is known by this address. The look-up costs the same either way.
    fn is_known(&self, tx: &mut Tx) -> Result<bool> {
        match self.door.realm() {
            Realm::Buyers => users::exists(tx, &self.email),
            Realm::Partners => members::is_expected(tx, &self.email, team::invited_after(self.now)),
        }
    }

    fn ask(&self, tx: &mut Tx) -> Result<Done> {
        let (email, whose, now) = (&self.email, self.whose(), self.now);
        logins::lock(tx)?;
        if tx.is_rerun() && logins::is_recorded(tx, &self.attempt)? {
            let until = logins::open(tx, whose, now)?.until();
            return Ok(Done::of(Asked::Sent { until: until.unwrap_or(now) }));
        }
        let left = self.budget - logins::asked_on(tx, now.day())?;
        let in_budget = left > 0 && !self.has_had_its_share(tx, left)?;
        let last = logins::last(tx, whose, now)?;
        let full_until = self.full_until(tx)?;
        if let Some(last) = last.heard(in_budget).filter(|last| MAILS.next_at(*last) > now) {
            return Ok(Done::of(self.refuse(tx, last, full_until.is_none())?));
        }
        if let Some(until) = full_until {
            return Err(Refusal::RateLimited { retry_after_secs: seconds(now, until) }.into());
        }
        let mailbox = logins::mailbox(tx, whose)?;
        let is_room = last.of_all.is_none_or(|last| MAILS.next_at(last) <= now);
        // Beyond the budget only accounts are mailed; within it everybody, unless mails beyond it filled the mailbox.
        let (mailed, unmailed) = match (in_budget, is_room) {
            (true, true) => (true, false),
            (true, false) => (!self.is_known(tx)?, false),
            (false, _) => {
                let known = self.is_known(tx)?;
                (known, !known)
            }
        };
        // Anybody may become a buyer; in a team is only who was invited.
        let mailed = match whose.realm {
            Realm::Buyers => mailed,
            Realm::Partners => self.is_known(tx)? && (is_room || !in_budget),
        };
        let long = mailbox.long_codes || limited(tx, &self.origin, now)?.is_some();
        let open = logins::open(tx, whose, now)?;
        // A live short code stays valid for others, but it is not mailed to a client that may not try it, nor to an
        // address that gets long codes: then another login begins beside it.
        let alive = if long { open.long } else { open.short.or(open.long) };
        let login = match alive {
            Some(login) => login,
            None => self.begin(tx, long)?,
        };
        let taken = Last {
            in_budget: in_budget.then(|| MAILS.take(last.in_budget, now)),
            of_all: match last.of_all {
                Some(last) if !is_room => Some(last),
                last => Some(MAILS.take(last, now)),
            },
        };
        self.note(tx, &self.attempt, Attempt::Asked, &login.id, taken)?;
        if in_budget {
            logins::count_day(tx, now.day())?;
        }
        let letter =
            Letter::Code { login: login.id.to_string(), long: login.long, door: self.door.as_str().into() };
        if mailed && mailbox.silent_until <= now {
            mail::queue(tx, &self.slip, email, &letter, Some(login.expires_at))?;
        } else {
            mail::queue_for_nobody(tx, &self.slip, &letter)?;
        }
        Ok(Done { asked: Asked::Sent { until: login.expires_at }, unmailed, spent: in_budget && left == 1 })
    }

    /// How long the client, or one of its networks, may not ask again. Joining counts like asking: either gives five
    /// tries at a short code.
    fn full_until(&self, tx: &mut Tx) -> Result<Option<Time>> {
        let mut full = None;
        for (width, network) in self.origin.networks() {
            let limit = Limit { most: ASKS_OF_CLIENT.of(width), within_ms: HOUR_MS };
            full = full.max(logins::full_until(
                tx,
                Counted::Asks,
                By::Network(width, network),
                limit,
                self.now,
            )?);
        }
        Ok(full)
    }

    /// Mails nothing to the address yet. A code mailed before is valid for the asker too, and asking joins it: the
    /// asker may try it even if somebody behind the same address guesses too often later.
    ///
    /// A client that is limited already joins only a long code, since it could guess at short ones. If no long code is
    /// alive, the next mail carries one, whoever asks for it. Otherwise anybody who keeps a mailbox's bucket empty
    /// could lock out the people who share a limited address.
    fn refuse(&self, tx: &mut Tx, last: Taken, may_join: bool) -> Result<Asked> {
        let (whose, now) = (self.whose(), self.now);
        let mut open = logins::open(tx, whose, now)?;
        let limited = limited(tx, &self.origin, now)?;
        if may_join && limited.is_some() && open.long.is_none() {
            logins::set_long_codes(tx, whose, true)?;
        }
        let mut own = logins::asked_for(tx, whose, limited.unwrap_or_else(|| self.origin.client()), now)?;
        let short = open.short.as_ref().filter(|_| limited.is_none());
        for (login, joining) in short.into_iter().chain(&open.long).zip(&self.joining) {
            if may_join && !own.contains(&login.id) {
                self.note(tx, joining, Attempt::Joined, &login.id, Last::default())?;
                own.push(login.id.clone());
            }
        }
        if limited.is_some() {
            open = open.only(|login| own.contains(&login.id));
        }
        let (retry_after_secs, until) = (seconds(now, MAILS.next_at(last)), open.until());
        Ok(match MAILS.apart_until(last) > now {
            true => Asked::TooSoon { retry_after_secs, until },
            false => Asked::Enough { retry_after_secs, until },
        })
    }

    /// Whether the client's widest network has used up its share of the day's budget.
    fn has_had_its_share(&self, tx: &mut Tx, left: i64) -> Result<bool> {
        let midnight = Time::from_micros(0).plus_days(self.now.day());
        let today_ms = (self.now.micros() - midnight.micros()) / 1_000;
        let share = Limit { most: share_of_budget(left), within_ms: today_ms };
        match self.origin.networks().first() {
            Some((width, widest)) => {
                let by = By::Network(*width, *widest);
                Ok(logins::full_until(tx, Counted::Mails, by, share, self.now)?.is_some())
            }
            None => Ok(false),
        }
    }

    fn begin(&self, tx: &mut Tx, long: bool) -> Result<Login> {
        let (id, created_at) = (&self.login, self.now);
        let expires_at = created_at.plus_millis(CODE_MS);
        logins::create(tx, &NewLogin { id, whose: self.whose(), long, created_at, expires_at })?;
        Ok(Login { id: id.clone(), long, expires_at })
    }

    fn note(&self, tx: &mut Tx, id: &AttemptId, kind: Attempt, login: &LoginId, taken: Last) -> Result<()> {
        let (whose, origin, at) = (self.whose(), &self.origin, self.now);
        logins::note(tx, &Try { id, kind, whose, origin, login: Some(login), at, taken })
    }
}
