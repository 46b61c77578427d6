//! What a command prints. Every command returns a `Record`: people see lines and tables (`text.rs`), programs one
//! JSON document. Names are the same everywhere. Money is written digit by digit from `Usd`, never as a float.

use clap::Args;
use serde::Serialize;
use serde::ser::{Error as _, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::wire::dates::iso;

/// How a list is printed. It is read before the command runs, where the answer is written.
#[derive(Args)]
pub struct Form {
    /// Print the list as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

impl Form {
    pub fn is_csv(&self) -> bool {
        self.csv
    }

    /// How many lines are listed: as many as asked for; else all for a file, and the usual number for a reader.
    pub fn limit(&self, asked: Option<i64>, usual: i64) -> i64 {
        asked.unwrap_or(if self.csv { i64::MAX - 1 } else { usual })
    }
}

/// Cuts a list that was asked for with one line more than is shown. Answers whether there is more.
pub fn cut<T>(found: &mut Vec<T>, limit: i64) -> bool {
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = found.len() > shown;
    found.truncate(shown);
    more
}

pub enum Cell {
    Nothing,
    Text(String),
    Usd(Usd),
    Count(i64),
    Flag(bool),
    At(Time),
    Words(Vec<String>),
    Record(Record),
    Table(Table),
}

#[derive(Default)]
pub struct Record {
    pub fields: Vec<(&'static str, Cell)>,
    /// A sentence for people, after all fields.
    pub remark: Option<String>,
    /// What people see instead of the fields, where lines and tables do not serve.
    pub prose: Option<String>,
}

impl Record {
    pub fn new() -> Record {
        Record::default()
    }

    pub fn with(mut self, name: &'static str, value: impl Into<Cell>) -> Record {
        self.fields.push((name, value.into()));
        self
    }

    /// Says whether a list goes on.
    pub fn going_on(self, more: bool) -> Record {
        let record = self.with("more", more);
        match more {
            true => record.remark("There are more: raise --limit, or print all with --csv."),
            false => record,
        }
    }

    pub fn remark(mut self, sentence: impl Into<String>) -> Record {
        self.remark = Some(sentence.into());
        self
    }

    pub fn prose(mut self, text: impl Into<String>) -> Record {
        self.prose = Some(text.into());
        self
    }
}

pub struct Table {
    pub columns: Vec<&'static str>,
    /// The columns as people read them.
    pub heads: Vec<&'static str>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new<const N: usize>(
        columns: [&'static str; N],
        rows: impl IntoIterator<Item = [Cell; N]>,
    ) -> Table {
        let rows = rows.into_iter().map(Vec::from).collect();
        Table { columns: columns.into(), heads: columns.into(), rows }
    }

    /// With other names for people than for programs.
    pub fn headed<const N: usize>(self, heads: [&'static str; N]) -> Table {
        Table { heads: heads.into(), ..self }
    }

    /// Of the only row.
    pub fn into_record(self) -> Record {
        let fields = self.columns.into_iter().zip(self.rows.into_iter().flatten());
        Record { fields: fields.collect(), ..Record::new() }
    }
}

/// A table of an iterator's items, with the name of each column beside its value; `as` what people call it.
macro_rules! table {
    (@head $column:literal) => { $column };
    (@head $column:literal $head:literal) => { $head };
    ($rows:expr, |$row:pat_param| {
        $(let $part:pat_param = $of:expr;)*
        $($column:literal $(as $head:literal)? => $value:expr,)+
    }) => {
        $crate::cli::output::Table::new(
            [$($column),+],
            $rows.map(|$row| {
                $(let $part = $of;)*
                [$($crate::cli::output::cell($value)),+]
            }),
        )
        .headed([$($crate::cli::output::table!(@head $column $($head)?)),+])
    };
}

pub(super) use table;

/// A command's answer, and whether what it checked was right (if not, the exit code is 1).
pub struct Report {
    pub record: Record,
    pub passed: bool,
}

impl From<Record> for Report {
    fn from(record: Record) -> Report {
        Report { record, passed: true }
    }
}

/// Makes a cell of anything that has one obvious form.
pub fn cell(value: impl Into<Cell>) -> Cell {
    value.into()
}

macro_rules! cells {
    ($($from:ty => |$value:ident| $cell:expr;)*) => {$(
        impl From<$from> for Cell {
            fn from($value: $from) -> Cell {
                $cell
            }
        }
    )*};
}

cells! {
    &str => |value| Cell::Text(value.into());
    String => |value| Cell::Text(value);
    Usd => |value| Cell::Usd(value);
    i64 => |value| Cell::Count(value);
    bool => |value| Cell::Flag(value);
    Time => |value| Cell::At(value);
    Vec<String> => |value| Cell::Words(value);
    Record => |value| Cell::Record(value);
    Table => |value| Cell::Table(value);
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Nothing, Into::into)
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Nothing => to.serialize_none(),
            Cell::Text(text) => to.serialize_str(text),
            Cell::Usd(amount) => {
                RawValue::from_string(amount.to_string()).map_err(S::Error::custom)?.serialize(to)
            }
            Cell::Count(count) => to.serialize_i64(*count),
            Cell::Flag(flag) => to.serialize_bool(*flag),
            Cell::At(time) => to.serialize_str(&iso(*time)),
            Cell::Words(words) => words.serialize(to),
            Cell::Record(record) => record.serialize(to),
            Cell::Table(table) => to.collect_seq(table.rows.iter().map(|row| Line(&table.columns, row))),
        }
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.fields.iter().map(|(name, value)| (name, value)))
    }
}

/// A row of a table as an object.
struct Line<'a>(&'a [&'static str], &'a [Cell]);

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.0.iter().zip(self.1) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_shows_money_as_plain_numbers_and_time_with_milliseconds() {
        let rows = [
            [cell("a"), cell(Usd::from_micros(19_999_123))],
            [cell("b"), cell(Usd::from_micros(-4_490_000))],
        ];
        let record = Record::new()
            .with("at", Time::from_micros(1_700_000_000_123_456))
            .with("email", None::<String>)
            .with("lines", Table::new(["name", "amountUsd"], rows))
            .remark("not for programs");
        assert_eq!(
            serde_json::to_string(&record).unwrap(),
            r#"{"at":"2023-11-14T22:13:20.123Z","email":null,"lines":[{"name":"a","amountUsd":19.999123},{"name":"b","amountUsd":-4.49}]}"#
        );
    }
}
