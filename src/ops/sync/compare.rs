//! What a supplier's catalog would change in ours, and whether that looks right. Pure: it reads two lists.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::codes;
use crate::domain::cost::{Billing, MOST_COST};
use crate::domain::country;
use crate::domain::money::Usd;
use crate::domain::plan::{Listing, Plan, typed_code};
use crate::domain::text;
use crate::store::catalog::Known;

/// Longer names of plans and carriers are cut.
const NAME_CHARS: usize = 200;
/// Longer codes of suppliers are not kept.
const CODE_CHARS: usize = 100;
/// Catalogs of fewer plans may shrink by any number.
const FEW: usize = 5;
const LONGEST_DAYS: i64 = 3_650;

/// A plan that a sync would add, change or withdraw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub code: String,
    pub supplier_code: String,
    pub name: String,
    pub cost_before: Option<Usd>,
    pub cost_after: Option<Usd>,
}

/// A plan that cannot be sold, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub supplier_code: String,
    pub name: String,
    pub why: &'static str,
}

/// What a sync does, or would do.
#[derive(Default)]
pub struct Changes {
    /// Every plan that can be sold, with the supplier's code of it.
    pub offered: Vec<(Plan, String)>,
    pub added: Vec<Change>,
    pub gone: Vec<Change>,
    pub dearer: Vec<Change>,
    pub cheaper: Vec<Change>,
    /// Same cost, other facts.
    pub changed: Vec<Change>,
    pub left_out: Vec<LeftOut>,
    /// Why an operator should look first.
    pub suspicious: Vec<String>,
}

/// Compares what a supplier has with what we know of it. `catalog` names whose catalog it is, for the codes of new plans;
/// `None` keeps the supplier's own codes, which are ours. Families get `prefix`, so that no two suppliers share one.
pub fn changes(
    known: &[Known],
    listings: Vec<Listing>,
    catalog: Option<&str>,
    prefix: &str,
    billing: Billing,
) -> Changes {
    let mut by_code: HashMap<&str, Vec<&Known>> = HashMap::new();
    known.iter().for_each(|plan| by_code.entry(&plan.supplier_code).or_default().push(plan));
    let (mut changes, mut taken) = (Changes::default(), HashSet::new());
    for listing in listings {
        let listing = readable(listing);
        let (supplier_code, name) = (listing.code.clone(), listing.name.clone());
        let before =
            by_code.get(supplier_code.as_str()).into_iter().flatten().find(|known| is_same(known, &listing));
        let offered = sellable(listing, before.copied(), catalog, prefix, billing).and_then(|plan| {
            if taken.insert(plan.code.clone()) { Ok(plan) } else { Err("it is listed twice") }
        });
        match offered {
            Ok(plan) => changes.offer(plan, supplier_code, before.copied()),
            Err(why) => changes.left_out.push(LeftOut { supplier_code, name, why }),
        }
    }
    let listed: Vec<&Known> = known.iter().filter(|plan| plan.listed).collect();
    changes.gone.extend(listed.iter().filter(|plan| !taken.contains(&plan.code)).map(|plan| Change {
        code: plan.code.clone(),
        supplier_code: plan.supplier_code.clone(),
        name: plan.name.clone(),
        cost_before: Some(plan.cost),
        cost_after: None,
    }));
    changes.suspicious = changes.doubts(listed.len());
    changes
}

impl Changes {
    /// Whether the supplier lists what we know already.
    pub fn is_empty(&self) -> bool {
        [&self.added, &self.gone, &self.dearer, &self.cheaper, &self.changed]
            .iter()
            .all(|kind| kind.is_empty())
    }

    fn offer(&mut self, plan: Plan, supplier_code: String, before: Option<&Known>) {
        let before = before.filter(|known| known.listed);
        let change = Change {
            code: plan.code.clone(),
            supplier_code: supplier_code.clone(),
            name: plan.name.clone(),
            cost_before: before.map(|known| known.cost),
            cost_after: Some(plan.cost),
        };
        match before {
            None => self.added.push(change),
            Some(known) if plan.cost > known.cost => self.dearer.push(change),
            Some(known) if plan.cost < known.cost => self.cheaper.push(change),
            Some(known) if !is_told_alike(known, &plan) => self.changed.push(change),
            Some(_) => {}
        }
        self.offered.push((plan, supplier_code));
    }

    fn doubts(&self, listed: usize) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.gone.len() * 5 >= listed && listed >= FEW {
            doubts.push(format!("{} of {listed} plans would be gone", self.gone.len()));
        }
        let half = |change: &&Change| match (change.cost_before, change.cost_after) {
            (Some(before), Some(after)) => {
                after.micros() * 2 <= before.micros() || after.micros() * 2 >= before.micros() * 3
            }
            _ => false,
        };
        let jumps: Vec<&Change> = self.dearer.iter().chain(&self.cheaper).filter(half).collect();
        if let Some(first) = jumps.first() {
            let cost = |cost: Option<Usd>| cost.unwrap_or_default().priced();
            doubts.push(format!(
                "the cost of {} plans moves by half or more, for example {} from {} to {} USD",
                jumps.len(),
                first.code,
                cost(first.cost_before),
                cost(first.cost_after)
            ));
        }
        doubts
    }
}

/// Cleans a supplier's texts, because people and language models read them.
fn readable(listing: Listing) -> Listing {
    let mut countries: Vec<String> = listing.countries.iter().map(|code| code.to_ascii_uppercase()).collect();
    countries.retain(|code| country::by_code(code).is_some());
    countries.sort_unstable();
    countries.dedup();
    let (name, operator) =
        (text::visible(&listing.name, NAME_CHARS), text::visible(&listing.operator, NAME_CHARS));
    Listing { name, operator, countries, ..listing }
}

/// Whether a code of ours that was made for `known` still stands for the same thing.
fn is_same(known: &Known, listing: &Listing) -> bool {
    known.plan_type == listing.plan_type
        && Some(known.data_mb) == listing.data_mb
        && known.duration_days == listing.duration_days
}

fn is_told_alike(known: &Known, plan: &Plan) -> bool {
    known.name == plan.name
        && known.family == plan.family
        && known.operator == plan.operator
        && known.countries == plan.countries.join(",")
}

/// The plan of ours that a listing becomes, without prices; or why it cannot be sold.
fn sellable(
    listing: Listing,
    known: Option<&Known>,
    catalog: Option<&str>,
    prefix: &str,
    billing: Billing,
) -> Result<Plan, &'static str> {
    let data_mb = listing.data_mb.ok_or("plans without a fixed volume are not sold yet")?;
    let cost = billing.cost(listing.cost).ok_or("it is not billed in the supplier's currency")?;
    let wrong = [
        (listing.code.is_empty() || listing.code.len() > CODE_CHARS, "its code is empty or too long"),
        (!listing.in_stock, "it is out of stock"),
        (data_mb <= 0, "it has no data"),
        (!(1..=LONGEST_DAYS).contains(&listing.duration_days), "its time makes no sense"),
        (cost.usd > MOST_COST, "it costs more than any plan does"),
        (!cost.usd.is_positive(), "it has no cost"),
        (listing.countries.is_empty(), "it covers no country that we know"),
        (listing.name.is_empty(), "it has no name"),
    ];
    if let Some((_, why)) = wrong.into_iter().find(|(is_so, _)| *is_so) {
        return Err(why);
    }
    let code = match (known, catalog) {
        (Some(known), _) => known.code.clone(),
        (None, Some(catalog)) => codes::of(catalog, &listing, data_mb),
        (None, None) => listing.code.clone(),
    };
    if code != typed_code(&code) {
        // Nobody could name it: codes are looked up in capitals.
        return Err("its code is not in capitals");
    }
    Ok(Plan {
        code,
        name: listing.name,
        plan_type: listing.plan_type,
        family: format!("{prefix}{}", listing.family),
        countries: listing.countries,
        data_mb,
        duration_days: listing.duration_days,
        operator: listing.operator,
        details: Arc::new(listing.details.cleaned()),
        cost: cost.usd,
        billed: cost.billed,
        wholesale: Usd::ZERO,
        retail: Usd::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::amount::{Amount, Fiat};
    use crate::domain::cost::Rate;
    use crate::domain::plan::{Details, PlanType};

    fn listing(code: &str, cents: i64) -> Listing {
        Listing {
            code: code.into(),
            name: format!("Japan {code}"),
            plan_type: PlanType::Base,
            family: "JP".into(),
            countries: vec!["jp".into(), "XX".into()],
            data_mb: Some(1024),
            duration_days: 7,
            operator: "Any".into(),
            cost: Amount::usd(Usd::from_micros(cents * 10_000)),
            retail_hint: None,
            in_stock: true,
            details: Details::default(),
        }
    }

    /// What the catalog holds after a sync.
    fn kept(changes: &Changes) -> Vec<Known> {
        let known = |(plan, supplier_code): &(Plan, String)| Known {
            code: plan.code.clone(),
            supplier_code: supplier_code.clone(),
            name: plan.name.clone(),
            plan_type: plan.plan_type,
            family: plan.family.clone(),
            countries: plan.countries.join(","),
            data_mb: plan.data_mb,
            duration_days: plan.duration_days,
            operator: plan.operator.clone(),
            cost: plan.cost,
            listed: true,
            on_sale: true,
        };
        changes.offered.iter().map(known).collect()
    }

    fn pull(known: &[Known], listings: Vec<Listing>) -> Changes {
        changes(known, listings, Some("esim-access\nexample.com"), "acme:", Billing::DOLLARS)
    }

    fn ten() -> Vec<Listing> {
        (0..10).map(|n| listing(&format!("P{n}"), 100 + n)).collect()
    }

    #[test]
    fn the_same_catalog_changes_nothing() {
        let first = pull(&[], ten());
        assert_eq!((first.added.len(), first.offered.len(), first.suspicious.len()), (10, 10, 0));
        assert_eq!(first.offered[0].0.countries, ["JP"]);
        assert_eq!(first.offered[0].0.family, "acme:JP");
        let second = pull(&kept(&first), ten());
        assert!(second.added.is_empty() && second.gone.is_empty() && second.changed.is_empty());
        assert_eq!(kept(&first)[3].code, kept(&second)[3].code);
    }

    #[test]
    fn codes_stay_until_the_plan_is_another() {
        let known = kept(&pull(&[], ten()));
        let mut next = ten();
        next[0].name = "Nippon".into();
        next[1].cost = Amount::usd(Usd::from_micros(1_100_000));
        next[2].data_mb = Some(2048);
        let changes = pull(&known, next);
        assert_eq!(changes.changed.iter().map(|change| &change.code).collect::<Vec<_>>(), [&known[0].code]);
        assert_eq!(changes.dearer.iter().map(|change| &change.code).collect::<Vec<_>>(), [&known[1].code]);
        // Twice the data under the same code of the supplier's is a new plan of ours.
        assert_eq!(changes.gone.iter().map(|change| &change.code).collect::<Vec<_>>(), [&known[2].code]);
        assert_eq!(changes.added.len(), 1);
        assert!(changes.suspicious.is_empty(), "{:?}", changes.suspicious);
    }

    #[test]
    fn a_pull_that_looks_wrong_is_said_to() {
        let known = kept(&pull(&[], ten()));
        let fewer = pull(&known, ten().into_iter().skip(2).collect());
        assert_eq!(fewer.suspicious, ["2 of 10 plans would be gone"]);
        assert!(pull(&known, ten().into_iter().skip(1).collect()).suspicious.is_empty());
        let mut dear = ten();
        dear[4].cost = Amount::usd(Usd::from_micros(1_560_000));
        assert_eq!(pull(&known, dear).suspicious.len(), 1);
        let mut cheap = ten();
        cheap[0].cost = Amount::usd(Usd::from_micros(500_000));
        assert_eq!(pull(&known, cheap).suspicious.len(), 1);
    }

    #[test]
    fn what_cannot_be_sold_is_left_out_and_said() {
        let mut listings = ten();
        listings[0].data_mb = None;
        listings[1].cost = Amount { currency: Fiat::parse("EUR").unwrap(), ..listings[1].cost };
        listings[2].countries = vec!["XX".into()];
        listings[3].cost = Amount::usd(Usd::ZERO);
        listings[4].in_stock = false;
        listings[5].code = String::new();
        listings[6].duration_days = 0;
        listings[7].name = "\u{200b}".into();
        listings[9] = listings[8].clone();
        let changes = pull(&[], listings);
        assert_eq!(changes.left_out.len(), 9, "{:?}", changes.left_out);
        assert_eq!(changes.offered.len(), 1);
        let own = vec![Listing { code: "small-letters".into(), ..listing("x", 100) }];
        assert_eq!(
            super::changes(&[], own, None, "", Billing::DOLLARS).left_out[0].why,
            "its code is not in capitals"
        );
    }

    #[test]
    fn bills_in_a_suppliers_own_currency_become_dollars_at_its_rate() {
        let euro = Fiat::parse("EUR").unwrap();
        let billing = Billing { currency: euro, rate: Some(Rate::parse("1.0845678").unwrap()) };
        let mut listings = vec![listing("A", 300), listing("B", 300)];
        listings[0].cost.currency = euro;
        let changes = super::changes(&[], listings, Some("x"), "acme:", billing);
        let plan = &changes.offered[0].0;
        assert_eq!((plan.cost, plan.billed.unwrap().micros), (Usd::from_micros(3_253_704), 3_000_000));
        assert_eq!(changes.left_out[0].why, "it is not billed in the supplier's currency");
        assert_eq!(changes.offered.len(), 1);
    }
}
