//! Who uses whom inside `http/`: each door has a room of its own, all doors use the kit, and nobody uses another door. No
//! two files use each other, directly or by way of others.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, none, sources};

/// What every room may use besides itself.
const KIT: &str = "kit";
const ROOMS: [&str; 9] = ["agentic", "consumer", "docs", "hooks", KIT, "mcp", "pages", "partner", "sandbox"];

/// `http/kit/fields.rs` is `http::kit::fields`, and so is `http/kit/fields/mod.rs`.
fn module(file: &str) -> String {
    file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::")
}

/// Every path that a file names, from the root of the crate. Only paths from `crate`, `super` and `self` are followed: the
/// house rules know no other way to another file.
fn named(source: &Source) -> BTreeSet<String> {
    let module = module(&source.name);
    let mut paths = BTreeSet::new();
    let plain: String = super::lines(&source.code).map(|(_, line)| format!("{}\n", line)).collect();
    let starts = ["crate::", "super::", "self::"];
    for start in starts {
        for (at, _) in plain.match_indices(start) {
            let follows_a_word =
                plain[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$');
            if !follows_a_word {
                expand("", &plain[at..], &mut |path| {
                    paths.extend(absolute(&module, &path));
                });
            }
        }
    }
    paths
}

/// All paths of a tree like `a::{b, c::{d, e}}`, which may have more behind it.
fn expand<'a>(before: &str, text: &'a str, found: &mut dyn FnMut(String)) -> &'a str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(text.len());
    let (path, rest) = (format!("{before}{}", &text[..end]), &text[end..]);
    let Some(mut inside) = rest.strip_prefix('{').filter(|_| path.ends_with("::")) else {
        found(path);
        return rest;
    };
    loop {
        inside = inside.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(rest) = inside.strip_prefix('}') {
            return rest;
        }
        let left = expand(&path, inside, found);
        // `a as b` and whatever else cannot be a path.
        let next = left.find([',', '}']).unwrap_or(left.len());
        if next == left.len() {
            return "";
        }
        inside = &left[next..];
    }
}

fn absolute(module: &str, path: &str) -> Option<String> {
    let mut here: Vec<&str> = module.split("::").collect();
    let mut parts = path.split("::").filter(|part| !part.is_empty()).peekable();
    if parts.next_if_eq(&"crate").is_some() {
        here.clear();
    }
    parts.next_if_eq(&"self");
    while parts.next_if_eq(&"super").is_some() {
        here.pop()?;
    }
    here.extend(parts.filter(|part| *part != "self"));
    Some(here.join("::"))
}

/// Files of `http/` by module, and the modules that each one uses.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let all = sources();
    let of_http: Vec<&Source> = all.iter().filter(|source| source.name.starts_with("http/")).collect();
    let modules: BTreeSet<String> = of_http.iter().map(|source| module(&source.name)).collect();
    let file_of = |path: &str| {
        let mut path = path;
        loop {
            if modules.contains(path) {
                return Some(path.to_string());
            }
            path = path.rsplit_once("::")?.0;
        }
    };
    let used_by = |source: &Source| {
        let own = module(&source.name);
        let used = named(source).iter().filter_map(|path| file_of(path)).collect::<BTreeSet<_>>();
        (own.clone(), used.into_iter().filter(|used| *used != own).collect())
    };
    of_http.into_iter().map(used_by).collect()
}

fn room(module: &str) -> Option<&str> {
    module.strip_prefix("http::").map(|rest| rest.split("::").next().unwrap())
}

#[test]
fn doors_use_the_kit_and_never_each_other() {
    let mut wrong = Vec::new();
    for (module, used) in arrows() {
        // The list of routes is above all of them.
        let Some(mine) = room(&module) else { continue };
        assert!(ROOMS.contains(&mine), "{module} is in no room that is known");
        for other in used {
            match room(&other) {
                Some(theirs) if theirs == mine || theirs == KIT => {}
                _ => wrong.push(format!("{module} uses {other}")),
            }
        }
    }
    none("a door reaches where it must not", wrong);
}

#[test]
fn no_two_files_of_a_door_use_each_other() {
    let mut left = arrows();
    // A file may name those that are under it: that is a list, not a use.
    for (module, used) in &mut left {
        used.retain(|other| !other.starts_with(&format!("{module}::")));
    }
    // Whoever uses nobody that is left is in no circle.
    loop {
        let done: BTreeSet<String> =
            left.iter().filter(|(_, used)| used.is_empty()).map(|(module, _)| module.clone()).collect();
        if done.is_empty() {
            break;
        }
        left.retain(|module, _| !done.contains(module));
        left.values_mut().for_each(|used| used.retain(|other| !done.contains(other)));
    }
    let circles = left.iter().map(|(module, used)| format!("{module} -> {used:?}")).collect();
    none("files use each other in a circle, or use one that is in it", circles);
}

#[test]
fn trees_of_imports_are_read() {
    let mut found = Vec::new();
    let text = "super::{a::{b, c as d}, e::{self, f}, g};\nuse crate::h;";
    expand("", text, &mut |path| found.push(path));
    assert_eq!(found, ["super::a::b", "super::a::c", "super::e::self", "super::e::f", "super::g"]);
    assert_eq!(absolute("http::kit::auth", "super::limits::Limits").unwrap(), "http::kit::limits::Limits");
    assert_eq!(absolute("http::kit", "self::state::State").unwrap(), "http::kit::state::State");
}
