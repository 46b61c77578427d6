//! Tells partners that their balance fell below their threshold: one event for each crossing, and to those who have an email
//! a mail, but not at each: a balance that swings around its threshold must not flood a mailbox. Both name an address to
//! refill the wallet by.

use super::deposits::standing::refill_address;
use super::events::written;
use super::mail::{self, Letter, Refill, Slip};
use crate::app::App;
use crate::chain::Token;
use crate::chain::address::Xpub;
use crate::domain::email::Email;
use crate::domain::event::{EventKind, News};
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::low_balances::{self, Standing};
use crate::store::tx::Tx;
use crate::store::{accounts, events, wallet};
use crate::wire::wallet::{LowBalanceFacts, RefillView};
use crate::wire::{CurrencyWord, Money, NetworkWord, payment_uri};

/// How long a partner is not mailed again.
const BETWEEN_MAILS_MS: i64 = 6 * 3_600_000;

/// Enters partners that an older instance has made since this account, in a rolling upgrade. Answers the newest account:
/// numbers only grow, so the next look begins there.
pub async fn enlist(app: &App, after: AccountNo) -> Result<AccountNo> {
    let look = move |tx: &mut Tx| Ok((accounts::last(tx)?, low_balances::left_out(tx, after)?));
    let (last, left_out) = app.store.read(look).await?;
    for account in left_out {
        app.store.write(account.0, move |tx| low_balances::enlist(tx, account)).await?;
    }
    Ok(last)
}

/// Looks at the partners whose balances moved across their thresholds. On several instances one of them tells.
pub async fn round(app: &App) -> Result<()> {
    for account in app.store.read(low_balances::moved).await? {
        let (slip, now) = (mail::slip(app), app.now());
        let look = Look { account, slip, way_in: WayIn::of(app), now };
        if app.store.write(account.0, move |tx| look.run(tx)).await? {
            mail::wake(app);
            app.expected.send_modify(|count| *count += 1);
        }
    }
    Ok(())
}

/// A look at one partner.
struct Look {
    account: AccountNo,
    slip: Slip,
    /// `None` where no deposits are taken.
    way_in: Option<WayIn>,
    now: Time,
}

impl Look {
    /// Answers whether there was something to tell.
    fn run(&self, tx: &mut Tx) -> Result<bool> {
        let Look { account, now, .. } = *self;
        // First, as by everybody who takes an address.
        wallet::lock(tx, account)?;
        let Some((standing, sequence)) = low_balances::crossed(tx, account)? else { return Ok(false) };
        let refill = match &self.way_in {
            Some(way_in) => Some(way_in.refill(refill_address(tx, account, &way_in.xpub, now)?, &standing)),
            None => None,
        };
        self.mail(tx, &standing, refill.as_ref())?;
        let facts = LowBalanceFacts {
            balance_usd: Money(standing.balance),
            low_balance_threshold: Money(standing.threshold),
            currency: "USD",
            refill,
        };
        let (kind, subject, data) = (EventKind::LowBalance, account.0.to_string(), written(&facts)?);
        events::append(tx, &News { account, kind, subject: &subject, sequence, at: now, data: &data })?;
        Ok(true)
    }

    /// A partner without an email gets no mail, and nobody gets many.
    fn mail(&self, tx: &mut Tx, standing: &Standing, refill: Option<&RefillView>) -> Result<()> {
        let Some(email) = standing.email.as_deref().and_then(Email::parse) else { return Ok(()) };
        if !low_balances::mail(tx, self.account, self.now, self.now.plus_millis(-BETWEEN_MAILS_MS))? {
            return Ok(());
        }
        let letter = Letter::LowBalance {
            company: standing.name.clone(),
            balance: standing.balance.to_string(),
            threshold: standing.threshold.to_string(),
            refill: refill.map(|refill| Refill {
                currency: refill.currency.0.as_str().into(),
                network: refill.network.0.name().into(),
                address: refill.deposit_address.clone(),
            }),
        };
        mail::queue(tx, &self.slip, &email, &letter, None)
    }
}

/// The network and token that wallets are refilled by, unless their owners choose others.
struct WayIn {
    network: Network,
    token: Token,
    /// The smallest deposit there.
    least: Usd,
    xpub: Xpub,
}

impl WayIn {
    /// The first network that takes anything, which is the one where invoices are opened by default; USDC if it is taken.
    fn of(app: &App) -> Option<WayIn> {
        let settlement = &app.settings.settlement;
        let (network, terms) = settlement.networks.iter().find(|(_, terms)| !terms.tokens.is_empty())?;
        let usdc = terms.tokens.iter().find(|token| token.currency == Currency::Usdc);
        let token = usdc.or(terms.tokens.first())?.clone();
        let xpub = settlement.xpub(network.kind()).clone();
        Some(WayIn { network: *network, token, least: terms.min_deposit, xpub })
    }

    fn refill(&self, address: String, standing: &Standing) -> RefillView {
        let amount = standing.threshold.minus(standing.balance).max(self.least);
        RefillView {
            network: NetworkWord(self.network),
            currency: CurrencyWord(self.token.currency),
            payment_uri: payment_uri(self.network, &self.token.contract, &address, amount),
            deposit_address: address,
        }
    }
}
