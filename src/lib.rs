//! simgate: a wholesale eSIM gateway that a company runs itself.
//! Four doors stand before one set of operations; see ARCHITECTURE.md for the map.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod app;
pub mod chain;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod error;
pub mod http;
pub mod jobs;
pub mod knowledge;
pub mod mail;
pub mod ops;
pub mod start;
pub mod store;
pub mod supplier;
pub mod telemetry;
pub mod vault;
pub mod webhook;
pub mod wire;
pub mod x402;
