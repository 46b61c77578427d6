//! `/portal`: where the people of a partner's team sign in by a mailed code, and work: orders, money, API keys, webhooks, the
//! team. Pages only render: what may be done, and by which role, is decided in `ops`.

pub mod deliveries;
pub mod deposits;
pub mod frame;
pub mod join;
pub mod keys;
pub mod logs;
pub mod month;
pub mod orders;
pub mod overview;
pub mod plans;
pub mod search;
pub mod second_factor;
pub mod settings;
pub mod sign_in;
pub mod statement;
pub mod team;
pub mod webhook;
mod webhook_form;
pub mod webhooks;
