//! `/portal`: what the people of a partner's team see and do there, each in their role.

mod deposits;
mod plans;
mod statement;
mod support;
