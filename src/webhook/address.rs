//! Which addresses a message may be sent to: unicast that the whole world routes. IPv6 is an allow-list, so that a range
//! which is assigned tomorrow is refused until somebody looks at it. What only wraps an IPv4 address (mapped, compatible,
//! NAT64, 6to4, Teredo) is refused, whatever it wraps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IANA's registry of special-purpose IPv4 addresses, and multicast. Some of them are routed by the world (192.31.196.0/24
/// and the like), but nobody has an endpoint there.
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// All that is assigned as global unicast.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// What IANA's registry of special-purpose IPv6 addresses takes out of it: protocols (Teredo and others), documentation,
/// 6to4, and a service of the domain name system.
const SPECIAL_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Here a cloud tells a machine about itself, at an address that looks public.
const AZURE_HOST: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
/// And here another one does, at an address that looks private.
const AWS_HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Networks of one's own, for a sandbox that may reach them. Link-local is not among them: secrets of clouds are there.
const OWN_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];
const OWN_V6: &[(Ipv6Addr, u32)] =
    &[(Ipv6Addr::LOCALHOST, 128), (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7)];

/// Whether the whole world reaches this address, and it belongs to one host.
pub fn is_global(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !SPECIAL_V4.iter().any(|range| holds_v4(range, ip)) && ip != AZURE_HOST,
        IpAddr::V6(ip) => holds_v6(&GLOBAL_V6, ip) && !SPECIAL_V6.iter().any(|range| holds_v6(range, ip)),
    }
}

/// Whether it is an address of this machine or of a private network.
pub fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => OWN_V4.iter().any(|range| holds_v4(range, ip)),
        IpAddr::V6(ip) => OWN_V6.iter().any(|range| holds_v6(range, ip)) && ip != AWS_HOST,
    }
}

fn holds_v4((first, bits): &(Ipv4Addr, u32), ip: Ipv4Addr) -> bool {
    (ip.to_bits() ^ first.to_bits()) >> (32 - bits) == 0
}

fn holds_v6((first, bits): &(Ipv6Addr, u32), ip: Ipv6Addr) -> bool {
    (ip.to_bits() ^ first.to_bits()) >> (128 - bits) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First and last of a range that is refused, and whether the neighbours below and above it are global.
    #[rustfmt::skip]
    const REFUSED: &[(&str, &str, bool, bool)] = &[
        // IANA IPv4 Special-Purpose Address Registry, and multicast.
        ("0.0.0.0", "0.255.255.255", false, true),
        ("0.0.0.0", "0.0.0.0", false, false),
        ("10.0.0.0", "10.255.255.255", true, true),
        ("100.64.0.0", "100.127.255.255", true, true),
        ("127.0.0.0", "127.255.255.255", true, true),
        ("169.254.0.0", "169.254.255.255", true, true),
        ("172.16.0.0", "172.31.255.255", true, true),
        ("192.0.0.0", "192.0.0.255", true, true),
        ("192.0.0.0", "192.0.0.7", true, false),
        ("192.0.0.8", "192.0.0.8", false, false),
        ("192.0.0.9", "192.0.0.9", false, false),
        ("192.0.0.10", "192.0.0.10", false, false),
        ("192.0.0.170", "192.0.0.171", false, false),
        ("192.0.2.0", "192.0.2.255", true, true),
        ("192.31.196.0", "192.31.196.255", true, true),
        ("192.52.193.0", "192.52.193.255", true, true),
        ("192.88.99.0", "192.88.99.255", true, true),
        ("192.88.99.2", "192.88.99.2", false, false),
        ("192.168.0.0", "192.168.255.255", true, true),
        ("192.175.48.0", "192.175.48.255", true, true),
        ("198.18.0.0", "198.19.255.255", true, true),
        ("198.51.100.0", "198.51.100.255", true, true),
        ("203.0.113.0", "203.0.113.255", true, true),
        ("224.0.0.0", "239.255.255.255", true, false),
        ("240.0.0.0", "255.255.255.255", false, false),
        ("255.255.255.255", "255.255.255.255", false, false),
        ("168.63.129.16", "168.63.129.16", true, true),
        // IANA IPv6 Special-Purpose Address Registry, the forms that wrap IPv4, and what is not assigned.
        ("::", "::", false, false),
        ("::1", "::1", false, false),
        ("::", "::ffff:ffff", false, false),
        ("::ffff:0.0.0.0", "::ffff:255.255.255.255", false, false),
        ("::ffff:0:0:0", "::ffff:0:255.255.255.255", false, false),
        ("64:ff9b::", "64:ff9b::255.255.255.255", false, false),
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", false, false),
        ("100::", "100::ffff:ffff:ffff:ffff", false, false),
        ("100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff", false, false),
        ("200::", "3ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
        ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, true),
        ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", true, true),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", true, false),
        ("2001:1::1", "2001:1::3", false, false),
        ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", false, false),
        ("2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
        ("2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff", false, false),
        ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
        ("2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
        ("2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true, true),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true, true),
        ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", true, true),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", true, true),
        ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true, false),
        ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false),
    ];

    fn beside(ip: IpAddr, step: i8) -> Option<IpAddr> {
        match ip {
            IpAddr::V4(ip) => {
                ip.to_bits().checked_add_signed(step.into()).map(|bits| Ipv4Addr::from(bits).into())
            }
            IpAddr::V6(ip) => {
                ip.to_bits().checked_add_signed(step.into()).map(|bits| Ipv6Addr::from(bits).into())
            }
        }
    }

    #[test]
    fn every_special_range_is_refused_and_its_neighbours_are_not() {
        for (first, last, below, above) in REFUSED {
            let [start, end]: [IpAddr; 2] = [first, last].map(|text| text.parse().unwrap());
            assert!(!is_global(start), "{first}");
            assert!(!is_global(end), "{last}");
            assert_eq!(beside(start, -1).is_some_and(is_global), *below, "below {first}");
            assert_eq!(beside(end, 1).is_some_and(is_global), *above, "above {last}");
        }
    }

    #[test]
    fn addresses_of_hosts_are_global() {
        for text in [
            "1.0.0.1",
            "8.8.8.8",
            "93.184.215.14",
            "172.15.255.255",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450:4001:81b::200e",
            "3fff:1000::1",
        ] {
            let ip: IpAddr = text.parse().unwrap();
            assert!(is_global(ip) && !is_private(ip), "{text}");
        }
    }

    #[test]
    fn private_is_this_machine_and_networks_of_ones_own() {
        for text in ["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.0.1", "::1", "fd12:3456::1"] {
            assert!(is_private(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.0.0.0",
            "100.100.100.200",
            "169.254.169.254",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::2",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_private(text.parse().unwrap()), "{text}");
        }
    }
}
