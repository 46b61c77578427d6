//! Pages for people.

mod account;
mod claims;
mod docs;
mod guest;
mod help;
mod install;
mod live;
mod topup;
mod wallet;
