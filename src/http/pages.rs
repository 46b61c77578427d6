//! Pages for people: what all of them share, and the install page of an eSIM with its QR code. Plain HTML, no script,
//! nothing from elsewhere. Addresses hold tokens that open things, so nothing here may be cached, indexed or referred
//! from.

use askama::Template;
use axum::body::Body;
use axum::extract::State as FromState;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::State;
use super::auth::Anyone;
use super::fields::Segment;
use super::problem::{Problem, Refused};
use super::qr;
use crate::app::App;
use crate::domain::esim::Activation;
use crate::domain::ids::{InvoiceId, OrderId};
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::ops::install::{self, Install};

const STYLE: &str = include_str!("../../assets/style.css");
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";
const APPLE: &str = "https://esimsetup.apple.com/esim_qrcode_provisioning?carddata=";
const ANDROID: &str = "https://esimsetup.android.com/esim_qrcode_provisioning?carddata=";
const PIXELS: usize = 8;

/// Headers of every page and of every image behind a token.
pub fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex, nofollow"));
}

pub fn page(status: StatusCode, template: &impl Template) -> Result<Response, Refused> {
    let html = template.render().map_err(Error::fault)?;
    let mut response = (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response();
    guard(response.headers_mut());
    Ok(response)
}

#[derive(Template)]
#[template(path = "install.html")]
struct InstallPage<'a> {
    plan_name: &'a str,
    order_no: &'a str,
    esim: EsimShown,
}

/// What a person needs to install an eSIM.
pub struct EsimShown {
    pub qr_url: String,
    pub apple_url: String,
    pub android_url: String,
    pub smdp_address: String,
    pub matching_id: String,
    pub lpa_string: String,
}

impl EsimShown {
    pub fn new(app: &App, order: &OrderId, activation: Activation) -> EsimShown {
        let lpa_string = activation.lpa_string();
        let encoded: String = form_urlencoded::byte_serialize(lpa_string.as_bytes()).collect();
        EsimShown {
            qr_url: install::qr_url(app, order),
            apple_url: format!("{APPLE}{encoded}"),
            android_url: format!("{ANDROID}{encoded}"),
            smdp_address: activation.smdp_address,
            matching_id: activation.matching_id,
            lpa_string,
        }
    }
}

#[derive(Template)]
#[template(path = "preparing.html")]
struct PreparingPage<'a> {
    plan_name: &'a str,
    order_no: &'a str,
}

#[derive(Template)]
#[template(path = "onward.html")]
struct OnwardPage {
    path: String,
    hint: &'static str,
}

/// On to the page of an invoice. Its id is a key, so the way there stands in the body and not in a header.
pub fn onward(invoice: &InvoiceId, hint: &'static str) -> Result<Response, Refused> {
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

/// What is wrong with each field, in sentences.
fn said<'a>(wrong: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    wrong.map(|(field, message)| format!("{} {message}.", label(field))).collect::<Vec<_>>().join(" ")
}

/// What a form calls its fields.
fn label(field: &str) -> String {
    match field {
        "amountUsd" => "The amount".into(),
        "email" => "The email address".into(),
        "means" => "Currency and network".into(),
        other => format!("The {other}"),
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    title: &'a str,
    detail: String,
    request_id: &'a str,
}

/// The body of an error for a browser.
pub fn error_page(problem: &Problem) -> String {
    let (title, detail) = for_people(problem);
    let page = ErrorPage { title, detail, request_id: &problem.request_id };
    page.render().unwrap_or_else(|_| problem.detail.clone())
}

/// A problem names fields and headers for whoever wrote the program; who looks at a page wants to know what to do.
fn for_people(problem: &Problem) -> (&'static str, String) {
    match (problem.status, problem.code) {
        (403, "ACCOUNT_SUSPENDED") => (
            "This account is suspended",
            "Until that is settled, nothing can be paid into its wallet or bought from it. Ask support."
                .into(),
        ),
        (404, "PLAN_NOT_FOUND") => {
            ("This plan is not on sale", "Perhaps the link is old, or a part of it is missing.".into())
        }
        (404, "INVOICE_NOT_FOUND") => {
            ("No payment here", "Perhaps a part of the link is missing: open it just as you got it.".into())
        }
        (405, _) => (
            "Nothing to see here",
            "This address only takes what a form sends. Go back, and use the form there.".into(),
        ),
        (410, _) => {
            ("This eSIM is gone", "Its order was cancelled or failed, so it cannot be installed.".into())
        }
        (400, _) if !problem.errors.is_empty() => {
            let wrong = said(problem.errors.iter().map(|wrong| (&*wrong.field, &*wrong.message)));
            ("Please check what you typed", format!("{wrong} Go back and change it."))
        }
        _ => (problem.title, problem.detail.clone()),
    }
}

pub async fn install(
    _: Anyone,
    FromState(state): FromState<State>,
    Segment(token): Segment,
) -> Result<Response, Refused> {
    match install::open(&state.app, &token).await? {
        Install::BeingPrepared(order) => {
            let order_no = state.app.numbers.of_order(&order).unwrap_or_default();
            let mut response =
                page(StatusCode::OK, &PreparingPage { plan_name: &order.plan_name, order_no: &order_no })?;
            response.headers_mut().insert(header::REFRESH, HeaderValue::from_static("3"));
            Ok(response)
        }
        Install::Ready { order, activation } => {
            let template = InstallPage {
                plan_name: &order.plan_name,
                order_no: &state.app.numbers.of_order(&order).unwrap_or_default(),
                esim: EsimShown::new(&state.app, &order.id, activation),
            };
            page(StatusCode::OK, &template)
        }
    }
}

/// `/qr/{token}.svg` or `.png`.
pub async fn qr_image(
    _: Anyone,
    FromState(state): FromState<State>,
    Segment(file): Segment,
) -> Result<Response, Refused> {
    let (token, kind) = file.rsplit_once('.').ok_or(Refusal::NotFound)?;
    if kind != "svg" && kind != "png" {
        return Err(Refusal::NotFound.into());
    }
    let code = match install::open(&state.app, token).await? {
        Install::Ready { activation, .. } => Some(qr::encode(&activation.lpa_string())?),
        Install::BeingPrepared(_) => None,
    };
    let (content_type, body) = match (kind, &code) {
        ("svg", Some(code)) => ("image/svg+xml", Body::from(qr::svg(code))),
        ("svg", None) => ("image/svg+xml", Body::from(include_str!("../../assets/preparing.svg"))),
        (_, Some(code)) => ("image/png", Body::from(qr::png(code, PIXELS)?)),
        (_, None) => ("image/png", Body::from(include_bytes!("../../assets/preparing.png").as_slice())),
    };
    let mut response = ([(header::CONTENT_TYPE, content_type)], body).into_response();
    guard(response.headers_mut());
    if code.is_none() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("3"));
    }
    Ok(response)
}

pub async fn style() -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "public, max-age=3600")];
    (headers, STYLE).into_response()
}
