//! Addresses: how they are written, and how they follow from the operator's extended public key. Pure, and by
//! construction without spending keys: a private key is refused unread. An extended public key together with one
//! leaked child key gives the parent's private key away, so it is never shown, logged or put into an error.

use std::fmt;

use alloy_primitives::{Address, keccak256};
use bip32::{ChildNumber, ExtendedKey, Prefix, XPub};
use ring::digest::{SHA256, digest};

use crate::domain::network::AddressKind;

/// Account keys of the public test phrase "test test … junk". Everybody knows its private keys: money sent to these
/// addresses on a real chain is gone.
pub const SANDBOX_EVM_XPUB: &str = "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP";
pub const SANDBOX_TRON_XPUB: &str = "xpub6BuRy7ZmkGfP2RWhoor1kWB1w9DvrtmJbFBvnC1bQ4SB5NbCHTyQYCJSXZtxDbFyHTmC7wkU2he3nYYdpZ3Vf6qUAkXSnL6RPif4BDtDEKr";

const ACCOUNT_DEPTH: u8 = 3;
/// The first byte of every TRON address; topics and logs leave it out.
const TRON_VERSION: u8 = 0x41;

/// The key from which a deployment's addresses of one kind follow.
#[derive(Clone)]
pub struct Xpub {
    kind: AddressKind,
    fingerprint: String,
    /// `/0` below the account: addresses are its children.
    branch: XPub,
}

impl Xpub {
    pub fn parse(kind: AddressKind, text: &str) -> Result<Xpub, String> {
        let path = kind.account_path();
        // Checked first: parsing an xprv as a public key succeeds, by quietly converting it.
        if text.get(1..4) == Some("prv") {
            return Err(format!(
                "must not be a private key: export the extended public key (xpub…) of {path}, and treat the private \
                 key as exposed"
            ));
        }
        let wrong =
            || format!("must be an extended public key (xpub…) of depth {ACCOUNT_DEPTH}, exported at {path}");
        let key: ExtendedKey = text.parse().map_err(|_| wrong())?;
        if !key.prefix.is_public() || key.prefix != Prefix::XPUB || key.attrs.depth != ACCOUNT_DEPTH {
            return Err(wrong());
        }
        let account = XPub::try_from(key).map_err(|_| wrong())?;
        let branch = account.derive_child(ChildNumber(0)).map_err(|_| wrong())?;
        Ok(Xpub { kind, fingerprint: fingerprint(&account), branch })
    }

    /// Tells one key from another without giving it away.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    pub fn kind(&self) -> AddressKind {
        self.kind
    }

    /// The address at `/0/index` below the account.
    pub fn address(&self, index: u32) -> String {
        let number = ChildNumber::new(index, false).expect("an address index stays below 2^31");
        // The chance that an index has no key is 2^-127.
        let child = self.branch.derive_child(number).expect("every index has a key");
        let point = child.public_key().to_encoded_point(false);
        let hash = keccak256(&point.as_bytes()[1..]);
        text(self.kind, &tail(hash.as_slice()))
    }
}

impl fmt::Debug for Xpub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Xpub({} {})", self.kind.as_str(), self.fingerprint)
    }
}

/// The chain code counts too: with another one the same point leads to other addresses.
fn fingerprint(account: &XPub) -> String {
    let key = [&account.to_bytes()[..], &account.attrs().chain_code].concat();
    digest(&SHA256, &key).as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads an address; `None` when it is not of this kind or its checksum is wrong.
pub fn bytes(kind: AddressKind, text: &str) -> Option<[u8; 20]> {
    match kind {
        AddressKind::Evm => {
            let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 40)?;
            let address: Address = digits.parse().ok()?;
            let mixed = digits.bytes().any(|b| b.is_ascii_lowercase())
                && digits.bytes().any(|b| b.is_ascii_uppercase());
            if mixed && address.to_checksum(None) != text {
                return None;
            }
            Some(address.into_array())
        }
        AddressKind::Tron => {
            let mut raw = [0; 25];
            let length = bs58::decode(text).with_check(Some(TRON_VERSION)).onto(&mut raw).ok()?;
            (length == 21).then(|| tail(&raw[..21]))
        }
    }
}

/// As people write it: with its checksum.
pub fn text(kind: AddressKind, address: &[u8; 20]) -> String {
    match kind {
        AddressKind::Evm => Address::from(*address).to_checksum(None),
        AddressKind::Tron => bs58::encode(address).with_check_version(TRON_VERSION).into_string(),
    }
}

/// The last twenty bytes.
fn tail(long: &[u8]) -> [u8; 20] {
    let mut address = [0; 20];
    address.copy_from_slice(&long[long.len() - 20..]);
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVM: [&str; 3] = [
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
    ];
    const TRON: [&str; 3] = [
        "TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6",
        "TPjjvMwjPoDC32V2dGDYTkLH4E5LAtBZ6C",
        "TB7mhtkvfhsRBRhe5FuRa4tFXSEyGDe4eA",
    ];
    /// From BIP 32's first test vector: the public key at depth 0 and the private key at depth 3.
    const MASTER: &str = "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8";
    const PRIVATE: &str = "xprv9z4pot5VBttmtdRTWfWQmoH1taj2axGVzFqSb8C9xaxKymcFzXBDptWmT7FwuEzG3ryjH4ktypQSAewRiNMjANTtpgP4mLTj34bhnZX7UiM";

    #[test]
    fn a_key_leads_to_its_addresses() {
        let evm = Xpub::parse(AddressKind::Evm, SANDBOX_EVM_XPUB).unwrap();
        let tron = Xpub::parse(AddressKind::Tron, SANDBOX_TRON_XPUB).unwrap();
        for index in 0..3 {
            assert_eq!(evm.address(index), EVM[index as usize]);
            assert_eq!(tron.address(index), TRON[index as usize]);
        }
        assert_ne!(evm.fingerprint(), tron.fingerprint());
        assert_eq!(evm.fingerprint().len(), 16);
        assert_eq!(format!("{evm:?}"), format!("Xpub(EVM {})", evm.fingerprint()));
    }

    #[test]
    fn other_keys_are_refused_without_being_repeated() {
        let wrong =
            Err("must be an extended public key (xpub…) of depth 3, exported at m/44'/60'/0'".to_string());
        let cut = &SANDBOX_EVM_XPUB[..110];
        for text in ["", "xpub", MASTER, cut, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "é€prv"] {
            assert_eq!(Xpub::parse(AddressKind::Evm, text).map(drop), wrong, "{text}");
        }
        for text in [PRIVATE, "xprv-with-a-typo", "zprv"] {
            let refused = Xpub::parse(AddressKind::Tron, text).unwrap_err();
            assert!(refused.starts_with("must not be a private key"), "{refused}");
            assert!(!refused.contains(&text[4..]) || text.len() == 4, "{refused}");
        }
        // Why the guard exists: the library accepts the private key.
        assert!(PRIVATE.parse::<XPub>().is_ok());
    }

    #[test]
    fn addresses_lead_back() {
        for (kind, texts) in [(AddressKind::Evm, EVM), (AddressKind::Tron, TRON)] {
            for address in texts {
                assert_eq!(text(kind, &bytes(kind, address).unwrap()), address);
            }
        }
        let usdt = bytes(AddressKind::Tron, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").unwrap();
        assert_eq!(
            text(AddressKind::Evm, &usdt).to_lowercase(),
            "0xa614f803b6fd780986a42c78ec9c7f77e6ded13c"
        );
    }

    #[test]
    fn a_slip_of_the_pen_is_no_address() {
        let lower = EVM[0].to_lowercase();
        let upper = format!("0x{}", EVM[0][2..].to_uppercase());
        assert!(bytes(AddressKind::Evm, &lower).is_some());
        assert!(bytes(AddressKind::Evm, &upper).is_some());
        for wrong in [
            "",
            "0x",
            &lower[2..],
            &lower[..41],
            TRON[0],
            "0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
            "0xg39fd6e51aad88f6f4ce6ab8827279cfffb92266",
            "0x0xf39fd6e51aad88f6f4ce6ab8827279cfffb922",
        ] {
            assert_eq!(bytes(AddressKind::Evm, wrong), None, "{wrong}");
        }
        // A letter changed, a letter missing, and the right checksum of a Bitcoin address.
        for wrong in
            ["TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL7", &TRON[0][..33], "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", ""]
        {
            assert_eq!(bytes(AddressKind::Tron, wrong), None, "{wrong}");
        }
    }
}
