//! `/portal`: what people of a partner's team see and do there, each in their role.

mod keys;
mod roles;
mod support;
mod webhooks;
