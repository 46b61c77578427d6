//! `simgate mail resend`: mailing a receipt again.

use clap::Subcommand;

use super::output::{Record, table};
use super::{Failure, Outcome};
use crate::app::App;
use crate::domain::refusal::Refusal;
use crate::ops::receipts;

#[derive(Subcommand)]
pub enum Command {
    /// Mail the receipt of a delivered order again, or all of an address; codes are never mailed again
    #[command(after_help = "Example: simgate mail resend ord_…
The mail goes to the address that the order was bought for, and leads to its install page.")]
    Resend {
        /// Order id (ord_…) or order number (SG…), or an email: the newest orders that were bought for it
        #[arg(value_name = "ID_OR_EMAIL")]
        what: String,
    },
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let Command::Resend { what } = command;
    let sent = receipts::resend(app, actor, &what).await.map_err(|error| {
        let unknown =
            format!("no order has the id, number or email {what:?}; `simgate find {what}` looks further");
        Failure::worded(error, Refusal::OrderNotFound, unknown)
    })?;
    let table = table!(sent.into_iter(), |receipt| {
        "orderId" => receipt.order.to_string(),
        "orderNo" => receipt.order_ref,
        "to" => receipt.to.to_string(),
    });
    let how = match app.mailer {
        Some(_) => "Queued: the running gateway sends it within a second.",
        None => "Queued. There is no mail server: /sandbox/outbox shows it.",
    };
    Ok(Record::new().with("mails", table).remark(how).into())
}
