//! Whether anything happened to what pages show: one short text for each, which changes when something did. What it is,
//! a read of the whole tells. Many are looked at in one statement, each by its key.

use super::engine::{Tx, params, queries};
use crate::domain::ids::{InvoiceId, OrderId};
use crate::error::Result;

/// What a page shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    Checkout(InvoiceId),
    Deposit(InvoiceId),
    /// An eSIM, by the order that delivers it.
    Esim(OrderId),
}

impl Subject {
    fn id(&self) -> &str {
        match self {
            Subject::Checkout(id) | Subject::Deposit(id) => id.as_str(),
            Subject::Esim(id) => id.as_str(),
        }
    }
}

/// Every change of a checkout's payments touches its row. What is nobody's and near its amount is only counted, in a range
/// a little wider than the rule's: whether it is nearly a payment is decided by the rule.
macro_rules! select_checkouts {
    ($which:literal) => {
        concat!(
            "SELECT c.id, c.status || ' ' || c.updated_at || ' '
                || COALESCE((SELECT o.status || ' ' || o.updated_at FROM orders o WHERE o.id = c.order_id), '') || ' '
                || (SELECT COUNT(*) FROM authorizations a WHERE a.invoice = c.id AND a.state IN ('CLAIMED', 'SENT', 'SETTLED')) || ' '
                || (SELECT COUNT(*) FROM transfers t WHERE t.address = c.address AND t.amount >= c.amount - c.amount / 8
                    AND t.amount <= c.amount + c.amount / 8 AND t.invoice IS NULL AND t.account IS NULL
                    AND t.state || '' IN ('SEEN', 'UNMATCHED'))
             FROM checkouts c WHERE c.id ",
            $which
        )
    };
}

macro_rules! select_deposits {
    ($which:literal) => {
        concat!(
            "SELECT i.id, i.status || ' ' || (SELECT COUNT(*) || ' ' || COALESCE(MAX(t.updated_at), 0) FROM transfers t
                WHERE t.invoice IS NOT NULL AND t.invoice = i.id)
             FROM invoices i WHERE i.id ",
            $which
        )
    };
}

macro_rules! select_orders {
    ($which:literal) => {
        concat!("SELECT o.id, o.status || ' ' || o.updated_at FROM orders o WHERE o.id ", $which)
    };
}

queries! {
    CHECKOUTS_LITE (Sqlite) = select_checkouts!("IN (SELECT value FROM json_each(?1))");
    CHECKOUTS_PG (Postgres) = select_checkouts!("= ANY (string_to_array(CAST(?1 AS TEXT), ','))");
    DEPOSITS_LITE (Sqlite) = select_deposits!("IN (SELECT value FROM json_each(?1))");
    DEPOSITS_PG (Postgres) = select_deposits!("= ANY (string_to_array(CAST(?1 AS TEXT), ','))");
    ORDERS_LITE (Sqlite) = select_orders!("IN (SELECT value FROM json_each(?1))");
    ORDERS_PG (Postgres) = select_orders!("= ANY (string_to_array(CAST(?1 AS TEXT), ','))");
}

/// The text of each of these that is there.
pub fn gists(tx: &mut Tx, subjects: &[Subject]) -> Result<Vec<(Subject, String)>> {
    let mut found = Vec::with_capacity(subjects.len());
    let of = |kind: fn(&Subject) -> bool| subjects.iter().filter(move |subject| kind(subject));
    let (lite, pg) = (!tx.is_postgres(), tx.is_postgres());
    for (sql, ids, made) in [
        (
            if pg { CHECKOUTS_PG } else { CHECKOUTS_LITE },
            list(of(|subject| matches!(subject, Subject::Checkout(_))), lite),
            (|id| Subject::Checkout(InvoiceId::from_text(id))) as fn(String) -> Subject,
        ),
        (
            if pg { DEPOSITS_PG } else { DEPOSITS_LITE },
            list(of(|subject| matches!(subject, Subject::Deposit(_))), lite),
            |id| Subject::Deposit(InvoiceId::from_text(id)),
        ),
        (
            if pg { ORDERS_PG } else { ORDERS_LITE },
            list(of(|subject| matches!(subject, Subject::Esim(_))), lite),
            |id| Subject::Esim(OrderId::from_text(id)),
        ),
    ] {
        let Some(ids) = ids else { continue };
        let rows: Vec<(String, String)> = tx.all(sql, params![&ids])?;
        found.extend(rows.into_iter().map(|(id, gist)| (made(id), gist)));
    }
    Ok(found)
}

/// Ids as a statement takes them; `None` when there are none. They have no other characters than letters and digits.
fn list<'a>(subjects: impl Iterator<Item = &'a Subject>, lite: bool) -> Option<String> {
    let ids: Vec<&str> = subjects.map(Subject::id).collect();
    match (ids.is_empty(), lite) {
        (true, _) => None,
        (false, true) => Some(format!("[\"{}\"]", ids.join("\",\""))),
        (false, false) => Some(ids.join(",")),
    }
}
