//! Agents' tokens: what each may spend in a day, when it was last used, and ending it. Tokens are made by agents, with a
//! code that their owner gives them; those of assistants end by themselves after a day.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Segment, token_id};
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::moment::Moment;
use crate::http::pages::told;
use crate::ops::tokens::{self, Token};

const LIST: &str = "/account/agents";

/// A token in a list.
struct AgentShown {
    id: String,
    name: String,
    prefix: String,
    made: Moment,
    used: Option<Moment>,
    limit: Option<Usd>,
    /// When it ends by itself.
    ends: Option<Moment>,
}

impl From<Token> for AgentShown {
    fn from(token: Token) -> AgentShown {
        AgentShown {
            id: token.id.to_string(),
            name: token.agent_name,
            prefix: token.prefix,
            made: Moment::of(token.created_at),
            used: token.last_used_at.map(Moment::of),
            limit: token.daily_limit,
            ends: token.expires_at.map(Moment::of),
        }
    }
}

#[derive(Template)]
#[template(path = "account/agents.html")]
struct AgentsPage<'a> {
    frame: Frame<'a>,
    agents: Vec<AgentShown>,
    tools_url: String,
}

pub async fn list(visit: Visit) -> Answer {
    let app = &visit.state.app;
    let found = tokens::held_by_agents(app, visit.me.account).await?;
    let template = AgentsPage {
        frame: visit.frame(Section::Agents),
        agents: found.into_iter().map(AgentShown::from).collect(),
        tools_url: format!("{}/api/mcp", app.settings.agent_url),
    };
    page(&visit.state, StatusCode::OK, &template)
}

#[derive(Template)]
#[template(path = "account/agent.html")]
struct AgentPage<'a> {
    frame: Frame<'a>,
    agent: AgentShown,
    most: Usd,
    typed: String,
    problem: Option<String>,
}

async fn own(visit: &Visit, id: &str) -> Result<Token> {
    tokens::held_by_agent(&visit.state.app, visit.me.account, &token_id(id)?).await
}

pub async fn one(visit: Visit, Segment(id): Segment) -> Answer {
    let agent = AgentShown::from(own(&visit, &id).await?);
    let typed = agent.limit.map_or_else(String::new, |limit| limit.to_string());
    shown(&visit, StatusCode::OK, agent, typed, None)
}

fn shown(
    visit: &Visit,
    status: StatusCode,
    agent: AgentShown,
    typed: String,
    problem: Option<String>,
) -> Answer {
    let most = tokens::highest_limit(&visit.state.app);
    page(
        &visit.state,
        status,
        &AgentPage { frame: visit.frame(Section::Agents), agent, most, typed, problem },
    )
}

/// Changes what a token may spend in a day.
pub async fn limit(Segment(id): Segment, Sent(visit, fields): Sent) -> Answer {
    let (app, token) = (&visit.state.app, own(&visit, &id).await?);
    let typed = fields.typed("limitUsd");
    let changed = match read_limit(&typed) {
        Ok(limit) => tokens::set_daily_limit(app, visit.me.account, &token.id, limit).await,
        Err(refusal) => Err(refusal.into()),
    };
    match changed {
        Ok(()) => Ok(see(&after(Done::Limited, LIST))),
        Err(error @ Error::Refused(Refusal::Invalid(_))) => {
            let (status, problem) = told(error)?;
            shown(&visit, status, token.into(), typed, Some(problem))
        }
        Err(error) => Err(error.into()),
    }
}

fn read_limit(typed: &str) -> Result<Usd, Refusal> {
    Usd::parse(typed.trim()).map_err(|_| Refusal::field("limitUsd", "must be a number like 25 or 25.50"))
}

#[derive(Template)]
#[template(path = "account/revoke.html")]
struct RevokePage<'a> {
    frame: Frame<'a>,
    agent: AgentShown,
}

/// Asks again: a token that was revoked does not come back.
pub async fn revoke_form(visit: Visit, Segment(id): Segment) -> Answer {
    let agent = own(&visit, &id).await?.into();
    page(&visit.state, StatusCode::OK, &RevokePage { frame: visit.frame(Section::Agents), agent })
}

pub async fn revoke(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    let token = own(&visit, &id).await?;
    tokens::revoke(&visit.state.app, visit.me.account, &token.id).await?;
    Ok(see(&after(Done::Revoked, LIST)))
}
