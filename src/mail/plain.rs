//! Plain text: the words of others made harmless, and lines as long as people read them.

use crate::domain::text::visible;

/// What every reader of mail shows without breaking it.
const WIDTH: usize = 78;
/// More than any name has that was taken in.
const NAME_CHARS: usize = 300;
const INDENT: &str = "  ";

/// A text of somebody else's, on one line: it can neither begin a line of its own nor turn its surroundings around.
pub fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "), NAME_CHARS)
}

/// Breaks long lines between words, with the indent that they began with. Addresses are never broken.
pub fn wrapped(text: &str) -> String {
    text.trim_end().lines().map(broken).collect::<Vec<_>>().join("\n")
}

/// Names and amounts under each other. A name that is too long for its column has a line of its own.
pub fn columns(rows: &[(String, String)]) -> String {
    let length = |text: &str| text.chars().count();
    let right = rows.iter().map(|(_, amount)| length(amount)).max().unwrap_or_default();
    let most = WIDTH.saturating_sub(INDENT.len() + 2 + right);
    let left =
        rows.iter().map(|(name, _)| length(name)).filter(|length| *length <= most).max().unwrap_or_default();
    let lines = rows.iter().map(|(name, amount)| match length(name) > most {
        true => format!("{INDENT}{name}\n{INDENT}{:left$}  {amount:>right$}", ""),
        false => format!("{INDENT}{name:left$}  {amount:>right$}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn broken(line: &str) -> String {
    if line.chars().count() <= WIDTH {
        return line.trim_end().to_string();
    }
    let indent = &line[..line.len() - line.trim_start().len()];
    let mut lines = vec![String::from(indent)];
    for word in line.split_whitespace() {
        let last = lines.last_mut().expect("one line was there from the beginning");
        let is_begun = last.len() > indent.len();
        if is_begun && last.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            if is_begun {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_only() {
        let url = format!("https://shop.example/esim/{}", "x".repeat(90));
        let text = format!(
            "{}\n\n  short\n  {}\nInstall it here: {url} now\n\n",
            "word ".repeat(30),
            "deep ".repeat(20)
        );
        let wrapped = wrapped(&text);
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH || line == url), "{wrapped}");
        assert_eq!(
            wrapped.split_whitespace().collect::<Vec<_>>(),
            text.split_whitespace().collect::<Vec<_>>()
        );
        assert!(
            wrapped.contains("\n\n  short\n  deep") && wrapped.contains("\n  deep deep deep"),
            "{wrapped}"
        );
    }

    #[test]
    fn amounts_stand_under_each_other() {
        let row = |name: &str, amount: &str| (name.to_string(), amount.to_string());
        let rows = [row("Japan", "1.49 USD"), row("Coupon", "−0.22 USD")];
        assert_eq!(columns(&rows), "  Japan    1.49 USD\n  Coupon  −0.22 USD");
        let long = columns(&[row(&"x".repeat(90), "1.49 USD"), row("Paid", "1.49 USD")]);
        let ends: Vec<usize> = long.lines().skip(1).map(str::len).collect();
        assert_eq!(ends, [16, 16], "{long}");
    }

    #[test]
    fn nobody_begins_a_line_with_a_name() {
        for hostile in
            ["Acme\r\nSubject: x", "Acme\u{2028}Subject: x", "Acme\u{b}Subject: x", "Acme\u{85}Subject: x"]
        {
            assert_eq!(one_line(hostile).split_whitespace().collect::<Vec<_>>(), ["Acme", "Subject:", "x"]);
            assert_eq!(one_line(hostile).lines().count(), 1);
        }
        assert_eq!(one_line("\u{202e}emcA"), "emcA");
    }
}
