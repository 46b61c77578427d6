//! The page of an eSIM: how to install it on the device that asks, its QR code, and what is left of its data.

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;

use super::look;
use super::moment::{Moment, days};
use crate::app::App;
use crate::domain::esim::{Activation, EsimStatus};
use crate::domain::ids::OrderId;
use crate::domain::order::Order;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::words::words;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::{Query, Segment};
use crate::http::kit::html::{self, guard};
use crate::http::kit::wire::gigabytes;
use crate::http::kit::{State, qr};
use crate::ops::install::{self, Install, More};
use crate::ops::live::shown::{self, Version};
use crate::ops::usage::Report;

const APPLE: &str = "https://esimsetup.apple.com/esim_qrcode_provisioning?carddata=";
const ANDROID: &str = "https://esimsetup.android.com/esim_qrcode_provisioning?carddata=";
const PIXELS: usize = 8;

words! {
    /// What a visitor has in hand.
    pub enum Device: ALL, parse {
        Iphone = "iphone",
        Android = "android",
        Computer = "computer",
    }
}

impl Device {
    /// The device that the visitor chose, else the one that the browser says it runs on.
    pub fn of(query: &Query, headers: &HeaderMap) -> Device {
        let agent = look::agent(headers);
        Device::parse(&query.typed("device")).unwrap_or_else(|| Device::of_agent(agent))
    }

    fn of_agent(agent: &str) -> Device {
        match agent {
            agent if agent.contains("iPhone") || agent.contains("iPad") => Device::Iphone,
            agent if agent.contains("Android") => Device::Android,
            _ => Device::Computer,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Device::Iphone => "an iPhone",
            Device::Android => "an Android phone",
            Device::Computer => "a computer",
        }
    }

    /// The other choices: what they are called, and how a link names them.
    pub fn others(&self) -> Vec<(&'static str, &'static str)> {
        let others = Device::ALL.into_iter().filter(|device| device != self);
        others.map(|device| (device.name(), device.as_str())).collect()
    }
}

#[derive(Template)]
#[template(path = "install.html")]
struct InstallPage<'a> {
    plan_name: &'a str,
    order_no: &'a str,
    /// `None` once its code was deleted.
    esim: Option<EsimShown>,
    usage: Option<UsageShown>,
    /// Whether somebody has installed it: then what is left comes first.
    is_used: bool,
    /// Where more data or another plan is sold, and what the button says.
    more: Option<(String, &'static str)>,
    iccid: Option<&'a str>,
    /// Tells this view from others; see `ops::live`.
    version: Version,
}

/// What a person needs to install an eSIM.
pub struct EsimShown {
    pub device: Device,
    pub qr_url: String,
    pub apple_url: String,
    pub android_url: String,
    pub smdp_address: String,
    pub matching_id: String,
    pub lpa_string: String,
}

impl EsimShown {
    pub fn new(app: &App, order: &OrderId, activation: Activation, device: Device) -> EsimShown {
        let lpa_string = activation.lpa_string();
        let encoded: String = form_urlencoded::byte_serialize(lpa_string.as_bytes()).collect();
        EsimShown {
            device,
            qr_url: install::qr_url(app, order),
            apple_url: format!("{APPLE}{encoded}"),
            android_url: format!("{ANDROID}{encoded}"),
            smdp_address: activation.smdp_address,
            matching_id: activation.matching_id,
            lpa_string,
        }
    }
}

/// What is left of an eSIM.
pub struct UsageShown {
    pub left_gb: f64,
    pub used_gb: f64,
    pub total_gb: f64,
    /// The same in words.
    pub said: String,
    /// Whether nobody has installed it.
    pub is_new: bool,
    pub kind: &'static str,
    pub icon: &'static str,
    pub word: &'static str,
    /// How many days are left, if it has not ended, and when it ends.
    pub ends: Option<(Option<String>, Moment)>,
    /// How long a plan lasts, unless it is over.
    pub lasts: Option<String>,
    pub as_of: Moment,
    pub stale: bool,
}

impl UsageShown {
    pub fn new(order: &Order, report: &Report, now: Time) -> UsageShown {
        let usage = &report.usage;
        let left = (usage.total_mb - usage.used_mb).max(0);
        let status = usage.status();
        let (kind, icon, word) = match status {
            EsimStatus::New => ("", "clock", "Not installed yet"),
            EsimStatus::Installed => ("good", "check", "Installed"),
            EsimStatus::Active => ("good", "check", "In use"),
            EsimStatus::Depleted => ("caution", "warning", "Used up"),
            EsimStatus::Expired => ("bad", "stop", "Ended"),
            EsimStatus::Cancelled => ("bad", "stop", "Given back"),
        };
        let left_days = |expires: Time| {
            (expires > now).then(|| match expires.day() - now.day() {
                0 => "less than a day".to_string(),
                left => days(left),
            })
        };
        let is_over = matches!(status, EsimStatus::Expired | EsimStatus::Cancelled);
        // An eSIM may be over before its time.
        let ends = usage.expires_at.filter(|expires| !is_over || *expires <= now);
        UsageShown {
            left_gb: gigabytes(left),
            used_gb: gigabytes(usage.used_mb),
            total_gb: gigabytes(usage.total_mb),
            said: format!("{} of {} GB left", gigabytes(left), gigabytes(usage.total_mb)),
            is_new: status == EsimStatus::New,
            kind,
            icon,
            word,
            ends: ends.map(|expires| (left_days(expires), Moment::of(expires))),
            lasts: (!is_over).then(|| days(order.duration_days)),
            as_of: Moment::of(usage.as_of),
            stale: report.stale,
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

pub async fn page(
    _: Anyone,
    state: State,
    Segment(token): Segment,
    headers: HeaderMap,
    query: Query,
) -> Answer {
    let app = &state.app;
    match install::open(app, &token).await? {
        Install::BeingPrepared(order) => {
            let order_no = app.numbers.of_order(&order).unwrap_or_default();
            let (plan_name, version) = (order.plan_name.as_str(), shown::of_esim(&order).version);
            let page = PreparingPage { plan_name, order_no: &order_no, token: &token, version };
            html::page(&state, StatusCode::OK, &page)
        }
        Install::Ready { order, activation } => {
            let device = Device::of(&query, &headers);
            let report = install::usage(app, &order).await;
            let usage = report.as_ref().map(|report| UsageShown::new(&order, report, app.now()));
            let is_used = usage.as_ref().is_some_and(|usage| !usage.is_new);
            let more = match report.filter(|_| is_used) {
                Some(report) => install::more(app, &order, &report.usage).await?,
                None => None,
            };
            let template = InstallPage {
                plan_name: &order.plan_name,
                order_no: &app.numbers.of_order(&order).unwrap_or_default(),
                esim: activation.map(|activation| EsimShown::new(app, &order.id, activation, device)),
                is_used,
                more: more.map(|more| match more {
                    More::Data(path) => (path, "Add data"),
                    More::Plan(path) => (path, "Buy another plan"),
                }),
                iccid: order.esim.as_ref().map(|esim| esim.iccid.as_str()),
                usage,
                version: shown::of_esim(&order).version,
            };
            html::page(&state, StatusCode::OK, &template)
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
        Install::Ready { activation, .. } => {
            let activation = activation.ok_or(Refusal::CodeForgotten)?;
            Some(qr::encode(&activation.lpa_string())?)
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_says_what_it_runs_on() {
        for (agent, device) in [
            ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) Safari/604.1", Device::Iphone),
            ("Mozilla/5.0 (iPad; CPU OS 17_4 like Mac OS X)", Device::Iphone),
            ("Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/120 Mobile", Device::Android),
            ("Mozilla/5.0 (X11; Linux x86_64) Chrome/120", Device::Computer),
            ("", Device::Computer),
        ] {
            assert_eq!(Device::of_agent(agent), device, "{agent}");
        }
    }
}
