//! The page where a person pays an invoice: what, where, by which network, and how it stands. It works without
//! scripts. The invoice's id opens it, so the page is guarded like the install page and loads nothing from elsewhere.

use askama::Template;
use axum::http::StatusCode;

use super::install::EsimShown;
use crate::app::App;
use crate::config::NetworkSettings;
use crate::domain::checkout::Stage;
use crate::domain::invoice::{Deposit, InvoiceStatus, Payment};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Network};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::transfer::PaymentStatus;
use crate::error::Error;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::{Segment, invoice_id};
use crate::http::kit::notice::Sandbox;
use crate::http::kit::payment::{Asked, payment_due};
use crate::http::kit::problem::Refused;
use crate::http::kit::wire::readable;
use crate::http::kit::{State, html, qr};
use crate::ops::checkout::progress::{self, Progress};
use crate::ops::deposits;
use crate::ops::live::shown::{self, Shown};
use crate::ops::{guests, install};
use crate::wire::payment_uri;

const MINUTE_MICROS: i64 = 60_000_000;

#[derive(Template)]
#[template(path = "pay.html")]
struct PayPage {
    title: String,
    sandbox: Option<Sandbox>,
    state: Standing,
    amount: String,
    due: Option<Due>,
    network: &'static str,
    payments: Vec<Row>,
    invoice: String,
    /// What was bought, and the page that helps to install it.
    esim: Option<EsimShown>,
    install_url: Option<String>,
    /// Where a guest who came too late begins anew.
    again_url: Option<String>,
    /// The reference to tell when a payment that nearly fits was seen.
    nearly_paid: Option<String>,
    /// What a guest can claim.
    owed: Option<Usd>,
    refreshes: bool,
    /// Tells this view from others, and whether news may come; see `ops::live`.
    live: Shown,
}

/// Where the invoice stands, in words.
struct Standing {
    word: &'static str,
    headline: String,
    detail: String,
}

/// How to pay what is missing.
struct Due {
    amount: String,
    /// Only the exact amount counts as this payment.
    exact: bool,
    /// The amounts that count as this payment too, for people who round.
    rounded: Option<String>,
    address: Vec<String>,
    qr: String,
    /// A link that a wallet on this device understands.
    uri: Option<String>,
    /// Each network that the address exists on, with its tokens.
    accepted: Vec<String>,
}

struct Row {
    hash: String,
    amount: String,
    network: &'static str,
    status: String,
}

pub async fn page(_: Anyone, state: State, Segment(id): Segment) -> Answer {
    let (app, id) = (&state.app, invoice_id(id)?);
    let page = match deposits::show(app, &id).await {
        Err(Error::Refused(Refusal::InvoiceNotFound)) => {
            of_checkout(app, &progress::show(app, &id, None).await?)?
        }
        deposit => of_deposit(app, &deposit?)?,
    };
    html::page(StatusCode::OK, &page)
}

fn of_deposit(app: &App, deposit: &Deposit) -> Result<PayPage, Refused> {
    let invoice = &deposit.invoice;
    let token = invoice.currency.as_str();
    let rows = deposit.payments.iter().map(row);
    Ok(PayPage {
        title: format!("Pay {} {token} on {}", invoice.amount, invoice.network.name()),
        sandbox: Sandbox::on(&app.settings, invoice.network),
        state: standing(app, deposit),
        amount: format!("{} {token}", invoice.amount),
        due: due(app, deposit)?,
        network: invoice.network.name(),
        payments: rows.collect(),
        invoice: invoice.id.to_string(),
        esim: None,
        install_url: None,
        again_url: None,
        nearly_paid: None,
        owed: None,
        refreshes: invoice.status != InvoiceStatus::Confirmed,
        live: shown::of_deposit(deposit, app.now()),
    })
}

fn of_checkout(app: &App, progress: &Progress) -> Result<PayPage, Refused> {
    let Progress { checkout, stage, order, .. } = progress;
    let (token, network) = (checkout.currency.as_str(), checkout.network.name());
    let asked = Asked::from(progress);
    let band = asked.band();
    let rounded = asked.rounds.then(|| format!("from {} to {} {token}", band.least, band.most));
    let taken = rounded.clone().unwrap_or_else(|| format!("exactly {} {token}", checkout.amount));
    let waiting = *stage == Stage::PendingPayment && progress.confirmations() == 0;
    let due = Due {
        amount: format!("{} {token}", checkout.amount),
        exact: !asked.rounds,
        rounded,
        address: groups_of_four(&checkout.address),
        qr: qr::svg(&qr::encode(&checkout.address)?),
        uri: (checkout.network.kind() == AddressKind::Evm).then_some(payment_due(app, asked)?.payment_uri),
        accepted: vec![format!("{taken} on {network}")],
    };
    let rows = progress.payments.iter().map(row);
    // A top-up has nothing to install.
    let delivered = order.as_ref().filter(|order| *stage == Stage::Completed && !order.id.is_topup());
    let esim = match delivered {
        Some(order) => install::activation(app, order)?.map(|code| EsimShown::new(app, &order.id, code)),
        None => None,
    };
    Ok(PayPage {
        title: format!("Pay {} {token} on {network} for {}", checkout.amount, checkout.plan_name),
        sandbox: Sandbox::on(&app.settings, checkout.network),
        state: standing_of_checkout(app, progress),
        amount: format!("{}: {} {token}", checkout.plan_name, checkout.amount),
        due: waiting.then_some(due),
        network,
        payments: rows.collect(),
        invoice: checkout.id.to_string(),
        esim,
        install_url: delivered.map(|order| install::page_url(app, &order.id)),
        again_url: (*stage == Stage::Expired && checkout.is_guests())
            .then(|| guests::page_path(&checkout.package_code, None)),
        nearly_paid: progress.nearly_paid.then(|| app.numbers.of_checkout(checkout)),
        owed: Some(progress.owed).filter(|owed| owed.is_positive()),
        // Nobody can type an email address into a page that reloads meanwhile.
        refreshes: !matches!(stage, Stage::Completed | Stage::Failed) && !progress.owed.is_positive(),
        live: shown::of_checkout(progress, app.now()),
    })
}

fn terms(app: &App, network: Network) -> Option<&NetworkSettings> {
    app.settings.settlement.networks.get(&network)
}

fn standing(app: &App, deposit: &Deposit) -> Standing {
    let Deposit { invoice, paid, .. } = deposit;
    let required = deposit.required_confirmations();
    let (due, token) = (invoice.due(paid), invoice.currency.as_str());
    let still_due = if due.is_positive() { format!(" Still due: {due} {token}.") } else { String::new() };
    let (headline, detail) = match invoice.status {
        InvoiceStatus::Pending if is_missing(&deposit.payments) => missing(),
        InvoiceStatus::Pending => (
            "Waiting for your payment".to_string(),
            format!(
                "Pay within {}: this invoice is open until {}.",
                left(invoice.expires_at, app.now()),
                readable(invoice.expires_at)
            ),
        ),
        InvoiceStatus::Confirming => {
            let seen = deposit.confirmations().min(required);
            (
                format!("Payment seen: {seen} of {required} confirmations"),
                format!(
                    "{} USD are on the chain. Large amounts also wait until the network calls their block \
                     final.{still_due}",
                    paid.received.priced()
                ),
            )
        }
        InvoiceStatus::Confirmed => (
            "Payment confirmed".to_string(),
            format!("{} USD were credited.{still_due}", paid.credited.priced()),
        ),
        InvoiceStatus::Expired => (
            "This invoice has expired".to_string(),
            format!(
                "It was open until {}. If you have paid already, wait: what arrives is still credited. If you have \
                 not, ask for a new invoice.",
                readable(invoice.expires_at)
            ),
        ),
    };
    Standing { word: invoice.status.as_str(), headline, detail }
}

fn standing_of_checkout(app: &App, progress: &Progress) -> Standing {
    let Progress { checkout, stage, required_confirmations, .. } = progress;
    let asked = Asked::from(progress).amount();
    let (headline, detail) = match (stage, progress.confirmations()) {
        (Stage::PendingPayment, 0) if progress.signed => {
            ("Your payment is on its way to the chain".to_string(), "Do not pay again.".into())
        }
        (Stage::PendingPayment, 0) if is_missing(&progress.payments) => missing(),
        (Stage::PendingPayment, 0) => (
            "Waiting for your payment".to_string(),
            format!(
                "Send {asked} within {}: the price holds until {}.",
                left(checkout.expires_at, app.now()),
                readable(checkout.expires_at)
            ),
        ),
        (Stage::PendingPayment, seen) => (
            "Payment seen".to_string(),
            format!("It has {seen} of {required_confirmations} confirmations. Do not pay again."),
        ),
        (Stage::ConfirmedAwaitingFulfillment | Stage::Processing, _) if checkout.esim_order.is_some() => {
            ("Paid: the data is being added to your eSIM".to_string(), "This takes a few seconds.".into())
        }
        (Stage::Completed, _) if checkout.esim_order.is_some() => {
            ("Your eSIM is topped up".to_string(), "The data was added; nothing has to be installed.".into())
        }
        (Stage::ConfirmedAwaitingFulfillment | Stage::Processing, _) => {
            ("Paid: your eSIM is being prepared".to_string(), "This takes a few seconds.".into())
        }
        (Stage::Completed, _) => (
            "Your eSIM is ready".to_string(),
            "Install it once, with an internet connection, before you leave or when you arrive.".into(),
        ),
        (Stage::Failed, _) if progress.owed.is_positive() => {
            ("Not delivered: the money is owed to you".to_string(), "You can claim it below.".into())
        }
        (Stage::Failed, _) if checkout.is_nobodys() => (
            "Not delivered".to_string(),
            "Nothing can be claimed now: the payment is missing on its chain.".into(),
        ),
        (Stage::Failed, _) => (
            "Not delivered: the money is in the wallet".to_string(),
            "It can buy another plan from there.".into(),
        ),
        (Stage::Expired, _) => (
            "The time to pay is over".to_string(),
            format!(
                "If you have sent {asked} already, wait: until {} it still counts. If not, check out again.",
                readable(checkout.late_until)
            ),
        ),
    };
    Standing { word: stage.as_str(), headline, detail }
}

/// Something was paid, and none of it is on the chain now.
fn is_missing(payments: &[Payment]) -> bool {
    !payments.is_empty() && payments.iter().all(|payment| payment.transfer.block.is_none())
}

fn missing() -> (String, String) {
    let detail = "The network dropped it, and may bring it back: then it counts. Do not pay again before your wallet says \
                  that it has failed.";
    ("Your payment was seen, and is missing now".into(), detail.into())
}

/// The time that is left, in words.
fn left(until: Time, now: Time) -> String {
    match (until.micros() - now.micros()) / MINUTE_MICROS {
        minutes if minutes >= 120 => format!("{} hours", minutes / 60),
        minutes if minutes >= 2 => format!("{minutes} minutes"),
        1 => "1 minute".into(),
        _ => "less than a minute".into(),
    }
}

fn due(app: &App, deposit: &Deposit) -> Result<Option<Due>, Refused> {
    let invoice = &deposit.invoice;
    let amount = invoice.due(&deposit.paid);
    // A visitor who comes too late is told to ask for another invoice.
    if !amount.is_positive() || invoice.status == InvoiceStatus::Expired {
        return Ok(None);
    }
    Ok(Some(Due {
        amount: format!("{amount} {}", invoice.currency.as_str()),
        exact: false,
        rounded: None,
        address: groups_of_four(&invoice.address),
        qr: qr::svg(&qr::encode(&invoice.address)?),
        uri: wallet_uri(app, deposit, amount),
        accepted: accepted(app, invoice.network.kind()),
    }))
}

/// So that two addresses can be compared by eye; `0x` belongs to the first group.
fn groups_of_four(address: &str) -> Vec<String> {
    let (prefix, rest) = address.split_at(if address.starts_with("0x") { 2 } else { 0 });
    let letters: Vec<char> = rest.chars().collect();
    let mut groups: Vec<String> = letters.chunks(4).map(|four| four.iter().collect()).collect();
    if let Some(first) = groups.first_mut() {
        first.insert_str(0, prefix);
    }
    groups
}

/// Wallets on TRON have no common form of link.
fn wallet_uri(app: &App, deposit: &Deposit, amount: Usd) -> Option<String> {
    let invoice = &deposit.invoice;
    if invoice.network.kind() != AddressKind::Evm {
        return None;
    }
    let token =
        terms(app, invoice.network)?.tokens.iter().find(|token| token.currency == invoice.currency)?;
    Some(payment_uri(invoice.network, &token.contract, &invoice.address, amount))
}

fn accepted(app: &App, kind: AddressKind) -> Vec<String> {
    let of_kind = app.settings.settlement.networks.iter().filter(|(network, _)| network.kind() == kind);
    let tokens = |terms: &NetworkSettings| {
        terms.tokens.iter().map(|token| token.currency.as_str()).collect::<Vec<_>>().join(" or ")
    };
    of_kind.map(|(network, terms)| format!("{} on {}", tokens(terms), network.name())).collect()
}

fn row(payment: &Payment) -> Row {
    let Payment { transfer, confirmations, needed } = payment;
    Row {
        hash: transfer.id.tx_hash.clone(),
        amount: format!("{} {}", transfer.amount, transfer.currency.as_str()),
        network: transfer.id.network.name(),
        status: match PaymentStatus::of(transfer) {
            PaymentStatus::Confirming => format!("confirming, {} of {needed}", confirmations.min(needed)),
            PaymentStatus::Confirmed => "confirmed".into(),
            PaymentStatus::Orphaned => "dropped by the network; it may come back".into(),
            PaymentStatus::Reversed => "taken back by the network; it may come back".into(),
        },
    }
}
