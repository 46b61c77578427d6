//! Settings of webhooks: where messages to partners may be sent. A sandbox may send them by http and to any port.

use super::{ConfigError, Host, Mode, Raw, Spec, flag, spec};
use crate::webhook::{Rules, host_of};

#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec("webhook_ports", "443", "ports of partners' endpoints that messages may be sent to, separated by commas; a sandbox sends to any"),
    spec("webhook_allow_private", "false", "true to let a sandbox send messages to this machine and to private networks"),
];

/// What may be sent where. `urls` are our own.
pub fn check(raw: &Raw, mode: Mode, urls: [&str; 3]) -> Result<Rules, ConfigError> {
    let ports = raw.require("webhook_ports", "must be ports from 1 to 65535, separated by commas", ports)?;
    let allow_private = raw.require("webhook_allow_private", "must be true or false", flag)?;
    if mode == Mode::Live && allow_private {
        raw.does_not_fit(format!(
            "webhook_allow_private ({}) is true, but mode is live: partners could reach your own network",
            raw.source("webhook_allow_private")
        ));
    }
    let sandbox = mode == Mode::Sandbox;
    // Whether loopback may be reached is said by `allow_private`; the receiver of a test is as much there as we are.
    let is_loopback = |url: &&str| Host::of_url(url).is_some_and(|host| host.is_loopback());
    let own_hosts = urls.into_iter().filter(|url| !is_loopback(url)).filter_map(host_of).collect();
    Ok(Rules { plain_http: sandbox, ports: (!sandbox).then_some(ports), allow_private, own_hosts })
}

fn ports(text: &str) -> Option<Vec<u16>> {
    let port = |item: &str| item.trim().parse().ok().filter(|port| *port > 0);
    text.split(',').map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const URLS: [&str; 3] = ["https://Gateway.Example/", "http://127.0.0.1:8402", "http://[::1]:8402"];

    fn read(mode: Mode, flags: &[(&str, &str)]) -> Result<Rules, ConfigError> {
        let flags = flags.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let raw = Raw::collect(&flags, std::iter::empty(), None)?;
        raw.told(check(&raw, mode, URLS))
    }

    #[test]
    fn live_sends_by_https_to_listed_ports_and_a_sandbox_to_any() {
        let rules = read(Mode::Live, &[]).unwrap();
        assert_eq!((rules.plain_http, rules.ports, rules.allow_private), (false, Some(vec![443]), false));
        assert_eq!(rules.own_hosts, ["gateway.example"]);
        let rules = read(Mode::Live, &[("webhook_ports", "443, 8443")]).unwrap();
        assert_eq!(rules.ports, Some(vec![443, 8443]));
        let rules = read(Mode::Sandbox, &[("webhook_allow_private", "true")]).unwrap();
        assert_eq!((rules.plain_http, rules.ports, rules.allow_private), (true, None, true));
        assert!(!read(Mode::Sandbox, &[]).unwrap().allow_private);
    }

    #[test]
    fn wrong_ports_and_private_networks_in_live_mode_are_told() {
        for ports in ["0", "65536", "443,", "https", "443;80"] {
            let told = read(Mode::Live, &[("webhook_ports", ports)]).expect_err(ports).0;
            assert!(told.ends_with("must be ports from 1 to 65535, separated by commas"), "{told}");
        }
        let told = read(Mode::Live, &[("webhook_allow_private", "true")]).expect_err("a mistake").0;
        assert!(
            told.starts_with("webhook_allow_private (--webhook-allow-private) is true, but mode is live"),
            "{told}"
        );
    }
}
