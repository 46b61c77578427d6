//! Chains that a test makes up: the simulated one, and nodes that answer what a test wants.

mod confirmations;
mod garbled;
mod late_money;
mod laws;
mod nodes;
mod sim;
