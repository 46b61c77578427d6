//! Settings of connections: how many there may be, how many one client may hold, and how long they last.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipnet::IpNet;

use super::{ConfigError, Mode, Raw, Spec, spec, whole};
use crate::domain::client::Shares;

#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec("max_connections", "4096", "open connections at most"),
    spec("connections_per_client", "", "connections of one IPv4 address or IPv6 /64 at most (default: an eighth of all, and in a sandbox any number from loopback)"),
    spec("keep_alive_s", "75", "seconds that a connection stays open between two requests"),
    spec("http2_age_s", "3600", "seconds after which an HTTP/2 connection is asked to end"),
    spec("write_stall_s", "30", "seconds that an answer waits for a client that reads nothing of it"),
];

#[derive(Clone, Debug)]
pub struct Connections {
    pub most: usize,
    /// How many a client may hold; without it, an eighth of all.
    pub per_client: Option<usize>,
    /// Networks that may hold any number.
    pub exempt: Vec<IpNet>,
    pub keep_alive: Duration,
    pub http2_age: Duration,
    pub write_stall: Duration,
}

impl Connections {
    pub fn check(raw: &Raw, mode: Mode, trusted_proxies: &[IpNet]) -> Result<Connections, ConfigError> {
        let count = "must be a whole number from 1 to 1000000";
        let seconds = |name| {
            let read = raw.require(name, "must be seconds from 1 to 86400", whole(1, 86_400))?;
            Ok(Duration::from_secs(read.unsigned_abs()))
        };
        let per_client = raw.parse("connections_per_client", count, whole(1, 1_000_000))?;
        let mut exempt = trusted_proxies.to_vec();
        // Who names a number means it for everybody.
        if mode == Mode::Sandbox && per_client.is_none() {
            exempt.push(IpNet::from(IpAddr::from(Ipv6Addr::LOCALHOST)));
            exempt.extend(IpNet::new(Ipv4Addr::LOCALHOST.into(), 8));
        }
        Ok(Connections {
            most: raw.require("max_connections", count, whole(1, 1_000_000))? as usize,
            per_client: per_client.map(|count| count as usize),
            exempt,
            keep_alive: seconds("keep_alive_s")?,
            http2_age: seconds("http2_age_s")?,
            write_stall: seconds("write_stall_s")?,
        })
    }

    /// What each width of network may hold. Wider ones hold more, so that neighbours are not shut out at once.
    pub fn shares(&self) -> Shares {
        let client = self.per_client.unwrap_or_else(|| self.most.div_ceil(8)) as i64;
        Shares { client, site: client * 2, area: client * 4 }
    }
}
