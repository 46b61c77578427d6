//! The secrets behind second factors. What an app shows follows from its secret and the time (RFC 6238: HMAC-SHA-1, six
//! digits), so we must keep the secret itself: sealed, bound to the person. A recovery code is kept as a keyed hash, so
//! that a copy of the database is no use for guessing.

use ring::hmac;

use super::{Cipher, derive, hashing_key, in_letters, keyed, random, same};
use crate::domain::email::Email;
use crate::domain::login::Realm;
use crate::domain::second_factor::{DIGITS, RECOVERY_LETTERS, base32};
use crate::error::{Error, Result};

/// As RFC 4226 recommends: as long as the hash.
const SECRET_BYTES: usize = 20;

/// What a person's app and we know.
pub struct FactorSecret([u8; SECRET_BYTES]);

impl FactorSecret {
    pub fn random() -> Result<FactorSecret> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes).map_err(Error::fault)?;
        Ok(FactorSecret(bytes))
    }

    /// As people type it into an app.
    pub fn text(&self) -> String {
        base32(&self.0)
    }

    /// The last of these steps whose code this is. All are tried, so that the time tells nothing; and the last counts, so
    /// that digits which two steps happen to share do not count twice.
    pub fn step_of(&self, code: &str, steps: &[i64]) -> Option<i64> {
        steps.iter().fold(None, |found, step| {
            let right = same(self.code(*step).as_bytes(), code.as_bytes());
            if right { found.max(Some(*step)) } else { found }
        })
    }

    fn code(&self, step: i64) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let mac = hmac::sign(&key, &step.to_be_bytes());
        let mac = mac.as_ref();
        let at = usize::from(mac[SECRET_BYTES - 1] & 15);
        let number = mac[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        format!("{:0DIGITS$}", (number & 0x7fff_ffff) % 10u32.pow(DIGITS as u32))
    }
}

/// Eighty random bits in letters that are not mistaken for each other.
pub fn recovery_code() -> String {
    in_letters(random(), RECOVERY_LETTERS)
}

/// Seals secrets and hashes recovery codes, each for one person.
#[derive(Clone)]
pub struct Factors {
    cipher: Cipher,
    key: hmac::Key,
}

impl Factors {
    pub(super) fn new(secret: &str) -> Factors {
        let cipher = Cipher::new(&derive(secret, "simgate second factors"));
        Factors { cipher, key: hashing_key(&derive(secret, "simgate recovery codes")) }
    }

    pub fn seal(&self, realm: Realm, email: &Email, secret: &FactorSecret) -> Result<Vec<u8>> {
        self.cipher.seal_anew(person(realm, email).as_bytes(), &secret.0)
    }

    pub fn open(&self, realm: Realm, email: &Email, sealed: &[u8]) -> Result<FactorSecret> {
        let secret = self.cipher.open(person(realm, email).as_bytes(), sealed);
        let secret = secret.and_then(|secret| secret.try_into().ok());
        let unfit = || {
            let email = email.masked();
            Error::fault(format!("the second factor of {email} does not open with this secret"))
        };
        secret.map(FactorSecret).ok_or_else(unfit)
    }

    /// Of a code without hyphens. Two people's equal codes have different hashes.
    pub fn recovery_hash(&self, realm: Realm, email: &Email, code: &str) -> [u8; 32] {
        keyed(&self.key, &[person(realm, email).as_bytes(), b"\n", code.as_bytes()])
    }
}

/// Neither holds a line break.
fn person(realm: Realm, email: &Email) -> String {
    format!("{}\n{email}", realm.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::second_factor::{step, steps};
    use crate::domain::time::Time;

    fn ann() -> Email {
        Email::parse("ann@example.com").unwrap()
    }

    /// The last six of the eight digits in RFC 6238, appendix B.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let secret = FactorSecret(*b"12345678901234567890");
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(secret.code(step(Time::from_micros(seconds * 1_000_000))), code);
        }
        // And RFC 4226, appendix D.
        let counted: Vec<String> = (0..10).map(|count| secret.code(count)).collect();
        let expected = "755224 287082 359152 969429 338314 254676 287922 162583 399871 520489";
        assert_eq!(counted.join(" "), expected);
    }

    #[test]
    fn a_code_counts_in_its_step_and_in_those_beside_it() {
        let secret = FactorSecret(*b"12345678901234567890");
        let now = Time::from_micros(1_111_111_109_000_000);
        let this = step(now);
        for away in -3..=3 {
            let code = secret.code(this + away);
            let expected = Some(this + away).filter(|_| away.abs() <= 1);
            assert_eq!(secret.step_of(&code, &steps(now)), expected);
        }
        assert_eq!(secret.step_of("", &steps(now)), None);
        assert_eq!(secret.step_of(&secret.code(5), &[5, 5, 4]), Some(5));
    }

    #[test]
    fn secrets_open_only_for_their_person() {
        let (factors, other) = (Factors::new("one"), Factors::new("two"));
        let (ann, bob) = (ann(), Email::parse("bob@example.com").unwrap());
        let secret = FactorSecret::random().unwrap();
        let sealed = factors.seal(Realm::Partners, &ann, &secret).unwrap();
        assert_eq!(factors.open(Realm::Partners, &ann, &sealed).unwrap().text(), secret.text());
        for (realm, email) in [(Realm::Partners, &bob), (Realm::Buyers, &ann)] {
            assert!(factors.open(realm, email, &sealed).is_err());
        }
        assert!(other.open(Realm::Partners, &ann, &sealed).is_err());
        assert!(!sealed.windows(SECRET_BYTES).any(|bytes| bytes == secret.0));
        assert_ne!(factors.seal(Realm::Partners, &ann, &secret).unwrap(), sealed);
    }

    #[test]
    fn recovery_codes_are_letters_that_are_not_mistaken() {
        let code = recovery_code();
        assert_eq!(code.len(), RECOVERY_LETTERS);
        assert!(code.bytes().all(|byte| byte.is_ascii_uppercase() && !b"ILOU".contains(&byte)), "{code}");
        assert_ne!(recovery_code(), code);
        let (factors, bob) = (Factors::new("one"), Email::parse("bob@example.com").unwrap());
        let hash = |realm, email: &Email| factors.recovery_hash(realm, email, &code);
        assert_ne!(hash(Realm::Partners, &ann()), hash(Realm::Partners, &bob));
        assert_ne!(hash(Realm::Partners, &ann()), hash(Realm::Buyers, &ann()));
    }

    /// Databases outlive versions of the gateway.
    #[test]
    fn what_an_earlier_version_stored_still_counts() {
        let factors = Factors::new("one");
        let sealed = alloy_primitives::hex::decode("000102030405060708090a0b34bb0c95bb498a06bb17d12cb686780d0fc6549b831c8e0dcd603bfcd984246a36ae763c").unwrap();
        let secret = factors.open(Realm::Partners, &ann(), &sealed).unwrap();
        assert_eq!(secret.0, *b"12345678901234567890");
        let hash = factors.recovery_hash(Realm::Partners, &ann(), "ABCDEFGHJKMNPQRSTV");
        assert_eq!(
            super::super::hex(&hash),
            "d87ebd0fd796700378e6b3330f8d99df71f4376f5812aff2065fddb351d1a860"
        );
    }
}
