//! Codes can be guessed, so whoever names too many that are not good has to wait, with a good one too. Tries are rows,
//! as those of sign-in codes are. An account's are counted under its wallet's lock and exactly; those of a client may
//! be exceeded by what it sends at the same moment.

use std::net::IpAddr;

use crate::app::App;
use crate::domain::client;
use crate::domain::coupon::{self, WRONG_OF_ACCOUNT, WRONG_OF_CLIENT};
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, AttemptId};
use crate::domain::login::Limit;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::login;
use crate::store::logins::{self, Attempt, By};
use crate::store::tx::Tx;
use crate::store::{coupons, users, wallet};
use crate::vault;

/// Guests whose address is not known here count as one.
const GUESTS: &str = "guests";
/// Guests have no wallet to be keyed by.
const LANE: i64 = 0;

/// Somebody names a code, which may turn out to be no good.
#[derive(Clone)]
pub struct Guess {
    /// In the spelling that is stored.
    pub code: String,
    pub account: Option<AccountNo>,
    pub now: Time,
    id: AttemptId,
    /// The keyed hash of the client's address, where it counts.
    client: Option<String>,
}

impl Guess {
    pub fn new(app: &App, code: &str, account: Option<AccountNo>, client: Option<IpAddr>) -> Guess {
        let hashed = client.map(|address| app.vault.codes.client(&client::counted(address)));
        let client = hashed.or_else(|| account.is_none().then(|| GUESTS.to_string()));
        let (code, now) = (coupon::normal(code), app.now());
        Guess { code, account, now, id: AttemptId::new(now, vault::random()), client }
    }

    pub fn refuse_if_too_many(&self, tx: &mut Tx) -> Result<()> {
        if let Some(email) = self.email(tx)? {
            refuse_full(tx, By::Email(&email), WRONG_OF_ACCOUNT, self.now)?;
        }
        match &self.client {
            Some(client) => refuse_full(tx, By::Client(client), WRONG_OF_CLIENT, self.now),
            None => Ok(()),
        }
    }

    /// Writes down that it was wrong. The caller has locked the wallet, and asked whether it was one too many.
    pub fn record(&self, tx: &mut Tx) -> Result<()> {
        let email = self.email(tx)?.unwrap_or_else(|| Email::from_text(""));
        let client = self.client.as_deref().unwrap_or_default();
        logins::record(tx, &self.id, Attempt::Coupon, &email, client, self.now)
    }

    /// Whether a job that may have run before has recorded it.
    pub fn is_recorded(&self, tx: &mut Tx) -> Result<bool> {
        Ok(tx.is_rerun() && logins::is_recorded(tx, &self.id)?)
    }

    /// The same, where nothing else is written.
    pub async fn note(self, app: &App) -> Result<()> {
        let lane = self.account.map_or(LANE, |account| account.0);
        let write = move |tx: &mut Tx| {
            if let Some(account) = self.account {
                wallet::lock(tx, account)?;
            }
            if self.is_recorded(tx)? {
                return Ok(());
            }
            self.refuse_if_too_many(tx)?;
            self.record(tx)
        };
        app.store.write(lane, write).await
    }

    /// How many uses of this coupon the guesser holds; `None` when nobody knows who that is.
    pub fn used(&self, tx: &mut Tx) -> Result<Option<i64>> {
        self.account.map(|account| coupons::used_by(tx, &self.code, account)).transpose()
    }

    fn email(&self, tx: &mut Tx) -> Result<Option<Email>> {
        match self.account {
            Some(account) => users::email(tx, account),
            None => Ok(None),
        }
    }
}

/// The limit is one on codes, not on requests: without a code everything goes on, and the refusal says so.
fn refuse_full(tx: &mut Tx, by: By, limit: Limit, now: Time) -> Result<()> {
    login::refuse_full(tx, Attempt::Coupon, by, limit, now).map_err(|error| match error {
        Error::Refused(Refusal::RateLimited { retry_after_secs }) => {
            Refusal::TooManyCodes { retry_after_secs }.into()
        }
        other => other,
    })
}
