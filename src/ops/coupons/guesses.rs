//! Codes can be guessed, so a caller who names too many invalid ones must wait, even with a valid one. Tries are rows.
//! The limit of an account is exact, because it is counted under the wallet's lock; simultaneous requests may exceed
//! the limits of a client and its networks.

use std::net::IpAddr;

use crate::app::App;
use crate::domain::client::Origin;
use crate::domain::coupon::{self, Coupon, GUESS_MS, WRONG_FROM, WRONG_OF_ACCOUNT};
use crate::domain::ids::{AccountNo, AttemptId};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::LANE;
use crate::store::tx::Tx;
use crate::store::{checkouts, coupons, guesses, wallet};
use crate::vault;

/// A try of a code, which may be invalid.
#[derive(Clone)]
pub struct Guess {
    /// In the stored spelling.
    pub code: String,
    pub now: Time,
    id: AttemptId,
    guesser: Guesser,
}

#[derive(Clone)]
enum Guesser {
    /// With its origin when it opens a checkout: that is counted too, and a use is held until it is paid or ends.
    Account(AccountNo, Option<Origin>),
    /// Guests are known only by their network address.
    Guest(Origin),
}

impl Guess {
    pub fn of_account(app: &App, code: &str, account: AccountNo, client: Option<IpAddr>) -> Guess {
        let origin = client.map(|address| app.vault.codes.origin(address));
        Guess::new(app, code, Guesser::Account(account, origin))
    }

    pub fn of_guest(app: &App, code: &str, client: IpAddr) -> Guess {
        Guess::new(app, code, Guesser::Guest(app.vault.codes.origin(client)))
    }

    fn new(app: &App, code: &str, guesser: Guesser) -> Guess {
        let now = app.now();
        Guess { code: coupon::normal(code), now, id: AttemptId::new(now, vault::random()), guesser }
    }

    fn account(&self) -> Option<AccountNo> {
        match &self.guesser {
            Guesser::Account(account, _) => Some(*account),
            Guesser::Guest(_) => None,
        }
    }

    fn origin(&self) -> Option<&Origin> {
        match &self.guesser {
            Guesser::Account(_, origin) => origin.as_ref(),
            Guesser::Guest(origin) => Some(origin),
        }
    }

    /// Limits codes, not requests: purchases without a code still work, and the refusal says so.
    pub fn refuse_if_too_many(&self, tx: &mut Tx) -> Result<()> {
        match self.full_until(tx)? {
            Some(until) => {
                let wait = (until.micros() - self.now.micros() + 999_999) / 1_000_000;
                Err(Refusal::TooManyCodes { retry_after_secs: wait.max(1).unsigned_abs() }.into())
            }
            None => Ok(()),
        }
    }

    /// When one more try is allowed; `None` when it is allowed now.
    fn full_until(&self, tx: &mut Tx) -> Result<Option<Time>> {
        // Rows further in the future than a guess counts came from a wrong clock.
        let span = (self.now.plus_millis(-GUESS_MS), self.now.plus_millis(GUESS_MS));
        let mut oldest = Vec::new();
        if let Some(account) = self.account() {
            let times = guesses::by_account(tx, account, span, WRONG_OF_ACCOUNT)?;
            oldest.extend(nth(times.into_iter(), WRONG_OF_ACCOUNT));
        }
        if let Some(origin) = self.origin() {
            let networks = origin.networks();
            let most = networks.iter().map(|(width, _)| WRONG_FROM.of(*width)).max().unwrap_or(0);
            let tried = guesses::from_area(tx, origin, span, most)?;
            for (width, rows) in networks {
                let times = tried.iter().filter(|(_, from)| rows.hold(from)).map(|(at, _)| *at);
                oldest.extend(nth(times, WRONG_FROM.of(width)));
            }
        }
        Ok(oldest.into_iter().max().map(|at| at.plus_millis(GUESS_MS)))
    }

    /// Records that the code was wrong. The caller has locked the wallet and checked the limit.
    pub fn record(&self, tx: &mut Tx) -> Result<()> {
        guesses::record(tx, &self.id, self.account(), self.origin(), self.now)
    }

    /// Whether an earlier run of this job has recorded it.
    pub fn is_recorded(&self, tx: &mut Tx) -> Result<bool> {
        Ok(tx.is_rerun() && guesses::is_recorded(tx, &self.id)?)
    }

    /// Records a wrong code in a write of its own.
    pub async fn note(self, app: &App) -> Result<()> {
        let lane = self.account().map_or(LANE, |account| account.0);
        let write = move |tx: &mut Tx| {
            if let Some(account) = self.account() {
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

    /// How many uses of this coupon the guesser holds; `None` for a guest, who cannot be recognised.
    pub fn used(&self, tx: &mut Tx) -> Result<Option<i64>> {
        self.account().map(|account| coupons::used_by(tx, &self.code, account)).transpose()
    }

    /// Whether the guesser may hold one more use of it. Opening a checkout reserves a use for free, so each account and
    /// each guest's network hold only a few at a time, and all guests together leave some to others.
    pub fn may_hold(&self, tx: &mut Tx, named: &Coupon) -> Result<bool> {
        match &self.guesser {
            Guesser::Account(_, None) => Ok(true),
            Guesser::Account(account, Some(_)) => {
                Ok(coupons::held_by(tx, &named.code, *account)? < coupon::HELD_BY_ACCOUNT)
            }
            Guesser::Guest(origin) => {
                let held = checkouts::held_from(tx, origin, &named.code, self.now.plus_days(-1))?;
                Ok(named.has_use_for_guests() && !origin.is_full(held, coupon::HELD_BY_GUEST))
            }
        }
    }
}

/// The time at place `most`, counted from the newest; `None` when there are fewer.
fn nth(mut newest_first: impl Iterator<Item = Time>, most: i64) -> Option<Time> {
    newest_first.nth(usize::try_from(most).ok()?.checked_sub(1)?)
}
