//! The rules of the business, pure: no database, no network, no clock, no serde. Everything here can be read and tested
//! without the rest of the program.

pub mod account;
pub mod amount;
pub mod authorization;
pub mod checkout;
pub mod client;
pub mod colour;
pub mod cost;
pub mod country;
pub mod coupon;
pub mod delivery;
mod details;
pub mod doubt;
pub mod email;
pub mod esim;
pub mod event;
pub mod ids;
pub mod invoice;
pub mod ledger;
pub mod login;
pub mod money;
pub mod near;
pub mod network;
pub mod number;
pub mod order;
pub mod payback;
pub mod plan;
pub mod price;
pub mod refusal;
pub mod search;
pub mod slot;
pub mod text;
pub mod time;
pub mod token;
pub mod transfer;
pub mod webhook;
pub mod words;
