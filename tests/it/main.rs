//! Behaviour through the public doors, on both databases. Start with `harness.rs`.

mod fire_cancel;
mod fire_clients;
mod fire_crash;
mod fire_instances;
mod fire_races;
mod fire_shutdown;
mod fire_supplier;
mod harness;
mod orders;
mod process;
