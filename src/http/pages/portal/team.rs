//! The team: who is in it, in which role, who is invited, and what members did.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::domain::ids::MemberId;
use crate::domain::refusal::Refusal;
use crate::domain::role::{Ability, Role};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Query, Segment, member_id};
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::moment::Moment;
use crate::http::pages::told;
use crate::ops::audit::{self, Deed};
use crate::ops::operator::Key;
use crate::ops::team::{self, Person};

const DEEDS: i64 = 50;

/// Somebody in the list.
struct Row {
    id: MemberId,
    email: String,
    role: Role,
    joined: Option<Moment>,
    seen: Option<Moment>,
    invited: Moment,
    is_me: bool,
}

impl Row {
    fn of(person: Person, me: &MemberId) -> Row {
        Row {
            is_me: person.id == *me,
            id: person.id,
            email: person.email.to_string(),
            role: person.role,
            joined: person.joined_at.map(Moment::of),
            seen: person.seen_at.map(Moment::of),
            invited: Moment::of(person.invited_at),
        }
    }
}

#[derive(Template)]
#[template(path = "portal/team.html")]
struct TeamPage<'a> {
    frame: Frame<'a>,
    people: Vec<Row>,
    email: String,
    chosen: Role,
    problem: Option<String>,
}

pub async fn list(visit: Visit) -> Answer {
    shown(&visit, StatusCode::OK, String::new(), Role::Viewer, None).await
}

async fn shown(
    visit: &Visit,
    status: StatusCode,
    email: String,
    chosen: Role,
    problem: Option<String>,
) -> Answer {
    let me = visit.me();
    let people = team::list(&visit.state.app, me.account).await?;
    let people = people.into_iter().map(|person| Row::of(person, &me.id)).collect();
    let template = TeamPage { frame: visit.frame(Section::Team), people, email, chosen, problem };
    page(&visit.state, status, &template)
}

fn role(fields: &mut Query) -> Option<Role> {
    fields.require("role", "must be one of the roles", Role::parse)
}

pub async fn invite(Sent(visit, mut fields): Sent) -> Answer {
    let typed = fields.typed("email");
    let chosen = Role::parse(&fields.typed("role")).unwrap_or(Role::Viewer);
    let (email, role) = (fields.required_email("email"), role(&mut fields));
    let invited = match fields.finish_with(email.zip(role)) {
        Ok((email, role)) => team::invite(&visit.state.app, visit.me(), email, role).await,
        Err(refusal) => Err(refusal.into()),
    };
    match invited {
        Ok(()) => Ok(see(&after(Done::Invited, &Section::Team.path()))),
        Err(error) => {
            let (status, problem) = told(error)?;
            shown(&visit, status, typed, chosen, Some(problem)).await
        }
    }
}

#[derive(Template)]
#[template(path = "portal/member.html")]
struct MemberPage<'a> {
    frame: Frame<'a>,
    person: Row,
    keys: Vec<Key>,
    chosen: Role,
    problem: Option<String>,
}

async fn own(visit: &Visit, id: &str) -> Result<Person> {
    team::person(&visit.state.app, visit.me().account, &member_id(id)?).await
}

/// Somebody's role, and removing them.
pub async fn one(visit: Visit, Segment(id): Segment) -> Answer {
    let person = own(&visit, &id).await?;
    about(&visit, StatusCode::OK, person, None).await
}

async fn about(visit: &Visit, status: StatusCode, person: Person, problem: Option<String>) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    let keys = team::keys_made_by(app, me.account, &person.id).await?;
    let chosen = person.role;
    let template = MemberPage {
        frame: visit.frame(Section::Team),
        person: Row::of(person, &me.id),
        keys,
        chosen,
        problem,
    };
    page(&visit.state, status, &template)
}

pub async fn change_role(Segment(id): Segment, Sent(visit, mut fields): Sent) -> Answer {
    let person = own(&visit, &id).await?;
    let role = role(&mut fields);
    let changed = match fields.finish_with(role) {
        Ok(role) => team::change_role(&visit.state.app, visit.me(), &person.id, role).await,
        Err(refusal) => Err(refusal.into()),
    };
    match changed {
        Ok(()) => Ok(see(&after(Done::RoleChanged, &Section::Team.path()))),
        Err(error @ Error::Refused(Refusal::Invalid(_))) => {
            let (status, problem) = told(error)?;
            about(&visit, status, person, Some(problem)).await
        }
        Err(error) => Err(error.into()),
    }
}

pub async fn remove(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    let person = own(&visit, &id).await?;
    let is_me = person.id == visit.me().id;
    match team::remove(&visit.state.app, visit.me(), &person.id).await {
        Ok(()) if is_me => Ok(see("/portal")),
        Ok(()) => Ok(see(&after(Done::Removed, &Section::Team.path()))),
        Err(error @ Error::Refused(Refusal::Invalid(_))) => {
            let (status, problem) = told(error)?;
            about(&visit, status, person, Some(problem)).await
        }
        Err(error) => Err(error.into()),
    }
}

/// What a member's deed is called, by the command that the audit log has for it.
fn called(command: &str) -> Option<&'static str> {
    Some(match command {
        "order place" => "Placed an order",
        "order batch" => "Placed several orders",
        "order top-up" => "Bought more data",
        "order send" => "Sent an eSIM to a customer",
        "order cancel" => "Asked to give an eSIM back",
        "order keep" => "Kept an eSIM after all",
        "deposit open" => "Opened a deposit",
        "deposit address" => "Made the standing address",
        "key create" => "Made an API key",
        "key rotate" => "Replaced an API key",
        "key revoke" => "Revoked an API key",
        "webhook create" => "Added a webhook",
        "webhook change" => "Changed a webhook",
        "webhook enable" => "Enabled a webhook",
        "webhook disable" => "Disabled a webhook",
        "webhook rotate" => "Made a new secret of a webhook",
        "webhook test" => "Tested a webhook",
        "webhook redeliver" => "Sent an event once more",
        "webhook replay" => "Sent a webhook again what it missed",
        "webhook delete" => "Deleted a webhook",
        "company rename" => "Renamed the company",
        "company warning" => "Changed the low-balance warning",
        "team join" => "Joined the team",
        "team invite" => "Invited somebody",
        "team role" => "Changed a role",
        "team remove" => "Removed somebody from the team",
        _ => return None,
    })
}

/// A line of what members did.
struct DeedRow {
    at: Moment,
    who: String,
    what: String,
    detail: String,
    change: Option<(String, String)>,
}

impl DeedRow {
    fn of(deed: Deed) -> DeedRow {
        DeedRow {
            at: Moment::of(deed.at),
            who: deed.actor.strip_prefix("member:").unwrap_or("the operator").to_string(),
            // A later version may have written others.
            what: called(&deed.command).map_or(deed.command, str::to_string),
            detail: deed.detail,
            change: deed.before.zip(deed.after),
        }
    }
}

#[derive(Template)]
#[template(path = "portal/deeds.html")]
struct DeedsPage<'a> {
    frame: Frame<'a>,
    deeds: Vec<DeedRow>,
    /// Where older ones begin.
    older: Option<String>,
}

/// What members did, newest first.
pub async fn deeds(visit: Visit, query: Query) -> Answer {
    let before = query.typed("before").split_once('-').and_then(|(at, id)| {
        let at = Time::from_micros(at.parse().ok()?);
        Some((at, id.to_string()))
    });
    let mut found = audit::of_team(&visit.state.app, visit.me().account, before, DEEDS + 1).await?;
    let more = found.len() as i64 > DEEDS;
    found.truncate(DEEDS as usize);
    let older = found.last().filter(|_| more).map(|deed| format!("{}-{}", deed.at.micros(), deed.id));
    let deeds = found.into_iter().map(DeedRow::of).collect();
    page(&visit.state, StatusCode::OK, &DeedsPage { frame: visit.frame(Section::Team), deeds, older })
}
