//! What is mailed: one-time codes and links that act. Both follow from the server secret, so that no table holds them;
//! a copy of the database gives no access to an account.

use std::net::IpAddr;

use ring::hmac;

use super::{Cipher, derive, hashing_key, in_letters, keyed};
use crate::domain::client::{Origin, Width};
use crate::domain::ids::LoginId;

/// How many digits a code usually has.
pub const SHORT_DIGITS: usize = 6;
const LONG_CHARS: usize = 20;

/// Makes the code of a login, and the name under which a client's address is counted.
#[derive(Clone)]
pub struct Codes {
    key: hmac::Key,
}

impl Codes {
    pub(super) fn new(secret: &str) -> Codes {
        Codes { key: hashing_key(&derive(secret, "simgate login codes")) }
    }

    pub fn code(&self, login: &LoginId, long: bool) -> String {
        let purpose: &[u8] = if long { b"long " } else { b"short " };
        let mac = keyed(&self.key, &[purpose, login.as_str().as_bytes()]);
        let number = mac[..16].iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
        if !long {
            return format!("{:0SHORT_DIGITS$}", number % 10u128.pow(SHORT_DIGITS as u32));
        }
        in_letters(number, LONG_CHARS)
    }

    /// Distinguishes clients and their networks without keeping an address.
    pub fn origin(&self, address: IpAddr) -> Origin {
        let word = |width, network: IpAddr| {
            let purpose: &[u8] = match width {
                Width::Client => b"client ",
                Width::Site => b"site ",
                Width::Area => b"area ",
            };
            super::hex(&keyed(&self.key, &[purpose, network.to_string().as_bytes()])[..8])
        };
        Origin::new(address, word)
    }
}

/// Seals the content of a mailed link into its URL, in letters only: a mail with a code must hold no other digits.
pub struct Links {
    cipher: Cipher,
    key: hmac::Key,
}

impl Links {
    pub(super) fn new(secret: &str) -> Links {
        let cipher = Cipher::new(&derive(secret, "simgate mailed links"));
        Links { cipher, key: hashing_key(&derive(secret, "simgate mailed link nonces")) }
    }

    /// The same content gives the same link. The nonce follows from all that is sealed, so none serves two texts.
    pub fn seal(&self, purpose: &'static str, matter: &str) -> String {
        let nonce = keyed(&self.key, &[purpose.as_bytes(), b"\n", matter.as_bytes()]);
        let nonce = *nonce.first_chunk().expect("12 of 32 bytes");
        let sealed = self.cipher.seal(nonce, purpose.as_bytes(), matter.as_bytes());
        let letters = |byte: &u8| [byte >> 4, byte & 15].map(|half| char::from(b'a' + half));
        sealed.iter().flat_map(letters).collect()
    }

    /// The content of a link; `None` for a link that we did not make for this purpose.
    pub fn open(&self, purpose: &'static str, link: &str) -> Option<String> {
        let half = |letter: u8| letter.checked_sub(b'a').filter(|half| *half < 16);
        let pairs = link.as_bytes().chunks(2);
        let bytes: Option<Vec<u8>> =
            pairs.map(|pair| Some(half(pair[0])? << 4 | half(*pair.get(1)?)?)).collect();
        String::from_utf8(self.cipher.open(purpose.as_bytes(), &bytes?)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Time;

    #[test]
    fn codes_follow_from_login_and_secret() {
        let (codes, other) = (Codes::new("one"), Codes::new("two"));
        let login = LoginId::new(Time::from_micros(1), 1);
        let (short, long) = (codes.code(&login, false), codes.code(&login, true));
        assert_eq!((short.len(), long.len()), (6, 20));
        assert!(short.bytes().all(|b| b.is_ascii_digit()) && long.bytes().all(|b| b.is_ascii_uppercase()));
        assert_eq!(codes.code(&login, false), short);
        assert_ne!(other.code(&login, true), long);
        assert_ne!(codes.code(&LoginId::new(Time::from_micros(1), 2), true), long);
        let origin = |address: &str| codes.origin(address.parse().unwrap());
        assert_ne!(origin("192.0.2.1"), origin("192.0.2.2"));
    }

    /// Statements find the networks around an origin by these lengths.
    #[test]
    fn every_network_of_an_origin_has_a_word_of_17_characters() {
        let codes = Codes::new("one");
        for (address, words) in [("192.0.2.1", 1), ("2001:db8::1", 3)] {
            let origin = codes.origin(address.parse().unwrap());
            assert_eq!(origin.as_str().len(), words * 17);
            assert!(origin.as_str().as_bytes().chunks(17).all(|word| word.ends_with(b"/")));
        }
    }

    #[test]
    fn links_open_only_for_their_purpose_and_secret() {
        let (links, other) = (Links::new("one"), Links::new("two"));
        let link = links.seal("not-me", "ann@example.com");
        assert!(link.bytes().all(|b| b.is_ascii_lowercase()));
        assert_eq!(links.seal("not-me", "ann@example.com"), link);
        assert_eq!(links.open("not-me", &link).as_deref(), Some("ann@example.com"));
        assert_eq!(links.open("revoke", &link), None);
        assert_eq!(other.open("not-me", &link), None);
        for bad in ["", "a", "abc", "zz", &link[2..], &format!("{link}aa"), "\u{e4}\u{e4}"] {
            assert_eq!(links.open("not-me", bad), None, "{bad}");
        }
    }

    #[test]
    fn codes_and_links_of_an_earlier_version_hold() {
        let (codes, links) = (Codes::new("one"), Links::new("one"));
        let login = LoginId::new(Time::from_micros(1), 1);
        assert_eq!(
            (codes.code(&login, false), codes.code(&login, true)),
            ("666596".into(), "YWEZAQHJVNFKGBWMQBQX".into())
        );
        let origin = codes.origin("2001:db8::1".parse().unwrap());
        assert_eq!(origin.as_str(), "8cb201438d4c75a0/5691fc888377139d/65763a4e2a900d66/");
        let link = "blieofijhenmpoajefdobmklclahogcfnlbmdghkhddfecghglmohbmpndhhhkheenlhehmpfhdgoedenijcnp";
        assert_eq!(links.seal("not-me", "ann@example.com"), link);
    }
}
