//! What a chain shows, written down as transfers.

use std::collections::BTreeSet;

use super::moves::restate;
use super::owners::{self, Owner};
use crate::app::App;
use crate::domain::ids::InvoiceId;
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::domain::transfer::{Sighting, Terms, Transfer, TransferEvent, TransferState};
use crate::error::Result;
use crate::ops::deposits::standing;
use crate::store::transfers;
use crate::store::tx::Tx;

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

/// What a sighting would change.
enum Look {
    Nothing(Noted),
    New(Owner),
    Other(Transfer),
}

/// `known` is what we have on record under the id of the sighting.
fn look(tx: &mut Tx, seen: &Sighting, known: Option<Transfer>, terms: &Terms) -> Result<Look> {
    let Some(known) = known else {
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

/// The answer to a sighting that changes nothing. Most sightings change nothing, because blocks are read several times.
pub fn is_old(tx: &mut Tx, seen: &Sighting, terms: &Terms) -> Result<Option<Noted>> {
    let known = transfers::by_id(tx, &seen.id)?;
    Ok(match look(tx, seen, known, terms)? {
        Look::Nothing(noted) => Some(noted),
        Look::New(_) | Look::Other(_) => None,
    })
}

/// Writes down that transfers are in blocks now. The first sighting of a transfer decides its owner and its invoice. They
/// are decided again only when the chain shows another movement in its place before it counted.
pub fn note(app: &App, tx: &mut Tx, seen: &[Sighting], now: Time) -> Result<Vec<Noted>> {
    let (terms, mut touched) = (app.settings.settlement.terms(), BTreeSet::new());
    let noted =
        seen.iter().map(|seen| note_one(tx, seen, &terms, now, &mut touched)).collect::<Result<_>>()?;
    // Once for each: an invoice may have thousands of transfers.
    for invoice in &touched {
        restate(app, tx, Some(invoice), Usd::ZERO, now)?;
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
    let known = transfers::lock(tx, &seen.id)?;
    let known = match look(tx, seen, known, terms)? {
        Look::Nothing(noted) => return Ok(noted),
        Look::New(owner) => {
            let new = first(seen, owner);
            transfers::insert(tx, &new, now)?;
            if new.account.is_some() && new.invoice.is_none() {
                standing::watch_on(tx, &new.address, now)?;
            }
            touched.extend(new.invoice);
            return Ok(Noted::New);
        }
        Look::Other(known) => known,
    };
    let (event, facts) = if shows(seen, &known) {
        (TransferEvent::Sighted, Transfer { block: Some(seen.block.clone()), ..known.clone() })
    } else {
        match look_at_altered(tx, seen, &known, terms)? {
            Altered::Is(owner) => {
                (TransferEvent::Altered, Transfer { round: known.round, ..first(seen, owner) })
            }
            Altered::Stays(noted) => return Ok(noted),
        }
    };
    touched.extend(facts.invoice.clone());
    transfers::advance(tx, &known, event, facts, now)?;
    touched.extend(known.invoice);
    Ok(Noted::Moved)
}

/// A transfer in whose place the chain shows another movement.
enum Altered {
    /// It is that movement now, and its owner's.
    Is(Owner),
    /// It stays what it was.
    Stays(Noted),
}

fn look_at_altered(tx: &mut Tx, seen: &Sighting, known: &Transfer, terms: &Terms) -> Result<Altered> {
    Ok(match known.state.after(TransferEvent::Altered) {
        // It was posted with the facts on record: `vanish` has to take that back first.
        None => Altered::Stays(Noted::Known),
        // Its earlier entries name its owner, network and token, so only its amount may change in the books.
        Some(TransferState::Reversed)
            if (seen.currency, &seen.recipient) != (known.currency, &known.address) =>
        {
            Altered::Stays(Noted::Contradicts)
        }
        Some(TransferState::Reversed) => Altered::Is(Owner::of(known)),
        Some(_) => owners::find(tx, seen, terms)?.map_or(Altered::Stays(Noted::Foreign), Altered::Is),
    })
}

/// A transfer as it is when it is first written down.
fn first(seen: &Sighting, owner: Owner) -> Transfer {
    Transfer {
        id: seen.id.clone(),
        currency: seen.currency,
        sender: seen.sender.clone(),
        address: seen.recipient.clone(),
        amount: seen.amount,
        block: Some(seen.block.clone()),
        state: TransferState::Seen,
        account: owner.account,
        invoice: owner.invoice,
        round: 0,
        payment_nonce: owner.payment_nonce,
        missing: false,
        doubted: false,
    }
}

/// Whether the chain shows the movement that we have on record.
pub fn shows(seen: &Sighting, known: &Transfer) -> bool {
    seen.id == known.id
        && seen.currency == known.currency
        && seen.recipient == known.address
        && seen.amount == known.amount
}
