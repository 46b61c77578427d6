//! Settings of the tool gateway: which pages of other sites may call it, by which names it is reached, and who is asked to
//! pay by signature.

use super::{ConfigError, Raw, Spec, spec};
use crate::domain::words::words;

#[rustfmt::skip]
pub const SPECS: &[Spec] = &[
    spec("mcp_origins", "", "origins of web pages that may call the tools besides our own, separated by commas"),
    spec("mcp_hosts", "", "host names by which the tools may be called, separated by commas (default: on loopback our own, else any)"),
    spec("mcp_x402", "announced", "which callers of a purchase that is short of money are asked to pay by signature: announced (clients that say they can) or always"),
];

words! {
    /// Who is asked to pay by signature.
    pub enum X402Offers: parse {
        /// Clients that say they can.
        Announced = "announced",
        /// Everybody: some clients find out by trying.
        Always = "always",
    }
}

#[derive(Clone, Debug)]
pub struct Mcp {
    /// As browsers send them: `https://agents.example`.
    pub origins: Vec<String>,
    /// Without ports, in lower case.
    pub hosts: Vec<String>,
    pub x402: X402Offers,
}

impl Mcp {
    pub fn check(raw: &Raw) -> Result<Mcp, ConfigError> {
        let must_be_origins = "must be origins like https://agents.example, separated by commas";
        let must_be_hosts = "must be host names without ports, separated by commas";
        let hosts = |text: &str| items(text, |item| is_host(item).then(|| item.to_ascii_lowercase()));
        Ok(Mcp {
            origins: raw
                .parse("mcp_origins", must_be_origins, |text| items(text, origin))?
                .unwrap_or_default(),
            hosts: raw.parse("mcp_hosts", must_be_hosts, hosts)?.unwrap_or_default(),
            x402: raw.require("mcp_x402", "must be announced or always", X402Offers::parse)?,
        })
    }
}

fn items(text: &str, read: impl Fn(&str) -> Option<String>) -> Option<Vec<String>> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(read).collect()
}

fn is_host(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

/// The origin of a URL, written as browsers write it: lower case, and no port where it is the usual one.
pub fn origin(url: &str) -> Option<String> {
    let url = url.to_ascii_lowercase();
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    let authority = rest.split('/').next().filter(|authority| !authority.is_empty())?;
    let host = authority.strip_suffix(usual).unwrap_or(authority);
    Some(format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        for (url, expected) in [
            ("https://Agents.Example", Some("https://agents.example")),
            ("https://agents.example:443/shop", Some("https://agents.example")),
            ("http://127.0.0.1:8402", Some("http://127.0.0.1:8402")),
            ("ftp://agents.example", None),
            ("agents.example", None),
            ("https://", None),
        ] {
            assert_eq!(origin(url).as_deref(), expected, "{url}");
        }
    }
}
