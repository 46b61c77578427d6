//! The agents' door, `/api/agentic`.

mod checkout;
mod coupons;
mod login;
mod mistakes;
mod openapi;
mod pairs;
mod search;
mod signed;
mod token_limits;
mod tokens;
