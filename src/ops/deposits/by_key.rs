//! Paying in by a partner's programs. Whether their key may is checked here.

use super::standing::{self, Standing};
use super::{NewDeposit, Verified};
use crate::app::App;
use crate::domain::ids::InvoiceId;
use crate::domain::invoice::Deposit;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::role::Ability;
use crate::error::Result;
use crate::ops::keys::Caller;

/// Opens an invoice on an address that serves no other open one.
pub async fn open(
    app: &App,
    caller: &Caller,
    amount: Usd,
    currency: Currency,
    network: Network,
) -> Result<Deposit> {
    caller.require(Ability::PayIn)?;
    super::open(app, NewDeposit { account: caller.account, amount, currency, network }).await
}

/// Checks the chain now, for all payments to this invoice or for one transaction.
pub async fn verify(app: &App, caller: &Caller, id: &InvoiceId, tx_hash: Option<&str>) -> Result<Verified> {
    caller.require(Ability::PayIn)?;
    super::verify(app, caller.account, id, tx_hash).await
}

/// The standing address. A key that may not pay in sees one that is there, and makes none.
pub async fn standing(app: &App, caller: &Caller, currency: Currency, network: Network) -> Result<Standing> {
    match caller.require(Ability::PayIn) {
        Ok(()) => standing::standing(app, caller.account, currency, network).await,
        Err(refused) => standing::made(app, caller.account, currency, network).await?.ok_or(refused),
    }
}
