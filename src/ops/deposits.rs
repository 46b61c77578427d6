//! Deposits: an invoice with an address of the account's own, the payments to it, and checking the chain on request.
//! Only `booking.rs` credits money; nothing here moves any. `deposits/standing.rs` has the address that needs no invoice,
//! and `deposits/history.rs` the list of what was asked for and what came.

pub mod by_key;
pub mod by_team;
pub mod history;
pub mod record;
pub mod standing;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

pub use self::history::history;
pub use self::standing::{Standing, standing};
use super::addresses::derive;
use super::booking;
use super::owned::Owned;
use super::scan::{self, Halt};
use crate::app::App;
use crate::chain::address::Xpub;
use crate::chain::{Chain, Mined, Tip, Watched, Witness};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::invoice::{Deposit, Invoice, InvoiceStatus};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::transfer::{Transfer, TransferState, parse_tx_hash};
use crate::error::{Error, Result};
use crate::store::addresses;
use crate::store::tx::Tx;
use crate::store::{cursors, invoices, transfers, wallet};

pub const MAX_AMOUNT: Usd = Usd::dollars(1_000_000);
const MAX_OPEN: usize = 5;
/// How many days an address is searched for in every block after its last invoice.
const WATCH_DAYS: i64 = 7;
/// How long a look's answer is shared with callers who ask the same.
const LOOK_EVERY_MS: i64 = 2_000;
/// How many different questions about one invoice are asked within that time without a delay.
const LOOKS_AT_ONCE: usize = 5;
/// Callers wait at most this long for a chain.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many blocks back a caller may make us look: the scanner does the rest.
const LOOK_BLOCKS: i64 = 5_000;

#[derive(Clone, Copy)]
pub struct NewDeposit {
    pub account: AccountNo,
    pub amount: Usd,
    pub currency: Currency,
    pub network: Network,
}

impl NewDeposit {
    /// Whether this invoice asks for the same, and has no payment yet.
    pub(super) fn is_asked_by(&self, invoice: &Invoice) -> bool {
        invoice.status == InvoiceStatus::Pending
            && (invoice.amount, invoice.currency, invoice.network)
                == (self.amount, self.currency, self.network)
    }
}

/// The pairs of token and network that can be paid in.
pub fn pairs(app: &App) -> Vec<(Currency, Network)> {
    let of_network = |(network, terms): (&Network, &crate::config::NetworkSettings)| {
        let network = *network;
        terms.tokens.iter().map(move |token| (token.currency, network)).collect::<Vec<_>>()
    };
    app.settings.settlement.networks.iter().flat_map(of_network).collect()
}

/// The smallest deposit that some network takes.
pub fn least(app: &App) -> Usd {
    let networks = app.settings.settlement.networks.values();
    networks.map(|terms| terms.min_deposit).min().unwrap_or(MAX_AMOUNT)
}

/// The page where a person can pay.
pub fn checkout_url(app: &App, id: &InvoiceId) -> String {
    format!("{}/pay/{id}", app.settings.checkout_url)
}

/// Opens an invoice on an address that serves no other open one.
pub async fn open(app: &App, new: NewDeposit) -> Result<Deposit> {
    let draft = DepositDraft::new(app, new, None)?;
    let invoice = app.store.write(new.account.0, move |tx| draft.place(tx)).await?;
    Ok(opened(app, invoice))
}

/// The same for a page's form: pressed twice, it gets the same invoice while that one is unpaid.
pub async fn open_once(app: &App, new: NewDeposit) -> Result<Deposit> {
    let draft = DepositDraft::new(app, new, None)?;
    let write = move |tx: &mut Tx| same_or_new(tx, &draft).map(|(invoice, _)| invoice);
    let invoice = app.store.write(new.account.0, write).await?;
    Ok(opened(app, invoice))
}

/// The unpaid invoice that asks for the same, or a new one, and whether it is new.
fn same_or_new(tx: &mut Tx, draft: &DepositDraft) -> Result<(Invoice, bool)> {
    let new = &draft.new;
    wallet::lock(tx, new.account)?;
    let open = invoices::open(tx, new.account, new.network)?;
    match open.into_iter().find(|invoice| new.is_asked_by(invoice)) {
        Some(same) => Ok((same, false)),
        None => draft.place(tx).map(|invoice| (invoice, true)),
    }
}

/// An account's unpaid invoices on a network.
pub async fn unpaid(app: &App, account: AccountNo, network: Network) -> Result<Vec<Invoice>> {
    app.store.read(move |tx| invoices::open(tx, account, network)).await
}

/// An invoice that has no payment yet.
pub(super) fn opened(app: &App, invoice: Invoice) -> Deposit {
    app.expected.send_modify(|count| *count += 1);
    record::unpaid(app, invoice)
}

/// A deposit before it is opened.
pub(super) struct DepositDraft {
    new: NewDeposit,
    id: InvoiceId,
    now: Time,
    expires_at: Time,
    xpub: Xpub,
}

impl DepositDraft {
    /// Refuses what cannot be accepted. `least` replaces the network's own minimum.
    pub(super) fn new(app: &App, new: NewDeposit, least: Option<Usd>) -> Result<DepositDraft> {
        let terms = app.settings.settlement.networks.get(&new.network);
        let Some(terms) = terms.filter(|terms| terms.takes(new.currency)) else {
            return Err(Refusal::UnsupportedPair(pairs(app)).into());
        };
        let least = least.unwrap_or(terms.min_deposit);
        if new.amount < least {
            return Err(Refusal::field("amountUsd", format!("must be at least {least}")).into());
        }
        if new.amount > MAX_AMOUNT {
            return Err(Refusal::field("amountUsd", format!("must be at most {MAX_AMOUNT}")).into());
        }
        let now = app.now();
        Ok(DepositDraft {
            new,
            id: app.new_invoice_id(),
            now,
            expires_at: now.plus_millis(app.settings.settlement.invoice_minutes * 60_000),
            xpub: app.settings.settlement.xpub(new.network.kind()).clone(),
        })
    }

    pub(super) fn place(&self, tx: &mut Tx) -> Result<Invoice> {
        let DepositDraft { new, id, now, xpub, .. } = self;
        if tx.is_rerun()
            && let Some(made) = invoices::by_id(tx, id)?
        {
            return Ok(made);
        }
        // Two concurrent invoices must not both take the same free address.
        wallet::lock(tx, new.account)?;
        if wallet::read(tx, new.account)?.suspended {
            return Err(Refusal::AccountSuspended.into());
        }
        let open = invoices::open(tx, new.account, new.network)?;
        if let (Some(first), true) = (open.first(), open.len() >= MAX_OPEN) {
            let wait = (first.expires_at.micros() - now.micros()).max(1_000_000) / 1_000_000;
            return Err(Refusal::TooManyInvoices { retry_after_secs: wait.unsigned_abs() }.into());
        }
        let address = own_address(tx, new.account, xpub, *now)?;
        let invoice = Invoice {
            id: id.clone(),
            account: new.account,
            network: new.network,
            currency: new.currency,
            amount: new.amount,
            address,
            status: InvoiceStatus::Pending,
            created_at: *now,
            expires_at: self.expires_at,
            expired_at: None,
            confirmed_at: None,
        };
        invoices::insert(tx, &invoice)?;
        Ok(invoice)
    }
}

/// An address of the account's own that serves no open invoice, watched from now on. The caller has locked the wallet: two
/// invoices must not both take the same address.
pub(super) fn own_address(tx: &mut Tx, account: AccountNo, xpub: &Xpub, now: Time) -> Result<String> {
    let (kind, watch_until) = (xpub.kind(), now.plus_days(WATCH_DAYS));
    match addresses::free(tx, account, kind, xpub.fingerprint())? {
        Some(address) => {
            addresses::watch(tx, &address, watch_until)?;
            Ok(address)
        }
        None => {
            let index = addresses::take_indexes(tx, kind, xpub.fingerprint(), 1)?;
            derive(tx, xpub, index, Some(account), watch_until, now)
        }
    }
}

/// An account's own invoice.
pub async fn find(app: &App, account: AccountNo, id: &InvoiceId) -> Result<Deposit> {
    let deposit = show(app, id).await?;
    if deposit.invoice.belongs_to(account) { Ok(deposit) } else { Err(Refusal::InvoiceNotFound.into()) }
}

/// An invoice, for anybody who holds its id.
pub async fn show(app: &App, id: &InvoiceId) -> Result<Deposit> {
    let (id, reader) = (id.clone(), app.clone());
    let read = move |tx: &mut Tx| match invoices::by_id(tx, &id)? {
        Some(invoice) => record::read(&reader, tx, invoice).map(Some),
        None => Ok(None),
    };
    // One consistent read: the state of an invoice must not be older than the money that it shows.
    Ok(app.store.read_consistent(read).await?.ok_or(Refusal::InvoiceNotFound)?)
}

/// The result of checking the chain.
pub struct Verified {
    pub deposit: Deposit,
    pub balance: Usd,
    /// For people.
    pub message: String,
    /// The transaction counts for this other invoice of the account.
    pub credited_to: Option<InvoiceId>,
}

/// Checks the chain now, for all payments to this invoice or for one transaction.
pub async fn verify(
    app: &App,
    account: AccountNo,
    id: &InvoiceId,
    tx_hash: Option<&str>,
) -> Result<Verified> {
    let before = find(app, account, id).await?;
    let invoice = &before.invoice;
    let credited_to = match tx_hash {
        None => app.looks.share(app, invoice, "", look(app, invoice)).await?,
        Some(text) => {
            let hash = parse_tx_hash(invoice.network.kind(), text).ok_or_else(|| {
                Refusal::field("txHash", "must be a transaction hash of the invoice's network")
            })?;
            app.looks.share(app, invoice, &hash, look_at(app, invoice, &hash)).await?
        }
    };
    let deposit = find(app, account, id).await?;
    let balance = app.store.read(move |tx| wallet::read(tx, account)).await?.balance;
    let message = message(&deposit, credited_to.is_some());
    Ok(Verified { deposit, balance, message, credited_to })
}

fn message(deposit: &Deposit, elsewhere: bool) -> String {
    let Deposit { invoice, paid, .. } = deposit;
    let (currency, network) = (invoice.currency.as_str(), invoice.network.name());
    match invoice.status {
        _ if elsewhere => "This transaction counts for another invoice of this account.".into(),
        InvoiceStatus::Confirmed => format!("{} USD were credited to the wallet.", paid.credited),
        InvoiceStatus::Confirming => format!(
            "{} USD were seen; waiting for confirmations: {} of {}.",
            paid.received,
            deposit.confirmations(),
            deposit.required_confirmations()
        ),
        InvoiceStatus::Pending => format!("Waiting for {} {currency} on {network}.", invoice.due(paid)),
        InvoiceStatus::Expired => format!(
            "The invoice has expired unpaid. {currency} sent to its address on {network} is still credited."
        ),
    }
}

/// One look at a time for each invoice: callers who ask the same within two seconds share it, and a caller who asks for
/// many transactions waits.
#[derive(Default)]
pub struct Looks(Mutex<HashMap<String, Slot>>);

type Slot = Arc<tokio::sync::Mutex<Vec<SharedLook>>>;

struct SharedLook {
    at: Time,
    /// The transaction that was asked for; empty for any payment.
    what: String,
    seen: Seen,
}

enum Seen {
    /// The invoice that the transaction counts for, if it is another one.
    Counts(Option<InvoiceId>),
    /// The look failed, so it is not shared.
    Nothing,
}

impl Looks {
    async fn share(
        &self,
        app: &App,
        invoice: &Invoice,
        what: &str,
        work: impl Future<Output = Result<Option<InvoiceId>>>,
    ) -> Result<Option<InvoiceId>> {
        let recent = |look: &SharedLook| app.now().is_within(LOOK_EVERY_MS, look.at);
        let slot = {
            let mut slots = self.0.lock().map_err(Error::fault)?;
            let in_use = |slot: &Slot| Arc::strong_count(slot) > 1;
            slots.retain(|_, slot| {
                in_use(slot) || slot.try_lock().is_ok_and(|looks| looks.iter().any(recent))
            });
            slots.entry(invoice.id.to_string()).or_default().clone()
        };
        let mut looks = slot.lock().await;
        looks.retain(recent);
        let same = looks.iter().rev().find(|look| look.what == what);
        if let Some(SharedLook { seen: Seen::Counts(answer), .. }) = same {
            return Ok(answer.clone());
        }
        if looks.len() >= LOOKS_AT_ONCE {
            tokio::time::sleep(Duration::from_millis(LOOK_EVERY_MS.unsigned_abs())).await;
        }
        let answer = work.await;
        let seen = answer.as_ref().map_or(Seen::Nothing, |answer| Seen::Counts(answer.clone()));
        looks.push(SharedLook { at: app.now(), what: what.into(), seen });
        answer
    }
}

/// The invoice's own network first, then the others that its address exists on.
fn networks_of(app: &App, network: Network) -> Vec<Arc<dyn Chain>> {
    let mut chains: Vec<Arc<dyn Chain>> =
        app.chains.values().filter(|chain| chain.network().kind() == network.kind()).cloned().collect();
    chains.sort_by_key(|chain| chain.network() != network);
    chains
}

/// Looks on all networks at once: a silent one must not hold up the others.
async fn look(app: &App, invoice: &Invoice) -> Result<Option<InvoiceId>> {
    let chains = networks_of(app, invoice.network);
    let looks = chains.iter().map(|chain| timeout(PATIENCE, look_on(app, &**chain, &invoice.address)));
    for (chain, looked) in chains.iter().zip(join_all(looks).await) {
        match looked {
            Ok(Ok(())) => {}
            Ok(Err(Halt::Ours(error))) => return Err(error),
            // Trouble on another network must not prevent an answer about this one.
            Ok(Err(Halt::Chain(_))) | Err(_) if chain.network() != invoice.network => {}
            Ok(Err(Halt::Chain(_))) | Err(_) => return Err(Refusal::ChainUnavailable.into()),
        }
    }
    Ok(None)
}

async fn look_on(app: &App, chain: &dyn Chain, address: &str) -> Result<(), Halt> {
    let network = chain.network();
    let tip = chain.tip().await?;
    let cursor = app.store.read(move |tx| cursors::get(tx, network)).await?;
    let known = cursor.map_or(tip.head.number, |cursor| cursor.scanned) - scan::overlap(app, network);
    let from = known.max(tip.head.number - LOOK_BLOCKS);
    let one = Watched::new(network.kind(), [address.to_string()]);
    scan::look(app, chain, &one, from, tip.head.number).await?;
    settle_address(app, chain, address, &tip).await?;
    Ok(())
}

async fn settle_address(app: &App, chain: &dyn Chain, address: &str, tip: &Tip) -> Result<()> {
    let (address, least) = (address.to_string(), app.settings.settlement.least_kept);
    let mut open = app.store.read(move |tx| transfers::open_at(tx, &address, least)).await?;
    open.retain(|transfer| transfer.id.network == chain.network());
    booking::credit_final(app, chain, &open, tip).await
}

/// Looks at one transaction. Answers the other invoice of this account that it counts for, if any.
async fn look_at(app: &App, invoice: &Invoice, hash: &str) -> Result<Option<InvoiceId>> {
    let chains = networks_of(app, invoice.network);
    let asked = chains.iter().map(|chain| timeout(PATIENCE, chain.transaction(hash, Witness::Any)));
    let mut out_of_reach = false;
    for (chain, answer) in chains.iter().zip(join_all(asked).await) {
        match answer {
            Ok(Ok(Some(mined))) => return judge(app, &**chain, invoice, hash, &mined).await,
            Ok(Ok(None)) => {}
            Ok(Err(_)) | Err(_) => out_of_reach |= chain.network() == invoice.network,
        }
    }
    if out_of_reach { Err(Refusal::ChainUnavailable.into()) } else { Ok(None) }
}

/// Credits a transaction only to the account whose own address it paid.
async fn judge(
    app: &App,
    chain: &dyn Chain,
    invoice: &Invoice,
    hash: &str,
    mined: &Mined,
) -> Result<Option<InvoiceId>> {
    if !mined.succeeded {
        return Err(Refusal::TxFailed.into());
    }
    booking::note(app, &mined.transfers).await?;
    let (network, name) = (chain.network(), hash.to_string());
    let ours = app.store.read(move |tx| transfers::of_transaction(tx, network, &name)).await?;
    let mine = ours.iter().filter(|transfer| transfer.account == Some(invoice.account));
    let (here, elsewhere): (Vec<&Transfer>, Vec<&Transfer>) =
        mine.partition(|transfer| transfer.invoice.as_ref() == Some(&invoice.id));
    if !here.is_empty() {
        let tip = match timeout(PATIENCE, chain.tip()).await {
            Ok(Ok(tip)) => tip,
            Ok(Err(_)) | Err(_) => return Err(Refusal::ChainUnavailable.into()),
        };
        let here: Vec<Transfer> = here.into_iter().cloned().collect();
        booking::credit_final(app, chain, &here, &tip).await?;
        return Ok(None);
    }
    if let Some(other) = elsewhere.iter().find_map(|transfer| transfer.invoice.clone()) {
        return Ok(Some(other));
    }
    let used = ours
        .iter()
        .any(|transfer| matches!(transfer.state, TransferState::Credited | TransferState::Assigned));
    Err(if used { Refusal::TransferAlreadyUsed } else { Refusal::TxNotForInvoice }.into())
}
