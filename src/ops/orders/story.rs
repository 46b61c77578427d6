//! What happened to an order and its eSIM, from the first to the last: for the page about it. The times are those of the
//! ledger's entries, which never change, of top-ups, and of what the team did.

use crate::app::App;
use crate::domain::ids::{KeyId, MemberId};
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::desk::{CANCEL, KEEP, SEND};
use crate::store::audit::{self, Deed};
use crate::store::ledger::{self, Booked};
use crate::store::tx::Tx;
use crate::store::{keys, members, orders};

/// How many of the team's latest deeds are looked through for those about one order.
const DEEDS: i64 = 1_000;

pub struct Story {
    /// The top-ups of its eSIM, oldest first.
    pub topups: Vec<Order>,
    pub placed_by: PlacedBy,
    pub happened: Vec<Happening>,
    /// What came back of its price, for whatever reason.
    pub given_back: Usd,
}

pub enum PlacedBy {
    /// An API key, and what it is called.
    Key {
        id: String,
        name: String,
    },
    /// Somebody of the team.
    Member(String),
    /// Somebody who has left the team.
    FormerMember,
    Nobody,
}

pub struct Happening {
    pub at: Time,
    pub what: What,
    /// Who of the team did it.
    pub by: Option<String>,
}

pub enum What {
    Placed,
    Delivered,
    /// It could not be delivered.
    Failed,
    /// More data was bought: the plan, and how that stands.
    ToppedUp {
        plan: String,
        status: OrderStatus,
    },
    /// With whom it was sent to, as far as that is shown.
    Sent {
        to: String,
    },
    CancelAsked,
    Kept,
    /// The supplier took it back.
    Cancelled,
    /// The operator gave money back, and what it noted.
    Refunded {
        note: String,
    },
}

/// What happened to an order that is no top-up.
pub async fn story(app: &App, order: &Order) -> Result<Story> {
    let order = order.clone();
    let read = move |tx: &mut Tx| {
        let topups = orders::topups_of(tx, &[&order.id])?;
        let booked = ledger::named(tx, order.id.as_str())?;
        let deeds = audit::about(tx, order.account, order.created_at, order.id.as_str(), DEEDS)?;
        let mut happened: Vec<Happening> = booked.into_iter().filter_map(of_entry).collect();
        happened.extend(mailed(&order, &happened));
        happened.extend(deeds.into_iter().filter_map(of_deed));
        happened.extend(topups.iter().map(|topup| Happening {
            at: topup.created_at,
            what: What::ToppedUp { plan: topup.plan_name.clone(), status: topup.status },
            by: None,
        }));
        happened.sort_by_key(|happening| happening.at);
        Ok(Story {
            placed_by: placed_by(tx, &order)?,
            given_back: ledger::paid_back(tx, &order.id)?,
            topups,
            happened,
        })
    };
    app.store.read_consistent(read).await
}

/// The mail to the customer that the order was placed for, which goes out with the delivery.
fn mailed(order: &Order, happened: &[Happening]) -> Option<Happening> {
    let to = order.customer_email.as_ref()?.masked();
    let delivered = happened.iter().find(|happening| matches!(happening.what, What::Delivered))?;
    Some(Happening { at: delivered.at, what: What::Sent { to }, by: None })
}

fn of_entry(entry: Booked) -> Option<Happening> {
    let what = match entry.kind.as_str() {
        "ORDER" => What::Placed,
        "FULFILLED" => What::Delivered,
        "FAILED" => What::Failed,
        "CANCELLED" => What::Cancelled,
        "REFUND" => What::Refunded { note: entry.note.unwrap_or_default() },
        _ => return None,
    };
    Some(Happening { at: entry.at, what, by: None })
}

fn of_deed(deed: Deed) -> Option<Happening> {
    let what = match deed.command.as_str() {
        SEND => What::Sent { to: deed.detail.split_once(" to ")?.1.to_string() },
        CANCEL => What::CancelAsked,
        KEEP => What::Kept,
        _ => return None,
    };
    let by = deed.actor.strip_prefix("member:").map(str::to_string);
    Some(Happening { at: deed.at, what, by })
}

fn placed_by(tx: &mut Tx, order: &Order) -> Result<PlacedBy> {
    let id = order.key_id.as_str();
    if id.starts_with(MemberId::PREFIX) {
        let found = members::by_id(tx, &MemberId::from_text(id))?;
        let person = found.filter(|person| person.account == order.account);
        return Ok(person.map_or(PlacedBy::FormerMember, |person| PlacedBy::Member(person.email.to_string())));
    }
    let found = keys::find(tx, &KeyId::from_text(id))?.filter(|key| key.account == order.account);
    Ok(match found {
        Some(key) => PlacedBy::Key { id: key.id.to_string(), name: key.name },
        None => PlacedBy::Nobody,
    })
}
