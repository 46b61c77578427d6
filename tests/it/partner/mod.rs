//! The partner's door, `/api/b2b/v1`, one resource after the other.

mod batches;
mod days;
mod deliveries;
mod deposit_events;
mod deposits;
mod errors;
mod esim_events;
mod events;
mod forwarded;
mod keys;
mod lists;
mod low_balance;
mod mistakes;
mod openapi;
mod order_numbers;
mod orders;
mod plan_details;
mod plans;
mod references;
mod search;
mod topups;
mod usage;
mod wallet;
mod webhooks;
