//! Many orders that somebody places at once by hand: what they cost, and the one write that takes them down. Nothing is
//! bought in it; `work.rs` buys them line by line, and goes on where an instance has died. `domain/batch.rs` reads what
//! somebody wrote.

pub mod work;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use self::work::lease_end;
use super::breaker::{self, Names};
use super::by_hand::ByHand;
use super::team::Member;
use super::{jobs, mailings};
use crate::app::App;
use crate::domain::batch::{self, Batch, LIST, Line, LineState, Listed, MOST, Prices, Wanted};
use crate::domain::ids::{AccountNo, BatchId};
use crate::domain::money::Usd;
use crate::domain::plan::{Plan, PlanType};
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::error::Result;
use crate::store::audit::{self, Line as Log};
use crate::store::batches::{self, Turn};
use crate::store::offers::{self, Asked};
use crate::store::tx::Tx;
use crate::store::wallet;

/// What the log calls this deed, and how often a team does it in a day.
const BATCH: &str = "order batch";
const BATCHES_A_DAY: usize = 200;
/// How many of an account's batches are listed.
const LISTED: i64 = 20;

/// What the lines of a list would cost.
pub struct Quote {
    pub lines: Vec<Quoted>,
    pub total: Usd,
    /// Comes back with the form, so that nothing is bought for more.
    pub prices: Prices,
}

pub struct Quoted {
    pub wanted: Wanted,
    pub plan_name: String,
    pub price: Usd,
}

/// How a batch stands.
pub struct Progress {
    pub batch: Batch,
    pub lines: Vec<Listed>,
    /// What was paid for it and not given back, and what was given back.
    pub spent: Usd,
    pub given_back: Usd,
}

/// What these orders would cost by the displayed prices; refused with everything that cannot be bought.
pub fn price(app: &App, price_list: &str, wanted: Vec<Wanted>) -> Result<Quote> {
    let snapshot = app.catalog.borrow().clone();
    let plans = snapshot.list(price_list);
    let find = |code: &str| -> Option<&Arc<Plan>> {
        plans.binary_search_by(|plan| plan.code.as_str().cmp(code)).ok().map(|place| &plans[place])
    };
    require_each(&wanted, |one| {
        let plan = find(&one.package_code).ok_or_else(|| unsold(&one.package_code))?;
        require_base(plan.plan_type, &plan.code)
    })?;
    let quoted = wanted.into_iter().filter_map(|wanted| {
        let plan = find(&wanted.package_code)?;
        Some(Quoted { plan_name: plan.name.clone(), price: plan.wholesale, wanted })
    });
    let lines: Vec<Quoted> = quoted.collect();
    Ok(Quote {
        total: lines.iter().fold(Usd::ZERO, |sum, line| sum.plus(line.price)),
        prices: lines.iter().map(|line| (line.wanted.package_code.clone(), line.price)).collect(),
        lines,
    })
}

/// Takes orders down, if all of them can be bought and paid for now, at the prices that were shown or less; then buys
/// them. `once` names the form that was sent: it makes one batch, however often it is sent.
pub async fn begin(
    app: &App,
    member: &Member,
    once: &str,
    wanted: Vec<Wanted>,
    shown: Prices,
) -> Result<BatchId> {
    let deed = member.deed(app, Ability::Order, BATCH, String::new())?;
    if once.is_empty() {
        return Err(Refusal::FormNotOurs.into());
    }
    if wanted.is_empty() || wanted.len() > MOST {
        return Err(Refusal::field(LIST, format!("must have 1 to {MOST} orders")).into());
    }
    let (now, account) = (app.now(), member.account);
    let batch = Batch {
        id: app.new_batch_id(),
        account,
        made_by: member.email.to_string(),
        made_at: now,
        price_list: member.price_list.clone(),
        key_id: member.id.to_string(),
        total: Usd::ZERO,
        lines: wanted.len() as i64,
        done: 0,
        refused: 0,
    };
    let draft = Draft {
        once: once.into(),
        turn: Turn { holder: jobs::holder(), until: lease_end(app, now) },
        wanted,
        shown,
        selling: app.breakers.selling(),
        on_hold: app.buying_on_hold.load(Ordering::Relaxed),
        batch,
        deed,
    };
    let (id, holder) = (draft.batch.id.clone(), draft.turn.holder.clone());
    let made = app.store.write(account.0, move |tx| draft.take_down(tx)).await?;
    if made == id {
        app.tasks.spawn(work::buy_all(app.clone(), id, holder));
    }
    Ok(made)
}

/// A batch of this account, and what became of its lines.
pub async fn show(app: &App, account: AccountNo, id: &BatchId) -> Result<Progress> {
    let id = id.clone();
    let read = move |tx: &mut Tx| {
        let batch = batches::by_id(tx, account, &id)?.ok_or(Refusal::NotFound)?;
        Ok((batch, batches::listed(tx, &id)?))
    };
    let (batch, lines) = app.store.read_consistent(read).await?;
    let sum = |of: fn(&Listed) -> Usd| lines.iter().fold(Usd::ZERO, |sum, line| sum.plus(of(line)));
    let (spent, given_back) = (sum(Listed::spent), sum(Listed::given_back));
    Ok(Progress { batch, lines, spent, given_back })
}

/// The newest batches of this account.
pub async fn latest(app: &App, account: AccountNo) -> Result<Vec<Batch>> {
    app.store.read(move |tx| batches::latest(tx, account, LISTED)).await
}

/// What is to be taken down.
struct Draft {
    batch: Batch,
    once: String,
    turn: Turn,
    wanted: Vec<Wanted>,
    shown: Prices,
    /// The suppliers that sell now.
    selling: Names,
    on_hold: bool,
    deed: ByHand,
}

impl Draft {
    /// Answers the batch that its form made, now or before.
    fn take_down(&self, tx: &mut Tx) -> Result<BatchId> {
        let account = self.batch.account;
        // It takes the wallet's lock: of two that send a form at the same moment, the second sees what the first has made.
        self.deed.check(tx)?;
        if let Some(made) = batches::by_once(tx, account, &self.once)? {
            let lines = batches::listed(tx, &made)?;
            return match are_same(&lines, &self.wanted) {
                true => Ok(made),
                false => Err(Refusal::field(LIST, AGAIN).into()),
            };
        }
        let since = self.deed.line.at.plus_days(-1);
        if audit::lately(tx, account, since, BATCH, "", BATCHES_A_DAY as i64)?.len() >= BATCHES_A_DAY {
            let why = format!("must wait: a team places at most {BATCHES_A_DAY} lists in a day");
            return Err(Refusal::field(LIST, why).into());
        }
        let purse = wallet::read(tx, account)?;
        if purse.suspended {
            return Err(Refusal::AccountSuspended.into());
        }
        if self.on_hold {
            return Err(Refusal::BuyingOnHold.into());
        }
        let prices = self.prices(tx)?;
        let total =
            self.wanted.iter().fold(Usd::ZERO, |sum, one| sum.plus(prices[one.package_code.as_str()]));
        if purse.balance < total {
            return Err(Refusal::InsufficientBalance { balance: purse.balance, required: total }.into());
        }
        let to = self.wanted.iter().map(|one| one.customer_email.as_ref());
        let unmailed = mailings::too_many(tx, account, self.deed.line.at, to)?;
        let lines = (1..).zip(self.wanted.iter().zip(unmailed));
        let lines: Vec<Line> = lines.map(|(n, (one, unmailed))| self.line(n, one, unmailed)).collect();
        batches::create(tx, &Batch { total, ..self.batch.clone() }, &self.once, &self.turn, &lines)?;
        mailings::count(tx, account, self.deed.line.at, lines.iter().filter_map(Line::mailed_to))?;
        let detail = format!("{}: {} eSIMs for {total} USD", self.batch.id, lines.len());
        audit::record(tx, &Log { detail, ..self.deed.line.clone() })?;
        Ok(self.batch.id.clone())
    }

    /// What every plan of the list costs now; refused with everything that cannot be bought as it was shown.
    fn prices(&self, tx: &mut Tx) -> Result<HashMap<&str, Usd>> {
        let mut sold: HashMap<&str, Result<Usd, String>> = HashMap::new();
        for Wanted { package_code, .. } in &self.wanted {
            if !sold.contains_key(package_code.as_str()) {
                sold.insert(package_code, self.sold(tx, package_code)?);
            }
        }
        require_each(&self.wanted, |one| {
            sold[one.package_code.as_str()].as_ref().map(drop).map_err(String::clone)
        })?;
        Ok(sold.into_iter().filter_map(|(code, price)| Some((code, price.ok()?))).collect())
    }

    /// What a plan costs now, or why it cannot be bought as it was shown.
    fn sold(&self, tx: &mut Tx, code: &str) -> Result<Result<Usd, String>> {
        let Batch { account, price_list, .. } = &self.batch;
        let asked = Asked { account: *account, reference: None, package_code: code, price_list };
        let Some(offer) = offers::look(tx, &asked)?.plan else { return Ok(Err(unsold(code))) };
        if let Err(wrong) = require_base(offer.plan_type, code) {
            return Ok(Err(wrong));
        }
        if breaker::require_selling(&self.selling, &offer.supplier).is_err() {
            return Ok(Err(format!("names {code}, whose supplier cannot sell just now")));
        }
        Ok(match self.shown.of(code) {
            Some(shown) if offer.price > shown => Err(format!(
                "costs {} USD now, not the {} USD that were shown; look at the prices again",
                offer.price.priced(),
                shown.priced()
            )),
            Some(_) => Ok(offer.price),
            None => Err(format!("names {code}, whose price was not shown; look at the prices again")),
        })
    }

    fn line(&self, n: i64, wanted: &Wanted, unmailed: bool) -> Line {
        Line {
            n,
            package_code: wanted.package_code.clone(),
            reference: wanted.reference.clone(),
            customer_email: wanted.customer_email.clone(),
            unmailed,
            max_price: self.shown.of(&wanted.package_code).unwrap_or(Usd::ZERO),
            state: LineState::Waiting,
            order: None,
            charged: None,
            why: None,
        }
    }
}

const AGAIN: &str =
    "was sent before with other orders, and those were placed; open the page anew to place more";

fn are_same(lines: &[Listed], wanted: &[Wanted]) -> bool {
    let same = |(listed, wanted): (&Listed, &Wanted)| {
        let line = &listed.line;
        line.package_code == wanted.package_code
            && line.reference == wanted.reference
            && line.customer_email == wanted.customer_email
    };
    lines.len() == wanted.len() && lines.iter().zip(wanted).all(same)
}

/// Refuses with what is wrong, once for each line that was written.
fn require_each(wanted: &[Wanted], check: impl Fn(&Wanted) -> Result<(), String>) -> Result<(), Refusal> {
    let mut wrong: Vec<_> =
        wanted.iter().filter_map(|one| Some(batch::mistake(one.row, check(one).err()?))).collect();
    wrong.dedup();
    if wrong.is_empty() { Ok(()) } else { Err(Refusal::Invalid(wrong)) }
}

fn unsold(code: &str) -> String {
    format!("names {code}, and no plan with this code is on sale")
}

fn require_base(plan_type: PlanType, code: &str) -> Result<(), String> {
    match plan_type {
        PlanType::Base => Ok(()),
        PlanType::Topup => Err(format!("names {code}, which adds data to an eSIM and is no eSIM by itself")),
    }
}
