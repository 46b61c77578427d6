//! Deposits against a real EVM node (anvil) and a real token. Most tests move the scanner by hand (`desk.rs`) and
//! know exactly what must have happened after which block; `processes.rs` lets real servers run and die.

mod credit;
mod desk;
mod node;
mod nodes;
mod processes;
mod proxy;
mod transfers;
