//! All that is kept about a user, as the user gets it: nothing in it opens an eSIM or a wallet.

use serde::Serialize;

use super::Money;
use super::orders::OrderFacts;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PersonalData {
    pub exported_at: String,
    pub user_id: String,
    pub email: Option<String>,
    pub created_at: String,
    /// Whether buying is stopped.
    pub suspended: bool,
    pub balance_usd: Money,
    /// Charged for orders that are not delivered yet.
    pub held_usd: Money,
    pub orders: Vec<OrderFacts>,
    pub transactions: Vec<MovementData>,
    pub tokens: Vec<TokenData>,
    pub sessions: Vec<SessionData>,
}

/// A line of the wallet's statement.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MovementData {
    pub created_at: String,
    pub r#type: String,
    pub amount_usd: Money,
    pub balance_after_usd: Money,
    pub order_id: Option<String>,
    pub note: Option<String>,
}

/// An agent's token.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenData {
    pub id: String,
    pub prefix: String,
    pub agent_name: String,
    pub created_at: String,
    pub last_used_at: Option<String>,
    pub daily_limit_usd: Option<Money>,
    pub expires_at: Option<String>,
}

/// A browser that is signed in.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionData {
    pub created_at: String,
    pub last_seen_at: String,
    pub browser: String,
    pub network: String,
}
