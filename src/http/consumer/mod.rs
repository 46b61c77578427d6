//! The consumer API: the customer's side of the tools as plain REST, for clients that are published for services of this
//! kind. Field names are theirs. Parse, call one operation, render.

pub mod coupons;
pub mod esims;
pub mod knowledge;
pub mod login;
pub mod orders;
mod paging;
pub mod wallet;
