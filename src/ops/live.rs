//! Pages that are told of news: whoever looks at a pay page or waits for an eSIM hears when the page would look different.
//!
//! One task for the whole process looks for news of all watched pages, twice a second, and only while somebody watches. It
//! asks the database for a short text of each, many in one statement (`store::live`), and reads in full only what has
//! changed by it, what a new block or the clock changes, and now and then the others. So it does not matter which instance
//! did what. What is told is a version of the view (`shown.rs`), never the view: the page has one renderer.

pub mod shown;
mod watches;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use self::shown::{Shown, Version};
use self::watches::{Found, Seat, Watches};
use super::checkout::progress;
use super::deposits::record;
use super::install;
use crate::app::App;
use crate::domain::ids::InvoiceId;
use crate::domain::network::Network;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::live::{self, Subject};
use crate::store::tx::Tx;
use crate::store::{cursors, invoices, orders};
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_millis(500);
/// How many are looked at, and how many are read in full, before others may use the thread.
const LOOKED_AT: usize = 200;
const READ: usize = 20;
/// How long one is told at most; after that the page asks by itself.
const LONGEST_MS: i64 = 5 * 60_000;
/// How often somebody hears that there is nothing new: proxies and clients give up what is silent.
const BEAT: Duration = Duration::from_secs(15);
const RETRY_AFTER_S: u64 = 60;

static TROUBLE: EveryMinute = EveryMinute::new();

#[derive(Default)]
pub struct Live(Mutex<Watches>);

impl Live {
    /// A panic cannot leave it half changed in a way that matters: at worst a watch ends late.
    fn watches(&self) -> MutexGuard<'_, Watches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, read: &[(u64, Subject)], mut found: HashMap<Subject, Found>) {
        let mut watches = self.watches();
        for (number, subject) in read {
            watches.tell(*number, found.remove(subject));
        }
    }

    /// How many look at pages now, and at how many different ones.
    pub fn counts(&self) -> (usize, usize) {
        let watches = self.watches();
        (watches.viewers, watches.len())
    }
}

/// A page as it is now, and somebody who hears of its news; nobody, when it is over.
pub struct Opened {
    pub shown: Shown,
    pub viewer: Option<Viewer>,
}

/// Opens the news of a pay page, for anybody who holds the id.
pub async fn of_invoice(app: &App, id: &InvoiceId, from: IpAddr) -> Result<Opened> {
    let deposit = Subject::Deposit(id.clone());
    match read_one(app, &deposit).await? {
        Some(found) => open(app, deposit, found, from),
        None => {
            let checkout = Subject::Checkout(id.clone());
            let found = read_one(app, &checkout).await?.ok_or(Refusal::InvoiceNotFound)?;
            open(app, checkout, found, from)
        }
    }
}

/// Opens the news of an install page, for anybody who may see the page.
pub async fn of_esim(app: &App, token: &str, from: IpAddr) -> Result<Opened> {
    let subject = Subject::Esim(install::open(app, token).await?.order().id.clone());
    let found = read_one(app, &subject).await?.ok_or(Refusal::NotFound)?;
    open(app, subject, found, from)
}

fn open(app: &App, subject: Subject, found: Found, from: IpAddr) -> Result<Opened> {
    let shown = found.shown.clone();
    if shown.is_over {
        return Ok(Opened { shown, viewer: None });
    }
    let limits = &app.settings.connections;
    let counted = !limits.exempt.iter().any(|network| network.contains(&from));
    let mut watches = app.live.watches();
    let seat = watches.enter(subject, found, limits.live_streams(), from, counted);
    let seat = seat.ok_or(Refusal::TooManyViewers { retry_after_secs: RETRY_AFTER_S })?;
    if !std::mem::replace(&mut watches.followed, true) {
        app.tasks.spawn(follow(Follower { app: app.clone(), has_left: false }));
    }
    drop(watches);
    let (told, until) = (shown.version, app.now().plus_millis(LONGEST_MS));
    Ok(Opened { shown, viewer: Some(Viewer { app: app.clone(), seat, told, until }) })
}

/// Somebody who looks at a page. There is one viewer less when it is dropped.
pub struct Viewer {
    app: App,
    seat: Seat,
    told: Version,
    until: Time,
}

pub enum News {
    Changed(Shown),
    /// Nothing has happened for a while.
    Nothing,
    /// It was told for long enough.
    TimeIsUp,
    /// There is nothing more to tell: the gateway stops, or what was shown is forgotten.
    NoMore,
}

impl Viewer {
    pub async fn news(&mut self) -> News {
        let left = (self.until.micros() - self.app.now().micros()).max(0).unsigned_abs();
        let beat = sleep(BEAT.min(Duration::from_micros(left)));
        tokio::pin!(beat);
        loop {
            tokio::select! {
                changed = self.seat.news.changed() => match changed {
                    Err(_) => return News::NoMore,
                    Ok(()) => {
                        let shown = self.seat.news.borrow_and_update().clone();
                        if std::mem::replace(&mut self.told, shown.version) != shown.version {
                            return News::Changed(shown);
                        }
                    }
                },
                () = &mut beat => {
                    return if self.until <= self.app.now() { News::TimeIsUp } else { News::Nothing };
                }
                () = self.app.stopping.cancelled() => return News::NoMore,
            }
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.app.live.watches().leave(self.seat.number, &self.seat.networks);
    }
}

/// The task that looks for news. When it panics, the next viewer starts another.
struct Follower {
    app: App,
    has_left: bool,
}

impl Drop for Follower {
    fn drop(&mut self) {
        if !self.has_left {
            self.app.live.watches().followed = false;
        }
    }
}

/// Tells those who look at pages, as long as there are some.
async fn follow(mut follower: Follower) {
    let app = &follower.app.clone();
    let mut heads = BTreeMap::new();
    loop {
        if let Err(error) = look(app, &mut heads).await
            && let Some(left_out) = TROUBLE.turn()
        {
            tracing::warn!(%error, left_out, "news of open pages cannot be read; trying again");
        }
        let stops = app.stopping.run_until_cancelled(sleep(EVERY)).await.is_none();
        let mut watches = app.live.watches();
        if stops || watches.is_empty() {
            // Whoever comes from now on starts another.
            watches.followed = false;
            follower.has_left = true;
            return;
        }
    }
}

/// One round. `heads` are the newest blocks of the round before.
async fn look(app: &App, heads: &mut BTreeMap<Network, i64>) -> Result<()> {
    let (looked_at, networks) = {
        let mut watches = app.live.watches();
        (watches.begin(app.now()), watches.counts_on())
    };
    if !networks.is_empty() {
        let read =
            move |tx: &mut Tx| networks.iter().map(|&network| head(tx, network)).collect::<Result<Vec<_>>>();
        let mut now = app.store.read(read).await?;
        now.retain(|(network, head)| heads.insert(*network, *head) != Some(*head));
        let grown: Vec<Network> = now.into_iter().map(|(network, _)| network).collect();
        app.live.watches().grown(&grown);
    }
    for some in looked_at.chunks(LOOKED_AT) {
        let subjects = some.to_vec();
        let gists = app.store.read(move |tx| live::gists(tx, &subjects)).await?;
        app.live.watches().compare(some, &gists.into_iter().collect());
        tokio::task::yield_now().await;
    }
    let stale = app.live.watches().stale();
    for some in stale.chunks(READ) {
        let found = read_all(app, some.iter().map(|(_, subject)| subject.clone()).collect()).await?;
        app.live.tell(some, found);
        tokio::task::yield_now().await;
    }
    Ok(())
}

fn head(tx: &mut Tx, network: Network) -> Result<(Network, i64)> {
    Ok((network, cursors::get(tx, network)?.map_or(0, |cursor| cursor.head)))
}

async fn read_one(app: &App, subject: &Subject) -> Result<Option<Found>> {
    Ok(read_all(app, vec![subject.clone()]).await?.remove(subject))
}

/// Reads these in full, together with the texts by which changes are found later.
async fn read_all(app: &App, subjects: Vec<Subject>) -> Result<HashMap<Subject, Found>> {
    let (reader, now) = (app.clone(), app.now());
    let read = move |tx: &mut Tx| {
        let mut found = HashMap::new();
        for (subject, gist) in live::gists(tx, &subjects)? {
            if let Some(shown) = view(&reader, tx, &subject, now)? {
                found.insert(subject, Found { shown, gist });
            }
        }
        Ok(found)
    };
    app.store.read_consistent(read).await
}

/// What a page would show now.
fn view(app: &App, tx: &mut Tx, subject: &Subject, now: Time) -> Result<Option<Shown>> {
    Ok(match subject {
        Subject::Checkout(id) => {
            progress::read(app, tx, id, now)?.map(|progress| shown::of_checkout(&progress, now))
        }
        Subject::Deposit(id) => match invoices::by_id(tx, id)? {
            Some(invoice) => Some(shown::of_deposit(&record::read(app, tx, invoice)?, now)),
            None => None,
        },
        Subject::Esim(id) => orders::by_id(tx, id)?.map(|order| shown::of_esim(&order)),
    })
}
