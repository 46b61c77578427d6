//! The install page of an eSIM with its QR code.

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;

use crate::app::App;
use crate::domain::esim::Activation;
use crate::domain::ids::OrderId;
use crate::domain::refusal::Refusal;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::Segment;
use crate::http::kit::html::{self, guard};
use crate::http::kit::{State, qr};
use crate::ops::install::{self, Install};
use crate::ops::live::shown::{self, Version};

const APPLE: &str = "https://esimsetup.apple.com/esim_qrcode_provisioning?carddata=";
const ANDROID: &str = "https://esimsetup.android.com/esim_qrcode_provisioning?carddata=";
const PIXELS: usize = 8;

#[derive(Template)]
#[template(path = "install.html")]
struct InstallPage<'a> {
    plan_name: &'a str,
    order_no: &'a str,
    esim: EsimShown,
    /// Tells this view from others; see `ops::live`.
    version: Version,
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
    token: &'a str,
    version: Version,
}

pub async fn page(_: Anyone, state: State, Segment(token): Segment) -> Answer {
    match install::open(&state.app, &token).await? {
        Install::BeingPrepared(order) => {
            let order_no = state.app.numbers.of_order(&order).unwrap_or_default();
            let version = shown::of_esim(&order).version;
            let template =
                PreparingPage { plan_name: &order.plan_name, order_no: &order_no, token: &token, version };
            html::page(StatusCode::OK, &template)
        }
        Install::Ready { order, activation } => {
            let template = InstallPage {
                plan_name: &order.plan_name,
                order_no: &state.app.numbers.of_order(&order).unwrap_or_default(),
                esim: EsimShown::new(&state.app, &order.id, activation),
                version: shown::of_esim(&order).version,
            };
            html::page(StatusCode::OK, &template)
        }
    }
}

/// `/qr/{token}.svg` or `.png`.
pub async fn qr_image(_: Anyone, state: State, Segment(file): Segment) -> Answer {
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
        ("svg", None) => ("image/svg+xml", Body::from(include_str!("../../../assets/preparing.svg"))),
        (_, Some(code)) => ("image/png", Body::from(qr::png(code, PIXELS)?)),
        (_, None) => ("image/png", Body::from(include_bytes!("../../../assets/preparing.png").as_slice())),
    };
    let mut response = ([(header::CONTENT_TYPE, content_type)], body).into_response();
    guard(response.headers_mut());
    if code.is_none() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("3"));
    }
    Ok(response)
}
