//! What we keep about a user, for that user to take along: account, orders, the wallet's statement, tokens and sessions.
//! Activation codes and secrets are not in it.

use super::{accounts, orders, sessions, tokens};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::login::Realm;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store;
use crate::store::wallet::StatementLine;
use crate::wire::Money;
use crate::wire::dates::iso;
use crate::wire::orders::OrderFacts;
use crate::wire::person::{MovementData, PersonalData, SessionData, TokenData};

/// How many rows are read at once.
const AT_ONCE: i64 = 100;

pub async fn of_user(app: &App, account: AccountNo) -> Result<PersonalData> {
    let now = app.now();
    let found = app.store.read(move |tx| store::accounts::by_no(tx, account)).await?;
    let user = found.ok_or(Refusal::AccountNotFound)?;
    let balance = accounts::balance(app, account).await?;
    let tokens = tokens::list(app, account).await?.into_iter().map(|token| TokenData {
        id: token.id.to_string(),
        prefix: token.prefix,
        agent_name: token.agent_name,
        created_at: iso(token.created_at),
        last_used_at: token.last_used_at.map(iso),
        daily_limit_usd: token.daily_limit.map(Money),
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
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let query = orders::ListQuery {
            page: 1,
            limit: AT_ONCE,
            after,
            iccid: None,
            reference: None,
            status: None,
            // A query with times lists every state.
            from: Some(Time::from_micros(0)),
            to: None,
        };
        let part = orders::list(app, account, query).await?;
        all.extend(part.orders.iter().map(|listed| {
            let order_no = app.numbers.of_order(&listed.order).unwrap_or_default();
            OrderFacts::of(&listed.order, order_no, &listed.topups, now)
        }));
        after = part.next;
        if after.is_none() {
            return Ok(all);
        }
    }
}

async fn every_movement(app: &App, account: AccountNo) -> Result<Vec<MovementData>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let part = accounts::statement(app, account, None, None, after, AT_ONCE).await?;
        all.extend(part.lines.into_iter().map(movement));
        after = part.next;
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
        invoice_id: line.invoice.map(|invoice| invoice.to_string()),
        note: line.note,
    }
}
