//! An account's own address that needs no invoice. It never serves one: what comes to it is the account's, counts for no
//! invoice, and so never changes how one stands.

use super::{own_address, pairs};
use crate::app::App;
use crate::chain::address::Xpub;
use crate::config::NetworkSettings;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::addresses::derive;
use crate::ops::by_hand::ByHand;
use crate::store::audit::Line;
use crate::store::tx::Tx;
use crate::store::{addresses, audit, wallet};
use crate::wire::payment_uri;

/// How many days it is searched for in every block after it was asked for or paid to. Later it is looked at once a day, as
/// every address is.
const WATCH_DAYS: i64 = 366;
/// A watch is renewed when less than this is left of it, so that asking again writes nothing.
const RENEW_DAYS: i64 = WATCH_DAYS / 2;

pub struct Standing {
    pub network: Network,
    pub currency: Currency,
    /// The same for all networks of a kind.
    pub address: String,
    /// It names no amount.
    pub payment_uri: String,
    pub required_confirmations: i64,
}

/// The account's standing address. It is made when it is asked for the first time, and the same from then on, until the
/// operator changes the key that addresses come from; the old one is credited all the same.
pub async fn standing(
    app: &App,
    account: AccountNo,
    currency: Currency,
    network: Network,
) -> Result<Standing> {
    asked(app, account, currency, network, None).await
}

/// The same by hand; the deed is checked, and goes into the audit log, if the address is made now.
pub(super) async fn asked(
    app: &App,
    account: AccountNo,
    currency: Currency,
    network: Network,
    deed: Option<ByHand>,
) -> Result<Standing> {
    let way = Way::of(app, currency, network)?;
    let (xpub, now) = (app.settings.settlement.xpub(network.kind()).clone(), app.now());
    let key = xpub.clone();
    let address = match app.store.read(move |tx| known(tx, account, &key, now)).await? {
        Some(address) => address,
        None => {
            let write = move |tx: &mut Tx| take(tx, account, &xpub, now, deed.as_ref());
            let made = app.store.write(account.0, write).await?;
            app.expected.send_modify(|count| *count += 1);
            made
        }
    };
    Ok(way.to(address))
}

/// The account's standing address, if it was asked for before. To look at it writes nothing.
pub(super) async fn made(
    app: &App,
    account: AccountNo,
    currency: Currency,
    network: Network,
) -> Result<Option<Standing>> {
    let way = Way::of(app, currency, network)?;
    let (kind, key) =
        (network.kind(), app.settings.settlement.xpub(network.kind()).fingerprint().to_string());
    let found = app.store.read(move |tx| addresses::standing(tx, account, kind, &key)).await?;
    Ok(found.map(|known| way.to(known.address)))
}

/// A token by a network, as it is open for payments.
struct Way<'a> {
    network: Network,
    currency: Currency,
    terms: &'a NetworkSettings,
    contract: &'a str,
}

impl Way<'_> {
    fn of(app: &App, currency: Currency, network: Network) -> Result<Way<'_>> {
        let terms = app.settings.settlement.networks.get(&network);
        let way = terms.and_then(|terms| {
            let token = terms.tokens.iter().find(|token| token.currency == currency)?;
            Some(Way { network, currency, terms, contract: &token.contract })
        });
        way.ok_or_else(|| Refusal::UnsupportedPair(pairs(app)).into())
    }

    fn to(&self, address: String) -> Standing {
        Standing {
            network: self.network,
            currency: self.currency,
            payment_uri: payment_uri(self.network, self.contract, &address, None::<Usd>),
            address,
            required_confirmations: self.terms.confirmations,
        }
    }
}

/// The address, when it is there and nothing has to be written.
fn known(tx: &mut Tx, account: AccountNo, xpub: &Xpub, now: Time) -> Result<Option<String>> {
    refuse_suspended(tx, account)?;
    let known = addresses::standing(tx, account, xpub.kind(), xpub.fingerprint())?;
    let fresh = known.filter(|known| known.watch_until > now.plus_days(RENEW_DAYS));
    Ok(fresh.map(|known| known.address))
}

fn refuse_suspended(tx: &mut Tx, account: AccountNo) -> Result<()> {
    if wallet::read(tx, account)?.suspended { Err(Refusal::AccountSuspended.into()) } else { Ok(()) }
}

fn take(tx: &mut Tx, account: AccountNo, xpub: &Xpub, now: Time, deed: Option<&ByHand>) -> Result<String> {
    // Two at once must not both make one, and no invoice may take the same address.
    wallet::lock(tx, account)?;
    if let Some(deed) = deed {
        deed.check(tx)?;
    }
    refuse_suspended(tx, account)?;
    let (kind, watch_until) = (xpub.kind(), now.plus_days(WATCH_DAYS));
    if let Some(known) = addresses::standing(tx, account, kind, xpub.fingerprint())? {
        addresses::watch(tx, &known.address, watch_until)?;
        return Ok(known.address);
    }
    // One that a mail has named already is as good as a new one, unless an invoice has used it.
    let address = match addresses::unused(tx, account, kind, xpub.fingerprint())? {
        Some(address) => address,
        None => {
            let index = addresses::take_indexes(tx, kind, xpub.fingerprint(), 1)?;
            derive(tx, xpub, index, Some(account), watch_until, now)?
        }
    };
    addresses::stand(tx, &address)?;
    addresses::watch(tx, &address, watch_until)?;
    if let Some(deed) = deed {
        audit::record(tx, &Line { detail: address.clone(), ..deed.line.clone() })?;
    }
    Ok(address)
}

/// Where a wallet is refilled without an invoice: its standing address if it has one, else an address of its own that serves
/// no open invoice. The caller has locked the wallet.
pub(in crate::ops) fn refill_address(
    tx: &mut Tx,
    account: AccountNo,
    xpub: &Xpub,
    now: Time,
) -> Result<String> {
    match addresses::standing(tx, account, xpub.kind(), xpub.fingerprint())? {
        Some(known) => {
            addresses::watch(tx, &known.address, now.plus_days(WATCH_DAYS))?;
            Ok(known.address)
        }
        None => own_address(tx, account, xpub, now),
    }
}

/// Somebody pays to this address: if it is a standing one, more may come.
pub(in crate::ops) fn watch_on(tx: &mut Tx, address: &str, now: Time) -> Result<()> {
    let found = addresses::find(tx, address)?;
    match found.filter(|known| known.standing && known.watch_until < now.plus_days(RENEW_DAYS)) {
        Some(known) => addresses::watch(tx, &known.address, now.plus_days(WATCH_DAYS)),
        None => Ok(()),
    }
}
