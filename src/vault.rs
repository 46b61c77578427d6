//! Secrets: randomness, hashing, encryption at rest and the unguessable tokens of install pages. Every key is derived
//! from the one server secret, each for its own purpose, except that of order numbers (`numbers.rs`), which is sealed
//! with it. `codes.rs` holds what is mailed, `factors.rs` what second factors are.

mod codes;
mod factors;
mod numbers;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::{digest, hmac};
use subtle::ConstantTimeEq;

pub use self::codes::{Codes, Links, SHORT_DIGITS};
pub use self::factors::{FactorSecret, Factors, recovery_code};
pub use self::numbers::Numbers;
use crate::domain::esim::Activation;
use crate::domain::ids::{OrderId, WebhookId};
use crate::error::{Error, Result};

const NONCE: usize = 12;
/// Letters that are not mistaken for each other or for digits; 18 of them hold 80 bits, 20 of them 89.
const LETTERS: &[u8; 22] = b"ABCDEFGHJKMNPQRSTVWXYZ";
/// An order id without its prefix, then the proof.
const ID_CHARS: usize = 30;
const PROOF_CHARS: usize = 32;

/// 128 random bits from the operating system.
pub fn random() -> u128 {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives randomness");
    u128::from_be_bytes(bytes)
}

/// High-entropy secrets need no slow hash: nobody can try 2^256 of them.
pub fn hash_secret(secret: &str) -> [u8; 32] {
    hash_bytes(secret.as_bytes())
}

pub fn hash_bytes(bytes: &[u8]) -> [u8; 32] {
    bytes32(digest::digest(&digest::SHA256, bytes).as_ref())
}

pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

fn bytes32(hash: &[u8]) -> [u8; 32] {
    hash.try_into().expect("SHA-256 has 32 bytes")
}

fn hashing_key(key: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key)
}

fn keyed(key: &hmac::Key, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = hmac::Context::with_key(key);
    parts.iter().for_each(|part| mac.update(part));
    bytes32(mac.sign().as_ref())
}

fn derive(secret: &str, purpose: &str) -> [u8; 32] {
    keyed(&hashing_key(secret.as_bytes()), &[purpose.as_bytes()])
}

/// So many letters of a number.
fn in_letters(mut number: u128, letters: usize) -> String {
    let mut letter = || {
        let index = (number % LETTERS.len() as u128) as usize;
        number /= LETTERS.len() as u128;
        char::from(LETTERS[index])
    };
    (0..letters).map(|_| letter()).collect()
}

/// Encrypts texts. A text opens only with the purpose that it was sealed for.
#[derive(Clone)]
struct Cipher(LessSafeKey);

impl Cipher {
    fn new(key: &[u8; 32]) -> Cipher {
        Cipher(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).expect("a key of 32 bytes")))
    }

    /// The nonce, then the encrypted text. No nonce may serve two texts.
    fn seal(&self, nonce: [u8; NONCE], purpose: &[u8], text: &[u8]) -> Vec<u8> {
        let mut secret = text.to_vec();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(purpose), &mut secret)
            .expect("a text of less than 256 GB");
        [&nonce[..], &secret].concat()
    }

    /// The same with a nonce of its own.
    fn seal_anew(&self, purpose: &[u8], text: &[u8]) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(Error::fault)?;
        Ok(self.seal(nonce, purpose, text))
    }

    /// `None` when it was sealed for another purpose, or with another key.
    fn open(&self, purpose: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, secret) = sealed.split_first_chunk()?;
        let mut secret = secret.to_vec();
        let text =
            self.0.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(purpose), &mut secret);
        let length = text.ok()?.len();
        secret.truncate(length);
        Some(secret)
    }
}

pub struct Vault {
    cipher: Cipher,
    install_key: hmac::Key,
    form_key: hmac::Key,
    fingerprint: String,
    amount_seed: u64,
    /// One-time codes of logins.
    pub codes: Codes,
    /// Links in mails that act.
    pub links: Links,
    /// Second factors of people.
    pub factors: Factors,
}

impl Vault {
    pub fn new(secret: &str) -> Vault {
        let cipher = Cipher::new(&derive(secret, "simgate activation codes"));
        let fingerprint = hex(&derive(secret, "simgate fingerprint")[..8]);
        Vault {
            cipher,
            install_key: hashing_key(&derive(secret, "simgate install pages")),
            form_key: hashing_key(&derive(secret, "simgate forms of pages")),
            fingerprint,
            amount_seed: u64::from_be_bytes(
                *derive(secret, "simgate amounts").first_chunk().expect("8 of 32 bytes"),
            ),
            codes: Codes::new(secret),
            links: Links::new(secret),
            factors: Factors::new(secret),
        }
    }

    /// The seed for the order in which unique amounts are handed out.
    pub fn amount_seed(&self) -> u64 {
        self.amount_seed
    }

    /// Distinguishes secrets without revealing them: stored, so that a wrong secret is found at start.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// What a form carries to prove that we gave it to the browser that holds this secret. Of two purposes neither is good
    /// for the other.
    pub fn form_token(&self, purpose: &str, secret: &str) -> String {
        hex(&keyed(&self.form_key, &[purpose.as_bytes(), b"\n", secret.as_bytes()]))
    }

    /// Encrypts data for storage.
    fn encrypt(&self, purpose: &[u8], text: &[u8]) -> Result<Vec<u8>> {
        self.cipher.seal_anew(purpose, text)
    }

    fn decrypt(&self, purpose: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        self.cipher.open(purpose, sealed)
    }

    /// Encrypts an activation code, bound to its order.
    pub fn seal(&self, order: &OrderId, activation: &Activation) -> Result<Vec<u8>> {
        let text = format!("{}\n{}", activation.smdp_address, activation.matching_id);
        self.encrypt(order.as_str().as_bytes(), text.as_bytes())
    }

    pub fn open(&self, order: &OrderId, sealed: &[u8]) -> Result<Activation> {
        let text = self.decrypt(order.as_str().as_bytes(), sealed).ok_or_else(|| {
            Error::fault(format!("the activation code of {order} does not open with this secret"))
        })?;
        let text = String::from_utf8(text).map_err(Error::fault)?;
        let (smdp_address, matching_id) =
            text.split_once('\n').ok_or_else(|| Error::fault("an activation code has one part"))?;
        Ok(Activation { smdp_address: smdp_address.into(), matching_id: matching_id.into() })
    }

    /// Encrypts the key of a webhook's signatures, bound to that webhook.
    pub fn seal_key(&self, webhook: &WebhookId, key: &str) -> Result<Vec<u8>> {
        self.encrypt(webhook.as_str().as_bytes(), key.as_bytes())
    }

    pub fn open_key(&self, webhook: &WebhookId, sealed: &[u8]) -> Result<String> {
        let key = self.decrypt(webhook.as_str().as_bytes(), sealed);
        let key =
            key.ok_or_else(|| Error::fault(format!("the key of {webhook} does not open with this secret")))?;
        String::from_utf8(key).map_err(Error::fault)
    }

    /// The token that opens an order's install page: its id and a proof that we made it. Nothing is stored.
    pub fn install_token(&self, order: &OrderId) -> String {
        let id = order.as_str().trim_start_matches("ord_");
        format!("{id}{}", self.proof(id))
    }

    pub fn order_of_token(&self, token: &str) -> Option<OrderId> {
        if token.len() != ID_CHARS + PROOF_CHARS || !token.is_ascii() {
            return None;
        }
        let (id, proof) = token.split_at(ID_CHARS);
        same(self.proof(id).as_bytes(), proof.as_bytes()).then(|| OrderId::from_text(format!("ord_{id}")))
    }

    fn proof(&self, id: &str) -> String {
        hex(&keyed(&self.install_key, &[id.as_bytes()])[..PROOF_CHARS / 2])
    }
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Time;

    #[test]
    fn codes_open_only_for_their_order_and_secret() {
        let (vault, other) = (Vault::new("one"), Vault::new("two"));
        let (order, stranger) =
            (OrderId::esim(Time::from_micros(1), 1), OrderId::esim(Time::from_micros(1), 2));
        let code = Activation { smdp_address: "smdp.example".into(), matching_id: "K2-ABC".into() };
        let sealed = vault.seal(&order, &code).unwrap();
        assert_eq!(vault.open(&order, &sealed).unwrap(), code);
        assert!(vault.open(&stranger, &sealed).is_err());
        assert!(other.open(&order, &sealed).is_err());
        assert!(vault.open(&order, &sealed[..5]).is_err());
    }

    #[test]
    fn keys_of_webhooks_open_only_for_their_webhook() {
        let (vault, other) = (Vault::new("one"), Vault::new("two"));
        let at = Time::from_micros(1);
        let (webhook, stranger) = (WebhookId::new(at, 1), WebhookId::new(at, 2));
        let sealed = vault.seal_key(&webhook, "whsec_key").unwrap();
        assert_eq!(vault.open_key(&webhook, &sealed).unwrap(), "whsec_key");
        assert!(vault.open_key(&stranger, &sealed).is_err() && other.open_key(&webhook, &sealed).is_err());
    }

    #[test]
    fn tokens_cannot_be_made_without_the_secret() {
        let (vault, other) = (Vault::new("one"), Vault::new("two"));
        let order = OrderId::esim(Time::from_micros(1_700_000_000_000_000), 1);
        let token = vault.install_token(&order);
        assert_eq!(vault.order_of_token(&token), Some(order));
        assert_eq!(other.order_of_token(&token), None);
        assert_eq!(vault.order_of_token(&token[1..]), None);
    }

    /// Databases and links outlive versions of the gateway.
    #[test]
    fn what_an_earlier_version_sealed_opens() {
        let vault = Vault::new("one");
        let order = OrderId::esim(Time::from_micros(1), 1);
        let sealed =
            "1b4552f911fc42d64746e65e1771e67b2bf326f76b53367a8489af6bd47830c054e1a6f64fe8c959ef0d9bc80b6a32";
        let code = Activation { smdp_address: "smdp.example".into(), matching_id: "K2-ABC".into() };
        assert_eq!(vault.open(&order, &alloy_primitives::hex::decode(sealed).unwrap()).unwrap(), code);
        let token = "0000000000000000000000000000018249f1c9697702711a9be4f924e220cf";
        assert_eq!(vault.install_token(&order), token);
        assert_eq!(vault.fingerprint(), "8d0a713804bd3da7");
        assert_eq!(Vault::new(&"a".repeat(65)).fingerprint(), "4c93d583bdad1c93");
        assert_eq!(vault.amount_seed(), 2679129015679024108);
        let hash = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
        assert_eq!(hex(&hash_secret("one")), hash);
    }
}
