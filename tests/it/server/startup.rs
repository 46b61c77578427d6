//! A gateway that cannot start says why, and what to do: exit 2, on stderr for people and as JSON for programs. The first
//! start leaves a file for those who try it out.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Deserializer, Value, json};

use crate::support::command_line::{database_url, run};
use crate::support::database::execute;
use crate::support::harness::{Db, both_databases, reply};
use crate::support::process::on_site;

const NEW: &str = "sqlite:new.db";

/// What the binary says when it is told to serve in a folder of its own.
fn refused(url: &str, dir: &std::path::Path, args: &[&str]) -> String {
    run(url, dir, &[], &[args, &["--json"]].concat()).refused(2, "INVALID_SETTINGS")
}

#[test]
fn a_port_in_use_is_told() {
    on_site(Db::Sqlite, vec![], async |site| {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let told = refused(NEW, &site.place.dir, &["serve", "--listen", &address]);
        assert!(
            told.starts_with(&format!("listen is {address}, and another program listens there already")),
            "{told}"
        );
        assert!(told.contains("choose another port: --listen 127.0.0.1:"), "{told}");
        let told = refused(
            NEW,
            &site.place.dir,
            &["serve", "--listen", "127.0.0.1:0", "--metrics-listen", &address],
        );
        assert!(
            told.starts_with("metrics_listen is ") && told.contains("--metrics-listen 127.0.0.1:"),
            "{told}"
        );
        let told =
            refused(NEW, &site.place.dir, &["serve", "--listen", "192.0.2.1:8402", "--public-sandbox"]);
        assert!(told.contains("this machine has no such address"), "{told}");
        assert!(!site.place.dir.join("new.db").exists(), "nothing was made");
    });
}

#[test]
fn a_mistake_in_the_file_is_told_by_its_line() {
    on_site(Db::Sqlite, vec![], async |site| {
        let dir = &site.place.dir;
        for (text, told) in [
            (
                "log = \"warn\"\n\nlisten = 127.0.0.1:1\n",
                "simgate.toml, line 3 is not valid TOML: text must stand between quotes: listen = \"127.0.0.1:1\"",
            ),
            ("log = \"warn\"\nlisten = \"x", "simgate.toml, line 2 is not valid TOML"),
            (
                "# ours\n\nlisten_on = \"127.0.0.1:1\"\n",
                "simgate.toml, line 3 has an unknown setting \"listen_on\"",
            ),
            (
                "rate_limits = 5\n",
                "simgate.toml, line 1 has an unknown setting \"rate_limits\"; did you mean rate_limit?",
            ),
            ("log = \"warn\"\nrate_limit = \"many\"\n", "rate_limit in simgate.toml, line 2"),
        ] {
            fs::write(dir.join("simgate.toml"), text).unwrap();
            let said = refused(NEW, dir, &["serve"]);
            assert!(said.contains(told), "{text}: {said}");
        }
    });
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    on_site(Db::Sqlite, vec![], async |site| {
        let dir = &site.place.dir;
        fs::write(dir.join("simgate.toml"), "rate_limit = \"many\"\nlisten = 127.0.0.1:1\nlisen = 1\n")
            .unwrap();
        let said = refused(NEW, dir, &["serve", "--write-queue", "0"]);
        for named in ["rate_limit in simgate.toml, line 1", "line 2", "\"lisen\"", "--write-queue"] {
            assert!(said.contains(named), "{named}: {said}");
        }
    });
}

#[test]
fn with_json_a_gateway_greets_with_one_document() {
    on_site(Db::Sqlite, vec![], async |site| {
        let mut server = Command::new(env!("CARGO_BIN_EXE_simgate"))
            .args(["serve", "--json", "--listen", "127.0.0.1:0", "--log", "error"])
            .env_clear()
            .current_dir(&site.place.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut documents = Deserializer::from_reader(server.stdout.take().unwrap()).into_iter::<Value>();
        let greeting = documents.next().unwrap().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(
            (&greeting["mode"], &greeting["demoFile"]),
            (&json!("sandbox"), &json!("./simgate-demo.env"))
        );
        assert!(greeting["plans"].as_i64() > Some(400) && greeting["version"].is_string(), "{greeting}");
        assert!(documents.next().is_none(), "and nothing else");
    });
    let told = run(NEW, std::path::Path::new("/"), &[], &["--version", "--json"]).document(0);
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    let told = run(NEW, std::path::Path::new("/"), &[], &["wallet", "--help", "--json"]).document(0);
    assert!(told["help"].as_str().unwrap().contains("statement"), "{told}");
}

#[test]
fn migrate_says_what_it_did() {
    on_site(Db::Sqlite, vec![], async |site| {
        let dir = &site.place.dir;
        let migrate = || run(NEW, dir, &[], &["migrate", "--json"]).document(0);
        let first = migrate();
        assert_eq!((&first["migrated"], &first["schemaBefore"]), (&json!(true), &json!(null)));
        assert_eq!(first["demoFile"], "./simgate-demo.env");
        assert!(dir.join("simgate-demo.env").exists());
        let second = migrate();
        assert_eq!((&second["migrated"], &second["demoFile"]), (&json!(false), &json!(null)));
        assert_eq!((&second["schemaBefore"], &second["schema"]), (&first["schema"], &first["schema"]));
        assert!(run(NEW, dir, &[], &["migrate"]).stdout.contains("had this schema already"));
    });
}

#[test]
fn a_file_that_is_no_database_of_ours_is_told() {
    on_site(Db::Sqlite, vec![], async |site| {
        let dir = &site.place.dir;
        fs::write(dir.join("notes.txt"), "Remember the milk. ".repeat(100)).unwrap();
        fs::create_dir(dir.join("folder")).unwrap();
        let theirs = rusqlite::Connection::open(dir.join("theirs.db")).unwrap();
        theirs.execute_batch("CREATE TABLE recipes (name TEXT)").unwrap();
        drop(theirs);
        for (url, told) in [
            ("sqlite:notes.txt", ["notes.txt is no SQLite database", "--database-url"]),
            ("sqlite:theirs.db", ["theirs.db is the database of another program", "--database-url"]),
            ("sqlite:folder", ["folder", "--database-url"]),
            ("sqlite:missing/new.db", ["there is no folder missing", "mkdir -p missing"]),
            ("sqlite:notes.txt/new.db", ["notes.txt", "--database-url"]),
        ] {
            for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["migrate"]] {
                let said = refused(url, dir, args);
                assert!(told.iter().all(|part| said.contains(part)), "{url} {args:?}: {said}");
            }
        }
        for url in ["sqlite:notes.txt", "sqlite:theirs.db"] {
            refused(url, dir, &["partner", "list"]);
        }
        assert!(
            fs::read_to_string(dir.join("notes.txt")).unwrap().starts_with("Remember the milk."),
            "it is left alone"
        );
        let theirs = rusqlite::Connection::open(dir.join("theirs.db")).unwrap();
        let tables: i64 =
            theirs.query_row("SELECT COUNT(*) FROM sqlite_master", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 1, "nothing was added");
    });
}

#[test]
fn live_tells_all_that_it_lacks() {
    on_site(Db::Sqlite, vec![], async |site| {
        let told = refused(NEW, &site.place.dir, &["serve", "--mode", "live"]);
        for line in [
            "secret = ",
            "evm_xpub = ",
            "tron_xpub = ",
            "smtp_host = ",
            "mail_from = ",
            "base_rpc = ",
            "[supplier.",
        ] {
            assert!(told.contains(line), "{line}: {told}");
        }
        assert!(told.lines().count() > 6, "each on a line of its own: {told}");
    });
}

#[test]
fn the_demo_file_has_what_examples_begin_with() {
    on_site(Db::Sqlite, vec![("agent_url", "http://agents.example")], async |site| {
        let path = site.place.dir.join("simgate-demo.env");
        let mut server = site.start().await;
        let file = fs::read_to_string(&path).unwrap();
        let values: Vec<(&str, &str)> = file.lines().map(|line| line.split_once('=').unwrap()).collect();
        let [("B2B_URL", base), ("B2B_KEY", key), ("B2B_SECRET", secret), ("AGENT_URL", agents)] = values[..]
        else {
            panic!("{file}");
        };
        assert_eq!((base, agents), (server.base.as_str(), "http://agents.example"));
        let balance = site.client.get(format!("{base}/api/b2b/v1/balance"));
        let balance =
            reply(balance.header("x-b2b-key", key).header("x-b2b-secret", secret)).await.expect(200);
        assert_eq!(balance["balanceUsd"], 1_000);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        server.kill();
        site.start().await;
        assert_eq!(fs::read_to_string(&path).unwrap(), file, "only the first start writes it");
    });
}

both_databases! {
    async fn a_database_of_a_newer_program_or_another_mode_is_told(gateway) {
        let (url, location) = (database_url(gateway), &gateway.app.settings.database);
        let migrations = |sql: &str| execute(location, sql).unwrap();
        migrations("INSERT INTO refinery_schema_history (version, name, applied_on, checksum) VALUES (99, 'later', '2026-01-01T00:00:00Z', '1')");
        for args in [&["migrate"][..], &["partner", "list"]] {
            let told = refused(&url, &gateway.dir, args);
            assert!(told.contains("schema 99, made by a newer simgate") && told.contains("Start the newer program"), "{told}");
        }
        migrations("DELETE FROM refinery_schema_history WHERE version = 99");
        migrations("UPDATE meta SET value = 'live' WHERE name = 'mode'");
        let told = refused(&url, &gateway.dir, &["partner", "list"]);
        migrations("UPDATE meta SET value = 'sandbox' WHERE name = 'mode'");
        assert!(told.contains("made in live mode") && told.contains("--mode live") && told.contains("--database-url"), "{told}");
    }
}
