//! Deposits, as answers show them and events carry them.

use serde::Serialize;
use utoipa::ToSchema;

use super::dates::iso;
use super::{CurrencyWord, InvoiceExceptionWord, InvoiceStatusWord, Money, NetworkWord, PaymentStatusWord};
use crate::domain::invoice::{Deposit, Payment};
use crate::domain::money::Usd;
use crate::domain::transfer::PaymentStatus;

/// A deposit invoice and everything that came to it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DepositFacts)]
pub struct DepositFacts {
    /// Anyone who has this id can see the invoice at `checkoutUrl`, without a login.
    #[schema(example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub invoice_id: String,
    /// PENDING: nothing came yet. CONFIRMING: seen on the chain, not final yet. CONFIRMED: in the wallet. EXPIRED: not
    /// paid in time; later payments are still credited.
    pub status: InvoiceStatusWord,
    /// How the payment differs from what was asked for: less, more, or later. Null when it does not. It is credited in
    /// any case.
    #[schema(required = true)]
    pub exception: Option<InvoiceExceptionWord>,
    /// What was asked for.
    pub amount_usd: Money,
    /// What is still missing.
    pub amount_due_usd: Money,
    /// What is on the chain, final or not.
    pub received_usd: Money,
    /// What is in the wallet.
    pub credited_usd: Money,
    pub currency: CurrencyWord,
    pub network: NetworkWord,
    /// Where to send it. The address is yours for ever.
    #[schema(example = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94")]
    pub deposit_address: String,
    /// A page where a person can pay.
    #[schema(format = "uri")]
    pub checkout_url: String,
    /// Of the transaction that has the fewest; its own block counts as 1.
    #[schema(example = 3, minimum = 0)]
    pub confirmations: i64,
    /// How many the invoice's network asks for. Large amounts also wait until the network calls the block final.
    #[schema(example = 5, minimum = 1)]
    pub required_confirmations: i64,
    /// In the order in which they were seen.
    pub transactions: Vec<PaymentView>,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
    #[schema(format = DateTime, example = "2026-01-31T13:00:00.000Z")]
    pub expires_at: String,
    #[schema(required = true, format = DateTime)]
    pub confirmed_at: Option<String>,
}

impl DepositFacts {
    /// Less than `dust` is no payment. `checkout_url` is the page where it can be paid.
    pub fn of(deposit: &Deposit, dust: Usd, checkout_url: String) -> DepositFacts {
        let Deposit { invoice, payments, paid, .. } = deposit;
        DepositFacts {
            invoice_id: invoice.id.to_string(),
            status: InvoiceStatusWord(invoice.status),
            exception: invoice.exception(paid, dust).map(InvoiceExceptionWord),
            amount_usd: Money(invoice.amount),
            amount_due_usd: Money(invoice.due(paid)),
            received_usd: Money(paid.received),
            credited_usd: Money(paid.credited),
            currency: CurrencyWord(invoice.currency),
            network: NetworkWord(invoice.network),
            deposit_address: invoice.address.clone(),
            checkout_url,
            confirmations: deposit.confirmations(),
            required_confirmations: deposit.required_confirmations(),
            transactions: payments.iter().map(payment_view).collect(),
            created_at: iso(invoice.created_at),
            expires_at: iso(invoice.expires_at),
            confirmed_at: invoice.confirmed_at.map(iso),
        }
    }
}

/// One transfer of a token to the invoice's address.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Payment)]
pub struct PaymentView {
    #[schema(example = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060")]
    pub tx_hash: String,
    /// The network that it came by; this may be another than the invoice's.
    pub network: NetworkWord,
    /// The token that came; this may be another than the invoice's.
    pub currency: CurrencyWord,
    pub amount_usd: Money,
    /// 0 while it is in no block.
    #[schema(example = 3, minimum = 0)]
    pub confirmations: i64,
    /// ORPHANED: its block was replaced before it counted. REVERSED: it was credited, vanished from the chain and was
    /// taken back. Both may come back.
    pub status: PaymentStatusWord,
}

fn payment_view(payment: &Payment) -> PaymentView {
    let Payment { transfer, confirmations, .. } = payment;
    PaymentView {
        tx_hash: transfer.id.tx_hash.clone(),
        network: NetworkWord(transfer.id.network),
        currency: CurrencyWord(transfer.currency),
        amount_usd: Money(transfer.amount),
        confirmations: *confirmations,
        status: PaymentStatusWord(PaymentStatus::of(transfer)),
    }
}
