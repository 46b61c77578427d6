//! Sessions of members of partners' teams. A sign-in takes a mailed code, an invitation too where somebody joins a team, and
//! then a second factor where its owner turned one on. Until that was shown the session opens nothing: five wrong ones end it,
//! and a right one exchanges it for another.

use super::{LANE, MOST_LISTED, SignIn, is_well_formed, note_visit};
use crate::app::App;
use crate::domain::client;
use crate::domain::email::Email;
use crate::domain::ids::{MemberId, SessionId, secret_text};
use crate::domain::login::{MOST_WRONG, Realm};
use crate::domain::refusal::Refusal;
use crate::domain::session::{self, Limits};
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::audit::audit_line;
use crate::ops::login::{self, Proof};
use crate::ops::second_factor::{self, Answer, Verdict};
use crate::ops::team::{self, Member};
use crate::store::audit::{self, Line};
use crate::store::logins;
use crate::store::members::{self, Person};
pub use crate::store::sessions::Listed;
use crate::store::sessions::{self, MemberSession, NewSession};
use crate::store::tx::Tx;
use crate::vault;

/// How long a second factor may take.
const AWAITS_MS: i64 = 10 * 60_000;

/// A member's session, and the member as it stands now.
#[derive(Clone)]
pub struct Stay {
    pub id: SessionId,
    pub member: Member,
    /// When its owner signed in; to change over to another team is no sign-in.
    pub made_at: Time,
}

impl Stay {
    fn of(session: MemberSession) -> Stay {
        Stay {
            id: session.id,
            made_at: session.made_at,
            member: Member {
                id: session.member,
                account: session.account,
                email: session.email,
                role: session.role,
                company: session.company,
                price_list: session.price_list,
                low_balance: session.low_balance,
                balance: session.balance,
                suspended: session.suspended,
            },
        }
    }
}

/// Exchanges a code for a session, and answers its secret. With an invitation its owner joins that team; without one the
/// session is of the team that was visited last.
pub async fn sign_in(app: &App, sign_in: SignIn, invitation: Option<&str>) -> Result<String> {
    let SignIn { answer, agent, former } = sign_in;
    let now = app.now();
    let invitation = invitation.map(|link| team::named(app, link)).transpose()?;
    let (proof, _) = Proof::new(app, &answer);
    let (new, secret) = NewStay::new(app, &agent, client::logged(answer.client));
    let former = former.filter(|text| is_well_formed(text)).map(|text| vault::hash_secret(&text));
    let (email, actor) = (answer.email.clone(), format!("member:{}", answer.email));
    let line = audit_line(app, &actor, "team join", email.to_string());
    let write = move |tx: &mut Tx| {
        logins::lock(tx)?;
        if tx.is_rerun() && sessions::is_made(tx, &new.id)? {
            return Ok(Some(()));
        }
        if proof.was_wrong(tx)? || !proof.is_right(tx, |_| Ok(()))? {
            return Ok(None);
        }
        if let Some(invited) = &invitation {
            if !members::join(tx, &invited.id, &email, invited.invited_at, now)? {
                return Err(Refusal::NotFound.into());
            }
            let joined = members::by_id(tx, &invited.id)?.ok_or(Refusal::NotFound)?;
            let line = Line { account: Some(joined.account), ..line.clone() };
            audit::record(tx, &line.changing("invited", joined.role.as_str()))?;
        }
        let teams = members::of_email(tx, &email)?;
        let chosen = match &invitation {
            Some(invited) => teams.iter().find(|person| person.id == invited.id),
            None => teams.first(),
        };
        let Some(person) = chosen else { return Ok(None) };
        if let Some(former) = &former
            && let Some((id, _)) = sessions::former(tx, former, Realm::Partners)?
        {
            sessions::end(tx, &id)?;
        }
        let awaits = second_factor::is_on(tx, Realm::Partners, &email)?;
        new.begin(tx, person, awaits)?;
        Ok(Some(()))
    };
    let made = app.store.write(LANE, write).await;
    login::concluded(app, &answer, made)?;
    Ok(secret)
}

/// A session before it is known whose it is.
struct NewStay {
    id: SessionId,
    secret_hash: [u8; 32],
    made_at: Time,
    seen_at: Time,
    browser: String,
    network: String,
}

impl NewStay {
    /// One of a browser that says this of itself, and the secret that the browser will hold.
    fn new(app: &App, agent: &str, network: String) -> (NewStay, String) {
        let secret = secret_text("", [vault::random(), vault::random()]);
        let (now, secret_hash) = (app.now(), vault::hash_secret(&secret));
        let id = SessionId::new(now, vault::random());
        let browser = session::browser(agent);
        (NewStay { id, secret_hash, made_at: now, seen_at: now, browser, network }, secret)
    }

    fn begin(&self, tx: &mut Tx, person: &Person, awaits: bool) -> Result<()> {
        let new = NewSession {
            id: self.id.clone(),
            secret_hash: self.secret_hash,
            realm: Realm::Partners,
            holder: person.id.to_string(),
            awaits,
            made_at: self.made_at,
            seen_at: self.seen_at,
            browser: self.browser.clone(),
            network: self.network.clone(),
        };
        sessions::create(tx, person.account, &new)?;
        members::seen(tx, &person.id, self.seen_at)
    }
}

/// Exchanges a session that awaits a second factor for one that awaits nothing, and answers its secret.
pub async fn pass(app: &App, stay: &Stay, typed: &str, agent: &str, network: String) -> Result<String> {
    let (new, secret) = NewStay::new(app, agent, network);
    let (old, member) = (stay.id.clone(), stay.member.id.clone());
    let answer = Answer::new(app, Realm::Partners, &stay.member.email, typed);
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && sessions::is_made(tx, &new.id)? {
            return Ok(Verdict::Right);
        }
        let verdict = second_factor::check(tx, &answer)?;
        match verdict {
            Verdict::Right => {
                let person = members::by_id(tx, &member)?.ok_or(Refusal::NotFound)?;
                // Somebody may have ended it meanwhile.
                if !sessions::end_one_of_member(tx, &member, &old)? {
                    return Err(Refusal::NotFound.into());
                }
                new.begin(tx, &person, false)?;
            }
            Verdict::Wrong | Verdict::Used => {
                if sessions::count_wrong(tx, &old)? >= MOST_WRONG {
                    sessions::end(tx, &old)?;
                }
            }
            Verdict::Resting { .. } | Verdict::Off => {}
        }
        Ok(verdict)
    };
    let verdict = app.store.write(LANE, write).await?;
    second_factor::concluded(app, &stay.member.email, verdict)?;
    Ok(secret)
}

/// The session that a browser's secret stands for, if it has not ended and awaits nothing.
pub async fn find(app: &App, secret: &str) -> Result<Option<Stay>> {
    let found = look(app, secret).await?.filter(|session| !session.awaits);
    if let Some(session) = &found {
        note_visit(app, &session.id, session.account, session.seen_at);
    }
    Ok(found.map(Stay::of))
}

/// The same for one that awaits its second factor.
pub async fn find_awaiting(app: &App, secret: &str) -> Result<Option<Stay>> {
    let begun_after = app.now().plus_millis(-AWAITS_MS);
    let found = look(app, secret).await?;
    Ok(found.filter(|session| session.awaits && session.made_at > begun_after).map(Stay::of))
}

async fn look(app: &App, secret: &str) -> Result<Option<MemberSession>> {
    if !is_well_formed(secret) {
        return Ok(None);
    }
    let (hash, good) = (vault::hash_secret(secret), Limits::good(app.now()));
    let found = app.store.read(move |tx| sessions::member_by_hash(tx, &hash)).await?;
    Ok(found.filter(|session| good.admit(session.made_at, session.seen_at)))
}

/// Enters another team of the same person, and answers the secret of a session there, which is as old as this one; this one
/// ends.
pub async fn switch(app: &App, stay: &Stay, to: &MemberId, agent: &str, network: String) -> Result<String> {
    let (new, secret) = NewStay::new(app, agent, network);
    let new = NewStay { made_at: stay.made_at, ..new };
    let (email, to, old, member) =
        (stay.member.email.clone(), to.clone(), stay.id.clone(), stay.member.id.clone());
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && sessions::is_made(tx, &new.id)? {
            return Ok(());
        }
        let teams = members::of_email(tx, &email)?;
        let person = teams.iter().find(|person| person.id == to).ok_or(Refusal::MemberNotFound)?;
        // Somebody may have ended it meanwhile, or switched with it.
        if !sessions::end_one_of_member(tx, &member, &old)? {
            return Err(Refusal::NotFound.into());
        }
        new.begin(tx, person, false)
    };
    app.store.write(LANE, write).await?;
    Ok(secret)
}

/// Where a person is signed in, in whichever team, newest first.
pub async fn list(app: &App, email: &Email) -> Result<Vec<Listed>> {
    let (email, good) = (email.clone(), Limits::good(app.now()));
    app.store.read(move |tx| sessions::of_person(tx, &email, good, MOST_LISTED)).await
}

/// Ends one session of the person who asks.
pub async fn end(app: &App, by: &Member, id: &SessionId) -> Result<()> {
    let (email, id) = (by.email.clone(), id.clone());
    let write = move |tx: &mut Tx| sessions::end_one_of_person(tx, &email, &id);
    if app.store.write(by.account.0, write).await? { Ok(()) } else { Err(Refusal::NotFound.into()) }
}

/// Ends every session of the person who asks, in all teams.
pub async fn end_all(app: &App, by: &Member) -> Result<()> {
    let email = by.email.clone();
    app.store.write(by.account.0, move |tx| sessions::end_of_person(tx, &email, None)).await
}
