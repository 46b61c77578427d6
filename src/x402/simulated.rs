//! The sandbox's token: it takes the same signatures as a real one and moves the money on a simulated chain, where
//! every payer has enough of it. Its contract exists on no chain, so its signatures are worth nothing anywhere else.

use std::sync::Arc;

use alloy_primitives::keccak256;

use super::authorization::{Domain, Permission, Seal};
use super::settler::CURRENCY;
use crate::chain::Trouble;
use crate::chain::sim::{Signed, SimChain};
use crate::domain::authorization::Reason;
use crate::domain::money::Usd;
use crate::domain::network::Network;
use crate::domain::time::Time;

pub struct SimToken {
    pub chain: Arc<SimChain>,
    pub domain: Arc<Domain>,
}

/// The contract's address is a hash of a text, so nobody can have the key or the code that leads to it. Clients are
/// told of it by docs/agents.md.
fn contract(network: Network) -> [u8; 20] {
    let hash = keccak256(format!("simgate sandbox USDC on {}", network.as_str()));
    *hash.last_chunk().expect("20 of 32 bytes")
}

impl SimToken {
    pub fn new(network: Network, chain: Arc<SimChain>) -> SimToken {
        let domain = Domain {
            name: "Sandbox USDC".into(),
            version: "1".into(),
            chain_id: network.chain_id(),
            contract: contract(network),
        };
        SimToken { chain, domain: Arc::new(domain) }
    }

    /// The transfer that a signature allows, or why the token would refuse it in the next block.
    pub async fn check(
        &self,
        permission: &Permission,
        seal: &Seal,
    ) -> Result<Result<Signed, Reason>, Trouble> {
        if seal.signer(&permission.hash(&self.domain)) != Some(permission.from) {
            return Ok(Err(Reason::Signature));
        }
        let head = self.chain.head().await.map_err(Trouble::new)?;
        if self.is_used(permission, head).await? {
            return Ok(Err(Reason::Used));
        }
        Ok(signed(permission).ok_or(Reason::Funds))
    }

    pub async fn is_used(&self, permission: &Permission, by: i64) -> Result<bool, Trouble> {
        self.chain.has_used(&permission.from, &permission.nonce, by).await
    }

    /// Makes a checked transfer in the next block, unless it was made before. False when that block is not in its time.
    pub async fn transfer(&self, signed: Signed) -> Result<bool, Trouble> {
        self.chain.pay_signed(signed).await.map_err(Trouble::new)
    }

    /// The transaction that makes this transfer, or has made it.
    pub fn transaction_of(&self, permission: &Permission) -> String {
        self.chain.transaction_of(&permission.from, &permission.nonce)
    }
}

/// As the chain takes it; `None` for an amount that nobody has, or a time that never comes.
fn signed(permission: &Permission) -> Option<Signed> {
    let time = |seconds: u64| i64::try_from(seconds).ok()?.checked_mul(1_000_000).map(Time::from_micros);
    Some(Signed {
        payer: permission.from,
        nonce: permission.nonce,
        recipient: permission.to,
        currency: CURRENCY,
        amount: Usd::from_micros(i64::try_from(permission.value).ok()?),
        valid_after: time(permission.valid_after)?,
        valid_before: time(permission.valid_before)?,
    })
}
