//! `/portal/orders`: the orders of a partner, one of them with all that happened to it, and what its team does by hand:
//! place one or many, top up, cancel, send to a customer.

pub mod batch;
pub mod cancel;
pub mod csv;
pub mod data;
pub mod list;
pub mod one;
pub mod place;
pub mod progress;
pub mod row;
pub mod send;
