//! The second factor of people who sign in: an authenticator app, and recovery codes for when it is lost. It belongs to a
//! person, an email in a realm, and guards whatever that person may enter. So nobody but that person turns it on or off, and
//! nobody but an operator takes it away.
//!
//! A sign-in looks `is_on` in the write that checks the mailed code. If it is on, the sign-in goes on to ask for a code, and
//! `check` belongs into the write that makes the session: both happen, or neither. The email comes from the sign-in's own
//! row, never from a form.

use metrics::counter;

use super::LANE;
use super::audit::audit_line;
use super::mail::{self, FactorChange, Letter, Slip};
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::ids::{AttemptId, SessionId};
use crate::domain::login::Realm;
use crate::domain::refusal::Refusal;
use crate::domain::second_factor::{RECOVERY_CODES, SETUP_MS, Typed, grouped, may_set_up, setup_uri, steps};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::audit;
use crate::store::second_factors::{self, Factor, Person};
use crate::store::sessions;
use crate::store::tx::Tx;
use crate::vault::{self, FactorSecret, Factors};
use crate::wire::dates::iso;

/// How a person's second factor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Off,
    /// A secret was shown, and is still to be confirmed.
    Begun {
        at: Time,
    },
    On {
        since: Time,
        recovery_codes: i64,
    },
}

impl Standing {
    /// What stands in the audit log.
    fn in_words(self) -> String {
        match self {
            Standing::Off => "off".into(),
            Standing::Begun { at } => format!("begun at {}", iso(at)),
            Standing::On { since, recovery_codes } => {
                format!("on since {}, recovery codes: {recovery_codes}", iso(since))
            }
        }
    }
}

pub async fn state(app: &App, realm: Realm, email: &Email) -> Result<Standing> {
    let (person, now) = (person(realm, email), app.now());
    app.store.read(move |tx| standing(tx, &person, now)).await
}

fn standing(tx: &mut Tx, person: &Person, now: Time) -> Result<Standing> {
    Ok(match second_factors::find(tx, person)? {
        Some(Factor { confirmed_at: Some(since), .. }) => {
            Standing::On { since, recovery_codes: second_factors::count_recovery(tx, person)? }
        }
        Some(factor) if is_fresh(&factor, now) => Standing::Begun { at: factor.begun_at },
        _ => Standing::Off,
    })
}

fn is_fresh(factor: &Factor, now: Time) -> bool {
    now.and_a_little().is_within(SETUP_MS, factor.begun_at)
}

fn person(realm: Realm, email: &Email) -> Person {
    Person { realm, email: email.clone() }
}

/// Tells the person what changed: whoever did it may be somebody else.
fn tell(tx: &mut Tx, slip: &Slip, person: &Person, change: FactorChange) -> Result<()> {
    mail::queue(tx, slip, &person.email, &Letter::SecondFactor { change, at: slip.at.micros() }, None)
}

/// Who is said to have done it: the person.
fn actor(person: &Person) -> String {
    match person.realm {
        Realm::Buyers => format!("user:{}", person.email),
        Realm::Partners => format!("member:{}", person.email),
    }
}

/// What an app is given, by hand or by a QR code of the URI. It is shown to the browser that began, and to no other.
pub struct Setup {
    pub secret_text: String,
    pub uri: String,
}

impl Setup {
    fn new(app: &App, email: &Email, secret: &FactorSecret) -> Setup {
        let secret_text = secret.text();
        Setup { uri: setup_uri(&app.settings.brand.name, email.as_str(), &secret_text), secret_text }
    }
}

/// Whether somebody who signed in at that time may set one up now.
pub fn may_begin(app: &App, signed_in_at: Time) -> bool {
    may_set_up(signed_in_at, app.now())
}

/// Makes a secret, which does not count until it is confirmed. It takes the place of another such; what is on stays.
pub async fn begin(app: &App, realm: Realm, email: &Email, signed_in_at: Time) -> Result<Setup> {
    if !may_begin(app, signed_in_at) {
        return Err(Refusal::SignInAnew.into());
    }
    let (person, now) = (person(realm, email), app.now());
    let secret = FactorSecret::random()?;
    let sealed = app.vault.factors.seal(realm, email, &secret)?;
    let write = move |tx: &mut Tx| second_factors::begin(tx, &person, &sealed, now);
    if app.store.write(LANE, write).await? {
        Ok(Setup::new(app, email, &secret))
    } else {
        Err(Refusal::SecondFactorOn.into())
    }
}

/// The set-up once more, for a browser that was shown its secret and sent it back with a wrong code. `None` when another
/// was begun since.
pub async fn again(app: &App, realm: Realm, email: &Email, secret_text: &str) -> Result<Option<Setup>> {
    let (person, now) = (person(realm, email), app.now());
    let found = app.store.read(move |tx| second_factors::find(tx, &person)).await?;
    let Some(factor) = found.filter(|factor| factor.confirmed_at.is_none() && is_fresh(factor, now)) else {
        return Ok(None);
    };
    let secret = app.vault.factors.open(realm, email, &factor.secret)?;
    let same = vault::same(secret.text().as_bytes(), secret_text.as_bytes());
    Ok(same.then(|| Setup::new(app, email, &secret)))
}

/// Fresh recovery codes as they are shown, this once, and their hashes.
fn recovery_codes(app: &App, person: &Person) -> (Vec<String>, Vec<[u8; 32]>) {
    let fresh = || {
        let code = vault::recovery_code();
        let hash = app.vault.factors.recovery_hash(person.realm, &person.email, &code);
        (grouped(&code), hash)
    };
    (0..RECOVERY_CODES).map(|_| fresh()).unzip()
}

/// Turns on what was begun, by a code that the app shows, and answers the recovery codes. That code is used up. Of the
/// person's sessions only `here` stays: the others never showed a second factor.
pub async fn confirm(
    app: &App,
    realm: Realm,
    email: &Email,
    code: &str,
    here: &SessionId,
) -> Result<Vec<String>> {
    let (answer, person, here) = (Answer::new(app, realm, email, code), person(realm, email), here.clone());
    let line = audit_line(app, &actor(&person), "second-factor on", email.to_string());
    let ((shown, hashes), slip) = (recovery_codes(app, &person), mail::slip(app));
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(true);
        }
        let factor = second_factors::lock(tx, &person)?.ok_or(Refusal::NoSecondFactor)?;
        if factor.confirmed_at.is_some() {
            return Err(Refusal::SecondFactorOn.into());
        }
        if !is_fresh(&factor, answer.now) {
            return Err(Refusal::NoSecondFactor.into());
        }
        // Whoever confirms was shown the secret, so guesses are not counted.
        let Some(step) = answer.step(&factor)? else { return Ok(false) };
        if !second_factors::confirm(tx, &person, step, answer.now)? {
            return Err(Error::fault("a second factor was turned on although it was locked"));
        }
        second_factors::replace_recovery(tx, &person, &hashes)?;
        if realm == Realm::Partners {
            sessions::end_of_person(tx, &person.email, Some(&here))?;
        }
        let on = Standing::On { since: answer.now, recovery_codes: hashes.len() as i64 };
        audit::record(tx, &line.changing(Standing::Off.in_words(), on.in_words()))?;
        tell(tx, &slip, &person, FactorChange::On)?;
        Ok(true)
    };
    if !app.store.write(LANE, write).await? {
        return Err(Refusal::SecondFactorWrong.into());
    }
    mail::wake(app);
    Ok(shown)
}

/// Turns it off, with a code of the app or a recovery code. Its recovery codes go too.
pub async fn turn_off(app: &App, realm: Realm, email: &Email, code: &str) -> Result<()> {
    act(app, realm, email, code, "second-factor off", FactorChange::Off, |tx, person| {
        second_factors::remove(tx, person)?;
        Ok(Standing::Off)
    })
    .await
}

/// Makes recovery codes in place of all earlier ones, with a code of the app or one of those.
pub async fn new_recovery_codes(app: &App, realm: Realm, email: &Email, code: &str) -> Result<Vec<String>> {
    let (shown, hashes) = recovery_codes(app, &person(realm, email));
    act(app, realm, email, code, "second-factor codes", FactorChange::NewCodes, move |tx, person| {
        second_factors::replace_recovery(tx, person, &hashes)?;
        let factor = second_factors::find(tx, person)?;
        let since = factor.and_then(|factor| factor.confirmed_at);
        let since = since.ok_or_else(|| Error::fault("a second factor went although it was locked"))?;
        Ok(Standing::On { since, recovery_codes: hashes.len() as i64 })
    })
    .await?;
    Ok(shown)
}

/// A deed of the person, after a right code, with its line in the audit log. `deed` answers how things stand after it.
async fn act(
    app: &App,
    realm: Realm,
    email: &Email,
    code: &str,
    command: &'static str,
    change: FactorChange,
    deed: impl Fn(&mut Tx, &Person) -> Result<Standing> + Send + 'static,
) -> Result<()> {
    let (answer, person) = (Answer::new(app, realm, email, code), person(realm, email));
    let line = audit_line(app, &actor(&person), command, email.to_string());
    let slip = mail::slip(app);
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(Verdict::Right);
        }
        let before = standing(tx, &person, answer.now)?;
        let verdict = check(tx, &answer)?;
        if verdict == Verdict::Right {
            let after = deed(tx, &person)?;
            audit::record(tx, &line.changing(before.in_words(), after.in_words()))?;
            tell(tx, &slip, &person, change)?;
        }
        Ok(verdict)
    };
    let verdict = app.store.write(LANE, write).await?;
    mail::wake(app);
    concluded(app, email, verdict)
}

/// Takes a person's second factor away, by an operator: whoever reads that person's mail signs in from now on. Answers
/// how it stood.
pub async fn reset(app: &App, actor: &str, realm: Realm, email: &Email) -> Result<Standing> {
    let (person, now) = (person(realm, email), app.now());
    let line = audit_line(app, actor, "partner reset-second-factor", email.to_string());
    let slip = mail::slip(app);
    let write = move |tx: &mut Tx| {
        let done = tx.is_rerun() && audit::exists(tx, &line.id)?;
        second_factors::lock(tx, &person)?;
        let before = standing(tx, &person, now)?;
        if done || before == Standing::Off {
            return Ok((done, before));
        }
        second_factors::remove(tx, &person)?;
        audit::record(tx, &line.changing(before.in_words(), Standing::Off.in_words()))?;
        tell(tx, &slip, &person, FactorChange::TakenAway)?;
        Ok((true, before))
    };
    let (was_on, before) = app.store.write(LANE, write).await?;
    if !was_on {
        return Err(Refusal::NoSecondFactor.into());
    }
    mail::wake(app);
    Ok(before)
}

/// Whether a sign-in of this person needs a second factor. One that was begun and not confirmed does not count.
pub fn is_on(tx: &mut Tx, realm: Realm, email: &Email) -> Result<bool> {
    second_factors::is_on(tx, &person(realm, email))
}

/// What somebody typed, and all that the write needs to check it.
pub struct Answer {
    id: AttemptId,
    person: Person,
    typed: Typed,
    recovery_hash: Option<[u8; 32]>,
    factors: Factors,
    now: Time,
}

impl Answer {
    pub fn new(app: &App, realm: Realm, email: &Email, typed: &str) -> Answer {
        let now = app.now();
        let typed = Typed::read(typed);
        let recovery_hash = match &typed {
            Typed::Recovery(code) => Some(app.vault.factors.recovery_hash(realm, email, code)),
            Typed::Code(_) | Typed::Other => None,
        };
        Answer {
            id: AttemptId::new(now, vault::random()),
            person: person(realm, email),
            typed,
            recovery_hash,
            factors: app.vault.factors.clone(),
            now,
        }
    }

    /// The half minute around now whose code was typed.
    fn step(&self, factor: &Factor) -> Result<Option<i64>> {
        let Typed::Code(code) = &self.typed else { return Ok(None) };
        let Person { realm, email } = &self.person;
        let secret = self.factors.open(*realm, email, &factor.secret)?;
        Ok(secret.step_of(code, &steps(self.now)))
    }
}

/// What an answer was found to be. Only `Right` lets anybody pass where a code was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    Right,
    Wrong,
    /// A code of the app that is right, and was used before; it counts as no guess.
    Used,
    /// After too many wrong codes the app's are not looked at; recovery codes are.
    Resting {
        until: Time,
    },
    /// The person has none, or none any more.
    Off,
}

/// Checks an answer in the caller's write, and uses up the code in it: each counts once, also on two instances at one
/// moment. Wrong codes of the app are counted over all sign-ins; the caller counts those of its own.
///
/// A second run of the write finds what the first one found. If another answer came between, a right code is `Used`
/// then: the caller looks first whether the first run did its work.
pub fn check(tx: &mut Tx, answer: &Answer) -> Result<Verdict> {
    let Answer { id, person, now, .. } = answer;
    let Some(factor) = second_factors::lock(tx, person)?.filter(|factor| factor.confirmed_at.is_some())
    else {
        return Ok(Verdict::Off);
    };
    if tx.is_rerun() && factor.judged == *id {
        return Ok(if factor.judged_right { Verdict::Right } else { Verdict::Wrong });
    }
    if let Some(hash) = &answer.recovery_hash {
        if !second_factors::use_recovery(tx, person, hash)? {
            return Ok(Verdict::Wrong);
        }
        second_factors::judge(tx, person, factor.tries.after_recovery(*now), id, true)?;
        return Ok(Verdict::Right);
    }
    if matches!(answer.typed, Typed::Other) {
        return Ok(Verdict::Wrong);
    }
    if let Some(until) = factor.tries.resting_until(*now) {
        return Ok(Verdict::Resting { until });
    }
    match answer.step(&factor)? {
        Some(step) if second_factors::use_step(tx, person, step, id)? => Ok(Verdict::Right),
        Some(_) => Ok(Verdict::Used),
        None => {
            second_factors::judge(tx, person, factor.tries.after_wrong(*now), id, false)?;
            Ok(Verdict::Wrong)
        }
    }
}

/// Counts and logs what a write has found, and refuses whatever is not right. Call it when the write is done: a refusal
/// inside would take back what it noted.
pub fn concluded(app: &App, email: &Email, verdict: Verdict) -> Result<()> {
    let (outcome, refusal) = match verdict {
        Verdict::Right => ("right", None),
        Verdict::Wrong => ("wrong", Some(Refusal::SecondFactorWrong)),
        Verdict::Used => ("used", Some(Refusal::SecondFactorUsed)),
        Verdict::Resting { until } => {
            let retry_after_secs = super::login::seconds(app.now(), until);
            ("resting", Some(Refusal::SecondFactorRests { retry_after_secs }))
        }
        Verdict::Off => ("off", Some(Refusal::NoSecondFactor)),
    };
    counter!("simgate_second_factors_total", "outcome" => outcome).increment(1);
    match refusal {
        None => Ok(()),
        Some(refusal) => {
            tracing::info!(email = email.masked(), outcome, "a code of a second factor was refused");
            Err(refusal.into())
        }
    }
}
