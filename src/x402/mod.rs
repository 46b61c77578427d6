//! Payment by signature (x402 version 2): what its headers say (`wire.rs`), what a payer signs (`authorization.rs`),
//! and who brings it onto the chain (`settler.rs`): a facilitator (`remote.rs`) or a gas key of ours (`local.rs`,
//! `transaction.rs`). Nothing here decides about money: `ops::x402` and `ops::settler` do.

pub mod authorization;
pub mod local;
pub mod remote;
pub mod settler;
pub mod simulated;
pub mod transaction;
pub mod wire;
