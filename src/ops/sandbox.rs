//! Plays the outside world in sandbox mode: moves a profile's meter, sets the supplier's mode, pays invoices on
//! simulated chains, makes those chains misbehave, and tells of what did not happen.

use serde_json::value::RawValue;

use crate::app::App;
use crate::chain::Chain;
use crate::chain::sim::SimChain;
pub use crate::chain::sim::{ChainMode, Keep};
use crate::domain::esim::{EsimStatus, Usage};
use crate::domain::event::{Event, EventKind, News};
use crate::domain::ids::InvoiceId;
use crate::domain::invoice::Invoice;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::ops::checkout::progress;
use crate::ops::{deposits, operator};
use crate::store::tx::Tx;
use crate::store::{addresses, checkouts, esims, events, invoices, orders, wallet};
use crate::supplier::sim::Mood;
use crate::wire::events::example;

/// How an invoice is paid. A field left out is as the invoice asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Means {
    pub amount: Option<Usd>,
    pub network: Option<Network>,
    pub currency: Option<Currency>,
}

pub struct Payment {
    pub tx_hash: String,
    pub network: Network,
    pub currency: Currency,
    pub amount: Usd,
}

/// Orders for a simulated chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChainOrder {
    pub mode: Option<ChainMode>,
    /// How many blocks a lagging node lacks.
    pub behind: i64,
    /// How many blocks to replace, and what becomes of the transfers in them.
    pub reorg: Option<(i64, Keep)>,
}

/// The state of a simulated chain.
pub struct ChainState {
    pub network: Network,
    pub mode: ChainMode,
    /// How many blocks its node lacks.
    pub behind: i64,
    pub head: i64,
}

async fn state_of(network: Network, chain: &SimChain) -> Result<ChainState> {
    let (mode, behind) = chain.mood().await?;
    let behind = if mode == ChainMode::Lagging { behind } else { 0 };
    Ok(ChainState { network, mode, behind, head: chain.head().await? })
}

/// How every simulated chain behaves.
pub async fn chains(app: &App) -> Result<Vec<ChainState>> {
    let mut states = Vec::new();
    for (network, chain) in &app.sim_chains {
        states.push(state_of(*network, chain).await?);
    }
    Ok(states)
}

/// Uses data on a profile, installs it or lets it expire, as a phone would.
pub async fn move_usage(
    app: &App,
    iccid: &str,
    used_mb: Option<i64>,
    status: Option<EsimStatus>,
) -> Result<Usage> {
    let iccid = iccid.to_string();
    let order = app.store.read(move |tx| orders::by_iccid(tx, &iccid)).await?.ok_or(Refusal::EsimNotFound)?;
    let esim = order.esim.ok_or_else(|| Error::fault("a delivered order without its eSIM"))?;
    let moved = app.sim.move_usage(&esim.profile, used_mb, status, app.now()).await?;
    let moved = moved.ok_or(Refusal::EsimCancelled)?;
    // No profile comes back by itself. Whoever plays the phone may want to begin again.
    if Usage::after(esim.last_usage.as_ref(), &moved).status() != moved.status() {
        let id = order.id;
        app.store.write(order.account.0, move |tx| esims::forget_reading(tx, &id)).await?;
    }
    Ok(moved)
}

/// Writes an event that nothing happened for into the log of an account, or of the first partner. Without data it has those of
/// the documentation.
pub async fn tell(app: &App, account: Option<&str>, kind: EventKind, data: Option<&str>) -> Result<Event> {
    let account = match account {
        Some(text) => operator::account(app, text).await?.no,
        None => operator::partners(app).await?.first().ok_or(Refusal::AccountNotFound)?.no,
    };
    let data = data.or_else(|| example(kind).map(RawValue::get)).unwrap_or("{}").to_string();
    let (subject, at) = (app.new_entry_id().to_string(), app.now());
    let write = move |tx: &mut Tx| {
        // An event takes its place after a change: this stands for one.
        wallet::lock(tx, account)?;
        let news = News { account, kind, subject: &subject, sequence: 1, at, data: &data };
        let no = events::append(tx, &news)?.ok_or_else(|| Error::fault("an account without a log"))?;
        Ok(Event { no, kind, subject: subject.clone(), sequence: 1, at, data: data.clone() })
    };
    app.store.write(account.0, write).await
}

pub async fn set_supplier(app: &App, mood: impl Into<Mood>) -> Result<()> {
    app.sim.behave(mood.into(), app.now()).await
}

/// How the supplier behaves.
pub async fn supplier(app: &App) -> Result<Mood> {
    app.sim.mood().await
}

/// Sends a transfer to an invoice's address on a simulated chain, as its customer would.
pub async fn pay(app: &App, invoice: &InvoiceId, means: Means) -> Result<Payment> {
    let id = invoice.clone();
    let asked = app.store.read(move |tx| asked_by(tx, &id)).await?.ok_or(Refusal::InvoiceNotFound)?;
    send(app, asked, means).await
}

/// Pays to one of our addresses, whatever it serves.
pub async fn pay_to(app: &App, address: &str, means: Means) -> Result<Payment> {
    let amount = means.amount.ok_or_else(|| Refusal::field("amountUsd", "is required with address"))?;
    let address = address.to_string();
    let found = app.store.read(move |tx| addresses::find(tx, &address)).await?;
    let found = found.ok_or_else(|| Refusal::field("address", "must be an address of this gateway's"))?;
    let network = match found.kind {
        AddressKind::Evm => Network::Base,
        AddressKind::Tron => Network::Tron,
    };
    let asked = Asked { network, currency: Currency::Usdc, amount, address: found.address };
    send(app, asked, means).await
}

async fn send(app: &App, asked: Asked, means: Means) -> Result<Payment> {
    let network = means.network.unwrap_or(asked.network);
    let currency = means.currency.unwrap_or(asked.currency);
    let amount = means.amount.unwrap_or(asked.amount);
    if network.kind() != asked.network.kind() {
        let message = format!("has no addresses like those of {}", asked.network.as_str());
        return Err(Refusal::field("network", message).into());
    }
    let chain = simulated(app, network)?;
    if !chain.tokens().iter().any(|token| token.currency == currency) {
        return Err(Refusal::UnsupportedPair(deposits::pairs(app)).into());
    }
    let tx_hash = chain.pay(&asked.address, currency, amount).await?;
    Ok(Payment { tx_hash, network, currency, amount })
}

/// Pays what an invoice still asks for: nothing when it was paid already, or is being paid.
pub async fn pay_rest(app: &App, invoice: &InvoiceId) -> Result<()> {
    let rest = match deposits::show(app, invoice).await {
        Err(Error::Refused(Refusal::InvoiceNotFound)) => {
            let progress = progress::show(app, invoice, None).await?;
            Some(progress.checkout.amount).filter(|_| progress.payments.is_empty())
        }
        deposit => deposit.map(|deposit| Some(deposit.invoice.due(&deposit.paid)))?,
    };
    if let Some(amount) = rest.filter(|rest| rest.is_positive()) {
        pay(app, invoice, Means { amount: Some(amount), ..Means::default() }).await?;
    }
    Ok(())
}

/// What an invoice asks for, whether deposit or checkout.
struct Asked {
    network: Network,
    currency: Currency,
    amount: Usd,
    address: String,
}

fn asked_by(tx: &mut Tx, id: &InvoiceId) -> Result<Option<Asked>> {
    if let Some(invoice) = invoices::by_id(tx, id)? {
        let Invoice { network, currency, amount, address, .. } = invoice;
        return Ok(Some(Asked { network, currency, amount, address }));
    }
    Ok(checkouts::by_id(tx, id)?.map(|checkout| Asked {
        network: checkout.network,
        currency: checkout.currency,
        amount: checkout.amount,
        address: checkout.address,
    }))
}

/// Sets the mode of a simulated chain, or replaces its newest blocks.
pub async fn move_chain(app: &App, network: Network, order: ChainOrder) -> Result<ChainState> {
    let chain = simulated(app, network)?;
    if let Some(mode) = order.mode {
        chain.behave(mode, order.behind).await?;
    }
    if let Some((depth, keep)) = order.reorg {
        chain.reorg(depth, keep).await?;
    }
    state_of(network, chain).await
}

fn simulated(app: &App, network: Network) -> Result<&SimChain> {
    let message = format!("{} is not simulated here: it is switched off or has real nodes", network.as_str());
    let refused = || Refusal::field("network", message);
    Ok(app.sim_chains.get(&network).ok_or_else(refused)?)
}
