//! A user's wallet.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::Bearer;
use crate::http::kit::wire::Money;
use crate::ops::accounts;

/// A user's wallet.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Wallet)]
pub struct WalletView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "ann@example.com")]
    pub email: String,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// What can be spent now.
    pub balance_usd: Money,
    /// Charged for orders that the supplier has not delivered yet.
    pub held_usd: Money,
    /// ACTIVE or SUSPENDED: a suspended account can read, but not buy.
    #[schema(example = "ACTIVE")]
    pub status: &'static str,
}

/// Wallet
///
/// What the wallet holds. Refunds, second payments and top-ups by link come here.
#[utoipa::path(get, path = "/api/agentic/wallet", operation_id = "getWallet", tag = "wallet",
    responses((status = 200, description = "The wallet", body = WalletView)))]
pub async fn wallet(bearer: Bearer, state: State) -> Answer {
    let balance = accounts::balance(&state.app, bearer.account).await?;
    let view = WalletView {
        success: true,
        email: bearer.email.to_string(),
        currency: "USD",
        balance_usd: Money(balance.available),
        held_usd: Money(balance.held),
        status: if balance.suspended { "SUSPENDED" } else { "ACTIVE" },
    };
    uncached(json(StatusCode::OK, &view))
}
