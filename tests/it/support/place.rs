//! Where a test's data lives: a SQLite file or a PostgreSQL database of its own, made in a moment as a copy of one that
//! is prepared once.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use simgate::clock::Clock;
use simgate::config::{Raw, Settings};
use simgate::domain::cost::Billing;
use simgate::ops::prices;
use simgate::ops::sync::compare;
use simgate::store::tx::Tx;
use simgate::store::{Capacity, Location, Store, catalog, migrate};
use simgate::supplier::{sim, sim_catalog};

use crate::support::database;
use crate::support::environment::required;
use crate::support::harness::Db;

const SQLITE_FILE: &str = "simgate.db";

/// Where a test's data lives.
#[derive(Clone)]
pub struct Place {
    pub db: Db,
    pub dir: PathBuf,
    pub url: String,
    admin: Option<String>,
}

impl Place {
    pub fn new(db: Db) -> Place {
        Place::copied(db, |_| "template0".into())
    }

    /// In a database that is there already, on a server of the test's own.
    pub fn at(url: &str) -> Place {
        let unique = format!("simgate_test_{}_{:x}", std::process::id(), simgate::vault::random() as u64);
        let dir = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&dir).unwrap();
        Place { db: Db::Postgres, dir, url: url.to_string(), admin: None }
    }

    /// With the schema and the catalog in place: copying takes a small part of the time that making them does.
    pub fn prepared(db: Db) -> Place {
        let prepared = Prepared::new();
        let place = Place::copied(db, |admin| prepared.database(admin));
        if db == Db::Sqlite {
            prepared.copy_file(&place.dir.join(SQLITE_FILE));
        }
        place
    }

    /// On PostgreSQL, from the database that `template` names.
    fn copied(db: Db, template: impl FnOnce(&str) -> String) -> Place {
        let unique = format!("simgate_test_{}_{:x}", std::process::id(), simgate::vault::random() as u64);
        let dir = std::env::temp_dir().join(&unique);
        let (url, admin) = match db {
            Db::Sqlite => (format!("sqlite:{}", dir.join(SQLITE_FILE).display()), None),
            Db::Postgres => {
                let admin = required("SIMGATE_TEST_POSTGRES");
                (with_database(&admin, &unique), Some(admin))
            }
        };
        std::fs::create_dir_all(&dir).unwrap();
        if let Some(admin) = &admin {
            execute(admin, &format!("CREATE DATABASE {unique} TEMPLATE {}", template(admin)));
        }
        Place { db, dir, url, admin }
    }

    pub fn settings(&self, extra: &[(&str, &str)]) -> Settings {
        let usual = [
            ("database_url", self.url.as_str()),
            ("listen", "127.0.0.1:0"),
            ("log", "warn"),
            ("sqlite_log_mb", "0"),
        ];
        let all = usual.into_iter().chain(extra.iter().copied());
        // Suppliers are tables, which have no flags.
        let (of_suppliers, others): (Vec<_>, Vec<_>) =
            all.partition(|(name, _)| name.starts_with("supplier_") && *name != "supplier_timeout_ms");
        let mut flags: BTreeMap<String, String> =
            others.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let env = of_suppliers
            .into_iter()
            .map(|(name, value)| (format!("SIMGATE_{}", name.to_uppercase()), value.to_string()));
        let journal = self.dir.join("journal");
        flags.entry("sandbox_journal".into()).or_insert(journal.display().to_string());
        Settings::check(&Raw::collect(&flags, env, None).unwrap()).unwrap()
    }

    pub fn remove(self) {
        let _ = std::fs::remove_dir_all(&self.dir);
        if let Some(admin) = &self.admin {
            let name = self.url.rsplit('/').next().unwrap();
            // Left behind when somebody holds on to it for too long: the whole server goes after the tests.
            database::on_plain_thread(|| {
                let mut client = postgres::Client::connect(admin, postgres::NoTls).unwrap();
                let _ = client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            });
        }
    }
}

fn with_database(admin: &str, name: &str) -> String {
    let (server, _) = admin.rsplit_once('/').expect("SIMGATE_TEST_POSTGRES ends in /DATABASE");
    format!("{server}/{name}")
}

/// Databases as a first start leaves them, but for what is a deployment's own. The first test that needs one makes it,
/// and another build makes others.
struct Prepared {
    name: String,
}

impl Prepared {
    fn new() -> Prepared {
        let built = std::env::current_exe().unwrap().metadata().unwrap().modified().unwrap();
        let built = built.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        Prepared { name: format!("simgate_prepared_{built:x}") }
    }

    /// Answers the name of the database.
    fn database(&self, admin: &str) -> String {
        let name = &self.name;
        database::on_plain_thread(|| {
            let mut client = postgres::Client::connect(admin, postgres::NoTls).unwrap();
            // The others wait until it is there.
            client.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
            if client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[name]).unwrap().is_none() {
                let half = format!("{name}_half");
                client.batch_execute(&format!("DROP DATABASE IF EXISTS {half}")).unwrap();
                client.batch_execute(&format!("CREATE DATABASE {half} TEMPLATE template0")).unwrap();
                fill(Location::Postgres(with_database(admin, &half)));
                client.batch_execute(&format!("ALTER DATABASE {half} RENAME TO {name}")).unwrap();
            }
        });
        name.clone()
    }

    /// Nobody throws it away meanwhile, as a test of another build may.
    fn copy_file(&self, to: &Path) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (file, half) = (folder.join(&self.name), folder.join("simgate_prepared_half"));
        let lock = File::create(folder.join("simgate_prepared.lock")).unwrap();
        lock.lock().unwrap();
        if !file.exists() {
            let of_ours = |path: &PathBuf| path.display().to_string().contains("simgate_prepared_");
            let earlier = folder.read_dir().unwrap().map(|file| file.unwrap().path()).filter(of_ours);
            earlier.for_each(|path| std::fs::remove_file(path).unwrap());
            database::on_plain_thread(|| fill(Location::Sqlite(half.clone())));
            std::fs::rename(half, &file).unwrap();
        }
        std::fs::copy(file, to).unwrap();
    }
}

/// Puts the schema and the catalog there.
fn fill(location: Location) {
    drop(migrate::run(&location).unwrap());
    let capacity = Capacity { lanes: 1, readers: 1, queue: 16, log: None };
    let store = Store::open(location, &capacity).unwrap();
    let put = |tx: &mut Tx| {
        let plans = compare::changes(&[], sim_catalog::plans(0), None, "", Billing::DOLLARS).offered;
        catalog::put(tx, &plans, sim::NAME, true)
    };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        store.write(0, put).await.unwrap();
        let clock = Clock::default();
        prices::reprice_in(&store, || clock.now()).await.unwrap();
    });
    store.close();
}

/// One statement as the administrator.
pub fn execute(url: &str, statement: &str) {
    database::on_plain_thread(|| {
        postgres::Client::connect(url, postgres::NoTls).unwrap().batch_execute(statement).unwrap();
    });
}
