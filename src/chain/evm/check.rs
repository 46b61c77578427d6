//! Whether a node is on the right chain and the contracts there are the tokens that the settings say. A wrong answer
//! here means that every other answer would be about somebody else's money.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::{Evm, LATEST, wire};
use crate::chain::rpc::{Provider, RpcError};
use crate::domain::network::Currency;

const DECIMALS: [u8; 4] = [0x31, 0x3c, 0xe5, 0x67];
const SYMBOL: [u8; 4] = [0x95, 0xd8, 0x9b, 0x41];

impl Evm {
    /// Checks the node before its first use, and again until the check succeeds.
    pub(super) async fn verify(&self, node: &Provider) -> Result<(), RpcError> {
        if self.verified[node.index].load(Ordering::Relaxed) { Ok(()) } else { self.check_node(node).await }
    }

    pub(super) async fn check_node(&self, node: &Provider) -> Result<(), RpcError> {
        let checked = self.is_right(node).await;
        self.verified[node.index].store(checked.is_ok(), Ordering::Relaxed);
        checked
    }

    async fn is_right(&self, node: &Provider) -> Result<(), RpcError> {
        let mut calls = vec![("eth_chainId", json!([]))];
        for token in &self.tokens {
            calls.push(self.view(token.currency, &DECIMALS, LATEST));
            calls.push(self.view(token.currency, &SYMBOL, LATEST));
        }
        // Whether the contracts answer does not matter on another chain, so the chain id is read first.
        let mut answers = node.call(&calls).await?.into_iter();
        let id = answers.next().unwrap_or_else(|| Err(RpcError::Unreadable("no answer".into())))?;
        let id = serde_json::from_str(id.get()).ok().and_then(wire::quantity);
        let wanted = self.network.chain_id();
        if id.and_then(|id| u64::try_from(id).ok()) != Some(wanted) {
            let found = id.map_or("an unreadable one".to_string(), |id| id.to_string());
            return Err(RpcError::Foreign(format!("is on the wrong chain: {found} instead of {wanted}")));
        }
        let answers = answers.collect::<Result<Vec<_>, _>>()?;
        for (token, answers) in self.tokens.iter().zip(answers.chunks(2)) {
            let currency = token.currency;
            let wrong = |what: String| {
                Err(RpcError::Foreign(format!("shows no {} there: {what}", currency.as_str())))
            };
            let mut six = [0; 32];
            six[31] = 6;
            if wire::word(answers[0].get()) != Some(six) {
                return wrong("decimals() is not 6".into());
            }
            let Some(symbol) = wire::symbol(answers[1].get()) else {
                return wrong("symbol() cannot be read".into());
            };
            if !is_symbol_of(currency, &symbol) {
                let shown: String = symbol.chars().filter(|c| !c.is_control()).take(16).collect();
                return wrong(format!("symbol() is {shown:?}"));
            }
        }
        Ok(())
    }
}

/// Bridged and renamed tokens keep "USD" in their symbol (`USD₮0`); swapped contracts are found here.
fn is_symbol_of(currency: Currency, symbol: &str) -> bool {
    let others = match currency {
        Currency::Usdt => ["USDC"].as_slice(),
        Currency::Usdc => &["USDT", "USD₮"],
    };
    symbol.contains("USD") && !others.iter().any(|other| symbol.contains(other))
}
