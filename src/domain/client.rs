//! Where a caller comes from: what counts as one client, the shares of its networks, and how much of its address a log
//! may hold.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Enough to see that tries come from one place, not enough to identify a person.
pub fn logged(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("{}/24", Ipv4Addr::from(u32::from(address) >> 8 << 8)),
        IpAddr::V6(address) => format!("{}/48", Ipv6Addr::from(u128::from(address) >> 80 << 80)),
    }
}

/// Where a request comes from, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    At(IpAddr),
    /// Somewhere behind this proxy, which did not say where.
    Behind(IpAddr),
}

impl Whereabouts {
    /// The address that limits count by. Callers whose own address is unknown share their proxy's.
    pub fn counted(self) -> IpAddr {
        match self {
            Whereabouts::At(address) | Whereabouts::Behind(address) => address,
        }
    }

    /// The caller's own address, to compare with a list of allowed ones.
    pub fn known(self) -> Option<IpAddr> {
        match self {
            Whereabouts::At(address) => Some(address),
            Whereabouts::Behind(_) => None,
        }
    }
}

/// How much of an address counts as one: a client, whose single addresses cost nothing, or a larger network of somebody
/// who has many. An IPv4 address counts by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// An IPv4 address, or an IPv6 /64.
    Client,
    /// An IPv6 /56.
    Site,
    /// An IPv6 /48.
    Area,
}

/// How many of something a network of each width may have, or has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    pub client: i64,
    pub site: i64,
    pub area: i64,
}

impl Shares {
    pub fn of(&self, width: Width) -> i64 {
        match width {
            Width::Client => self.client,
            Width::Site => self.site,
            Width::Area => self.area,
        }
    }

    /// Adds one for this width.
    pub fn count(&mut self, width: Width) {
        match width {
            Width::Client => self.client += 1,
            Width::Site => self.site += 1,
            Width::Area => self.area += 1,
        }
    }
}

/// The networks that an address counts in, the widest first.
pub fn networks(address: IpAddr) -> Vec<(Width, IpAddr)> {
    match address.to_canonical() {
        IpAddr::V4(address) => vec![(Width::Client, address.into())],
        IpAddr::V6(address) => [(Width::Area, 80), (Width::Site, 72), (Width::Client, 64)]
            .map(|(width, rest)| (width, Ipv6Addr::from(u128::from(address) >> rest << rest).into()))
            .into(),
    }
}

/// A client as rows name it: a word for each of its networks, the widest first, each with a slash after it. This keeps
/// the rows of a wider network together in an index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin(String);

impl Origin {
    /// `word` hides an address, and gives the same word for the same address.
    pub fn new(address: IpAddr, word: impl Fn(Width, IpAddr) -> String) -> Origin {
        let word = |(width, network)| format!("{}/", word(width, network));
        Origin(networks(address).into_iter().map(word).collect())
    }

    /// An origin as it was stored.
    pub fn from_text(text: impl Into<String>) -> Origin {
        Origin(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The client alone, without its wider networks.
    pub fn client(&self) -> Rows<'_> {
        Rows(self.0.strip_suffix('/').unwrap_or(&self.0))
    }

    /// Whether one of its networks has used up its share.
    pub fn is_full(&self, has: Shares, most: Shares) -> bool {
        self.networks().into_iter().any(|(width, _)| has.of(width) >= most.of(width))
    }

    /// The networks that the client counts in, the widest first.
    pub fn networks(&self) -> Vec<(Width, Rows<'_>)> {
        let ends: Vec<usize> = self.0.match_indices('/').map(|(at, _)| at).collect();
        let widths: &[Width] =
            if ends.len() == 1 { &[Width::Client] } else { &[Width::Area, Width::Site, Width::Client] };
        widths.iter().zip(ends).map(|(width, end)| (*width, Rows(&self.0[..end]))).collect()
    }
}

/// The rows of a network: from `from` on and before `before`, in byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rows<'a>(&'a str);

impl Rows<'_> {
    pub fn from(self) -> String {
        format!("{}/", self.0)
    }

    /// In byte order the character after the slash is `0`.
    pub fn before(self) -> String {
        format!("{}0", self.0)
    }

    pub fn hold(self, origin: &Origin) -> bool {
        origin.0.strip_prefix(self.0).is_some_and(|rest| rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_cut() {
        for (address, in_logs) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ] {
            assert_eq!(logged(address.parse().unwrap()), in_logs);
        }
    }

    #[test]
    fn a_share_is_used_up_by_any_network() {
        let origin = |address: &str| Origin::new(address.parse().unwrap(), |_, network| format!("{network}"));
        let most = Shares { client: 1, site: 2, area: 4 };
        let (v4, v6) = (origin("192.0.2.77"), origin("2001:db8:1:2:3::4"));
        for (client, site, area, full) in [
            (0, 0, 0, [false, false]),
            (0, 1, 3, [false, false]),
            (1, 1, 1, [true, true]),
            (0, 2, 2, [false, true]),
            (0, 0, 4, [false, true]),
        ] {
            let has = Shares { client, site, area };
            assert_eq!([v4.is_full(has, most), v6.is_full(has, most)], full, "{has:?}");
        }
    }

    #[test]
    fn rows_of_a_wider_network_stand_together() {
        let origin = |address: &str| {
            let word = |width, network: IpAddr| format!("{width:?}-{network}");
            Origin::new(address.parse().unwrap(), word)
        };
        let shares = Shares { client: 1, site: 2, area: 4 };
        for (one, other, shared) in [
            ("192.0.2.77", "::ffff:192.0.2.77", vec![1]),
            ("192.0.2.77", "192.0.2.78", vec![]),
            ("2001:db8:1:2:3::4", "2001:db8:1:2::", vec![4, 2, 1]),
            ("2001:db8:1:2::1", "2001:db8:1:ff::1", vec![4, 2]),
            ("2001:db8:1:2::1", "2001:db8:1:102::1", vec![4]),
            ("2001:db8:1:2::1", "2001:db8:2:2::1", vec![]),
            ("2001:db8:1:2::1", "192.0.2.77", vec![]),
        ] {
            let (one, other) = (origin(one), origin(other));
            let together: Vec<i64> = one
                .networks()
                .into_iter()
                .filter(|(_, rows)| {
                    let between =
                        rows.from().as_str() <= other.as_str() && other.as_str() < rows.before().as_str();
                    assert_eq!(rows.hold(&other), between);
                    between
                })
                .map(|(width, _)| shares.of(width))
                .collect();
            assert_eq!(together, shared, "{one:?} {other:?}");
        }
    }
}
