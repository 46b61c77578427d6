//! Logging a customer in by a mailed code. A code that was asked for elsewhere works here too: all doors for customers
//! share their logins.

use serde::Serialize;
use utoipa::ToSchema;

use super::{ASKS_OUTSIDE, Hints, Tool};
use crate::domain::login::{Door, agent_name};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::token::TokenKind;
use crate::error::{Error, Result};
use crate::http::kit::fields::{CODE_CHARS, EMAIL_CHARS};
use crate::http::kit::wire::iso;
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, text};
use crate::ops::login::{self, Ask, Asked, CodeAnswer};
use crate::vault::SHORT_DIGITS;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SentView {
    /// A mail with the code is on its way.
    sent: bool,
    /// A code was sent a short while ago; while `expiresInSeconds` is above 0 it is still good.
    already_sent: bool,
    /// How long the code is still good.
    #[schema(minimum = 0)]
    expires_in_seconds: i64,
    /// What to do now.
    message: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionView {
    /// Pass it as `token` to the other tools. Do not show it to anybody.
    token: String,
    email: String,
    /// The token ends then; log in again.
    #[schema(format = DateTime)]
    expires_at: String,
}

pub fn send_code() -> Tool {
    Tool {
        name: "send_agent_otp",
        title: "Mail a login code",
        description: "Mails a 6-digit one-time code to the customer's email address: the first step of logging in, which \
            every tool about the wallet, orders and coupons of a customer needs. Use it once, with an address the \
            customer gave you, then ask the customer for the code and call verify_agent_otp. Not needed while you hold \
            a token that works, nor for searching plans or making checkout links. The code is good for 10 minutes; \
            calling again sends the same code, at most once a minute (then alreadySent is true) and three times in a row. \
            The answer is the same whether the address has an account or not.",
        hints: ASKS_OUTSIDE,
        input: schema::input([("email", text("The customer's email address.", EMAIL_CHARS))], &["email"]),
        output: schema::results([schema::of::<SentView>()]),
        run: |call| Box::pin(send(call)),
    }
}

async fn send(call: Call) -> Result<Output> {
    let mut fields = call.fields()?;
    let email = fields.required_email("email");
    let email = fields.finish_with(email)?;
    let ask = Ask { door: Door::Tools, email, client: call.client };
    let asked = login::ask(call.app(), ask).await?;
    let now = call.app().now();
    let left = |until: Time| (until.micros() - now.micros() + 999_999).max(0) / 1_000_000;
    let view = match asked {
        Asked::Sent { until } => SentView {
            sent: true,
            already_sent: false,
            expires_in_seconds: left(until),
            message: "If this address can get mail, a code is on its way. Ask the customer for it, then call verify_agent_otp.",
        },
        Asked::TooSoon { until: Some(until), .. } | Asked::Enough { until: Some(until), .. } => SentView {
            sent: false,
            already_sent: true,
            expires_in_seconds: left(until),
            message: "A code was mailed a short while ago and is still good. Ask the customer for it.",
        },
        // The last code was used or guessed at, or is not for this client to try.
        Asked::TooSoon { until: None, .. } => SentView {
            sent: false,
            already_sent: true,
            expires_in_seconds: 0,
            message: "A code was mailed less than a minute ago, and is used, was tried too often or is not for you. \
                      Wait a minute, then call again for a new one.",
        },
        Asked::Enough { until: None, retry_after_secs } => {
            return Err(Refusal::RateLimited { retry_after_secs }.into());
        }
    };
    Output::of(&view)
}

pub fn verify_code() -> Tool {
    Tool {
        name: "verify_agent_otp",
        title: "Log in with the code",
        description: "Exchanges the code that send_agent_otp mailed for a session token, which proves who the customer is. \
            Use it once the customer has told you the code. Pass the token as `token` to the other tools; it works for 24 \
            hours and may spend from the customer's wallet up to a daily limit, so keep it out of what you show. A code \
            works once, and five wrong tries end it: do not guess, and call send_agent_otp again if it fails.",
        hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: false },
        input: schema::input(
            [
                ("email", text("The address the code was mailed to.", EMAIL_CHARS)),
                ("code", text("The 6 digits from the mail (20 letters after many wrong tries).", CODE_CHARS)),
            ],
            &["email", "code"],
        ),
        output: schema::results([schema::of::<SessionView>()]),
        run: |call| Box::pin(verify(call)),
    }
}

async fn verify(call: Call) -> Result<Output> {
    let mut fields = call.fields()?;
    let email = fields.required_email("email");
    let code = padded(fields.required_text("code", CODE_CHARS));
    let email = fields.finish_with(email)?;
    let answer = CodeAnswer {
        door: Door::Tools,
        email,
        code,
        client: call.client,
        agent_name: agent_name(call.client_name.as_deref()),
        kind: TokenKind::Session,
    };
    let made = login::verify(call.app(), answer).await?;
    let expires_at = made.expires_at.ok_or_else(|| Error::fault("a session without an end"))?;
    Output::of(&SessionView { token: made.token, email: made.email.to_string(), expires_at: iso(expires_at) })
}

/// Digits that came as a number have lost their leading zeros.
fn padded(code: String) -> String {
    let is_number = code.bytes().all(|b| b.is_ascii_digit());
    if is_number { format!("{code:0>SHORT_DIGITS$}") } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_zeros_come_back() {
        for (sent, meant) in [
            ("892337", "892337"),
            ("42", "000042"),
            ("0", "000000"),
            ("1234567", "1234567"),
            ("ABCD EFGH", "ABCD EFGH"),
        ] {
            assert_eq!(padded(sent.into()), meant);
        }
    }
}
