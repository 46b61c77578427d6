//! Whom customers ask: what the operator wrote about it, as a link where it can be one.

use super::email::Email;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// `None` when the operator wrote something that is no address.
    pub href: Option<String>,
    pub text: String,
}

impl Contact {
    pub fn read(text: &str) -> Contact {
        let href = match Email::parse(text.strip_prefix("mailto:").unwrap_or(text)) {
            Some(email) => Some(format!("mailto:{email}")),
            None => Some(text.to_string())
                .filter(|text| text.starts_with("https://") || text.starts_with("http://")),
        };
        Contact { href, text: text.strip_prefix("mailto:").unwrap_or(text).to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_to_ask_is_a_link_when_it_can_be_one() {
        for (text, href, shown) in [
            ("help@shop.example", Some("mailto:help@shop.example"), "help@shop.example"),
            ("https://shop.example/help", Some("https://shop.example/help"), "https://shop.example/help"),
            ("call 123", None, "call 123"),
            ("javascript:alert(1)", None, "javascript:alert(1)"),
        ] {
            let found = Contact::read(text);
            assert_eq!((found.href.as_deref(), &*found.text), (href, shown));
        }
    }
}
