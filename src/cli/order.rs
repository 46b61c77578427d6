//! `simgate order`: looking at orders and top-ups, and helping those that need a hand.
//! Activation codes and install links are never shown: they are secrets.

use std::collections::HashMap;

use clap::{Args, Subcommand};

use super::output::{Cell, Form, Record, Table, cut, table};
use super::{Failure, Outcome, account, args, twice};
use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::esim::Esim;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::ops::operator::{self, Told};
use crate::ops::{cancel, find, orders, suppliers};

#[derive(Subcommand)]
pub enum Command {
    /// The newest orders and top-ups
    #[command(after_help = "Example: simgate order list --status PROVISIONING --limit 100")]
    List(List),
    /// Everything about one order
    #[command(after_help = "Example: simgate order show SG0123456789")]
    Show(Named),
    /// Ask the supplier about an open order now, and say what it answered
    #[command(after_help = "Example: simgate order retry ord_…")]
    Retry(Named),
    /// Give up an order that is PROVISIONING: the money goes back to the wallet
    #[command(
        after_help = "Example: simgate order fail ord_… --reason \"the supplier confirmed that it did not sell\""
    )]
    Fail {
        #[command(flatten)]
        named: Named,
        /// Why, for the partner and the audit log
        #[arg(long, value_name = "TEXT", value_parser = args::name)]
        reason: String,
    },
    /// Give a delivered order back for its owner; the supplier decides, and the money follows its answer
    #[command(after_help = "Example: simgate order cancel SG0123456789 --reason \"bought by mistake\"")]
    Cancel {
        #[command(flatten)]
        named: Named,
        /// Why, for the audit log
        #[arg(long, value_name = "TEXT", value_parser = args::name)]
        reason: String,
    },
    /// Enter that the supplier took an eSIM back after a review: its owner gets the price, unless they keep it after all
    #[command(after_help = "Example: simgate order cancelled SG0123456789 --returned 3.20")]
    Cancelled {
        #[command(flatten)]
        named: Named,
        /// How much of its cost the supplier gave back, in the currency that it bills in
        #[arg(long, value_name = "AMOUNT", value_parser = args::usd, allow_negative_numbers = true)]
        returned: Usd,
        /// Also when the eSIM was used meanwhile, or its meter cannot be read
        #[arg(long)]
        despite_usage: bool,
    },
    /// Enter that the supplier does not take an eSIM back after a review: the order is FULFILLED again
    #[command(after_help = "Example: simgate order cancel-refused SG0123456789 --reason \"it was used\"")]
    CancelRefused {
        #[command(flatten)]
        named: Named,
        /// The supplier's reason, for the audit log
        #[arg(long, value_name = "TEXT", value_parser = args::name)]
        reason: String,
    },
    /// Pay money back out of goodwill; the sale and the eSIM stay
    #[command(after_help = "Example: simgate order refund ord_… 0.50 --reason \"bad network\"")]
    Refund {
        #[command(flatten)]
        named: Named,
        /// How much
        #[arg(value_name = "USD", value_parser = args::some_usd, allow_negative_numbers = true)]
        amount: Usd,
        /// Why, for the statement and the audit log
        #[arg(long, value_name = "TEXT", value_parser = args::name)]
        reason: String,
        /// Do it without a question, also when the same was done within a day
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub struct Named {
    /// Order id (ord_…, top_…) or order number (SG…)
    #[arg(value_name = "ID")]
    order: String,
}

#[derive(Args)]
pub struct List {
    /// Only orders of this account: partner id, user id or email
    #[arg(long, value_name = "ACCOUNT", visible_alias = "partner")]
    account: Option<String>,
    /// Only orders in this state
    #[arg(long, value_parser = args::status(), ignore_case = true, conflicts_with = "stuck")]
    status: Option<OrderStatus>,
    /// List at most this many [default: 20, with --csv all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    limit: Option<i64>,
    /// Only those that have waited for their supplier for over 30 minutes, the longest waiting first
    #[arg(long)]
    stuck: bool,
    #[command(flatten)]
    form: Form,
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::List(query) => list(app, query).await?,
        Command::Show(named) => show(app, named.order(app).await?).await?,
        Command::Retry(named) => {
            let order = named.order(app).await?;
            if is_open(&order) {
                announce(&order, app.settings.supplier_timeout_ms);
            }
            let (told, order) = operator::retry_order(app, actor, order.id.as_str()).await?;
            let sentence = sentence(told, &order);
            show(app, order).await?.with("supplierAnswer", told.as_str()).remark(sentence)
        }
        Command::Cancel { named, reason } => {
            let order = named.order(app).await?;
            cancel(app, actor, &order, &reason).await?
        }
        Command::Cancelled { named, returned, despite_usage } => {
            let order = named.order(app).await?;
            let outcome =
                operator::order_cancelled(app, actor, order.id.as_str(), returned, despite_usage).await?;
            ended(app, outcome, returned)
        }
        Command::CancelRefused { named, reason } => {
            let order = named.order(app).await?;
            show(app, operator::cancel_refused(app, actor, order.id.as_str(), &reason).await?).await?
        }
        Command::Fail { named, reason } => {
            let order = named.order(app).await?;
            show(app, operator::fail_order(app, actor, order.id.as_str(), &reason).await?).await?
        }
        Command::Refund { named, amount, reason, yes } => {
            let order = named.order(app).await?;
            let owner = operator::account_by_no(app, order.account).await?.id;
            let begins = format!("{},", operator::refund_gist(&owner, amount, &order.id));
            let deed =
                async { Ok(operator::refund_order(app, actor, order.id.as_str(), amount, &reason).await?) };
            let balance = twice::warned(app, "order refund", &begins, yes, deed).await?;
            Record::new()
                .with("orderId", order.id.to_string())
                .with("refundedUsd", amount)
                .with("reason", reason)
                .with("balanceUsd", balance)
        }
    };
    Ok(record.into())
}

/// What the supplier answered, for people.
fn sentence(told: Told, order: &Order) -> String {
    let why = order.failure.as_ref().map(|failure| format!(": {}", failure.detail)).unwrap_or_default();
    match (told, order.status) {
        (Told::Delivered, _) => "The supplier delivered: the order is FULFILLED.".into(),
        (Told::TakenBack, _) => {
            "The supplier took the eSIM back: the order is CANCELLED, the money is back.".into()
        }
        (Told::Refused, OrderStatus::Failed) => {
            format!("The supplier refused{why}. The order is FAILED, the money is back.")
        }
        (Told::Refused, _) => {
            "The supplier does not take the eSIM back: the order is FULFILLED again.".into()
        }
        (Told::NoAnswer, status) => format!(
            "The supplier still gave no clear answer: the order stays {}, and is asked about again.",
            status.as_str()
        ),
    }
}

/// Says why the command may take a while.
fn announce(order: &Order, millis: i64) {
    let seconds = (millis + 999) / 1_000;
    eprintln!("asking the supplier {} about {}, for up to {seconds} s", order.supplier, order.id);
}

async fn cancel(app: &App, actor: &str, order: &Order, reason: &str) -> Result<Record, Failure> {
    if order.status == OrderStatus::Fulfilled && !order.id.is_topup() {
        announce(order, app.settings.answer_within_ms);
    }
    let outcome = operator::cancel_order(app, actor, order.id.as_str(), reason).await.map_err(|error| {
        let unfit = format!("{} is a top-up, and cannot be given back", order.id);
        Failure::worded(error, Refusal::OrderNotFound, unfit)
    })?;
    let remark = match outcome.order.status {
        OrderStatus::Cancelled => "The supplier took the eSIM back, and the money is back.",
        _ => "The supplier has not decided yet: the order stays CANCELLING until it has.",
    };
    Ok(Record::new()
        .with("orderId", outcome.order.id.to_string())
        .with("status", outcome.order.status.as_str())
        .with("refundedUsd", outcome.refunded)
        .with("reason", reason)
        .with("balanceUsd", outcome.balance)
        .remark(remark))
}

fn ended(app: &App, outcome: cancel::Outcome, returned: Usd) -> Record {
    let currency = suppliers::currency(app, &outcome.order.supplier);
    let returned = Amount { micros: returned.micros(), currency };
    let record = Record::new()
        .with("orderId", outcome.order.id.to_string())
        .with("status", outcome.order.status.as_str())
        .with("refundedUsd", outcome.refunded)
        .with("returned", returned.to_string())
        .with("returnedUsd", returned.in_usd())
        .with("balanceUsd", outcome.balance);
    match outcome.order.status {
        OrderStatus::Cancelled => record,
        OrderStatus::Fulfilled => record.remark(
            "Its owner keeps the eSIM after all, so only the supplier's money is booked. If the eSIM no longer works, give \
             the price back with `simgate order refund`.",
        ),
        _ => record.remark("The payment of this order is not on its chain, so nothing is paid back yet."),
    }
}

async fn list(app: &App, query: List) -> Result<Record, Failure> {
    let only = match &query.account {
        Some(text) => Some(account::named(app, text).await?.no),
        None => None,
    };
    let limit = query.form.limit(query.limit, 20);
    let mut found = if query.stuck {
        operator::longest_waiting(app, only, limit as usize + 1).await?
    } else {
        operator::recent_orders(app, only, query.status, limit + 1).await?
    };
    let more = cut(&mut found, limit);
    Ok(Record::new().with("orders", table(app, &found, &account::owners(app).await?)).going_on(more))
}

impl Named {
    /// The order with this id, or with the number that people read out.
    async fn order(&self, app: &App) -> Result<Order, Failure> {
        let text = &self.order;
        let found = find::order_named(app, text).await?;
        found.ok_or_else(|| {
            let message =
                format!("no order has the id or number {text:?}; `simgate find {text}` looks further");
            Failure::refused(Refusal::OrderNotFound, message)
        })
    }
}

pub fn table(app: &App, orders: &[Order], owners: &HashMap<AccountNo, String>) -> Table {
    table!(orders.iter(), |order| {
        "id" => order.id.to_string(),
        "orderNo" => app.numbers.of_order(order),
        "partnerId" as "account" => owners.get(&order.account).cloned(),
        "packageCode" => order.package_code.clone(),
        "status" => order.status.as_str(),
        "chargedUsd" => order.price,
        "iccid" => order.esim.as_ref().map(|esim| esim.iccid.clone()),
        "partnerRefId" as "reference" => order.given_reference().map(str::to_string),
        "createdAt" => order.created_at,
    })
}

async fn show(app: &App, order: Order) -> Result<Record, Failure> {
    let owners = account::owners(app).await?;
    let owner = operator::account_by_no(app, order.account).await?;
    let listed = orders::with_topups(app, order).await?;
    let order = &listed.order;
    let currency = suppliers::currency(app, &order.supplier);
    let failure = order.failure.as_ref().map(|failure| {
        Record::new().with("code", failure.code.clone()).with("detail", failure.detail.clone())
    });
    Ok(Record::new()
        .with("id", order.id.to_string())
        .with("orderNo", app.numbers.of_order(order))
        .with(account::id_name(&owner), owners.get(&order.account).cloned())
        .with("apiKey", order.key_id.clone())
        .with("partnerRefId", order.given_reference().map(str::to_string))
        .with("status", order.status.as_str())
        .with("failure", failure)
        .with("packageCode", order.package_code.clone())
        .with("planName", order.plan_name.clone())
        .with("dataMb", order.data_mb)
        .with("durationDays", order.duration_days)
        .with("chargedUsd", order.price)
        .with("coupon", order.coupon.as_ref().map(|coupon| coupon.code.clone()))
        .with("discountUsd", order.coupon.as_ref().map(|coupon| coupon.discount))
        .with("costUsd", order.cost)
        .with("cost", order.billed.map(|_| order.billed_cost().amount(currency).to_string()))
        .with("rate", order.billed.map(|billed| billed.rate.to_string()))
        .with("supplier", order.supplier.clone())
        .with("cancelRequest", order.cancel_request.clone())
        .with("cancelWithdrawnAt", order.cancel_withdrawn_at)
        .with("iccid", order.esim.as_ref().map(|esim| esim.iccid.clone()))
        .with("esim", order.esim.as_ref().map(esim))
        .with("esimOrderId", order.esim_order.as_ref().map(ToString::to_string))
        .with("createdAt", order.created_at)
        .with("updatedAt", order.updated_at)
        .with("askUntil", Some(order.ask_until).filter(|_| is_open(order)))
        .with("topUps", topups(app, order, &listed.topups, &owners)))
}

/// A top-up has no top-ups of its own.
fn topups(app: &App, order: &Order, topups: &[Order], owners: &HashMap<AccountNo, String>) -> Cell {
    if order.id.is_topup() { Cell::Nothing } else { Cell::Table(table(app, topups, owners)) }
}

fn is_open(order: &Order) -> bool {
    match order.status {
        OrderStatus::Provisioning | OrderStatus::Cancelling => true,
        OrderStatus::Fulfilled | OrderStatus::Failed | OrderStatus::Cancelled => false,
    }
}

fn esim(esim: &Esim) -> Record {
    let usage = esim.last_usage.as_ref().map(|usage| {
        Record::new()
            .with("status", usage.status().as_str())
            .with("serviceState", usage.service.as_str())
            .with("profileState", usage.profile.map(|state| state.as_str()))
            .with("totalMb", usage.total_mb)
            .with("usedMb", usage.used_mb)
            .with("asOf", usage.as_of)
            .with("expiresAt", usage.expires_at)
    });
    Record::new()
        .with("profile", esim.profile.clone())
        .with("installBy", esim.install_by)
        .with("usage", usage)
}
