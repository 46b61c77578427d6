//! Finds an amount that nobody else can be paying. `wide.rs` finds a wide slot, in which a rounded amount is recognised
//! too. Without one, the exact amount must be paid: each price has a ring of amounts on each further address of the
//! house. The next few in turn are tried; when they are all taken, the address is full and the next address is tried.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::wide::{self, Asker};
use crate::chain::address::Xpub;
use crate::domain::checkout;
use crate::domain::ids::InvoiceId;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Network};
use crate::domain::slot::Unpaid;
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::addresses::derive;
use crate::store::amounts::{self, Holder, Ring};
use crate::store::tx::Tx;
use crate::store::{addresses, cursors};

/// The most addresses of a key that serve exact amounts; when the last one is full, an operator must act.
const MOST_SERVING: i64 = 20;
/// How many amounts more than needed are tried: one that was paid late rests for longer than those after it.
const SPARE: i64 = 3;
/// How many days an address is watched after its last checkout; renewed when a day of it has passed.
const WATCH_DAYS: i64 = 8;

/// What is needed to find an amount for a checkout.
pub(super) struct Wanted<'a> {
    pub id: &'a InvoiceId,
    pub network: Network,
    pub price: Usd,
    pub seed: u64,
    pub xpub: &'a Xpub,
    /// The key of addresses that payers sign for, when they cannot sign for the paid address itself.
    pub twin_xpub: Option<&'a Xpub>,
    pub asker: Asker<'a>,
}

impl Wanted<'_> {
    pub fn slot(&self) -> Unpaid {
        Unpaid { network: self.network, price: self.price }
    }
}

/// Where and how much to pay.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub address: String,
    pub amount: Usd,
    pub wide: bool,
    /// Whether a rounded amount is recognised too, at the moment.
    pub rounds: bool,
    pub sign_to: Option<String>,
}

/// An amount for each; `None` where every address is full.
pub(super) fn amounts(tx: &mut Tx, wanted: &[Wanted], now: Time) -> Result<Vec<Option<Place>>> {
    let places = wide::places(tx, wanted, now)?;
    let mut search = Search { wanted, places, scanned: HashMap::new(), now };
    for number in 1..=MOST_SERVING {
        let rings = search.rings(tx, -number)?;
        if rings.is_empty() {
            break;
        }
        search.take_next(tx, &rings)?;
    }
    search.pair(tx)?;
    Ok(search.places)
}

struct Search<'a> {
    wanted: &'a [Wanted<'a>],
    places: Vec<Option<Place>>,
    /// How far each network was scanned, read when first needed.
    scanned: HashMap<Network, Option<Time>>,
    now: Time,
}

impl Search<'_> {
    /// The rings of the address with this number that could serve the checkouts still without an amount.
    fn rings(&self, tx: &mut Tx, number: i64) -> Result<BTreeMap<Ring, Vec<usize>>> {
        let mut rings: BTreeMap<Ring, Vec<usize>> = BTreeMap::new();
        let mut addresses: HashMap<AddressKind, String> = HashMap::new();
        for (index, want) in self.wanted.iter().enumerate().filter(|(index, _)| self.places[*index].is_none())
        {
            let address = match addresses.entry(want.network.kind()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(serving_address(tx, want.xpub, number, self.now)?),
            };
            let ring = Ring { address: address.clone(), price: want.price };
            rings.entry(ring).or_default().push(index);
        }
        Ok(rings)
    }

    /// Takes the next free amounts of each ring.
    fn take_next(&mut self, tx: &mut Tx, rings: &BTreeMap<Ring, Vec<usize>>) -> Result<()> {
        let steps: Vec<(Ring, i64)> =
            rings.iter().map(|(ring, waiting)| (ring.clone(), waiting.len() as i64)).collect();
        let stood = amounts::turn(tx, &steps)?;
        let mut next: BTreeMap<&Ring, Vec<Usd>> = BTreeMap::new();
        for (ring, waiting) in rings {
            // Each price has its own order of amounts.
            let seed = self.wanted[waiting[0]].seed ^ ring.price.micros().unsigned_abs();
            let places = stood[ring]..stood[ring] + waiting.len() as i64 + SPARE;
            let amounts = places.map(|place| ring.price.minus(checkout::offset(seed, place)));
            next.insert(ring, amounts.collect());
        }
        let asked: Vec<(&str, Usd)> = next
            .iter()
            .flat_map(|(ring, amounts)| amounts.iter().map(|amount| (ring.address.as_str(), *amount)))
            .collect();
        let holders = amounts::holders(tx, &asked)?;
        let mut taken: HashSet<(&str, Usd)> = HashSet::new();
        for (ring, waiting) in rings {
            let mut waiting_still = waiting.iter();
            let mut walked = 0;
            for (step, amount) in (1i64..).zip(&next[ring]) {
                let holder = holders.get(&(ring.address.clone(), *amount));
                let free = match holder {
                    Some(holder) => self.has_rested(tx, holder)?,
                    None => true,
                };
                // Prices less than a cent apart share amounts.
                if !free || taken.contains(&(ring.address.as_str(), *amount)) {
                    continue;
                }
                let Some(index) = waiting_still.next() else { break };
                if let Some(holder) = holder {
                    amounts::release(tx, &holder.id)?;
                }
                taken.insert((ring.address.as_str(), *amount));
                let address = ring.address.clone();
                let place = Place { address, amount: *amount, wide: false, rounds: false, sign_to: None };
                self.places[*index] = Some(place);
                walked = step;
            }
            // A full ring does not advance, so that its amounts come in turn when they have rested.
            if walked != waiting.len() as i64 {
                amounts::put(tx, ring, stood[ring] + walked)?;
            }
        }
        Ok(())
    }

    /// Gives a separate address to sign for to the checkouts that need one. It is the twin of the paid address, so that
    /// amounts which differ there differ here too.
    fn pair(&mut self, tx: &mut Tx) -> Result<()> {
        let mut twins: HashMap<String, String> = HashMap::new();
        for (want, place) in self.wanted.iter().zip(&mut self.places) {
            let (Some(xpub), Some(place)) = (want.twin_xpub, place) else { continue };
            let twin = match twins.entry(place.address.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(twin_of(tx, &place.address, xpub, self.now)?),
            };
            place.sign_to = Some(twin.clone());
        }
        Ok(())
    }

    /// Whether a payment for this checkout can no longer turn up: its time is over, and its network was scanned beyond
    /// it.
    fn has_rested(&mut self, tx: &mut Tx, holder: &Holder) -> Result<bool> {
        if holder.rests_until >= self.now {
            return Ok(false);
        }
        let scanned = match self.scanned.entry(holder.network) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                *new.insert(cursors::get(tx, holder.network)?.map(|cursor| cursor.scanned_time))
            }
        };
        Ok(scanned.is_some_and(|time| holder.rests_until < time))
    }
}

/// Keeps watching an address that serves.
pub(super) fn watch_on(tx: &mut Tx, address: &str, watched: Time, now: Time) -> Result<()> {
    let until = now.plus_days(WATCH_DAYS);
    if watched < until.plus_days(-1) { addresses::watch(tx, address, until) } else { Ok(()) }
}

/// The address that payers sign for instead of this one; derived from the key when first needed.
fn twin_of(tx: &mut Tx, address: &str, xpub: &Xpub, now: Time) -> Result<String> {
    let (kind, fingerprint) = (xpub.kind(), xpub.fingerprint());
    match amounts::twin(tx, address, fingerprint)? {
        Some((twin, watched)) => {
            watch_on(tx, &twin, watched, now)?;
            Ok(twin)
        }
        None => {
            let index = addresses::take_indexes(tx, kind, fingerprint, 1)?;
            let twin = derive(tx, xpub, index, None, now.plus_days(WATCH_DAYS), now)?;
            amounts::pair(tx, address, &twin)?;
            Ok(twin)
        }
    }
}

/// The house's address with this number; derived from the key when first needed.
pub(super) fn serving_address(tx: &mut Tx, xpub: &Xpub, number: i64, now: Time) -> Result<String> {
    let (kind, fingerprint) = (xpub.kind(), xpub.fingerprint());
    match amounts::serving(tx, kind, fingerprint, number)? {
        Some((address, watched)) => {
            watch_on(tx, &address, watched, now)?;
            Ok(address)
        }
        None => {
            let index = addresses::take_indexes(tx, kind, fingerprint, 1)?;
            let address = derive(tx, xpub, index, None, now.plus_days(WATCH_DAYS), now)?;
            amounts::serve(tx, &address, number)?;
            Ok(address)
        }
    }
}
