//! Races, crowds, hostile clients, a misbehaving supplier, and `kill -9` under load.

mod cancel;
mod checkout;
mod clients;
mod connections;
mod coupons;
mod crash;
mod crowds;
mod deposits;
mod disk;
mod events;
mod guessing;
mod guests;
mod instances;
mod keys;
mod logins;
mod networks;
mod races;
mod shutdown;
mod supplier;
mod tools;
mod webhooks;
