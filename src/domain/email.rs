//! Email addresses as we take them: plain ASCII in lower case, the form that every mail server takes. An address that
//! passes here is safe in a mail's header: it holds no space, quote, bracket or control character.

use std::fmt;

/// RFC 5321: the longest path is 256 with its brackets.
const MOST: usize = 254;
const MOST_LOCAL: usize = 64;
const MOST_LABEL: usize = 63;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Email(String);

impl Email {
    /// Reads an address as people type it. Quoted local parts and address literals are refused: no person has them.
    pub fn parse(text: &str) -> Option<Email> {
        let text = text.trim_matches(' ');
        let (local, domain) = text.split_once('@')?;
        let sane = text.len() <= MOST && is_local(local) && is_domain(domain);
        sane.then(|| Email(text.to_ascii_lowercase()))
    }

    /// An address as it was stored.
    pub fn from_text(text: impl Into<String>) -> Email {
        Email(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whose mailbox it is: providers deliver `ann+anything` to `ann`.
    pub fn mailbox(&self) -> String {
        let (local, domain) = self.0.split_once('@').unwrap_or_default();
        let owner = local.split_once('+').map(|(owner, _)| owner).filter(|owner| !owner.is_empty());
        format!("{}@{domain}", owner.unwrap_or(local))
    }

    /// For logs: enough to recognise an address, not enough to write to it.
    pub fn masked(&self) -> String {
        let (local, domain) = self.0.split_once('@').unwrap_or_default();
        format!("{}***@{domain}", local.chars().next().unwrap_or('*'))
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_local(text: &str) -> bool {
    let atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    (1..=MOST_LOCAL).contains(&text.len())
        && text.split('.').all(|part| !part.is_empty() && part.bytes().all(atom))
}

fn is_domain(text: &str) -> bool {
    let label = |label: &str| {
        (1..=MOST_LABEL).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.contains('.') && text.split('.').all(label) && last.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_people_are_taken_in_any_case() {
        for (typed, kept) in [
            ("Ann@Example.COM", "ann@example.com"),
            ("  a.b+tag@mail.example.co.uk ", "a.b+tag@mail.example.co.uk"),
            ("o'brien@xn--bcher-kva.example", "o'brien@xn--bcher-kva.example"),
        ] {
            assert_eq!(Email::parse(typed).unwrap().as_str(), kept);
        }
        assert_eq!(Email::parse("ann@example.com").unwrap().masked(), "a***@example.com");
        for (typed, mailbox) in [
            ("Ann+trip+2@example.com", "ann@example.com"),
            ("ann@example.com", "ann@example.com"),
            ("+1@example.com", "+1@example.com"),
        ] {
            assert_eq!(Email::parse(typed).unwrap().mailbox(), mailbox);
        }
    }

    #[test]
    fn whatever_could_mean_more_than_one_mailbox_is_not() {
        let long_local = format!("{}@example.com", "a".repeat(65));
        let long = format!("a@{}com", "abcdefghi.".repeat(26));
        for wrong in [
            "",
            "@",
            "a",
            "a@",
            "@example.com",
            "a@b",
            "a@b@example.com",
            "a b@example.com",
            "a@exa mple.com",
            "a@example.com,b@example.com",
            "a@example.com;b@example.com",
            "<a@example.com>",
            "Ann <a@example.com>",
            "\"a b\"@example.com",
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            ".a@example.com",
            "a.@example.com",
            "a..b@example.com",
            "a@-example.com",
            "a@example-.com",
            "a@example..com",
            "a@.example.com",
            "a@example.com.",
            "a@example.com\r\nBcc: b@example.com",
            "a@example.com\n",
            "a\0@example.com",
            "a@example.com%0d%0aBcc:b@c.example",
            "ann@ex\u{e4}mple.com",
            "\u{202e}a@example.com",
            "a\u{200b}@example.com",
            &long_local,
            &long,
        ] {
            assert_eq!(Email::parse(wrong), None, "{wrong:?}");
        }
    }
}
