//! API keys: which there are, making one, replacing and ending it. A secret is in the answer to the form that made it, and on
//! no other page.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::domain::ids::KeyId;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Query, Segment, key_id};
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::kit::wire::parse_time;
use crate::http::pages::moment::Moment;
use crate::http::pages::told;
use crate::ops::operator::{self, IssuedKey, KEY_NAME_CHARS, Key, KeyTerms, MOST_KEYS};

/// How many keys that have ended are shown at once.
const ENDED: usize = 20;
const NETWORKS_CHARS: usize = 2_000;

/// How long both keys work after a change.
struct Overlap {
    word: &'static str,
    name: &'static str,
    hint: &'static str,
    millis: i64,
}

const OVERLAPS: [Overlap; 4] = [
    Overlap {
        word: "now",
        name: "Not at all",
        hint: "The old key ends now, for instance because somebody else has it.",
        millis: 0,
    },
    Overlap { word: "hour", name: "1 hour", hint: "", millis: 3_600_000 },
    Overlap { word: "day", name: "1 day", hint: "", millis: 86_400_000 },
    Overlap { word: "week", name: "7 days", hint: "", millis: 7 * 86_400_000 },
];
const USUAL_OVERLAP: &str = "day";

/// A key in a list.
struct KeyShown {
    id: KeyId,
    name: String,
    made: Moment,
    maker: String,
    used: Option<Moment>,
    limit: Option<Usd>,
    /// What was spent today, where there is a limit and no other key counts for this one.
    spent: Usd,
    networks: String,
    read_only: bool,
    ends: Option<Moment>,
    revoked: Option<Moment>,
    next: Option<String>,
}

impl KeyShown {
    fn of(key: Key, now: Time) -> KeyShown {
        KeyShown {
            spent: key.spent_today(now),
            id: key.id,
            name: key.name,
            made: Moment::of(key.created_at),
            maker: key.maker.unwrap_or_else(|| "the operator".into()),
            used: key.last_used_at.map(Moment::of),
            limit: key.daily_limit,
            networks: key.ips.replace(',', ", "),
            read_only: key.read_only,
            ends: key.expires_at.map(Moment::of),
            revoked: key.revoked_at.map(Moment::of),
            next: key.replaced_by,
        }
    }

    /// What people call it.
    fn called(&self) -> &str {
        if self.name.is_empty() { self.id.as_str() } else { &self.name }
    }
}

#[derive(Template)]
#[template(path = "portal/keys.html")]
struct KeysPage<'a> {
    frame: Frame<'a>,
    keys: Vec<KeyShown>,
    ended: Vec<KeyShown>,
    is_first: bool,
    /// The key before which older ones were made.
    older: Option<KeyId>,
}

pub async fn list(visit: Visit, query: Query) -> Answer {
    let (app, account) = (&visit.state.app, visit.me().account);
    let before = key_id(&query.typed("before")).ok();
    let keys = operator::keys_in_use(app, account).await?;
    let mut ended = operator::ended_keys(app, account, before.as_ref(), ENDED as i64 + 1).await?;
    let more = ended.len() > ENDED;
    ended.truncate(ENDED);
    let now = app.now();
    let shown = |keys: Vec<Key>| keys.into_iter().map(|key| KeyShown::of(key, now)).collect();
    let template = KeysPage {
        frame: visit.frame(Section::Keys),
        keys: shown(keys),
        older: ended.last().filter(|_| more).map(|key| key.id.clone()),
        ended: shown(ended),
        is_first: before.is_none(),
    };
    page(&visit.state, StatusCode::OK, &template)
}

/// What was typed into the form of a new key.
#[derive(Default)]
struct Typed {
    name: String,
    limit: String,
    networks: String,
    read_only: bool,
    expires: String,
}

impl Typed {
    fn of(fields: &Query) -> Typed {
        Typed {
            name: fields.typed("name"),
            limit: fields.typed("limitUsd"),
            networks: fields.typed("ips"),
            read_only: fields.typed("readOnly") == "on",
            expires: fields.typed("expires"),
        }
    }
}

fn terms(mut fields: Query) -> Result<KeyTerms, Refusal> {
    let read_only = fields.typed("readOnly") == "on";
    let name = fields.text("name", KEY_NAME_CHARS).unwrap_or_default();
    let amount = "must be a number like 200 or 200.50";
    let daily_limit = fields.take("limitUsd", amount, |text| Usd::parse(text.trim()).ok());
    let networks = "must be addresses or networks like 192.0.2.7, 10.0.0.0/8";
    let is_short = |text: &&str| text.len() <= NETWORKS_CHARS;
    let ips = fields.take("ips", networks, |text| Some(text).filter(is_short).and_then(operator::networks));
    // A key ends when its last day is over.
    let day = |text: &str| parse_time(text).map(|day| day.plus_days(1));
    let expires_at = fields.take("expires", "must be a day like 2026-01-31", day);
    let ips = ips.unwrap_or_default();
    fields.finish_with(Some(KeyTerms { daily_limit, ips, read_only, name, expires_at }))
}

#[derive(Template)]
#[template(path = "portal/key_new.html")]
struct NewKeyPage<'a> {
    frame: Frame<'a>,
    typed: Typed,
    problem: Option<String>,
}

pub async fn form(visit: Visit) -> Answer {
    visit.me().require(Ability::Keys)?;
    new_form(&visit, StatusCode::OK, Typed::default(), None)
}

fn new_form(visit: &Visit, status: StatusCode, typed: Typed, problem: Option<String>) -> Answer {
    page(&visit.state, status, &NewKeyPage { frame: visit.frame(Section::Keys), typed, problem })
}

/// The one page with a secret.
#[derive(Template)]
#[template(path = "portal/key_issued.html")]
struct IssuedPage<'a> {
    frame: Frame<'a>,
    key: IssuedKey,
    curl: String,
    /// The key that it replaces, and when that one ends.
    old: Option<(KeyId, Moment)>,
}

fn issued(visit: &Visit, key: IssuedKey, old: Option<(KeyId, Moment)>) -> Answer {
    let base = &visit.state.app.settings.base_url;
    let curl = format!(
        "curl -sS '{base}/api/b2b/v1/balance' \\\n  -H 'X-B2B-Key: {}' \\\n  -H 'X-B2B-Secret: {}'",
        key.id, key.secret
    );
    let template = IssuedPage { frame: visit.frame(Section::Keys), key, curl, old };
    page(&visit.state, StatusCode::OK, &template)
}

pub async fn create(Sent(visit, fields): Sent) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    me.require(Ability::Keys)?;
    let typed = Typed::of(&fields);
    let made = match terms(fields) {
        Ok(terms) => operator::create_key_as(app, me, terms).await,
        Err(refusal) => Err(refusal.into()),
    };
    match made {
        Ok(key) => issued(&visit, key, None),
        Err(error) => {
            let (status, problem) = told(error)?;
            new_form(&visit, status, typed, Some(problem))
        }
    }
}

#[derive(Template)]
#[template(path = "portal/key_rotate.html")]
struct RotatePage<'a> {
    frame: Frame<'a>,
    key: KeyShown,
    chosen: String,
    problem: Option<String>,
}

async fn own(visit: &Visit, id: &str) -> Result<Key> {
    visit.me().require(Ability::Keys)?;
    operator::key_of(&visit.state.app, visit.me().account, &key_id(id)?).await
}

pub async fn rotate_form(visit: Visit, Segment(id): Segment) -> Answer {
    let key = own(&visit, &id).await?;
    ask_overlap(&visit, StatusCode::OK, key, USUAL_OVERLAP.into(), None)
}

fn ask_overlap(
    visit: &Visit,
    status: StatusCode,
    key: Key,
    chosen: String,
    problem: Option<String>,
) -> Answer {
    let key = KeyShown::of(key, visit.state.app.now());
    page(&visit.state, status, &RotatePage { frame: visit.frame(Section::Keys), key, chosen, problem })
}

/// Makes a key with the rights of this one, which ends after a while. Sent twice, it makes one: a key is replaced once.
pub async fn rotate(Segment(id): Segment, Sent(visit, mut fields): Sent) -> Answer {
    let old = own(&visit, &id).await?;
    let chosen = fields.typed("overlap");
    let millis = |word: &str| Some(OVERLAPS.iter().find(|overlap| overlap.word == word)?.millis);
    let overlap = fields.require("overlap", "must be one of these", millis);
    let rotated = match fields.finish_with(overlap) {
        Ok(overlap) => operator::rotate_key_as(&visit.state.app, visit.me(), &old.id, overlap).await,
        Err(refusal) => Err(refusal.into()),
    };
    match rotated {
        Ok(rotated) => {
            let ends = Moment::of(rotated.old_ends_at);
            issued(&visit, rotated.key, Some((old.id, ends)))
        }
        Err(error @ Error::Refused(Refusal::Invalid(_))) => {
            let (status, problem) = told(error)?;
            ask_overlap(&visit, status, old, chosen, Some(problem))
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Template)]
#[template(path = "portal/key_revoke.html")]
struct RevokePage<'a> {
    frame: Frame<'a>,
    key: KeyShown,
}

/// Asks again: a key that was revoked does not come back.
pub async fn revoke_form(visit: Visit, Segment(id): Segment) -> Answer {
    let key = KeyShown::of(own(&visit, &id).await?, visit.state.app.now());
    page(&visit.state, StatusCode::OK, &RevokePage { frame: visit.frame(Section::Keys), key })
}

pub async fn revoke(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    let key = own(&visit, &id).await?;
    operator::revoke_key_as(&visit.state.app, visit.me(), &key.id).await?;
    Ok(see(&after(Done::KeyRevoked, &Section::Keys.path())))
}
