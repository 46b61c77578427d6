//! Paying in: an invoice for an amount, the address that needs none, and everything that was asked for and what came of it.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::app::App;
use crate::domain::invoice::{Deposit, Invoice, InvoiceException, InvoiceStatus};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::domain::transfer::TransferState;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Query, Segment, invoice_id};
use crate::http::kit::html::page;
use crate::http::kit::notice::Sandbox;
use crate::http::kit::session::see;
use crate::http::kit::{problem, qr};
use crate::http::pages::moment::Moment;
use crate::http::pages::pay::standing::{self, Standing};
use crate::http::pages::pay::{accepted, groups_of_four};
use crate::http::pages::payments::PaymentRow;
use crate::http::pages::ways::{self, Ways};
use crate::http::pages::{onward, told};
use crate::ops::deposits::history::{self, Cursor, Line};
use crate::ops::deposits::{self, by_team};

/// What is proposed to pay in.
const USUAL: Usd = Usd::dollars(250);
const ROWS: usize = 25;
/// How many transactions of an invoice the list shows.
const PAYMENTS: usize = 3;

/// How a deposit stands, in a word.
struct Badge {
    kind: &'static str,
    icon: &'static str,
    word: String,
}

fn badge(kind: &'static str, icon: &'static str, word: impl Into<String>) -> Badge {
    Badge { kind, icon, word: word.into() }
}

impl Badge {
    fn of(line: &Line, dust: Usd) -> Badge {
        match line {
            Line::Invoice(deposit) => Badge::of_invoice(deposit, dust),
            Line::Payment { payment, .. } => match payment.transfer.state {
                TransferState::Seen => Badge::confirming(payment.confirmations, payment.needed),
                TransferState::Reversed if payment.transfer.block.is_some() => {
                    Badge::confirming(payment.confirmations, payment.needed)
                }
                TransferState::Reversed => badge("bad", "warning", "Taken back by the network"),
                TransferState::Orphaned => badge("caution", "warning", "Dropped by the network"),
                TransferState::Credited | TransferState::Assigned => badge("good", "check", "Credited"),
                TransferState::Held => badge("good", "check", "Paid for an order"),
                TransferState::Unmatched => badge("caution", "eye", "We are looking at it"),
                TransferState::Returned => badge("", "money", "Sent back"),
                TransferState::WrittenOff => badge("", "stop", "Not credited"),
            },
        }
    }

    fn of_invoice(deposit: &Deposit, dust: Usd) -> Badge {
        let Deposit { invoice, paid, .. } = deposit;
        match invoice.status {
            InvoiceStatus::Pending if standing::is_missing(&deposit.payments) => {
                badge("caution", "warning", "Dropped by the network")
            }
            InvoiceStatus::Pending => badge("", "clock", "Waiting for payment"),
            InvoiceStatus::Confirming => {
                Badge::confirming(deposit.confirmations(), deposit.required_confirmations())
            }
            InvoiceStatus::Confirmed => match invoice.exception(paid, dust) {
                None => badge("good", "check", "Credited"),
                Some(InvoiceException::Under) => badge("caution", "check", "Credited, less than asked"),
                Some(InvoiceException::Over) => badge("good", "check", "Credited, more than asked"),
                Some(InvoiceException::Late) => badge("good", "check", "Credited, late"),
            },
            InvoiceStatus::Expired => badge("", "clock", "Expired unpaid"),
        }
    }

    fn confirming(seen: i64, needed: i64) -> Badge {
        badge("", "eye", format!("Seen, {} of {needed} confirmations", seen.min(needed)))
    }
}

/// A line of the history.
struct Row {
    at: Moment,
    /// The token and the network that were asked for, or that it came by.
    way: String,
    /// The page of an invoice.
    path: Option<String>,
    state: Badge,
    asked: Option<String>,
    received: String,
    credited: String,
    payments: Vec<PaymentRow>,
    /// How many more there are.
    more: usize,
}

impl Row {
    fn of(app: &App, line: &Line) -> Row {
        let amount = |amount: Usd| if amount.is_positive() { amount.priced() } else { "–".into() };
        let (way, path, asked, payments) = match line {
            Line::Invoice(deposit) => {
                let Invoice { id, currency, network, amount, .. } = &deposit.invoice;
                let newest = deposit.payments.iter().rev().take(PAYMENTS);
                let payments: Vec<_> = newest.map(|payment| PaymentRow::of(app, payment)).collect();
                let path = format!("{}/{id}", Section::Deposits.path());
                (pair(*currency, *network), Some(path), Some(amount.priced()), payments)
            }
            Line::Payment { payment, .. } => {
                let transfer = &payment.transfer;
                let way = pair(transfer.currency, transfer.id.network);
                (way, None, None, vec![PaymentRow::of(app, payment)])
            }
        };
        let all = match line {
            Line::Invoice(deposit) => deposit.payments.len(),
            Line::Payment { .. } => 1,
        };
        Row {
            at: Moment::of(line.at()),
            way,
            path,
            state: Badge::of(line, app.settings.settlement.dust),
            asked,
            received: amount(line.received()),
            credited: amount(line.credited()),
            more: all - payments.len(),
            payments,
        }
    }
}

fn pair(currency: Currency, network: Network) -> String {
    format!("{} on {}", currency.as_str(), network.name())
}

/// A way to pay that the address can be shown for.
struct Choice {
    value: String,
    name: String,
    chosen: bool,
}

/// The address that needs no invoice.
struct Address {
    groups: Vec<String>,
    whole: String,
    qr: String,
    uri: String,
    uri_qr: String,
    way: String,
    /// Each network that the address exists on, with its tokens.
    accepted: Vec<String>,
    confirmations: i64,
    sandbox: Option<Sandbox>,
}

impl Address {
    fn of(app: &App, found: deposits::Standing) -> Result<Address> {
        Ok(Address {
            groups: groups_of_four(&found.address),
            qr: qr::svg(&qr::encode(&found.address)?),
            uri_qr: qr::svg(&qr::encode(&found.payment_uri)?),
            way: pair(found.currency, found.network),
            accepted: accepted(app, found.network.kind()),
            confirmations: found.required_confirmations,
            sandbox: Sandbox::on(&app.settings, found.network),
            uri: found.payment_uri,
            whole: found.address,
        })
    }
}

#[derive(Template)]
#[template(path = "portal/deposits.html")]
struct DepositsPage<'a> {
    frame: Frame<'a>,
    sandbox: Option<Sandbox>,
    minimum: Usd,
    ways: Vec<Ways>,
    /// When the figures of networks were looked up.
    as_of: &'a str,
    amount: String,
    problem: Option<String>,
    /// The payments that are open, when there are too many for another.
    open: Vec<Invoice>,
    choices: Vec<Choice>,
    address: Option<Address>,
    rows: Vec<Row>,
    /// Whether these are not the newest.
    is_later_page: bool,
    older: Option<String>,
}

impl DepositsPage<'_> {
    fn may_pay_in(&self) -> bool {
        self.frame.may(Ability::PayIn) && !self.frame.me.suspended && !self.ways.is_empty()
    }
}

/// What was typed into the form, and why it is shown again.
#[derive(Default)]
struct Typed {
    amount: String,
    means: String,
    problem: Option<String>,
    open: Vec<Invoice>,
}

/// `?means=` is the way that the standing address is shown for, `?before=` a place in the history, `?amount=` what is
/// missing for something.
pub async fn list(visit: Visit, query: Query) -> Answer {
    let asked = Usd::parse(&query.typed("amount")).ok().filter(|amount| amount.is_positive());
    let amount = asked.unwrap_or(USUAL).max(deposits::least(&visit.state.app)).to_string();
    shown(&visit, StatusCode::OK, &query, Typed { amount, ..Typed::default() }).await
}

async fn shown(visit: &Visit, status: StatusCode, query: &Query, typed: Typed) -> Answer {
    let (app, account) = (&visit.state.app, visit.me().account);
    let pairs = deposits::pairs(app);
    let ways = ways::of(app, &pairs, &typed.means);
    let usual = || ways.iter().flat_map(|on| &on.tokens).find_map(|way| ways::named(&way.value));
    let wanted = ways::named(&query.typed("means")).filter(|pair| pairs.contains(pair)).or_else(usual);
    let address = match wanted {
        Some((currency, network)) => by_team::standing(app, account, currency, network).await?,
        None => None,
    };
    let choice = |way: &ways::Way| {
        let named = ways::named(&way.value)?;
        Some(Choice { name: pair(named.0, named.1), chosen: wanted == Some(named), value: way.value.clone() })
    };
    let before = Cursor::parse(&query.typed("before"));
    let found = history::history(app, account, before, ROWS).await?;
    let template = DepositsPage {
        frame: visit.frame(Section::Deposits),
        sandbox: Sandbox::anywhere(&app.settings),
        minimum: deposits::least(app),
        as_of: &app.settings.settlement.typical_as_of,
        amount: typed.amount,
        problem: typed.problem,
        open: typed.open,
        choices: ways.iter().flat_map(|on| &on.tokens).filter_map(choice).collect(),
        ways,
        address: address.map(|found| Address::of(app, found)).transpose()?,
        rows: found.lines.iter().map(|line| Row::of(app, line)).collect(),
        is_later_page: before.is_some(),
        older: found.next.map(|next| format!("{}?before={next}", Section::Deposits.path())),
    };
    page(&visit.state, status, &template)
}

/// Opens an invoice, and leads on to its page.
pub async fn open(Sent(visit, fields): Sent) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    // Who may not pay in hears of that, and not of what else is wrong.
    me.require(Ability::PayIn)?;
    let (amount, means) = (fields.typed("amountUsd"), fields.typed("means"));
    let read = ways::chosen(fields, &deposits::pairs(app));
    let opened = match &read {
        Ok((amount, (currency, network))) => by_team::open(app, me, *amount, *currency, *network).await,
        Err(refusal) => Err(refusal.clone().into()),
    };
    match opened {
        Ok(deposit) => onward(&visit.state, &deposit.invoice.id, "That page shows how the payment stands."),
        Err(error) => {
            let extra = problem::extra_header(&error);
            let network = read.ok().map(|(_, (_, network))| network);
            let open = match (&error, network) {
                (Error::Refused(Refusal::TooManyInvoices { .. }), Some(network)) => {
                    deposits::unpaid(app, me.account, network).await?
                }
                _ => Vec::new(),
            };
            let (status, problem) = told(error)?;
            let typed = Typed { amount, means, problem: Some(problem), open };
            let mut page = shown(&visit, status, &Query::parse(None), typed).await?;
            page.headers_mut().extend(extra);
            Ok(page)
        }
    }
}

/// Makes the address that needs no invoice.
pub async fn make_address(Sent(visit, mut fields): Sent) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    me.require(Ability::PayIn)?;
    let way = fields.require("means", "must be a way to pay that is offered", ways::named);
    let (currency, network) = fields.finish_with(way)?;
    by_team::make_standing(app, me, currency, network).await?;
    let means: String =
        form_urlencoded::byte_serialize(ways::value((currency, network)).as_bytes()).collect();
    Ok(see(&format!("{}&means={means}", after(Done::AddressMade, &Section::Deposits.path()))))
}

#[derive(Template)]
#[template(path = "portal/deposit.html")]
struct DepositPage<'a> {
    frame: Frame<'a>,
    state: Standing,
    way: String,
    /// The page to pay at, while something is missing.
    pay: Option<String>,
    opened: Moment,
    asked: String,
    received: String,
    credited: String,
    groups: Vec<String>,
    address: String,
    payments: Vec<PaymentRow>,
}

/// An invoice of the partner's own.
pub async fn one(visit: Visit, Segment(id): Segment) -> Answer {
    let app = &visit.state.app;
    let deposit = deposits::find(app, visit.me().account, &invoice_id(id)?).await?;
    let Deposit { invoice, paid, .. } = &deposit;
    let is_open = invoice.due(paid).is_positive() && invoice.status != InvoiceStatus::Expired;
    let template = DepositPage {
        frame: visit.frame(Section::Deposits),
        state: standing::of_deposit(&deposit),
        way: pair(invoice.currency, invoice.network),
        pay: is_open.then(|| format!("/pay/{}", invoice.id)),
        opened: Moment::of(invoice.created_at),
        asked: invoice.amount.priced(),
        received: paid.received.priced(),
        credited: paid.credited.priced(),
        groups: groups_of_four(&invoice.address),
        address: invoice.address.clone(),
        payments: deposit.payments.iter().map(|payment| PaymentRow::of(app, payment)).collect(),
    };
    page(&visit.state, StatusCode::OK, &template)
}
