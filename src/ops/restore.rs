//! Takes over a backup. A copy does not know what happened after it was made: which addresses were given out, what was
//! paid to them, what was sold. `adopt` makes that harmless before anybody is served: no address is given out twice,
//! money in transit is found, no event comes before what was read already, and nothing is bought until the operator has
//! looked. `store::backup` puts the copy where the database belongs.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::LANE;
use super::addresses::derive;
use super::audit::audit_line;
use crate::app::App;
use crate::domain::network::{AddressKind, Network};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::addresses;
use crate::store::cursors::{self, Cursor};
use crate::store::meta::{self, Version};
use crate::store::tx::Tx;
pub use crate::store::{Location, backup::Unpacked};
use crate::store::{amounts, audit, backup, events, orders};
pub use crate::supplier::Sold;

/// How many addresses of each kind may have been given out since the backup was made.
const SKIPPED: i64 = 1_000;
/// How many addresses are written at once, so that a write stays short.
const AT_ONCE: usize = 400;
/// How many events may have been told of since the backup was made.
const SKIPPED_EVENTS: i64 = 1_000_000_000;
const WATCH_DAYS: i64 = 7;

/// The names under which the database remembers that it came from a backup, and that buying is on hold.
const RESTORED_AT: &str = "restored_at";
const ON_HOLD: &str = "buying_on_hold";
const YES: &str = "yes";
const NO: &str = "no";

/// Unpacks a backup for this database. An SQLite copy lies beside its final place until `put_in_place`, so that nobody
/// can serve it before it is adopted.
pub async fn unpack(location: &Location, from: PathBuf, force: bool) -> Result<Unpacked> {
    let location = location.clone();
    on_plain_thread(move || backup::unpack(&location, &from, force)).await
}

/// Moves an adopted SQLite database to where it belongs. Answers where the previous one is now.
pub async fn put_in_place(unpacked: &Path, target: &Path) -> Result<Option<PathBuf>> {
    let (unpacked, target) = (unpacked.to_path_buf(), target.to_path_buf());
    on_plain_thread(move || backup::put_in_place(&unpacked, &target)).await
}

/// The blocking PostgreSQL client must not run on a thread of the async runtime.
async fn on_plain_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (reply, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || drop(reply.send(work())));
    answer.await.map_err(|_| Error::fault("the thread that restores has panicked"))?
}

/// The result of adopting a backup.
pub struct Adopted {
    pub skipped: Vec<Skipped>,
    /// How many addresses of the backup itself are watched again.
    pub watched: usize,
    /// Where each network's scanner continues.
    pub cursors: Vec<(Network, Cursor)>,
    pub sales: Sales,
}

/// A range of indexes that nobody will be given.
pub struct Skipped {
    pub kind: AddressKind,
    pub from: i64,
    pub to: i64,
}

/// What the supplier has sold and the backup does not know.
pub enum Sales {
    Unknown(Vec<Sold>),
    /// The supplier does not say, for this reason.
    NotTold(String),
}

/// Makes a restored database safe to serve. Doing it again skips further addresses and harms nothing.
pub async fn adopt(app: &App, actor: &str) -> Result<Adopted> {
    let now = app.now();
    // First of all: a gateway that starts too early must not sell.
    hold(app, actor, "restore").await?;
    // Amounts asked for since the backup may still be paid, so nobody else may be asked for them on those addresses.
    app.store.write(LANE, amounts::retire).await?;
    // Events since the backup were read, and whoever read them asks only for later places.
    app.store.write(LANE, |tx| events::skip(tx, SKIPPED_EVENTS)).await?;
    let until = now.plus_days(WATCH_DAYS);
    let watched = watch_again(app, until).await?;
    let mut skipped = Vec::new();
    for kind in AddressKind::ALL {
        skipped.push(skip_indexes(app, kind, until).await?);
    }
    let read = |tx: &mut Tx| {
        let mut found = Vec::new();
        for network in Network::ALL {
            found.extend(cursors::get(tx, network)?.map(|cursor| (network, cursor)));
        }
        Ok(found)
    };
    let cursors = app.store.read(read).await?;
    Ok(Adopted { skipped, watched, cursors, sales: unknown_sales(app).await? })
}

async fn hold(app: &App, actor: &str, command: &'static str) -> Result<()> {
    let line = audit_line(app, actor, command, "took over a backup; buying is on hold".into())
        .changing("as backed up", "buying is on hold");
    let now = app.now();
    let write = move |tx: &mut Tx| {
        meta::set(tx, RESTORED_AT, &now.micros().to_string())?;
        meta::set(tx, ON_HOLD, YES)?;
        meta::bump(tx, Version::Accounts)?;
        audit::record(tx, &line)
    };
    app.store.write(LANE, write).await?;
    load_hold(app).await
}

/// An address that rested when the backup was made may have been paid since: it is watched from the backup's block on,
/// like one that is in use.
async fn watch_again(app: &App, until: Time) -> Result<usize> {
    let all = app.store.snapshot(addresses::list).await?;
    for part in all.chunks(AT_ONCE) {
        let part: Vec<String> = part.iter().map(|address| address.address.clone()).collect();
        let write =
            move |tx: &mut Tx| part.iter().try_for_each(|address| addresses::watch(tx, address, until));
        app.store.write(LANE, write).await?;
    }
    Ok(all.len())
}

/// Gives addresses from after the backup to the house: money that comes there is unmatched, not lost.
async fn skip_indexes(app: &App, kind: AddressKind, until: Time) -> Result<Skipped> {
    let xpub = app.settings.settlement.xpub(kind).clone();
    let fingerprint = xpub.fingerprint().to_string();
    let from = app.store.write(LANE, move |tx| addresses::take_indexes(tx, kind, &fingerprint, 0)).await?;
    let (end, now) = (from + SKIPPED, app.now());
    // Each part continues where the rows say that the last one ended, so running twice does the work once.
    let part = move |tx: &mut Tx| {
        let next = addresses::take_indexes(tx, kind, xpub.fingerprint(), 0)?;
        let count = (end - next).clamp(0, AT_ONCE as i64);
        addresses::take_indexes(tx, kind, xpub.fingerprint(), count)?;
        for index in next..next + count {
            derive(tx, &xpub, index, None, until, now)?;
        }
        Ok(next + count < end)
    };
    while app.store.write(LANE, part.clone()).await? {}
    Ok(Skipped { kind, from, to: end - 1 })
}

async fn unknown_sales(app: &App) -> Result<Sales> {
    let mut sold = Vec::new();
    for supplier in app.suppliers.values() {
        match supplier.sold(Time::from_micros(0)).await.told() {
            Ok(sales) => sold.extend(sales),
            Err(why) => return Ok(Sales::NotTold(why)),
        }
    }
    let read = move |tx: &mut Tx| {
        let mut unknown = Vec::new();
        for sale in &sold {
            if orders::by_id(tx, &sale.order)?.is_none() {
                unknown.push(sale.clone());
            }
        }
        Ok(unknown)
    };
    Ok(Sales::Unknown(app.store.snapshot(read).await?))
}

/// The operator has looked: allows buying again. False when it was not on hold.
pub async fn confirm(app: &App, actor: &str) -> Result<bool> {
    if !is_on_hold(app).await? {
        return Ok(false);
    }
    let line = audit_line(app, actor, "restore --confirm", "buying goes on".into())
        .changing("buying is on hold", "buying goes on");
    let write = move |tx: &mut Tx| {
        meta::set(tx, ON_HOLD, NO)?;
        meta::bump(tx, Version::Accounts)?;
        audit::record(tx, &line)
    };
    app.store.write(LANE, write).await?;
    load_hold(app).await?;
    Ok(true)
}

pub async fn is_on_hold(app: &App) -> Result<bool> {
    Ok(app.store.read(|tx| meta::get(tx, ON_HOLD)).await?.as_deref() == Some(YES))
}

/// Updates the hold in memory, which is all that purchases look at.
pub async fn load_hold(app: &App) -> Result<()> {
    app.buying_on_hold.store(is_on_hold(app).await?, Ordering::Relaxed);
    Ok(())
}
