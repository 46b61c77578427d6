//! JSON for the eye. Lines are broken and indented; every name, number and text stands as it was sent.

/// `json` is well formed.
pub fn indented(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut is_escaped) = (0, false, false);
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        if in_text {
            text.push(c);
            in_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                in_text = true;
                text.push(c);
            }
            '{' | '[' => {
                text.push(c);
                if !matches!(chars.peek(), Some('}' | ']')) {
                    depth += 1;
                    begin_line(&mut text, depth);
                }
            }
            '}' | ']' => {
                if !text.ends_with(['{', '[']) {
                    depth = depth.saturating_sub(1);
                    begin_line(&mut text, depth);
                }
                text.push(c);
            }
            ',' => {
                text.push(c);
                begin_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => text.push(c),
        }
    }
    text
}

fn begin_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_space_between_values_is_added() {
        let json = r#"{"a":[1.490000,{"b":"x\",{[: \\"}],"c":{},"d":[],"e":null}"#;
        let expected = "{\n  \"a\": [\n    1.490000,\n    {\n      \"b\": \"x\\\",{[: \\\\\"\n    }\n  ],\n  \"c\": {},\n  \
                        \"d\": [],\n  \"e\": null\n}";
        assert_eq!(indented(json), expected);
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&indented(json)), read(json));
    }
}
