//! `simgate addresses list`: the addresses that money comes to, their owners, and what they hold now.

use std::collections::HashMap;

use clap::{Args, Subcommand};

use super::output::{Form, Record, Table, table};
use super::{Outcome, account, text};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::network::Network;
use crate::ops::addresses::{self, Address, Held};

#[derive(Subcommand)]
pub enum Command {
    /// Every address with its owner and its balances on the chains, for sweeping
    #[command(after_help = "Example: simgate addresses list --funded")]
    List(List),
}

#[derive(Args)]
pub struct List {
    /// Only addresses that hold something
    #[arg(long)]
    funded: bool,
    #[command(flatten)]
    form: Form,
}

pub async fn run(app: &App, command: Command) -> Outcome {
    let Command::List(list) = command;
    let mut survey = addresses::survey(app).await?;
    if list.funded {
        survey.addresses.retain(Held::is_funded);
    }
    let owners = account::owners(app).await?;
    let owner = |held: &Held| owner(&held.address, &owners);
    let table = table!(survey.addresses.iter(), |held| {
        "path" => held.address.path(),
        "address" => held.address.address.clone(),
        "kind" => held.address.kind.as_str(),
        "owner" => owner(held),
        "keyFingerprint" => held.address.fingerprint.clone(),
        "balances" => balances(held),
    });
    let lines = table!(survey.addresses.iter(), |held| {
        "path" => held.address.path(),
        "address" => held.address.address.clone(),
        "kind" => held.address.kind.as_str(),
        "owner" => owner(held),
        "balances" => in_words(held),
    });
    let silent: Vec<String> = survey.silent.iter().map(|(network, _)| network.as_str().into()).collect();
    let mut people = Record::new().with("addresses", lines);
    if !survey.silent.is_empty() {
        people = people.remark(note(&survey.silent));
    }
    let record = Record::new().with("addresses", table).with("unknownNetworks", silent);
    Ok(record.prose(text::render(&people, text::terminal_width())).into())
}

/// Addresses without a look at what they hold.
pub fn table(addresses: &[Address], owners: &HashMap<AccountNo, String>) -> Table {
    table!(addresses.iter(), |address| {
        "path" => address.path(),
        "address" => address.address.clone(),
        "kind" => address.kind.as_str(),
        "owner" => owner(address, owners),
        "keyFingerprint" => address.fingerprint.clone(),
    })
}

fn owner(address: &Address, owners: &HashMap<AccountNo, String>) -> Option<String> {
    match address.account {
        Some(account) => owners.get(&account).cloned(),
        None => Some("house".into()),
    }
}

/// Names the networks that did not answer.
pub fn note(silent: &[(Network, String)]) -> String {
    let all = silent.iter().map(|(network, why)| format!("{} did not answer ({why})", network.as_str()));
    format!("Unknown, marked with ?: {}.", all.collect::<Vec<_>>().join("; "))
}

fn balances(held: &Held) -> Table {
    table!(held.holdings.iter(), |holding| {
        "network" => holding.network.as_str(),
        "currency" => holding.currency.as_str(),
        "balanceUsd" => holding.amount,
    })
}

/// The balances above zero, and the unknown ones.
fn in_words(held: &Held) -> String {
    let words = held.holdings.iter().filter_map(|holding| {
        let (network, currency) = (holding.network.as_str(), holding.currency.as_str());
        match holding.amount {
            Some(amount) if amount.is_positive() => Some(format!("{amount} {currency} on {network}")),
            Some(_) => None,
            None => Some(format!("? {currency} on {network}")),
        }
    });
    let all: Vec<String> = words.collect();
    if all.is_empty() { "0".into() } else { all.join(", ") }
}
