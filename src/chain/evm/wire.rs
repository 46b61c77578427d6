//! Reads what nodes write, and as little of it as possible: hex in JSON, blocks by three fields, logs without a copy.
//! Blocks of java-tron have fields that no Ethereum node would write; nothing here looks at them.

use std::fmt;

use alloy_primitives::hex;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use crate::chain::{Token, Trouble, Watched, address};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency};
use crate::domain::time::Time;
use crate::domain::transfer::{self, Block};

/// `keccak256("Transfer(address,address,uint256)")`
pub const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// `keccak256("AuthorizationUsed(address,bytes32)")`
const AUTHORIZATION_USED: &str = "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5";
/// A billion dollars: nobody deposits that much, so a log that says so is wrong or a trick.
const LARGEST_AMOUNT: u128 = 1_000_000_000_000_000;
/// Timestamps from here on are milliseconds: as seconds, they would lie after the year 5138.
const MILLISECONDS_FROM: i64 = 100_000_000_000;

pub type Hash = [u8; 32];

/// Hex of exactly `N` bytes, with or without `0x`.
pub fn fixed<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// A number as nodes write it: `0x1b4`.
pub fn quantity(text: &str) -> Option<i64> {
    i64::from_str_radix(text.strip_prefix("0x")?, 16).ok().filter(|number| *number >= 0)
}

/// The number of a block; far below the largest integer, so that counting on from it cannot overflow.
pub fn height(text: &str) -> Option<i64> {
    quantity(text).filter(|number| *number < 1 << 48)
}

pub fn as_quantity(number: i64) -> String {
    format!("{number:#x}")
}

/// A hash as nodes want it, from either of our spellings.
pub fn as_hash(text: &str) -> String {
    format!("0x{}", text.strip_prefix("0x").unwrap_or(text))
}

/// A block or transaction hash in our spelling.
pub fn spell(kind: AddressKind, hash: &Hash) -> String {
    let digits = hex::encode(hash);
    match kind {
        AddressKind::Evm => format!("0x{digits}"),
        AddressKind::Tron => digits,
    }
}

/// The twenty bytes at the end of a topic; the rest must be zero.
fn topic_address(topic: &str) -> Option<[u8; 20]> {
    let digits = topic.strip_prefix("0x").unwrap_or(topic);
    let (zeros, digits) = digits.split_at_checked(24)?;
    if zeros != "000000000000000000000000" {
        return None;
    }
    fixed(digits)
}

pub fn padded(address: &[u8; 20]) -> String {
    format!("0x{:0>64}", hex::encode(address))
}

/// The contracts whose logs count.
#[derive(Clone, Debug)]
pub struct Contracts(Vec<([u8; 20], Currency)>);

impl Contracts {
    pub fn new(kind: AddressKind, tokens: &[Token]) -> Result<Contracts, Trouble> {
        let read = |token: &Token| {
            let contract = address::bytes(kind, &token.contract).ok_or_else(|| {
                Trouble::new(format_args!("{} has no readable contract", token.currency.as_str()))
            })?;
            Ok((contract, token.currency))
        };
        tokens.iter().map(read).collect::<Result<_, Trouble>>().map(Contracts)
    }

    pub fn currency(&self, contract: &[u8; 20]) -> Option<Currency> {
        self.0.iter().find(|(known, _)| known == contract).map(|(_, currency)| *currency)
    }

    pub fn contract(&self, currency: Currency) -> Option<&[u8; 20]> {
        self.0.iter().find(|(_, known)| *known == currency).map(|(contract, _)| contract)
    }

    pub fn as_hex(&self) -> Vec<String> {
        self.0.iter().map(|(contract, _)| format!("0x{}", hex::encode(contract))).collect()
    }
}

#[derive(Deserialize)]
struct RawBlock<'a> {
    number: &'a str,
    hash: &'a str,
    timestamp: &'a str,
}

/// `Ok(None)` when the node does not have the block.
pub fn block(kind: AddressKind, raw: &str) -> Result<Option<Block>, String> {
    let found: Option<RawBlock> = serde_json::from_str(raw).map_err(|error| format!("a block: {error}"))?;
    let Some(found) = found else { return Ok(None) };
    let number = height(found.number).ok_or("a block without a number")?;
    let hash = transfer::parse_tx_hash(kind, &as_hash(found.hash)).ok_or("a block without a hash")?;
    let stamp = quantity(found.timestamp).ok_or("a block without a time")?;
    let millis = if stamp >= MILLISECONDS_FROM { stamp } else { stamp * 1_000 };
    let micros = millis.checked_mul(1_000).ok_or("a block without a time")?;
    Ok(Some(Block { number, hash, time: Time::from_micros(micros) }))
}

/// A movement of a token that we take, as its log describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movement {
    pub currency: Currency,
    pub sender: [u8; 20],
    pub recipient: [u8; 20],
    pub value: [u8; 32],
}

impl Movement {
    /// In micro-dollars, since our tokens have six decimals; `None` when it is too large to believe.
    pub fn amount(&self) -> Option<Usd> {
        amount(self.value)
    }
}

pub fn amount(value: [u8; 32]) -> Option<Usd> {
    let (high, low) = value.split_at(16);
    let value = u128::from_be_bytes(low.try_into().ok()?);
    if high.iter().any(|byte| *byte != 0) || value > LARGEST_AMOUNT {
        return None;
    }
    i64::try_from(value).ok().map(Usd::from_micros)
}

/// Topics without an allocation; a log has at most four.
#[derive(Default)]
struct Topics<'a>([&'a str; 4], usize);

impl<'de: 'a, 'a> Deserialize<'de> for Topics<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Topics<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("at most four topics")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Topics<'de>, A::Error> {
                let mut topics = Topics::default();
                while let Some(topic) = seq.next_element::<&'de str>()? {
                    let place =
                        topics.0.get_mut(topics.1).ok_or_else(|| de::Error::invalid_length(5, &self))?;
                    *place = topic;
                    topics.1 += 1;
                }
                Ok(topics)
            }
        }
        deserializer.deserialize_seq(Reading)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLog<'a> {
    address: &'a str,
    #[serde(borrow)]
    topics: Topics<'a>,
    data: &'a str,
    #[serde(default)]
    block_number: &'a str,
    #[serde(default)]
    block_hash: &'a str,
    #[serde(default)]
    transaction_hash: &'a str,
    #[serde(default)]
    removed: bool,
}

impl RawLog<'_> {
    /// `None` unless one of our tokens moved to an address we care about. Almost all logs end at the look-up of the
    /// recipient, so it comes before the rest is decoded.
    fn movement(&self, contracts: &Contracts, cares: impl Fn(&[u8; 20]) -> bool) -> Option<Movement> {
        let [event, from, to, _] = self.topics.0;
        if self.topics.1 != 3 || self.removed || !event.eq_ignore_ascii_case(TRANSFER) {
            return None;
        }
        let recipient = topic_address(to).filter(cares)?;
        let currency = contracts.currency(&fixed(self.address)?)?;
        let value = fixed(self.data).filter(|value| *value != [0; 32])?;
        Some(Movement { currency, sender: topic_address(from)?, recipient, value })
    }

    /// The token, the payer and the nonce of the authorization that this log reports as used.
    fn authorization(&self) -> Option<([u8; 20], [u8; 20], Hash)> {
        let [event, payer, nonce, _] = self.topics.0;
        if self.topics.1 != 3 || !event.eq_ignore_ascii_case(AUTHORIZATION_USED) {
            return None;
        }
        Some((fixed(self.address)?, topic_address(payer)?, fixed(nonce)?))
    }
}

/// A log that concerns us, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spotted {
    pub tx_hash: Hash,
    pub block_hash: Hash,
    pub block_number: i64,
    pub movement: Movement,
}

/// Reads the answer to `eth_getLogs` in one pass and keeps only what moved to a watched address.
pub fn parse_logs(raw: &str, contracts: &Contracts, watched: &Watched) -> Result<Vec<Spotted>, String> {
    struct Sieve<'a>(&'a Contracts, &'a Watched);
    impl<'de> Visitor<'de> for Sieve<'_> {
        type Value = Vec<Spotted>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list of logs")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Spotted>, A::Error> {
            let mut found = Vec::new();
            while let Some(log) = seq.next_element::<RawLog<'de>>()? {
                let Some(movement) = log.movement(self.0, |recipient| self.1.contains(recipient)) else {
                    continue;
                };
                let place = || {
                    Some((fixed(log.transaction_hash)?, fixed(log.block_hash)?, height(log.block_number)?))
                };
                let (tx_hash, block_hash, block_number) =
                    place().ok_or_else(|| de::Error::custom("a log that is in no block"))?;
                found.push(Spotted { tx_hash, block_hash, block_number, movement });
            }
            Ok(found)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(raw);
    let found = reader.deserialize_seq(Sieve(contracts, watched));
    found.and_then(|found| reader.end().map(|()| found)).map_err(|error| format!("logs: {error}"))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawReceipt<'a> {
    transaction_hash: &'a str,
    block_hash: &'a str,
    block_number: &'a str,
    transaction_index: &'a str,
    status: &'a str,
    #[serde(borrow)]
    logs: Vec<RawLog<'a>>,
}

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub tx_hash: Hash,
    pub block_hash: Hash,
    pub block_number: i64,
    pub index: i64,
    pub succeeded: bool,
    /// Movements of our tokens, each with its position among all logs of the receipt.
    pub movements: Vec<(i64, Movement)>,
    /// The positions of movements that a payer's authorization made, with its nonce.
    pub authorized: Vec<(i64, Hash)>,
}

impl Receipt {
    /// The movements to watched addresses, as logs show them.
    pub fn spotted(&self, watched: &Watched) -> Vec<Spotted> {
        let (tx_hash, block_hash, block_number) = (self.tx_hash, self.block_hash, self.block_number);
        let ours = self
            .movements
            .iter()
            .filter(|(_, movement)| self.succeeded && watched.contains(&movement.recipient));
        ours.map(|(_, movement)| Spotted { tx_hash, block_hash, block_number, movement: movement.clone() })
            .collect()
    }

    pub fn nonce_of(&self, position: i64) -> Option<String> {
        let found = self.authorized.iter().find(|(authorized, _)| *authorized == position);
        found.map(|(_, nonce)| hex::encode_prefixed(nonce))
    }
}

/// `Ok(None)` for a transaction that is in no block.
pub fn receipt(raw: &str, contracts: &Contracts) -> Result<Option<Receipt>, String> {
    let found: Option<RawReceipt> =
        serde_json::from_str(raw).map_err(|error| format!("a receipt: {error}"))?;
    found.map(|found| read_receipt(&found, contracts)).transpose()
}

/// The receipts of a block.
pub fn receipts(raw: &str, contracts: &Contracts) -> Result<Vec<Receipt>, String> {
    let found: Vec<RawReceipt> = serde_json::from_str(raw).map_err(|error| format!("receipts: {error}"))?;
    found.iter().map(|found| read_receipt(found, contracts)).collect()
}

fn read_receipt(found: &RawReceipt, contracts: &Contracts) -> Result<Receipt, String> {
    let read = || {
        let movements = found.logs.iter().enumerate();
        let movements: Vec<(i64, Movement)> = movements
            .filter_map(|(position, log)| Some((position as i64, log.movement(contracts, |_| true)?)))
            .collect();
        // A token logs the use of an authorization right before it moves the payer's money.
        let authorized = |(position, movement): &(i64, Movement)| {
            let before = found.logs.get(usize::try_from(*position).ok()?.checked_sub(1)?)?;
            let (token, payer, nonce) = before.authorization()?;
            let same = contracts.currency(&token) == Some(movement.currency) && payer == movement.sender;
            same.then_some((*position, nonce))
        };
        let authorized = movements.iter().filter_map(authorized).collect();
        Some(Receipt {
            tx_hash: fixed(found.transaction_hash)?,
            block_hash: fixed(found.block_hash)?,
            block_number: height(found.block_number)?,
            index: quantity(found.transaction_index)?,
            succeeded: quantity(found.status)? == 1,
            movements,
            authorized,
        })
    };
    read().ok_or_else(|| "a receipt with fields that are not hex".to_string())
}

/// The hashes of a block's transactions.
pub fn transactions(raw: &str) -> Result<Vec<String>, String> {
    #[derive(Deserialize)]
    struct Listed {
        transactions: Vec<String>,
    }
    let listed: Listed = serde_json::from_str(raw).map_err(|error| format!("a block: {error}"))?;
    Ok(listed.transactions)
}

/// What `decimals()` and `balanceOf()` answer.
pub fn word(raw: &str) -> Option<[u8; 32]> {
    fixed(serde_json::from_str::<&str>(raw).ok()?)
}

/// What `symbol()` answers: an ABI string or, in older tokens, 32 bytes filled up with zeros.
pub fn symbol(raw: &str) -> Option<String> {
    let bytes = hex::decode(serde_json::from_str::<&str>(raw).ok()?).ok()?;
    match bytes.len() {
        32 => String::from_utf8(bytes.split(|byte| *byte == 0).next()?.to_vec()).ok(),
        _ => abi_text(&bytes),
    }
}

/// An ABI string that is the whole answer: its offset, its length, and its bytes.
pub fn abi_text(bytes: &[u8]) -> Option<String> {
    let (place, rest) = bytes.split_at_checked(32)?;
    let (length, text) = rest.split_at_checked(32)?;
    let small = |word: &[u8]| word[..31].iter().all(|byte| *byte == 0).then_some(usize::from(word[31]));
    if small(place)? != 32 {
        return None;
    }
    String::from_utf8(text.get(..small(length)?)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_from_what_contracts_return() {
        let mut bytes = vec![0; 96];
        (bytes[31], bytes[63]) = (32, 8);
        bytes[64..72].copy_from_slice(b"USD Coin");
        assert_eq!(abi_text(&bytes).as_deref(), Some("USD Coin"));
        bytes[63] = 33;
        assert_eq!(abi_text(&bytes), None);
        bytes[31] = 31;
        assert_eq!(abi_text(&bytes), None);
        assert_eq!(abi_text(b"USD"), None);
    }
}
