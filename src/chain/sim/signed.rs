//! Transfers that a payer signed and somebody else brings onto the simulated chain. Which transaction uses a payer's
//! nonce follows from the two, so there is at most one, however often and from wherever it is sent.

use ring::digest::{SHA256, digest};

use super::{SimChain, World, address, hex, spell_hash};
use crate::chain::Trouble;
use crate::domain::money::Usd;
use crate::domain::network::Currency;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::sim_chain::{self, Transfer};
use crate::store::tx::Tx;

/// What a payer signed. Whether the signature is good was decided before.
#[derive(Clone, Debug)]
pub struct Signed {
    pub payer: [u8; 20],
    pub nonce: [u8; 32],
    pub recipient: [u8; 20],
    pub currency: Currency,
    pub amount: Usd,
    /// It is valid in blocks whose time lies between these two.
    pub valid_after: Time,
    pub valid_before: Time,
}

impl SimChain {
    /// The transaction that uses this nonce, if one does.
    pub fn transaction_of(&self, payer: &[u8; 20], nonce: &[u8; 32]) -> String {
        let seed = [self.network.as_str().as_bytes(), payer, nonce].concat();
        spell_hash(self.network.kind(), digest(&SHA256, &seed).as_ref())
    }

    /// Moves the money in the next block, unless the nonce was used before. False when that block is not in its time.
    pub async fn pay_signed(&self, signed: Signed) -> Result<bool> {
        let block = self.next_block().await?;
        let time = self.look(move |_, world| Ok(world.block(block).time)).await?;
        if time <= signed.valid_after || signed.valid_before <= time {
            return Ok(false);
        }
        let kind = self.network.kind();
        let transfer = Transfer {
            tx_hash: self.transaction_of(&signed.payer, &signed.nonce),
            position: 0,
            currency: signed.currency,
            sender: address::text(kind, &signed.payer),
            recipient: address::text(kind, &signed.recipient),
            amount: signed.amount,
            succeeded: true,
            block,
            payment_nonce: Some(format!("0x{}", hex(&signed.nonce))),
        };
        self.publish(block, vec![transfer]).await?;
        Ok(true)
    }

    /// Whether a payer's nonce was used by this block, as its nodes say.
    pub async fn has_used(&self, payer: &[u8; 20], nonce: &[u8; 32], by: i64) -> Result<bool, Trouble> {
        let hash = self.transaction_of(payer, nonce);
        let look = move |tx: &mut Tx, world: &World| {
            let by = by.min(world.head());
            Ok(!sim_chain::of_transaction(tx, world.network, &hash, by)?.is_empty())
        };
        self.ask(look).await
    }
}
