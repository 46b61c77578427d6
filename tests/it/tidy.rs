//! The house rules, read off the source: who may import whom, where SQL and drivers live, and what no file holds.

mod documents;
mod rooms;
mod states;

use std::path::{Path, PathBuf};

struct Source {
    /// `store/orders.rs`
    name: String,
    /// All of it, and the part before its tests.
    text: String,
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    assert!(files.len() > 60);
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap().to_string();
        Source { name: path.strip_prefix(&root).unwrap().display().to_string(), text, code }
    };
    files.iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// Lines of code without comments, with their numbers.
fn lines(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines()
        .enumerate()
        .map(|(n, line)| (n + 1, line.split("//").next().unwrap()))
        .filter(|(_, line)| !line.trim().is_empty())
}

/// The modules of this crate that a file mentions.
fn imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in lines(code) {
        for (at, _) in line.match_indices("crate::") {
            let rest = &line[at + "crate::".len()..];
            match rest.strip_prefix('{') {
                Some(list) => {
                    let names =
                        list.split(['{', '}', ',']).map(|name| name.trim().split("::").next().unwrap());
                    found.extend(
                        names
                            .filter(|name| !name.is_empty() && *name != ";")
                            .map(|name| (number, name.to_string())),
                    );
                }
                None => {
                    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                    found.push((number, rest[..end].to_string()));
                }
            }
        }
    }
    found
}

/// Fails with all offences at once.
#[track_caller]
fn none(what: &str, offences: Vec<String>) {
    assert!(offences.is_empty(), "{what}:\n  {}", offences.join("\n  "));
}

fn each(check: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    sources().iter().flat_map(check).collect()
}

/// What each layer may use; `start.rs` is the assembly and `lib.rs` the list.
const LAYERS: &[(&str, &[&str])] = &[
    ("domain/", &["domain"]),
    ("error.rs", &["domain"]),
    ("clock.rs", &["domain"]),
    ("vault", &["domain", "error"]),
    ("telemetry.rs", &[]),
    ("knowledge.rs", &[]),
    ("config", &["chain", "config", "domain", "mail", "store", "supplier", "webhook", "x402"]),
    ("store/", &["domain", "error", "store", "telemetry"]),
    ("supplier/sim.rs", &["clock", "domain", "error", "store", "supplier", "vault"]),
    ("supplier/sim/", &["domain", "error", "store", "supplier", "vault"]),
    ("supplier/turns.rs", &["clock", "store", "supplier"]),
    ("supplier/esim_access", &["clock", "domain", "supplier", "vault"]),
    ("supplier/", &["domain", "error", "supplier"]),
    ("chain/sim", &["chain", "clock", "domain", "error", "store", "vault"]),
    ("chain/", &["chain", "clock", "domain"]),
    ("mail/", &["domain"]),
    ("webhook/", &[]),
    ("wire/", &["domain", "wire"]),
    ("x402/", &["chain", "domain", "x402"]),
    (
        "app.rs",
        &[
            "chain",
            "clock",
            "config",
            "domain",
            "error",
            "knowledge",
            "mail",
            "ops",
            "store",
            "supplier",
            "vault",
            "webhook",
            "x402",
        ],
    ),
    (
        "ops/",
        &[
            "app",
            "chain",
            "config",
            "domain",
            "error",
            "mail",
            "ops",
            "store",
            "supplier",
            "telemetry",
            "vault",
            "webhook",
            "wire",
            "x402",
        ],
    ),
    (
        "http/",
        &[
            "app",
            "config",
            "domain",
            "error",
            "http",
            "knowledge",
            "ops",
            "supplier",
            "telemetry",
            "vault",
            "wire",
            "x402",
        ],
    ),
    ("jobs/", &["app", "chain", "domain", "error", "jobs", "ops", "telemetry"]),
    ("cli/", &["app", "cli", "config", "domain", "error", "ops", "start", "telemetry", "wire"]),
    ("main.rs", &[]),
    ("lib.rs", &[]),
];

#[test]
fn layers_import_only_what_is_below_them() {
    none(
        "a layer reaches where it must not",
        each(|source| {
            if source.name == "start.rs" {
                return Vec::new();
            }
            let (_, allowed) = LAYERS
                .iter()
                .find(|(layer, _)| source.name.starts_with(layer))
                .unwrap_or_else(|| panic!("{} has no layer", source.name));
            let wrong = imports(&source.code).into_iter().filter(|(_, module)| {
                let is_module = sources_have(module);
                is_module && !allowed.contains(&module.as_str())
            });
            wrong.map(|(line, module)| format!("src/{}:{line} uses crate::{module}", source.name)).collect()
        }),
    );
}

/// The machinery of the store must not know what it stores.
#[test]
fn the_engine_imports_no_noun() {
    none(
        "the engine reaches for a noun",
        each(|source| {
            let Some(path) = source.name.strip_prefix("store/engine/") else { return Vec::new() };
            // As many steps up as this lead out of the folder.
            let out = if path == "mod.rs" { 1 } else { 2 + path.matches('/').count() };
            let wrong = lines(&source.code).filter(|(_, line)| {
                line.contains(&"super::".repeat(out))
                    || line.split("crate::store::").skip(1).any(|rest| !rest.starts_with("engine::"))
            });
            wrong.map(|(n, line)| format!("src/{}:{n} {}", source.name, line.trim())).collect()
        }),
    );
}

/// Columns have names: which place a column stands at is the engine's business.
#[test]
fn no_noun_reads_a_column_by_its_number() {
    none(
        "a column by its number",
        each(|source| {
            let is_noun = source.name.starts_with("store/") && !source.name.starts_with("store/engine/");
            let counts = |line: &str| {
                line.split("row.").skip(1).any(|rest| {
                    let argument = rest.split_once('(').map_or("", |(_, argument)| argument);
                    argument.starts_with(|c: char| c.is_ascii_digit())
                })
            };
            let wrong = lines(&source.code).filter(|(_, line)| is_noun && counts(line));
            wrong.map(|(n, line)| format!("src/{}:{n} {}", source.name, line.trim())).collect()
        }),
    );
}

/// Macros and items of the crate's root are no modules.
fn sources_have(module: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    root.join(format!("{module}.rs")).exists() || root.join(module).is_dir()
}

/// `SELECT … FROM` and the like in a string.
fn is_sql(line: &str) -> bool {
    [
        "\"SELECT ",
        "\"INSERT INTO",
        "\"UPDATE ",
        "\"DELETE FROM",
        "\"WITH ",
        "\"CREATE TABLE",
        "\"PRAGMA",
        "\"VACUUM",
        "\"BEGIN",
        "\"COMMIT",
    ]
    .iter()
    .any(|start| line.contains(start))
}

#[test]
fn sql_text_lives_in_the_store() {
    none(
        "SQL outside store/",
        each(|source| {
            if source.name.starts_with("store/") {
                return Vec::new();
            }
            lines(&source.code)
                .filter(|(_, line)| is_sql(line))
                .map(|(n, _)| format!("src/{}:{n}", source.name))
                .collect()
        }),
    );
}

#[test]
fn libraries_stay_behind_their_doors() {
    const DRIVERS: &[&str] = &[
        "store/engine/tx.rs",
        "store/engine/writer.rs",
        "store/engine/reader.rs",
        "store/engine/sqlite.rs",
        "store/engine/postgres.rs",
        "store/engine/postgres/address.rs",
        "store/engine/postgres/entry.rs",
        "store/engine/postgres/tls.rs",
        "store/engine/migrate.rs",
        "store/engine/backup.rs",
        "store/engine/checkpoints.rs",
        "store/engine/explain.rs",
        "store/engine/param.rs",
        "store/engine/row.rs",
        "store/engine/still.rs",
    ];
    none(
        "a library is used where it must not be",
        each(|source| {
            let mut wrong = Vec::new();
            for (number, line) in lines(&source.code) {
                let at = format!("src/{}:{number}", source.name);
                let uses =
                    |name: &str| line.contains(&format!("{name}::")) || line.contains(&format!("use {name}"));
                let driver = ["rusqlite", "refinery"].into_iter().any(uses)
                    || (uses("postgres")
                        && !line.contains("super::postgres")
                        && !line.contains("self::postgres"));
                if driver && !DRIVERS.contains(&source.name.as_str()) {
                    wrong.push(format!("{at} uses a database driver"));
                }
                let is_door = source.name.starts_with("http/");
                let serves = ["axum", "rmcp", "tower_service"].into_iter().any(uses) && !is_door;
                let describes = uses("utoipa") && !is_door && !source.name.starts_with("wire/");
                let speaks = ["hyper", "hyper_util"].into_iter().any(uses)
                    && !is_door
                    && !source.name.starts_with("webhook/");
                if serves || describes || speaks {
                    wrong.push(format!("{at} uses an HTTP library"));
                }
                if uses("clap") && !source.name.starts_with("cli/") {
                    wrong.push(format!("{at} parses a command line"));
                }
            }
            wrong
        }),
    );
}

#[test]
fn only_the_clock_reads_the_time_of_day() {
    // How long something took or may take is no business time; these measure and wait.
    const STOPWATCHES: &[&str] = &[
        "chain/evm/asking.rs",
        "chain/rpc.rs",
        "http/kit/doorway.rs",
        "http/kit/accept/life.rs",
        "http/kit/accept/tally.rs",
        "jobs/mod.rs",
        "ops/deliver.rs",
        "ops/deliver/ask.rs",
        "ops/events.rs",
        "ops/events/tail.rs",
        "ops/jobs.rs",
        "store/engine/room.rs",
        "store/engine/writer.rs",
        "store/engine/sqlite.rs",
        "store/engine/reader.rs",
        "store/engine/readiness.rs",
        "http/kit/accept/server.rs",
        "http/kit/accept/drain_body.rs",
        "ops/suppliers/trial.rs",
        "ops/webhooks/dispatch.rs",
        "ops/webhooks/limits.rs",
        "ops/webhooks/work.rs",
        "supplier/airalo.rs",
        "supplier/airalo/token.rs",
        "supplier/unknown.rs",
        "telemetry.rs",
        "webhook/line.rs",
        "webhook/sender.rs",
    ];
    none(
        "the time is read past the clock",
        each(|source| {
            let mut wrong = Vec::new();
            for (number, line) in lines(&source.code) {
                let at = format!("src/{}:{number}", source.name);
                let reads = ["SystemTime", "Timestamp::now", "Zoned::now", "UNIX_EPOCH"]
                    .into_iter()
                    .any(|word| line.contains(word));
                if reads && source.name != "clock.rs" {
                    wrong.push(format!("{at} reads the system clock"));
                }
                if line.contains("Instant::now") && !STOPWATCHES.contains(&source.name.as_str()) {
                    wrong.push(format!("{at} holds a stopwatch"));
                }
            }
            wrong
        }),
    );
}

#[test]
fn no_file_holds_what_we_agreed_to_leave_out() {
    let todo = ["TO", "DO"].concat();
    let fixme = ["FIX", "ME"].concat();
    none(
        "left-overs",
        each(|source| {
            let mut wrong = Vec::new();
            for (number, line) in lines(&source.code) {
                let at = format!("src/{}:{number}", source.name);
                for word in
                    [".unwrap()", "dbg!(", "todo!(", "unimplemented!(", "unreachable!(", " as f32", "f64>"]
                {
                    let shown_numbers = source.name.starts_with("http/") && word == "f64>";
                    if line.contains(word) && !shown_numbers {
                        wrong.push(format!("{at} has {word}"));
                    }
                }
                if (line.contains("println!(") || line.contains("eprintln!("))
                    && !source.name.starts_with("cli/")
                    && source.name != "start.rs"
                {
                    wrong.push(format!("{at} prints"));
                }
            }
            for (number, line) in source.text.lines().enumerate() {
                if line.contains(&todo) || line.contains(&fixme) || line.contains("XXX") {
                    wrong.push(format!("src/{}:{} is unfinished", source.name, number + 1));
                }
            }
            wrong
        }),
    );
}

#[test]
fn files_say_what_they_are_and_stay_short() {
    none(
        "a file without a beginning, or too long",
        each(|source| {
            let mut wrong = Vec::new();
            if !source.text.starts_with("//! ") {
                wrong.push(format!("src/{} does not begin with //!", source.name));
            }
            let count = source.text.lines().count();
            if count > 600 {
                wrong.push(format!("src/{} has {count} lines", source.name));
            }
            wrong
        }),
    );
    let mut counts: Vec<usize> = sources().iter().map(|source| source.text.lines().count()).collect();
    counts.sort_unstable();
    assert!(counts[counts.len() / 2] < 150, "the median file has {} lines", counts[counts.len() / 2]);
}

/// Words that say nothing: a name should be the spec's noun or a business verb.
#[test]
fn names_say_something() {
    none(
        "an empty name",
        each(|source| {
            let mut wrong = Vec::new();
            for (number, line) in lines(&source.code) {
                let declares = ["struct ", "enum ", "trait ", "fn ", "mod "]
                    .into_iter()
                    .find_map(|word| line.trim_start().trim_start_matches("pub ").strip_prefix(word));
                let Some(name) = declares
                    .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap())
                else {
                    continue;
                };
                let empty =
                    ["Manager", "Helper", "Util", "Impl", "Dto"].into_iter().any(|word| name.ends_with(word))
                        || ["handle_", "process_", "do_"].into_iter().any(|word| name.starts_with(word));
                if empty {
                    wrong.push(format!("src/{}:{number} {name}", source.name));
                }
            }
            wrong
        }),
    );
}

/// Order ids open nothing; install tokens, secrets and activation codes do, and must not reach a log line.
#[test]
fn nothing_that_opens_a_door_is_logged() {
    none(
        "a secret in a log line",
        each(|source| {
            let logged = lines(&source.code).filter(|(_, line)| {
                ["tracing::", "info!(", "warn!(", "error!(", "debug!("].iter().any(|word| line.contains(word))
            });
            let opens = |line: &str| {
                ["secret", "token", "matching_id", "lpa", "activation", ".uri()"]
                    .iter()
                    .any(|word| line.contains(word))
            };
            logged
                .filter(|(_, line)| opens(line))
                .map(|(n, line)| format!("src/{}:{n} {}", source.name, line.trim()))
                .collect()
        }),
    );
}
