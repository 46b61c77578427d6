//! The ways to pay, as cards of a form: a network each, the cheap and quick one first, with its tokens.

use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::http::kit::fields::Query;
use crate::http::kit::payment::{named_currency, named_network};

/// A network that can be paid on.
pub struct Ways {
    pub network: &'static str,
    /// What the sender usually pays the network, in USD.
    pub fee: String,
    /// How long it usually takes, about.
    pub time: String,
    pub tokens: Vec<Way>,
}

/// A token there.
pub struct Way {
    pub value: String,
    pub token: &'static str,
    pub checked: bool,
}

/// Where these pairs can be paid, with one of them chosen: the one with this value, else the first.
pub fn of(app: &App, pairs: &[(Currency, Network)], chosen: &str) -> Vec<Ways> {
    let mut networks: Vec<_> = app.settings.settlement.networks.iter().collect();
    networks.sort_by_key(|(_, terms)| (terms.typical_fee, terms.typical_s));
    let mut found: Vec<Ways> = networks
        .into_iter()
        .map(|(network, terms)| Ways {
            network: network.name(),
            fee: terms.typical_fee.priced(),
            time: duration(terms.typical_s),
            tokens: tokens_on(*network, pairs, chosen),
        })
        .filter(|ways| !ways.tokens.is_empty())
        .collect();
    let mut all = found.iter_mut().flat_map(|ways| &mut ways.tokens);
    if !all.any(|way| way.checked)
        && let Some(first) = found.first_mut().and_then(|ways| ways.tokens.first_mut())
    {
        first.checked = true;
    }
    found
}

/// USDC comes first: its issuer stands behind it on nearly every network.
fn tokens_on(network: Network, pairs: &[(Currency, Network)], chosen: &str) -> Vec<Way> {
    let taken = |currency: &Currency| pairs.contains(&(*currency, network));
    let way = |currency: Currency| {
        let value = value((currency, network));
        Way { checked: value == chosen, value, token: currency.as_str() }
    };
    [Currency::Usdc, Currency::Usdt].into_iter().filter(taken).map(way).collect()
}

/// How a form names a pair.
pub fn value((currency, network): (Currency, Network)) -> String {
    format!("{} {}", currency.as_str(), network.as_str())
}

/// A pair as a form names it, in any spelling.
pub fn named(text: &str) -> Option<(Currency, Network)> {
    let (currency, network) = text.split_once(' ')?;
    Some((named_currency(currency)?, named_network(network)?))
}

/// What a form with these cards and an amount says.
pub fn chosen(
    mut fields: Query,
    pairs: &[(Currency, Network)],
) -> Result<(Usd, (Currency, Network)), Refusal> {
    let amount = fields.require("amountUsd", "must be a number like 25 or 25.50", |text| {
        Usd::parse(text.trim()).ok().filter(|amount| amount.is_positive())
    });
    let choices: Vec<String> = pairs.iter().copied().map(value).collect();
    let pair = fields.require("means", format_args!("must be one of {}", choices.join(", ")), named);
    fields.finish_with(amount.zip(pair))
}

fn duration(seconds: u32) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}
