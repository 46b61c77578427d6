//! Settings of payment by signature (x402): who settles, with what, and what that may cost.

use std::collections::BTreeMap;

use super::{ConfigError, Mode, NetworkSettings, Raw, Settlement, Spec, spec, url};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Network};
use crate::x402::local::GasKey;
use crate::x402::settler::{CURRENCY, Gas};

const fn secret(name: &'static str, help: &'static str) -> Spec {
    Spec { name, default: "", help, secret: true }
}

macro_rules! networks {
    ($($name:literal $price:literal $day:literal $account:literal;)*) => {
        &[
            spec("x402_settler", "", "who settles payments by signature: off, remote (a facilitator), local (gas keys) or simulated (default: simulated where all chains are, else off)"),
            spec("x402_facilitator_url", "", "URL of the facilitator, to which /supported and /settle are added"),
            secret("x402_facilitator_headers", "sent to the facilitator, like Authorization: Bearer KEY, separated by commas"),
            spec("x402_quick_usd", "25", "up to this amount a payment by signature counts in its first block"),
            $(
                secret(concat!($name, "_gas_key"), "private key, in hex, that pays for gas on this network; keep little on it"),
                spec(concat!($name, "_gas_price_gwei"), $price, "the most that a unit of gas may cost"),
                spec(concat!($name, "_gas_per_day"), $day, "the most to spend on gas in a day, in the network's coin"),
                spec(concat!($name, "_gas_per_account"), $account, "the most to spend in a day on one account's payments"),
            )*
        ]
    };
}

#[rustfmt::skip]
pub const SPECS: &[Spec] = networks! {
    "base" "5" "0.02" "0.002";
    "polygon" "1000" "20" "2";
    "arbitrum" "5" "0.02" "0.002";
};

/// Who brings payments onto the chain.
#[derive(Clone)]
pub enum SettlerSetting {
    Off,
    Remote {
        url: String,
        headers: Vec<(String, String)>,
    },
    Local,
    /// On simulated chains only.
    Simulated,
}

#[derive(Clone)]
pub struct X402 {
    pub settler: SettlerSetting,
    pub quick_up_to: Usd,
    /// The networks that have a gas key.
    pub gas: BTreeMap<Network, Gas>,
}

impl X402 {
    pub fn check(raw: &Raw, mode: Mode, settlement: &Settlement) -> Result<X402, ConfigError> {
        let mut networks = settlement.networks.iter();
        let is_simulated = networks.clone().all(|(_, terms)| terms.is_simulated())
            && networks.any(|entry| takes_signatures(&entry));
        let settler = match raw.text("x402_settler") {
            "" if is_simulated => SettlerSetting::Simulated,
            "" | "off" => SettlerSetting::Off,
            "remote" => SettlerSetting::Remote {
                url: raw.require("x402_facilitator_url", "must be an http:// or https:// URL", url)?,
                headers: raw
                    .parse("x402_facilitator_headers", "must be NAME: VALUE, separated by commas", headers)?
                    .unwrap_or_default(),
            },
            "local" => SettlerSetting::Local,
            "simulated" if mode == Mode::Live => {
                let source = raw.source("x402_settler");
                raw.does_not_fit(format!(
                    "x402_settler ({source}) is \"simulated\": live mode takes real payments only, so use off, remote or local"
                ));
                SettlerSetting::Off
            }
            "simulated" => SettlerSetting::Simulated,
            other => {
                let source = raw.source("x402_settler");
                raw.is_wrong(format!(
                    "x402_settler ({source}) is {other:?}: must be off, remote, local or simulated"
                ));
                SettlerSetting::Off
            }
        };
        let mut keys = BTreeMap::new();
        for network in Network::ALL.into_iter().filter(|network| network.kind() == AddressKind::Evm) {
            keys.extend(gas(raw, network)?.map(|gas| (network, gas)));
        }
        let quick_up_to =
            raw.require("x402_quick_usd", "must be an amount of USD", |text| Usd::parse(text).ok())?;
        let x402 = X402 { settler, quick_up_to, gas: keys };
        x402.require_networks(raw, settlement);
        Ok(x402)
    }

    /// The networks on which payments can be settled, by the settings alone.
    pub fn networks<'a>(
        &'a self,
        settlement: &'a Settlement,
    ) -> impl Iterator<Item = (Network, &'a NetworkSettings)> {
        let fits = |(network, terms): &(&Network, &NetworkSettings)| match self.settler {
            SettlerSetting::Off => false,
            SettlerSetting::Remote { .. } => !terms.is_simulated(),
            SettlerSetting::Local => !terms.is_simulated() && self.gas.contains_key(network),
            SettlerSetting::Simulated => terms.is_simulated(),
        };
        let all = settlement.networks.iter().filter(takes_signatures).filter(fits);
        all.map(|(network, terms)| (*network, terms))
    }

    fn require_networks(&self, raw: &Raw, settlement: &Settlement) {
        let wanted = match self.settler {
            SettlerSetting::Off => return,
            SettlerSetting::Remote { .. } => "nodes of BASE, POLYGON or ARBITRUM",
            SettlerSetting::Local => "a gas key for a network that has nodes",
            SettlerSetting::Simulated => "BASE, POLYGON or ARBITRUM without nodes",
        };
        if self.networks(settlement).next().is_none() {
            raw.does_not_fit(format!(
                "x402_settler is on, but there is nothing to settle with: it needs {wanted}"
            ));
        }
    }
}

/// Whether payers can sign for a token of this network.
fn takes_signatures((network, terms): &(&Network, &NetworkSettings)) -> bool {
    network.kind() == AddressKind::Evm && terms.takes(CURRENCY)
}

fn gas(raw: &Raw, network: Network) -> Result<Option<Gas>, ConfigError> {
    let named = |setting: &str| format!("{}_gas_{setting}", network.as_str().to_lowercase());
    let key = raw.parse(&named("key"), "must be a private key of 64 hex digits", GasKey::parse)?;
    let amount = "must be a number with at most nine decimals";
    let cap = raw.require(&named("price_gwei"), amount, billionths)?;
    let per_day = raw.require(&named("per_day"), amount, billionths)?;
    let per_account = raw.require(&named("per_account"), amount, billionths)?;
    Ok(key.map(|key| Gas { key, cap: cap as u64, per_day, per_account }))
}

/// Reads a decimal number in billionths: a coin in gwei, a gwei in wei.
fn billionths(text: &str) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || text.ends_with('.') || !digits(whole) || !digits(part) || part.len() > 9 {
        return None;
    }
    let part: i64 = format!("{part:0<9}").parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part).filter(|value| *value > 0)
}

fn headers(text: &str) -> Option<Vec<(String, String)>> {
    let read = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        (!name.is_empty() && !value.is_empty()).then(|| (name.to_string(), value.to_string()))
    };
    text.split(',').map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_are_read_without_floats() {
        for (text, value) in [("5", 5_000_000_000), ("0.02", 20_000_000), ("0.000000001", 1)] {
            assert_eq!(billionths(text), Some(value));
        }
        for wrong in ["", "0", "-1", "1.", ".5", "1e3", "0.0000000001", "99999999999", "1,5"] {
            assert_eq!(billionths(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn headers_are_names_and_values() {
        let read = headers("Authorization: Bearer a:b, X-Key: 1").unwrap();
        assert_eq!(read[0], ("Authorization".to_string(), "Bearer a:b".to_string()));
        assert_eq!(read[1], ("X-Key".to_string(), "1".to_string()));
        assert_eq!(headers("nonsense"), None);
    }
}
