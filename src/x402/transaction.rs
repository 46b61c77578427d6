//! A transaction of type 2 (EIP-1559) that calls a contract: how it is written (RLP), signed and named. It is the only
//! kind that we sign with a gas key, and small enough to need no library.

use alloy_primitives::keccak256;
use k256::ecdsa::SigningKey;

const TYPE: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub chain_id: u64,
    pub nonce: u64,
    /// For the block's producer, in wei for each unit of gas.
    pub tip: u64,
    /// The most that a unit of gas may cost, tip included.
    pub max_fee: u64,
    pub gas: u64,
    pub to: [u8; 20],
    pub data: Vec<u8>,
}

/// Ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTransaction {
    pub raw: Vec<u8>,
    pub hash: [u8; 32],
}

impl Transaction {
    /// The same transaction and key give the same bytes: signing again is not sending again.
    pub fn sign(&self, key: &SigningKey) -> Result<SignedTransaction, k256::ecdsa::Error> {
        let (signature, recovery) = key.sign_prehash_recoverable(&keccak256(envelope(&self.fields())).0)?;
        let mut fields = self.fields();
        number(&mut fields, recovery.to_byte().into());
        let (r, s) = signature.split_bytes();
        scalar(&mut fields, &r);
        scalar(&mut fields, &s);
        let raw = envelope(&fields);
        Ok(SignedTransaction { hash: keccak256(&raw).0, raw })
    }

    fn fields(&self) -> Vec<u8> {
        let mut fields = Vec::with_capacity(self.data.len() + 160);
        for value in [self.chain_id, self.nonce, self.tip, self.max_fee, self.gas] {
            number(&mut fields, value);
        }
        string(&mut fields, &self.to);
        // It carries no coins.
        number(&mut fields, 0);
        string(&mut fields, &self.data);
        // No access list.
        header(&mut fields, 0xc0, 0);
        fields
    }
}

/// The fields as a list, behind the type.
fn envelope(fields: &[u8]) -> Vec<u8> {
    let mut whole = vec![TYPE];
    header(&mut whole, 0xc0, fields.len());
    whole.extend(fields);
    whole
}

fn number(out: &mut Vec<u8>, value: u64) {
    scalar(out, &value.to_be_bytes());
}

/// Numbers have no leading zeros; zero is empty.
fn scalar(out: &mut Vec<u8>, bytes: &[u8]) {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    string(out, &bytes[zeros..]);
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    if let [byte @ 0..0x80] = bytes {
        out.push(*byte);
        return;
    }
    header(out, 0x80, bytes.len());
    out.extend(bytes);
}

/// Writes the length of what follows; `kind` is 0x80 for a string and 0xc0 for a list.
fn header(out: &mut Vec<u8>, kind: u8, length: usize) {
    if length < 56 {
        out.push(kind + length as u8);
        return;
    }
    let bytes = length.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    out.push(kind + 55 + (bytes.len() - zeros) as u8);
    out.extend(&bytes[zeros..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x402::authorization::tests::TRANSFER_CALL_OF_VIEM;
    use alloy_primitives::hex;

    /// What viem makes of the same key and fields.
    #[test]
    fn transactions_are_those_that_viem_signs() {
        let key = hex!("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");
        let key = SigningKey::from_slice(&key).unwrap();
        let transaction = |nonce, data| Transaction {
            chain_id: 8_453,
            nonce,
            tip: 1_000_000,
            max_fee: 30_000_000_000,
            gas: 100_000,
            to: hex!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
            data,
        };
        let long = transaction(0, hex::decode(TRANSFER_CALL_OF_VIEM).unwrap()).sign(&key).unwrap();
        assert_eq!(
            hex::encode(long.hash),
            "ed0d198c89a810bf5a843193fb594313c9ce9361fe70c24958c2a88d9112ad5e"
        );
        let short = transaction(300, Vec::new()).sign(&key).unwrap();
        assert_eq!(
            hex::encode(&short.raw),
            "02f86f82210582012c830f42408506fc23ac00830186a094833589fcd6edb6e08f4c7c32d4f71b54bda029138080c080a0\
             aa296beee42fb76839de39d5f6202de712c1b74069cc8fcaf0a8eca150fecf33a02624122deb8fcca23f77e232a8b5a9d37\
             433fd3dadf07c1a5e3f82ff4d099919"
        );
        assert_eq!(
            hex::encode(short.hash),
            "6aeb86510401f09e0336d5f1380542f3add054de2cd1a0480ff772805d4890bf"
        );
    }
}
