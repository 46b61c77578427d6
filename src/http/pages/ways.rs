//! The ways to pay, as cards of a form: the cheap and quick one first.

use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};

/// A token on a network.
pub struct Way {
    pub value: String,
    pub token: &'static str,
    pub network: &'static str,
    /// What the sender usually pays the network, in USD.
    pub fee: String,
    /// How long it usually takes.
    pub time: String,
    pub checked: bool,
}

/// Where these pairs can be paid, with one of them chosen: the one with this value, else the first.
pub fn of(app: &App, pairs: Vec<(Currency, Network)>, chosen: &str) -> Vec<Way> {
    let terms = &app.settings.settlement.networks;
    let mut found: Vec<((Usd, u32, bool), (Currency, Network))> = pairs
        .into_iter()
        .filter_map(|(currency, network)| {
            let terms = terms.get(&network)?;
            // Of two that are alike USDC comes first: its issuer stands behind it on nearly every network.
            Some(((terms.typical_fee, terms.typical_s, currency != Currency::Usdc), (currency, network)))
        })
        .collect();
    found.sort_by_key(|(rank, _)| *rank);
    let is_known = found.iter().any(|(_, pair)| value(*pair) == chosen);
    let way = |(at, ((fee, seconds, _), pair)): (usize, ((Usd, u32, bool), (Currency, Network)))| Way {
        value: value(pair),
        token: pair.0.as_str(),
        network: pair.1.name(),
        fee: fee.priced(),
        time: duration(seconds),
        checked: if is_known { value(pair) == chosen } else { at == 0 },
    };
    found.into_iter().enumerate().map(way).collect()
}

/// How a form names a pair.
pub fn value((currency, network): (Currency, Network)) -> String {
    format!("{} {}", currency.as_str(), network.as_str())
}

fn duration(seconds: u32) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}
