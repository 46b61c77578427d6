//! What a receipt lists: what was bought, what it cost line by line, and how it was paid.

use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::order::Order;
use crate::domain::plan::VolumeKind;

use super::plain::{columns, one_line};

/// An order and what belongs to it.
pub struct Receipt {
    pub order: Order,
    pub order_ref: String,
    /// When it was placed.
    pub placed: String,
    pub paid_by: PaidBy,
    pub coverage: Coverage,
    /// For a top-up.
    pub filled: Option<Filled>,
    /// The page of the eSIM, if it is the reader's.
    pub esim_url: Option<String>,
}

/// What the catalog says of a plan beyond its order; nothing once it is no longer sold.
#[derive(Default)]
pub struct Coverage {
    /// By their names.
    pub countries: Vec<String>,
    pub volume: Option<VolumeKind>,
}

pub enum PaidBy {
    Wallet {
        /// The reader's own.
        own: bool,
    },
    /// A partner of ours, who gives it to the reader.
    Partner { company: String },
    Payment {
        network: Network,
        currency: Currency,
        /// The discount that made the amount of its checkout unique.
        unique: Usd,
    },
}

/// The eSIM that a top-up fills.
pub struct Filled {
    pub plan_name: String,
    pub order_ref: String,
    pub iccid: Option<String>,
}

impl Receipt {
    pub fn is_topup(&self) -> bool {
        self.order.esim_order.is_some()
    }

    /// The company that gives it to the reader, if it is a gift of one: then no price is told.
    pub fn given_by(&self) -> Option<String> {
        match &self.paid_by {
            PaidBy::Partner { company } => Some(one_line(company)),
            PaidBy::Wallet { .. } | PaidBy::Payment { .. } => None,
        }
    }

    pub fn plan_name(&self) -> String {
        one_line(&self.order.plan_name)
    }

    /// What was bought, shortly.
    pub fn bought(&self) -> String {
        let days = match self.order.duration_days {
            1 => "1 day".to_string(),
            days => format!("{days} days"),
        };
        let size = size(self.order.data_mb);
        let volume = match self.coverage.volume {
            Some(VolumeKind::DayPass) => format!("{size} a day"),
            Some(VolumeKind::Unlimited) => "Unlimited data".into(),
            Some(VolumeKind::Fixed) | None => size,
        };
        let place = match self.coverage.countries.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            [one, two] => Some(format!("{one} and {two}")),
            many => Some(format!("{} countries", many.len())),
        };
        [Some(volume), Some(days), place].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// The price and what came off it; their sum is what was paid.
    pub fn lines(&self) -> Vec<(String, String)> {
        let Order { price, uniqueness_discount: off, coupon, .. } = &self.order;
        let taken = coupon.as_ref().map_or(Usd::ZERO, |coupon| coupon.discount);
        let mut lines = vec![(self.plan_name(), usd(price.plus(*off).plus(taken)))];
        if let Some(coupon) = coupon {
            lines.push((format!("Coupon {}", one_line(&coupon.code)), less(taken)));
        }
        if off.is_positive() {
            let is_unique = matches!(self.paid_by, PaidBy::Payment { unique, .. } if unique == *off);
            let why = if is_unique { "Small discount that marks your payment" } else { "Not charged" };
            lines.push((why.into(), less(*off)));
        } else if off.negated().is_positive() {
            lines.push(("Rounded up by you".into(), usd(off.negated())));
        }
        lines
    }

    /// The same for a plain text, with what was paid.
    pub fn columns(&self) -> String {
        let mut lines = self.lines();
        lines.push((format!("Paid {}", self.way()), self.total()));
        columns(&lines)
    }

    /// What was paid, in what it was paid with.
    pub fn total(&self) -> String {
        let unit = match &self.paid_by {
            PaidBy::Wallet { .. } | PaidBy::Partner { .. } => "USD",
            PaidBy::Payment { currency, .. } => currency.as_str(),
        };
        format!("{} {unit}", self.order.price.priced())
    }

    pub fn way(&self) -> String {
        match &self.paid_by {
            PaidBy::Wallet { own: true } => "from your wallet".into(),
            PaidBy::Wallet { own: false } | PaidBy::Partner { .. } => "from the buyer's wallet".into(),
            PaidBy::Payment { network, .. } => format!("on the {} network", network.name()),
        }
    }
}

fn usd(amount: Usd) -> String {
    format!("{} USD", amount.priced())
}

fn less(amount: Usd) -> String {
    format!("−{}", usd(amount))
}

/// Not money: rounded to a hundredth.
fn size(data_mb: i64) -> String {
    match data_mb {
        ..1024 => format!("{data_mb} MB"),
        _ => format!("{} GB", (data_mb as f64 / 10.24).round() / 100.0),
    }
}
