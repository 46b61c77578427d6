//! An owner's search by any name of a thing, among what is theirs. `find.rs` is the operator's, among everything.

use super::find;
use super::owned::Owned;
use crate::app::App;
use crate::domain::esim::iccid;
use crate::domain::ids::{AccountNo, InvoiceId, OrderId};
use crate::domain::invoice::Invoice;
use crate::domain::number::Number;
use crate::domain::order::Order;
use crate::domain::transfer::Transfer;
use crate::error::Result;
use crate::store::claims::{self, Claimant};
use crate::store::tx::Tx;
use crate::store::{checkouts, invoices, orders};

/// The longest text that can be a name; a caller's reference is the longest.
const MOST_CHARS: usize = 200;
/// How many orders are shown under one reference or ICCID, the newest.
const MOST: usize = 50;

/// What has the name, and belongs to the account.
#[derive(Default)]
pub struct Hits {
    /// Orders and top-ups, in any state.
    pub orders: Vec<Order>,
    pub deposits: Vec<Invoice>,
    /// Payments that came without an invoice.
    pub transfers: Vec<Transfer>,
}

/// By order or top-up id, order number, ICCID, the caller's reference, invoice id, transfer id or transaction hash.
pub async fn look_up(app: &App, account: AccountNo, text: &str) -> Result<Hits> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > MOST_CHARS || text.contains(char::is_control) {
        return Ok(Hits::default());
    }
    // Numbers and ICCIDs are read out, and shown, in groups.
    let compact: String = text.split_whitespace().collect();
    let names = Names {
        text: text.into(),
        number: app.numbers.parse(&compact.to_uppercase()),
        iccid: iccid(&compact),
    };
    app.store.read_consistent(move |tx| names.look_up(tx, account)).await
}

/// What a text may be.
struct Names {
    text: String,
    number: Option<Number>,
    iccid: Option<String>,
}

impl Names {
    fn look_up(&self, tx: &mut Tx, account: AccountNo) -> Result<Hits> {
        let mut hits = Hits::default();
        for id in self.orders(tx, account)? {
            hits.add_order(tx, account, &id)?;
        }
        let id = InvoiceId::from_text(&*self.text);
        hits.add_paid(tx, account, &id)?;
        for transfer in find::transfers_named(tx, &self.text)? {
            match &transfer.invoice {
                Some(invoice) => hits.add_paid(tx, account, invoice)?,
                None if transfer.account == Some(account) => hits.transfers.push(transfer),
                None => {}
            }
        }
        Ok(hits)
    }

    /// The orders that may be meant, of any owner.
    fn orders(&self, tx: &mut Tx, account: AccountNo) -> Result<Vec<OrderId>> {
        let mut ids = vec![OrderId::from_text(&*self.text)];
        if let Some(number) = self.number.filter(|number| number.account == account) {
            ids.extend(find::numbered(tx, number)?.map(|order| order.id));
        }
        if let Some(iccid) = &self.iccid {
            ids.extend(orders::with_iccid(tx, iccid, MOST as i64)?);
        }
        for claimant in claims::all_of(tx, account, &self.text)?.into_iter().take(MOST) {
            match claimant {
                Claimant::Order(id) | Claimant::Cancel(id) => ids.push(id),
                Claimant::Checkout(id) => {
                    ids.extend(checkouts::by_id(tx, &id)?.and_then(|checkout| checkout.order));
                }
            }
        }
        Ok(ids)
    }
}

impl Hits {
    fn add_order(&mut self, tx: &mut Tx, account: AccountNo, id: &OrderId) -> Result<()> {
        if self.orders.iter().all(|known| known.id != *id) {
            self.orders.extend(orders::by_id(tx, id)?.and_then(|order| order.of(account)));
        }
        Ok(())
    }

    /// The deposit with this id, or the order of the checkout that has it.
    fn add_paid(&mut self, tx: &mut Tx, account: AccountNo, id: &InvoiceId) -> Result<()> {
        if self.deposits.iter().all(|known| known.id != *id) {
            self.deposits.extend(invoices::by_id(tx, id)?.and_then(|invoice| invoice.of(account)));
        }
        match checkouts::by_id(tx, id)?.and_then(|checkout| checkout.of(account)?.order) {
            Some(order) => self.add_order(tx, account, &order),
            None => Ok(()),
        }
    }
}
