//! What the simulator sells: profiles that follow from a name alone, and the sales that it keeps where a repeated
//! purchase would sell again.

use std::collections::HashSet;

use ring::digest::{SHA256, digest};

use super::super::{Profile, Sale, Sold};
use crate::domain::amount::Amount;
use crate::domain::esim::{Activation, luhn_digit};
use crate::domain::ids::OrderId;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::sim::Kept;
use crate::vault::hex;

const INSTALL_DAYS: i64 = 180;

/// The simulator's name for a profile holds everything about an untouched one.
pub struct ProfileId {
    pub data_mb: i64,
    pub days: i64,
    pub sold_at: Time,
}

impl ProfileId {
    pub fn parse(text: &str) -> Result<ProfileId> {
        let mut parts = text.split('.').skip(1).map(str::parse::<i64>);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(data_mb)), Some(Ok(days)), Some(Ok(sold))) => {
                Ok(ProfileId { data_mb, days, sold_at: Time::from_micros(sold) })
            }
            _ => Err(Error::fault("not a profile of the simulator")),
        }
    }
}

/// The profile with this name. The first sale of an order is named after it.
pub fn profile_named(name: &str, data_mb: i64, days: i64, ordered_at: Time) -> Profile {
    let hash = digest(&SHA256, name.as_bytes());
    Profile {
        id: format!("{name}.{data_mb}.{days}.{}", ordered_at.micros()),
        iccid: iccid_named(name),
        activation: Activation {
            smdp_address: "smdp.sim.example".into(),
            matching_id: format!("SIM-{}", hex(&hash.as_ref()[8..20]).to_uppercase()),
        },
        install_by: Some(ordered_at.plus_days(INSTALL_DAYS)),
    }
}

fn iccid_named(name: &str) -> String {
    let hash = digest(&SHA256, name.as_bytes());
    let number =
        u64::from_be_bytes(*hash.as_ref().first_chunk().expect("8 of 32 bytes")) % 10_000_000_000_000_000;
    let digits = format!("89{number:016}");
    let check = luhn_digit(&digits) as char;
    format!("{digits}{check}")
}

/// The name of an order's n-th sale.
pub fn name_of(order: &OrderId, n: i64) -> String {
    if n == 1 { order.to_string() } else { format!("{order}#{n}") }
}

/// The name of what an order has claimed.
pub fn claimed_name(order: &OrderId, claim: &str) -> String {
    format!("{order}~{claim}")
}

/// The simulator's number for an order's n-th sale.
pub fn number_of(order: &OrderId, n: i64) -> String {
    format!("{order}#{n}")
}

/// Which sale of an order has this number.
pub fn nth(number: &str) -> Option<i64> {
    number.split_once('#')?.1.parse().ok()
}

/// The profile of a sale that was kept; a top-up has none.
pub fn profile_of(kept: &Kept) -> Option<Profile> {
    let name = name_of(&kept.order, kept.n);
    kept.filled.is_none().then(|| profile_named(&name, kept.data_mb, kept.days, kept.ordered_at))
}

/// A kept sale as a look-up shows it.
pub fn shown(kept: &Kept, named: bool, now: Time) -> Sale {
    let profile = profile_of(kept).filter(|_| kept.ready_from <= now);
    let filled = kept.filled.as_ref().and_then(|profile| profile.split('.').next()).map(iccid_named);
    Sale {
        reference: if named { kept.order.to_string() } else { String::new() },
        number: number_of(&kept.order, kept.n),
        code: kept.code.clone(),
        quantity: 1,
        at: kept.at,
        cost: kept.cost.map(Amount::usd),
        iccid: profile.as_ref().map(|profile| profile.iccid.clone()).or(filled),
        profile,
    }
}

/// The sales in a journal, each once: repeating a question writes a second line.
pub fn journalled(journal: &str) -> Vec<Sold> {
    let mut known = HashSet::new();
    let sale = |line: &str| {
        let (deed, rest) = line.split_once(' ')?;
        let (order, what) = rest.split_once(' ').filter(|_| matches!(deed, "sold" | "topped"))?;
        Some(Sold { order: OrderId::from_text(order), what: what.into() })
    };
    journal.lines().filter_map(sale).filter(|sale| known.insert(sale.order.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_gets_the_same_profile() {
        let order = OrderId::esim(Time::from_micros(5_000), 42);
        let profile = |n| profile_named(&name_of(&order, n), 1024, 7, Time::from_micros(5_000));
        assert_eq!(profile(1), profile(1));
        assert_ne!(profile(1).iccid, profile(2).iccid);
        assert_eq!(profile(1).iccid.len(), 19);
        assert_eq!(profile(1).iccid.as_bytes()[18], luhn_digit(&profile(1).iccid[..18]));
        let parts = ProfileId::parse(&profile(2).id).unwrap();
        assert_eq!((parts.data_mb, parts.days), (1024, 7));
        assert_eq!(nth(&number_of(&order, 2)), Some(2));
    }

    #[test]
    fn a_journal_lists_each_sale_once() {
        let found = journalled(
            "sold ord_1 89\ntopped top_1 p.1.2.3\nsold ord_1 89\ncancelled p.1.2.3\nsold ord_2 90\n",
        );
        let ids: Vec<&str> = found.iter().map(|sale| sale.order.as_str()).collect();
        assert_eq!(ids, ["ord_1", "top_1", "ord_2"]);
        assert_eq!(found[1].what, "p.1.2.3");
    }
}
