//! Logging in by a mailed code, for a session of a day.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::login::{Door, agent_name};
use crate::domain::refusal::Refusal;
use crate::domain::token::TokenKind;
use crate::error::Error;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::{Anyone, Client};
use crate::http::kit::fields::{CODE_CHARS, Fields, UntypedJson};
use crate::http::kit::wire::iso;
use crate::ops::login::{self, Ask, Asked, CodeAnswer};

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct CodeRequest {
    /// Where the code is mailed to.
    #[schema(format = "email", max_length = 254, example = "ann@example.com")]
    email: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CodeSent)]
pub struct CodeSentView {
    #[schema(example = true)]
    success: bool,
    /// True when a mail is on its way; false when one went out a short while ago, with a code that is still good.
    sent: bool,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    expires_at: String,
    message: &'static str,
}

/// Ask for a code
///
/// Mails a one-time code: 6 digits, good for 10 minutes and one use. The answer is the same whether the address has an
/// account or not. An address gets one mail a minute, and three in a row; after that, one every seven and a half
/// minutes. Asking again while a mailed code is good is no error. A sandbox mails nothing: its codes are at
/// `/sandbox/outbox?email=…`.
#[utoipa::path(post, path = "/api/auth/otp/send", operation_id = "sendCode", tag = "login",
    request_body = CodeRequest, security(()),
    responses((status = 200, description = "A good code is in the mailbox, or on its way to it", body = CodeSentView)))]
pub async fn send(_: Anyone, state: State, Client(client): Client, UntypedJson(body): UntypedJson) -> Answer {
    let mut fields = Fields::parse(&body)?;
    let email = fields.required_email("email");
    let email = fields.finish_with(email)?;
    let (sent, until) = match login::ask(&state.app, Ask { door: Door::Rest, email, client }).await? {
        Asked::Sent { until } => (true, until),
        Asked::TooSoon { until: Some(until), .. } | Asked::Enough { until: Some(until), .. } => {
            (false, until)
        }
        Asked::TooSoon { until: None, retry_after_secs }
        | Asked::Enough { until: None, retry_after_secs } => {
            return Err(Refusal::RateLimited { retry_after_secs }.into());
        }
    };
    let message = match sent {
        true => "If this address can get mail, a code is on its way to it.",
        false => "A code was mailed a short while ago and is still good.",
    };
    uncached(json(StatusCode::OK, &CodeSentView { success: true, sent, expires_at: iso(until), message }))
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct CodeVerification {
    #[schema(format = "email", max_length = 254, example = "ann@example.com")]
    email: String,
    /// The code from the mail; spaces, hyphens and case do not count.
    #[schema(pattern = "^[0-9A-Za-z -]{1,64}$", example = "123456")]
    code: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session)]
pub struct SessionView {
    #[schema(example = true)]
    success: bool,
    /// Send it as `Authorization: Bearer`. Shown this once.
    #[schema(example = "sgs_…")]
    token: String,
    #[schema(example = "Bearer")]
    token_type: &'static str,
    #[schema(example = "ann@example.com")]
    email: String,
    /// The token ends then; log in again.
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    expires_at: String,
}

/// Log in
///
/// Exchanges a code for a session token, which is good for 24 hours. The account is made here if there is none.
#[utoipa::path(post, path = "/api/auth/otp/verify", operation_id = "verifyCode", tag = "login",
    request_body = CodeVerification, security(()),
    responses((status = 200, description = "Logged in", body = SessionView)))]
pub async fn verify(
    _: Anyone,
    state: State,
    Client(client): Client,
    UntypedJson(body): UntypedJson,
) -> Answer {
    let mut fields = Fields::parse(&body)?;
    let email = fields.required_email("email");
    let code = fields.required_text("code", CODE_CHARS);
    let email = fields.finish_with(email)?;
    let answer = CodeAnswer {
        door: Door::Rest,
        email,
        code,
        client,
        agent_name: agent_name(None),
        kind: TokenKind::Session,
    };
    let made = login::verify(&state.app, answer).await?;
    let expires_at = made.expires_at.ok_or_else(|| Error::fault("a session without an end"))?;
    uncached(json(
        StatusCode::OK,
        &SessionView {
            success: true,
            token: made.token,
            token_type: "Bearer",
            email: made.email.to_string(),
            expires_at: iso(expires_at),
        },
    ))
}
