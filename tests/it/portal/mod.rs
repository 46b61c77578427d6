//! `/portal`: who gets in, what each role may do, and what the team of a partner does there.

mod deposits;
mod developers;
mod forms;
mod key_roles;
mod keys;
mod logs;
mod order_batches;
mod order_lists;
mod order_mailings;
mod order_references;
mod order_roles;
mod orders;
mod others;
mod overview;
mod plans;
mod removed;
mod roles;
mod second_factor;
mod sessions;
mod sign_in;
mod statement;
mod support;
mod team;
mod webhooks;

const OWNER: &str = "owner@acme.example";
const DEV: &str = "dev@acme.example";
const FIN: &str = "fin@acme.example";
const EYE: &str = "eye@acme.example";
const EVE: &str = "eve@other.example";
