//! Our codes of suppliers' plans: readable, made once when a plan is first seen, and the same on every gateway that syncs
//! the same catalog. What a code was made from is in its last part, so none is ever made for something else.

use ring::digest::{SHA256, digest};

use crate::domain::plan::{Listing, PlanType};

/// Without letters that look like digits.
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// The most letters of a region's name.
const REGION: usize = 12;

/// `JP-5GB-30D-7K2M9QXA`: where, how much, how long, and a fingerprint of the rest. `catalog` names whose catalog it is.
pub fn of(catalog: &str, listing: &Listing, data_mb: i64) -> String {
    let parts = [
        catalog,
        &listing.code,
        listing.plan_type.as_str(),
        &data_mb.to_string(),
        &listing.duration_days.to_string(),
    ];
    let kind = if listing.plan_type == PlanType::Topup { "-TOPUP" } else { "" };
    let (place, size) = (place(listing), size(data_mb));
    format!("{place}-{size}-{}D{kind}-{}", listing.duration_days, fingerprint(&parts.join("\n")))
}

/// A country's code, or the region that the plan's name begins with.
fn place(listing: &Listing) -> String {
    if let [country] = listing.countries.as_slice() {
        return country.clone();
    }
    let words = listing.name.split(|c: char| !c.is_ascii_alphabetic());
    let first: String = words.take_while(|word| !word.is_empty()).collect::<Vec<_>>().join("").to_uppercase();
    let region: String = first.chars().take(REGION).collect();
    if region.len() < 3 { "MULTI".into() } else { region }
}

fn size(data_mb: i64) -> String {
    if data_mb % 1024 == 0 { format!("{}GB", data_mb / 1024) } else { format!("{data_mb}MB") }
}

/// Forty bits in eight letters.
fn fingerprint(text: &str) -> String {
    let hash = digest(&SHA256, text.as_bytes());
    let bits = hash.as_ref().iter().take(5).fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    (0..8).rev().map(|place| LETTERS[(bits >> (5 * place) & 31) as usize] as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::amount::Amount;
    use crate::domain::money::Usd;
    use crate::domain::plan::{Details, typed_code};

    fn listing(code: &str, name: &str, countries: &[&str]) -> Listing {
        Listing {
            code: code.into(),
            name: name.into(),
            plan_type: PlanType::Base,
            family: "any".into(),
            countries: countries.iter().map(|country| country.to_string()).collect(),
            data_mb: Some(5 * 1024),
            duration_days: 30,
            operator: "Any".into(),
            cost: Amount::usd(Usd::dollars(1)),
            retail_hint: None,
            in_stock: true,
            details: Details::default(),
        }
    }

    #[test]
    fn codes_read_well_and_tell_plans_apart() {
        let japan = of("a", &listing("P1", "Japan 5GB 30Days", &["JP"]), 5 * 1024);
        assert!(japan.starts_with("JP-5GB-30D-") && japan.len() == 19, "{japan}");
        assert_eq!(japan, of("a", &listing("P1", "Renamed", &["JP"]), 5 * 1024));
        let europe = of("a", &listing("P2", "Europe (30+ areas) 512MB", &["FR", "DE"]), 512);
        assert!(europe.starts_with("EUROPE-512MB-30D-"), "{europe}");
        assert!(of("a", &listing("P2", "5 in 1", &["FR", "DE"]), 512).starts_with("MULTI-"));
        let topup = Listing { plan_type: PlanType::Topup, ..listing("P1", "Japan", &["JP"]) };
        assert!(of("a", &topup, 5 * 1024).starts_with("JP-5GB-30D-TOPUP-"));
        let others = [
            of("b", &listing("P1", "Japan", &["JP"]), 5 * 1024),
            of("a", &listing("P3", "Japan", &["JP"]), 5 * 1024),
            of("a", &Listing { duration_days: 31, ..listing("P1", "Japan", &["JP"]) }, 5 * 1024),
        ];
        for other in others {
            assert_ne!(japan, other);
            assert_eq!(other, typed_code(&other));
        }
    }
}
