//! Logins and their limits. Every limit is a sum over rows, so it holds over restarts and on all instances; callers who
//! decide take `lock` first. Rows further in the future than a limit lasts came from a wrong clock, and do not count.
//! Codes are not here: they follow from a login's id and the server secret.
//!
//! What counts against an address counts in one realm: whoever asks for codes at one door in somebody's name takes none from
//! them at another. Attempts and mailboxes keep the address with its realm (`Mailed::text`).

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::client::{Origin, Rows, Width};
use crate::domain::email::Email;
use crate::domain::ids::{AttemptId, LoginId};
use crate::domain::login::{CODE_MS, HOUR_MS, Limit, MOST_WRONG, Realm, Taken};
use crate::domain::time::Time;
use crate::domain::words::words;
use crate::error::Result;

/// The time of an attempt, counted from the newest over two kinds. Of each kind no more are read than could count.
macro_rules! nth_newest {
    ($whose:literal) => {
        concat!(
            "SELECT at FROM (SELECT at FROM (SELECT at FROM login_attempts WHERE ",
            $whose,
            " AND kind = ?2 AND at > ?4 AND at <= ?7 ORDER BY at DESC LIMIT ?5) one
             UNION ALL SELECT at FROM (SELECT at FROM login_attempts WHERE ",
            $whose,
            " AND kind = ?3 AND at > ?4 AND at <= ?7 ORDER BY at DESC LIMIT ?5) other) both_kinds ORDER BY at DESC LIMIT 1 OFFSET ?6"
        )
    };
}

queries! {
    /// SQLite needs no lock: a write transaction has the database to itself.
    LOCK (Postgres) = "SELECT n FROM versions WHERE name = 'logins' FOR UPDATE";
    OPEN = text!("SELECT ", Login::COLUMNS, " FROM logins
            WHERE email = ?1 AND realm = ?2 AND ended_at IS NULL AND expires_at > ?3 AND (long_code = 1 OR wrong < ?4)
            ORDER BY created_at, id");
    INSERT = "INSERT INTO logins (id, email, realm, long_code, created_at, expires_at, wrong) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0)";
    IS_OPEN = "SELECT 1 FROM logins WHERE id = ?1 AND ended_at IS NULL AND expires_at > ?2 AND (long_code = 1 OR wrong < ?3)";
    END = "UPDATE logins SET ended_at = ?2 WHERE id = ?1 AND ended_at IS NULL";
    END_ALL = "UPDATE logins SET ended_at = ?2 WHERE email = ?1 AND realm = ?3 AND ended_at IS NULL";
    WRONG = "UPDATE logins SET wrong = wrong + 1 WHERE id = ?1";
    TRIED = "SELECT 1 FROM login_attempts WHERE id = ?1";
    NOTE = insert_into!("login_attempts", Noted);
    LAST_IN_BUDGET = "SELECT at, full_at FROM login_attempts WHERE email = ?1 AND kind = 'ASKED' AND full_at > 0 AND at <= ?2 ORDER BY at DESC LIMIT 1";
    LAST_OF_ALL = "SELECT at, mails_full_at FROM login_attempts WHERE email = ?1 AND kind = 'ASKED' AND at <= ?2 ORDER BY at DESC LIMIT 1";
    ASKED_FOR = "SELECT login FROM login_attempts
                 WHERE email = ?1 AND kind IN ('ASKED', 'JOINED') AND at > ?2 AND ip >= ?3 AND ip < ?4";
    OF_EMAIL = nth_newest!("email = ?1");
    OF_CLIENT = nth_newest!("ip = ?1");
    OF_SITE = nth_newest!("site = ?1 AND site <> ''");
    OF_AREA = nth_newest!("area = ?1 AND area <> ''");
    FORGIVE = "UPDATE login_attempts SET email = '' WHERE email = ?1 AND kind = 'WRONG'";
    MAILBOX = text!("SELECT ", Mailbox::COLUMNS, " FROM mailboxes WHERE email = ?1");
    SET_LONG = "INSERT INTO mailboxes (email, long_codes, silent_until) VALUES (?1, ?2, 0)
                ON CONFLICT (email) DO UPDATE SET long_codes = excluded.long_codes";
    SET_SILENT = "INSERT INTO mailboxes (email, long_codes, silent_until) VALUES (?1, 0, ?2)
                  ON CONFLICT (email) DO UPDATE SET silent_until = excluded.silent_until";
    ASKED_ON = "SELECT asked FROM login_days WHERE day = ?1";
    COUNT_DAY = "INSERT INTO login_days (day, asked) VALUES (?1, 1) ON CONFLICT (day) DO UPDATE SET asked = login_days.asked + 1";
    OLD_LOGINS = "DELETE FROM logins WHERE id IN (SELECT id FROM logins WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)";
    OLD_ATTEMPTS = "DELETE FROM login_attempts WHERE id IN (SELECT id FROM login_attempts WHERE at < ?1 ORDER BY at LIMIT ?2)";
    OLD_MAILBOXES = "DELETE FROM mailboxes WHERE email IN (SELECT email FROM mailboxes WHERE long_codes = 0 AND silent_until < ?1 LIMIT ?2)";
    OLD_DAYS = "DELETE FROM login_days WHERE day < ?1";
}

/// An address in a realm.
#[derive(Clone, Copy)]
pub struct Mailed<'a> {
    pub realm: Realm,
    pub email: &'a Email,
}

impl Mailed<'_> {
    /// Buyers, who were there first, have the bare address; no address has a colon.
    fn text(&self) -> String {
        match self.realm {
            Realm::Buyers => self.email.to_string(),
            Realm::Partners => format!("{}:{}", self.realm.as_str(), self.email),
        }
    }
}

#[derive(Clone)]
pub struct Login {
    pub id: LoginId,
    pub long: bool,
    pub expires_at: Time,
}

columns! { Login { id, long = "long_code", expires_at } }

/// The logins of an address that wait for their code: at most one of each length, since another is made only when there
/// is none.
#[derive(Default)]
pub struct Open {
    pub short: Option<Login>,
    pub long: Option<Login>,
}

impl Open {
    /// Keeps only the logins that pass.
    pub fn only(self, pass: impl Fn(&Login) -> bool) -> Open {
        Open { short: self.short.filter(&pass), long: self.long.filter(&pass) }
    }

    /// Until when one of them is valid.
    pub fn until(&self) -> Option<Time> {
        self.short.iter().chain(&self.long).map(|login| login.expires_at).max()
    }
}

pub struct NewLogin<'a> {
    pub id: &'a LoginId,
    pub whose: Mailed<'a>,
    pub long: bool,
    pub created_at: Time,
    pub expires_at: Time,
}

words! {
    pub enum Attempt {
        Asked = "ASKED",
        /// Asked for a live code that could not be mailed again yet.
        Joined = "JOINED",
        Wrong = "WRONG",
    }
}

/// An attempt to log in.
pub struct Try<'a> {
    pub id: &'a AttemptId,
    pub kind: Attempt,
    pub whose: Mailed<'a>,
    pub origin: &'a Origin,
    /// The login that was asked for.
    pub login: Option<&'a LoginId>,
    pub at: Time,
    pub taken: Last,
}

values! {
    Noted(new: Try<'a>, whose: &'a str, site: &'a str, area: &'a str) {
        id = new.id,
        kind = new.kind.as_str(),
        email = whose,
        ip = new.origin,
        site = site,
        area = area,
        login = new.login.map_or("", LoginId::as_str),
        at,
        full_at = new.taken.in_budget.map_or(0, |taken| taken.full_at.micros()),
        mails_full_at = new.taken.of_all.map_or(0, |taken| taken.full_at.micros()),
    }
}

/// What was last taken out of the two buckets of an address.
#[derive(Clone, Copy, Default)]
pub struct Last {
    /// From the bucket of mails within the day's budget.
    pub in_budget: Option<Taken>,
    /// From the bucket of all mails.
    pub of_all: Option<Taken>,
}

impl Last {
    /// The last mail that a request has to wait for.
    pub fn heard(&self, in_budget: bool) -> Option<Taken> {
        if in_budget { self.in_budget } else { self.of_all }
    }
}

/// Which attempts are counted.
#[derive(Clone, Copy)]
pub enum Counted {
    /// Requests that give the right to try a code.
    Asks,
    /// Requests that may have been mailed.
    Mails,
    Wrong,
}

impl Counted {
    fn kinds(self) -> [&'static str; 2] {
        let (one, other) = match self {
            Counted::Asks => (Attempt::Asked, Some(Attempt::Joined)),
            Counted::Mails => (Attempt::Asked, None),
            Counted::Wrong => (Attempt::Wrong, None),
        };
        [one.as_str(), other.map_or("", Attempt::as_str)]
    }
}

/// Whose attempts are counted.
#[derive(Clone, Copy)]
pub enum By<'a> {
    Email(Mailed<'a>),
    Network(Width, Rows<'a>),
}

#[derive(Clone, Copy)]
pub struct Mailbox {
    pub long_codes: bool,
    pub silent_until: Time,
}

columns! { Mailbox { long_codes, silent_until } }

pub fn lock(tx: &mut Tx) -> Result<()> {
    if tx.is_postgres() {
        tx.one::<()>(LOCK, &[])?;
    }
    Ok(())
}

/// The logins that a code could be meant for. Of several of one length the newest counts.
pub fn open(tx: &mut Tx, whose: Mailed, now: Time) -> Result<Open> {
    let logins: Vec<Login> = tx.all(OPEN, params![whose.email, whose.realm.as_str(), now, MOST_WRONG])?;
    let mut open = Open::default();
    for login in logins {
        let place = if login.long { &mut open.long } else { &mut open.short };
        *place = Some(login);
    }
    Ok(open)
}

pub fn create(tx: &mut Tx, new: &NewLogin) -> Result<()> {
    let Mailed { realm, email } = new.whose;
    let values = params![new.id, email, realm.as_str(), new.long, new.created_at, new.expires_at];
    tx.execute(INSERT, values).map(drop)
}

/// Whether a mail with this login's code is still useful.
pub fn is_open(tx: &mut Tx, id: &LoginId, now: Time) -> Result<bool> {
    tx.any(IS_OPEN, params![id, now, MOST_WRONG])
}

pub fn end(tx: &mut Tx, id: &LoginId, now: Time) -> Result<()> {
    tx.execute(END, params![id, now]).map(drop)
}

pub fn end_all(tx: &mut Tx, whose: Mailed, now: Time) -> Result<()> {
    tx.execute(END_ALL, params![whose.email, now, whose.realm.as_str()]).map(drop)
}

pub fn count_wrong(tx: &mut Tx, id: &LoginId) -> Result<()> {
    tx.execute(WRONG, params![id]).map(drop)
}

/// Whether an earlier run of this job has recorded the attempt.
pub fn is_recorded(tx: &mut Tx, id: &AttemptId) -> Result<bool> {
    tx.any(TRIED, params![id])
}

/// Records an attempt, with the networks that it counts in.
pub fn note(tx: &mut Tx, new: &Try) -> Result<()> {
    let (mut site, mut area) = (String::new(), String::new());
    for (width, rows) in new.origin.networks() {
        match width {
            Width::Area => area = rows.from(),
            Width::Site => site = rows.from(),
            Width::Client => {}
        }
    }
    tx.execute(NOTE, &Noted::params(new, &new.whose.text(), &site, &area)).map(drop)
}

columns! { Taken { at, full_at } }

/// The last mails to this address that were asked for.
pub fn last(tx: &mut Tx, whose: Mailed, now: Time) -> Result<Last> {
    let whose = whose.text();
    let values = params![&whose, now.plus_millis(HOUR_MS)];
    Ok(Last { in_budget: tx.opt(LAST_IN_BUDGET, values)?, of_all: tx.opt(LAST_OF_ALL, values)? })
}

/// The logins of an address that a network asked for and that may still be open.
pub fn asked_for(tx: &mut Tx, whose: Mailed, by: Rows, now: Time) -> Result<Vec<LoginId>> {
    let (whose, from, before) = (whose.text(), by.from(), by.before());
    let values = params![&whose, now.plus_millis(-CODE_MS), &from, &before];
    tx.all(ASKED_FOR, values)
}

/// When one more is allowed; `None` when it is allowed now.
pub fn full_until(tx: &mut Tx, counted: Counted, by: By, limit: Limit, now: Time) -> Result<Option<Time>> {
    let (sql, key) = match by {
        By::Email(whose) => (OF_EMAIL, whose.text()),
        By::Network(Width::Client, rows) => (OF_CLIENT, rows.from()),
        By::Network(Width::Site, rows) => (OF_SITE, rows.from()),
        By::Network(Width::Area, rows) => (OF_AREA, rows.from()),
    };
    let [one, other] = counted.kinds();
    let since = now.plus_millis(-limit.within_ms);
    let values =
        params![&key, one, other, since, limit.most, limit.most - 1, now.plus_millis(limit.within_ms)];
    let oldest: Option<Time> = tx.opt(sql, values)?;
    Ok(oldest.map(|at| at.plus_millis(limit.within_ms)))
}

/// Forgives after a code was used: earlier wrong tries no longer count against its owner. They still count against the
/// client that made them, or a guesser could wait for owners to clear them.
pub fn forgive(tx: &mut Tx, whose: Mailed) -> Result<()> {
    tx.execute(FORGIVE, params![&whose.text()]).map(drop)
}

pub fn mailbox(tx: &mut Tx, whose: Mailed) -> Result<Mailbox> {
    let found = tx.opt(MAILBOX, params![&whose.text()])?;
    Ok(found.unwrap_or(Mailbox { long_codes: false, silent_until: Time::from_micros(0) }))
}

pub fn set_long_codes(tx: &mut Tx, whose: Mailed, long: bool) -> Result<()> {
    tx.execute(SET_LONG, params![&whose.text(), long]).map(drop)
}

pub fn set_silent_until(tx: &mut Tx, whose: Mailed, until: Time) -> Result<()> {
    tx.execute(SET_SILENT, params![&whose.text(), until]).map(drop)
}

pub fn asked_on(tx: &mut Tx, day: i64) -> Result<i64> {
    Ok(tx.opt(ASKED_ON, params![day])?.unwrap_or(0))
}

pub fn count_day(tx: &mut Tx, day: i64) -> Result<()> {
    tx.execute(COUNT_DAY, params![day]).map(drop)
}

/// Forgets rows older than `before`, a limited number at a time. True when there may be more.
pub fn forget(tx: &mut Tx, before: Time, now: Time, most: i64) -> Result<bool> {
    let logins = tx.execute(OLD_LOGINS, params![before, most])?;
    let attempts = tx.execute(OLD_ATTEMPTS, params![before, most])?;
    let mailboxes = tx.execute(OLD_MAILBOXES, params![now, most])?;
    tx.execute(OLD_DAYS, params![before.day()])?;
    Ok([logins, attempts, mailboxes].into_iter().any(|gone| gone >= most.unsigned_abs()))
}
