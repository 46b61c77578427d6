//! The consumer API, as plain REST clients call it.

mod journey;
mod openapi;
mod purchases;
mod refusals;
