//! What the documents say about files is true of them: each file that they name exists, and has the item behind `::`.

use std::path::{Path, PathBuf};

use super::{LAYERS, collect, none};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file, by its path from the root.
fn files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["src", "tests/it", "bench", "examples"] {
        collect(&root().join(folder), &mut found);
    }
    let read = |path: PathBuf| {
        (path.strip_prefix(root()).unwrap().display().to_string(), std::fs::read_to_string(&path).unwrap())
    };
    found.into_iter().map(read).collect()
}

/// What stands between backticks, outside blocks of code.
fn quoted(text: &str) -> Vec<(usize, String)> {
    let mut in_block = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            found.extend(line.split('`').skip(1).step_by(2).map(|quote| (number, quote.to_string())));
        }
    }
    found
}

fn declares(text: &str, item: &str) -> bool {
    ["fn ", "struct ", "enum ", "trait ", "const ", "static ", "type ", "macro_rules! "].iter().any(|kind| {
        let declared = format!("{kind}{item}");
        text.match_indices(&declared).any(|(at, _)| {
            !text[at + declared.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    })
}

#[test]
fn files_and_functions_that_documents_name_exist() {
    let files = files();
    let mut documents = vec![root().join("ARCHITECTURE.md"), root().join("CONTRIBUTING.md")];
    documents.extend(std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let mut wrong = Vec::new();
    for document in documents.iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let name = document.file_name().unwrap().display();
        for (line, quote) in quoted(&std::fs::read_to_string(document).unwrap()) {
            let (path, item) = match quote.split_once(".rs") {
                Some((path, rest)) if !path.contains('*') && !path.contains(' ') => {
                    (format!("{path}.rs"), rest)
                }
                _ => continue,
            };
            let named: Vec<_> = files
                .iter()
                .filter(|(file, _)| *file == path || file.ends_with(&format!("/{path}")))
                .collect();
            // A method is named with its type: the last word is what is declared.
            let item = item.strip_prefix("::").map(|item| item.rsplit("::").next().unwrap());
            if named.is_empty() {
                wrong.push(format!("{name}:{line} {path} does not exist"));
            } else if let Some(item) = item
                && !named.iter().any(|(_, text)| declares(text, item))
            {
                wrong.push(format!("{name}:{line} {path} declares no {item}"));
            }
        }
    }
    none("a document names what is not there", wrong);
}

/// The table of ARCHITECTURE.md: a module, and what it may use.
#[test]
fn the_table_of_imports_is_the_rule() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("| module | may use |").unwrap();
    let mut rows = 0;
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let module = cells[1].trim_matches('`');
        // What only one file may use stands behind the semicolon, in words.
        let mut said: Vec<&str> = cells[2].split(';').next().unwrap().split('`').skip(1).step_by(2).collect();
        said.push(module);
        said.sort_unstable();
        let (_, rule) = LAYERS.iter().find(|(layer, _)| *layer == format!("{module}/")).unwrap();
        let mut rule = rule.to_vec();
        rule.extend((!rule.contains(&module)).then_some(module));
        rule.sort_unstable();
        assert_eq!(said, rule, "{row}");
        rows += 1;
    }
    assert!(rows >= 10, "{rows} rows");
}
