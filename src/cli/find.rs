//! `simgate find`: one text, whatever it is.

use std::collections::HashMap;

use clap::Args;

use super::output::{Record, Table, cell};
use super::{Outcome, key, order, partner, transfers, user};
use crate::app::App;
use crate::domain::account::AccountKind;
use crate::domain::checkout::Checkout;
use crate::domain::ids::AccountNo;
use crate::domain::invoice::Invoice;
use crate::ops::find;
use crate::ops::operator::Account;

/// Find partners, users, orders, invoices, checkouts and transfers by whatever you have
#[derive(Args)]
pub struct Find {
    /// A partner or user id, email, order id, order number (SG…), ICCID, a partner's own reference, an invoice id, a transfer
    /// id, a transaction hash or an address
    text: String,
}

impl Find {
    pub async fn run(self, app: &App) -> Outcome {
        let found = find::find(app, &self.text).await?;
        let owners = key::owners(app).await?;
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
    let columns = [
        "invoiceId",
        "orderRef",
        "userId",
        "status",
        "packageCode",
        "amountUsd",
        "network",
        "address",
        "orderId",
        "claimedBy",
        "createdAt",
        "lateUntil",
    ];
    let rows = checkouts.iter().map(|checkout| {
        [
            cell(checkout.id.to_string()),
            cell(app.numbers.of_checkout(checkout)),
            cell(owners.get(&checkout.account).cloned()),
            cell(checkout.status.as_str()),
            cell(checkout.package_code.clone()),
            cell(checkout.amount),
            cell(checkout.network.as_str()),
            cell(checkout.address.clone()),
            cell(checkout.order.as_ref().map(ToString::to_string)),
            cell(checkout.claimed_by.and_then(|owner| owners.get(&owner).cloned())),
            cell(checkout.created_at),
            cell(checkout.late_until),
        ]
    });
    Table::new(columns, rows)
}

fn invoices(invoices: &[Invoice], owners: &HashMap<AccountNo, String>) -> Table {
    let columns = [
        "invoiceId",
        "partnerId",
        "status",
        "amountUsd",
        "currency",
        "network",
        "address",
        "createdAt",
        "expiresAt",
    ];
    let rows = invoices.iter().map(|invoice| {
        [
            cell(invoice.id.to_string()),
            cell(owners.get(&invoice.account).cloned()),
            cell(invoice.status.as_str()),
            cell(invoice.amount),
            cell(invoice.currency.as_str()),
            cell(invoice.network.as_str()),
            cell(invoice.address.clone()),
            cell(invoice.created_at),
            cell(invoice.expires_at),
        ]
    });
    Table::new(columns, rows)
}
