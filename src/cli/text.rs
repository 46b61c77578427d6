//! Records as people read them: aligned lines, then tables; and tables as CSV for spreadsheets.
//! Control characters in stored text never reach a terminal.

use super::output::{Cell, Record, Table};
use crate::ops::dates::iso;

/// A long list of words is cut to this many, and the rest counted.
const WORDS_SHOWN: usize = 4;

pub fn render(record: &Record) -> String {
    if let Some(prose) = &record.prose {
        return prose.clone();
    }
    let mut lines = Vec::new();
    flatten("", record, &mut lines);
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, value) in &lines {
        out.push_str(&format!("{name:width$}  {value}\n"));
    }
    let tables = record.fields.iter().filter_map(|(name, value)| match value {
        Cell::Table(table) => Some((name, table)),
        _ => None,
    });
    let all_empty = tables.clone().all(|(_, table)| table.rows.is_empty());
    for (name, table) in tables.filter(|(_, table)| all_empty || !table.rows.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        if table.rows.is_empty() {
            out.push_str(&format!("no {}\n", words(name)));
            continue;
        }
        if record.fields.len() > 1 {
            out.push_str(&format!("{}:\n", words(name)));
        }
        out.push_str(&grid(table));
    }
    if let Some(remark) = &record.remark {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("{remark}\n"));
    }
    out
}

/// Lists every field that is not a table; a field of an inner record as `outer.inner`. Unset fields are left out.
fn flatten(prefix: &str, record: &Record, into: &mut Vec<(String, String)>) {
    for (name, value) in &record.fields {
        match value {
            Cell::Nothing | Cell::Table(_) => {}
            Cell::Record(inner) => flatten(&format!("{prefix}{name}."), inner, into),
            other => into.push((format!("{prefix}{name}"), shown(other))),
        }
    }
}

fn grid(table: &Table) -> String {
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let mut out = String::new();
    let columns: Vec<(usize, bool)> = (0..table.columns.len())
        .map(|at| {
            let widest = rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
            let number = table.rows.iter().any(|row| matches!(row[at], Cell::Usd(_) | Cell::Count(_)));
            (widest.max(table.columns[at].len()), number)
        })
        .collect();
    let mut push = |texts: &mut dyn Iterator<Item = &str>| {
        let aligned = texts.zip(&columns).map(|(text, &(width, number))| {
            if number { format!("{text:>width$}") } else { format!("{text:width$}") }
        });
        let line: Vec<String> = aligned.collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    };
    push(&mut table.columns.iter().copied());
    for row in &rows {
        push(&mut row.iter().map(String::as_str));
    }
    out
}

fn shown(value: &Cell) -> String {
    match value {
        Cell::Flag(true) => "yes".into(),
        Cell::Flag(false) => "no".into(),
        Cell::Nothing => "-".into(),
        Cell::Words(words) if words.len() > WORDS_SHOWN => {
            format!("{} +{}", words[..WORDS_SHOWN].join(","), words.len() - WORDS_SHOWN)
        }
        other => plain(other).chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
    }
}

fn plain(value: &Cell) -> String {
    match value {
        Cell::Nothing | Cell::Record(_) | Cell::Table(_) => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Usd(amount) => amount.to_string(),
        Cell::Count(count) => count.to_string(),
        Cell::Flag(flag) => flag.to_string(),
        Cell::At(time) => iso(*time),
        Cell::Words(words) => words.join(","),
    }
}

/// The record's table as CSV (RFC 4180, with plain line ends); fields outside the table are left out.
pub fn csv(record: &Record) -> String {
    let mut out = String::new();
    for (_, value) in &record.fields {
        if let Cell::Table(table) = value {
            out.push_str(&format!("{}\n", table.columns.join(",")));
            for row in &table.rows {
                let line: Vec<String> = row.iter().map(|value| quoted(&plain(value))).collect();
                out.push_str(&format!("{}\n", line.join(",")));
            }
        }
    }
    out
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

/// `topUps` as `top ups`.
fn words(name: &str) -> String {
    let split = |c: char| {
        if c.is_uppercase() { format!(" {}", c.to_lowercase()) } else { c.to_string() }
    };
    name.chars().map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::cell;
    use crate::domain::money::Usd;

    #[test]
    fn numbers_stand_to_the_right_and_control_characters_are_gone() {
        let rows = [
            [cell("a\u{1b}b"), cell(Usd::dollars(5))],
            [cell("c, \"d\""), cell(Usd::from_micros(12_340_000))],
        ];
        let record = Record::new()
            .with("total", Usd::dollars(7))
            .with("lines", Table::new(["name", "amountUsd"], rows));
        assert_eq!(
            render(&record),
            "total  7\n\nlines:\nname    amountUsd\na b             5\nc, \"d\"      12.34\n"
        );
        assert_eq!(csv(&record), "name,amountUsd\na\u{1b}b,5\n\"c, \"\"d\"\"\",12.34\n");
    }
}
