//! What events say of a wallet.

use serde::Serialize;
use utoipa::ToSchema;

use super::{CurrencyWord, Money, NetworkWord};

/// A balance that fell below its threshold, and where to pay in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LowBalance)]
pub struct LowBalanceFacts {
    pub balance_usd: Money,
    pub low_balance_threshold: Money,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// Absent where no deposits are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub refill: Option<RefillView>,
}

/// Where to pay in without an invoice: whatever arrives there is credited.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Refill)]
pub struct RefillView {
    pub network: NetworkWord,
    pub currency: CurrencyWord,
    /// The address is yours for ever.
    #[schema(example = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94")]
    pub deposit_address: String,
    /// A link that wallets understand. It asks for what is missing to the threshold, and at least for the smallest deposit;
    /// any other amount is credited too.
    pub payment_uri: String,
}
