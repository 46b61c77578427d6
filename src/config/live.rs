//! What live mode needs and a sandbox does not. It is told all at once, each as the line to add.

use super::Raw;
use crate::domain::network::Network;

/// The settings that must not be empty: the line to add, and what it is.
#[rustfmt::skip]
const NEEDED: &[(&str, &str, &str)] = &[
    ("secret", "secret = \"…\"", "at least 32 random characters, better as SIMGATE_SECRET: openssl rand -hex 32"),
    ("evm_xpub", "evm_xpub = \"xpub…\"", "the extended public key of m/44'/60'/0'"),
    ("tron_xpub", "tron_xpub = \"xpub…\"", "the extended public key of m/44'/195'/0'"),
    ("smtp_host", "smtp_host = \"smtp.example.com\"", "the server that sends your mails"),
    ("mail_from", "mail_from = \"Shop <shop@example.com>\"", "whom mails are from"),
];
const NODES: &str = "base_rpc = [\"https://node.one.example\", \"https://node.two.example\"]   # two or more nodes of a \
                     network, of different companies; also polygon_rpc, arbitrum_rpc, tron_rpc";

/// Tables stand after all other lines, so it is told last.
const SUPPLIER: &str =
    "[supplier.acme]   # who sells to you, by a name of your choice; at the end of the file
  kind = \"esim-access\"   # or airalo; docs/suppliers.md has the fields of each
  access_code = \"…\"   # better as SIMGATE_SUPPLIER_ACME_ACCESS_CODE";

/// Tells of anything that is missing and that live mode needs.
pub fn require_all(raw: &Raw) {
    let empty = NEEDED.iter().filter(|(name, ..)| raw.text(name).is_empty());
    let mut missing: Vec<String> = empty.map(|(_, line, about)| format!("{line}   # {about}")).collect();
    let has_nodes =
        |network: &Network| !raw.text(&format!("{}_rpc", network.as_str().to_lowercase())).is_empty();
    if !Network::ALL.iter().any(has_nodes) {
        missing.push(NODES.into());
    }
    if raw.suppliers.is_empty() {
        missing.push(SUPPLIER.into());
    }
    if !missing.is_empty() {
        raw.is_wrong(format!(
            "mode ({}) is live, and this is missing. Add these lines to simgate.toml:\n  {}",
            raw.source("mode"),
            missing.join("\n  ")
        ));
    }
}
