//! What tells strangers how this gateway is used: OpenAPI descriptions, the page made of one, `/llms.txt`, security.txt.

pub mod llms;
pub mod openapi;
pub mod page;
pub mod security;
