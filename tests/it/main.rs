//! Behaviour through the public doors, on both databases. Start with `harness.rs`.

mod api_errors;
mod api_keys;
mod api_lists;
mod api_logs;
mod api_openapi;
mod api_orders;
mod api_pages;
mod api_plans;
mod api_topups;
mod api_usage;
mod api_wallet;
mod commands;
mod fire_cancel;
mod fire_clients;
mod fire_crash;
mod fire_instances;
mod fire_races;
mod fire_shutdown;
mod fire_supplier;
mod harness;
mod ledger_laws;
mod process;
mod raw;
mod shapes;
mod store_parity;
mod tidy;
