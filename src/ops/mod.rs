//! What the service does, one file per ability. Every door (partner API, pages, command line) calls these; they take
//! `&App` and business values, and know neither HTTP nor SQL text.

pub mod accounts;
pub mod addresses;
pub mod audit;
pub mod backup;
pub mod balance_audit;
pub mod booking;
pub mod breaker;
pub mod buying;
pub mod cancel;
pub mod catalog;
pub mod checkout;
pub mod coupons;
pub mod deliver;
pub mod deposits;
mod depth;
pub mod doctor;
pub mod events;
pub mod find;
pub mod guests;
pub mod hooks;
pub mod install;
pub mod jobs;
pub mod keys;
pub mod ledger;
pub mod login;
pub mod low_balance;
pub mod magic_link;
pub mod mail;
pub mod operator;
pub mod orders;
pub mod owned;
mod patience;
pub mod preview;
pub mod prices;
pub mod receipts;
pub mod recover;
pub mod refresh;
pub mod reports;
pub mod restore;
pub mod retention;
pub mod sandbox;
pub mod scan;
pub mod search;
pub mod settler;
pub mod suppliers;
pub mod sync;
pub mod tokens;
pub mod topups;
pub mod transfers;
pub mod usage;
pub mod vitals;
pub mod webhooks;
pub mod x402;

/// The write lane for what touches no wallet: logins, mails, coupons, the catalog, transfers without a known owner.
const LANE: i64 = 0;
