//! `/help/devices`: whether a phone takes an eSIM, by its name. The articles on devices say it, so an operator's own
//! article counts; `domain::device` reads them.

use std::sync::Arc;

use askama::Template;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use form_urlencoded::Serializer;

use super::wanted_plan;
use crate::domain::device::{Answer as Told, Devices, Verdict};
use crate::domain::plan::Plan;
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
    /// What the visitor is about to buy.
    plan: Option<Arc<Plan>>,
}

impl DevicesPage<'_> {
    fn plan_code(&self) -> &str {
        self.plan.as_ref().map_or("", |plan| &plan.code)
    }

    fn takes_all(&self) -> bool {
        matches!(&self.told, Some(Told::Listed { verdict: Verdict::All, .. }))
    }

    /// The answer to another name.
    fn path_of(&self, name: &str) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("q", name);
        query.extend_pairs(self.plan.as_ref().map(|plan| ("plan", &plan.code)));
        format!("/help/devices?{}", query.finish())
    }
}

/// `?q=NAME&plan=CODE`.
pub async fn show(_: Anyone, state: State, RawQuery(raw): RawQuery) -> Answer {
    let articles: Vec<&Article> = state.app.knowledge.about(FOLDER).collect();
    let query = Query::parse(raw.as_deref());
    let device = visible(&query.typed("q"), MOST_CHARS);
    let devices = || Devices::read(articles.iter().map(|article| article.text.as_str()));
    let told = (!device.is_empty()).then(|| devices().find(&device));
    let plan = wanted_plan(&state.app, &query).ok();
    let template = DevicesPage { device: &device, told, articles, plan };
    match raw {
        None => public_page(&state, &template),
        Some(_) => page(&state, StatusCode::OK, &template),
    }
}
