//! What can go wrong with a question to a node, sorted by what to do about it.

use std::fmt;
use std::time::Duration;

/// How long a node may take to answer.
pub const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RpcError {
    /// No connection, no answer in time, or none that is HTTP.
    Unreachable(String),
    TimedOut,
    /// Others answered long ago.
    Slow,
    /// The node asks us to wait, perhaps for this many seconds.
    Busy(String, Option<u64>),
    /// Too many blocks or too large an answer: ask for less.
    TooMuch(String),
    /// It understood and said no.
    Refused(i64, String),
    /// Its answer cannot be read.
    Unreadable(String),
    /// Its answers do not fit together, or it lags behind: another node may know better.
    Doubtful(String),
    /// It is not on our chain, or our tokens are not what they should be there.
    Foreign(String),
}

impl RpcError {
    /// True when the node itself is ill; in all other cases its next answer may be right.
    pub fn is_outage(&self) -> bool {
        match self {
            RpcError::Unreachable(_) | RpcError::TimedOut | RpcError::Slow | RpcError::Unreadable(_) => true,
            RpcError::Busy(..)
            | RpcError::TooMuch(_)
            | RpcError::Refused(..)
            | RpcError::Doubtful(_)
            | RpcError::Foreign(_) => false,
        }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RpcError::Unreachable(why) => write!(f, "cannot be reached: {why}"),
            RpcError::TimedOut => write!(f, "did not answer within {} s", TIMEOUT.as_secs()),
            RpcError::Slow => f.write_str("is slow: others have answered long ago"),
            RpcError::Busy(why, _) => write!(f, "wants to be left alone: {why}"),
            RpcError::TooMuch(why) => write!(f, "wants to be asked for less: {why}"),
            RpcError::Refused(code, why) => write!(f, "refused ({code}): {why}"),
            RpcError::Unreadable(why) => write!(f, "answered something unreadable: {why}"),
            RpcError::Doubtful(why) | RpcError::Foreign(why) => f.write_str(why),
        }
    }
}
