//! The headers of x402 version 2: base64 of JSON. We write them in one exact form. What we read may have its keys in
//! any order, and keys that we do not know, but every value that we do know must be right.

use alloy_primitives::hex;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::authorization::{Permission, Seal};
use crate::chain::address;
use crate::domain::authorization::Reason;
use crate::domain::network::{AddressKind, Network};

pub const VERSION: u32 = 2;
pub const SCHEME: &str = "exact";
/// Names of the headers, as HTTP libraries want them.
pub const REQUIRED: &str = "payment-required";
pub const SIGNATURE: &str = "payment-signature";
pub const RESPONSE: &str = "payment-response";
/// The longest header that is read; a payment takes some 1.5 kB.
const LARGEST: usize = 16 << 10;

/// What we ask for.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRequired {
    #[serde(rename = "x402Version")]
    pub version: u32,
    pub error: String,
    pub resource: Resource,
    pub accepts: Vec<Requirements>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    pub url: String,
    pub description: String,
    pub mime_type: &'static str,
}

/// One way to pay; a payment repeats the one that it follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirements {
    pub scheme: String,
    /// CAIP-2: `eip155:8453`.
    pub network: String,
    pub asset: String,
    /// In the token's smallest unit.
    pub amount: String,
    pub pay_to: String,
    pub max_timeout_seconds: u64,
    pub extra: Extra,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Extra {
    /// With `version`, the token's EIP-712 domain.
    pub name: String,
    pub version: String,
    /// Settled before anything is delivered.
    pub payment_flow: String,
    pub order_ref: String,
}

/// What became of a payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettlementResponse {
    pub success: bool,
    /// Its hash; empty when there is none.
    pub transaction: String,
    pub network: String,
    pub payer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<&'static str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPayment {
    #[serde(rename = "x402Version")]
    version: u32,
    accepted: serde_json::Value,
    payload: serde_json::Value,
}

#[derive(Deserialize)]
struct RawPayload {
    signature: String,
    authorization: RawAuthorization,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAuthorization {
    from: String,
    to: String,
    value: String,
    valid_after: String,
    valid_before: String,
    nonce: String,
}

/// A payment as its header brings it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub accepted: Requirements,
    pub permission: Permission,
    pub seal: Seal,
}

/// What is wrong with a header: it cannot be read, or it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    Unreadable(&'static str),
    Refused(Reason),
}

impl From<Reason> for Flaw {
    fn from(reason: Reason) -> Flaw {
        Flaw::Refused(reason)
    }
}

/// A value for one of our headers.
pub fn encode(value: &impl Serialize) -> String {
    let json = serde_json::to_vec(value).expect("plain data becomes JSON");
    STANDARD.encode(json)
}

/// Reads a `PAYMENT-SIGNATURE` header.
pub fn decode(header: &[u8]) -> Result<Payment, Flaw> {
    if header.len() > LARGEST {
        return Err(Flaw::Unreadable("is too large"));
    }
    let json = STANDARD.decode(header).map_err(|_| Flaw::Unreadable("must be base64"))?;
    let raw: RawPayment = serde_json::from_slice(&json)
        .map_err(|_| Flaw::Unreadable("must hold a payment of x402 version 2"))?;
    if raw.version != VERSION {
        return Err(Reason::Version.into());
    }
    // Scheme and network come first, so that a client that followed a foreign offer gets that error, and not one about
    // a field that it lacks.
    if raw.accepted["scheme"] != SCHEME {
        return Err(Reason::Scheme.into());
    }
    if raw.accepted["network"].as_str().and_then(parse_network).is_none() {
        return Err(Reason::Network.into());
    }
    let accepted = serde_json::from_value(raw.accepted).map_err(|_| Reason::Requirements)?;
    let payload: RawPayload = serde_json::from_value(raw.payload).map_err(|_| Reason::Payload)?;
    let seal = Seal::parse(&payload.signature)?;
    let RawAuthorization { from, to, value, valid_after, valid_before, nonce } = payload.authorization;
    let permission = Permission {
        from: address::bytes(AddressKind::Evm, &from).ok_or(Reason::Payload)?,
        to: address::bytes(AddressKind::Evm, &to).ok_or(Reason::Recipient)?,
        value: number(&value).ok_or(Reason::Value)?,
        valid_after: number(&valid_after).ok_or(Reason::ValidAfter)?,
        valid_before: number(&valid_before).ok_or(Reason::ValidBefore)?,
        nonce: word(&nonce).ok_or(Reason::Payload)?,
    };
    Ok(Payment { accepted, permission, seal })
}

impl Payment {
    pub fn network(&self) -> Option<Network> {
        parse_network(&self.accepted.network)
    }
}

/// CAIP-2, for the networks on which payers can sign.
pub fn network_id(network: Network) -> String {
    format!("eip155:{}", network.chain_id())
}

fn parse_network(text: &str) -> Option<Network> {
    let evm = Network::ALL.into_iter().filter(|network| network.kind() == AddressKind::Evm);
    evm.into_iter().find(|network| network_id(*network) == text)
}

/// Reads digits and nothing else; a number that does not fit is no amount and no time that we could accept.
fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

fn word(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text.strip_prefix("0x")?, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Headers that the real clients sent: `@x402/fetch` 2.27.0 and `mppx` 0.11.0.
    const FETCH: &str = include_str!("samples/fetch.b64");
    const MPPX: &str = include_str!("samples/mppx.b64");

    fn asked() -> Requirements {
        Requirements {
            scheme: "exact".into(),
            network: "eip155:8453".into(),
            asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".into(),
            amount: "781234".into(),
            pay_to: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC".into(),
            max_timeout_seconds: 300,
            extra: Extra {
                name: "USD Coin".into(),
                version: "2".into(),
                payment_flow: "upfront".into(),
                order_ref: "SG0123456789".into(),
            },
        }
    }

    #[test]
    fn real_clients_are_understood() {
        let domain = super::super::authorization::Domain {
            name: "USD Coin".into(),
            version: "2".into(),
            chain_id: 8_453,
            contract: hex!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
        };
        for (header, valid_after) in [(FETCH, 0), (MPPX, 1_794_732_467)] {
            let payment = decode(header.as_bytes()).unwrap();
            assert_eq!(payment.accepted, asked());
            assert_eq!(payment.network(), Some(Network::Base));
            let Permission { value, valid_before, .. } = payment.permission;
            assert_eq!((value, valid_before), (781_234, 1_794_733_367));
            assert_eq!(payment.permission.valid_after, valid_after);
            let signer = payment.seal.signer(&payment.permission.hash(&domain));
            assert_eq!(signer, Some(hex!("70997970C51812dc3A010C7d01b50e0d17dc79C8")));
        }
    }

    #[test]
    fn what_we_ask_for_has_the_fields_of_the_protocol() {
        let required = PaymentRequired {
            version: VERSION,
            error: "PAYMENT-SIGNATURE header is required".into(),
            resource: Resource {
                url: "http://h/x".into(),
                description: "d".into(),
                mime_type: "application/json",
            },
            accepts: vec![asked()],
        };
        let decoded: Value = serde_json::from_slice(&STANDARD.decode(encode(&required)).unwrap()).unwrap();
        assert_eq!(decoded["x402Version"], 2);
        assert_eq!(decoded["resource"]["mimeType"], "application/json");
        assert_eq!(decoded["accepts"][0]["payTo"], "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");
        assert_eq!(decoded["accepts"][0]["maxTimeoutSeconds"], 300);
        assert_eq!(decoded["accepts"][0]["extra"]["orderRef"], "SG0123456789");
        assert_eq!(decoded["accepts"][0]["extra"]["paymentFlow"], "upfront");
    }

    fn changed(pointer: &str, value: Value) -> Result<Payment, Flaw> {
        let mut payment: Value = serde_json::from_slice(&STANDARD.decode(FETCH).unwrap()).unwrap();
        *payment.pointer_mut(pointer).expect(pointer) = value;
        decode(encode(&payment).as_bytes())
    }

    #[test]
    fn what_is_wrong_is_named() {
        let long = format!("1{}", "0".repeat(40));
        for (pointer, value, reason) in [
            ("/x402Version", json!(1), Reason::Version),
            ("/accepted/scheme", json!("upto"), Reason::Scheme),
            ("/accepted/network", json!("eip155:1"), Reason::Network),
            ("/accepted/network", json!("tron:0x2b6653dc"), Reason::Network),
            ("/accepted/extra/orderRef", json!(7), Reason::Requirements),
            ("/accepted/amount", json!(781_234), Reason::Requirements),
            ("/payload/signature", json!("0x12"), Reason::Signature),
            ("/payload/authorization/from", json!("0x12"), Reason::Payload),
            ("/payload/authorization/to", json!("TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6"), Reason::Recipient),
            ("/payload/authorization/value", json!("-1"), Reason::Value),
            ("/payload/authorization/value", json!(781_234), Reason::Payload),
            ("/payload/authorization/validAfter", json!("+5"), Reason::ValidAfter),
            ("/payload/authorization/validBefore", json!(long), Reason::ValidBefore),
            ("/payload/authorization/nonce", json!("0x1234"), Reason::Payload),
            ("/payload", json!({"transaction": "AQ=="}), Reason::Payload),
        ] {
            assert_eq!(changed(pointer, value).unwrap_err(), Flaw::Refused(reason), "{pointer}");
        }
    }

    #[test]
    fn what_is_no_payment_is_unreadable() {
        let large = "A".repeat(LARGEST + 1);
        let twice = STANDARD.encode(r#"{"x402Version":2,"x402Version":2,"accepted":{},"payload":{}}"#);
        let deep = STANDARD.encode("[".repeat(8_000));
        for header in ["", "%%%", "AAAA", "e30=", "bnVsbA==", &large, &twice, &deep] {
            let flaw = decode(header.as_bytes()).unwrap_err();
            assert!(matches!(flaw, Flaw::Unreadable(_)), "{flaw:?}");
        }
        // A byte less, anywhere, is noticed.
        for cut in 0..FETCH.len() {
            let mut header = FETCH.to_string();
            header.remove(cut);
            assert_ne!(decode(header.as_bytes()).ok(), decode(FETCH.as_bytes()).ok());
        }
    }
}
