//! Behaviour through the public doors, on both databases. Start with `harness.rs`.

mod harness;
mod orders;
