//! Settings of connections: how many there may be, how many one client may hold, and how long they last.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipnet::IpNet;

use super::{ConfigError, Mode, Raw, Spec, spec, whole};
use crate::domain::client::Shares;

#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec("max_connections", "4096", "how many connections may be open"),
    spec("connections_per_client", "", "how many connections one IPv4 address or IPv6 /64 may hold (default: an eighth of all, and in a sandbox any number from loopback)"),
    spec("keep_alive_s", "75", "seconds that a connection stays open between two requests"),
    spec("http2_age_s", "3600", "seconds after which an HTTP/2 connection is asked to end"),
    spec("live_streams", "", "how many pages may be told of news as it happens; others ask now and then, and with 0 all do (default: half of max_connections)"),
    spec("write_stall_s", "30", "seconds that an answer waits for a client that has stopped reading it"),
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
    /// How many pages may hold one open to be told of news; without it, half of all.
    pub live_streams: Option<usize>,
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
        // A number that was set holds for loopback too.
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
            live_streams: raw
                .parse("live_streams", "must be a whole number from 0 to 1000000", whole(0, 1_000_000))?
                .map(|count| count as usize),
        })
    }

    /// How many pages may be told of news at once. Half of the places are left for those who ask for something.
    pub fn live_streams(&self) -> usize {
        self.live_streams.unwrap_or(self.most / 2)
    }

    /// What each width of network may hold. Wider ones hold more, so that neighbours are not shut out at once.
    pub fn shares(&self) -> Shares {
        let client = self.per_client.unwrap_or_else(|| self.most.div_ceil(8)) as i64;
        Shares { client, site: client * 2, area: client * 4 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mode: Mode, flags: &[(&str, &str)]) -> Connections {
        let flags = flags.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let raw = Raw::collect(&flags, std::iter::empty(), None).unwrap();
        Connections::check(&raw, mode, &["192.0.2.0/24".parse().unwrap()]).unwrap()
    }

    #[test]
    fn proxies_are_exempt_and_loopback_in_a_sandbox() {
        let set = [("connections_per_client", "5")];
        for (mode, flags, loopback) in
            [(Mode::Sandbox, &[][..], true), (Mode::Sandbox, &set[..], false), (Mode::Live, &[][..], false)]
        {
            let read = read(mode, flags);
            let exempt = |text: &str| {
                let address: IpAddr = text.parse().unwrap();
                read.exempt.iter().any(|network| network.contains(&address))
            };
            assert!(exempt("192.0.2.7") && !exempt("198.51.100.1"));
            assert_eq!([exempt("127.0.0.9"), exempt("::1")], [loopback; 2]);
        }
    }

    #[test]
    fn pages_hold_half_unless_told_otherwise() {
        let streams = |flags| read(Mode::Live, flags).live_streams();
        assert_eq!(streams(&[]), 2048);
        assert_eq!(streams(&[("max_connections", "100")]), 50);
        assert_eq!(streams(&[("live_streams", "0")]), 0);
    }

    #[test]
    fn a_client_holds_an_eighth_unless_told_otherwise() {
        let shares = |flags| read(Mode::Live, flags).shares();
        assert_eq!(shares(&[]), Shares { client: 512, site: 1024, area: 2048 });
        assert_eq!(shares(&[("max_connections", "3")]), Shares { client: 1, site: 2, area: 4 });
        assert_eq!(shares(&[("connections_per_client", "5")]), Shares { client: 5, site: 10, area: 20 });
    }
}
