//! A look over the whole service for `simgate doctor`: each check says how things stand and what to do about it.
//! These are quick facts; the proof of the books is `ledger::verify`.

use std::time::Duration;

use super::operator;
use crate::app::App;
use crate::domain::money::Usd;
use crate::error::Result;
use crate::store::{accounts, reports};
use crate::supplier::{Answer, sim};

/// A supplier that takes longer than this to list its plans is in no state to sell.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Ok,
    Warn,
    Fail,
}

impl Health {
    pub fn as_str(self) -> &'static str {
        match self {
            Health::Ok => "ok",
            Health::Warn => "warn",
            Health::Fail => "fail",
        }
    }
}

pub struct Check {
    pub subject: &'static str,
    pub health: Health,
    pub finding: String,
    /// What to do; empty when there is nothing to do.
    pub advice: String,
}

impl Check {
    pub fn ok(subject: &'static str, finding: impl Into<String>) -> Check {
        Check { subject, health: Health::Ok, finding: finding.into(), advice: String::new() }
    }

    pub fn warn(subject: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { subject, health: Health::Warn, finding: finding.into(), advice: advice.into() }
    }

    pub fn fail(subject: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { subject, health: Health::Fail, finding: finding.into(), advice: advice.into() }
    }
}

/// Everything that can be asked of an open application.
pub async fn examine(app: &App) -> Result<Vec<Check>> {
    Ok(vec![supplier(app).await?, catalog(app), ledger(app).await?, stuck(app).await?])
}

async fn supplier(app: &App) -> Result<Check> {
    let supplier = app.supplier(sim::NAME)?;
    let name = supplier.name();
    let silent = |why: &str| {
        Check::fail(
            "supplier",
            format!("{name} does not answer: {why}"),
            "orders wait until it does; ask the supplier",
        )
    };
    Ok(match tokio::time::timeout(PATIENCE, supplier.plans()).await {
        Ok(Answer::Done(plans)) => {
            Check::ok("supplier", format!("{name} answers and sells {} plans", plans.len()))
        }
        Ok(Answer::Refused(why) | Answer::NotSent(why) | Answer::Doubt(why)) => silent(&why),
        Err(_) => silent("no word within 10 s"),
    })
}

fn catalog(app: &App) -> Check {
    let snapshot = app.catalog.borrow().clone();
    match snapshot.lists.values().map(Vec::len).max().unwrap_or(0) {
        0 => Check::fail("catalog", "nothing is on sale", "run `simgate catalog sync`"),
        plans => Check::ok("catalog", format!("{plans} plans are on sale")),
    }
}

/// Debits against credits, and wallets against their postings, in one state of the database.
async fn ledger(app: &App) -> Result<Check> {
    let (lines, owners) =
        app.store.snapshot(|tx| Ok((reports::trial_balance(tx)?, accounts::list(tx)?))).await?;
    let sum = |amounts: &mut dyn Iterator<Item = Usd>| amounts.fold(Usd::ZERO, Usd::plus);
    let (debit, credit) = (sum(&mut lines.iter().map(|l| l.debit)), sum(&mut lines.iter().map(|l| l.credit)));
    let of_wallets = lines.iter().filter(|line| line.account == "wallet");
    let posted = sum(&mut of_wallets.map(|line| line.credit.minus(line.debit)));
    let kept = sum(&mut owners.iter().map(|owner| owner.balance));
    let advice = "stop selling and run `simgate ledger verify`: it names the rows";
    Ok(if debit != credit {
        Check::fail("ledger", format!("debits are {debit} USD and credits {credit} USD"), advice)
    } else if posted != kept {
        Check::fail("ledger", format!("wallets hold {kept} USD and their postings say {posted} USD"), advice)
    } else {
        Check::ok("ledger", format!("debits equal credits; the wallets together hold {kept} USD"))
    })
}

async fn stuck(app: &App) -> Result<Check> {
    let waiting: i64 = operator::stuck_orders(app).await?.iter().map(|(_, count)| count).sum();
    Ok(match waiting {
        0 => Check::ok("orders", "none has waited for its supplier for more than 30 minutes"),
        count => Check::warn(
            "orders",
            format!("waiting for their supplier for more than 30 minutes: {count}"),
            "see `simgate order list --stuck`, then `simgate order retry ID` or `simgate order fail ID --reason TEXT`",
        ),
    })
}
