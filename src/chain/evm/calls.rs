//! What it takes to bring a payer's authorization onto a chain: simulated calls of a token, the price of gas, and
//! sending a transaction that somebody else has signed. The chain holds no key and signs nothing.

use alloy_primitives::hex;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Evm, LATEST, block_call, receipt_call, wire};
use crate::chain::rpc::{Call, Provider, RpcError};
use crate::chain::{Trouble, Witness};
use crate::domain::network::Currency;

const WEI_PER_GWEI: u128 = 1_000_000_000;

/// What a contract answers to a simulated call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Called<T = Vec<u8>> {
    Returned(T),
    /// The call would fail, for the reason that the contract gives.
    Reverted(String),
}

/// What a unit of gas costs now, in wei.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    pub base: u64,
    pub tip: u64,
}

/// An address that pays for gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GasPurse {
    pub gwei: i64,
    /// How many of its transactions are in blocks: the number of the next one.
    pub nonce: i64,
}

/// What nodes answer to a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broadcast {
    /// At least one node has it, now or before.
    Taken,
    /// A transaction with its nonce is in a block already: this one, or another.
    Spent,
    /// Another transaction with its nonce waits, and this one does not pay enough more to replace it.
    Underpriced,
    Refused(String),
}

/// What a transaction cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paid {
    pub succeeded: bool,
    pub block: i64,
    /// Rounded up.
    pub gwei: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PricedBlock<'a> {
    base_fee_per_gas: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PricedReceipt<'a> {
    status: &'a str,
    block_number: &'a str,
    gas_used: &'a str,
    effective_gas_price: &'a str,
    /// Some networks charge for writing to the chain below them.
    l1_fee: Option<&'a str>,
}

impl Evm {
    /// Asks a token as `from`, in block `at` or in the newest.
    pub async fn call(
        &self,
        currency: Currency,
        data: &[u8],
        from: Option<&[u8; 20]>,
        at: Option<i64>,
        witness: Witness,
    ) -> Result<Called, Trouble> {
        let contract = self.contracts.contract(currency).map(hex::encode_prefixed);
        let mut call = json!({"to": contract, "data": hex::encode_prefixed(data)});
        if let Some(from) = from {
            call["from"] = json!(hex::encode_prefixed(from));
        }
        let block = at.map_or(LATEST.to_string(), wire::as_quantity);
        let call: Call = ("eth_call", json!([call, block]));
        match witness {
            Witness::Any => self.any(|node| called(node, &call)).await,
            Witness::Quorum => self.agreed(|node| called(node, &call)).await,
        }
    }

    /// How much gas a call of a token takes.
    pub async fn gas_for(
        &self,
        currency: Currency,
        data: &[u8],
        from: &[u8; 20],
    ) -> Result<Called<u64>, Trouble> {
        let contract = self.contracts.contract(currency).map(hex::encode_prefixed);
        let call = json!({
            "from": hex::encode_prefixed(from), "to": contract, "data": hex::encode_prefixed(data)
        });
        let call: Call = ("eth_estimateGas", json!([call]));
        // Nodes differ a little in their estimates, but not in whether the call would fail.
        let said = self.all(|node| estimated(node, &call)).await?;
        let (mut takes, mut fails) = (Vec::new(), None);
        for (_, gas) in said {
            match gas {
                Called::Returned(units) => takes.push(units),
                Called::Reverted(why) => fails = fails.or(Some(why)),
            }
        }
        match fails {
            Some(why) if takes.len() < self.quorum() => Ok(Called::Reverted(why)),
            _ => middle(takes).map(Called::Returned).ok_or_else(|| self.trouble("nobody answered")),
        }
    }

    /// The middle of what nodes say, for base and tip each.
    pub async fn fees(&self) -> Result<Fees, Trouble> {
        let said = self.all(fees_at).await?;
        let (bases, tips) = said.iter().map(|(_, fees)| (fees.base, fees.tip)).unzip();
        let fees = middle(bases).zip(middle(tips));
        fees.map(|(base, tip)| Fees { base, tip }).ok_or_else(|| self.trouble("nobody answered"))
    }

    /// The balance and the nonce that a quorum of nodes grants this address.
    pub async fn purse(&self, address: &[u8; 20]) -> Result<GasPurse, Trouble> {
        let address = hex::encode_prefixed(address);
        let calls: [Call; 2] = [
            ("eth_getBalance", json!([address, LATEST])),
            ("eth_getTransactionCount", json!([address, LATEST])),
        ];
        let said = self.all(|node| purse_at(node, &calls)).await?;
        let gwei = self.granted(said.iter().map(|(_, purse)| purse.gwei));
        let nonce = self.granted(said.iter().map(|(_, purse)| purse.nonce));
        let purse = gwei.zip(nonce).map(|(gwei, nonce)| GasPurse { gwei, nonce });
        purse.ok_or_else(|| self.trouble("nobody answered"))
    }

    /// Gives a signed transaction to every node. `Trouble` when none of them answered: it may have arrived.
    pub async fn broadcast(&self, raw: &[u8]) -> Result<Broadcast, Trouble> {
        let call: Call = ("eth_sendRawTransaction", json!([hex::encode_prefixed(raw)]));
        let mut told = self.each(|node| broadcast_at(node, &call)).await?;
        let taken = told.iter().position(|said| *said == Broadcast::Taken);
        Ok(told.swap_remove(taken.unwrap_or(0)))
    }

    /// `None` while it is in no block.
    pub async fn paid(&self, hash: &str) -> Result<Option<Paid>, Trouble> {
        let call = receipt_call(&wire::as_hash(hash));
        self.agreed(|node| paid_at(node, &call)).await
    }
}

/// The middle value, so that no single node decides unless there are only one or two.
fn middle(mut said: Vec<u64>) -> Option<u64> {
    said.sort_unstable();
    said.get(said.len() / 2).copied()
}

async fn called(node: &Provider, call: &Call) -> Result<Called, RpcError> {
    pretended(node, call, |text| hex::decode(text).ok(), "a result that is not hex").await
}

async fn estimated(node: &Provider, call: &Call) -> Result<Called<u64>, RpcError> {
    let gas = |text: &str| number(text).and_then(|gas| u64::try_from(gas).ok());
    pretended(node, call, gas, "gas that is not a number").await
}

async fn pretended<T>(
    node: &Provider,
    call: &Call,
    read: impl Fn(&str) -> Option<T>,
    unreadable: &str,
) -> Result<Called<T>, RpcError> {
    match ask_one(node, call).await {
        Ok(raw) => {
            let read = text(&raw).and_then(read);
            read.map(Called::Returned).ok_or_else(|| RpcError::Unreadable(unreadable.into()))
        }
        Err(error) => reverted(error).map(Called::Reverted),
    }
}

async fn fees_at(node: &Provider) -> Result<Fees, RpcError> {
    let calls = [block_call(LATEST), ("eth_maxPriorityFeePerGas", json!([]))];
    let answers = node.call_all(&calls).await?;
    let block: PricedBlock = serde_json::from_str(answers[0].get())
        .map_err(|_| RpcError::Unreadable("a block without a gas price".into()))?;
    let price = |text: &str| number(text).and_then(|wei| u64::try_from(wei).ok());
    let fees = price(block.base_fee_per_gas).zip(text(&answers[1]).and_then(price));
    let fees = fees.map(|(base, tip)| Fees { base, tip });
    fees.ok_or_else(|| RpcError::Unreadable("a gas price that is not a number".into()))
}

async fn purse_at(node: &Provider, calls: &[Call]) -> Result<GasPurse, RpcError> {
    let answers = node.call_all(calls).await?;
    let read = |raw: &RawValue| text(raw).and_then(number);
    let gwei = read(&answers[0]).and_then(|wei| i64::try_from(wei / WEI_PER_GWEI).ok());
    let nonce = read(&answers[1]).and_then(|nonce| i64::try_from(nonce).ok());
    let purse = gwei.zip(nonce).map(|(gwei, nonce)| GasPurse { gwei, nonce });
    purse.ok_or_else(|| RpcError::Unreadable("a balance that is not a number".into()))
}

async fn broadcast_at(node: &Provider, call: &Call) -> Result<Broadcast, RpcError> {
    match ask_one(node, call).await {
        Ok(_) => Ok(Broadcast::Taken),
        Err(RpcError::Refused(_, why) | RpcError::TooMuch(why)) => Ok(sorted(why)),
        Err(error) => Err(error),
    }
}

async fn paid_at(node: &Provider, call: &Call) -> Result<Option<Paid>, RpcError> {
    let raw = ask_one(node, call).await?;
    let receipt: Option<PricedReceipt> =
        serde_json::from_str(raw.get()).map_err(|error| RpcError::Unreadable(error.to_string()))?;
    let Some(receipt) = receipt else { return Ok(None) };
    let read = || {
        let wei = number(receipt.gas_used)?.checked_mul(number(receipt.effective_gas_price)?)?;
        let wei = wei.checked_add(receipt.l1_fee.map_or(Some(0), number)?)?;
        Some(Paid {
            succeeded: number(receipt.status)? == 1,
            block: wire::height(receipt.block_number)?,
            gwei: i64::try_from(wei.div_ceil(WEI_PER_GWEI)).ok()?,
        })
    };
    read().map(Some).ok_or_else(|| RpcError::Unreadable("a receipt with fields that are not hex".into()))
}

async fn ask_one(node: &Provider, call: &Call) -> Result<Box<RawValue>, RpcError> {
    let mut answers = node.call_all(std::slice::from_ref(call)).await?;
    answers.pop().ok_or_else(|| RpcError::Unreadable("no answer".into()))
}

fn text(raw: &RawValue) -> Option<&str> {
    serde_json::from_str(raw.get()).ok()
}

fn number(text: &str) -> Option<u128> {
    u128::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The contract's reason; any other error stays an error.
fn reverted(error: RpcError) -> Result<String, RpcError> {
    match error {
        RpcError::Refused(3, why) => Ok(why),
        RpcError::Refused(_, why) if says(&why, &["revert", "vm execution error"]) => Ok(why),
        error => Err(error),
    }
}

/// Sorts a node's refusal by its words, which differ by kind of node.
fn sorted(why: String) -> Broadcast {
    if says(&why, &["already known", "known transaction", "already imported", "alreadyknown"]) {
        Broadcast::Taken
    } else if says(&why, &["nonce too low", "nonce is too low", "oldnonce"]) {
        Broadcast::Spent
    } else if says(&why, &["underpriced", "replacement"]) {
        Broadcast::Underpriced
    } else {
        Broadcast::Refused(why)
    }
}

fn says(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}
