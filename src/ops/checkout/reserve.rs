//! Finding an amount that nobody else can be paying. Each price has a ring of amounts on each address of the house;
//! the next few in turn are tried, and when they are all taken the address is full and the next one is tried.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::chain::address::Xpub;
use crate::domain::checkout;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Network};
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::addresses::derive;
use crate::store::amounts::{self, Holder, Ring};
use crate::store::tx::Tx;
use crate::store::{addresses, cursors};

/// How many addresses of a key serve checkouts at most; when the last one is full, somebody must look.
const MOST_SERVING: i64 = 20;
/// So many amounts more than needed are tried: one that was paid late rests for longer than those behind it.
const SPARE: i64 = 3;
/// A serving address is watched for so long after its last checkout, and renewed when a day of it is gone.
const WATCH_DAYS: i64 = 8;

/// What a checkout needs an amount for.
pub(super) struct Wanted<'a> {
    pub network: Network,
    pub price: Usd,
    pub seed: u64,
    pub xpub: &'a Xpub,
}

/// Where and how much to pay.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub address: String,
    pub amount: Usd,
}

/// An amount for each, or `None` where every address is full.
pub(super) fn amounts(tx: &mut Tx, wanted: &[Wanted], now: Time) -> Result<Vec<Option<Place>>> {
    let places = wanted.iter().map(|_| None).collect();
    let mut search = Search { wanted, places, scanned: HashMap::new(), now };
    for number in 1..=MOST_SERVING {
        let rings = search.rings(tx, number)?;
        if rings.is_empty() {
            break;
        }
        search.take_next(tx, &rings)?;
    }
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
    /// The rings of the n-th address that could serve those still without an amount.
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
                self.places[*index] = Some(Place { address: ring.address.clone(), amount: *amount });
                walked = step;
            }
            // A full ring stays where it is, so that its amounts come in turn when they have rested.
            if walked != waiting.len() as i64 {
                amounts::put(tx, ring, stood[ring] + walked)?;
            }
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

/// The first address that serves checkouts, if it is watched for long enough.
pub(super) fn watched_address(tx: &mut Tx, xpub: &Xpub, now: Time) -> Result<Option<String>> {
    let found = amounts::serving(tx, xpub.kind(), xpub.fingerprint(), 1)?;
    let until = now.plus_days(WATCH_DAYS - 1);
    Ok(found.filter(|(_, watched)| until <= *watched).map(|(address, _)| address))
}

/// The house's n-th address of this kind; the next one of the key when it is needed for the first time.
pub(super) fn serving_address(tx: &mut Tx, xpub: &Xpub, number: i64, now: Time) -> Result<String> {
    let (kind, fingerprint) = (xpub.kind(), xpub.fingerprint());
    let until = now.plus_days(WATCH_DAYS);
    match amounts::serving(tx, kind, fingerprint, number)? {
        Some((address, watched)) => {
            if watched < until.plus_days(-1) {
                addresses::watch(tx, &address, until)?;
            }
            Ok(address)
        }
        None => {
            let index = addresses::take_indexes(tx, kind, fingerprint, 1)?;
            let address = derive(tx, xpub, index, None, until, now)?;
            amounts::serve(tx, &address, number)?;
            Ok(address)
        }
    }
}
