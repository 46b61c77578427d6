//! Pages for people.

mod account;
mod claims;
mod docs;
mod guest;
mod help;
mod install;
mod landing;
mod live;
mod parts;
mod receipts;
mod refill;
mod topup;
mod wallet;
