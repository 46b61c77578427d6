//! From a socket to a request: the accept loop, how many connections there may be, and when each must end.

mod connection;
pub mod descriptors;
mod drain_body;
mod life;
mod places;
pub mod server;
mod tally;

use std::time::Duration;

/// How long we wait for a client that has begun to say something.
pub const PATIENCE: Duration = Duration::from_secs(5);
