//! `transferWithAuthorization` of EIP-3009: the hash that a payer signs (EIP-712), who signed it, and the calls that
//! a token understands. Only signatures of plain keys are accepted; a contract's signature (EIP-1271, EIP-6492) is
//! refused, since only the contract's own code could check it.

use alloy_primitives::{Address, hex, keccak256};
use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};

use crate::domain::authorization::Reason;

/// `keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")`
const DOMAIN_TYPE: [u8; 32] = hex!("8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f");
/// `keccak256("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256
/// validBefore,bytes32 nonce)")`
const TRANSFER_TYPE: [u8; 32] = hex!("7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267");
/// `transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)`
const TRANSFER_CALL: [u8; 4] = hex!("e3ee160e");
/// `authorizationState(address,bytes32)`
const STATE_CALL: [u8; 4] = hex!("e94a0102");
pub const NAME_CALL: [u8; 4] = hex!("06fdde03");
pub const VERSION_CALL: [u8; 4] = hex!("54fd4d50");
pub const SEPARATOR_CALL: [u8; 4] = hex!("3644e515");

type Word = [u8; 32];

/// Where a signature counts: one token on one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    pub name: String,
    pub version: String,
    pub chain_id: u64,
    pub contract: [u8; 20],
}

impl Domain {
    pub fn separator(&self) -> Word {
        digest(&[
            DOMAIN_TYPE,
            keccak256(&self.name).0,
            keccak256(&self.version).0,
            number(self.chain_id),
            address(&self.contract),
        ])
    }
}

/// What the payer allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    pub from: [u8; 20],
    pub to: [u8; 20],
    pub value: u64,
    /// Seconds since 1970.
    pub valid_after: u64,
    pub valid_before: u64,
    pub nonce: Word,
}

impl Permission {
    fn words(&self) -> [Word; 6] {
        [
            address(&self.from),
            address(&self.to),
            number(self.value),
            number(self.valid_after),
            number(self.valid_before),
            self.nonce,
        ]
    }

    /// The hash that is signed.
    pub fn hash(&self, domain: &Domain) -> Word {
        let [from, to, value, after, before, nonce] = self.words();
        let message = digest(&[TRANSFER_TYPE, from, to, value, after, before, nonce]);
        let mut signed = [0; 66];
        signed[..2].copy_from_slice(&[0x19, 0x01]);
        signed[2..34].copy_from_slice(&domain.separator());
        signed[34..].copy_from_slice(&message);
        keccak256(signed).0
    }

    /// The call that moves the money; its sender cannot move it elsewhere.
    pub fn transfer_call(&self, seal: &Seal) -> Vec<u8> {
        let mut call = TRANSFER_CALL.to_vec();
        call.extend(self.words().as_flattened());
        call.extend([number(seal.v.into()), seal.r, seal.s].as_flattened());
        call
    }
}

/// The call that asks whether a payer's nonce was used.
pub fn state_call(from: &[u8; 20], nonce: &Word) -> Vec<u8> {
    let mut call = STATE_CALL.to_vec();
    call.extend([address(from), *nonce].as_flattened());
    call
}

/// A signature in the one form that tokens take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    pub r: Word,
    pub s: Word,
    /// 27 or 28.
    pub v: u8,
}

impl Seal {
    /// Reads `0x` and 65 bytes with a low s; anything else is no signature of a plain key.
    pub fn parse(text: &str) -> Result<Seal, Reason> {
        let mut bytes = [0; 65];
        let digits = text.strip_prefix("0x").ok_or(Reason::Signature)?;
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| Reason::Signature)?;
        let mut seal = Seal { r: [0; 32], s: [0; 32], v: bytes[64] };
        seal.r.copy_from_slice(&bytes[..32]);
        seal.s.copy_from_slice(&bytes[32..64]);
        seal.recoverable().map(|_| seal)
    }

    pub fn text(&self) -> String {
        format!("0x{}{}{:02x}", hex::encode(self.r), hex::encode(self.s), self.v)
    }

    fn recoverable(&self) -> Result<(Signature, RecoveryId), Reason> {
        let id = self.v.checked_sub(27).filter(|id| *id < 2).and_then(RecoveryId::from_byte);
        let signature = Signature::from_scalars(self.r, self.s).ok();
        // Each signature has a twin with a high s, which tokens refuse.
        let signature = signature.filter(|signature| signature.normalize_s().is_none());
        signature.zip(id).ok_or(Reason::Signature)
    }

    /// The address of the key that made it.
    pub fn signer(&self, hash: &Word) -> Option<[u8; 20]> {
        let (signature, id) = self.recoverable().ok()?;
        let key = VerifyingKey::recover_from_prehash(hash, &signature, id).ok()?;
        Some(address_of(&key))
    }
}

/// The address of a public key.
pub fn address_of(key: &VerifyingKey) -> [u8; 20] {
    Address::from_raw_public_key(&key.to_encoded_point(false).as_bytes()[1..]).into_array()
}

fn digest(words: &[Word]) -> Word {
    keccak256(words.as_flattened()).0
}

fn number(value: u64) -> Word {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&value.to_be_bytes());
    word
}

fn address(value: &[u8; 20]) -> Word {
    let mut word = [0; 32];
    word[12..].copy_from_slice(value);
    word
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn usdc_on_base() -> Domain {
        Domain {
            name: "USD Coin".into(),
            version: "2".into(),
            chain_id: 8_453,
            contract: hex!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
        }
    }

    /// Signed by viem.
    fn signed() -> (Permission, Seal) {
        let permission = Permission {
            from: hex!("70997970C51812dc3A010C7d01b50e0d17dc79C8"),
            to: hex!("3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
            value: 781_234,
            valid_after: 0,
            valid_before: 1_794_733_367,
            nonce: hex!("28000c56204ee324cb900b080a4b5e1dba14c7d4eb1d54b215f3089e3fdc0dd3"),
        };
        let seal = Seal::parse(
            "0xbbc6800c3a498e4ba63b886c956862fa30efd460ce341e40ba5ba594283fb69f\
             3078a70da4e7ba220023304e498c0e96a3669a21c6db3dc64da5cb37b727adb71b",
        );
        (permission, seal.unwrap())
    }

    #[test]
    fn separators_are_those_of_the_real_tokens() {
        let base = hex!("02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f");
        assert_eq!(usdc_on_base().separator(), base);
        let polygon = Domain {
            chain_id: 137,
            contract: hex!("3c499c542cEF5E3811e1192ce70d8cC03d5c3359"),
            ..usdc_on_base()
        };
        assert!(hex::encode(polygon.separator()).starts_with("caa2ce1a"));
    }

    #[test]
    fn the_signer_is_found_and_no_change_goes_unseen() {
        let (permission, seal) = signed();
        let domain = usdc_on_base();
        assert_eq!(seal.signer(&permission.hash(&domain)), Some(permission.from));
        let changes: [fn(&mut Permission, &mut Domain); 8] = [
            |p, _| p.to[0] ^= 1,
            |p, _| p.value += 1,
            |p, _| p.valid_after += 1,
            |p, _| p.valid_before += 1,
            |p, _| p.nonce[31] ^= 1,
            |_, d| d.name = "USDC".into(),
            |_, d| d.version = "1".into(),
            |_, d| d.chain_id = 137,
        ];
        for change in changes {
            let (mut other, mut elsewhere) = (permission.clone(), domain.clone());
            change(&mut other, &mut elsewhere);
            assert_ne!(seal.signer(&other.hash(&elsewhere)), Some(permission.from));
        }
    }

    #[test]
    fn only_one_form_of_a_signature_is_taken() {
        let (permission, seal) = signed();
        assert_eq!(Seal::parse(&seal.text()), Ok(seal));
        // The twin with a high s: n - s, and the other v.
        let order = hex!("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
        let order = alloy_primitives::U256::from_be_bytes(order);
        let s = (order - alloy_primitives::U256::from_be_bytes(seal.s)).to_be_bytes();
        let twin = Seal { s, v: if seal.v == 27 { 28 } else { 27 }, ..seal };
        let text = seal.text();
        let wrong = [
            twin.text(),
            Seal { v: 0, ..seal }.text(),
            Seal { v: 29, ..seal }.text(),
            Seal { r: [0; 32], ..seal }.text(),
            Seal { s: [0; 32], ..seal }.text(),
            text[2..].to_string(),
            text[..text.len() - 2].to_string(),
            format!("{text}00"),
            format!("0x{}", "6492".repeat(200)),
            String::new(),
        ];
        for wrong in wrong {
            assert_eq!(Seal::parse(&wrong), Err(Reason::Signature), "{wrong}");
        }
        assert_eq!(twin.signer(&permission.hash(&usdc_on_base())), None);
    }

    #[test]
    fn calls_are_those_that_viem_makes() {
        let permission = Permission {
            valid_before: 1_794_733_344,
            nonce: hex!("d0f1afd21be88f9b62eeae25ec458b445f3714184298ac2bd191dc05cea631c2"),
            ..signed().0
        };
        let seal = Seal {
            r: hex!("67184fec3e5edc32e6fca8c3a1a3d2e5e5d09cb2b5800230e75878e49e4cb28b"),
            s: hex!("2a91bfff51d4a1ad755abb88c39978fe4a6c89559f5698c8c9fb8864f63cc5eb"),
            v: 27,
        };
        assert_eq!(hex::encode(permission.transfer_call(&seal)), TRANSFER_CALL_OF_VIEM);
        let state = hex::encode(state_call(&permission.from, &permission.nonce));
        assert_eq!(
            state,
            "e94a010200000000000000000000000070997970c51812dc3a010c7d01b50e0d17dc79c8\
             d0f1afd21be88f9b62eeae25ec458b445f3714184298ac2bd191dc05cea631c2"
        );
    }

    pub const TRANSFER_CALL_OF_VIEM: &str = "e3ee160e\
        00000000000000000000000070997970c51812dc3a010c7d01b50e0d17dc79c8\
        0000000000000000000000003c44cdddb6a900fa2b585dd299e03d12fa4293bc\
        00000000000000000000000000000000000000000000000000000000000bebb2\
        0000000000000000000000000000000000000000000000000000000000000000\
        000000000000000000000000000000000000000000000000000000006af97520\
        d0f1afd21be88f9b62eeae25ec458b445f3714184298ac2bd191dc05cea631c2\
        000000000000000000000000000000000000000000000000000000000000001b\
        67184fec3e5edc32e6fca8c3a1a3d2e5e5d09cb2b5800230e75878e49e4cb28b\
        2a91bfff51d4a1ad755abb88c39978fe4a6c89559f5698c8c9fb8864f63cc5eb";
}
