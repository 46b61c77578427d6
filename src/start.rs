//! From settings to a running gateway: migrate, stamp, seed, load, listen, and drain at the end.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::config::{Connections, Mode, Settings};
use crate::domain::email::Email;
use crate::domain::ids::secret_text;
use crate::domain::money::Usd;
use crate::domain::network::AddressKind;
use crate::domain::number;
use crate::error::{Error, Result};
use crate::ops::operator::{self, NewPartner};
use crate::ops::refresh::{refresh, refresh_but_catalog};
use crate::ops::team::DEMO_OWNER;
use crate::ops::{calls, catalog, mail, suppliers, sync, team};
use crate::store::migrate::{self, Lock};
use crate::store::tx::Tx;
use crate::store::{Capacity, Location, LogSize, Serving, Store, accounts, addresses, meta};
use crate::vault::{self, Numbers, Vault};
use crate::{http, jobs, telemetry};

const DEMO_CREDIT: Usd = Usd::dollars(1_000);
/// How long running work may take after a signal; then the process ends anyway, and recovery finishes the work.
const DRAIN: Duration = Duration::from_secs(8);
/// How long the last calls may take to be written down.
const LAST_CALLS: Duration = Duration::from_secs(1);
/// The most connections to the second address, which serves metrics.
const SCRAPERS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Server,
    Command,
}

/// Opens the database: a server migrates and seeds it, a command refuses a schema that is not its own.
pub async fn open(settings: Settings, role: Role) -> Result<App> {
    let location = settings.database.clone();
    let lock = match role {
        Role::Server => Some(
            on_plain_thread({
                let location = location.clone();
                move || migrate::run(&location)
            })
            .await?,
        ),
        Role::Command => {
            let found = on_plain_thread({
                let location = location.clone();
                move || migrate::mismatch(&location)
            })
            .await?;
            if let Some(why) = found {
                return Err(Error::settings(why));
            }
            None
        }
    };
    let opened = assemble(settings, location, role).await;
    // Released here in every case: a PostgreSQL session must not be dropped on a thread of the runtime.
    if let Some(lock) = lock {
        on_plain_thread(move || {
            drop::<Lock>(lock);
            Ok(())
        })
        .await?;
    }
    let app = opened?;
    match role {
        Role::Server => refresh(&app).await?,
        Role::Command => refresh_but_catalog(&app).await.map(drop)?,
    }
    Ok(app)
}

/// Builds the application on an up-to-date schema; a server also seeds a new database.
async fn assemble(settings: Settings, location: Location, role: Role) -> Result<App> {
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
    let capacity = match role {
        Role::Server => Capacity {
            lanes: cores,
            readers: cores * 2,
            queue: settings.write_queue,
            log: Some(LogSize::of_mb(settings.sqlite_log_mb)),
        },
        Role::Command => Capacity { lanes: 1, readers: 1, queue: settings.write_queue, log: None },
    };
    let store = Arc::new(Store::open(location, &capacity)?);
    let vault = stamp(&settings, &store, role).await?;
    if role == Role::Server {
        stamp_keys(&settings, &store).await?;
    }
    let numbers = number_key(&store, &vault, role).await?;
    let app = App::new(settings, store, vault, numbers)?;
    suppliers::enlist(&app).await?;
    if role == Role::Server {
        refresh(&app).await?;
        seed(&app).await?;
        suppliers::rates::round(&app).await?;
    }
    Ok(app)
}

/// What `migrate` found, and what there is now.
pub struct Migrated {
    /// The schema that the database had; `None` when it was new.
    pub from: Option<i32>,
    pub to: i32,
    /// Where the key of a new sandbox's demo partner is.
    pub demo_file: Option<PathBuf>,
}

/// Brings the database to this program's schema, stamps and seeds it, and ends.
pub async fn migrate(settings: Settings) -> Result<Migrated> {
    let location = settings.database.clone();
    let from = on_plain_thread(move || migrate::applied(&location)).await?;
    let app = open(settings, Role::Server).await?;
    let demo_file = demo_file(&app).filter(|_| from.is_none());
    let _ = tokio::task::spawn_blocking(move || app.store.close()).await;
    Ok(Migrated { from, to: migrate::ours(), demo_file })
}

/// Where the demo partner's key is, if it is still there.
fn demo_file(app: &App) -> Option<PathBuf> {
    Some(app.settings.demo_file.clone()).filter(|file| file.exists())
}

/// The blocking PostgreSQL client must not run on a thread of the async runtime.
async fn on_plain_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (reply, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || drop(reply.send(work())));
    answer.await.map_err(|_| Error::fault("the start-up thread panicked"))?
}

/// Marks a new database with its mode and secret, and refuses one that was made with others.
async fn stamp(settings: &Settings, store: &Store, role: Role) -> Result<Vault> {
    let mode = settings.mode.as_str();
    let stored_mode = store.read(|tx| meta::get(tx, "mode")).await?;
    match stored_mode.as_deref() {
        Some(stored) if stored != mode => {
            return Err(Error::settings(format!(
                "mode is {mode}, but this database was made in {stored} mode: start with --mode {stored}, or name \
                 another database with --database-url"
            )));
        }
        None if role == Role::Command => {
            return Err(Error::settings("the database is not set up yet: run `simgate migrate`"));
        }
        Some(_) | None => {}
    }
    let secret = match settings.secret_text() {
        Some(secret) => secret.to_string(),
        None => sandbox_secret(store).await?,
    };
    let vault = Vault::new(&secret);
    let ours = vault.fingerprint().to_string();
    match store.read(|tx| meta::get(tx, "secret_fingerprint")).await? {
        Some(stored) if stored == ours => Ok(vault),
        Some(_) => Err(Error::settings(
            "secret is not the one this database was made with: activation codes could not be read",
        )),
        None => {
            let both = move |tx: &mut Tx| {
                meta::set(tx, "mode", mode)?;
                meta::set(tx, "secret_fingerprint", &ours)
            };
            store.write(0, both).await?;
            Ok(vault)
        }
    }
}

/// Remembers which extended public keys addresses come from, and refuses others unless told that they are new: a
/// mistyped key would send partners' money to addresses that nobody can spend from.
async fn stamp_keys(settings: &Settings, store: &Store) -> Result<()> {
    for kind in AddressKind::ALL {
        let name = format!("{}_xpub", kind.as_str().to_lowercase());
        let ours = settings.settlement.xpub(kind).fingerprint().to_string();
        let current = name.clone();
        let stored = store.read(move |tx| meta::get(tx, &current)).await?;
        if stored.as_ref() == Some(&ours) {
            continue;
        }
        if stored.is_some() && !settings.settlement.new_key {
            return Err(Error::settings(format!(
                "{name} is not the key that this database's addresses come from (its fingerprint is {ours}); if it is \
                 meant to replace it, start once with --new-key: old addresses stay watched"
            )));
        }
        store
            .write(0, move |tx| {
                addresses::add_key(tx, kind, &ours)?;
                meta::set(tx, &name, &ours)
            })
            .await?;
    }
    Ok(())
}

/// The key that order numbers are scrambled with. The first start makes it, and nothing ever changes it.
async fn number_key(store: &Store, vault: &Vault, role: Role) -> Result<Numbers> {
    const NAME: &str = "order_numbers";
    let kept = match store.read(|tx| meta::get(tx, NAME)).await? {
        Some(kept) => kept,
        None if role == Role::Command => {
            return Err(Error::settings("the database is not set up yet: run `simgate migrate`"));
        }
        None => {
            // Otherwise old numbers could be spelled like new ones.
            if store.read(accounts::last).await?.0 >= number::FIRST_ACCOUNTS {
                return Err(Error::settings("this database has too many accounts for keyed order numbers"));
            }
            let made = Numbers::make(vault)?;
            let keep = move |tx: &mut Tx| match meta::get(tx, NAME)? {
                Some(kept) => Ok(kept),
                None => meta::set(tx, NAME, &made).map(|()| made.clone()),
            };
            store.write(0, keep).await?
        }
    };
    Numbers::open(vault, &kept)
}

/// A sandbox makes its own secret and keeps it in the database.
async fn sandbox_secret(store: &Store) -> Result<String> {
    if let Some(secret) = store.read(|tx| meta::get(tx, "sandbox_secret")).await? {
        return Ok(secret);
    }
    let secret = secret_text("", [vault::random(), vault::random()]);
    let kept = secret.clone();
    store.write(0, move |tx| meta::set(tx, "sandbox_secret", &kept)).await?;
    Ok(secret)
}

/// First start of a sandbox only: the catalog, and a demo partner.
async fn seed(app: &App) -> Result<()> {
    if app.settings.mode != Mode::Sandbox {
        return Ok(());
    }
    if catalog::is_empty(app).await? {
        sync::seed(app).await?;
    }
    if app.store.read(|tx| meta::get(tx, "demo_partner")).await?.is_none() {
        let demo =
            NewPartner { name: "Demo Travel".into(), email: None, credit: DEMO_CREDIT, shares_email: false };
        let partner = operator::create_partner(app, "seed", demo).await?;
        write_demo_file(app, partner.key.id.as_str(), &partner.key.secret)?;
        app.store.write(0, move |tx| meta::set(tx, "demo_partner", partner.id.as_str())).await?;
    }
    if app.store.read(|tx| meta::get(tx, "demo_owner")).await?.is_none()
        && let Some(partner) = app.store.read(|tx| meta::get(tx, "demo_partner")).await?
    {
        let demo = operator::account(app, &partner).await?;
        team::enlist(app, demo.no, Email::from_text(DEMO_OWNER)).await?;
        app.store.write(0, move |tx| meta::set(tx, "demo_owner", DEMO_OWNER)).await?;
    }
    Ok(())
}

/// The variables that the examples in README.md and docs/ begin with.
fn write_demo_file(app: &App, key: &str, secret: &str) -> Result<()> {
    let path = &app.settings.demo_file;
    let wrong = |error| Error::fault(format!("{}: {error}", path.display()));
    let mut file = std::fs::File::options()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(wrong)?;
    let (partners, agents) = (&app.settings.base_url, &app.settings.agent_url);
    let text = format!("B2B_URL={partners}\nB2B_KEY={key}\nB2B_SECRET={secret}\nAGENT_URL={agents}\n");
    file.write_all(text.as_bytes()).map_err(wrong)
}

/// What a gateway says of itself when it begins to serve.
pub struct Greeting {
    pub version: &'static str,
    pub base_url: String,
    pub mode: Mode,
    pub database: String,
    pub plans: usize,
    pub demo_file: Option<PathBuf>,
    /// Where partners sign in, and in a sandbox who may at once, and where their code is to be read.
    pub portal: String,
    pub demo_owner: Option<(&'static str, String)>,
}

/// Runs the gateway until SIGTERM or SIGINT; returns when everything has drained.
pub async fn serve(mut settings: Settings, greet: impl FnOnce(Greeting)) -> Result<()> {
    telemetry::metrics();
    settings.connections.most = http::descriptors::affordable(settings.connections.most);
    let listener = bind("listen", settings.listen).await?;
    let metrics_listener = match settings.metrics_listen {
        Some(address) => Some(bind("metrics_listen", address).await?),
        None => None,
    };
    let location = settings.database.clone();
    let serving = on_plain_thread(move || Serving::begin(&location)).await?;
    let app = open(settings, Role::Server).await?;
    if app.settings.mode == Mode::Live {
        suppliers::require_enabled(&app).await?;
    }
    greet(greeting(&app));
    let stop = CancellationToken::new();
    let signalled = stop.clone();
    tokio::spawn(async move {
        wait_for_signal().await;
        tracing::info!("stopping: no new connections, finishing what is running");
        signalled.cancel();
    });
    run(&app, listener, metrics_listener, stop).await;
    drop(serving);
    tracing::info!("stopped");
    Ok(())
}

/// Listens on the address of a setting, or says what to do about it.
async fn bind(setting: &str, address: SocketAddr) -> Result<TcpListener> {
    let unfit = |error: io::Error| {
        let flag = format!("--{}", setting.replace('_', "-"));
        let other = SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or(8402));
        Error::settings(match error.kind() {
            ErrorKind::AddrInUse => format!(
                "{setting} is {address}, and another program listens there already, perhaps another simgate. Stop it, or \
                 choose another port: {flag} {other}"
            ),
            ErrorKind::PermissionDenied => format!(
                "{setting} is {address}, and this user may not listen there: ports below 1024 need a privilege. Choose \
                 another port: {flag} {}",
                SocketAddr::new(address.ip(), 8402)
            ),
            ErrorKind::AddrNotAvailable => format!(
                "{setting} is {address}, and this machine has no such address. Choose one of its own: {flag} 127.0.0.1:{}",
                address.port()
            ),
            _ => format!("{setting} is {address}: {error}. Choose another address with {flag}"),
        })
    };
    TcpListener::bind(address).await.map_err(unfit)
}

/// Serves until `stop`, then finishes what is running and flushes the writer. Tests call this too.
pub async fn run(app: &App, listener: TcpListener, metrics: Option<TcpListener>, stop: CancellationToken) {
    jobs::start(app, &stop);
    if let Some(metrics) = metrics {
        let limits =
            Connections { per_client: Some(SCRAPERS), most: SCRAPERS, ..app.settings.connections.clone() };
        app.tasks.spawn(http::server::serve(
            http::metrics_router(app.clone()),
            metrics,
            limits,
            stop.clone(),
        ));
    }
    let router = http::router(app.clone());
    let deadline = async {
        stop.cancelled().await;
        app.stopping.cancel();
        tokio::time::sleep(DRAIN).await;
    };
    let work = async {
        http::server::serve(router, listener, app.settings.connections.clone(), stop.clone()).await;
        app.tasks.close();
        app.tasks.wait().await;
    };
    tokio::select! {
        () = work => {}
        () = deadline => tracing::warn!("some work did not finish in time; recovery will pick it up"),
    }
    // Only now no call is answered any more.
    if !matches!(timeout(LAST_CALLS, calls::write_out(app)).await, Ok(Ok(()))) {
        tracing::warn!("the last calls could not be written down");
    }
    let store = app.store.clone();
    let _ = tokio::task::spawn_blocking(move || store.close()).await;
}

/// The owner of the demo partner's team, where mails are read in the outbox.
fn demo_owner(app: &App) -> Option<(&'static str, String)> {
    let outbox = format!("{}/sandbox/outbox?email={DEMO_OWNER}", app.settings.base_url);
    mail::is_shown(app).then_some((DEMO_OWNER, outbox))
}

fn greeting(app: &App) -> Greeting {
    let database = match app.store.location() {
        Location::Sqlite(path) => format!("SQLite at {}", path.display()),
        Location::Postgres(_) => "PostgreSQL".into(),
    };
    Greeting {
        version: env!("CARGO_PKG_VERSION"),
        base_url: app.settings.base_url.clone(),
        mode: app.settings.mode,
        database,
        plans: app.catalog.borrow().size(),
        demo_file: demo_file(app),
        portal: format!("{}/portal", app.settings.checkout_url),
        demo_owner: demo_owner(app),
    }
}

async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut stream) => drop(stream.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = terminate => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
