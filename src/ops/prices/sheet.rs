//! Rules and prices as CSV. A file of rules has the columns that `price export` writes; a price sheet needs only
//! `packageCode` and `priceUsd`. All lines are read before anything is changed, and all mistakes are told at once.

use std::collections::{HashMap, HashSet};

use super::edition::Turn;
use super::{csv, mistyped, plans, suited};
use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::price::{Base, Percent, Priced, Rounding, Rule, Rules, Scope, Subject};
use crate::domain::refusal::{FieldError, Refusal};
use crate::error::Result;
use crate::ops::audit::audit_line;
use crate::ops::catalog::PLANS_PER_JOB;
use crate::store::tx::Tx;
use crate::store::{audit, price_rules, prices};

/// The columns of a file of rules. Only `scope` must be there.
const COLUMNS: [&str; 11] = [
    "scope",
    "target",
    "percent",
    "plusPercent",
    "plusAtMostUsd",
    "fixedUsd",
    "leastMarginUsd",
    "rounding",
    "priceUsd",
    "belowCost",
    "base",
];

pub struct Imported {
    pub lines: usize,
    /// How many rules of the draft are new or others.
    pub changed: usize,
}

/// Puts the rules or prices of a file into the draft of a list.
pub async fn import(app: &App, actor: &str, list: &str, text: &str) -> Result<Imported> {
    let (plans, rules) = app.store.snapshot(|tx| Ok((prices::plans(tx)?, drafted(tx)?))).await?;
    let known = Known::new(&plans);
    let (is_sheet, lines) = read(list, text).map_err(Refusal::Invalid)?;
    let count = lines.len();
    let mut mistakes = Vec::new();
    let mut wanted = Vec::new();
    let mut seen: HashMap<Scope, usize> = HashMap::new();
    for Read { number, read } in lines {
        let read = read.and_then(|(scope, rule)| match seen.insert(scope.clone(), number) {
            Some(earlier) => Err(format!("is for {scope} again, like line {earlier}")),
            None => Ok((scope, rule)),
        });
        let read = match read {
            Ok((scope, rule)) => known.checked(app, &scope).await?.map_or(Ok((scope, rule)), Err),
            Err(mistake) => Err(mistake),
        };
        match read {
            Ok((scope, Some(rule))) => wanted.push((scope, rule)),
            Ok((_, None)) => {}
            Err(message) => mistakes.push(FieldError { field: format!("line {number}"), message }),
        }
    }
    if !mistakes.is_empty() {
        return Err(Refusal::Invalid(mistakes).into());
    }
    let by_code: HashMap<&str, &Subject> = plans.iter().map(|plan| (plan.code.as_str(), plan)).collect();
    wanted.retain(|(scope, rule)| {
        let made = || by_code.get(scope.target()).is_some_and(|plan| makes(&rules, list, plan, rule));
        rules.get(list, scope) != Some(rule) && !(is_sheet && made())
    });
    let changed = wanted.len();
    if changed > 0 {
        write(app, actor, list, count, rules.of_list(list).len(), wanted).await?;
    }
    Ok(Imported { lines: count, changed })
}

fn drafted(tx: &mut Tx) -> Result<Rules> {
    let draft = price_rules::published(tx)? + 1;
    price_rules::in_edition(tx, draft)
}

/// Whether the draft's rules make a sheet's price anyway.
fn makes(rules: &Rules, list: &str, plan: &Subject, wanted: &Rule) -> bool {
    let same_word = rules.fitting(list, plan).is_some_and(|rule| rule.below_cost == wanted.below_cost);
    same_word && wanted.price.is_some_and(|price| rules.price(list, plan) == Priced::At(price))
}

/// Nobody publishes before all of it is written.
async fn write(
    app: &App,
    actor: &str,
    list: &str,
    lines: usize,
    before: usize,
    wanted: Vec<(Scope, Rule)>,
) -> Result<()> {
    let detail = format!("{list}, {lines} lines");
    let line = audit_line(app, actor, "price import", detail);
    let line = line.changing(format!("{before} rules"), format!("{} rules new or changed", wanted.len()));
    let now = || app.now();
    let turn = Turn::new(&app.store, &now);
    turn.take().await?;
    for (nth, batch) in wanted.chunks(PLANS_PER_JOB).enumerate() {
        let (batch, list, line) = (batch.to_vec(), list.to_string(), line.clone());
        let put = move |tx: &mut Tx| {
            price_rules::lock_changes(tx)?;
            batch.iter().try_for_each(|(scope, rule)| price_rules::draft(tx, &list, scope, Some(rule)))?;
            if nth == 0 { audit::record(tx, &line) } else { Ok(()) }
        };
        if !turn.under(put).await? {
            let why =
                "somebody else published prices meanwhile, and only a part is in the draft: import it again";
            return Err(Refusal::Malformed(why.into()).into());
        }
    }
    turn.give_back().await
}

/// What plans on sale are in.
struct Known {
    scopes: HashSet<Scope>,
}

impl Known {
    fn new(plans: &[Subject]) -> Known {
        Known { scopes: plans.iter().flat_map(Subject::scopes).collect() }
    }

    /// Why no plan can be in a scope, in words that follow the line's number.
    async fn checked(&self, app: &App, scope: &Scope) -> Result<Option<String>> {
        if self.scopes.contains(scope) {
            return Ok(None);
        }
        let target = scope.target().to_string();
        let exists = app.store.read(move |tx| prices::plan_exists(tx, &target)).await?;
        Ok(mistyped(app, scope, exists).map(|_| format!("is for {scope}, and there is none")))
    }
}

/// A line's scope, and its rule; without one the line says nothing.
struct Read {
    number: usize,
    read: Result<(Scope, Option<Rule>), String>,
}

/// Whether it is a price sheet, and its lines.
fn read(list: &str, text: &str) -> Result<(bool, Vec<Read>), Vec<FieldError>> {
    let wrong = |line: usize, message: String| vec![FieldError { field: format!("line {line}"), message }];
    let mut lines =
        csv::read(text).map_err(|line| wrong(line, "has quotes without an end".into()))?.into_iter();
    let Some(head) = lines.next() else {
        return Err(wrong(1, "must name the columns, and there is none".into()));
    };
    let columns = Columns::new(&head.cells).map_err(|message| wrong(head.number, message))?;
    let read = |line: csv::Line| Read { number: line.number, read: columns.read(list, &line.cells) };
    Ok((columns.is_sheet, lines.map(read).collect()))
}

/// Where each column stands.
struct Columns {
    names: Vec<String>,
    is_sheet: bool,
}

impl Columns {
    fn new(names: &[String]) -> Result<Columns, String> {
        let has = |name: &str| names.iter().any(|other| other == name);
        let is_sheet = has("packageCode");
        if let Some(twice) =
            (1..names.len()).find(|at| !names[*at].is_empty() && names[..*at].contains(&names[*at]))
        {
            return Err(format!("names the column {} twice", names[twice]));
        }
        if is_sheet && has("priceUsd") {
            return Ok(Columns { names: names.to_vec(), is_sheet });
        }
        if is_sheet || !has("scope") {
            return Err(
                "must name the columns packageCode and priceUsd, or scope and the parts of rules".into()
            );
        }
        match names.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
            Some(unknown) => {
                Err(format!("names the column {unknown:?}, which is none of {}", COLUMNS.join(", ")))
            }
            None => Ok(Columns { names: names.to_vec(), is_sheet }),
        }
    }

    fn cell<'a>(&self, cells: &'a [String], name: &str) -> Option<&'a str> {
        let at = self.names.iter().position(|other| other == name)?;
        cells.get(at).map(String::as_str).filter(|cell| !cell.is_empty())
    }

    fn read(&self, list: &str, cells: &[String]) -> Result<(Scope, Option<Rule>), String> {
        if cells.len() > self.names.len() {
            return Err(format!("has {} cells, and there are {} columns", cells.len(), self.names.len()));
        }
        let cell = |name: &str| self.cell(cells, name);
        let scope = match self.is_sheet {
            true => Scope::parse("plan", cell("packageCode").unwrap_or_default()),
            false => Scope::parse(cell("scope").unwrap_or_default(), cell("target").unwrap_or_default()),
        };
        let scope = scope.map_err(|why| format!("is wrong: {why}"))?;
        if self.is_sheet && cell("priceUsd").is_none() {
            return Ok((scope, None));
        }
        let rule = self.rule(cells)?;
        Ok((scope, Some(suited(list, rule).map_err(|why| format!("is wrong: {why}"))?)))
    }

    fn rule(&self, cells: &[String]) -> Result<Rule, String> {
        let part = |name: &'static str| if self.is_sheet { None } else { self.cell(cells, name) };
        let usd = |name: &str, cell: Option<&str>| {
            let read = |text: &str| Usd::parse(text).map_err(|error| format!("{name} {}", error.as_str()));
            cell.map(read).transpose().map_err(|why| format!("is wrong: {why}"))
        };
        let percent = |name: &'static str| {
            let read = |text: &str| Percent::parse(text).map_err(|why| format!("is wrong: {name} {why}"));
            part(name).map(read).transpose()
        };
        let rounding = |text: &str| {
            Rounding::parse(text).ok_or_else(|| format!("is wrong: rounding {}", Rounding::ALLOWED))
        };
        let base = |text: &str| Base::parse(text).ok_or("is wrong: base must be cost or default".to_string());
        let below_cost = match self.cell(cells, "belowCost").map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "no") => false,
            Some("true" | "yes") => true,
            Some(_) => return Err("is wrong: belowCost must be true or false".into()),
        };
        Ok(Rule {
            price: usd("priceUsd", self.cell(cells, "priceUsd"))?,
            base: part("base").map(base).transpose()?,
            percent: percent("percent")?,
            plus_percent: percent("plusPercent")?,
            plus_at_most: usd("plusAtMostUsd", part("plusAtMostUsd"))?,
            fixed: usd("fixedUsd", part("fixedUsd"))?,
            least_margin: usd("leastMarginUsd", part("leastMarginUsd"))?,
            rounding: part("rounding").map(rounding).transpose()?,
            below_cost,
        })
    }
}

/// A line of a price sheet: what the draft makes of a plan.
pub struct PricedPlan {
    pub plan: Subject,
    /// `None`: not for sale.
    pub price: Option<Usd>,
    pub below_cost: bool,
}

/// Every plan with the price that the draft gives it on a list.
pub async fn price_sheet(app: &App, list: &str) -> Result<Vec<PricedPlan>> {
    let rules = app.store.snapshot(drafted).await?;
    let priced = |plan: Subject| {
        let price = match rules.price(list, &plan) {
            Priced::At(price) => Some(price),
            Priced::BelowCost(_) | Priced::Nothing => None,
        };
        let below_cost = rules.fitting(list, &plan).is_some_and(|rule| rule.below_cost);
        PricedPlan { plan, price, below_cost }
    };
    Ok(plans(app).await?.into_iter().map(priced).collect())
}
