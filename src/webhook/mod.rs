//! Sends one message to a partner's endpoint. `target.rs` says which URLs are allowed and `address.rs` which addresses,
//! `sender.rs` makes one try, over a connection of `line.rs`, and `signature.rs` signs. Nothing is remembered but
//! connections that are still open; when to send, and how often to try, is decided elsewhere.

mod address;
mod dns;
mod line;
mod sender;
mod signature;
mod target;

pub use self::address::is_global;
pub use self::dns::{Dns, SystemDns};
pub use self::sender::{Attempt, Outcome, Sender};
pub use self::signature::{Secret, headers};
pub use self::target::{Rules, Target, host_of};
