//! What the service does, one file per ability. Every door (partner API, pages, command line) calls these;
//! they take `&App` and business values, and know neither HTTP nor SQL text.

pub mod accounts;
pub mod addresses;
pub mod backup;
pub mod cancel;
pub mod catalog;
pub mod deliver;
pub mod deposits;
pub mod doctor;
pub mod find;
pub mod install;
pub mod keys;
pub mod ledger;
pub mod operator;
pub mod orders;
pub mod recover;
pub mod refresh;
pub mod reports;
pub mod resting;
pub mod restore;
pub mod sandbox;
pub mod scan;
pub mod settle;
pub mod topups;
pub mod transfers;
pub mod usage;
