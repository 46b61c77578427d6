//! Reads CSV as spreadsheets write it: quoted cells, any line end, a mark at the beginning, an apostrophe before text
//! that looks like a formula.

/// A line that is not empty, with its number in the file.
pub struct Line {
    pub number: usize,
    pub cells: Vec<String>,
}

/// `Err` is the line whose quotes have no end.
pub fn read(text: &str) -> Result<Vec<Line>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader =
        Reader { lines: Vec::new(), cells: Vec::new(), cell: String::new(), number: 1, begun: 1 };
    let mut characters = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                reader.cell.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if reader.cell.trim().is_empty() => {
                reader.cell.clear();
                quoted = true;
            }
            ',' if !quoted => reader.end_cell(),
            '\r' if !quoted && characters.peek() == Some(&'\n') => {}
            '\n' | '\r' if !quoted => reader.end_line(),
            '\n' => {
                reader.number += 1;
                reader.cell.push('\n');
            }
            other => reader.cell.push(other),
        }
    }
    if quoted {
        return Err(reader.begun);
    }
    reader.end_line();
    Ok(reader.lines)
}

struct Reader {
    lines: Vec<Line>,
    cells: Vec<String>,
    cell: String,
    number: usize,
    /// Where the present line began.
    begun: usize,
}

impl Reader {
    fn end_cell(&mut self) {
        let text = self.cell.trim();
        let text = match text.strip_prefix('\'') {
            Some(rest) if rest.starts_with(['=', '+', '-', '@']) => rest,
            _ => text,
        };
        self.cells.push(text.to_string());
        self.cell.clear();
    }

    fn end_line(&mut self) {
        self.end_cell();
        let cells = std::mem::take(&mut self.cells);
        if cells.iter().any(|cell| !cell.is_empty()) {
            self.lines.push(Line { number: self.begun, cells });
        }
        self.number += 1;
        self.begun = self.number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<(usize, Vec<String>)> {
        read(text).unwrap().into_iter().map(|line| (line.number, line.cells)).collect()
    }

    #[test]
    fn spreadsheets_are_read() {
        let text = "\u{feff}a, b\r\n\"x, \"\"y\"\"\",1\r\n\r\n,\n\"two\nlines\",'-5\nlast,'x";
        let expected: Vec<(usize, Vec<&str>)> = vec![
            (1, vec!["a", "b"]),
            (2, vec!["x, \"y\"", "1"]),
            (5, vec!["two\nlines", "-5"]),
            (7, vec!["last", "'x"]),
        ];
        let read: Vec<(usize, Vec<String>)> = cells(text);
        let read: Vec<(usize, Vec<&str>)> = read
            .iter()
            .map(|(number, cells)| (*number, cells.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn quotes_without_an_end_are_named() {
        assert_eq!(read("a\n\"b\nc").err(), Some(2));
        assert!(read("").unwrap().is_empty());
    }
}
