//! Logging in by a mailed code, and tokens.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::login::{AGENT_NAME_CHARS, CODE_MS, Door, MAILS, agent_name};
use crate::domain::token::TokenKind;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::{Anyone, Bearer, Client};
use crate::http::kit::fields::{CODE_CHARS, Fields, JsonBody, Segment, token_id};
use crate::http::kit::wire::{Money, iso};
use crate::ops::login::{self, Ask};
use crate::ops::tokens;

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct OtpRequest {
    /// Where the code is mailed to.
    #[schema(format = "email", max_length = 254, example = "ann@example.com")]
    email: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OtpSent)]
pub struct OtpSentView {
    #[schema(example = true)]
    success: bool,
    message: &'static str,
    /// How long a new code is good. While a code is good it is mailed again, which does not prolong it.
    #[schema(example = 600)]
    expires_in_seconds: i64,
    /// How soon another mail may be asked for.
    #[schema(example = 60)]
    resend_after_seconds: i64,
}

/// Ask for a code
///
/// Mails a one-time code to an address: 6 digits, good for 10 minutes and one use. The answer is the same whether the
/// address has an account or not; the account is made when the code is verified. An address gets one mail a minute, and
/// three in a row; after that, one every seven and a half minutes. After too many wrong guesses, at the address or by
/// your client, a code has twenty letters instead of six digits. A sandbox mails nothing: its codes are at
/// `/sandbox/outbox?email=…`.
#[utoipa::path(post, path = "/api/agentic/auth/request-otp", operation_id = "requestOtp", tag = "login",
    request_body = OtpRequest, security(()),
    responses((status = 200, description = "A code is on its way", body = OtpSentView)))]
pub async fn request_otp(_: Anyone, state: State, Client(client): Client, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    let email = fields.required_email("email");
    let email = fields.finish_with(email)?;
    let asked = login::ask(&state.app, Ask { door: Door::Rest, email, client }).await?;
    if let Some(refusal) = asked.refusal(state.app.now()) {
        return Err(refusal.into());
    }
    uncached(json(
        StatusCode::OK,
        &OtpSentView {
            success: true,
            message: "If this address can get mail, a code is on its way to it.",
            expires_in_seconds: CODE_MS / 1_000,
            resend_after_seconds: MAILS.apart_ms / 1_000,
        },
    ))
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct OtpVerification {
    #[schema(format = "email", max_length = 254, example = "ann@example.com")]
    email: String,
    /// The code from the mail; spaces, hyphens and case do not count.
    #[schema(pattern = "^[0-9A-Za-z -]{1,64}$", example = "123456")]
    otp: String,
    /// What the token is for. Its owner sees it in mails and lists.
    #[schema(max_length = 64, example = "Trip planner", default = "agent")]
    agent_name: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TokenIssued)]
pub struct TokenIssuedView {
    #[schema(example = true)]
    success: bool,
    /// Shown this once. Send it as `Authorization: Bearer …`.
    #[schema(pattern = "^sgp_[0-9A-Za-z]{34}$")]
    token: String,
    #[schema(example = "Bearer")]
    token_type: &'static str,
    #[schema(example = "ann@example.com")]
    email: String,
    #[schema(example = "Trip planner")]
    agent_name: String,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    created_at: String,
}

/// Verify a code
///
/// Exchanges a code for a personal access token, which never expires and can be revoked. A mail tells the owner of it.
#[utoipa::path(post, path = "/api/agentic/auth/verify-otp", operation_id = "verifyOtp", tag = "login",
    request_body = OtpVerification, security(()),
    responses((status = 200, description = "A new token", body = TokenIssuedView)))]
pub async fn verify_otp(_: Anyone, state: State, Client(client): Client, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    let email = fields.required_email("email");
    let code = fields.required_text("otp", CODE_CHARS);
    let name = fields.free_text("agentName", AGENT_NAME_CHARS);
    let email = fields.finish_with(email)?;
    let answer = login::CodeAnswer {
        door: Door::Rest,
        email,
        code,
        client,
        agent_name: agent_name(name.as_deref()),
        kind: TokenKind::Personal,
    };
    let made = login::verify(&state.app, answer).await?;
    uncached(json(
        StatusCode::OK,
        &TokenIssuedView {
            success: true,
            token: made.token,
            token_type: "Bearer",
            email: made.email.to_string(),
            agent_name: made.agent_name,
            created_at: iso(made.created_at),
        },
    ))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Token)]
pub struct TokenView {
    #[schema(example = "tok_…")]
    id: String,
    /// The first 8 characters, the only part that is ever shown again.
    #[schema(example = "sgp_Ab12")]
    prefix: String,
    #[schema(example = "Trip planner")]
    agent_name: String,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    created_at: String,
    /// To the minute.
    #[schema(required = true, format = DateTime)]
    last_used_at: Option<String>,
    /// What it may spend in a day (UTC); null: no limit.
    #[schema(required = true)]
    daily_limit_usd: Option<Money>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Tokens)]
pub struct TokensView {
    #[schema(example = true)]
    success: bool,
    tokens: Vec<TokenView>,
}

/// List tokens
///
/// The personal access tokens of this account that are not revoked, newest first.
#[utoipa::path(get, path = "/api/agentic/auth/tokens", operation_id = "listTokens", tag = "login",
    responses((status = 200, description = "The tokens", body = TokensView)))]
pub async fn list_tokens(bearer: Bearer, state: State) -> Answer {
    bearer.require_personal()?;
    let view = |token: tokens::Token| TokenView {
        id: token.id.to_string(),
        prefix: token.prefix,
        agent_name: token.agent_name,
        created_at: iso(token.created_at),
        last_used_at: token.last_used_at.map(iso),
        daily_limit_usd: token.daily_limit.map(Money),
    };
    let found = tokens::list(&state.app, bearer.account).await?;
    uncached(json(
        StatusCode::OK,
        &TokensView { success: true, tokens: found.into_iter().map(view).collect() },
    ))
}

#[derive(Serialize, ToSchema)]
#[schema(as = TokenRevoked)]
pub struct TokenRevokedView {
    #[schema(example = true)]
    success: bool,
    id: String,
}

/// Revoke a token
///
/// Ends a token of this account, even the one that this request uses. It stops working everywhere within a second;
/// purchases that were begun go on.
#[utoipa::path(delete, path = "/api/agentic/auth/tokens/{id}", operation_id = "revokeToken", tag = "login",
    params(("id" = String, Path, description = "The token's id, from the list", example = "tok_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "It is revoked", body = TokenRevokedView)))]
pub async fn revoke_token(bearer: Bearer, state: State, Segment(id): Segment) -> Answer {
    bearer.require_personal()?;
    tokens::revoke(&state.app, bearer.account, &token_id(&id)?).await?;
    uncached(json(StatusCode::OK, &TokenRevokedView { success: true, id }))
}
