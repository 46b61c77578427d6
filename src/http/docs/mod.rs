//! Instructions for newcomers to this gateway: OpenAPI descriptions, the page made of one, `/llms.txt`, security.txt.

pub mod llms;
pub mod openapi;
pub mod page;
pub mod security;
