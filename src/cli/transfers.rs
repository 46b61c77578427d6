//! `simgate transfers`: money that came in and belongs to nobody. Each decision is in the audit log, and final.

use std::collections::HashMap;

use clap::{Args, Subcommand};

use super::output::{Form, Record, Table, table};
use super::{Failure, Outcome, account, args};
use crate::app::App;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::network::Network;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::transfer::{Transfer, TransferId, parse_tx_hash};
use crate::ops::checkout::paid;
use crate::ops::transfers::{self, Unmatched};

#[derive(Subcommand)]
pub enum Command {
    /// Money that arrived and belongs to nobody, the longest waiting first
    #[command(after_help = "Example: simgate transfers unmatched")]
    Unmatched(Form),
    /// Give an unmatched transfer to a checkout, whose plan is then delivered, or to an account's wallet
    #[command(
        after_help = "Example: simgate transfers assign POLYGON:0x…:3 ops@acme.example --reason \"asked by mail\"\n\
                      When more than one unpaid checkout fits the transfer, they are listed, and --proof is needed."
    )]
    Assign {
        #[command(flatten)]
        transfer: Named,
        /// The invoice id of an unpaid checkout, or an account: partner id, user id or email
        #[arg(value_name = "INVOICE_OR_ACCOUNT")]
        to: String,
        /// Why, for the statement and the audit log
        #[arg(long, value_name = "TEXT", value_parser = args::name)]
        reason: Option<String>,
        /// What proves whose it is, for the audit log: a signature of the sender, a second transfer, a receipt
        #[arg(long, value_name = "TEXT", value_parser = args::name)]
        proof: Option<String>,
    },
    /// Write down that you have sent an unmatched transfer back
    #[command(after_help = "Example: simgate transfers returned POLYGON:0x…:3 --tx 0x…\n\
                      The gateway holds no spending key: send the money first, then record its transaction here.")]
    Returned {
        #[command(flatten)]
        transfer: Named,
        /// The transaction by which you sent it back
        #[arg(long, value_name = "HASH")]
        tx: String,
        /// Why, for the audit log
        #[arg(long, value_name = "TEXT", value_parser = args::name)]
        reason: Option<String>,
    },
    /// Give up the search for an unmatched transfer's owner: it is booked as unclaimed
    #[command(
        after_help = "Example: simgate transfers write-off POLYGON:0x…:3 --reason \"nobody asked for a year\""
    )]
    WriteOff {
        #[command(flatten)]
        transfer: Named,
        /// Why, for the audit log
        #[arg(long, value_name = "TEXT", value_parser = args::name)]
        reason: String,
    },
}

#[derive(Args)]
pub struct Named {
    /// Its id, NETWORK:TRANSACTION:POSITION, as `transfers unmatched` shows it
    #[arg(value_name = "TRANSFER")]
    id: String,
}

impl Named {
    fn id(&self) -> Result<TransferId, Failure> {
        let unknown = || {
            let message =
                format!("no transfer has the id {:?}; `simgate transfers unmatched` lists them", self.id);
            Failure::refused(Refusal::TransferNotFound, message)
        };
        TransferId::parse(&self.id).ok_or_else(unknown)
    }
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::Unmatched(_) => waiting(app).await?,
        Command::Assign { transfer, to, reason, proof } if to.starts_with(InvoiceId::PREFIX) => {
            let (invoice, id) = (InvoiceId::from_text(to), transfer.id()?);
            let reason = transfers::grounds(app, &id, reason, proof).await?;
            let assigned = paid::assign(app, actor, &id, &invoice, reason.as_deref()).await?;
            details(&assigned.transfer)
                .with("invoiceId", invoice.to_string())
                .with("orderId", assigned.order.id.to_string())
                .with("orderStatus", assigned.order.status.as_str())
                .with("chargedUsd", assigned.order.price)
                .with("surplusUsd", assigned.surplus)
        }
        Command::Assign { transfer, to, reason, proof } => {
            let account = account::named(app, &to).await?;
            let id = transfer.id()?;
            let reason = transfers::grounds(app, &id, reason, proof).await?;
            let ended = transfers::assign(app, actor, &id, &account, reason.as_deref()).await?;
            let balance = account::named(app, account.id.as_str()).await?.balance;
            details(&ended)
                .with(account::id_name(&account), account.id.to_string())
                .with("balanceUsd", balance)
        }
        Command::Returned { transfer, tx, reason } => {
            let id = transfer.id()?;
            let hash = tx_hash(id.network, &tx)?;
            let ended = transfers::returned(app, actor, &id, &hash, reason.as_deref()).await?;
            details(&ended).with("txHash", hash)
        }
        Command::WriteOff { transfer, reason } => {
            let ended = transfers::write_off(app, actor, &transfer.id()?, &reason).await?;
            details(&ended).with("reason", reason)
        }
    };
    Ok(record.into())
}

/// A hash in the one spelling that we store.
pub fn tx_hash(network: Network, text: &str) -> Result<String, Failure> {
    let wrong = || Failure::usage(format!("--tx must be a transaction hash of {}", network.as_str()));
    parse_tx_hash(network.kind(), text).ok_or_else(wrong)
}

fn details(transfer: &Transfer) -> Record {
    Record::new()
        .with("id", transfer.id.to_string())
        .with("state", transfer.state.as_str())
        .with("amountUsd", transfer.amount)
        .with("currency", transfer.currency.as_str())
        .with("network", transfer.id.network.as_str())
}

async fn waiting(app: &App) -> Result<Record, Failure> {
    let now = app.now();
    let found = transfers::unmatched(app).await?;
    let table = table!(found.iter(), |Unmatched { transfer, near }| {
        let at = transfer.block.as_ref().map(|block| block.time);
        let near = near.iter().map(|checkout| format!("{} asks for {}", checkout.id, transfers::asked_for(checkout)));
        "id" => transfer.id.to_string(),
        "network" => transfer.id.network.as_str(),
        "currency" => transfer.currency.as_str(),
        "amountUsd" => transfer.amount,
        "from" => transfer.sender.clone(),
        "address" => transfer.address.clone(),
        "time" => at,
        "age" => at.map(|at| age(at, now)),
        "near" => near.collect::<Vec<String>>(),
    });
    let record = Record::new().with("transfers", table);
    Ok(if found.is_empty() {
        record
    } else {
        record.remark("Decide with `simgate transfers assign`, `returned` or `write-off`; docs/settlement.md says when.")
    })
}

/// Transfers of any state.
pub fn table(transfers: &[Transfer], owners: &HashMap<AccountNo, String>) -> Table {
    table!(transfers.iter(), |transfer| {
        "id" => transfer.id.to_string(),
        "state" => transfer.state.as_str(),
        "amountUsd" => transfer.amount,
        "currency" => transfer.currency.as_str(),
        "from" => transfer.sender.clone(),
        "address" => transfer.address.clone(),
        "partnerId" as "account" => transfer.account.and_then(|account| owners.get(&account).cloned()),
        "invoiceId" => transfer.invoice.as_ref().map(ToString::to_string),
        "time" => transfer.block.as_ref().map(|block| block.time),
    })
}

/// How long ago, in the largest two units.
fn age(then: Time, now: Time) -> String {
    let minutes = (now.micros() - then.micros()).max(0) / 60_000_000;
    let (days, hours) = (minutes / 1_440, minutes / 60 % 24);
    match (days, hours) {
        (0, 0) => format!("{minutes} min"),
        (0, hours) => format!("{hours} h {} min", minutes % 60),
        (days, hours) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_two_units() {
        let at = |minutes: i64| Time::from_micros(minutes * 60_000_000);
        for (minutes, told) in [(0, "0 min"), (59, "59 min"), (61, "1 h 1 min"), (1_440 * 3 + 125, "3 d 2 h")]
        {
            assert_eq!(age(at(10), at(10 + minutes)), told);
        }
        assert_eq!(age(at(10), at(5)), "0 min");
    }
}
