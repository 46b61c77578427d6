//! Magic links: a page where a person tops up one user's wallet, handed out by an agent that is short of money. A link
//! can only pay in: it shows no balance, opens no account and is no token. It expires after 30 minutes.

use super::deposits::{self, NewDeposit};
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, secret_text};
use crate::domain::invoice::{Deposit, Invoice};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::magic_links;
use crate::store::tx::Tx;
use crate::store::{invoices, users, wallet};
use crate::vault;

const GOOD_FOR_MS: i64 = 30 * 60_000;
/// A smaller payment would confirm no invoice.
const LEAST: Usd = Usd::dollars(1);

pub struct MagicLink {
    pub url: String,
    pub expires_at: Time,
}

/// Makes a link that tops up this account's wallet by at least `minimum`. Its token is only in the URL.
pub async fn create(app: &App, account: AccountNo, minimum: Usd) -> Result<MagicLink> {
    let token = secret_text("", [vault::random(), vault::random()]);
    let (hash, now) = (vault::hash_secret(&token), app.now());
    let expires_at = now.plus_millis(GOOD_FOR_MS);
    let minimum = minimum.max(LEAST);
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && magic_links::find(tx, &hash, now)?.is_some() {
            return Ok(());
        }
        magic_links::create(
            tx,
            &hash,
            &magic_links::MagicLink { account, minimum, invoice: None, expires_at },
            now,
        )
    };
    app.store.write(account.0, write).await?;
    Ok(MagicLink { url: format!("{}/topup/{token}", app.settings.checkout_url), expires_at })
}

/// The terms of a link.
pub struct LinkTerms {
    /// Whose wallet it is; `None` for an account without an email.
    pub email: Option<Email>,
    pub minimum: Usd,
    pub expires_at: Time,
}

pub async fn open(app: &App, token: &str) -> Result<LinkTerms> {
    let (hash, now) = (vault::hash_secret(token), app.now());
    let read = move |tx: &mut Tx| {
        let link = magic_links::find(tx, &hash, now)?.ok_or(Refusal::MagicLinkEnded)?;
        if wallet::read(tx, link.account)?.suspended {
            return Err(Refusal::AccountSuspended.into());
        }
        let email = users::email(tx, link.account)?;
        Ok(LinkTerms { email, minimum: link.minimum, expires_at: link.expires_at })
    };
    app.store.read(read).await
}

/// The wallet's unpaid invoices on a network: the only ones that a link may open there.
pub async fn unpaid(app: &App, token: &str, network: Network) -> Result<Vec<Invoice>> {
    let (hash, now) = (vault::hash_secret(token), app.now());
    let read = move |tx: &mut Tx| {
        let link = magic_links::find(tx, &hash, now)?.ok_or(Refusal::MagicLinkEnded)?;
        invoices::open(tx, link.account, network)
    };
    app.store.read(read).await
}

/// How somebody wants to pay.
#[derive(Clone, Copy)]
pub struct Means {
    pub amount: Usd,
    pub currency: Currency,
    pub network: Network,
}

/// Opens a deposit to the link's wallet. A repeated request gets the same deposit while that one is unpaid.
pub async fn pay_in(app: &App, token: &str, means: Means) -> Result<Deposit> {
    let (hash, now) = (vault::hash_secret(token), app.now());
    let link = app.store.read(move |tx| magic_links::find(tx, &hash, now)).await?;
    let link = link.ok_or(Refusal::MagicLinkEnded)?;
    let Means { amount, currency, network } = means;
    let new = NewDeposit { account: link.account, amount, currency, network };
    let draft = deposits::DepositDraft::new(app, new, Some(link.minimum))?;
    let write = move |tx: &mut Tx| {
        // A second press of the button must find the first one's deposit.
        wallet::lock(tx, new.account)?;
        let link = magic_links::find(tx, &hash, now)?.ok_or(Refusal::MagicLinkEnded)?;
        let last = match &link.invoice {
            Some(id) => invoices::by_id(tx, id)?,
            None => None,
        };
        if let Some(same) = last.filter(|invoice| new.is_asked_by(invoice)) {
            return Ok(same);
        }
        let invoice = draft.place(tx)?;
        magic_links::opened(tx, &hash, &invoice.id)?;
        Ok(invoice)
    };
    let invoice = app.store.write(link.account.0, write).await?;
    Ok(deposits::opened(app, invoice))
}
