//! `/sandbox/parts` shows every part that there is, with the markup that makes it. Nothing in it depends on the database, so
//! SQLite is enough. A live gateway has no such page; see `suppliers/live.rs`.

use std::fs;

use crate::support::browser::open;
use crate::support::harness::{Db, run};

/// The names between a start and an end, such as those of all macros in a template.
fn named(text: &str, start: &str, end: char) -> Vec<String> {
    text.split(start).skip(1).filter_map(|rest| Some(rest.split_once(end)?.0.to_string())).collect()
}

#[test]
fn every_part_is_shown() {
    run(Db::Sqlite, vec![], async |gateway| {
        let page = open(gateway, "/sandbox/parts").await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert_eq!(page.text.matches("<h1").count(), 1);
        assert!(page.header("content-security-policy").contains("script-src 'self'"));
        let parts = fs::read_to_string("templates/parts.html").unwrap();
        let macros = named(&parts, "{% macro ", '(');
        assert!(macros.len() > 10, "{macros:?}");
        for part in macros {
            assert!(page.text.contains(&format!("parts::{part}(")), "{part} is not shown");
        }
        for icon in named(&parts, "{% when \"", '"') {
            assert!(page.text.contains(&format!("</svg>{icon}</span>")), "{icon} is not shown");
        }
    });
}

/// What is written by hand in two places is a part.
#[test]
fn pages_are_composed_of_parts() {
    let files = ["templates", "templates/account", "templates/portal"]
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = files.map(|entry| entry.unwrap().path());
    let pages = files.filter(|path| path.extension().is_some_and(|kind| kind == "html"));
    for path in pages.filter(|path| !path.ends_with("parts.html")) {
        let text = fs::read_to_string(&path).unwrap();
        for own in [
            "class=\"icon\"",
            "class=\"notice",
            "class=\"field\"",
            "class=\"copied\"><code",
            "<progress",
            "class=\"qr\"",
            "class=\"state",
        ] {
            assert!(!text.contains(own), "{} writes {own} itself", path.display());
        }
    }
}
