//! `/help/devices`: whether a phone takes an eSIM, by its name. The articles on devices say it, so an operator's own
//! article counts; `domain::device` reads them.

use askama::Template;
use axum::extract::RawQuery;
use axum::http::StatusCode;

use crate::domain::device::{Answer as Told, Devices, Verdict};
use crate::domain::text::visible;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::Query;
use crate::http::kit::html::{page, public_page};
use crate::knowledge::Article;

/// As many as the field takes.
const MOST_CHARS: usize = 80;
/// The folder of the articles on devices.
const FOLDER: &str = "devices";

#[derive(Template)]
#[template(path = "devices.html")]
struct DevicesPage<'a> {
    device: &'a str,
    told: Option<Told>,
    articles: Vec<&'a Article>,
}

/// `?q=NAME`.
pub async fn show(_: Anyone, state: State, RawQuery(raw): RawQuery) -> Answer {
    let articles: Vec<&Article> = state.app.knowledge.about(FOLDER).collect();
    let device = visible(&Query::parse(raw.as_deref()).typed("q"), MOST_CHARS);
    let devices = || Devices::read(articles.iter().map(|article| article.text.as_str()));
    let told = (!device.is_empty()).then(|| devices().find(&device));
    let template = DevicesPage { device: &device, told, articles };
    match raw {
        None => public_page(&state, &template),
        Some(_) => page(&state, StatusCode::OK, &template),
    }
}
