//! The search box of every page: one order leads to its page, all else is listed. A deposit is never led to: its id opens its
//! payment page to anybody, so it may stand in a page, and in no header.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Frame, Section, Visit};
use super::orders::row::OrderRow;
use crate::domain::invoice::InvoiceStatus;
use crate::domain::transfer::TransferState;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Query;
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::pages::moment::Moment;
use crate::ops::look_up::{self, Hits};

/// A deposit, or a payment that came without one.
struct Payment {
    path: Option<String>,
    name: String,
    network: &'static str,
    currency: &'static str,
    amount: String,
    word: &'static str,
    at: Option<Moment>,
}

#[derive(Template)]
#[template(path = "portal/search.html")]
struct SearchPage<'a> {
    frame: Frame<'a>,
    typed: String,
    orders: Vec<OrderRow>,
    payments: Vec<Payment>,
}

pub async fn find(visit: Visit, query: Query) -> Answer {
    let (app, typed) = (&visit.state.app, query.typed("q").trim().to_string());
    let hits = look_up::look_up(app, visit.me().account, &typed).await?;
    let orders: Vec<OrderRow> = hits.orders.iter().map(|order| OrderRow::of(app, order)).collect();
    let payments = payments(hits);
    if let ([only], []) = (orders.as_slice(), payments.as_slice()) {
        return Ok(see(&only.path));
    }
    let template = SearchPage { frame: visit.frame(Section::Orders), typed, orders, payments };
    page(&visit.state, StatusCode::OK, &template)
}

fn payments(hits: Hits) -> Vec<Payment> {
    let deposits = hits.deposits.into_iter().map(|invoice| Payment {
        path: Some(format!("/portal/deposits/{}", invoice.id)),
        name: format!("Deposit {}", invoice.id),
        network: invoice.network.name(),
        currency: invoice.currency.as_str(),
        amount: invoice.amount.priced(),
        word: match invoice.status {
            InvoiceStatus::Pending => "Waiting for payment",
            InvoiceStatus::Confirming => "Being confirmed",
            InvoiceStatus::Confirmed => "Credited",
            InvoiceStatus::Expired => "Expired",
        },
        at: Some(Moment::of(invoice.created_at)),
    });
    let transfers = hits.transfers.into_iter().map(|transfer| Payment {
        path: None,
        name: format!("Payment {}", transfer.id.tx_hash),
        network: transfer.id.network.name(),
        currency: transfer.currency.as_str(),
        amount: transfer.amount.priced(),
        word: match transfer.state {
            TransferState::Seen => "Being confirmed",
            TransferState::Orphaned | TransferState::Reversed => "Dropped by the network",
            TransferState::Credited | TransferState::Assigned => "Credited",
            TransferState::Held => "Paid for an order",
            TransferState::Unmatched => "Being looked at",
            TransferState::Returned => "Sent back",
            TransferState::WrittenOff => "Not credited",
        },
        at: transfer.block.map(|block| Moment::of(block.time)),
    });
    deposits.chain(transfers).collect()
}
