//! The operator's commands, run as people and programs run them.

mod commands;
mod coupons;
mod first_day;
mod keys;
mod ledger_laws;
mod mistakes;
mod prices;
mod restore;
mod reviews;
mod settlement;
mod users;
mod withdrawals;
