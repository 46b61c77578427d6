//! What an account has asked for and what came to it, newest first: its invoices with their payments, and the payments that
//! count for no invoice. Expired invoices without a payment are forgotten in time, see `retention.rs`.

use std::cmp::Reverse;
use std::fmt;

use super::record::{self, Heads};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::invoice::{Deposit, Invoice, Payment};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::domain::transfer::{Transfer, TransferState};
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{invoices, transfers};

/// So many that have the same time can be told apart.
const MOST_AT_ONCE: usize = 1_000;

/// A place in the history: a time, and how many of that time come before it. An invoice's id opens its page, so it is no
/// part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    at: Time,
    shown: usize,
}

impl Cursor {
    /// Before everything.
    const TOP: Cursor = Cursor { at: Time::from_micros(i64::MAX), shown: 0 };

    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Option<Cursor> {
        let (at, shown) = text.strip_prefix('c')?.split_once('.')?;
        let shown = shown.parse().ok().filter(|shown| *shown <= MOST_AT_ONCE)?;
        Some(Cursor { at: Time::from_micros(at.parse().ok()?), shown })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}.{}", self.at.micros(), self.shown)
    }
}

/// A line of the history.
pub enum Line {
    /// With its newest payments.
    Invoice(Deposit),
    /// It counts for no invoice.
    Payment { payment: Payment, seen_at: Time },
}

impl Line {
    /// When the invoice was opened, or the payment first seen.
    pub fn at(&self) -> Time {
        match self {
            Line::Invoice(deposit) => deposit.invoice.created_at,
            Line::Payment { seen_at, .. } => *seen_at,
        }
    }

    /// What of it lies on a chain, final or not.
    pub fn received(&self) -> Usd {
        match self {
            Line::Invoice(deposit) => deposit.paid.received,
            Line::Payment { payment, .. } if payment.transfer.block.is_some() => payment.transfer.amount,
            Line::Payment { .. } => Usd::ZERO,
        }
    }

    /// What of it is in the wallet.
    pub fn credited(&self) -> Usd {
        let in_wallet = [TransferState::Credited, TransferState::Assigned];
        match self {
            Line::Invoice(deposit) => deposit.paid.credited,
            Line::Payment { payment, .. } if in_wallet.contains(&payment.transfer.state) => {
                payment.transfer.amount
            }
            Line::Payment { .. } => Usd::ZERO,
        }
    }
}

pub struct Page {
    pub lines: Vec<Line>,
    /// Where the next page starts, when there is one.
    pub next: Option<Cursor>,
}

/// A page of the history, of at most `limit` lines; without `before`, the newest.
pub async fn history(app: &App, account: AccountNo, before: Option<Cursor>, limit: usize) -> Result<Page> {
    let reader = app.clone();
    let read = move |tx: &mut Tx| page(&reader, tx, account, before.unwrap_or(Cursor::TOP), limit);
    // One consistent read: an invoice must not be older than the money that it shows.
    app.store.read_consistent(read).await
}

/// What a line is made of.
enum Found {
    Invoice(Invoice),
    Transfer(Transfer, Time),
}

impl Found {
    fn at(&self) -> Time {
        match self {
            Found::Invoice(invoice) => invoice.created_at,
            Found::Transfer(_, seen_at) => *seen_at,
        }
    }
}

fn page(app: &App, tx: &mut Tx, account: AccountNo, before: Cursor, limit: usize) -> Result<Page> {
    let most = i64::try_from(limit + before.shown + 1).unwrap_or(i64::MAX);
    let asked = invoices::of_account(tx, account, before.at, most)?.into_iter().map(Found::Invoice);
    let came = transfers::without_invoice(tx, account, before.at, most)?;
    let came = came.into_iter().map(|(transfer, seen_at)| Found::Transfer(transfer, seen_at));
    let mut found: Vec<Found> = asked.chain(came).collect();
    // Of one time, invoices come before payments, each in the order of their list.
    found.sort_by_key(|one| Reverse(one.at()));
    let place = after(found.iter().map(Found::at), before, limit);
    let lines = found.drain(place.shown..).take(limit);
    let mut heads = Heads::default();
    let line = |one| {
        Ok(match one {
            Found::Invoice(invoice) => Line::Invoice(record::in_brief(app, tx, invoice, &mut heads)?),
            Found::Transfer(transfer, seen_at) => {
                Line::Payment { payment: heads.payment(app, tx, transfer)?, seen_at }
            }
        })
    };
    Ok(Page { lines: lines.map(line).collect::<Result<_>>()?, next: place.next })
}

/// What of a list was shown before, and where the page after the next one begins.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    shown: usize,
    next: Option<Cursor>,
}

/// `times` are those of all that comes at `before` or after it, in their order.
fn after(times: impl Iterator<Item = Time>, before: Cursor, limit: usize) -> Place {
    let times: Vec<Time> = times.collect();
    let shown = times.iter().take(before.shown).take_while(|at| **at == before.at).count();
    let end = shown + limit;
    let next = match times[..end.min(times.len())].last() {
        Some(last) if times.len() > end => {
            Some(Cursor { at: *last, shown: times[..end].iter().filter(|at| *at == last).count() })
        }
        _ => None,
    };
    Place { shown, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(at: i64, shown: usize) -> Cursor {
        Cursor { at: Time::from_micros(at), shown }
    }

    #[test]
    fn pages_join_where_many_have_one_time() {
        let all = [9, 7, 7, 7, 7, 4, 4, 1];
        for limit in 1..10 {
            let (mut seen, mut before) = (Vec::new(), Some(Cursor::TOP));
            while let Some(place) = before {
                let rest: Vec<i64> = all.into_iter().filter(|at| *at <= place.at.micros()).collect();
                let Place { shown, next } = after(rest.iter().map(|at| Time::from_micros(*at)), place, limit);
                seen.extend(rest.into_iter().skip(shown).take(limit));
                before = next;
            }
            assert_eq!(seen, all, "{limit} a page");
        }
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for one in [cursor(1_700_000_000_123_456, 3), cursor(0, 0), Cursor::TOP] {
            assert_eq!(Cursor::parse(&one.to_string()), Some(one));
        }
        for text in
            ["", "c", "c1", "c1.", "c.1", "1.1", "c1.-1", "c1.1001", "cx.1", "c99999999999999999999.1"]
        {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }
}
