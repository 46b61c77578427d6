//! A payment on a chain, as pages list it.

use crate::app::App;
use crate::domain::invoice::Payment;
use crate::domain::transfer::PaymentStatus;
use crate::http::kit::notice::Sandbox;

pub struct PaymentRow {
    pub hash: String,
    pub amount: String,
    pub network: &'static str,
    pub status: String,
    /// Where the network's own explorer shows it; simulated networks have none.
    pub explorer: Option<String>,
}

impl PaymentRow {
    pub fn of(app: &App, payment: &Payment) -> PaymentRow {
        let Payment { transfer, confirmations, needed } = payment;
        let (network, hash) = (transfer.id.network, &transfer.id.tx_hash);
        let is_real = Sandbox::on(&app.settings, network).is_none();
        PaymentRow {
            hash: hash.clone(),
            amount: format!("{} {}", transfer.amount.priced(), transfer.currency.as_str()),
            network: network.name(),
            status: match PaymentStatus::of(transfer) {
                PaymentStatus::Confirming => format!("confirming, {} of {needed}", confirmations.min(needed)),
                PaymentStatus::Confirmed => "confirmed".into(),
                PaymentStatus::Orphaned => "dropped by the network; it may come back".into(),
                PaymentStatus::Reversed => "taken back by the network; it may come back".into(),
            },
            explorer: is_real.then(|| network.explorer_url(hash)),
        }
    }
}
