//! Paying in by the people of a partner's team. Whoever may is checked here, and what they do is in the audit log.

use super::standing::{self, Standing};
use super::{DepositDraft, NewDeposit, opened, same_or_new};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::invoice::Deposit;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::role::Ability;
use crate::error::Result;
use crate::ops::team::Member;
use crate::store::audit;
use crate::store::tx::Tx;

/// Opens an invoice. A form that is sent twice gets the same one while that is unpaid.
pub async fn open(
    app: &App,
    member: &Member,
    amount: Usd,
    currency: Currency,
    network: Network,
) -> Result<Deposit> {
    let what = format!("{amount} {} on {}", currency.as_str(), network.name());
    let deed = member.deed(app, Ability::PayIn, "deposit open", what)?;
    let new = NewDeposit { account: member.account, amount, currency, network };
    let draft = DepositDraft::new(app, new, None)?;
    let write = move |tx: &mut Tx| {
        deed.check(tx)?;
        let (invoice, is_new) = same_or_new(tx, &draft)?;
        if is_new {
            audit::record(tx, &deed.line)?;
        }
        Ok(invoice)
    };
    let invoice = app.store.write(new.account.0, write).await?;
    Ok(opened(app, invoice))
}

/// Makes the team's standing address, unless there is one.
pub async fn make_standing(
    app: &App,
    member: &Member,
    currency: Currency,
    network: Network,
) -> Result<Standing> {
    let deed = member.deed(app, Ability::PayIn, "deposit address", String::new())?;
    standing::asked(app, member.account, currency, network, Some(deed)).await
}

/// The standing address, if somebody has asked for it. To look at it makes none.
pub async fn standing(
    app: &App,
    account: AccountNo,
    currency: Currency,
    network: Network,
) -> Result<Option<Standing>> {
    standing::made(app, account, currency, network).await
}
