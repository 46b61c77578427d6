//! Deposits against a real EVM node (anvil) and a real token. Most tests move the scanner by hand (`desk.rs`) and
//! know exactly what must have happened after which block; `processes.rs` lets real servers run and die. The tests
//! of checkouts (`till.rs`, `checkouts.rs`, `signed_*.rs`) come through the door, with everything running behind it.

mod checkouts;
mod credit;
mod desk;
mod node;
mod nodes;
mod payer;
mod processes;
mod proxy;
mod signed_doubts;
mod signed_payments;
mod signed_processes;
mod signed_remote;
mod signed_tools;
mod till;
mod transfers;
