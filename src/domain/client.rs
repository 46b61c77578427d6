//! Where a caller comes from: what counts as one client, and as much of its address as a log may hold.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 address, or the IPv6 network of one customer, whose addresses cost nothing.
pub fn counted(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("{}/64", Ipv6Addr::from(u128::from(address) >> 64 << 64)),
    }
}

/// Enough to see that tries come from one place, not enough to see from whom.
pub fn logged(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("{}/24", Ipv4Addr::from(u32::from(address) >> 8 << 8)),
        IpAddr::V6(address) => format!("{}/48", Ipv6Addr::from(u128::from(address) >> 80 << 80)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_cut() {
        for (address, one_client, in_logs) in [
            ("192.0.2.77", "192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2:3::4", "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ] {
            let address = address.parse().unwrap();
            assert_eq!((counted(address), logged(address)), (one_client.into(), in_logs.into()));
        }
    }
}
