//! An order as pages for its buyer show it: how it stands in a word, which is the same everywhere, and what is left of its
//! eSIM, which has a word of its own.

use super::install::UsageShown;
use super::moment::Moment;
use crate::app::App;
use crate::domain::order::{self, Order, OrderStatus};
use crate::ops::{install, usage};

/// How an order stands, for the eye.
pub struct Badge {
    pub kind: &'static str,
    pub icon: &'static str,
    pub word: &'static str,
}

impl Badge {
    pub fn of(status: OrderStatus) -> Badge {
        let (kind, icon, word) = match status {
            OrderStatus::Provisioning => ("", "gear", "Being prepared"),
            OrderStatus::Fulfilled => ("good", "check", "Delivered"),
            OrderStatus::Failed => ("bad", "stop", "Not delivered"),
            OrderStatus::Cancelling => ("caution", "clock", "Being given back"),
            OrderStatus::Cancelled => ("", "money", "Given back"),
        };
        Badge { kind, icon, word }
    }
}

/// An order in a list. Carriers are not asked for lists: the bar shows what was last read.
pub struct OrderShown {
    pub id: String,
    pub number: String,
    pub name: String,
    pub price: String,
    pub at: Moment,
    pub kind: &'static str,
    pub icon: &'static str,
    pub word: &'static str,
    pub usage: Option<UsageShown>,
}

impl OrderShown {
    pub fn of(app: &App, order: &Order) -> OrderShown {
        let is_delivered = order.status == OrderStatus::Fulfilled;
        let last = usage::last_known(order).filter(|_| is_delivered);
        let usage = last.map(|report| UsageShown::new(order, &report, app.now()));
        let Badge { kind, icon, word } = Badge::of(order.status);
        OrderShown {
            id: order.id.to_string(),
            number: app.numbers.of_order(order).unwrap_or_default(),
            name: order.plan_name.clone(),
            price: order.price.priced(),
            at: Moment::of(order.created_at),
            kind,
            icon,
            word,
            usage,
        }
    }

    /// Asks the carrier what is left of a delivered eSIM.
    pub async fn read(&mut self, app: &App, order: &Order) {
        if order.status == OrderStatus::Fulfilled
            && let Some(report) = install::usage(app, order).await
        {
            self.usage = Some(UsageShown::new(order, &report, app.now()));
        }
    }
}

/// More data that was bought for an eSIM.
pub struct Refill {
    pub name: String,
    pub price: String,
    pub at: Moment,
    pub word: &'static str,
}

impl Refill {
    pub fn of(topup: &Order) -> Refill {
        Refill {
            name: topup.plan_name.clone(),
            price: topup.price.priced(),
            at: Moment::of(topup.created_at),
            word: match topup.status {
                OrderStatus::Fulfilled => "added",
                OrderStatus::Failed => "not added; the money is back",
                _ => "being added",
            },
        }
    }
}

/// Whether a cancel has a chance, or why it has none.
pub fn givable(app: &App, order: &Order, topups: &[Order]) -> Result<(), &'static str> {
    let is_live = |topup: &Order| matches!(topup.status, OrderStatus::Provisioning | OrderStatus::Fulfilled);
    let usage = usage::last_known(order).map(|report| report.usage.status());
    order::refundable(order, topups.iter().any(is_live), usage, app.now()).map_err(|reason| reason.in_words())
}
