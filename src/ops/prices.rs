//! Prices in the operator's hands. Rules are changed in a draft, `effect.rs` says what the draft would change, and
//! publishing makes it count everywhere at once (`edition.rs`). `sheet.rs` reads and writes rules and prices as CSV.
//! Every deed is in the audit log, in the same write.

mod csv;
mod edition;
mod effect;
mod sheet;

use std::collections::BTreeSet;

use super::LANE;
use super::audit::audit_line;
use crate::app::App;
use crate::domain::plan::DEFAULT_PRICE_LIST;
use crate::domain::price::{Base, Rule, Rules, Scope, Subject};
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{audit, price_rules, prices};

pub use self::edition::{Published, Repriced, publish, reprice, reprice_in};
pub use self::effect::{BelowCost, Change, Effect, Totals, below_cost, preview};
pub use self::sheet::{Imported, PricedPlan, import, price_sheet};

/// A rule as it is published, and as it is in the draft.
pub struct Entry {
    pub list: String,
    pub scope: Scope,
    pub published: Option<Rule>,
    pub drafted: Option<Rule>,
}

/// The rules of a list, or of all: by list, the most general first.
pub async fn rules(app: &App, list: Option<&str>) -> Result<Vec<Entry>> {
    let (published, drafted) = app.store.snapshot(both).await?;
    let lists: BTreeSet<&str> = published.lists().chain(drafted.lists()).collect();
    let mut entries = Vec::new();
    for name in lists.into_iter().filter(|name| list.is_none_or(|list| list == *name)) {
        let either = published.of_list(name).into_iter().chain(drafted.of_list(name));
        let scopes: BTreeSet<&Scope> = either.map(|(scope, _)| scope).collect();
        entries.extend(scopes.into_iter().map(|scope| Entry {
            list: name.into(),
            scope: scope.clone(),
            published: published.get(name, scope).cloned(),
            drafted: drafted.get(name, scope).cloned(),
        }));
    }
    Ok(entries)
}

/// What is published, and the draft.
fn both(tx: &mut Tx) -> Result<(Rules, Rules)> {
    let edition = price_rules::published(tx)?;
    Ok((price_rules::in_edition(tx, edition)?, price_rules::in_edition(tx, edition + 1)?))
}

/// What became of the draft.
pub struct Drafted {
    pub before: Option<Rule>,
    pub after: Option<Rule>,
    /// How many plans on sale are in the rule's scope.
    pub plans: usize,
}

/// Puts a rule into the draft.
pub async fn set(app: &App, actor: &str, list: &str, scope: Scope, rule: Rule) -> Result<Drafted> {
    let rule = suited(list, rule).map_err(|mistake| Refusal::field("rule", mistake))?;
    draft(app, actor, "price set", list, scope, Some(rule)).await
}

/// Takes a rule out of the draft; there must be one.
pub async fn unset(app: &App, actor: &str, list: &str, scope: Scope) -> Result<Drafted> {
    draft(app, actor, "price unset", list, scope, None).await
}

/// Checks a rule for its list. `Err` is a sentence for the operator.
fn suited(list: &str, rule: Rule) -> Result<Rule, String> {
    if list == DEFAULT_PRICE_LIST && rule.base == Some(Base::Default) {
        return Err("the list default cannot be based on itself: base it on cost".into());
    }
    rule.checked()
}

async fn draft(
    app: &App,
    actor: &str,
    command: &'static str,
    list: &str,
    scope: Scope,
    rule: Option<Rule>,
) -> Result<Drafted> {
    let known = plans(app).await?;
    let plans = known.iter().filter(|plan| plan.scopes().contains(&scope)).count();
    if rule.is_some() && plans == 0 {
        require_target(app, &scope).await?;
    }
    let line = audit_line(app, actor, command, format!("{list}, {scope}"));
    let list = list.to_string();
    let write = move |tx: &mut Tx| {
        price_rules::lock_changes(tx)?;
        let before = price_rules::drafted(tx, &list, &scope)?;
        let drafted = |before: Option<Rule>| Drafted { before, after: rule.clone(), plans };
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(drafted(before));
        }
        if rule.is_none() && before.is_none() {
            return Err(Refusal::field("scope", format!("{scope} has no rule on the list {list}")).into());
        }
        if before != rule {
            price_rules::draft(tx, &list, &scope, rule.as_ref())?;
            audit::record(tx, &line.changing(words(before.as_ref()), words(rule.as_ref())))?;
        }
        Ok(drafted(before))
    };
    app.store.write(LANE, write).await
}

fn words(rule: Option<&Rule>) -> String {
    rule.map_or("no rule".into(), ToString::to_string)
}

/// Refuses a scope that no plan can be in: it was mistyped. Rules for a supplier may come before its plans.
async fn require_target(app: &App, scope: &Scope) -> Result<()> {
    let asked = scope.clone();
    let exists = app.store.read(move |tx| prices::plan_exists(tx, asked.target())).await?;
    mistyped(app, scope, exists).map_or(Ok(()), |refusal| Err(refusal.into()))
}

/// Why a scope without a plan on sale is wrong. A plan that was withdrawn may have a rule.
fn mistyped(app: &App, scope: &Scope, plan_exists: bool) -> Option<Refusal> {
    match scope {
        Scope::Plan(_) if !plan_exists => Some(Refusal::PlanNotFound),
        Scope::Region(name) => Some(Refusal::field("region", format!("{name} is the coverage of no plan"))),
        Scope::Supplier(name) if app.supplier(name).is_err() => {
            Some(Refusal::field("supplier", format!("{name} is none of the settings")))
        }
        Scope::All | Scope::Supplier(_) | Scope::Country(_) | Scope::Plan(_) => None,
    }
}

/// Makes the draft what is published again.
pub async fn discard(app: &App, actor: &str) -> Result<usize> {
    let differing =
        rules(app, None).await?.into_iter().filter(|entry| entry.published != entry.drafted).count();
    let line = audit_line(app, actor, "price discard", "the draft".into());
    let line = line.changing(format!("{differing} rules differ"), "as published");
    let write = move |tx: &mut Tx| {
        price_rules::lock_changes(tx)?;
        price_rules::discard(tx)?;
        audit::record(tx, &line)
    };
    app.store.write(LANE, write).await?;
    Ok(differing)
}

/// The plans that prices are made for, by code.
async fn plans(app: &App) -> Result<Vec<Subject>> {
    app.store.snapshot(prices::plans).await
}
