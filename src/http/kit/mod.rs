//! What every door uses: who calls, what was sent, what is answered, and the loop that accepts connections. Doors use the
//! kit and never each other.

pub mod accept;
pub mod answers;
pub mod auth;
pub mod body;
pub mod catalog;
pub mod chart;
pub mod cookies;
mod cors;
pub mod details;
pub mod doorway;
pub mod download;
pub mod events;
pub mod fields;
mod forwarded;
mod hints;
pub mod hosts;
pub mod html;
pub mod indent;
mod limits;
pub mod members;
pub mod next;
pub mod notice;
pub mod orders;
mod path;
pub mod payment;
pub mod problem;
pub mod qr;
pub mod schema;
pub mod session;
pub mod site;
mod state;
pub mod statement;
pub mod wire;

pub use state::{State, Texts, Written};
