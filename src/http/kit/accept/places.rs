//! The places for connections, and who holds them. A client, and each wider network around it, holds at most its share.
//! When a share or all places are taken, the longest idle connection of the largest network makes room; a connection
//! that is being served never does. Only coming and going takes the lock; a request does not.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipnet::IpNet;
use metrics::gauge;

use super::life::Life;
use crate::config::Connections;
use crate::domain::client::{Shares, Width, networks};

/// How many connections may say farewell at a time, beyond all places; further ones are cut off.
pub const MOST_LEAVING: usize = 64;

pub struct Places {
    most: usize,
    shares: Shares,
    exempt: Vec<IpNet>,
    crowd: Mutex<Crowd>,
}

#[derive(Default)]
struct Crowd {
    next: u64,
    open: HashMap<u64, Guest>,
    networks: HashMap<Network, Arc<AtomicUsize>>,
    placed: usize,
}

/// A network, as places are counted. Exempt clients are counted apart from their neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Network {
    exempt: bool,
    width: Width,
    address: IpAddr,
}

struct Guest {
    life: Arc<Life>,
    /// Its networks, the narrowest first, with how many places each holds and may hold.
    networks: Vec<(Network, Arc<AtomicUsize>, usize)>,
    /// False once it was sent away, while it is still open.
    is_placed: bool,
}

impl Guest {
    /// How full the fullest share among its networks is, in thousandths.
    fn load(&self) -> usize {
        self.networks.iter().map(|(_, held, share)| held.load(Relaxed) * 1000 / share).max().unwrap_or(0)
    }
}

/// A connection's place, until it is dropped.
pub struct Place {
    places: Arc<Places>,
    number: u64,
    /// Whether another connection had to make room for it.
    pub was_taken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The share of a network, with connections that are all being served.
    Share,
    /// All places, likewise.
    House,
}

impl Places {
    pub fn new(limits: &Connections) -> Arc<Places> {
        Arc::new(Places {
            most: limits.most,
            shares: limits.shares(),
            exempt: limits.exempt.clone(),
            crowd: Mutex::default(),
        })
    }

    /// A panic cannot leave it half changed: each statement leaves it whole.
    fn crowd(&self) -> MutexGuard<'_, Crowd> {
        self.crowd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn enter(self: &Arc<Places>, address: IpAddr, life: &Arc<Life>) -> Result<Place, Full> {
        let exempt = self.exempt.iter().any(|network| network.contains(&address));
        let share = |width| if exempt { self.most } else { self.shares.of(width) as usize };
        let networks = networks(address).into_iter().rev();
        let networks: Vec<(Network, usize)> =
            networks.map(|(width, address)| (Network { exempt, width, address }, share(width))).collect();
        let mut crowd = self.crowd();
        // A connection that leaves the narrowest full network leaves the wider ones too.
        let full = networks.iter().find(|(network, share)| !exempt && crowd.held(network) >= *share);
        let was_taken = match full {
            Some((network, _)) if crowd.make_room(Some(network)) => true,
            Some(_) => return Err(Full::Share),
            None if crowd.placed < self.most => false,
            None if crowd.make_room(None) => true,
            None => return Err(Full::House),
        };
        let number = crowd.seat(networks, life.clone());
        gauge!("simgate_connections_open").increment(1);
        Ok(Place { places: self.clone(), number, was_taken })
    }

    /// Asks everybody to leave.
    pub fn close(&self) {
        for guest in self.crowd().open.values() {
            guest.life.send_away(false);
        }
    }
}

impl Crowd {
    fn held(&self, network: &Network) -> usize {
        self.networks.get(network).map_or(0, |held| held.load(Relaxed))
    }

    fn seat(&mut self, networks: Vec<(Network, usize)>, life: Arc<Life>) -> u64 {
        let counted = |(network, share)| {
            let held = self.networks.entry(network).or_default();
            held.fetch_add(1, Relaxed);
            (network, held.clone(), share)
        };
        let networks = networks.into_iter().map(counted).collect();
        self.placed += 1;
        self.next += 1;
        self.open.insert(self.next, Guest { life, networks, is_placed: true });
        self.next
    }

    /// Sends away the longest idle connection of the largest network, or only of `within`; false when none is idle.
    fn make_room(&mut self, within: Option<&Network>) -> bool {
        let at_once = self.open.len() - self.placed >= MOST_LEAVING;
        while let Some((number, guest)) = self.longest_idle(within) {
            guest.life.send_away(at_once);
            // A connection that got a request in this moment keeps its place until that is answered. So only
            // connections that may say farewell are ever served without a place.
            if !guest.life.is_served() {
                self.unseat(number);
                return true;
            }
        }
        false
    }

    fn longest_idle(&self, within: Option<&Network>) -> Option<(u64, &Guest)> {
        let inside = |guest: &Guest| {
            within.is_none_or(|network| guest.networks.iter().any(|(own, ..)| own == network))
        };
        let candidates = self.open.iter().filter(|(_, guest)| guest.is_placed && inside(guest));
        let idle = candidates.filter_map(|(number, guest)| {
            let since = guest.life.dispensable_since()?;
            Some(((guest.load(), Reverse((since, *number))), guest))
        });
        let ((_, Reverse((_, number))), guest) = idle.max_by_key(|(rank, _)| *rank)?;
        Some((number, guest))
    }

    fn unseat(&mut self, number: u64) {
        let Some(guest) = self.open.get_mut(&number).filter(|guest| guest.is_placed) else { return };
        guest.is_placed = false;
        for (network, held, _) in &guest.networks {
            if held.fetch_sub(1, Relaxed) == 1 {
                self.networks.remove(network);
            }
        }
        self.placed -= 1;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut crowd = self.places.crowd();
        crowd.unseat(self.number);
        crowd.open.remove(&self.number);
        gauge!("simgate_connections_open").decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::Version;

    use super::super::life::UnderWay;
    use super::*;

    fn places(most: usize, per_client: usize, exempt: &str) -> Arc<Places> {
        let second = Duration::from_secs(1);
        Places::new(&Connections {
            most,
            per_client: Some(per_client),
            exempt: exempt.parse().into_iter().collect(),
            keep_alive: second,
            http2_age: second,
            write_stall: second,
            live_streams: None,
        })
    }

    fn enter(places: &Arc<Places>, address: &str, life: &Arc<Life>) -> Result<Place, Full> {
        places.enter(address.parse().unwrap(), life)
    }

    /// A connection that serves a request.
    fn busy() -> (Arc<Life>, UnderWay) {
        let life = Life::idle(0);
        let request = UnderWay::begin(&life, Version::HTTP_11).unwrap();
        (life, request)
    }

    #[test]
    fn wider_networks_hold_more() {
        let places = places(100, 2, "");
        let mut held = Vec::new();
        let mut fill = |addresses: &mut dyn Iterator<Item = String>| {
            addresses.fold(0, |count, address| {
                let (life, request) = busy();
                let entered = enter(&places, &address, &life);
                assert!(!matches!(entered, Err(Full::House)));
                let count = count + usize::from(entered.is_ok());
                held.push((entered, request));
                count
            })
        };
        assert_eq!(fill(&mut (1..9).map(|_| "192.0.2.1".into())), 2);
        assert_eq!(fill(&mut (1..9).map(|_| "192.0.2.2".into())), 2);
        assert_eq!(fill(&mut (1..9).map(|n| format!("2001:db8:1:1::{n}"))), 2);
        assert_eq!(fill(&mut (1..9).map(|n| format!("2001:db8:1:1{n}::1"))), 2);
        assert_eq!(fill(&mut (1..9).map(|n| format!("2001:db8:1:{n}00::1"))), 4);
        assert_eq!(fill(&mut (1..9).map(|n| format!("2001:db8:{n}::1"))), 7);
        held.clear();
        let crowd = places.crowd();
        assert_eq!((crowd.networks.len(), crowd.placed, crowd.open.len()), (0, 0, 0));
    }

    #[test]
    fn the_longest_idle_of_the_largest_network_makes_room() {
        let places = places(6, 3, "192.0.2.9/32");
        let (small, newer, older) = (Life::idle(1), Life::idle(20), Life::idle(10));
        let (served, request) = busy();
        let mut held = Vec::new();
        for (address, life) in [
            ("198.51.100.1", &small),
            ("192.0.2.1", &newer),
            ("192.0.2.1", &older),
            ("192.0.2.1", &served),
            ("192.0.2.9", &served),
            ("192.0.2.9", &served),
        ] {
            held.push(enter(&places, address, life).unwrap());
        }
        assert!(held.iter().all(|place| !place.was_taken));
        let gone = || [&small, &newer, &older, &served].map(|life| life.is_leaving());
        // All places are taken.
        let (visitor, asks) = busy();
        let first = enter(&places, "203.0.113.1", &visitor).unwrap();
        assert!(first.was_taken);
        assert_eq!(gone(), [false, false, true, false]);
        // By load: 192.0.2.1 holds two of three, the others one of three, the exempt two of six.
        let second = enter(&places, "203.0.113.2", &visitor).unwrap();
        assert_eq!(gone(), [false, true, true, false]);
        let third = enter(&places, "203.0.113.3", &visitor).unwrap();
        assert_eq!(gone(), [true, true, true, false]);
        // All are served.
        assert!(matches!(enter(&places, "203.0.113.4", &visitor), Err(Full::House)));
        assert!(matches!(enter(&places, "192.0.2.9", &visitor), Err(Full::House)));
        // A connection that was sent away gives no place back when it goes.
        held.drain(0..3);
        assert!(matches!(enter(&places, "203.0.113.4", &visitor), Err(Full::House)));
        drop((request, asks));
        assert!(enter(&places, "203.0.113.4", &visitor).unwrap().was_taken);
        assert_eq!(served.is_leaving() as usize + visitor.is_leaving() as usize, 1);
        drop((first, second, third));
    }

    #[test]
    fn a_full_share_is_not_made_room_for_by_others() {
        let places = places(100, 2, "");
        let (other, idle, newcomer) = (Life::idle(1), Life::idle(50), Life::idle(60));
        let (served, _request) = busy();
        let _held = [("198.51.100.1", &other), ("192.0.2.1", &served), ("192.0.2.1", &idle)]
            .map(|(address, life)| enter(&places, address, life).unwrap());
        let _entered = enter(&places, "192.0.2.1", &newcomer).unwrap();
        assert!(idle.is_leaving() && !other.is_leaving() && !served.is_leaving());
        let _request = UnderWay::begin(&newcomer, Version::HTTP_11).unwrap();
        assert!(matches!(enter(&places, "192.0.2.1", &idle), Err(Full::Share)));
        assert!(!other.is_leaving());
    }

    #[test]
    fn newcomers_are_given_time_to_ask() {
        let places = places(2, 2, "");
        let (new, silent, newcomer) = (Life::silent(100), Life::silent(5_000), Life::silent(0));
        let _held = [("192.0.2.1", &silent), ("192.0.2.2", &new)]
            .map(|(address, life)| enter(&places, address, life).unwrap());
        let _entered = enter(&places, "192.0.2.3", &newcomer).unwrap();
        assert!(silent.is_leaving());
        assert!(matches!(enter(&places, "192.0.2.3", &newcomer), Err(Full::House)));
        assert!(!new.is_leaving() && !newcomer.is_leaving());
    }

    #[test]
    fn few_may_say_farewell() {
        let places = places(1, 1, "0.0.0.0/0");
        let lives: Vec<Arc<Life>> = (0..MOST_LEAVING as u64 + 2).map(Life::idle).collect();
        let _held: Vec<Place> = lives.iter().map(|life| enter(&places, "192.0.2.1", life).unwrap()).collect();
        let (last, gone) = lives.split_last().unwrap();
        assert!(!last.is_leaving() && gone.iter().all(|life| life.is_leaving()));
        let hurried: Vec<bool> = gone.iter().map(|life| life.leaves_at_once()).collect();
        assert_eq!(hurried.iter().position(|hurried| *hurried), Some(MOST_LEAVING));
        // A connection that leaves at once takes no request, and is as idle as before.
        let hurried = gone.last().unwrap();
        assert!(UnderWay::begin(hurried, Version::HTTP_2).is_none());
        assert_eq!(hurried.idle_since(), Some(MOST_LEAVING as u64));
        assert!(UnderWay::begin(last, Version::HTTP_2).is_some());
    }
}
