//! The partner API, `/api/b2b/v1`: parse, call one operation, render. Nothing is decided here.

pub mod deposits;
pub mod events;
pub mod orders;
pub mod plans;
pub mod topups;
pub mod wallet;
pub mod webhooks;
