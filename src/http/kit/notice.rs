//! What a sandbox says wherever money is asked for: its answers look like those of a live gateway, and somebody might send
//! real money.

use crate::config::{Mode, NetworkSettings, Settings};
use crate::domain::network::Network;

/// What is behind the addresses of a sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    Simulated,
    /// A sandbox that watches a real chain.
    Staging,
}

impl Sandbox {
    /// How payments on this network are meant; `None` on a live gateway.
    pub fn on(settings: &Settings, network: Network) -> Option<Sandbox> {
        let terms = settings.settlement.networks.get(&network);
        Sandbox::of(settings, terms.is_none_or(NetworkSettings::is_simulated))
    }

    /// The same where the payer chooses the network.
    pub fn anywhere(settings: &Settings) -> Option<Sandbox> {
        Sandbox::of(settings, settings.settlement.networks.values().all(NetworkSettings::is_simulated))
    }

    fn of(settings: &Settings, is_simulated: bool) -> Option<Sandbox> {
        match (settings.mode, is_simulated) {
            (Mode::Sandbox, true) => Some(Sandbox::Simulated),
            (Mode::Sandbox, false) => Some(Sandbox::Staging),
            (Mode::Live, _) => None,
        }
    }

    pub fn notice(self) -> &'static str {
        match self {
            Sandbox::Simulated => {
                "This is a sandbox: do not send real money. Its chains are simulated, so nothing would arrive, and the \
                 money would be lost. Pay with POST /sandbox/pay instead."
            }
            Sandbox::Staging => {
                "This is a sandbox that watches a real network for tests: send test tokens only, no real money."
            }
        }
    }
}

/// A text, and in a sandbox the warning behind it.
pub fn warned(text: String, sandbox: Option<Sandbox>) -> String {
    match sandbox {
        Some(sandbox) => format!("{text} {}", sandbox.notice()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::Raw;

    #[test]
    fn a_live_gateway_warns_of_nothing() {
        let raw = Raw::collect(&BTreeMap::new(), std::iter::empty(), None).unwrap();
        let mut settings = Settings::check(&raw).unwrap();
        assert!(Sandbox::on(&settings, Network::Base) == Some(Sandbox::Simulated));
        settings.mode = Mode::Live;
        assert!(Sandbox::on(&settings, Network::Base).is_none() && Sandbox::anywhere(&settings).is_none());
    }
}
