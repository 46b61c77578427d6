//! What we keep about a user, for that user to take along: account, orders, the wallet's statement, tokens and sessions.
//! Activation codes and secrets are not in it, nor the ids of invoices, whose pages show an eSIM. It reads all that there
//! is, so an account gets one a minute, and the gateway makes one at a time.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use tokio::task::yield_now;

use super::orders::Listed;
use super::{accounts, orders, sessions, tokens};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::login::Realm;
use crate::domain::order::OrderStatus;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store;
use crate::store::statement::StatementLine;
use crate::wire::Money;
use crate::wire::dates::iso;
use crate::wire::orders::OrderFacts;
use crate::wire::person::{MovementData, PersonalData, SessionData, TokenData};

/// How many rows are read at once. Between two reads others have their turn.
const AT_ONCE: i64 = 100;
const APART_MS: i64 = 60_000;

/// Whose data was asked for within the last minute.
#[derive(Default)]
pub struct Exports {
    asked: Mutex<HashMap<AccountNo, Time>>,
    turn: tokio::sync::Mutex<()>,
}

impl Exports {
    fn ask(&self, account: AccountNo, now: Time) -> Result<()> {
        let mut asked = self.asked.lock().map_err(Error::fault)?;
        asked.retain(|_, at| now.micros() - at.micros() < APART_MS * 1_000);
        match asked.get(&account) {
            Some(at) => {
                let left = at.plus_millis(APART_MS).micros() - now.micros();
                let retry_after_secs = left.unsigned_abs().div_ceil(1_000_000);
                Err(Refusal::RateLimited { retry_after_secs }.into())
            }
            None => {
                asked.insert(account, now);
                Ok(())
            }
        }
    }
}

pub async fn of_user(app: &App, account: AccountNo) -> Result<PersonalData> {
    let now = app.now();
    app.exports.ask(account, now)?;
    let _turn = app.exports.turn.lock().await;
    let found = app.store.read(move |tx| store::accounts::by_no(tx, account)).await?;
    let user = found.ok_or(Refusal::AccountNotFound)?;
    let balance = accounts::balance(app, account).await?;
    let tokens = tokens::held_by_agents(app, account).await?.into_iter().map(|token| TokenData {
        id: token.id.to_string(),
        prefix: token.prefix,
        agent_name: token.agent_name,
        created_at: iso(token.created_at),
        last_used_at: token.last_used_at.map(iso),
        daily_limit_usd: token.daily_limit.map(Money),
        expires_at: token.expires_at.map(iso),
    });
    let stays = sessions::list(app, account, Realm::Buyers).await?.into_iter().map(|stay| SessionData {
        created_at: iso(stay.made_at),
        last_seen_at: iso(stay.seen_at),
        browser: stay.browser,
        network: stay.network,
    });
    Ok(PersonalData {
        exported_at: iso(now),
        user_id: user.id.to_string(),
        email: user.email,
        created_at: iso(user.created_at),
        suspended: balance.suspended,
        balance_usd: Money(balance.available),
        held_usd: Money(balance.held),
        orders: every_order(app, account, now).await?,
        transactions: every_movement(app, account).await?,
        tokens: tokens.collect(),
        sessions: stays.collect(),
    })
}

/// Orders in every state, newest first.
async fn every_order(app: &App, account: AccountNo, now: Time) -> Result<Vec<OrderFacts>> {
    let mut all: Vec<Listed> = Vec::new();
    for status in OrderStatus::ALL {
        let mut after = None;
        loop {
            let (iccid, reference, from, to) = (None, None, None, None);
            let status = Some(status);
            let query =
                orders::ListQuery { page: 1, limit: AT_ONCE, after, iccid, reference, status, from, to };
            let part = orders::list(app, account, query).await?;
            all.extend(part.orders);
            after = part.next;
            yield_now().await;
            if after.is_none() {
                break;
            }
        }
    }
    // An order may have moved on meanwhile, and come again: its later state counts.
    let mut seen = HashSet::new();
    all.reverse();
    all.retain(|listed| seen.insert(listed.order.id.to_string()));
    all.sort_by_key(|listed| Reverse(listed.order.created_at));
    let facts = |listed: &Listed| {
        let order_no = app.numbers.of_order(&listed.order).unwrap_or_default();
        OrderFacts::of(&listed.order, order_no, &listed.topups, now)
    };
    Ok(all.iter().map(facts).collect())
}

async fn every_movement(app: &App, account: AccountNo) -> Result<Vec<MovementData>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let part = accounts::statement(app, account, None, None, after, AT_ONCE).await?;
        all.extend(part.lines.into_iter().map(movement));
        after = part.next;
        yield_now().await;
        if after.is_none() {
            return Ok(all);
        }
    }
}

fn movement(line: StatementLine) -> MovementData {
    MovementData {
        created_at: iso(line.at),
        r#type: line.kind,
        amount_usd: Money(line.change),
        balance_after_usd: Money(line.balance),
        order_id: line.order,
        note: line.note,
    }
}
