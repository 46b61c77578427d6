//! The teams of partners: who is in one, what each may do, and how people are invited. Every deed for a partner that a
//! person asks for at a page is done as a `Member`, whose role is checked here and in the operations that take one.
//!
//! An invitation is a link with a seal, mailed to the address that it is for. It is used up by a sign-in with a code that is
//! mailed to that address too (`sessions::join`), so whoever finds the link alone has nothing.

use super::LANE;
use super::audit::audit_line;
use super::by_hand::ByHand;
use super::mail::{self, Letter, Slip};
use super::orders::Buyer;
use crate::app::App;
use crate::domain::account::AccountKind;
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, MemberId};
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::role::{Ability, Role};
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::audit::{self, Line};
use crate::store::keys::{self, Key};
pub use crate::store::members::Person;
use crate::store::members::{self, NewMember};
use crate::store::tx::Tx;
use crate::store::{accounts, sessions, wallet};
use crate::vault;

/// The purpose of an invitation's link, which is its path too.
pub const JOIN: &str = "portal/join";
/// Who owns the team of a sandbox's demo partner. Nothing is mailed to it: the sandbox shows its mails itself.
pub const DEMO_OWNER: &str = "owner@demo.example";
pub const INVITED_HOURS: i64 = 72;
const MOST: usize = 200;
/// How many invitations the members of a team may send in a day: nobody may use us to flood others with mail.
const INVITATIONS_A_DAY: i64 = 50;
const INVITE: &str = "team invite";

/// A member of a team who asks for something.
#[derive(Clone, Debug)]
pub struct Member {
    pub id: MemberId,
    pub account: AccountNo,
    pub email: Email,
    pub role: Role,
    pub company: String,
    pub price_list: String,
    pub low_balance: Usd,
    pub balance: Usd,
    pub suspended: bool,
}

impl Member {
    pub fn may(&self, ability: Ability) -> bool {
        self.role.may(ability)
    }

    /// Refuses what the role does not cover.
    pub fn require(&self, ability: Ability) -> Result<()> {
        if self.may(ability) { Ok(()) } else { Err(Refusal::RoleNotAllowed(ability).into()) }
    }

    /// Who buys when this member places an order by hand: the orders carry the member as they carry keys.
    pub(super) fn buyer(&self, app: &App, command: &'static str) -> Result<Buyer> {
        Ok(Buyer {
            account: self.account,
            key_id: self.id.to_string(),
            price_list: self.price_list.clone(),
            limited: false,
            by_hand: Some(self.deed(app, Ability::Order, command, String::new())?),
        })
    }

    /// The name in the audit log. It is the address: it was proven, and nobody chooses it.
    pub fn actor(&self) -> String {
        format!("member:{}", self.email)
    }

    /// A deed of this member's; refused if the role does not cover it. Its write begins with `ByHand::check`.
    pub(super) fn deed(
        &self,
        app: &App,
        ability: Ability,
        command: &'static str,
        detail: String,
    ) -> Result<ByHand> {
        self.require(ability)?;
        Ok(ByHand::of_member(self.id.clone(), ability, self.line(app, command, detail)))
    }

    /// A line of the audit log, which the whole team can read.
    fn line(&self, app: &App, command: &'static str, detail: String) -> Line {
        Line { account: Some(self.account), ..audit_line(app, &self.actor(), command, detail) }
    }
}

/// The people of a team and those who are invited to it, the first first.
pub async fn list(app: &App, account: AccountNo) -> Result<Vec<Person>> {
    app.store.read(move |tx| members::of_account(tx, account)).await
}

/// The teams that a person may enter.
pub async fn of_email(app: &App, email: &Email) -> Result<Vec<Person>> {
    let email = email.clone();
    app.store.read(move |tx| members::of_email(tx, &email)).await
}

/// An invitation made before then is over.
pub(super) fn invited_after(now: Time) -> Time {
    now.plus_millis(-INVITED_HOURS * 3_600_000)
}

/// What is sealed in an invitation's link.
pub(super) fn matter(id: &MemberId, invited_at: Time) -> String {
    format!("{id}\n{}", invited_at.micros())
}

/// Whether a mail with this invitation is still useful.
pub(super) fn is_open(tx: &mut Tx, id: &MemberId, invited_at: Time) -> Result<bool> {
    let found = members::by_id(tx, id)?;
    Ok(found.is_some_and(|person| person.joined_at.is_none() && person.invited_at == invited_at))
}

/// An invitation as its link names it.
pub(super) struct Named {
    pub id: MemberId,
    pub invited_at: Time,
}

/// Reads a link; what has ended is as unknown as what never was.
pub(super) fn named(app: &App, link: &str) -> Result<Named> {
    let matter = app.vault.links.open(JOIN, link).ok_or(Refusal::NotFound)?;
    let (id, invited_at) = matter.split_once('\n').ok_or(Refusal::NotFound)?;
    let invited_at = Time::from_micros(invited_at.parse().map_err(|_| Refusal::NotFound)?);
    if invited_at <= invited_after(app.now()) {
        return Err(Refusal::NotFound.into());
    }
    Ok(Named { id: MemberId::from_text(id), invited_at })
}

/// Whom a link invites. Looking uses nothing up.
pub async fn invited(app: &App, link: &str) -> Result<Person> {
    let Named { id, invited_at } = named(app, link)?;
    let found = app.store.read(move |tx| members::by_id(tx, &id)).await?;
    let open = found.filter(|person| person.joined_at.is_none() && person.invited_at == invited_at);
    Ok(open.ok_or(Refusal::NotFound)?)
}

/// An invitation with all that its write must not make itself.
pub(super) struct Invitation {
    id: MemberId,
    email: Email,
    role: Role,
    /// Who invites, in the mail; empty for the operator.
    by: String,
    slip: Slip,
    deed: ByHand,
}

impl Invitation {
    pub(super) fn new(app: &App, email: Email, role: Role, by: String, deed: ByHand) -> Invitation {
        let slip = mail::slip(app);
        Invitation { id: MemberId::new(app.now(), vault::random()), email, role, by, slip, deed }
    }

    /// The caller has locked the wallet, so that two invitations of one person do not both become rows.
    pub(super) fn place(&self, tx: &mut Tx, account: AccountNo, company: &str) -> Result<()> {
        let line = &self.deed.line;
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(());
        }
        self.deed.check(tx)?;
        let now = self.slip.at;
        let sent = audit::lately(tx, account, now.plus_days(-1), INVITE, "", INVITATIONS_A_DAY)?;
        if line.command == INVITE && sent.len() as i64 >= INVITATIONS_A_DAY {
            let why = format!("must wait: a team sends at most {INVITATIONS_A_DAY} invitations in a day");
            return Err(Refusal::field("email", why).into());
        }
        let id = match members::by_email(tx, account, &self.email)? {
            Some(person) if person.joined_at.is_some() => {
                return Err(Refusal::field("email", "is in the team already").into());
            }
            Some(person) => {
                members::invite_again(tx, &person.id, self.role, now, &self.by)?;
                person.id
            }
            None => {
                if members::of_account(tx, account)?.len() >= MOST {
                    return Err(Refusal::field(
                        "email",
                        format!("is one too many: a team has at most {MOST}"),
                    )
                    .into());
                }
                members::insert(
                    tx,
                    &NewMember {
                        id: self.id.clone(),
                        account,
                        email: self.email.clone(),
                        role: self.role,
                        invited_at: now,
                        invited_by: self.by.clone(),
                    },
                )?;
                self.id.clone()
            }
        };
        let letter = Letter::Invitation {
            member: id.to_string(),
            company: company.into(),
            role: self.role.as_str().into(),
            by: self.by.clone(),
            invited: now.micros(),
        };
        mail::queue(tx, &self.slip, &self.email, &letter, Some(now.plus_millis(INVITED_HOURS * 3_600_000)))?;
        let line = Line { account: Some(account), ..line.clone() };
        audit::record(tx, &line.changing("not in the team", format!("invited as {}", self.role.as_str())))
    }
}

/// Invites somebody, or invites them again, perhaps with another role: earlier links end.
pub async fn invite(app: &App, by: &Member, email: Email, role: Role) -> Result<()> {
    let deed = by.deed(app, Ability::Team, INVITE, email.to_string())?;
    let invitation = Invitation::new(app, email, role, by.email.to_string(), deed);
    invite_to(app, by.account, by.company.clone(), invitation).await
}

/// The same for an operator: a partner's first owner, or one whose invitation is over.
pub async fn invite_by_hand(
    app: &App,
    actor: &str,
    account: AccountNo,
    email: Email,
    role: Role,
) -> Result<()> {
    let found = app.store.read(move |tx| accounts::by_no(tx, account)).await?;
    let partner = found.filter(|account| account.kind == AccountKind::Partner);
    let partner = partner.ok_or(Refusal::AccountNotFound)?;
    let line = audit_line(app, actor, "partner invite", format!("{}: {email}", partner.id));
    let invitation = Invitation::new(app, email, role, String::new(), line.into());
    invite_to(app, account, partner.name, invitation).await
}

async fn invite_to(app: &App, account: AccountNo, company: String, invitation: Invitation) -> Result<()> {
    let write = move |tx: &mut Tx| {
        wallet::lock(tx, account)?;
        invitation.place(tx, account, &company)
    };
    app.store.write(account.0, write).await?;
    mail::wake(app);
    Ok(())
}

/// Somebody of this team, for a page about them.
pub async fn person(app: &App, account: AccountNo, id: &MemberId) -> Result<Person> {
    let id = id.clone();
    app.store.read(move |tx| in_team(tx, account, &id)).await
}

fn in_team(tx: &mut Tx, account: AccountNo, id: &MemberId) -> Result<Person> {
    let found = members::by_id(tx, id)?.filter(|person| person.account == account);
    Ok(found.ok_or(Refusal::MemberNotFound)?)
}

pub async fn change_role(app: &App, by: &Member, id: &MemberId, role: Role) -> Result<()> {
    let deed = by.deed(app, Ability::Team, "team role", id.to_string())?;
    let (account, id) = (by.account, id.clone());
    let write = move |tx: &mut Tx| {
        deed.check(tx)?;
        let person = in_team(tx, account, &id)?;
        if person.role == role {
            return Ok(());
        }
        if role != Role::Owner {
            require_another_owner(tx, &person)?;
        }
        members::set_role(tx, &id, role)?;
        let withdrawn = match role.may(Ability::Team) {
            true => String::new(),
            false => withdraw_of(tx, &person, deed.line.at)?,
        };
        let line = Line { detail: person.email.to_string(), ..deed.line.clone() };
        audit::record(tx, &line.changing(person.role.as_str(), format!("{}{withdrawn}", role.as_str())))
    };
    app.store.write(account.0, write).await
}

/// The keys in use that a member made: they go on working when the member is gone.
pub async fn keys_made_by(app: &App, account: AccountNo, id: &MemberId) -> Result<Vec<Key>> {
    let (id, now) = (id.to_string(), app.now());
    let mut keys = app.store.read(move |tx| keys::in_use(tx, account, now)).await?;
    keys.retain(|key| key.made_by == id);
    Ok(keys)
}

/// Removes somebody at once, with their sessions, or withdraws their invitation. Everybody may leave by themselves.
pub async fn remove(app: &App, by: &Member, id: &MemberId) -> Result<()> {
    let (command, detail) = ("team remove", id.to_string());
    let deed = match by.id == *id {
        true => by.line(app, command, detail).into(),
        false => by.deed(app, Ability::Team, command, detail)?,
    };
    let (account, id, now) = (by.account, id.clone(), app.now());
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &deed.line.id)? {
            return Ok(());
        }
        wallet::lock(tx, account)?;
        deed.check(tx)?;
        let person = in_team(tx, account, &id)?;
        require_another_owner(tx, &person)?;
        members::remove(tx, &id, now)?;
        sessions::end_of_member(tx, &id)?;
        let withdrawn = withdraw_of(tx, &person, now)?;
        let line = Line { detail: person.email.to_string(), ..deed.line.clone() };
        audit::record(tx, &line.changing(person.role.as_str(), format!("not in the team{withdrawn}")))
    };
    app.store.write(account.0, write).await
}

/// Withdraws the open invitations of somebody who may not invite any more: whoever holds one would let them in again.
/// Answers what the log says of it.
fn withdraw_of(tx: &mut Tx, person: &Person, now: Time) -> Result<String> {
    Ok(match members::withdraw_of(tx, person.account, &person.email, now)? {
        0 => String::new(),
        withdrawn => format!(", open invitations withdrawn: {withdrawn}"),
    })
}

/// Refuses to leave a team without anybody who can change it.
fn require_another_owner(tx: &mut Tx, person: &Person) -> Result<()> {
    let is_other =
        |other: &Person| other.id != person.id && other.role == Role::Owner && other.joined_at.is_some();
    if person.role != Role::Owner || person.joined_at.is_none() {
        return Ok(());
    }
    match members::of_account(tx, person.account)?.iter().any(is_other) {
        true => Ok(()),
        false => Err(Refusal::field("role", "must stay: a team needs an owner who has joined").into()),
    }
}

/// Has somebody in a sandbox's demo team at once, without an invitation.
pub(crate) async fn enlist(app: &App, account: AccountNo, email: Email) -> Result<()> {
    let now = app.now();
    let id = MemberId::new(now, vault::random());
    let write = move |tx: &mut Tx| {
        wallet::lock(tx, account)?;
        if members::by_email(tx, account, &email)?.is_some() {
            return Ok(());
        }
        let by = String::new();
        let (email, role) = (email.clone(), Role::Owner);
        members::insert(
            tx,
            &NewMember {
                id: id.clone(),
                account,
                email: email.clone(),
                role,
                invited_at: now,
                invited_by: by,
            },
        )?;
        members::join(tx, &id, &email, now, now).map(drop)
    };
    app.store.write(LANE, write).await
}
