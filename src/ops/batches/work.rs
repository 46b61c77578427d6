//! Buys the lines of a batch, a few at a time, and writes down what became of each as it comes. Whoever has the batch's turn
//! does it; when that instance dies, another goes on. A line may then be bought again: its reference makes that the same
//! order.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, stream};

use crate::app::App;
use crate::domain::batch::{Answer, Batch, Line};
use crate::domain::ids::{BatchId, MemberId, OrderId};
use crate::domain::money::Usd;
use crate::domain::refusal::{Difference, Refusal};
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::buying::{self, Means, Wish};
use crate::ops::jobs;
use crate::ops::orders::{self, Buyer, Receipt};
use crate::store::batches::{self, Turn};
use crate::store::members;
use crate::store::tx::Tx;
use crate::telemetry::EveryMinute;

/// They share commits, and leave the wallet and the supplier room for orders that come otherwise.
const SIDE_BY_SIDE: usize = 8;
/// How many batches are taken over in one round.
const AT_ONCE: i64 = 16;
/// How much longer than a purchase a turn lasts. Every answer renews it.
const MARGIN_MS: i64 = 30_000;
/// When to try again what could not be tried now.
const AGAIN_MS: i64 = 5_000;
/// What could not be bought by then is refused: its buyer has long done something else about it.
const GIVE_UP_MS: i64 = 24 * 3_600_000;

static TROUBLE: EveryMinute = EveryMinute::new();

/// Until when whoever takes a turn now has it.
pub(super) fn lease_end(app: &App, now: Time) -> Time {
    now.plus_millis(app.settings.answer_within_ms.saturating_add(MARGIN_MS))
}

/// Takes over what nobody works on.
pub async fn round(app: &App) -> Result<()> {
    let now = app.now();
    let until = lease_end(app, now);
    for (id, account) in app.store.read(move |tx| batches::left(tx, now, until, AT_ONCE)).await? {
        let turn = Turn { holder: jobs::holder(), until };
        let (taken, holder) = (id.clone(), turn.holder.clone());
        if app.store.finish(account.0, move |tx| batches::take(tx, &taken, &turn, now)).await? {
            app.tasks.spawn(buy_all(app.clone(), id, holder));
        }
        jobs::alive();
    }
    Ok(())
}

/// Buys what has no answer yet, as long as this holder has the turn.
pub(super) async fn buy_all(app: App, id: BatchId, holder: String) {
    let (read, as_holder) = (id.clone(), holder.clone());
    let worked = match app.store.read(move |tx| batches::held_by(tx, &read, &as_holder)).await {
        Ok(Some((batch, lines))) => {
            Work { app, batch, holder, is_lost: AtomicBool::new(false) }.run(lines).await
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    // The turn ends by itself, and somebody goes on.
    if let Err(error) = worked {
        note(&id, &error);
    }
}

fn note(id: &BatchId, error: &Error) {
    if let Some(left_out) = TROUBLE.turn() {
        tracing::warn!(batch = %id, %error, left_out, "orders that were placed at once cannot be bought now; trying again");
    }
}

struct Work {
    app: App,
    batch: Batch,
    holder: String,
    /// Another has taken the turn.
    is_lost: AtomicBool,
}

impl Work {
    async fn run(self, lines: Vec<Line>) -> Result<()> {
        let work = &self;
        stream::iter(lines).for_each_concurrent(SIDE_BY_SIDE, |line| work.settle(line)).await;
        let again = match self.app.stopping.is_cancelled() {
            true => Time::from_micros(0),
            false => self.app.now().plus_millis(AGAIN_MS),
        };
        let (id, turn) = (self.batch.id.clone(), Turn { holder: self.holder, until: again });
        self.app.store.finish(self.batch.account.0, move |tx| batches::keep(tx, &id, &turn)).await.map(drop)
    }

    /// Buys a line and writes down what became of it. What cannot be tried now goes on waiting.
    async fn settle(&self, line: Line) {
        if self.is_lost.load(Ordering::Relaxed) || self.app.stopping.is_cancelled() {
            return;
        }
        let written = match self.answer(&line).await {
            Ok(answer) => self.write_down(line.n, answer).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            note(&self.batch.id, &error);
        }
    }

    async fn write_down(&self, n: i64, answer: Answer) -> Result<()> {
        let until = lease_end(&self.app, self.app.now());
        let (id, turn) = (self.batch.id.clone(), Turn { holder: self.holder.clone(), until });
        let write = move |tx: &mut Tx| batches::advance(tx, &id, n, &answer, &turn);
        if !self.app.store.finish(self.batch.account.0, write).await? {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What becomes of a line; an error is no answer, and the line is tried again.
    async fn answer(&self, line: &Line) -> Result<Answer> {
        let (buyer, wish) = (self.buyer(), self.wish(line));
        let given_up = self.given_up().await?;
        let bought = if given_up.is_some() {
            orders::replay(&self.app, buyer, wish.purchase(None)).await
        } else {
            let outcome = buying::buy(&self.app, buyer, wish, Means::Wallet).await;
            outcome.and_then(|outcome| outcome.receipt())
        };
        match bought {
            Ok(receipt) => Ok(self.bought(receipt)),
            Err(error @ (Error::Fault(_) | Error::Refused(Refusal::Overloaded | Refusal::NoRoom))) => {
                Err(error)
            }
            Err(Error::Refused(refusal)) => Ok(match sold_before(&refusal) {
                Some(order) => Answer::Bought { order, charged: Usd::ZERO },
                None => Answer::Refused(in_words(&refusal, given_up)),
            }),
        }
    }

    /// Why nothing more is bought, if that is so. What was bought before stays bought.
    async fn given_up(&self) -> Result<Option<&'static str>> {
        if self.app.now() > self.batch.made_at.plus_millis(GIVE_UP_MS) {
            return Ok(Some("It could not be bought within a day; nothing was charged."));
        }
        let placed_by = MemberId::from_text(&self.batch.key_id);
        let found = self.app.store.read(move |tx| members::by_id(tx, &placed_by)).await?;
        let may = found.is_some_and(|person| person.role.may(Ability::Order));
        Ok((!may).then_some("Whoever placed it may not place orders any more; nothing was charged."))
    }

    fn bought(&self, receipt: Receipt) -> Answer {
        let order = receipt.order;
        let before = receipt.replayed && order.created_at < self.batch.made_at;
        let charged = if before { Usd::ZERO } else { order.price };
        Answer::Bought { order: order.id, charged }
    }

    fn buyer(&self) -> Buyer {
        let Batch { account, key_id, price_list, .. } = &self.batch;
        let (key_id, price_list) = (key_id.clone(), price_list.clone());
        Buyer { account: *account, key_id, price_list, limited: false, by_hand: None }
    }

    fn wish(&self, line: &Line) -> Wish {
        Wish {
            package_code: line.package_code.clone(),
            reference: Some(line.bought_as(&self.batch.id)),
            customer_email: line.mailed_to().cloned(),
            max_price: Some(line.max_price),
            ..Wish::default()
        }
    }
}

/// The order that has the reference of a line and differs in nothing but who gets a mail: an order mails when it is delivered,
/// and to one address at most.
fn sold_before(refusal: &Refusal) -> Option<OrderId> {
    match refusal {
        Refusal::IdempotencyConflict(conflict) if conflict.differs == [Difference::Email] => {
            conflict.holder.clone().map(OrderId::from_text)
        }
        _ => None,
    }
}

/// Why a line was refused, for people who read it beside the line.
fn in_words(refusal: &Refusal, given_up: Option<&'static str>) -> String {
    match refusal {
        Refusal::PriceChanged { price } => {
            format!("It costs {} USD now, more than was shown.", price.priced())
        }
        Refusal::PlanNotFound => "This plan is no longer on sale.".into(),
        Refusal::IdempotencyConflict(conflict) => match &conflict.holder {
            Some(holder) => format!("This reference was used before for something else, {holder}."),
            // It was looked for and is not there.
            None => given_up.unwrap_or_default().into(),
        },
        other => other.problem().detail,
    }
}
