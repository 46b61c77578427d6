//! `simgate payout record`: money that was paid out to a partner, from our addresses or from the bank.

use clap::{ArgGroup, Args, Subcommand};

use super::output::Record;
use super::{Failure, Outcome, account, args, transfers, twice, wallet};
use crate::app::App;
use crate::domain::ledger::Purse;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::ops::operator::gist;
use crate::ops::transfers::{Payout, record_payout};

#[derive(Subcommand)]
pub enum Command {
    /// Write down that you have paid money out to an account: its wallet goes down, never below zero
    #[command(
        after_help = "Example: simgate payout record ops@acme.example 120 --network BASE --currency USDC --tx 0x… --reason \"closes its account\"
The gateway holds no spending key: send the money first, then record it here."
    )]
    Record(Paid),
}

#[derive(Args)]
#[command(group(ArgGroup::new("way").args(["tx", "bank"]).required(true)))]
pub struct Paid {
    /// Partner id, user id or email
    account: String,
    /// How much
    #[arg(value_name = "USD", value_parser = args::some_usd, allow_negative_numbers = true)]
    amount: Usd,
    /// From our addresses on this network
    #[arg(long, value_parser = args::network(), ignore_case = true, requires = "tx")]
    network: Option<Network>,
    /// In this token
    #[arg(long, value_parser = args::currency(), ignore_case = true, requires = "tx")]
    currency: Option<Currency>,
    /// By this transaction
    #[arg(long, value_name = "HASH", requires = "network", requires = "currency")]
    tx: Option<String>,
    /// From the bank, or from anywhere else that is not one of our addresses
    #[arg(long)]
    bank: bool,
    /// Why, for the statement and the audit log
    #[arg(long, value_name = "TEXT", value_parser = args::name)]
    reason: String,
    /// Record it without a question, also when the same was recorded within a day
    #[arg(long)]
    yes: bool,
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let Command::Record(paid) = command;
    let account = account::named(app, &paid.account).await?;
    let (from, tx_hash) = match (paid.network, paid.currency, &paid.tx) {
        (Some(network), Some(currency), Some(tx)) => {
            (Purse::Cash(network, currency), Some(transfers::tx_hash(network, tx)?))
        }
        _ => (Purse::Bank, None),
    };
    // A transaction is recorded once, however often it is pasted.
    let sure = paid.yes || tx_hash.is_some();
    let begins = format!("{} from the bank", gist(&account.id, paid.amount));
    let (id_name, id) = (account::id_name(&account), account.id.to_string());
    let payout =
        Payout { account, amount: paid.amount, from, tx_hash: tx_hash.clone(), reason: paid.reason.clone() };
    let deed = async { record_payout(app, actor, payout).await.map_err(twice_or_too_much) };
    let balance = twice::warned(app, "payout record", &begins, sure, deed).await?;
    let record = Record::new()
        .with(id_name, id)
        .with("amountUsd", paid.amount)
        .with("from", if tx_hash.is_some() { "cash" } else { "bank" })
        .with("network", paid.network.map(Network::as_str))
        .with("currency", paid.currency.map(Currency::as_str))
        .with("txHash", tx_hash)
        .with("reason", paid.reason)
        .with("balanceUsd", balance);
    Ok(record.into())
}

fn twice_or_too_much(error: Error) -> Failure {
    match error {
        Error::Refused(refusal @ Refusal::TransferAlreadyUsed) => {
            Failure::refused(refusal, "this transaction is recorded as a payout to this account already")
        }
        other => wallet::too_much(other),
    }
}
