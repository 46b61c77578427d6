//! The page where a person pays an invoice: what, where, by which network, and how it stands. The invoice's id opens it,
//! so the page is guarded like the install page and loads nothing from elsewhere. `standing.rs` has its words.

pub mod standing;

use askama::Template;
use axum::http::{HeaderMap, StatusCode};

use self::standing::{Clock, Standing};
use super::install::{Device, EsimShown};
use super::onward;
use super::payments::PaymentRow;
use crate::app::App;
use crate::config::NetworkSettings;
use crate::domain::checkout::Stage;
use crate::domain::invoice::{Deposit, InvoiceStatus};
use crate::domain::money::Usd;
use crate::domain::network::AddressKind;
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::{Query, Segment, invoice_id};
use crate::http::kit::notice::Sandbox;
use crate::http::kit::payment::{Asked, payment_due};
use crate::http::kit::problem::Refused;
use crate::http::kit::{State, html, qr};
use crate::ops::checkout::progress::{self, Progress};
use crate::ops::live::shown::{self, Shown};
use crate::ops::{accounts, deposits, guests, install, sandbox};
use crate::wire::payment_uri;

/// Where a person whose wallet holds money spends it.
const BUY_PATH: &str = "/account/buy";

#[derive(Template)]
#[template(path = "pay.html")]
struct PayPage {
    title: String,
    sandbox: Option<Sandbox>,
    state: Standing,
    steps: Vec<(&'static str, &'static str)>,
    clock: Option<Clock>,
    /// How many there are, of how many that are needed.
    confirmations: Option<(i64, i64)>,
    due: Option<Due>,
    network: &'static str,
    payments: Vec<PaymentRow>,
    invoice: String,
    /// Tells this view from others, and whether news may come; see `ops::live`.
    live: Shown,
    /// What was bought, and the page that helps to install it.
    esim: Option<EsimShown>,
    install_url: Option<String>,
    /// Whether it pays into a partner's wallet. Whoever opens the page learns no more of whose it is.
    is_partners: bool,
    /// Where to go on from here, and what the button says.
    next: Option<(String, &'static str)>,
    /// Where a guest chooses another network.
    other_url: Option<String>,
    /// The reference of a checkout.
    reference: Option<String>,
    /// What a guest can claim.
    owed: Option<Usd>,
    summary: Summary,
    /// Whether a page without scripts looks again by itself. Nobody can type an email address into one that does.
    refreshes: bool,
}

impl PayPage {
    /// Whether there is something to pay, install or claim here; it stands beside the state.
    fn has_more_to_do(&self) -> bool {
        self.due.is_some() || self.esim.is_some() || self.owed.is_some()
    }
}

/// How to pay what is missing.
struct Due {
    /// Up to the cents, and the digits behind them.
    amount: (String, String),
    token: &'static str,
    /// Only the exact amount counts as this payment.
    exact: bool,
    /// The amounts that count as this payment too, for people who round.
    rounded: Option<String>,
    address: String,
    groups: Vec<String>,
    address_qr: String,
    /// A link that a wallet on this device understands, and its QR code.
    uri: String,
    uri_qr: String,
    /// Each network that the address exists on, with its tokens.
    accepted: Vec<String>,
}

/// What is paid for, line by line.
struct Summary {
    title: String,
    lines: Vec<(String, String)>,
    email: Option<String>,
}

pub async fn page(_: Anyone, state: State, Segment(id): Segment, headers: HeaderMap, query: Query) -> Answer {
    let (app, id) = (&state.app, invoice_id(id)?);
    let page = match deposits::show(app, &id).await {
        Err(Error::Refused(Refusal::InvoiceNotFound)) => {
            let device = Device::of(&query, &headers);
            of_checkout(app, &progress::show(app, &id, None).await?, device)?
        }
        deposit => {
            let deposit = &deposit?;
            of_deposit(app, deposit, accounts::is_users(app, deposit.invoice.account).await?)?
        }
    };
    html::page(&state, StatusCode::OK, &page)
}

/// Pays an invoice with test money. The route exists in a sandbox only.
pub async fn with_test_money(_: Anyone, state: State, Segment(id): Segment) -> Answer {
    let id = invoice_id(id)?;
    sandbox::pay_rest(&state.app, &id).await?;
    onward(&state, &id, "The test money is on its way.")
}

/// `is_users` when a person's wallet gets it, not a partner's.
fn of_deposit(app: &App, deposit: &Deposit, is_users: bool) -> Result<PayPage, Refused> {
    let invoice = &deposit.invoice;
    let is_confirmed = invoice.status == InvoiceStatus::Confirmed;
    let (said, sum) = match is_confirmed {
        true => ("Credited", deposit.paid.credited),
        false => ("To be credited", invoice.amount),
    };
    let token = invoice.currency.as_str();
    let required = deposit.required_confirmations();
    let confirming = invoice.status == InvoiceStatus::Confirming;
    let due = due(app, deposit)?;
    let is_done = is_confirmed && is_users && due.is_none();
    Ok(PayPage {
        title: format!("{} {token} on {}", invoice.amount, invoice.network.name()),
        sandbox: Sandbox::on(&app.settings, invoice.network),
        state: standing::of_deposit(deposit),
        steps: standing::steps_of_deposit(deposit),
        clock: (invoice.status == InvoiceStatus::Pending && due.is_some())
            .then(|| Clock::new(invoice.expires_at, app.now())),
        confirmations: confirming.then(|| (deposit.confirmations().min(required), required)),
        due,
        network: invoice.network.name(),
        payments: deposit.payments.iter().map(|payment| PaymentRow::of(app, payment)).collect(),
        invoice: invoice.id.to_string(),
        live: shown::of_deposit(deposit, app.now()),
        esim: None,
        install_url: None,
        is_partners: !is_users,
        next: is_done.then(|| (BUY_PATH.into(), "Buy a plan")),
        other_url: None,
        reference: None,
        owed: None,
        summary: Summary {
            title: "Add money".into(),
            lines: vec![(said.into(), format!("{} USD", sum.priced()))],
            email: None,
        },
        refreshes: !is_confirmed,
    })
}

fn of_checkout(app: &App, progress: &Progress, device: Device) -> Result<PayPage, Refused> {
    let Progress { checkout, stage, order, .. } = progress;
    let (token, network) = (checkout.currency.as_str(), checkout.network.name());
    let waiting = *stage == Stage::PendingPayment && progress.confirmations() == 0 && !progress.signed;
    let confirming = *stage == Stage::PendingPayment && progress.confirmations() > 0;
    // A top-up has nothing to install.
    let delivered = order.as_ref().filter(|order| *stage == Stage::Completed && !order.id.is_topup());
    let esim = match delivered {
        Some(order) => {
            install::activation(app, order)?.map(|code| EsimShown::new(app, &order.id, code, device))
        }
        None => None,
    };
    // Whoever was asked to pay for more data must not get to the eSIM by that.
    let sells_anew = checkout.is_guests() && checkout.esim_order.is_none();
    let again = || guests::page_path(&checkout.package_code, None);
    let is_in_wallet = *stage == Stage::Failed && !checkout.is_nobodys();
    let next = match stage {
        Stage::Expired if sells_anew => Some((again(), "Check out again")),
        _ => is_in_wallet.then(|| (BUY_PATH.into(), "Choose another plan")),
    };
    let required = progress.required_confirmations;
    Ok(PayPage {
        title: format!("{} {token} on {network} for {}", checkout.amount, checkout.plan_name),
        sandbox: Sandbox::on(&app.settings, checkout.network),
        state: standing::of_checkout(progress, &app.numbers.of_checkout(checkout)),
        steps: standing::steps_of_checkout(progress),
        clock: waiting.then(|| Clock::new(checkout.expires_at, app.now())),
        confirmations: confirming.then(|| (progress.confirmations().min(required), required)),
        due: if waiting { Some(due_of_checkout(app, Asked::from(progress))?) } else { None },
        network,
        payments: progress.payments.iter().map(|payment| PaymentRow::of(app, payment)).collect(),
        invoice: checkout.id.to_string(),
        live: shown::of_checkout(progress, app.now()),
        esim,
        install_url: delivered.map(|order| install::page_url(app, &order.id)),
        is_partners: false,
        next,
        other_url: sells_anew.then(again),
        reference: Some(app.numbers.of_checkout(checkout)),
        owed: Some(progress.owed).filter(|owed| owed.is_positive()),
        summary: summary(app, progress),
        refreshes: !matches!(stage, Stage::Completed | Stage::Failed) && !progress.owed.is_positive(),
    })
}

/// The price, what came off it, and what is paid.
fn summary(app: &App, progress: &Progress) -> Summary {
    let checkout = &progress.checkout;
    let mut lines = vec![(checkout.plan_name.clone(), format!("{} USD", checkout.list_price.priced()))];
    if let Some(coupon) = &checkout.coupon {
        lines.push((format!("Coupon {}", coupon.code), format!("−{} USD", coupon.discount.priced())));
    }
    let small = checkout.uniqueness_discount();
    // Who rounds pays another amount than was asked.
    let (said, amount, token) = match progress.payment().map(|payment| &payment.transfer) {
        Some(paid) => ("You paid", paid.amount, paid.currency),
        None => ("You pay", checkout.amount, checkout.currency),
    };
    if small.is_positive() && amount == checkout.amount {
        lines.push(("Small discount that marks your payment".into(), format!("−{} USD", small.priced())));
    }
    lines.push((said.into(), format!("{} {}", amount.priced(), token.as_str())));
    Summary {
        title: format!("Order {}", app.numbers.of_checkout(checkout)),
        lines,
        email: checkout.customer_email.as_ref().map(|email| email.masked()),
    }
}

fn due_of_checkout(app: &App, asked: Asked) -> Result<Due, Refused> {
    let (checkout, band) = (asked.checkout, asked.band());
    let (token, network) = (checkout.currency.as_str(), checkout.network.name());
    let rounded = asked.rounds.then(|| format!("from {} to {} {token}", band.least, band.most));
    let taken = rounded.clone().unwrap_or_else(|| format!("exactly {} {token}", checkout.amount));
    let uri = payment_due(app, asked)?.payment_uri;
    Ok(Due {
        amount: checkout.amount.in_parts(),
        token,
        exact: !asked.rounds,
        rounded,
        groups: groups_of_four(&checkout.address),
        address_qr: qr::svg(&qr::encode(&checkout.address)?),
        address: checkout.address.clone(),
        uri_qr: qr::svg(&qr::encode(&uri)?),
        uri,
        accepted: vec![format!("{taken} on {network}")],
    })
}

fn due(app: &App, deposit: &Deposit) -> Result<Option<Due>, Refused> {
    let invoice = &deposit.invoice;
    let amount = invoice.due(&deposit.paid);
    // A visitor who comes too late is told to ask for another invoice.
    if !amount.is_positive() || invoice.status == InvoiceStatus::Expired {
        return Ok(None);
    }
    let terms = app.settings.settlement.networks.get(&invoice.network);
    let token = terms.and_then(|terms| terms.tokens.iter().find(|token| token.currency == invoice.currency));
    let contract = token.map(|token| token.contract.as_str()).unwrap_or_default();
    let uri = payment_uri(invoice.network, contract, &invoice.address, amount);
    Ok(Some(Due {
        amount: amount.in_parts(),
        token: invoice.currency.as_str(),
        exact: false,
        rounded: None,
        groups: groups_of_four(&invoice.address),
        address_qr: qr::svg(&qr::encode(&invoice.address)?),
        address: invoice.address.clone(),
        uri_qr: qr::svg(&qr::encode(&uri)?),
        uri,
        accepted: accepted(app, invoice.network.kind()),
    }))
}

/// So that two addresses can be compared by eye; `0x` belongs to the first group.
pub fn groups_of_four(address: &str) -> Vec<String> {
    let (prefix, rest) = address.split_at(if address.starts_with("0x") { 2 } else { 0 });
    let letters: Vec<char> = rest.chars().collect();
    let mut groups: Vec<String> = letters.chunks(4).map(|four| four.iter().collect()).collect();
    if let Some(first) = groups.first_mut() {
        first.insert_str(0, prefix);
    }
    groups
}

/// What arrives at an address of this kind.
pub fn accepted(app: &App, kind: AddressKind) -> Vec<String> {
    let of_kind = app.settings.settlement.networks.iter().filter(|(network, _)| network.kind() == kind);
    let tokens = |terms: &NetworkSettings| {
        terms.tokens.iter().map(|token| token.currency.as_str()).collect::<Vec<_>>().join(" or ")
    };
    of_kind.map(|(network, terms)| format!("{} on {}", tokens(terms), network.name())).collect()
}
