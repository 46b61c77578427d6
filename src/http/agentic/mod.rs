//! The agentic API: an agent logs in for a person, searches and buys. Parse, call one operation, render.

pub mod checkout;
pub mod events;
pub mod login;
pub mod orders;
pub mod search;
pub mod wallet;
mod x402;
