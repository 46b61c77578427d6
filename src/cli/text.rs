//! Records as people read them: aligned lines, then tables; and tables as CSV for spreadsheets. A table fits the
//! terminal that it is shown on; what goes to a file or a program is never cut or wrapped.
//! Control characters in stored text never reach a terminal.

use std::io::IsTerminal;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

use super::output::{Cell, Record, Table};
use crate::wire::csv;
use crate::wire::dates::iso;

/// On a terminal a long list of words is cut to this many, and the rest counted.
const WORDS_SHOWN: usize = 4;
/// Between two columns.
const GAP: usize = 2;

/// The width of the terminal that stdout is; `None` when it is a file or a pipe.
pub fn terminal_width() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// The record as text, within `width` when there is one.
pub fn render(record: &Record, width: Option<usize>) -> String {
    if let Some(prose) = &record.prose {
        return prose.clone();
    }
    let mut lines = Vec::new();
    flatten("", record, width, &mut lines);
    let longest = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, value) in &lines {
        out.push_str(&format!("{name:longest$}  {value}\n"));
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
        out.push_str(&grid(table, width));
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
fn flatten(prefix: &str, record: &Record, width: Option<usize>, into: &mut Vec<(String, String)>) {
    for (name, value) in &record.fields {
        match value {
            Cell::Nothing | Cell::Table(_) => {}
            Cell::Record(inner) => flatten(&format!("{prefix}{name}."), inner, width, into),
            other => into.push((format!("{prefix}{name}"), shown(other, width))),
        }
    }
}

fn grid(table: &Table, width: Option<usize>) -> String {
    let shown = |row: &Vec<Cell>| row.iter().map(|cell| shown(cell, width)).collect();
    let rows: Vec<Vec<String>> = table.rows.iter().map(shown).collect();
    let mut drawn = drawn(table, &rows);
    let widths: Vec<usize> = drawn.column_max_content_widths().into_iter().map(usize::from).collect();
    let gaps = GAP * (widths.len() - 1);
    if let Some(width) = width.filter(|width| widths.iter().sum::<usize>() + gaps > *width) {
        // A name is never broken, and neither is what names the row where there is room for it.
        let mut least: Vec<usize> = table.heads.iter().map(|name| name.len()).collect();
        least[0] = if widths[0] <= width / 3 { widths[0] } else { least[0] };
        if least.iter().sum::<usize>() + gaps > width {
            return blocks(table, &rows);
        }
        wrap(&mut drawn, width, &least);
    }
    drawn.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

fn drawn(table: &Table, rows: &[Vec<String>]) -> comfy_table::Table {
    let mut drawn = comfy_table::Table::new();
    drawn.load_style(comfy_table::presets::NOTHING).set_header(&table.heads).add_rows(rows);
    let last = table.columns.len() - 1;
    for (at, column) in drawn.column_iter_mut().enumerate() {
        column.set_padding((0, if at == last { 0 } else { GAP as u16 }));
        if table.rows.iter().any(|row| matches!(row[at], Cell::Usd(_) | Cell::Count(_))) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    drawn
}

/// Wraps what is too long for the width, with at least this much room for each column.
fn wrap(drawn: &mut comfy_table::Table, width: usize, least: &[usize]) {
    let fixed = |width: usize| u16::try_from(width).unwrap_or(u16::MAX);
    drawn.set_content_arrangement(ContentArrangement::Dynamic).set_width(fixed(width));
    for (column, least) in drawn.column_iter_mut().zip(least) {
        let room = fixed(*least) + column.padding_width();
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(room)));
    }
}

/// Each row as lines of names and values, for a terminal that is too narrow for the table.
fn blocks(table: &Table, rows: &[Vec<String>]) -> String {
    let longest = table.heads.iter().map(|name| name.len()).max().unwrap_or(0);
    let block = |row: &Vec<String>| -> String {
        let lines = table.heads.iter().zip(row).filter(|(_, value)| *value != "-");
        lines.map(|(name, value)| format!("{name:longest$}  {value}\n")).collect()
    };
    rows.iter().map(block).collect::<Vec<String>>().join("\n")
}

fn shown(value: &Cell, width: Option<usize>) -> String {
    match value {
        Cell::Flag(true) => "yes".into(),
        Cell::Flag(false) => "no".into(),
        Cell::Nothing => "-".into(),
        Cell::Words(words) if width.is_some() && words.len() > WORDS_SHOWN => {
            format!("{} +{}", words[..WORDS_SHOWN].join(","), words.len() - WORDS_SHOWN)
        }
        other => plain(other).chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
    }
}

fn plain(value: &Cell) -> String {
    match value {
        Cell::Nothing | Cell::Record(_) => String::new(),
        Cell::Table(table) => {
            let line = |row: &Vec<Cell>| row.iter().map(plain).collect::<Vec<String>>().join(" ");
            table.rows.iter().map(line).collect::<Vec<String>>().join("; ")
        }
        Cell::Text(text) => text.clone(),
        Cell::Usd(amount) => amount.to_string(),
        Cell::Count(count) => count.to_string(),
        Cell::Flag(flag) => flag.to_string(),
        Cell::At(time) => iso(*time),
        Cell::Words(words) => words.join(","),
    }
}

/// The record's table as CSV; fields outside the table are left out.
pub fn csv(record: &Record) -> String {
    let mut out = String::new();
    for (_, value) in &record.fields {
        if let Cell::Table(table) = value {
            out.push_str(&csv::line(table.columns.iter().map(|name| csv::figure(name))));
            for row in &table.rows {
                out.push_str(&csv::line(row.iter().map(csv_cell)));
            }
        }
    }
    out
}

fn csv_cell(value: &Cell) -> String {
    match value {
        Cell::Text(_) | Cell::Words(_) => csv::text(&plain(value)),
        other => csv::figure(&plain(other)),
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
            render(&record, None),
            "total  7\n\nlines:\nname    amountUsd\na b             5\nc, \"d\"      12.34\n"
        );
        assert_eq!(csv(&record), "name,amountUsd\na\u{1b}b,5\n\"c, \"\"d\"\"\",12.34\n");
    }

    #[test]
    fn a_table_fits_the_terminal_and_is_whole_in_a_pipe() {
        let words: Vec<String> = (0..9).map(|n| format!("C{n}")).collect();
        let row =
            || [cell("ord_0123456789"), cell("many words that need a lot of room"), cell(words.clone())];
        let record =
            Record::new().with("lines", Table::new(["orderId", "note", "countries"], [row(), row()]));
        for width in [20, 24, 32, 40, 60, 200] {
            let text = render(&record, Some(width));
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
            // In blocks a long value is left to the terminal.
            assert!(longest <= width || width < 24, "{width}: {text}");
            assert!(text.contains("countries") && (width < 42 || text.contains("ord_0123456789")), "{text}");
        }
        let piped = render(&record, None);
        assert!(
            piped.contains("many words that need a lot of room  C0,C1,C2,C3,C4,C5,C6,C7,C8\n"),
            "{piped}"
        );
        assert_eq!(piped.lines().count(), 3);
        assert!(render(&record, Some(200)).contains("C0,C1,C2,C3 +5"));
    }

    #[test]
    fn text_that_looks_like_a_formula_stays_text_in_a_spreadsheet() {
        let rows = [[cell("=HYPERLINK(1)"), cell(Usd::dollars(-5))], [cell("a-b"), cell(Usd::ZERO)]];
        let record = Record::new().with("lines", Table::new(["note", "amountUsd"], rows));
        assert_eq!(csv(&record), "note,amountUsd\n'=HYPERLINK(1),-5\na-b,0\n");
    }
}
