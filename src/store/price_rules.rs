//! The rules of price lists, by edition: what is published, and the draft of the next edition. A rule that was published
//! once stays in the table with the editions in which it counted.

use super::engine::{
    Column, Param, Row as Cells, Stored, Tx, Value, columns, insert_into, params, queries, text, values, word,
};
use crate::domain::price::{Base, Percent, Rounding, Rule, Rules, Scope};
use crate::error::{Error, Result};

/// The end of a rule that has none.
const FOREVER: i64 = i64::MAX;

queries! {
    PUBLISHED = "SELECT n FROM versions WHERE name = 'price_rules'";
    PUBLISH = "UPDATE versions SET n = n + 1 WHERE name = 'price_rules' AND n = ?1";
    CHANGES and LOCK_CHANGES = "SELECT n FROM versions WHERE name = 'price_draft'";
    COUNT_CHANGE = "UPDATE versions SET n = n + 1 WHERE name = 'price_draft'";
    IN_EDITION = text!("SELECT ", Kept::COLUMNS, " FROM price_rules WHERE until > ?1 AND since <= ?1");
    RULE = text!("SELECT ", Kept::COLUMNS, " FROM price_rules WHERE price_list = ?1 AND scope = ?2 AND target = ?3 AND since <= ?4
        AND until > ?4");
    INSERT = insert_into!("price_rules", New);
    TAKE_OUT = "DELETE FROM price_rules WHERE price_list = ?1 AND scope = ?2 AND target = ?3 AND since = ?4";
    SET_END = "UPDATE price_rules SET until = ?5 WHERE price_list = ?1 AND scope = ?2 AND target = ?3 AND since <= ?4 AND until > ?4";
    DISCARD_NEW = "DELETE FROM price_rules WHERE until = ?2 AND since = ?1";
    DISCARD_ENDS = "UPDATE price_rules SET until = ?2 WHERE until = ?1";
}

/// A rule with its place.
struct Kept {
    list: String,
    scope: Scope,
    rule: Rule,
}

columns! {
    Kept {
        list = "price_list", scope: String, target: String, price, base, percent,
        plus_percent, plus_at_most, fixed, least_margin, rounding, below_cost,
    } => Kept {
        scope: Scope::parse(&scope, &target).map_err(Error::fault)?,
        rule: Rule {
            price, base, percent, plus_percent, plus_at_most, fixed, least_margin, rounding, below_cost,
        },
        list,
    }
}

values! {
    New(rule: Rule, list: &'a str, scope: &'a Scope, since: i64, rounding: Option<&'a str>) {
        price_list = list, scope = scope.kind(), target = scope.target(), since = since, until = FOREVER, price, base, percent,
        plus_percent, plus_at_most, fixed, least_margin, rounding = rounding, below_cost,
    }
}

impl Value for Percent {
    fn param(&self) -> Param<'_> {
        Param::Int(self.hundredths())
    }
}

impl Column for Percent {
    fn get(row: &Cells, at: usize) -> Result<Option<Percent>> {
        Ok(i64::get(row, at)?.map(Percent::from_hundredths))
    }
}

impl Value for Base {
    fn param(&self) -> Param<'_> {
        Param::Text(self.as_str())
    }
}

impl Column for Base {
    fn get(row: &Cells, at: usize) -> Result<Option<Base>> {
        word(row, at, Base::parse)
    }
}

impl Column for Rounding {
    fn get(row: &Cells, at: usize) -> Result<Option<Rounding>> {
        word(row, at, Rounding::parse)
    }
}

/// The number of the published edition.
pub fn published(tx: &mut Tx) -> Result<i64> {
    tx.one(PUBLISHED, &[])
}

/// How often the draft was changed, ever.
pub fn changes(tx: &mut Tx) -> Result<i64> {
    tx.one(CHANGES, &[])
}

/// The same, and nobody changes or publishes the draft before this write ends.
pub fn lock_changes(tx: &mut Tx) -> Result<i64> {
    tx.lock(LOCK_CHANGES, &[])?.ok_or_else(|| Error::fault("the count of changes is not in the database"))
}

pub fn in_edition(tx: &mut Tx, edition: i64) -> Result<Rules> {
    let mut rules = Rules::default();
    for Kept { list, scope, rule } in tx.all::<Kept>(IN_EDITION, params![edition])? {
        rules.put(list, scope, rule);
    }
    Ok(rules)
}

/// A rule of the draft.
pub fn drafted(tx: &mut Tx, list: &str, scope: &Scope) -> Result<Option<Rule>> {
    let draft = published(tx)? + 1;
    rule(tx, list, scope, draft)
}

fn rule(tx: &mut Tx, list: &str, scope: &Scope, edition: i64) -> Result<Option<Rule>> {
    let found: Option<Kept> = tx.opt(RULE, params![list, scope.kind(), scope.target(), edition])?;
    Ok(found.map(|kept| kept.rule))
}

/// Puts a rule into the draft, or takes one out of it. The caller has locked the draft.
pub fn draft(tx: &mut Tx, list: &str, scope: &Scope, rule: Option<&Rule>) -> Result<()> {
    let published = published(tx)?;
    let (kind, target, next) = (scope.kind(), scope.target(), published + 1);
    let before = self::rule(tx, list, scope, published)?;
    tx.execute(TAKE_OUT, params![list, kind, target, next])?;
    // What is as it was published has no end, and nothing new.
    let same = before.as_ref() == rule;
    let end = if same { FOREVER } else { next };
    tx.execute(SET_END, params![list, kind, target, published, end])?;
    if let (Some(rule), false) = (rule, same) {
        let rounding = rule.rounding.as_ref().map(ToString::to_string);
        tx.execute(INSERT, &New::params(rule, list, scope, next, rounding.as_deref()))?;
    }
    tx.execute(COUNT_CHANGE, &[]).map(drop)
}

/// Makes the draft what is published again.
pub fn discard(tx: &mut Tx) -> Result<()> {
    let next = published(tx)? + 1;
    tx.execute(DISCARD_NEW, params![next, FOREVER])?;
    tx.execute(DISCARD_ENDS, params![next, FOREVER])?;
    tx.execute(COUNT_CHANGE, &[]).map(drop)
}

/// Publishes the draft, which is the edition after this one.
pub fn publish(tx: &mut Tx, edition: i64) -> Result<()> {
    match tx.execute(PUBLISH, params![edition])? {
        1 => tx.execute(COUNT_CHANGE, &[]).map(drop),
        _ => Err(Error::fault("rules of an edition that is not the next")),
    }
}
