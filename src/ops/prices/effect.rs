//! What rules make of the plans that there are, and how that differs from the prices that count. The preview shows it,
//! and publishing writes it: both read it here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::plan::{DEFAULT_PRICE_LIST, RETAIL_PRICE_LIST};
use crate::domain::price::{Priced, Rules, Subject};
use crate::error::Result;
use crate::store::prices::{Row, Tag};
use crate::store::tx::Tx;
use crate::store::{accounts, price_rules, prices};

/// Which rules make the prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Published,
    Draft,
}

/// Everything that prices follow from, and the prices that there are, at one moment.
pub(super) struct Standing {
    pub edition: i64,
    pub rules_edition: i64,
    pub draft_changes: i64,
    published: Rules,
    pub rules: Rules,
    pub plans: Vec<Subject>,
    /// Those that have prices now, or are to have them.
    pub lists: BTreeSet<String>,
    rows: HashMap<(String, String), Row>,
}

/// A plan on a list, as it is sold and as it would be.
struct Made<'a> {
    list: &'a str,
    plan: &'a Subject,
    now: Option<Tag>,
    then: Option<Tag>,
    /// The price below cost for which it would not be for sale.
    withheld: Option<Usd>,
}

impl Standing {
    pub fn read(tx: &mut Tx, which: Which) -> Result<Standing> {
        let rules_edition = price_rules::published(tx)?;
        let published = price_rules::in_edition(tx, rules_edition)?;
        let rules = match which {
            Which::Published => published.clone(),
            Which::Draft => price_rules::in_edition(tx, rules_edition + 1)?,
        };
        let mut lists: BTreeSet<String> = accounts::price_lists(tx)?.into_iter().collect();
        lists.extend([DEFAULT_PRICE_LIST, RETAIL_PRICE_LIST].map(String::from));
        lists.extend(rules.lists().map(String::from));
        let rows = prices::rows(tx)?.into_iter().map(|row| ((row.list.clone(), row.code.clone()), row));
        Ok(Standing {
            edition: prices::edition(tx)?,
            rules_edition,
            draft_changes: price_rules::changes(tx)?,
            published,
            rules,
            plans: prices::plans(tx)?,
            lists,
            rows: rows.collect(),
        })
    }

    /// How many rules differ from what is published.
    pub fn rules_differing(&self) -> usize {
        let lists: BTreeSet<&str> = self.rules.lists().chain(self.published.lists()).collect();
        let differing = |list: &&str| {
            let either = self.rules.of_list(list).into_iter().chain(self.published.of_list(list));
            let scopes: BTreeSet<_> = either.map(|(scope, _)| scope).collect();
            scopes
                .into_iter()
                .filter(|scope| self.rules.get(list, scope) != self.published.get(list, scope))
                .count()
        };
        lists.iter().map(differing).sum()
    }

    /// Every plan on every list. Where a list has gone, its prices go too.
    fn made(&self) -> impl Iterator<Item = Made<'_>> {
        let gone = self.rows.keys().map(|(list, _)| list).filter(|list| !self.lists.contains(*list));
        let lists: BTreeSet<&String> = self.lists.iter().chain(gone).collect();
        lists.into_iter().flat_map(|list| self.plans.iter().map(|plan| self.make(list, plan)))
    }

    fn make<'a>(&'a self, list: &'a str, plan: &'a Subject) -> Made<'a> {
        let row = self.rows.get(&(list.to_string(), plan.code.clone()));
        let now = row.and_then(|row| row.in_edition(self.edition));
        let priced = if self.lists.contains(list) { self.rules.price(list, plan) } else { Priced::Nothing };
        let (then, withheld) = match priced {
            Priced::At(price) => {
                let below_cost = self.rules.fitting(list, plan).is_some_and(|rule| rule.below_cost);
                (Some(Tag { price, below_cost }), None)
            }
            Priced::BelowCost(price) => (None, Some(price)),
            Priced::Nothing => (None, None),
        };
        Made { list, plan, now, then, withheld }
    }

    /// The prices that are others in the next edition, by list and code.
    pub fn changes(&self) -> Vec<Change> {
        self.made().map(|made| Change::of(&made)).filter(|change| change.before != change.after).collect()
    }

    /// The rows of the next edition that differ from those that count, and those that somebody left half-way.
    pub fn rows_to_write(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
        for Made { list, plan, now, then, .. } in self.made().filter(|made| made.now != made.then) {
            let (list_name, code) = (list.to_string(), plan.code.clone());
            rows.push(Row { list: list_name, code, newest: then, since: self.edition + 1, earlier: now });
            seen.insert((list, &plan.code));
        }
        let left = self.rows.values().filter(|row| row.since > self.edition);
        for row in left.filter(|row| !seen.contains(&(row.list.as_str(), row.code.as_str()))) {
            rows.push(Row { newest: row.earlier, since: 0, earlier: None, ..row.clone() });
        }
        rows
    }

    /// Of every list.
    fn totals(&self) -> Vec<Totals> {
        let mut totals: BTreeMap<&str, Totals> = BTreeMap::new();
        for made in self.made() {
            let total = totals.entry(made.list).or_insert_with(|| Totals::of(made.list));
            total.count(&made);
        }
        totals.into_values().collect()
    }
}

/// A price that would be another.
pub struct Change {
    pub list: String,
    pub code: String,
    pub cost: Usd,
    /// `None`: not for sale.
    pub before: Option<Usd>,
    pub after: Option<Usd>,
    /// The price below cost for which it would not be for sale.
    pub withheld: Option<Usd>,
}

impl Change {
    fn of(made: &Made) -> Change {
        Change {
            list: made.list.into(),
            code: made.plan.code.clone(),
            cost: made.plan.cost,
            before: made.sold_now(),
            after: made.then.map(|tag| tag.price),
            withheld: made.withheld,
        }
    }

    pub fn margin(&self) -> Option<Usd> {
        self.after.map(|price| price.minus(self.cost))
    }

    /// How much more is earned with each sale; `None` where it is not sold before or after.
    pub fn margin_change(&self) -> Option<Usd> {
        Some(self.after?.minus(self.before?))
    }
}

impl Made<'_> {
    /// A price that has fallen below the cost is not sold at, unless its rule allows it.
    fn sold_now(&self) -> Option<Usd> {
        self.now.filter(|tag| tag.below_cost || tag.price >= self.plan.cost).map(|tag| tag.price)
    }
}

/// What becomes of a list. Margins are sums of one sale of each plan that is for sale before and after.
pub struct Totals {
    pub list: String,
    pub for_sale: i64,
    pub dearer: i64,
    pub cheaper: i64,
    pub added: i64,
    pub taken_off: i64,
    /// Not for sale, because the price would be below cost.
    pub withheld: i64,
    /// For sale below cost, as their rules allow.
    pub below_cost: i64,
    pub margin_before: Usd,
    pub margin_after: Usd,
}

impl Totals {
    fn of(list: &str) -> Totals {
        Totals {
            list: list.into(),
            for_sale: 0,
            dearer: 0,
            cheaper: 0,
            added: 0,
            taken_off: 0,
            withheld: 0,
            below_cost: 0,
            margin_before: Usd::ZERO,
            margin_after: Usd::ZERO,
        }
    }

    fn count(&mut self, made: &Made) {
        let cost = made.plan.cost;
        self.withheld += i64::from(made.withheld.is_some());
        self.for_sale += i64::from(made.then.is_some());
        self.below_cost += i64::from(made.then.is_some_and(|tag| tag.price < cost));
        match (made.sold_now(), made.then.map(|tag| tag.price)) {
            (Some(before), Some(after)) => {
                self.dearer += i64::from(after > before);
                self.cheaper += i64::from(after < before);
                self.margin_before = self.margin_before.plus(before.minus(cost));
                self.margin_after = self.margin_after.plus(after.minus(cost));
            }
            (None, Some(_)) => self.added += 1,
            (Some(_), None) => self.taken_off += 1,
            (None, None) => {}
        }
    }
}

/// A plan whose price on a list is below its cost.
pub struct BelowCost {
    pub list: String,
    pub code: String,
    pub name: String,
    pub price: Usd,
    pub cost: Usd,
    /// Whether it is for sale all the same, because its rule allows it.
    pub sold: bool,
}

/// What the rules that count now would price below its cost, of plans as they may become.
pub async fn below_cost(app: &App, plans: Vec<Subject>) -> Result<Vec<BelowCost>> {
    let standing = app.store.snapshot(|tx| Standing::read(tx, Which::Published)).await?;
    let standing = Standing { plans, ..standing };
    let below = |made: Made| {
        let (price, sold) = match (made.withheld, made.then) {
            (Some(price), _) => (price, false),
            (None, Some(tag)) if tag.price < made.plan.cost => (tag.price, true),
            _ => return None,
        };
        let plan = made.plan;
        let (list, code, name) = (made.list.to_string(), plan.code.clone(), plan.name.clone());
        Some(BelowCost { list, code, name, price, cost: plan.cost, sold })
    };
    Ok(standing.made().filter_map(below).collect())
}

/// What publishing the draft would do.
pub struct Effect {
    pub rules: usize,
    pub lists: Vec<Totals>,
    pub changes: Vec<Change>,
}

/// Of one list, or of all.
pub async fn preview(app: &App, list: Option<&str>) -> Result<Effect> {
    let standing = app.store.snapshot(|tx| Standing::read(tx, Which::Draft)).await?;
    let mut effect =
        Effect { rules: standing.rules_differing(), lists: standing.totals(), changes: standing.changes() };
    if let Some(list) = list {
        effect.lists.retain(|totals| totals.list == list);
        effect.changes.retain(|change| change.list == list);
    }
    Ok(effect)
}
