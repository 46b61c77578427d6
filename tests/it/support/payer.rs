//! Somebody who pays by signature: signs what an offer asks for, as an x402 client does, or something else.

use alloy_primitives::hex;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k256::ecdsa::SigningKey;
use serde_json::{Value, json};
use simgate::chain::address;
use simgate::clock::Clock;
use simgate::domain::network::AddressKind;
use simgate::x402::authorization::{Domain, Permission, address_of};

pub struct Payer {
    key: SigningKey,
    pub address: String,
}

/// What is put into a signature, before it is signed.
#[derive(Clone)]
pub struct Wish {
    pub accepted: Value,
    pub domain: Domain,
    pub permission: Permission,
}

impl Payer {
    /// The same number is the same payer.
    pub fn new(number: u8) -> Payer {
        let key = SigningKey::from_slice(&[number; 32]).unwrap();
        let bytes = address_of(key.verifying_key());
        Payer { key, address: address::text(AddressKind::Evm, &bytes) }
    }

    /// What an offer asks for, valid from now on for as long as it says. Every nonce is used once.
    pub fn wish(&self, offer: &Value, nonce: u64) -> Wish {
        let text = |value: &Value| value.as_str().unwrap().to_string();
        let bytes = |text: &str| address::bytes(AddressKind::Evm, text).unwrap();
        let domain = Domain {
            name: text(&offer["extra"]["name"]),
            version: text(&offer["extra"]["version"]),
            chain_id: text(&offer["network"]).strip_prefix("eip155:").unwrap().parse().unwrap(),
            contract: bytes(&text(&offer["asset"])),
        };
        let now = Clock::default().now().micros().unsigned_abs() / 1_000_000;
        let mut word = [0x40; 32];
        word[..8].copy_from_slice(&nonce.to_be_bytes());
        let permission = Permission {
            from: bytes(&self.address),
            to: bytes(&text(&offer["payTo"])),
            value: text(&offer["amount"]).parse().unwrap(),
            valid_after: 0,
            valid_before: now + offer["maxTimeoutSeconds"].as_u64().unwrap(),
            nonce: word,
        };
        Wish { accepted: offer.clone(), domain, permission }
    }

    /// A `PAYMENT-SIGNATURE` header.
    pub fn sign(&self, wish: &Wish) -> String {
        let hash = wish.permission.hash(&wish.domain);
        let (signature, id) = self.key.sign_prehash_recoverable(&hash).unwrap();
        let signature = format!("0x{}{:02x}", hex::encode(signature.to_bytes()), 27 + id.to_byte());
        let Permission { from, to, value, valid_after, valid_before, nonce } = &wish.permission;
        let payment = json!({
            "x402Version": 2,
            "accepted": wish.accepted,
            "payload": {
                "signature": signature,
                "authorization": {
                    "from": address::text(AddressKind::Evm, from),
                    "to": address::text(AddressKind::Evm, to),
                    "value": value.to_string(),
                    "validAfter": valid_after.to_string(),
                    "validBefore": valid_before.to_string(),
                    "nonce": hex::encode_prefixed(nonce),
                },
            },
        });
        STANDARD.encode(payment.to_string())
    }

    /// Signs what an offer asks for.
    pub fn pay(&self, offer: &Value, nonce: u64) -> String {
        self.sign(&self.wish(offer, nonce))
    }
}

/// What one of our headers holds.
pub fn decoded(header: &str) -> Value {
    serde_json::from_slice(&STANDARD.decode(header).unwrap()).unwrap()
}
