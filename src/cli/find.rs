//! `simgate find`: looks one text up as an id, email, reference, hash or address.

use std::collections::HashMap;

use clap::Args;

use super::output::{Record, Table, table};
use super::{Failure, Outcome, account, addresses, order, partner, transfers, user};
use crate::app::App;
use crate::domain::account::AccountKind;
use crate::domain::checkout::Checkout;
use crate::domain::ids::AccountNo;
use crate::domain::invoice::Invoice;
use crate::domain::refusal::Refusal;
use crate::ops::find::{self, Booked};
use crate::ops::operator::Account;

/// Find anything by an id, email, hash, reference or address
#[derive(Args)]
#[command(after_help = "Example: simgate find ann@example.com")]
pub struct Find {
    /// A partner or user id, an email (also one that a guest typed in), an order id or number (SG…), an ICCID, a
    /// partner's own reference, an invoice id, a transfer id, a transaction hash or an address
    text: String,
}

impl Find {
    pub async fn run(self, app: &App) -> Outcome {
        let found = find::find(app, &self.text).await?;
        if found.is_nothing() {
            let message =
                format!("nothing here has the id, email, reference, hash or address {:?}", self.text);
            return Err(Failure::refused(Refusal::NotFound, message));
        }
        let owners = account::owners(app).await?;
        let (users, partners): (Vec<Account>, Vec<Account>) =
            found.accounts.into_iter().partition(|account| account.kind == AccountKind::User);
        let record = Record::new()
            .with("partners", partner::table(&partners))
            .with("users", user::found(users.iter()))
            .with("orders", order::table(app, &found.orders, &owners))
            .with("invoices", invoices(&found.invoices, &owners))
            .with("checkouts", checkouts(app, &found.checkouts, &owners))
            .with("transfers", transfers::table(&found.transfers, &owners))
            .with("addresses", addresses::table(&found.addresses, &owners))
            .with("entries", entries(found.entries));
        Ok(record.into())
    }
}

fn entries(entries: Vec<Booked>) -> Table {
    table!(entries.into_iter(), |entry| {
        "id" => entry.id,
        "kind" => entry.kind,
        "at" => entry.at,
        "actor" => entry.actor,
        "note" => entry.note,
    })
}

fn checkouts(app: &App, checkouts: &[Checkout], owners: &HashMap<AccountNo, String>) -> Table {
    table!(checkouts.iter(), |checkout| {
        "invoiceId" => checkout.id.to_string(),
        "orderRef" => app.numbers.of_checkout(checkout),
        "userId" => owners.get(&checkout.account).cloned(),
        "status" => checkout.status.as_str(),
        "packageCode" => checkout.package_code.clone(),
        "amountUsd" => checkout.amount,
        "currency" => checkout.currency.as_str(),
        "network" => checkout.network.as_str(),
        "address" => checkout.address.clone(),
        "orderId" => checkout.order.as_ref().map(ToString::to_string),
        "customerEmail" => checkout.customer_email.as_ref().map(ToString::to_string),
        "claimedBy" => checkout.claimed_by.and_then(|owner| owners.get(&owner).cloned()),
        "createdAt" => checkout.created_at,
        "lateUntil" => checkout.late_until,
    })
}

fn invoices(invoices: &[Invoice], owners: &HashMap<AccountNo, String>) -> Table {
    table!(invoices.iter(), |invoice| {
        "invoiceId" => invoice.id.to_string(),
        "partnerId" as "account" => owners.get(&invoice.account).cloned(),
        "status" => invoice.status.as_str(),
        "amountUsd" => invoice.amount,
        "currency" => invoice.currency.as_str(),
        "network" => invoice.network.as_str(),
        "address" => invoice.address.clone(),
        "createdAt" => invoice.created_at,
        "expiresAt" => invoice.expires_at,
    })
}
