//! A host, as URLs and `Host` headers name it: a name or an address, without its port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// In lower case.
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Reads `shop.example:443`, `127.0.0.1` or `[::1]:8402`. An authority with anything else in it, such as a user's
    /// name, gives `None`. Programs spell an address in other ways too (`127.1`), but browsers never send those.
    pub fn parse(authority: &str) -> Option<Host> {
        let is_port =
            |rest: &str| rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
        if let Some(rest) = authority.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            let whole = rest.is_empty() || is_port(rest);
            return whole.then(|| Host::Address(IpAddr::from(address).to_canonical()));
        }
        let (host, rest) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        // A name may end in a dot, for the root.
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_name = |text: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
            text.split('.').all(|label| !label.is_empty() && label.bytes().all(plain))
        };
        if !is_name(host) || !(rest.is_empty() || is_port(rest)) {
            return None;
        }
        Some(match host.parse::<Ipv4Addr>() {
            Ok(address) => Host::Address(address.into()),
            Err(_) => Host::Name(host.to_ascii_lowercase()),
        })
    }

    pub fn of_url(url: &str) -> Option<Host> {
        let (_, rest) = url.split_once("://")?;
        Host::parse(rest.split('/').next()?)
    }

    /// Whether it leads to this machine and nowhere else.
    pub fn is_loopback(&self) -> bool {
        match self {
            Host::Name(name) => name == "localhost",
            Host::Address(address) => address.is_loopback(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_off_authorities() {
        for (authority, loopback) in [
            ("localhost", true),
            ("LocalHost:8402", true),
            ("localhost.", true),
            ("localhost:", true),
            ("127.0.0.1:8402", true),
            ("127.8.9.10", true),
            ("[::1]", true),
            ("[::1]:8402", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("evil.localhost", false),
            ("evil-localhost", false),
            ("0.0.0.0", false),
            ("128.0.0.1", false),
            ("[::2]", false),
            ("127.1", false),
            ("0x7f000001", false),
            ("2130706433", false),
            ("shop.example:443", false),
        ] {
            let host = Host::parse(authority).expect(authority);
            assert_eq!(host.is_loopback(), loopback, "{authority}");
        }
        assert_eq!(Host::parse("Shop.Example:8443"), Some(Host::Name("shop.example".into())));
        assert_eq!(Host::of_url("https://Shop.Example:8443/pay"), Host::parse("shop.example"));
        for wrong in [
            "",
            ".",
            ":80",
            "localhost..",
            "a b",
            "localhost:80:80",
            "localhost:x",
            "evil@localhost",
            "::1",
            "[::1",
            "[::1]x",
            "[localhost]",
            "localhost,evil",
            "localhost/evil",
            "localhost#",
            "lócalhost",
        ] {
            assert_eq!(Host::parse(wrong), None, "{wrong}");
        }
    }
}
