//! Two databases, one store: the same migrations, the same schema, every statement good on both, books that only
//! grow, and a stamp that keeps modes and secrets apart.

use std::collections::BTreeSet;
use std::path::Path;

use secrecy::SecretString;
use simgate::config::Mode;
use simgate::error::{Error, FaultKind};
use simgate::start::{self, Role};
use simgate::store::{Location, all_sql, explain, migrate};

use crate::support::database;
use crate::support::harness::{Db, Gateway, both_databases};
use crate::support::place::Place;

#[test]
fn migrations_come_in_pairs() {
    let names = |folder: &str| -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(folder);
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let (sqlite, postgres) = (names("sqlite"), names("postgres"));
    assert!(!sqlite.is_empty());
    assert_eq!(sqlite, postgres);
}

/// `table.column type nullability`
const COLUMNS_LITE: &str = "
    SELECT m.name || '.' || c.name || ' ' || c.type || CASE WHEN c.\"notnull\" = 1 THEN ' NOT NULL' ELSE '' END
    FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> 'refinery_schema_history'";
const COLUMNS_PG: &str = "
    SELECT table_name || '.' || column_name || ' '
        || CASE data_type WHEN 'bigint' THEN 'INTEGER' WHEN 'text' THEN 'TEXT' WHEN 'bytea' THEN 'BLOB' ELSE data_type END
        || CASE WHEN is_nullable = 'NO' THEN ' NOT NULL' ELSE '' END
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'refinery_schema_history'";

/// `table (columns) unique partial`, primary keys among them; named when we named it.
const INDEXES_LITE: &str = "
    SELECT m.name || ' (' || (SELECT group_concat(name, ',') FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno)) || ')'
        || CASE WHEN i.\"unique\" = 1 THEN ' unique' ELSE '' END || CASE WHEN i.partial = 1 THEN ' partial' ELSE '' END
        || CASE WHEN i.origin = 'c' THEN ' ' || i.name ELSE '' END
    FROM sqlite_master m JOIN pragma_index_list(m.name) i
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> 'refinery_schema_history'
    UNION
    SELECT m.name || ' (' || c.name || ') unique' FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND c.pk > 0 AND c.type = 'INTEGER' AND m.name NOT LIKE 'sqlite_%'
      AND (SELECT COUNT(*) FROM pragma_table_info(m.name) k WHERE k.pk > 0) = 1 AND m.name <> 'refinery_schema_history'";
const INDEXES_PG: &str = "
    SELECT t.relname || ' (' || (SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(x.indkey) WITH ORDINALITY k (no, n)
            JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.no) || ')'
        || CASE WHEN x.indisunique THEN ' unique' ELSE '' END || CASE WHEN x.indpred IS NOT NULL THEN ' partial' ELSE '' END
        || CASE WHEN EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.oid) THEN '' ELSE ' ' || i.relname END
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
    JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE n.nspname = 'public' AND t.relname <> 'refinery_schema_history'";

fn set(location: &Location, sql: &str) -> BTreeSet<String> {
    database::rows(location, sql).into_iter().map(|mut row| row.remove(0)).collect()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn both_schemas_are_the_same() {
    let [lite, pg] = [Db::Sqlite, Db::Postgres].map(Place::new);
    let [a, b] = [&lite, &pg].map(|place| {
        let location = place.settings(&[]).database;
        database::on_plain_thread(|| migrate::run(&location).map(drop)).unwrap();
        location
    });
    let (columns_lite, columns_pg) = (set(&a, COLUMNS_LITE), set(&b, COLUMNS_PG));
    assert!(columns_lite.len() > 80);
    let apart =
        |x: &BTreeSet<String>, y: &BTreeSet<String>| x.symmetric_difference(y).cloned().collect::<Vec<_>>();
    assert_eq!(apart(&columns_lite, &columns_pg), Vec::<String>::new());
    let (indexes_lite, indexes_pg) = (set(&a, INDEXES_LITE), set(&b, INDEXES_PG));
    assert!(indexes_lite.len() > 15);
    assert_eq!(apart(&indexes_lite, &indexes_pg), Vec::<String>::new());
    let triggers = "SELECT CAST(COUNT(DISTINCT name) AS TEXT) FROM sqlite_master WHERE type = 'trigger'";
    assert_eq!(database::rows(&a, triggers), [["8"]]);
    lite.remove();
    pg.remove();
}

async fn reopen(gateway: &Gateway, change: impl Fn(&mut simgate::config::Settings), role: Role) -> Error {
    let mut settings = gateway.app.settings.clone();
    change(&mut settings);
    match start::open(settings, role).await {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

both_databases! {
    async fn every_statement_prepares(gateway) {
        let location = gateway.app.settings.database.clone();
        let all = all_sql();
        assert!(all.len() > 80);
        let refused = database::on_plain_thread(|| explain::unpreparable(&location, &all)).unwrap();
        assert_eq!(refused, Vec::<String>::new());
    }

    /// What is written in the books stays; only a newer entry can put it right.
    async fn the_books_only_grow(gateway) {
        gateway.order("JP-1GB-7D").await;
        let location = &gateway.app.settings.database;
        for sql in [
            "UPDATE entries SET note = 'x'",
            "UPDATE entries SET at = at",
            "DELETE FROM entries",
            "UPDATE postings SET amount = amount + 1",
            "UPDATE postings SET order_id = NULL WHERE leg = 2",
            "DELETE FROM postings",
            "DELETE FROM postings WHERE leg = 2",
        ] {
            let told = database::execute(location, sql).expect_err(sql);
            assert!(told.contains("append-only"), "{sql}: {told}");
        }
        if let Location::Postgres(_) = location {
            for sql in ["TRUNCATE postings", "TRUNCATE entries"] {
                let told = database::execute(location, sql).expect_err(sql);
                assert!(told.contains("append-only"), "{sql}: {told}");
            }
        }
        // And the schema is the second to assert what the program asserts first.
        for sql in [
            "UPDATE wallets SET balance = -1",
            "INSERT INTO postings (entry, leg, account, amount) VALUES ('x', 1, 'held', 0)",
            "INSERT INTO claims (account, reference, order_id) SELECT account, 'r', 'a' FROM wallets UNION ALL SELECT account, 'r', 'b' FROM wallets",
            "INSERT INTO postings (entry, leg, account, amount) SELECT entry, leg, account, amount FROM postings",
            "INSERT INTO entries (id, kind, at) SELECT id, kind, at FROM entries",
            "UPDATE orders SET status = NULL",
        ] {
            database::execute(location, sql).expect_err(sql);
        }
    }

    async fn a_database_opens_only_in_its_own_mode_and_with_its_own_secret(gateway) {
        let location = &gateway.app.settings.database;
        let stamp = |mode: &str| database::execute(location, &format!("UPDATE meta SET value = '{mode}' WHERE name = 'mode'")).unwrap();
        for role in [Role::Server, Role::Command] {
            stamp("live");
            let error = reopen(gateway, |_| {}, role).await;
            stamp("sandbox");
            assert!(error.to_string().contains("mode is sandbox, but this database was made in live mode"), "{error}");
            assert!(matches!(&error, Error::Fault(fault) if fault.kind == FaultKind::Settings));
            let live = |settings: &mut simgate::config::Settings| {
                settings.mode = Mode::Live;
                settings.secret = Some(SecretString::from("0123456789abcdef0123456789abcdef"));
            };
            let error = reopen(gateway, live, role).await;
            assert!(error.to_string().contains("mode is live"), "{error}");
            let other = |settings: &mut simgate::config::Settings| {
                settings.secret = Some(SecretString::from("another secret of at least 32 characters"));
            };
            let error = reopen(gateway, other, role).await;
            assert!(error.to_string().contains("secret is not the one"), "{error}");
            assert!(!error.to_string().contains("another secret"), "{error}");
        }
        let again = start::open(gateway.app.settings.clone(), Role::Command).await.unwrap();
        database::on_plain_thread(|| again.store.close());
    }
}
