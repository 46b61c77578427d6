//! `/portal`: where the people of a partner's team sign in by a mailed code, and work: orders, money, API keys, webhooks, the
//! team. Pages only render: what may be done, and by which role, is decided in `ops`.

pub mod frame;
pub mod join;
pub mod orders;
pub mod overview;
pub mod search;
pub mod settings;
pub mod sign_in;
pub mod team;
