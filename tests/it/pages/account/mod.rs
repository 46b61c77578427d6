//! `/account`: staying signed in, forms that prove where they are from, and what is done there.

mod agents;
mod buying;
mod forms;
mod sessions;
mod wallet;

/// Clients that can be told apart, and may ask as often as a test waits for something.
const OPEN: [(&str, &str); 2] = [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")];
const ANN: &str = "ann@example.com";
const EVE: &str = "eve@example.com";
