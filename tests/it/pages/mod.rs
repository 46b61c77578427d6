//! Pages for people.

mod claims;
mod guest;
mod help;
mod install;
mod topup;
mod wallet;
