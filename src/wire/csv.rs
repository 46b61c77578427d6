//! CSV as spreadsheets read it: RFC 4180, with plain line ends.

/// A cell of text. A spreadsheet takes text that begins like a formula for one, and strangers choose some of our texts: an
/// apostrophe keeps it text. Where commas are for decimals, a spreadsheet ends cells at semicolons.
pub fn text(text: &str) -> String {
    let safe: Vec<String> = text.split(';').map(disarmed).collect();
    quoted(&safe.join(";"))
}

fn disarmed(text: &str) -> String {
    let is_armed = text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r']);
    if is_armed { format!("'{text}") } else { text.into() }
}

/// A cell that we write ourselves: a number, a time, the name of a column.
pub fn figure(text: &str) -> String {
    quoted(text)
}

/// A line of cells, with its end.
pub fn line(cells: impl IntoIterator<Item = String>) -> String {
    let mut line = cells.into_iter().collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_a_formula_and_never_leaves_its_cell() {
        for (cell, written) in [
            ("plain", "plain"),
            ("a-b=c", "a-b=c"),
            ("", ""),
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@sum", "'@sum"),
            ("\tx", "'\tx"),
            ("＝1+1", "'＝1+1"),
            ("a;b", "a;b"),
            ("a;=1+1;b", "a;'=1+1;b"),
            ("\rx", "\"'\rx\""),
            ("a, \"b\"", "\"a, \"\"b\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=\"x\",1", "\"'=\"\"x\"\",1\""),
        ] {
            assert_eq!(text(cell), written, "{cell:?}");
        }
        assert_eq!(line([figure("-4.49"), text("-4.49"), figure("")]), "-4.49,'-4.49,\n");
    }
}
