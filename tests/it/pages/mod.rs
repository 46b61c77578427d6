//! Pages for people.

mod claims;
mod docs;
mod guest;
mod help;
mod install;
mod live;
mod parts;
mod topup;
mod wallet;
