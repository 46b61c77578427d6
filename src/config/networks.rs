//! Settings of the networks that deposits arrive on: nodes, token contracts, and when a transfer counts.
//! A network without nodes is simulated in sandbox mode and closed in live mode.

use std::collections::BTreeMap;

use super::{ConfigError, Mode, Raw, Spec, flag, spec, whole};
use crate::chain::Token;
use crate::chain::address::{self, SANDBOX_EVM_XPUB, SANDBOX_TRON_XPUB, Xpub};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::transfer::Terms;

/// The contract of a token that is not taken.
const OFF: &str = "off";
/// A simulated TRON takes USDC, which its issuer has withdrawn from the real one.
const SIMULATED_TRON_USDC: &str = "TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8";

const fn secret(name: &'static str, help: &'static str) -> Spec {
    Spec { name, default: "", help, secret: true }
}

/// Each network's settings, with the contracts of the main nets as defaults.
macro_rules! networks {
    ($($name:literal $confirmations:literal $final_by:literal $fee:literal $seconds:literal $usdc:literal $usdt:literal;)*) => {
        &[
            spec("staging", "false", "true to let a sandbox watch real chains: for trying out nodes and test tokens"),
            secret("evm_xpub", "extended public key of m/44'/60'/0' for addresses on BASE, POLYGON and ARBITRUM"),
            secret("tron_xpub", "extended public key of m/44'/195'/0' for addresses on TRON"),
            spec("new_key", "false", "true to go on with another extended public key; addresses of the old one stay watched"),
            secret("tron_api_key", "sent to TRON nodes as TRON-PRO-API-KEY"),
            spec("invoice_minutes", "60", "how long a deposit invoice is open"),
            spec("dust_usd", "1", "a smaller deposit is credited, but confirms no invoice"),
            spec("wide_addresses_evm", "200", "how many addresses on EVM networks hold checkouts that may be paid rounded; 0 for none"),
            spec("wide_addresses_tron", "5", "how many addresses on TRON hold checkouts that may be paid rounded; 0 for none"),
            spec("exchange_fee_usd", "3", "the most that an exchange takes out of an amount; checkouts that may be paid rounded are this far apart"),
            spec("least_kept_usd", "0.10", "a smaller transfer that comes to a checkout address and belongs to nobody is counted, but not kept"),
            spec("typical_as_of", "2026-11-01", "when the typical fees and times of networks were last looked up, like 2026-11-01"),
            spec("scan_addresses", "500", "how many addresses to ask a node for at once"),
            $(
                secret(concat!($name, "_rpc"), "URLs of this network's nodes, separated by commas; two or more are better"),
                spec(concat!($name, "_usdc"), $usdc, "contract of USDC on this network, or off"),
                spec(concat!($name, "_usdt"), $usdt, "contract of USDT on this network, or off"),
                spec(concat!($name, "_confirmations"), $confirmations, "blocks that a transfer waits for, its own included"),
                spec(concat!($name, "_final_from_usd"), "500", "for this amount and more, the chain itself must call the block safe or final"),
                spec(concat!($name, "_final_by"), $final_by, "which word of the chain counts for such amounts: safe or finalized"),
                spec(concat!($name, "_start_block"), "", "where scanning begins the first time (default: the newest block)"),
                spec(concat!($name, "_min_deposit_usd"), "10", "least amount of a deposit invoice"),
                spec(concat!($name, "_poll_ms"), "2000", "how often real nodes are asked"),
                spec(concat!($name, "_typical_fee_usd"), $fee, "what a sender usually pays this network for a transfer, as the checkout page says"),
                spec(concat!($name, "_typical_s"), $seconds, "how many seconds a payment there usually takes until it counts"),
            )*
        ]
    };
}

#[rustfmt::skip]
pub const SPECS: &[Spec] = networks! {
    "base" "5" "safe" "0.01" "10" "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913" "0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2";
    "polygon" "12" "finalized" "0.02" "30" "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359" "0xc2132D05D31c914a87C6611C10748AEb04B58e8F";
    "arbitrum" "20" "safe" "0.02" "15" "0xaf88d065e77c8cC2239327C5EDb3A432268e5831" "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9";
    "tron" "19" "finalized" "2" "60" "" "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
};

/// The chain's own word for a block that it will not take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalBy {
    Safe,
    Finalized,
}

/// One network that this deployment takes money on.
#[derive(Clone)]
pub struct NetworkSettings {
    /// Addresses of nodes, which often hold an API key; none means simulated.
    pub providers: Vec<String>,
    pub tokens: Vec<Token>,
    pub confirmations: i64,
    pub final_from: Usd,
    pub final_by: FinalBy,
    pub start_block: Option<i64>,
    pub min_deposit: Usd,
    pub poll_ms: i64,
    /// What a sender usually pays the network, and how long a payment usually takes until it counts.
    pub typical_fee: Usd,
    pub typical_s: u32,
}

impl NetworkSettings {
    pub fn is_simulated(&self) -> bool {
        self.providers.is_empty()
    }

    pub fn takes(&self, currency: Currency) -> bool {
        self.tokens.iter().any(|token| token.currency == currency)
    }
}

/// Everything about deposits that an operator may set.
#[derive(Clone)]
pub struct Settlement {
    pub networks: BTreeMap<Network, NetworkSettings>,
    pub evm_xpub: Xpub,
    pub tron_xpub: Xpub,
    pub new_key: bool,
    pub tron_api_key: Option<String>,
    pub invoice_minutes: i64,
    pub dust: Usd,
    pub wide_addresses_evm: i64,
    pub wide_addresses_tron: i64,
    pub exchange_fee: Usd,
    pub least_kept: Usd,
    pub scan_addresses: usize,
    /// When the typical fees and times were looked up, as a date.
    pub typical_as_of: String,
}

impl Settlement {
    pub fn xpub(&self, kind: AddressKind) -> &Xpub {
        match kind {
            AddressKind::Evm => &self.evm_xpub,
            AddressKind::Tron => &self.tron_xpub,
        }
    }

    /// How many addresses may hold wide slots.
    pub fn wide_addresses(&self, kind: AddressKind) -> i64 {
        match kind {
            AddressKind::Evm => self.wide_addresses_evm,
            AddressKind::Tron => self.wide_addresses_tron,
        }
    }

    /// The amounts that decide about a transfer when it is seen.
    pub fn terms(&self) -> Terms {
        Terms { dust: self.dust, least_kept: self.least_kept, exchange_fee: self.exchange_fee }
    }

    /// The scanned networks that share this one's addresses, itself included.
    pub fn scanned_with(&self, network: Network) -> Vec<Network> {
        self.networks.keys().filter(|other| other.kind() == network.kind()).copied().collect()
    }

    pub fn check(raw: &Raw, mode: Mode) -> Result<Settlement, ConfigError> {
        let staging = raw.require("staging", "must be true or false", flag)?;
        let mut networks = BTreeMap::new();
        for network in Network::ALL {
            let found = network_settings(raw, network)?;
            let name = network.as_str().to_lowercase();
            if mode == Mode::Sandbox && !found.is_simulated() && !staging {
                raw.does_not_fit(format!(
                    "{name}_rpc ({}) is set, but this is a sandbox, whose chains are simulated; --staging allows real ones",
                    raw.source(&format!("{name}_rpc"))
                ));
            }
            if mode == Mode::Live && found.providers.len() == 1 {
                raw.does_not_fit(format!(
                    "{name}_rpc ({}) names one node, and nobody would contradict it: live mode needs two or more, of \
                     different companies",
                    raw.source(&format!("{name}_rpc"))
                ));
            }
            if mode == Mode::Sandbox || !found.is_simulated() {
                networks.insert(network, found);
            }
        }
        let xpub = |name: &str, kind: AddressKind, sandbox: &str| {
            let real =
                |network: &Network, terms: &NetworkSettings| network.kind() == kind && !terms.is_simulated();
            let has_real = networks.iter().any(|(network, terms)| real(network, terms));
            // Live mode tells by itself which keys it lacks.
            if raw.text(name).is_empty() && mode == Mode::Sandbox && has_real {
                raw.does_not_fit(format!(
                    "{name} is empty: everybody can spend from the sandbox's own addresses, so a real chain needs a key"
                ));
            }
            let wrong = |why: &str| format!("{name} ({}) is \"(hidden)\": {why}", raw.source(name));
            if mode == Mode::Live && raw.text(name) == sandbox {
                raw.does_not_fit(wrong(
                    "it is the sandbox's own key, and everybody can spend from its addresses",
                ));
            }
            let ours = || Xpub::parse(kind, sandbox).map_err(|why| ConfigError(wrong(&why.to_string())));
            match raw.text(name) {
                "" => ours(),
                text => Xpub::parse(kind, text).or_else(|why| {
                    raw.is_wrong(wrong(&why.to_string()));
                    ours()
                }),
            }
        };
        let usd = "must be an amount of USD";
        Ok(Settlement {
            evm_xpub: xpub("evm_xpub", AddressKind::Evm, SANDBOX_EVM_XPUB)?,
            tron_xpub: xpub("tron_xpub", AddressKind::Tron, SANDBOX_TRON_XPUB)?,
            networks,
            new_key: raw.require("new_key", "must be true or false", flag)?,
            tron_api_key: raw.parse("tron_api_key", "must be a key", |text| Some(text.to_string()))?,
            invoice_minutes: raw.require("invoice_minutes", "must be from 1 to 10080", whole(1, 10_080))?,
            dust: raw.require("dust_usd", usd, positive_usd)?,
            wide_addresses_evm: raw.require(
                "wide_addresses_evm",
                "must be from 0 to 1000",
                whole(0, 1_000),
            )?,
            wide_addresses_tron: raw.require(
                "wide_addresses_tron",
                "must be from 0 to 1000",
                whole(0, 1_000),
            )?,
            exchange_fee: raw.require("exchange_fee_usd", "must be from 0 to 100 USD", |text| {
                Usd::parse(text).ok().filter(|fee| (Usd::ZERO..=Usd::dollars(100)).contains(fee))
            })?,
            least_kept: raw.require("least_kept_usd", "must be from 0 to less than 0.40 USD", |text| {
                Usd::parse(text).ok().filter(|least| (Usd::ZERO..Usd::from_micros(400_000)).contains(least))
            })?,
            scan_addresses: raw.require("scan_addresses", "must be from 1 to 1000", whole(1, 1_000))?
                as usize,
            typical_as_of: raw.require("typical_as_of", "must be a date like 2026-11-01", date)?,
        })
    }
}

fn date(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &&str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    let [year, month, day] = parts.as_slice() else { return None };
    (digits(year, 4) && digits(month, 2) && digits(day, 2)).then(|| text.to_string())
}

fn positive_usd(text: &str) -> Option<Usd> {
    Usd::parse(text).ok().filter(|amount| amount.is_positive())
}

fn node_urls(text: &str) -> Option<Vec<String>> {
    let urls: Vec<String> = text.split(',').map(|url| url.trim().to_string()).collect();
    let sound = |url: &String| {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
    };
    urls.iter().all(sound).then_some(urls)
}

fn network_settings(raw: &Raw, network: Network) -> Result<NetworkSettings, ConfigError> {
    let named = |setting: &str| format!("{}_{setting}", network.as_str().to_lowercase());
    let providers = raw
        .parse(&named("rpc"), "must be http:// or https:// URLs, separated by commas", node_urls)?
        .unwrap_or_default();
    let mut tokens = Vec::new();
    for currency in Currency::ALL {
        let setting = named(&currency.as_str().to_lowercase());
        let allowed = "must be a contract's address on this network, or off";
        let contract = |text: &str| {
            let known = text == OFF || address::bytes(network.kind(), text).is_some();
            known.then(|| text.to_string())
        };
        let withdrawn = network == Network::Tron && currency == Currency::Usdc;
        let simulated = (withdrawn && providers.is_empty()).then(|| SIMULATED_TRON_USDC.to_string());
        let contract = raw.parse(&setting, allowed, contract)?.or(simulated).filter(|text| text != OFF);
        tokens.extend(contract.map(|contract| Token { currency, contract }));
    }
    let usd = "must be an amount of USD";
    Ok(NetworkSettings {
        providers,
        tokens,
        confirmations: raw.require(&named("confirmations"), "must be from 1 to 100000", whole(1, 100_000))?,
        final_from: raw.require(&named("final_from_usd"), usd, |text| Usd::parse(text).ok())?,
        final_by: raw.require(&named("final_by"), "must be safe or finalized", |text| match text {
            "safe" => Some(FinalBy::Safe),
            "finalized" => Some(FinalBy::Finalized),
            _ => None,
        })?,
        start_block: raw.parse(&named("start_block"), "must be a block number", whole(0, i64::MAX))?,
        min_deposit: raw.require(&named("min_deposit_usd"), usd, positive_usd)?,
        poll_ms: raw.require(
            &named("poll_ms"),
            "must be milliseconds from 10 to 600000",
            whole(10, 600_000),
        )?,
        typical_fee: raw.require(&named("typical_fee_usd"), usd, |text| {
            Usd::parse(text).ok().filter(|fee| *fee >= Usd::ZERO)
        })?,
        typical_s: raw.require(&named("typical_s"), "must be from 1 to 86400", whole(1, 86_400))? as u32,
    })
}
