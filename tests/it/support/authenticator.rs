//! The authenticator app on a phone: it reads the URI of a QR code and shows six digits. Written after RFC 6238 and apart
//! from the gateway's own code.

use std::collections::BTreeSet;

use ring::hmac;
use simgate::domain::time::Time;

pub struct Authenticator {
    /// What it shows above the digits.
    pub issuer: String,
    pub account: String,
    secret: Vec<u8>,
}

impl Authenticator {
    /// From what a QR code says.
    #[track_caller]
    pub fn scan(uri: &str) -> Authenticator {
        let rest = uri.strip_prefix("otpauth://totp/").expect("a URI of an authenticator");
        let (label, query) = rest.split_once('?').unwrap();
        let (issuer, account) = label.split_once(':').unwrap();
        let fields: Vec<(&str, &str)> =
            query.split('&').map(|field| field.split_once('=').unwrap()).collect();
        let value = |name: &str| fields.iter().find(|(field, _)| *field == name).unwrap().1;
        assert_eq!(value("issuer"), issuer);
        Authenticator { issuer: decoded(issuer), account: decoded(account), secret: base32(value("secret")) }
    }

    /// What it shows at this moment.
    pub fn shows(&self, now: Time) -> String {
        let step = u64::try_from(now.micros() / 30_000_000).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.secret);
        let mac = hmac::sign(&key, &step.to_be_bytes());
        let mac = mac.as_ref();
        let at = usize::from(mac[19] & 0x0f);
        let word = u32::from_be_bytes(mac[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
        format!("{:06}", word % 1_000_000)
    }

    pub fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// Six digits that it does not show within some minutes.
    pub fn never_shows(&self, now: Time) -> String {
        let shown: BTreeSet<String> =
            (-20..=20).map(|steps| self.shows(now.plus_millis(steps * 30_000))).collect();
        (0..100).map(|number| format!("{number:06}")).find(|code| !shown.contains(code)).unwrap()
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first == '%' {
            bytes.push(u8::from_str_radix(&rest[1..3], 16).unwrap());
            rest = &rest[3..];
        } else {
            bytes.push(u8::try_from(first).expect("a URI is ASCII"));
            rest = &rest[1..];
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn base32(text: &str) -> Vec<u8> {
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0u32, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            other => panic!("{:?} is not of base32", char::from(other)),
        };
        held = held << 5 | u32::from(value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    bytes
}
