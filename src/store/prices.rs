//! Prices by edition. A row holds a plan's newest price on a list, the edition that it counts from, and the price before
//! it; one counter says which edition counts now. So a whole new edition is written row by row while the old one is
//! sold, and begins everywhere at once when the counter moves. One writer at a time has the turn to write the next one.

use super::engine::{Stored, Tx, columns, insert_into, lists, params, queries, text, values};
use crate::domain::money::Usd;
use crate::domain::price::Subject;
use crate::domain::time::Time;
use crate::error::{Error, Result};

/// What a plan `p` is sold at by a row of prices now; NULL when it is not for sale. A price below the plan's cost counts
/// only where its rule allows that: the cost may have risen since the price was made.
macro_rules! sold_at {
    ($row:literal) => {
        concat!(
            "CASE WHEN ",
            $row,
            ".since <= (SELECT n FROM versions WHERE name = 'prices')",
            " THEN CASE WHEN ",
            $row,
            ".below_cost = 1 OR ",
            $row,
            ".price >= p.cost THEN ",
            $row,
            ".price END",
            " ELSE CASE WHEN ",
            $row,
            ".earlier_below_cost = 1 OR ",
            $row,
            ".earlier_price >= p.cost THEN ",
            $row,
            ".earlier_price END END"
        )
    };
}
pub(super) use sold_at;

/// A row that is there is replaced.
macro_rules! or_update {
    () => {
        "ON CONFLICT (price_list, code) DO UPDATE SET price = excluded.price, below_cost = excluded.below_cost,
             since = excluded.since, earlier_price = excluded.earlier_price, earlier_below_cost = excluded.earlier_below_cost"
    };
}

queries! {
    EDITION = "SELECT n FROM versions WHERE name = 'prices'";
    NEXT_EDITION = "UPDATE versions SET n = n + 1 WHERE name = 'prices' AND n = ?1";
    PUT = text!(insert_into!("prices", Put), " ", or_update!());
    PUT_ALL (Postgres) = text!("INSERT INTO prices (", Put::NAMES, ") SELECT * FROM unnest(", lists!(Put), ") ", or_update!(), " RETURNING since");
    ROWS = text!("SELECT ", Row::COLUMNS, " FROM prices x WHERE (x.price_list, x.code) > (?1, ?2)
           ORDER BY x.price_list, x.code LIMIT 500");
    PLANS = text!("SELECT ", Subject::COLUMNS, " FROM plans p WHERE p.listed = 1 ORDER BY p.code");
    PLAN_EXISTS = "SELECT 1 FROM plans WHERE code = ?1";
    TAKE_TURN = "UPDATE price_turn SET holder = ?1, until = ?2 WHERE id = 1 AND (holder = ?1 OR until < ?3)";
    KEEP_TURN = "UPDATE price_turn SET until = ?2 WHERE id = 1 AND holder = ?1";
    END_TURN = "UPDATE price_turn SET holder = '', until = 0, ended_by = ?1 WHERE id = 1 AND holder = ?1";
    ENDED_BY = "SELECT 1 FROM price_turn WHERE id = 1 AND ended_by = ?1";
}

/// A price, and whether it may be below the cost. `None` where there would be one: not for sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    pub price: Usd,
    pub below_cost: bool,
}

/// A plan's prices on a list.
#[derive(Clone, Debug)]
pub struct Row {
    pub list: String,
    pub code: String,
    pub newest: Option<Tag>,
    pub since: i64,
    pub earlier: Option<Tag>,
}

columns! {
    Row in "x" {
        list = "x.price_list", code, price: Option<Usd>, below_cost: bool, since, earlier_price: Option<Usd>,
        earlier_below_cost: bool,
    } => Row {
        list, code, since,
        newest: price.map(|price| Tag { price, below_cost }),
        earlier: earlier_price.map(|price| Tag { price, below_cost: earlier_below_cost }),
    }
}

columns! {
    Subject in "p" { code, name, family, countries: String, supplier, cost } => Subject {
        countries: countries.split(',').map(str::to_string).collect(),
        code, name, family, supplier, cost,
    }
}

values! {
    Put(row: Row) {
        price_list: TEXT = &row.list, code: TEXT, price: BIGINT = row.newest.map(|tag| tag.price),
        below_cost: BIGINT = row.newest.is_some_and(|tag| tag.below_cost), since: BIGINT,
        earlier_price: BIGINT = row.earlier.map(|tag| tag.price),
        earlier_below_cost: BIGINT = row.earlier.is_some_and(|tag| tag.below_cost),
    }
}

impl Row {
    /// What counts in an edition.
    pub fn in_edition(&self, edition: i64) -> Option<Tag> {
        if self.since <= edition { self.newest } else { self.earlier }
    }
}

pub fn edition(tx: &mut Tx) -> Result<i64> {
    tx.one(EDITION, &[])
}

/// Begins the edition after this one.
pub fn next_edition(tx: &mut Tx, edition: i64) -> Result<()> {
    match tx.execute(NEXT_EDITION, params![edition])? {
        1 => Ok(()),
        _ => Err(Error::fault("prices of an edition that is not the next")),
    }
}

/// Writes rows, each in the place of what is there.
pub fn put(tx: &mut Tx, rows: &[Row]) -> Result<()> {
    if tx.is_postgres() {
        let rows: Vec<_> = rows.iter().map(Put::params).collect();
        return tx.for_each::<i64>(PUT_ALL, &rows).map(drop);
    }
    rows.iter().try_for_each(|row| tx.execute(PUT, &Put::params(row)).map(drop))
}

/// Every row, by list and code.
pub fn rows(tx: &mut Tx) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    loop {
        let last = rows.last().map(|row| (row.list.clone(), row.code.clone())).unwrap_or_default();
        let part: Vec<Row> = tx.all(ROWS, params![&last.0, &last.1])?;
        if part.is_empty() {
            return Ok(rows);
        }
        rows.extend(part);
    }
}

/// The plans that suppliers have, whether they are on sale and have a price or not, by code: those of a supplier that is not
/// enabled yet have their prices before it is.
pub fn plans(tx: &mut Tx) -> Result<Vec<Subject>> {
    tx.all(PLANS, &[])
}

/// Whether there is or was a plan with this code.
pub fn plan_exists(tx: &mut Tx, code: &str) -> Result<bool> {
    tx.any(PLAN_EXISTS, params![code])
}

/// Takes the turn to write the next edition. False while somebody else has it.
pub fn take_turn(tx: &mut Tx, holder: &str, now: Time, until: Time) -> Result<bool> {
    Ok(tx.execute(TAKE_TURN, params![holder, until, now])? == 1)
}

/// Keeps the turn for longer; false when somebody else has it. Nobody takes it before this write ends.
pub fn keep_turn(tx: &mut Tx, holder: &str, until: Time) -> Result<bool> {
    Ok(tx.execute(KEEP_TURN, params![holder, until])? == 1)
}

/// Gives the turn back, with the work done.
pub fn end_turn(tx: &mut Tx, holder: &str) -> Result<()> {
    tx.execute(END_TURN, params![holder]).map(drop)
}

/// Whether this holder was the last to end its turn.
pub fn ended_by(tx: &mut Tx, holder: &str) -> Result<bool> {
    tx.any(ENDED_BY, params![holder])
}
