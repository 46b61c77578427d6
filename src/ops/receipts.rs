//! Receipts: what is mailed when an order is delivered to somebody with an address, and mailing it again.

use super::audit::audit_line;
use super::mail::{self, Letter, Slip};
use super::{LANE, find, install};
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::ids::OrderId;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{audit, checkouts, orders, users};
use crate::vault::Numbers;

/// Of the orders of one address the newest are mailed again, at most this many.
const AT_ONCE: usize = 20;

pub(super) fn letter(numbers: &Numbers, order: &Order) -> Letter {
    Letter::Receipt {
        order: order.id.to_string(),
        order_ref: numbers.of_order(order).unwrap_or_default(),
        plan_name: order.plan_name.clone(),
        amount: order.price.to_string(),
    }
}

/// A receipt that goes out again.
#[derive(Clone)]
pub struct Resent {
    pub order: OrderId,
    pub order_ref: Option<String>,
    pub to: Email,
}

/// Mails the receipt of an order again, or those of the newest orders that were bought for an address. What can no longer
/// be installed is refused: its mail would lead nowhere.
pub async fn resend(app: &App, actor: &str, id_or_email: &str) -> Result<Vec<Resent>> {
    let wanted = match Email::parse(id_or_email) {
        Some(email) => bought_for(app, email).await?,
        None => vec![the_order(app, id_or_email).await?],
    };
    if wanted.is_empty() {
        return Err(Refusal::OrderNotFound.into());
    }
    let told = |(order, to): &(Order, Email)| Resent {
        order: order.id.clone(),
        order_ref: app.numbers.of_order(order),
        to: to.clone(),
    };
    let resent = wanted.iter().map(told).collect();
    let line = |(order, to): (Order, Email)| {
        (
            audit_line(app, actor, "mail resend", format!("{} to {}", order.id, to.masked())),
            mail::slip(app),
            order,
            to,
        )
    };
    let mails: Vec<_> = wanted.into_iter().map(line).collect();
    let write = move |tx: &mut Tx| {
        mails.iter().try_for_each(|(line, slip, order, to)| {
            queue(tx, slip, order, to)?;
            audit::record(tx, line)
        })
    };
    app.store.write(LANE, write).await?;
    mail::wake(app);
    Ok(resent)
}

pub(super) fn queue(tx: &mut Tx, slip: &Slip, order: &Order, to: &Email) -> Result<()> {
    mail::queue(tx, slip, to, &letter(&slip.numbers, order), None)
}

async fn the_order(app: &App, id: &str) -> Result<(Order, Email)> {
    let order = find::order_named(app, id).await?.ok_or(Refusal::OrderNotFound)?;
    let refuse = |why: &str| Refusal::field("order", format!("{} {why}", order.id));
    if order.status != OrderStatus::Fulfilled {
        let why = format!("is {}; only what was delivered has a receipt", order.status.as_str());
        return Err(refuse(&why).into());
    }
    if install::activation(app, &order)?.is_none() {
        return Err(Refusal::CodeForgotten.into());
    }
    let (account, typed) = (order.account, order.customer_email.clone());
    let to = match typed {
        Some(email) => Some(email),
        None => app.store.read(move |tx| users::email(tx, account)).await?,
    };
    let to = to.ok_or_else(|| refuse("was bought by a partner, who tells its customers itself"))?;
    Ok((order, to))
}

/// The delivered orders of an address, the newest first: those that it was typed in for, and those of its own account.
async fn bought_for(app: &App, email: Email) -> Result<Vec<(Order, Email)>> {
    let wanted = email.clone();
    let read = move |tx: &mut Tx| {
        let mut found = Vec::new();
        for id in checkouts::by_email(tx, &wanted)?.into_iter().filter_map(|checkout| checkout.order) {
            found.extend(orders::by_id(tx, &id)?);
        }
        if let Some(user) = users::find(tx, &wanted)? {
            let own = orders::recent(tx, Some(user.no), Some(OrderStatus::Fulfilled), AT_ONCE as i64)?;
            let to_itself = |order: &Order| order.customer_email.as_ref().is_none_or(|to| *to == wanted);
            found.extend(own.into_iter().filter(to_itself));
        }
        Ok(found)
    };
    let mut found = app.store.snapshot(read).await?;
    found.sort_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
    found.dedup_by(|one, other| one.id == other.id);
    let mut wanted = Vec::new();
    for order in found {
        if wanted.len() < AT_ONCE && install::activation(app, &order)?.is_some() {
            wanted.push((order, email.clone()));
        }
    }
    Ok(wanted)
}
