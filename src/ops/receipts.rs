//! Receipts: what is mailed when an order is delivered to somebody with an address, and mailing it again.

use super::audit::audit_line;
use super::checkout::progress::{self, Progress};
use super::mail::{self, Letter, Slip};
use super::{LANE, catalog, find, install};
use crate::app::App;
use crate::domain::account::{AccountKind, GUESTS};
use crate::domain::country;
use crate::domain::email::Email;
use crate::domain::ids::OrderId;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::mail::{Coverage, Filled, PaidBy, Receipt};
use crate::store::tx::Tx;
use crate::store::{accounts, audit, checkouts, orders, users};
use crate::wire::dates::readable;

/// Of the orders of one address the newest are mailed again, at most this many.
const AT_ONCE: usize = 20;

/// What the receipt of an order lists, for a reader. What was charged, and how, never changes; only what the catalog says
/// of the plan beyond its name is left out once it is no longer sold.
pub(super) async fn of(app: &App, id: &OrderId, reader: &Email) -> Result<Receipt> {
    let (own, id, now) = (app.clone(), id.clone(), app.now());
    let read = move |tx: &mut Tx| {
        let order = orders::by_id(tx, &id)?.ok_or_else(|| Error::fault("the order of a receipt is gone"))?;
        let checkout = match checkouts::by_order(tx, &id)? {
            Some(checkout) => progress::read(&own, tx, &checkout.id, now)?,
            None => None,
        };
        let filled = match &order.esim_order {
            Some(esim) => orders::by_id(tx, esim)?,
            None => None,
        };
        let buyer = accounts::by_no(tx, order.account)?;
        Ok((order, checkout, filled, buyer))
    };
    let (order, checkout, filled, buyer) = app.store.read_consistent(read).await?;
    let plan = catalog::find(app, &order.package_code);
    let countries = plan.iter().flat_map(|plan| &plan.countries);
    let named = countries.filter_map(|code| country::by_code(code)).map(|country| country.name.to_string());
    let number = app.numbers.of_order(&order);
    let of_checkout = || checkout.as_ref().map(|progress| app.numbers.of_checkout(&progress.checkout));
    // Whoever pays for more data of a guest's eSIM does not get to it by that, unless it was bought for the same address.
    let is_readers =
        |filled: &Order| filled.account != GUESTS || filled.customer_email.as_ref() == Some(reader);
    let is_shown = filled.as_ref().is_none_or(is_readers);
    Ok(Receipt {
        order_ref: number.or_else(of_checkout).unwrap_or_else(|| order.id.to_string()),
        placed: readable(order.created_at),
        paid_by: match &checkout {
            Some(progress) => paid_by(progress),
            // A partner sells at a price of its own, and what it paid is not its customer's to know.
            None => match buyer {
                Some(partner) if partner.kind == AccountKind::Partner => {
                    PaidBy::Partner { company: partner.name }
                }
                buyer => {
                    let email = buyer.and_then(|user| user.email);
                    PaidBy::Wallet { own: email.as_deref() == Some(reader.as_str()) }
                }
            },
        },
        coverage: Coverage { countries: named.collect(), volume: plan.and_then(|plan| plan.details.kind) },
        filled: filled.map(|filled| Filled {
            order_ref: app.numbers.of_order(&filled).unwrap_or_default(),
            iccid: filled.esim.filter(|_| is_shown).map(|esim| esim.iccid),
            plan_name: filled.plan_name,
        }),
        // A top-up has no page: what it filled has.
        esim_url: is_shown.then(|| install::page_url(app, order.esim_order.as_ref().unwrap_or(&order.id))),
        order,
    })
}

/// A signature may have paid in another token and on another network than the checkout's.
fn paid_by(progress: &Progress) -> PaidBy {
    let checkout = &progress.checkout;
    let paid = progress.payment().map(|payment| (payment.transfer.id.network, payment.transfer.currency));
    let (network, currency) = paid.unwrap_or((checkout.network, checkout.currency));
    PaidBy::Payment { network, currency, unique: checkout.uniqueness_discount() }
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
    mail::queue(tx, slip, to, &Letter::Receipt { order: order.id.to_string() }, None)
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
