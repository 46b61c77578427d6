//! Who looks at which pages, and what is known of each. All who look at the same share one watch, which ends with the last
//! of them.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::ops::Bound::{Excluded, Unbounded};

use tokio::sync::watch;

use super::shown::Shown;
use crate::domain::client::{self, Shares, Width};
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::store::live::Subject;

/// How many pages one client may have open, and the wider networks around it.
const SHARES: Shares = Shares { client: 50, site: 100, area: 200 };
/// How many are looked at in a round: of those where something is under way, and of the others, in turn.
const BRISK: usize = 1_000;
const IDLE: usize = 1_000;
/// How many are read in a round because something happened, and how many because nobody has for long.
const READ: usize = 200;
const SWEPT: usize = 10;
/// After so many rounds one is read even if nothing seems to have happened.
const LONG: u64 = 60;

#[derive(Default)]
pub struct Watches {
    numbers: HashMap<Subject, u64>,
    of: BTreeMap<u64, Watch>,
    last_number: u64,
    round: u64,
    /// The last of each kind that was looked at; the next round goes on from there.
    turns: Turns,
    pub viewers: usize,
    by_network: HashMap<(Width, IpAddr), i64>,
    /// Whether there is a follower to tell them.
    pub followed: bool,
}

#[derive(Default)]
struct Turns {
    brisk: u64,
    idle: u64,
    read: u64,
}

struct Watch {
    subject: Subject,
    viewers: usize,
    tell: watch::Sender<Shown>,
    gist: String,
    /// It may look different by now.
    stale: bool,
    /// The round in which it was read.
    read_in: u64,
}

/// What a look at the database found.
pub struct Found {
    pub shown: Shown,
    pub gist: String,
}

/// Somebody's place among the viewers.
pub struct Seat {
    pub number: u64,
    pub networks: Vec<(Width, IpAddr)>,
    pub news: watch::Receiver<Shown>,
}

impl Watches {
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Gives a place to somebody who has just read this, unless there is none left. `counted` is false for those who may
    /// have any number.
    pub fn enter(
        &mut self,
        subject: Subject,
        found: Found,
        most: usize,
        from: IpAddr,
        counted: bool,
    ) -> Option<Seat> {
        let networks = if counted { client::networks(from) } else { Vec::new() };
        let has_room = |network: &(Width, IpAddr)| {
            self.by_network.get(network).copied().unwrap_or(0) < SHARES.of(network.0)
        };
        if self.viewers >= most || !networks.iter().all(has_room) {
            return None;
        }
        self.viewers += 1;
        for network in &networks {
            *self.by_network.entry(*network).or_default() += 1;
        }
        let number = *self.numbers.entry(subject.clone()).or_insert(self.last_number + 1);
        self.last_number = self.last_number.max(number);
        let version = found.shown.version;
        let round = self.round;
        let watch = self.of.entry(number).or_insert_with(|| Watch {
            subject,
            viewers: 0,
            tell: watch::Sender::new(found.shown),
            gist: found.gist,
            stale: false,
            read_in: round,
        });
        watch.viewers += 1;
        // One of the two reads is older than the other, and nobody knows which.
        watch.stale |= watch.tell.borrow().version != version;
        Some(Seat { number, networks, news: watch.tell.subscribe() })
    }

    pub fn leave(&mut self, number: u64, networks: &[(Width, IpAddr)]) {
        self.viewers -= 1;
        for network in networks {
            if let Some(count) = self.by_network.get_mut(network) {
                *count -= 1;
                if *count == 0 {
                    self.by_network.remove(network);
                }
            }
        }
        if let Some(watch) = self.of.get_mut(&number) {
            watch.viewers -= 1;
            if watch.viewers == 0 {
                self.end(number);
            }
        }
    }

    /// Ends a watch. Whoever is left hears of it.
    pub fn end(&mut self, number: u64) {
        if let Some(watch) = self.of.remove(&number) {
            self.numbers.remove(&watch.subject);
        }
    }

    /// Begins a round: what is to be looked at.
    pub fn begin(&mut self, now: Time) -> Vec<Subject> {
        self.round += 1;
        let mut left = SWEPT;
        for watch in self.of.values_mut() {
            watch.stale |= watch.tell.borrow().turns_at.is_some_and(|time| time <= now);
            if !watch.stale && left > 0 && watch.read_in + LONG < self.round {
                watch.stale = true;
                left -= 1;
            }
        }
        let moves = |watch: &Watch| watch.tell.borrow().moves;
        let brisk = self.in_turn(self.turns.brisk, BRISK, |watch| !watch.stale && moves(watch));
        let idle = self.in_turn(self.turns.idle, IDLE, |watch| !watch.stale && !moves(watch));
        self.turns.brisk = brisk.last().map_or(0, |(number, _)| *number);
        self.turns.idle = idle.last().map_or(0, |(number, _)| *number);
        brisk.into_iter().chain(idle).map(|(_, subject)| subject).collect()
    }

    /// The networks whose next block somebody waits for.
    pub fn counts_on(&self) -> Vec<Network> {
        let mut networks: Vec<Network> =
            self.of.values().flat_map(|watch| watch.tell.borrow().counts_on.clone()).collect();
        networks.sort_unstable();
        networks.dedup();
        networks
    }

    /// There are new blocks on these networks.
    pub fn grown(&mut self, networks: &[Network]) {
        for watch in self.of.values_mut() {
            watch.stale |= watch.tell.borrow().counts_on.iter().any(|network| networks.contains(network));
        }
    }

    /// What a look at some of them found. Those that are not there any more are missing in it.
    pub fn compare(&mut self, looked_at: &[Subject], gists: &HashMap<Subject, String>) {
        for subject in looked_at {
            let number = self.numbers.get(subject);
            if let Some(watch) = number.and_then(|number| self.of.get_mut(number)) {
                watch.stale |= gists.get(subject) != Some(&watch.gist);
            }
        }
    }

    /// What is to be read now, in turn.
    pub fn stale(&mut self) -> Vec<(u64, Subject)> {
        let stale = self.in_turn(self.turns.read, READ, |watch| watch.stale);
        self.turns.read = stale.last().map_or(0, |(number, _)| *number);
        stale
    }

    /// Tells all who look at it what was read.
    pub fn tell(&mut self, number: u64, found: Option<Found>) {
        let Some(Found { shown, gist }) = found else { return self.end(number) };
        let Some(watch) = self.of.get_mut(&number) else { return };
        (watch.gist, watch.stale, watch.read_in) = (gist, false, self.round);
        // Also when it is the same as before: somebody may have come with another one.
        watch.tell.send_replace(shown);
    }

    /// At most so many of a kind, from the one after `last` on and then from the first.
    fn in_turn(&self, last: u64, most: usize, kind: impl Fn(&Watch) -> bool) -> Vec<(u64, Subject)> {
        let (after, before) = (self.of.range((Excluded(last), Unbounded)), self.of.range(..=last));
        let wanted = after.chain(before).filter(|(_, watch)| kind(watch)).take(most);
        wanted.map(|(number, watch)| (*number, watch.subject.clone())).collect()
    }
}
