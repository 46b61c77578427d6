//! No statement goes through a whole table that grows without end, on either database. Each is planned for any values,
//! on an empty database, by connections like the service's own: what is found does not wait for a table to be full.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use simgate::store::{Location, all_sql, explain, migrate};

use crate::support::database;
use crate::support::harness::{Db, each_database};
use crate::support::place::Place;

/// Tables that stay small: what is on sale, what an operator makes by hand, a row for each network, day or process, and the
/// simulated worlds of a sandbox.
const SMALL: &str =
    "address_keys api_call_batches blocks coupons cursors login_days meta plans price_turn prices second_purchases settlers sim_chains
    sim_forks sim_profiles sim_sales sim_supplier sim_topups sim_transfers sqlite_sequence suppliers turns
    versions waiting webhook_turn";

/// Indexes that stay small, because rows leave them when their work is done. All of one may be read.
const QUEUES: &str =
    "addresses_serving api_call_counts_by_age api_calls_by_age api_keys_sessions attempts_watched authorizations_old authorizations_open checkouts_due checkouts_resting checkouts_wide coupon_guesses_by_age invoices_due invoices_open
     login_attempts_by_age logins_by_age magic_links_by_age mailings_by_age mails_by_age mails_due order_batches_by_age order_batches_open orders_open orders_orphaned page_sessions_by_age page_sessions_by_use
     settlements_by_age settlements_open spares_open transfers_doubted transfers_open usage_days_by_age";

/// Columns of few values: who knows only these has to read all the same.
const COARSE: &str = "currency fingerprint kind network realm state status";

/// Why a statement may read all of a table. `ledger verify`, whose statements have no parameters, reads everything.
const ON_PURPOSE: &[(&str, &str)] = &[
    (
        "an operator lists, searches or reports",
        "accounts::ALL_ACCOUNTS accounts::FIND accounts::PARTNERS accounts::USERS addresses::LIST claims::FIND coupons::TALLY keys::LIST orders::RECENT reports::MARGIN reports::MARGIN_TOTAL
         reports::TRIAL_BALANCE reports::TRIAL_BALANCE_OF wallet::DRAWN webhooks::LIST",
    ),
    ("an operator moves cash or asks what a supplier holds, which are sums over postings", "ledger::SUM_OF"),
    ("it is kept in memory, and loaded anew when it has changed", "addresses::WATCHED keys::LIVE webhooks::OPEN"),
    ("every two seconds, of all partners", "days::BEHIND low_balances::MOVED statement::BEHIND"),
    ("once for each sync and each change of prices", "accounts::PRICE_LISTS"),
    ("the greatest number is at the end of the index", "accounts::LAST_NO events::LAST_PG events::LAST_UNTIL events::SKIP_PG"),
    ("the oldest are at the beginning of the index, and only some of them are looked at", "deliveries::FORGET events::FORGET"),
    ("what waits for one webhook is at most five thousand", "deliveries::HEADS deliveries::NEXT_DUE"),
    ("when the figures are read", "deliveries::COUNTS deliveries::OLDEST"),
    ("once a day", "deliveries::FORGET_WAITING"),
    ("once a minute, of mailboxes that wanted no mail or were guessed at", "logins::OLD_MAILBOXES"),
];

fn lists(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|other| other == word)
}

/// One way in which a statement gets at a table.
struct Read {
    statement: String,
    table: String,
    index: Option<String>,
    /// What is asked of the index's columns, in their order, up to the first of which nothing is asked.
    asked: Vec<(String, Asked)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Equal,
    From,
    UpTo,
}

impl Read {
    /// Whether it costs more with every row that was ever written.
    fn is_whole(&self) -> bool {
        let queue = self.index.as_ref().is_some_and(|index| lists(QUEUES, index));
        let narrowed = self.asked.iter().any(|(column, asked)| match asked {
            Asked::Equal => !lists(COARSE, column),
            Asked::From => true,
            Asked::UpTo => false,
        });
        !lists(SMALL, &self.table) && !queue && !narrowed
    }
}

/// The statements that read all of a table on a database, but for those of `ledger verify`.
fn whole_reads(db: Db) -> BTreeSet<String> {
    let place = Place::new(db);
    let location = place.settings(&[]).database;
    let plans = database::on_plain_thread(|| {
        migrate::run(&location).map(drop)?;
        explain::plans(&location, &all_sql())
    });
    let reads: Vec<Read> = match &location {
        Location::Sqlite(_) => sqlite_reads(&location, &plans.unwrap()),
        Location::Postgres(_) => postgres_reads(&location, &plans.unwrap()),
    };
    place.remove();
    assert!(reads.len() > 200, "{} reads are too few to be all", reads.len());
    let mut whole: BTreeSet<String> =
        reads.into_iter().filter(Read::is_whole).map(|read| read.statement).collect();
    let verifies = |noun: &str, text: &str| noun == "ledger" && !text.contains('?');
    for (noun, name, _) in all_sql().iter().filter(|(noun, _, sql)| verifies(noun, sql.text)) {
        whole.remove(&format!("{noun}::{name}"));
    }
    whole
}

fn on_purpose() -> BTreeSet<String> {
    ON_PURPOSE.iter().flat_map(|(_, names)| names.split_whitespace()).map(str::to_string).collect()
}

mod no_statement_reads_all_of_a_table_that_grows {
    use super::*;

    fn check(db: Db) {
        let (whole, on_purpose) = (whole_reads(db), on_purpose());
        let unexplained: Vec<&String> = whole.difference(&on_purpose).collect();
        assert!(unexplained.is_empty(), "all of a table is read by {unexplained:?}");
    }
    each_database!(check);
}

/// Some of a million orders are found without a walk along the others: those that came to nothing, and those still open.
mod rare_orders_have_indexes_of_their_own {
    use super::*;

    fn check(db: Db) {
        let place = Place::new(db);
        let location = place.settings(&[]).database;
        let plans = database::on_plain_thread(|| {
            migrate::run(&location).map(drop)?;
            explain::plans(&location, &all_sql())
        });
        let plans: BTreeMap<String, String> = plans.unwrap().into_iter().collect();
        place.remove();
        for (name, index) in [
            ("OLDER_UNDONE", "orders_undone"),
            ("NEWER_UNDONE", "orders_undone"),
            ("OLDER_OPEN", "orders_open"),
            ("NEWER_OPEN", "orders_open"),
            ("WAITING", "orders_open"),
            ("LONGEST_WAITING", "orders_open"),
        ] {
            let lite = format!("order_lists::{name}_LITE");
            let plan = plans.get(&lite).unwrap_or_else(|| &plans[&format!("order_lists::{name}")]);
            assert!(plan.contains(index), "{name} does not use {index}: {plan}");
        }
    }
    each_database!(check);
}

/// Some are needed for one of the databases only.
#[test]
#[ignore = "needs PostgreSQL"]
fn every_exception_is_needed() {
    let (lite, pg) = (whole_reads(Db::Sqlite), whole_reads(Db::Postgres));
    let on_purpose = on_purpose();
    let needless: Vec<&String> =
        on_purpose.iter().filter(|name| !lite.contains(*name) && !pg.contains(*name)).collect();
    assert!(needless.is_empty(), "no longer needed in ON_PURPOSE: {needless:?}");
}

/// From lines like `SEARCH o USING COVERING INDEX orders_by_account (account=? AND seq<?)`. Tables are called as the
/// statement calls them.
fn sqlite_reads(location: &Location, plans: &[(String, String)]) -> Vec<Read> {
    let tables = database::rows(location, "SELECT name FROM sqlite_master WHERE type = 'table'");
    let tables: BTreeSet<String> = tables.into_iter().flatten().collect();
    let texts: BTreeMap<String, &str> =
        all_sql().into_iter().map(|(noun, name, sql)| (format!("{noun}::{name}"), sql.text)).collect();
    let mut reads = Vec::new();
    for (statement, plan) in plans {
        for line in plan.lines() {
            let mut words = line.split(' ');
            let (Some("SCAN" | "SEARCH"), Some(called)) = (words.next(), words.next()) else { continue };
            let Some(table) = named(&tables, texts[statement], called) else { continue };
            let index = line.split_once(" INDEX ").and_then(|(_, rest)| rest.split(' ').next());
            let terms =
                line.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(terms, _)| terms);
            reads.push(Read {
                statement: statement.clone(),
                table,
                index: index.map(str::to_string),
                asked: terms.unwrap_or_default().split(" AND ").filter_map(sqlite_term).collect(),
            });
        }
    }
    reads
}

fn sqlite_term(term: &str) -> Option<(String, Asked)> {
    let (column, rest) = term.split_at_checked(term.find(['=', '<', '>'])?)?;
    let asked = match rest.as_bytes()[0] {
        b'=' => Asked::Equal,
        b'>' => Asked::From,
        _ => Asked::UpTo,
    };
    Some((column.to_string(), asked))
}

/// The table that a statement calls so: by its name, or `orders o`, or `orders AS o`. None is a query inside it.
fn named(tables: &BTreeSet<String>, text: &str, called: &str) -> Option<String> {
    if tables.contains(called) {
        return Some(called.to_string());
    }
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    let calls = |at: &usize| match words.get(at + 1) {
        Some(&"AS") => words.get(at + 2) == Some(&called),
        next => next == Some(&called),
    };
    (0..words.len()).filter(calls).map(|at| words[at].to_string()).find(|word| tables.contains(word))
}

/// `index`, `its columns in their order`.
const INDEX_COLUMNS: &str = "
    SELECT i.relname::text, string_agg(a.attname::text, ',' ORDER BY k.n) FROM pg_index x
    JOIN pg_class i ON i.oid = x.indexrelid CROSS JOIN unnest(x.indkey) WITH ORDINALITY k (no, n)
    JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.no GROUP BY i.relname";

/// From the nodes of plans. An index's condition may be on any of its columns, so they are put in order here.
fn postgres_reads(location: &Location, plans: &[(String, String)]) -> Vec<Read> {
    let columns: BTreeMap<String, Vec<String>> = database::rows(location, INDEX_COLUMNS)
        .into_iter()
        .map(|row| (row[0].clone(), row[1].split(',').map(str::to_string).collect()))
        .collect();
    let mut reads = Vec::new();
    for (statement, plan) in plans {
        let plan: Value = serde_json::from_str(plan).unwrap();
        let mut nodes: Vec<(&Value, &str)> = vec![(&plan[0]["Plan"], "")];
        while let Some((node, above)) = nodes.pop() {
            // The nodes that read indexes for a bitmap do not say of which table they are.
            let table = node["Relation Name"].as_str().unwrap_or(above);
            nodes.extend(node["Plans"].as_array().into_iter().flatten().map(|below| (below, table)));
            let index = node["Index Name"].as_str();
            if index.is_none() && node["Node Type"] != "Seq Scan" {
                continue;
            }
            let condition = node["Index Cond"].as_str().unwrap_or_default().replace('"', "");
            let asked = index.map(|index| postgres_terms(&columns[index], &condition)).unwrap_or_default();
            reads.push(Read {
                statement: statement.clone(),
                table: table.to_string(),
                index: index.map(str::to_string),
                asked,
            });
        }
    }
    reads
}

/// From conditions like `((account = $1) AND (seq < $2))`.
fn postgres_terms(columns: &[String], condition: &str) -> Vec<(String, Asked)> {
    let mut terms = Vec::new();
    for column in columns {
        let has = |operator: &str| condition.contains(&format!("({column} {operator} "));
        let asked = match () {
            () if has("=") => Asked::Equal,
            () if has(">") || has(">=") => Asked::From,
            () if has("<") || has("<=") => Asked::UpTo,
            () => break,
        };
        terms.push((column.clone(), asked));
        if asked != Asked::Equal {
            break;
        }
    }
    terms
}
