//! Signatures of Standard Webhooks 1.0: HMAC-SHA256 of the message's id, the time of this try and the body. While a secret
//! is rotated a message carries a signature of each.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

const PREFIX: &str = "whsec_";

/// What an endpoint and we share.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(random: [u128; 2]) -> Secret {
        Secret(random.iter().flat_map(|half| half.to_be_bytes()).collect())
    }

    /// Reads what `text` wrote. The standard allows 24 to 64 bytes.
    pub fn parse(text: &str) -> Option<Secret> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (24..=64).contains(&bytes.len()).then_some(Secret(bytes))
    }

    /// As it is shown to the partner, once.
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    pub fn sign(&self, id: &str, at_seconds: i64, body: &[u8]) -> String {
        let mut signing = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        signing.update(format!("{id}.{at_seconds}.").as_bytes());
        signing.update(body);
        format!("v1,{}", STANDARD.encode(signing.sign()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// The headers of a try. The id stays the same for all tries of a message; the time is that of this one.
pub fn headers(id: &str, at_seconds: i64, secrets: &[Secret], body: &[u8]) -> [(&'static str, String); 3] {
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(id, at_seconds, body)).collect();
    [
        ("webhook-id", id.to_string()),
        ("webhook-timestamp", at_seconds.to_string()),
        ("webhook-signature", signatures.join(" ")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const AT: i64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn signatures_are_those_of_the_standard() {
        let secret = Secret::parse(PUBLISHED).unwrap();
        assert_eq!(secret.sign(ID, AT, BODY), SIGNATURE);
        let expected = [
            ("webhook-id", ID.to_string()),
            ("webhook-timestamp", "1614265330".into()),
            ("webhook-signature", SIGNATURE.into()),
        ];
        assert_eq!(headers(ID, AT, &[secret], BODY), expected);
    }

    #[test]
    fn each_secret_signs_while_one_is_rotated() {
        let (new, old) = (Secret::new([1, 2]), Secret::parse(PUBLISHED).unwrap());
        let [.., (_, signatures)] = headers(ID, AT, &[new.clone(), old], BODY);
        assert_eq!(signatures, format!("{} {SIGNATURE}", new.sign(ID, AT, BODY)));
    }

    #[test]
    fn a_signature_is_for_one_id_time_and_body() {
        let secret = Secret::new([7, 8]);
        let signature = secret.sign("evt_1", 5, b"{}");
        for other in [
            secret.sign("evt_2", 5, b"{}"),
            secret.sign("evt_1", 6, b"{}"),
            secret.sign("evt_1", 5, b"{} "),
            Secret::new([7, 9]).sign("evt_1", 5, b"{}"),
        ] {
            assert_ne!(signature, other);
        }
    }

    #[test]
    fn secrets_are_read_back_and_hidden() {
        let secret = Secret::new([u128::MAX, 1]);
        assert_eq!(Secret::parse(&secret.text()), Some(secret.clone()));
        assert_eq!(secret.text().len(), "whsec_".len() + 44);
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
        for wrong in
            ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_no base64 at all"]
        {
            assert_eq!(Secret::parse(wrong), None, "{wrong}");
        }
    }
}
