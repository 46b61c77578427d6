//! Every state machine changes its rows in one place: the `advance` of its file in `store/`.

use super::{lines, none, sources};

/// The tables whose rows have a state, and the column that holds it.
const STATES: [(&str, &str); 6] = [
    ("orders", "status"),
    ("transfers", "state"),
    ("checkouts", "status"),
    ("authorizations", "state"),
    ("invoices", "status"),
    ("coupon_uses", "state"),
];

/// `advance`, and what only it calls.
const PLACES: [&str; 3] = ["advance", "advance_one", "deliver_all"];

/// The statements of a file: their names and their texts.
fn statements(code: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (_, line) in lines(code) {
        let name = line.strip_prefix("    ").unwrap_or_default().split(' ').next().unwrap_or_default();
        let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
        if !name.is_empty() && name.chars().all(is_name) && line.contains(" = ") {
            found.push((name.to_string(), String::new()));
        }
        if let Some((_, text)) = found.last_mut() {
            text.push_str(line);
            text.push(' ');
        }
    }
    found
}

fn sets(text: &str, table: &str, column: &str) -> bool {
    text.split(&format!("UPDATE {table} SET ")).skip(1).any(|rest| {
        let end = [" WHERE ", " FROM "].iter().filter_map(|word| rest.find(word)).min().unwrap_or(rest.len());
        rest[..end].split(", ").any(|set| set.trim().starts_with(&format!("{column} = ")))
    })
}

/// The functions that run a statement, each with its line.
fn users(code: &str, statement: &str) -> Vec<(usize, String)> {
    let (mut function, mut found) = (String::new(), Vec::new());
    for (number, line) in lines(code) {
        let head = line.trim_start_matches("pub ").strip_prefix("fn ");
        if let Some(name) = head.and_then(|rest| rest.split(['(', '<']).next()) {
            function = name.to_string();
        }
        if line.contains(&format!("({statement},")) {
            found.push((number, function.clone()));
        }
    }
    found
}

#[test]
fn a_state_changes_in_one_place() {
    let mut offences = Vec::new();
    let mut seen = Vec::new();
    for source in sources().iter().filter(|source| source.name.starts_with("store/")) {
        for (name, text) in statements(&source.code) {
            for (table, _) in STATES.iter().filter(|(table, column)| sets(&text, table, column)) {
                let users = users(&source.code, &name);
                assert!(!users.is_empty(), "nobody was found who runs {name} of src/{}", source.name);
                seen.push(*table);
                let elsewhere = users.iter().filter(|(_, function)| !PLACES.contains(&function.as_str()));
                offences.extend(
                    elsewhere.map(|(n, function)| format!("src/{}:{n} {function} runs {name}", source.name)),
                );
            }
        }
    }
    none("a state changes outside advance", offences);
    for (table, _) in STATES {
        assert!(seen.contains(&table), "no statement was found that changes the state of {table}");
    }
}
