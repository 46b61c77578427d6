//! Pages for people. Plain HTML, no script, nothing from elsewhere. Addresses hold tokens that open things, so nothing here
//! may be cached, indexed or referred from.

pub mod claim;
pub mod guest;
pub mod help;
pub mod install;
pub mod mailed;
pub mod pay;
pub mod topup;

use askama::Template;
use axum::http::StatusCode;

use crate::domain::ids::InvoiceId;
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::http::kit::answers::Answer;
use crate::http::kit::html::{page, said};
use crate::http::kit::problem::Refused;

#[derive(Template)]
#[template(path = "onward.html")]
struct OnwardPage {
    path: String,
    hint: &'static str,
}

/// On to the page of an invoice. Its id is a key, so the way there stands in the body and not in a header.
pub fn onward(invoice: &InvoiceId, hint: &'static str) -> Answer {
    page(StatusCode::OK, &OnwardPage { path: format!("/pay/{invoice}"), hint })
}

/// What to say above a form that has to be filled in again, and with which status. Everything else is no answer to a
/// form and gets a page of its own.
pub fn told(error: Error) -> Result<(StatusCode, String), Refused> {
    let Error::Refused(refusal) = &error else { return Err(error.into()) };
    let text = match refusal {
        Refusal::Invalid(fields) => said(fields.iter().map(|wrong| (&*wrong.field, &*wrong.message))),
        // One sentence for every reason: which one it is tells a guesser that a code exists.
        Refusal::CouponInvalid => {
            "This discount code is unknown, expired, not valid for this plan, or only for customers who are signed in."
                .into()
        }
        Refusal::TooManyInvoices { .. } => {
            "Five payments are open on this network already. Pay one of these, or come back when one has expired.".into()
        }
        Refusal::OtpInvalid | Refusal::TooManyCodes { .. } | Refusal::UnsupportedPair(_) => {
            refusal.problem().detail
        }
        _ => return Err(error.into()),
    };
    let status = StatusCode::from_u16(refusal.problem().status).unwrap_or(StatusCode::BAD_REQUEST);
    Ok((status, text))
}
