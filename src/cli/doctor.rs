//! `simgate doctor`: checks how things stand, line by line, and says what to do about each problem.

use super::output::{Record, Report, Table, cell};
use super::{Outcome, settings};
use crate::config::{Mode, Raw, Settings};
use crate::error::{Error, FaultKind};
use crate::ops::catalog;
use crate::ops::doctor::{self, Check, Health};
use crate::start::{self, Role};

pub async fn run(raw: &Raw, settings: Settings) -> Outcome {
    let mut checks = vec![check_settings(&settings)];
    if let Some((finding, advice)) = settings.database.weakness() {
        checks.push(Check::warn("database", finding, advice));
    }
    let mode = settings.mode.as_str();
    match start::open(settings, Role::Command).await {
        Ok(app) => {
            let found = format!(
                "{} answers, has this program's schema and was made in {mode} mode",
                settings::database(raw)
            );
            checks.push(Check::ok("database", found));
            catalog::load(&app).await?;
            checks.extend(doctor::examine(&app).await?);
            super::close(&app).await;
        }
        Err(error) => checks.push(Check::fail("database", error.to_string(), advice(&error))),
    }
    let passed = checks.iter().all(|check| check.health != Health::Fail);
    let prose: String = checks.iter().map(line).collect();
    let rows = checks.into_iter().map(|check| {
        let advice = Some(check.advice).filter(|advice| !advice.is_empty());
        [cell(check.subject), cell(check.health.as_str()), cell(check.finding), cell(advice)]
    });
    let table = Table::new(["check", "health", "finding", "advice"], rows);
    Ok(Report { record: Record::new().with("ok", passed).with("checks", table).prose(prose), passed })
}

fn line(check: &Check) -> String {
    let Check { subject, health, finding, advice } = check;
    let health = health.as_str();
    if advice.is_empty() {
        return format!("{health:4}  {subject:9} {finding}\n");
    }
    format!("{health:4}  {subject:9} {finding}\n{:16}what to do: {advice}\n", "")
}

/// The settings are valid, or we would not be here; some are valid and still unwise.
fn check_settings(settings: &Settings) -> Check {
    let own_address = format!("http://{}", settings.listen);
    if !settings.listen.ip().is_loopback() && settings.base_url == own_address {
        return Check::warn(
            "settings",
            format!("base_url is not set, so answers carry addresses that begin with {own_address}"),
            "set SIMGATE_BASE_URL to the address that partners use",
        );
    }
    let urls = [
        ("base_url is not https", &settings.base_url, "SIMGATE_BASE_URL"),
        ("checkout_url is not https: nobody can sign in", &settings.checkout_url, "SIMGATE_CHECKOUT_URL"),
    ];
    let plain = |(.., url, _): &(&str, &String, &str)| url.starts_with("http://");
    if settings.mode == Mode::Live
        && let Some((said, _, name)) = urls.into_iter().find(plain)
    {
        return Check::warn("settings", said, format!("put a TLS proxy in front and set {name}"));
    }
    Check::ok("settings", format!("valid, {} mode; `simgate config` shows them", settings.mode.as_str()))
}

fn advice(error: &Error) -> &'static str {
    match error {
        // Their text says what to do.
        Error::Fault(fault) if fault.kind == FaultKind::Settings => "",
        Error::Fault(_) | Error::Refused(_) => {
            "check SIMGATE_DATABASE_URL, and that the database is up and lets us in"
        }
    }
}
