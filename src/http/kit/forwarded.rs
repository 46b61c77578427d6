//! The caller behind trusted proxies. The list in `X-Forwarded-For` is read from the right, where the proxy nearest to
//! us has written, and as bytes: text from the caller must not hide what proxies have added. An entry that cannot be
//! read means an unknown caller, never the proxy itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::HeaderMap;
use ipnet::IpNet;

use crate::domain::client::Whereabouts;

const FORWARDED_FOR: &str = "x-forwarded-for";
/// The most proxies in a row; nobody has more of their own.
const MOST_HOPS: usize = 32;
/// The longest address with brackets, port and some blanks.
const MOST_BYTES: usize = 64;

/// The socket's address; behind a trusted proxy, the last forwarded address that is not a trusted proxy's. When all of
/// them are, it is the first one: there the request began.
pub fn whereabouts(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Whereabouts {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    if !is_trusted(&peer) {
        return Whereabouts::At(peer);
    }
    let mut nearest = peer;
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    for (nth, item) in lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')).enumerate() {
        let Some(address) = hop(item).filter(|_| nth < MOST_HOPS) else {
            return Whereabouts::Behind(peer);
        };
        nearest = address;
        if !is_trusted(&address) {
            break;
        }
    }
    Whereabouts::At(nearest)
}

/// `ip`, `ip:port`, `[v6]` or `[v6]:port`.
fn hop(item: &[u8]) -> Option<IpAddr> {
    let text = item.trim_ascii();
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= MOST_BYTES)?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            let is_whole = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
            is_whole.then_some(())?;
            Some(IpAddr::from(address.parse::<Ipv6Addr>().ok()?).to_canonical())
        }
        None => {
            let (address, port) = text.split_once(':')?;
            is_port(port).then_some(())?;
            Some(address.parse::<Ipv4Addr>().ok()?.into())
        }
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    /// The proxy that the socket belongs to, and the network of those before it.
    const PROXY: &str = "127.0.0.1";
    const TRUSTED: &str = "10.0.0.0/8";

    /// Where a request with these lines comes from; `None` when nobody can tell.
    fn told(lines: &[&[u8]]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_bytes(line).unwrap());
        }
        let trusted: Vec<IpNet> = vec![format!("{PROXY}/32").parse().unwrap(), TRUSTED.parse().unwrap()];
        let peer: IpAddr = PROXY.parse().unwrap();
        match whereabouts(peer, &headers, &trusted) {
            Whereabouts::At(address) => Some(address.to_string()),
            Whereabouts::Behind(proxy) => {
                assert_eq!(proxy, peer, "counted as the proxy is");
                None
            }
        }
    }

    #[test]
    fn the_nearest_hop_that_is_not_trusted_is_the_caller() {
        let many = vec!["10.0.0.9"; MOST_HOPS - 1].join(",");
        let too_many = vec!["10.0.0.9"; MOST_HOPS].join(",");
        let (just, beyond) = (format!("192.0.2.7,{many}"), format!("192.0.2.7,{too_many}"));
        let table: &[(&[&str], Option<&str>)] = &[
            // Without the header the proxy speaks for itself.
            (&[], Some(PROXY)),
            (&["192.0.2.7"], Some("192.0.2.7")),
            (&[" 192.0.2.7\t"], Some("192.0.2.7")),
            (&["192.0.2.7:4711"], Some("192.0.2.7")),
            (&["2001:db8::7"], Some("2001:db8::7")),
            (&["[2001:db8::7]"], Some("2001:db8::7")),
            (&["[2001:db8::7]:4711"], Some("2001:db8::7")),
            (&["::ffff:192.0.2.7"], Some("192.0.2.7")),
            (&["[::ffff:192.0.2.7]:4711"], Some("192.0.2.7")),
            // What the caller made up stands on the left.
            (&["192.0.2.1, 192.0.2.7"], Some("192.0.2.7")),
            (&["nonsense, 192.0.2.7"], Some("192.0.2.7")),
            (&[", 192.0.2.7"], Some("192.0.2.7")),
            (&["10.0.0.1, 192.0.2.7"], Some("192.0.2.7")),
            // Trusted proxies are skipped, in every form of their address.
            (&["192.0.2.7, 10.0.0.1"], Some("192.0.2.7")),
            (&["192.0.2.7, 10.0.0.1:80,10.0.0.2 , ::ffff:10.0.0.3"], Some("192.0.2.7")),
            (&["10.0.0.1, 10.0.0.2"], Some("10.0.0.1")),
            (&[&just], Some("192.0.2.7")),
            // Several lines are one list.
            (&["192.0.2.1", "192.0.2.7"], Some("192.0.2.7")),
            (&["192.0.2.7", "10.0.0.1"], Some("192.0.2.7")),
            (&["192.0.2.7, 10.0.0.1", "10.0.0.2, 10.0.0.3"], Some("192.0.2.7")),
            // Nobody can tell.
            (&[""], None),
            (&[" "], None),
            (&[","], None),
            (&["192.0.2.7,"], None),
            (&["192.0.2.7", ""], None),
            (&["192.0.2.7,,10.0.0.1"], None),
            (&["192.0.2.7, nonsense, 10.0.0.1"], None),
            (&["nonsense"], None),
            (&["unknown"], None),
            (&["_hidden"], None),
            (&["_hidden:_port"], None),
            (&["localhost"], None),
            (&["\"192.0.2.7\""], None),
            (&["for=192.0.2.7"], None),
            (&["192.0.2.7 192.0.2.8"], None),
            (&["192.0.2.7:"], None),
            (&["192.0.2.7:+80"], None),
            (&["192.0.2.7:65536"], None),
            (&["192.0.2.7:80:80"], None),
            (&["192.0.2"], None),
            (&["192.0.2.07"], None),
            (&["192.0.2.7/32"], None),
            (&["2001:db8::7:"], None),
            (&["fe80::1%eth0"], None),
            (&["[fe80::1%25eth0]:80"], None),
            (&["[2001:db8::7"], None),
            (&["2001:db8::7]"], None),
            (&["[2001:db8::7]80"], None),
            (&["[2001:db8::7]:"], None),
            (&["[192.0.2.7]:80"], None),
            (&["[]"], None),
            (&[&beyond], None),
        ];
        for (lines, expected) in table {
            let bytes: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(told(&bytes).as_deref(), *expected, "{lines:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_hide_nothing() {
        let table: &[(&[u8], Option<&str>)] = &[
            (b"\xff, 192.0.2.7", Some("192.0.2.7")),
            (b"192.0.2.1\xe9,192.0.2.7, 10.0.0.1", Some("192.0.2.7")),
            (b"192.0.2.7\xff", None),
            (b"192.0.2.7, \xc3\xa9", None),
            (b"192.0.2.7, \xff, 10.0.0.1", None),
            (b"\xa0192.0.2.7", None),
        ];
        for (line, expected) in table {
            assert_eq!(told(&[line]).as_deref(), *expected, "{line:?}");
        }
        let long = [b" ".repeat(40), b"192.0.2.7".to_vec(), b" ".repeat(20_000)].concat();
        assert_eq!(told(&[&long]).as_deref(), Some("192.0.2.7"), "blanks are cut off");
        assert_eq!(told(&[&b"1".repeat(20_000)]), None);
    }

    #[test]
    fn whoever_is_no_trusted_proxy_is_not_asked() {
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED_FOR, HeaderValue::from_static("192.0.2.7"));
        let peer: IpAddr = "198.51.100.1".parse().unwrap();
        for trusted in [vec![], vec![TRUSTED.parse().unwrap()]] {
            assert_eq!(whereabouts(peer, &headers, &trusted), Whereabouts::At(peer));
        }
    }
}
