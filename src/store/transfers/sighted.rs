//! What a chain shows, written down as transfers.

use std::collections::BTreeSet;

use super::{Facts, First, INSERT, PLACE, REWRITE, by_id, restate};
use crate::domain::ids::InvoiceId;
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::domain::transfer::{Sighting, Transfer, TransferId, TransferState};
use crate::error::Result;
use crate::store::engine::{Tx, params};
use crate::store::owners::{self, Owner};

/// What a sighting changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    New,
    /// It is in another block than we thought, or back in one.
    Moved,
    Known,
    /// Not one of our addresses.
    Foreign,
    /// Nobody's, and too little to be kept.
    Dust,
    /// What was booked and taken back is something else now, to somebody else: only a person can put that right.
    Contradicts,
}

/// What the operator has set about what is seen.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// A deposit of less confirms no invoice.
    pub dust: Usd,
    /// What is nobody's and less than this is not kept.
    pub least_kept: Usd,
    /// What an exchange may take out of an amount.
    pub exchange_fee: Usd,
}

/// What a sighting would change.
enum Look {
    Nothing(Noted),
    New(Owner),
    Other(Transfer),
}

fn look(tx: &mut Tx, seen: &Sighting, terms: &Terms) -> Result<Look> {
    let Some(known) = by_id(tx, &seen.id)? else {
        return Ok(match owners::find(tx, seen, terms)? {
            None => Look::Nothing(Noted::Foreign),
            Some(owner) if owner.account.is_none() && seen.amount < terms.least_kept => {
                Look::Nothing(Noted::Dust)
            }
            Some(owner) => Look::New(owner),
        });
    };
    let same = known.block.as_ref() == Some(&seen.block) && shows(seen, &known) && !known.missing;
    Ok(if same { Look::Nothing(Noted::Known) } else { Look::Other(known) })
}

/// What is said of a sighting that changes nothing. Most are of that kind: blocks are read several times.
pub fn is_old(tx: &mut Tx, seen: &Sighting, terms: &Terms) -> Result<Option<Noted>> {
    Ok(match look(tx, seen, terms)? {
        Look::Nothing(noted) => Some(noted),
        Look::New(_) | Look::Other(_) => None,
    })
}

/// Writes down that transfers are in blocks now. The first sighting of one decides its owner and its invoice, unless the
/// chain puts something else in its place before it counted.
pub fn note(tx: &mut Tx, seen: &[Sighting], terms: &Terms, now: Time) -> Result<Vec<Noted>> {
    let mut touched = BTreeSet::new();
    let noted =
        seen.iter().map(|seen| note_one(tx, seen, terms, now, &mut touched)).collect::<Result<_>>()?;
    // Once for each: an invoice may have thousands of transfers.
    for invoice in &touched {
        restate(tx, Some(invoice), terms.dust, now)?;
    }
    Ok(noted)
}

fn note_one(
    tx: &mut Tx,
    seen: &Sighting,
    terms: &Terms,
    now: Time,
    touched: &mut BTreeSet<InvoiceId>,
) -> Result<Noted> {
    let known = match look(tx, seen, terms)? {
        Look::Nothing(noted) => return Ok(noted),
        Look::New(owner) => {
            let values = [&Facts::params(seen, &owner)[..], &First::params(&now)].concat();
            tx.execute(INSERT, &values)?;
            touched.extend(owner.invoice);
            return Ok(Noted::New);
        }
        Look::Other(known) => known,
    };
    match known.state {
        TransferState::Seen | TransferState::Orphaned if !shows(seen, &known) => {
            let Some(owner) = owners::find(tx, seen, terms)? else { return Ok(Noted::Foreign) };
            rewrite(tx, seen, &known, &owner, TransferState::Seen, now)?;
            touched.extend(owner.invoice);
        }
        // Its earlier entries name its owner, network and token: the books can follow another amount, and only that.
        TransferState::Reversed if !shows(seen, &known) => {
            if (seen.currency, &seen.recipient) != (known.currency, &known.address) {
                return Ok(Noted::Contradicts);
            }
            let (account, invoice) = (known.account, known.invoice.clone());
            let owner = Owner { account, invoice, payment_nonce: known.payment_nonce.clone() };
            rewrite(tx, seen, &known, &owner, TransferState::Reversed, now)?;
        }
        // What was posted has other facts: that is for `vanish` to take back first.
        _ if !shows(seen, &known) => return Ok(Noted::Known),
        state => {
            let TransferId { network, tx_hash, position } = &seen.id;
            let placed = if state == TransferState::Orphaned { TransferState::Seen } else { state };
            let values = params![
                network,
                tx_hash,
                *position,
                seen.block.number,
                &seen.block.hash,
                seen.block.time,
                placed,
                now,
                state
            ];
            tx.execute(PLACE, values)?;
        }
    }
    touched.extend(known.invoice);
    Ok(Noted::Moved)
}

fn rewrite(
    tx: &mut Tx,
    seen: &Sighting,
    known: &Transfer,
    owner: &Owner,
    state: TransferState,
    now: Time,
) -> Result<()> {
    let values = [&Facts::params(seen, owner)[..], params![now, state, known.state]].concat();
    tx.execute(REWRITE, &values)?;
    Ok(())
}

/// Whether the chain shows the movement that we have on record.
pub fn shows(seen: &Sighting, known: &Transfer) -> bool {
    seen.id == known.id
        && seen.currency == known.currency
        && seen.recipient == known.address
        && seen.amount == known.amount
}
