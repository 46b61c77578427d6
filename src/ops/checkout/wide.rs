//! Finds a wide slot: an address on which nobody else asks for a similar price. Addresses are tried in the order of
//! their numbers, first those where not even an exchange's fee could make two payments look alike; a new address is
//! derived only when there is no such address. A buyer who finds no slot, or holds enough, gets an exact amount
//! (`reserve.rs`).

use std::ops::RangeInclusive;

use super::reserve::{Place, Wanted, serving_address, watch_on};
use crate::domain::account::GUESTS;
use crate::domain::checkout;
use crate::domain::client::Origin;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::network::AddressKind;
use crate::domain::slot::{self, Unpaid};
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::slots::{self, Found, Held, Owner, Room, Search, Wish};
use crate::store::tx::Tx;

/// How many tries, when another instance takes the chosen slot first.
const TRIES: usize = 8;
/// Greater than every origin.
const LAST_ORIGIN: &str = "~";

/// Who wants a slot, and what for.
pub(super) struct Asker<'a> {
    pub account: AccountNo,
    pub origin: &'a Origin,
    pub has_paid: bool,
    /// How many addresses may hold slots.
    pub addresses: i64,
    /// The most that an exchange takes out of an amount.
    pub fee: Usd,
    /// The random number that picks the amount within the slot.
    pub chance: u64,
}

/// A slot for each checkout that may have one, if one is free.
pub(super) fn places(tx: &mut Tx, wanted: &[Wanted], now: Time) -> Result<Vec<Option<Place>>> {
    let mut places: Vec<Option<Place>> = wanted.iter().map(|_| None).collect();
    let mut waiting = entitled(tx, wanted)?;
    for _ in 0..TRIES {
        if waiting.is_empty() {
            break;
        }
        let chosen = Choosing { wanted, now, chosen: Vec::new(), derived: Vec::new() }.all(tx, &waiting)?;
        let wishes: Vec<Wish> = chosen
            .iter()
            .map(|choice| {
                let want = &wanted[choice.index];
                Wish { invoice: want.id, address: &choice.address, price: want.price }
            })
            .collect();
        let taken = if wishes.is_empty() { Default::default() } else { slots::take(tx, &wishes)? };
        waiting.clear();
        for choice in chosen {
            let want = &wanted[choice.index];
            if taken.contains(want.id) {
                places[choice.index] = Some(Place {
                    address: choice.address,
                    amount: want.price.minus(checkout::any_offset(want.asker.chance)),
                    wide: true,
                    rounds: !choice.crowded,
                    sign_to: None,
                });
            } else {
                waiting.push(choice.index);
            }
        }
    }
    Ok(places)
}

/// Those who may hold one more slot. Earlier ones of the group count too.
fn entitled(tx: &mut Tx, wanted: &[Wanted]) -> Result<Vec<usize>> {
    let asking: Vec<usize> = (0..wanted.len()).filter(|index| !numbers(&wanted[*index]).is_empty()).collect();
    if asking.is_empty() {
        return Ok(asking);
    }
    let owners: Vec<Owner> = asking.iter().map(|index| owner(&wanted[*index].asker)).collect();
    let mut granted: Vec<usize> = Vec::new();
    for (index, mut held) in asking.into_iter().zip(slots::held(tx, &owners)?) {
        let want = &wanted[index];
        let others = granted.iter().map(|other| &wanted[*other]);
        let others = others.filter(|other| other.asker.account == want.asker.account);
        held.extend(others.map(|other| Held { origin: other.asker.origin.clone(), slot: other.slot() }));
        if has_room(&held, want) {
            granted.push(index);
        }
    }
    Ok(granted)
}

fn owner(asker: &Asker) -> Owner {
    let account = asker.account;
    match asker.origin.networks().first() {
        Some((_, widest)) if account == GUESTS => {
            Owner { account, from: widest.from(), before: widest.before() }
        }
        Some(_) | None => Owner { account, from: String::new(), before: LAST_ORIGIN.into() },
    }
}

fn has_room(held: &[Held], want: &Wanted) -> bool {
    if want.asker.account != GUESTS {
        let held: Vec<Unpaid> = held.iter().map(|held| held.slot).collect();
        return slot::has_room(&held, want.slot(), |shares| shares.client);
    }
    want.asker.origin.networks().into_iter().all(|(width, rows)| {
        let held = held.iter().filter(|held| rows.hold(&held.origin)).map(|held| held.slot);
        slot::has_room(&held.collect::<Vec<Unpaid>>(), want.slot(), |shares| shares.of(width))
    })
}

fn numbers(want: &Wanted) -> Vec<RangeInclusive<i64>> {
    slot::numbers(want.asker.addresses, want.asker.has_paid)
}

struct Choice {
    index: usize,
    address: String,
    crowded: bool,
}

/// Picks an address for each of a group, so that they do not conflict.
struct Choosing<'a> {
    wanted: &'a [Wanted<'a>],
    now: Time,
    chosen: Vec<Choice>,
    /// Addresses derived for this group, with their kinds and numbers.
    derived: Vec<(AddressKind, i64, String)>,
}

impl Choosing<'_> {
    fn all(mut self, tx: &mut Tx, waiting: &[usize]) -> Result<Vec<Choice>> {
        for room in [Room::Alone, Room::Any] {
            for nth in 0.. {
                let left =
                    waiting.iter().filter(|index| self.chosen.iter().all(|done| done.index != **index));
                let ranges = left
                    .filter_map(|index| Some((*index, numbers(&self.wanted[*index]).into_iter().nth(nth)?)));
                let ranges: Vec<(usize, RangeInclusive<i64>)> = ranges.collect();
                if ranges.is_empty() {
                    break;
                }
                self.some(tx, room, &ranges)?;
            }
        }
        Ok(self.chosen)
    }

    /// Chooses among the addresses with these numbers.
    fn some(&mut self, tx: &mut Tx, room: Room, ranges: &[(usize, RangeInclusive<i64>)]) -> Result<()> {
        let searches: Vec<Search> = ranges
            .iter()
            .map(|(index, numbers)| {
                let want = &self.wanted[*index];
                Search {
                    kind: want.network.kind(),
                    fingerprint: want.xpub.fingerprint(),
                    numbers: numbers.clone(),
                    price: want.price,
                    fee: want.asker.fee,
                    // The database does not know yet what the group has chosen.
                    most: (self.chosen.len() + ranges.len()) as i64,
                }
            })
            .collect();
        let found = slots::free(tx, room, &searches)?;
        for ((index, numbers), found) in ranges.iter().zip(found) {
            let found = found.into_iter().find(|found| self.fits(*index, &found.address, room));
            match (found, room) {
                (Some(Found { address, watch_until, crowded }), _) => {
                    watch_on(tx, &address, watch_until, self.now)?;
                    self.choose(*index, address, crowded);
                }
                (None, Room::Alone) => {
                    if let Some(address) = self.new_address(tx, *index, numbers)? {
                        self.choose(*index, address, false);
                    }
                }
                (None, Room::Any) => {}
            }
        }
        Ok(())
    }

    fn choose(&mut self, index: usize, address: String, crowded: bool) {
        // Another of this group may ask for a little more there.
        let crowded = crowded || !self.fits(index, &address, Room::Alone);
        self.chosen.push(Choice { index, address, crowded });
    }

    /// Whether the earlier ones of the group leave this much room on an address.
    fn fits(&self, index: usize, address: &str, room: Room) -> bool {
        let want = &self.wanted[index];
        let here = self.chosen.iter().filter(|other| other.address == address);
        here.map(|other| self.wanted[other.index].price).all(|price| {
            let [first, last] = slot::buckets(price);
            let (low, high) = match room {
                Room::Alone => slot::within_reach(want.price, want.asker.fee),
                Room::Any => slot::buckets(want.price).into(),
            };
            last < low || high < first
        })
    }

    /// An address derived for the group already, or else a new one while the numbers last.
    fn new_address(
        &mut self,
        tx: &mut Tx,
        index: usize,
        numbers: &RangeInclusive<i64>,
    ) -> Result<Option<String>> {
        let want = &self.wanted[index];
        let kind = want.network.kind();
        let known = self.derived.iter().find(|(of, number, address)| {
            *of == kind && numbers.contains(number) && self.fits(index, address, Room::Alone)
        });
        if let Some((_, _, address)) = known {
            return Ok(Some(address.clone()));
        }
        let Some(number) = slots::next_number(tx, kind, want.xpub.fingerprint(), numbers)? else {
            return Ok(None);
        };
        let address = serving_address(tx, want.xpub, number, self.now)?;
        self.derived.push((kind, number, address.clone()));
        Ok(Some(address))
    }
}
