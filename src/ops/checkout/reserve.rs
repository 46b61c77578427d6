//! Finding an amount that nobody else can be paying. A wide slot, in which a rounded amount is known too, is found in
//! `wide.rs`. Where there is none, the exact amount must be paid: each price has a ring of amounts on each further
//! address of the house; the next few in turn are tried, and when they are all taken the address is full and the next
//! one is tried.

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

/// How many addresses of a key serve exact amounts at most; when the last one is full, somebody must look.
const MOST_SERVING: i64 = 20;
/// So many amounts more than needed are tried: one that was paid late rests for longer than those behind it.
const SPARE: i64 = 3;
/// A serving address is watched for so long after its last checkout, and renewed when a day of it is gone.
const WATCH_DAYS: i64 = 8;

/// What a checkout needs an amount for.
pub(super) struct Wanted<'a> {
    pub id: &'a InvoiceId,
    pub network: Network,
    pub price: Usd,
    pub seed: u64,
    pub xpub: &'a Xpub,
    /// The key of addresses that payers sign for, if theirs cannot be signed for.
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
    /// A rounded amount is known too, as things stand.
    pub rounds: bool,
    pub sign_to: Option<String>,
}

/// An amount for each, or `None` where every address is full.
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
    /// How far each network was scanned, as far as that was asked.
    scanned: HashMap<Network, Option<Time>>,
    now: Time,
}

impl Search<'_> {
    /// The rings of the address with this number that could serve those still without an amount.
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

    /// Takes the amounts that are next in each ring, as far as they are free.
    fn take_next(&mut self, tx: &mut Tx, rings: &BTreeMap<Ring, Vec<usize>>) -> Result<()> {
        let steps: Vec<(Ring, i64)> =
            rings.iter().map(|(ring, waiting)| (ring.clone(), waiting.len() as i64)).collect();
        let stood = amounts::turn(tx, &steps)?;
        let mut next: BTreeMap<&Ring, Vec<Usd>> = BTreeMap::new();
        for (ring, waiting) in rings {
            // Rings of other prices go in another order.
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
            // A full ring stays where it is, so that its amounts come in turn when they have rested.
            if walked != waiting.len() as i64 {
                amounts::put(tx, ring, stood[ring] + walked)?;
            }
        }
        Ok(())
    }

    /// Gives an address to sign for to those who need another one for that. It is the twin of the one that is paid to, so
    /// that amounts which differ there differ here too.
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

    /// Whether no payment for this checkout can turn up any more: its time is over, and its network was scanned
    /// beyond it.
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

/// An address that serves goes on being watched.
pub(super) fn watch_on(tx: &mut Tx, address: &str, watched: Time, now: Time) -> Result<()> {
    let until = now.plus_days(WATCH_DAYS);
    if watched < until.plus_days(-1) { addresses::watch(tx, address, until) } else { Ok(()) }
}

/// The address that payers sign for instead of this one; the next one of the key when it is needed for the first time.
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

/// The house's address with this number; the next one of the key when it is needed for the first time.
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
