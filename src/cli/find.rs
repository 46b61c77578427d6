//! `simgate find`: looks one text up as an id, email, reference, hash or address.

use std::collections::HashMap;

use clap::Args;

use super::output::{Record, Table, table};
use super::{Outcome, account, order, partner, transfers, user};
use crate::app::App;
use crate::domain::account::AccountKind;
use crate::domain::checkout::Checkout;
use crate::domain::ids::AccountNo;
use crate::domain::invoice::Invoice;
use crate::ops::find;
use crate::ops::operator::Account;

/// Find partners, users, orders, invoices, checkouts and transfers by any id, reference or address you have
#[derive(Args)]
pub struct Find {
    /// A partner or user id, email, order id, order number (SG…), ICCID, a partner's own reference, an invoice id, a transfer
    /// id, a transaction hash or an address
    text: String,
}

impl Find {
    pub async fn run(self, app: &App) -> Outcome {
        let found = find::find(app, &self.text).await?;
        let owners = account::owners(app).await?;
        let (users, partners): (Vec<Account>, Vec<Account>) =
            found.accounts.into_iter().partition(|account| account.kind == AccountKind::User);
        let record = Record::new()
            .with("partners", partner::table(&partners))
            .with("users", user::found(users.iter()))
            .with("orders", order::table(app, &found.orders, &owners))
            .with("invoices", invoices(&found.invoices, &owners))
            .with("checkouts", checkouts(app, &found.checkouts, &owners))
            .with("transfers", transfers::table(&found.transfers, &owners));
        Ok(record.into())
    }
}

fn checkouts(app: &App, checkouts: &[Checkout], owners: &HashMap<AccountNo, String>) -> Table {
    table!(checkouts.iter(), |checkout| {
        "invoiceId" => checkout.id.to_string(),
        "orderRef" => app.numbers.of_checkout(checkout),
        "userId" => owners.get(&checkout.account).cloned(),
        "status" => checkout.status.as_str(),
        "packageCode" => checkout.package_code.clone(),
        "amountUsd" => checkout.amount,
        "network" => checkout.network.as_str(),
        "address" => checkout.address.clone(),
        "orderId" => checkout.order.as_ref().map(ToString::to_string),
        "claimedBy" => checkout.claimed_by.and_then(|owner| owners.get(&owner).cloned()),
        "createdAt" => checkout.created_at,
        "lateUntil" => checkout.late_until,
    })
}

fn invoices(invoices: &[Invoice], owners: &HashMap<AccountNo, String>) -> Table {
    table!(invoices.iter(), |invoice| {
        "invoiceId" => invoice.id.to_string(),
        "partnerId" => owners.get(&invoice.account).cloned(),
        "status" => invoice.status.as_str(),
        "amountUsd" => invoice.amount,
        "currency" => invoice.currency.as_str(),
        "network" => invoice.network.as_str(),
        "address" => invoice.address.clone(),
        "createdAt" => invoice.created_at,
        "expiresAt" => invoice.expires_at,
    })
}
