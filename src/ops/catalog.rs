//! What is on sale: a snapshot in memory, replaced as a whole when any process changes the catalog. Prices in it are for
//! display; an order reads its own. `sync.rs` fills the database from suppliers.

use std::collections::HashMap;
use std::sync::Arc;

use crate::app::App;
use crate::domain::plan::{DEFAULT_PRICE_LIST, Plan, PlanType, RETAIL_PRICE_LIST};
use crate::domain::refusal::{PlanMistake, Refusal};
use crate::error::Result;
use crate::store::catalog;

/// Everything on sale, by price list. `wholesale` is that list's price. Users pay `retail`.
#[derive(Default)]
pub struct Snapshot {
    lists: HashMap<String, PriceList>,
    /// What users can buy.
    retail: PriceList,
}

/// The plans of one list, sorted for two kinds of look-up. Both share the same plans.
#[derive(Default)]
struct PriceList {
    /// By code.
    plans: Vec<Arc<Plan>>,
    /// Only top-ups, by the coverage that they fit.
    topups: Vec<Arc<Plan>>,
}

impl PriceList {
    fn new(mut plans: Vec<Arc<Plan>>) -> PriceList {
        plans.sort_by(|a, b| a.code.cmp(&b.code));
        let topup = |plan: &&Arc<Plan>| plan.plan_type == PlanType::Topup;
        let mut topups: Vec<Arc<Plan>> = plans.iter().filter(topup).cloned().collect();
        topups.sort_by(|a, b| a.family.cmp(&b.family));
        PriceList { plans, topups }
    }
}

impl Snapshot {
    pub fn new(mut lists: HashMap<String, Vec<Arc<Plan>>>) -> Snapshot {
        let retail = PriceList::new(lists.remove(RETAIL_PRICE_LIST).unwrap_or_default());
        let lists = lists.into_iter().map(|(name, plans)| (name, PriceList::new(plans)));
        Snapshot { lists: lists.collect(), retail }
    }

    /// The lists that partners have.
    pub fn lists(&self) -> impl Iterator<Item = (&str, &[Arc<Plan>])> {
        self.lists.iter().map(|(name, list)| (name.as_str(), list.plans.as_slice()))
    }

    /// The plans of a list by their codes; empty for an unknown list.
    pub fn list(&self, name: &str) -> &[Arc<Plan>] {
        self.lists.get(name).map_or(&[], |list| &list.plans)
    }

    /// What users can buy, by code; `retail` is its price.
    pub fn retail(&self) -> &[Arc<Plan>] {
        &self.retail.plans
    }

    /// How many plans there are to buy.
    pub fn size(&self) -> usize {
        self.lists().map(|(_, plans)| plans.len()).max().unwrap_or(0).max(self.retail.plans.len())
    }

    fn find(&self, code: &str) -> Option<&Arc<Plan>> {
        let plans = self.retail();
        plans.binary_search_by(|plan| plan.code.as_str().cmp(code)).ok().map(|place| &plans[place])
    }

    fn topups(&self, list: &str, family: &str) -> &[Arc<Plan>] {
        let kept = if list == RETAIL_PRICE_LIST { Some(&self.retail) } else { self.lists.get(list) };
        let Some(PriceList { topups, .. }) = kept else { return &[] };
        let start = topups.partition_point(|plan| plan.family.as_str() < family);
        let end = topups.partition_point(|plan| plan.family.as_str() <= family);
        &topups[start..end]
    }
}

pub async fn load(app: &App) -> Result<()> {
    let lists = app.store.snapshot(catalog::on_sale).await?;
    app.catalog.send_replace(Arc::new(Snapshot::new(lists)));
    Ok(())
}

/// Whether partners can buy anything by this price list, by what the database says now.
pub async fn sells_by(app: &App, list: &str) -> Result<bool> {
    load(app).await?;
    Ok(!app.catalog.borrow().list(list).is_empty())
}

/// A plan for a new eSIM, for display; `retail` is what users and guests pay.
pub fn base_plan(app: &App, code: &str) -> Option<Arc<Plan>> {
    find(app, code).filter(|plan| plan.plan_type == PlanType::Base)
}

/// The same; a plan that cannot be bought by itself is refused as such.
pub fn require_base(app: &App, code: &str) -> Result<Arc<Plan>, Refusal> {
    let plan = find(app, code).ok_or(Refusal::PlanNotFound)?;
    if plan.plan_type == PlanType::Base {
        Ok(plan)
    } else {
        Err(Refusal::WrongPlanType(PlanMistake::TopupAlone))
    }
}

/// A plan for a new eSIM, by a partner's price list: `wholesale` is its price, for display.
pub fn base_plan_for(app: &App, price_list: &str, code: &str) -> Result<Arc<Plan>, Refusal> {
    let snapshot = app.catalog.borrow().clone();
    let plans = snapshot.list(price_list);
    let found = plans.binary_search_by(|plan| plan.code.as_str().cmp(code));
    let plan = found.map(|place| plans[place].clone()).map_err(|_| Refusal::PlanNotFound)?;
    match plan.plan_type {
        PlanType::Base => Ok(plan),
        PlanType::Topup => Err(Refusal::WrongPlanType(PlanMistake::TopupAlone)),
    }
}

/// A plan on sale to users, by its code. Its price is for display, like everything in the snapshot.
pub fn find(app: &App, code: &str) -> Option<Arc<Plan>> {
    app.catalog.borrow().find(code).cloned()
}

/// The top-ups that fit a coverage, cheapest first; `wholesale` is what this list's buyer pays.
pub fn topups_for(app: &App, price_list: &str, family: &str) -> Vec<Plan> {
    let snapshot = app.catalog.borrow().clone();
    let retail = price_list == RETAIL_PRICE_LIST;
    let plans = snapshot.topups(price_list, family).iter().map(|plan| Plan::clone(plan));
    let mut found: Vec<Plan> =
        plans.map(|plan| if retail { Plan { wholesale: plan.retail, ..plan } } else { plan }).collect();
    found.sort_by(|a, b| a.wholesale.cmp(&b.wholesale).then_with(|| a.code.cmp(&b.code)));
    found
}

/// Which plans somebody looks for.
pub struct Wanted<'a> {
    pub country: Option<&'a str>,
    pub plan_type: Option<PlanType>,
    /// Words that must all occur in the plan's texts; empty for any plan.
    pub words: &'a str,
}

impl Wanted<'_> {
    fn fits(&self, plan: &Plan) -> bool {
        self.country.is_none_or(|code| plan.countries.iter().any(|covered| covered == code))
            && self.plan_type.is_none_or(|wanted| plan.plan_type == wanted)
            && self.has_words(plan)
    }

    fn has_words(&self, plan: &Plan) -> bool {
        let text = plan.searched_texts().join(" ").to_lowercase();
        self.words.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}

/// The plans that fit, in the order in which plans are listed.
pub fn wanted(app: &App, wanted: &Wanted) -> Vec<Arc<Plan>> {
    let snapshot = app.catalog.borrow().clone();
    let plans = snapshot.list(DEFAULT_PRICE_LIST).iter();
    let mut found: Vec<Arc<Plan>> = plans.filter(|plan| wanted.fits(plan)).cloned().collect();
    found.sort_by(|a, b| a.list_order().cmp(&b.list_order()));
    found
}

pub async fn is_empty(app: &App) -> Result<bool> {
    Ok(app.store.read(catalog::count).await? == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::Usd;

    fn plan(code: &str, family: &str, plan_type: PlanType) -> Arc<Plan> {
        Arc::new(Plan {
            code: code.into(),
            name: code.into(),
            plan_type,
            family: family.into(),
            countries: vec!["JP".into()],
            data_mb: 1024,
            duration_days: 7,
            operator: "Any".into(),
            details: Arc::default(),
            cost: Usd::ZERO,
            billed: None,
            wholesale: Usd::ZERO,
            retail: Usd::ZERO,
        })
    }

    #[test]
    fn plans_are_found_whatever_order_they_came_in() {
        let plans = vec![
            plan("KR-1-TOPUP", "KR", PlanType::Topup),
            plan("JP-1", "JP", PlanType::Base),
            plan("JP-2-TOPUP", "JP", PlanType::Topup),
            plan("ASIA-1", "ASIA", PlanType::Base),
            plan("JP-1-TOPUP", "JP", PlanType::Topup),
        ];
        let lists = [DEFAULT_PRICE_LIST, RETAIL_PRICE_LIST].map(|list| (list.to_string(), plans.clone()));
        let snapshot = Snapshot::new(HashMap::from(lists));
        for code in ["ASIA-1", "JP-1", "JP-1-TOPUP", "JP-2-TOPUP", "KR-1-TOPUP"] {
            assert_eq!(snapshot.find(code).map(|plan| plan.code.as_str()), Some(code));
        }
        for code in ["", "ASIA", "JP-1-", "jp-1", "ZZ"] {
            assert_eq!(snapshot.find(code), None, "{code}");
        }
        let topups = |list: &str, family: &str| -> String {
            let codes: Vec<&str> =
                snapshot.topups(list, family).iter().map(|plan| plan.code.as_str()).collect();
            codes.join(" ")
        };
        assert_eq!(topups(DEFAULT_PRICE_LIST, "JP"), "JP-1-TOPUP JP-2-TOPUP");
        assert_eq!(topups(DEFAULT_PRICE_LIST, "KR"), "KR-1-TOPUP");
        assert_eq!(topups(DEFAULT_PRICE_LIST, "ASIA") + &topups("other", "JP"), "");
        assert_eq!((snapshot.size(), Snapshot::default().size(), snapshot.list("other").len()), (5, 0, 0));
    }
}
