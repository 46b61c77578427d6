//! `/sandbox/parts`: every part that pages are composed of, in all its states, with the markup that makes it. The markup is
//! read out of the page's own template and the icons out of `parts.html`, so what is shown is what there is.

use askama::Template;
use axum::http::StatusCode;

use super::ways::{Way, Ways};
use crate::domain::palette::Tone;
use crate::error::Result;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::chart::{Chart, Point};
use crate::http::kit::html::page;
use crate::http::kit::site;
use crate::http::kit::{State, qr};

const PARTS: &str = include_str!("../../../templates/parts.html");
const SHOWN: &str = include_str!("../../../templates/sandbox_parts.html");
const ADDRESS: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

#[derive(Template)]
#[template(path = "sandbox_parts.html")]
struct PartsPage {
    icons: Vec<Icon>,
    colours: Vec<Tone>,
    ways: Vec<Ways>,
    as_of: &'static str,
    /// The amount to pay, with the digits behind its cents, and one that has none.
    amounts: [(String, String); 2],
    address: &'static str,
    groups: Vec<String>,
    qr: String,
    steps: [Vec<(&'static str, &'static str)>; 3],
    charts: [Chart; 3],
}

struct Icon {
    name: &'static str,
}

impl PartsPage {
    /// What stands between the marks of a part in the template.
    fn markup(&self, part: &str) -> &'static str {
        let from = format!("{{# part {part} #}}\n");
        let rest = SHOWN.split_once(&from).map_or("", |(_, rest)| rest);
        rest.split("{# end #}").next().unwrap_or_default().trim_end()
    }
}

pub async fn all(_: Anyone, state: State) -> Answer {
    page(&state, StatusCode::OK, &shown(&state)?)
}

fn shown(state: &State) -> Result<PartsPage> {
    let steps = [("done", "Pay"), ("done", "Seen"), ("now", "Confirmed"), ("", "eSIM")];
    let all_done = steps.map(|(_, name)| ("done", name));
    let stopped = [("done", "Pay"), ("done", "Seen"), ("stopped", "Confirmed"), ("", "eSIM")];
    Ok(PartsPage {
        icons: icons().collect(),
        colours: site::tones(&state.app.settings.brand),
        ways: vec![way("Base", "0.01", &["USDC", "USDT"]), way("TRON", "2.00", &["USDT"])],
        as_of: "2026-11-01",
        amounts: [("1.48".into(), "6184".into()), ("250.00".into(), String::new())],
        address: ADDRESS,
        groups: super::pay::groups_of_four(ADDRESS),
        qr: qr::svg(&qr::encode(ADDRESS)?),
        steps: [steps.to_vec(), all_done.to_vec(), stopped.to_vec()],
        charts: charts(),
    })
}

/// The names that the part `icon` knows.
fn icons() -> impl Iterator<Item = Icon> {
    let named = PARTS.lines().filter_map(|line| line.strip_prefix("{% when \"")?.split('"').next());
    named.map(|name| Icon { name })
}

fn way(network: &'static str, fee: &str, tokens: &[&'static str]) -> Ways {
    let token = |token: &&'static str| Way {
        value: format!("{token} {network}"),
        token,
        checked: network == "Base" && *token == "USDC",
    };
    Ways { network, fee: fee.into(), time: "10 s".into(), tokens: tokens.iter().map(token).collect() }
}

fn charts() -> [Chart; 3] {
    let day = |day: usize| format!("2026-01-{:02}", day + 1);
    let orders = [3, 5, 0, 8, 13, 21, 17, 9, 12, 14, 25, 30, 22, 18];
    let point = |(at, orders): (usize, i64), factor: i64, unit: &str| {
        let value = orders * factor;
        Point {
            label: day(at),
            value,
            said: if unit.is_empty() { value.to_string() } else { format!("{value}.00 {unit}") },
        }
    };
    let points =
        |factor, unit| orders.into_iter().enumerate().map(|each| point(each, factor, unit)).collect();
    [
        Chart::bars("Orders per day", ("Day", "Orders"), points(1, "")),
        Chart::line("Spend per day", ("Day", "Spend"), points(4, "USD")),
        Chart::bars("Orders per day, of a new account", ("Day", "Orders"), Vec::new()),
    ]
}
