//! Settings of mail and of logins by mail. A sandbox without a mail server keeps its mails readable instead of
//! sending them; live mode does not start without one.

use std::path::PathBuf;

use secrecy::SecretString;

use super::{ConfigError, RateLimit, Raw, Spec, rate, spec, whole};
use crate::domain::money::Usd;
use crate::mail::{Security, Sender, SmtpSettings};

#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec("smtp_host", "", "mail server; without one a sandbox keeps its mails in /sandbox/outbox"),
    spec("smtp_port", "", "its port (default: 587 for starttls, 465 for tls, 25 for none)"),
    spec("smtp_tls", "starttls", "starttls, tls or none"),
    spec("smtp_user", "", "user name at the mail server"),
    Spec { name: "smtp_password", default: "", help: "password at the mail server", secret: true },
    spec("smtp_certificate", "", "PEM file of a certificate to trust besides the system's"),
    spec("mail_from", "", "sender of mails: codes@example.com or Name <codes@example.com>"),
    spec("otp_daily_budget", "10000", "sign-in codes mailed in a day (UTC) to anybody; then only to addresses with an account"),
    spec("token_daily_limit_usd", "500", "what a new token may spend in a day (UTC); 0: no limit"),
    spec("token_rate_limit", "50", "requests a second for each token; 0 turns limits off"),
    spec("token_rate_burst", "200", "how many requests of a token may come at once"),
];

#[derive(Clone)]
pub struct Logins {
    pub smtp: Option<SmtpSettings>,
    pub daily_budget: i64,
    pub token_daily_limit: Option<Usd>,
    pub token_limit: Option<RateLimit>,
}

impl Logins {
    pub fn check(raw: &Raw) -> Result<Logins, ConfigError> {
        let smtp = smtp(raw)?;
        let limit = raw.require("token_daily_limit_usd", "must be an amount of USD", |text| {
            Usd::parse(text).ok().filter(|limit| *limit >= Usd::ZERO)
        })?;
        Ok(Logins {
            smtp,
            daily_budget: raw.require(
                "otp_daily_budget",
                "must be a whole number from 0 to 1000000000",
                whole(0, 1_000_000_000),
            )?,
            token_daily_limit: limit.is_positive().then_some(limit),
            token_limit: rate(raw, "token_rate_limit", "token_rate_burst")?,
        })
    }
}

fn smtp(raw: &Raw) -> Result<Option<SmtpSettings>, ConfigError> {
    let security = raw.require("smtp_tls", "must be starttls, tls or none", Security::parse)?;
    let port = raw.parse("smtp_port", "must be a port from 1 to 65535", whole(1, 65_535))?;
    let from = raw.parse("mail_from", "must be an address, or Name <address>", Sender::parse)?;
    let user = raw.parse("smtp_user", "must be a user name", |text| Some(text.to_string()))?;
    let password = raw.parse("smtp_password", "must be a password", |text| Some(SecretString::from(text)))?;
    let certificate = raw.parse("smtp_certificate", "must be a path", |text| Some(PathBuf::from(text)))?;
    let host = raw.parse("smtp_host", "must be a host name or address", |text| {
        text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:[]".contains(&b)).then(|| text.to_string())
    })?;
    let Some(host) = host else {
        if user.is_some() || password.is_some() {
            raw.does_not_fit("smtp_user or smtp_password is set, but smtp_host is not");
        }
        return Ok(None);
    };
    if user.is_some() != password.is_some() {
        raw.does_not_fit("smtp_user and smtp_password go together: one of them is empty");
    }
    let login = user.zip(password);
    let Some(from) = from else {
        raw.does_not_fit("mail_from is empty, but smtp_host is set");
        return Ok(None);
    };
    let port = port.map_or(security.usual_port(), |port| port as u16);
    Ok(Some(SmtpSettings { host, port, security, login, certificate, from }))
}
