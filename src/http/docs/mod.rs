//! Instructions for newcomers to this gateway: OpenAPI descriptions, what is made of them (pages, a Postman collection),
//! `/llms.txt`, security.txt.

mod examples;
mod fields;
pub mod llms;
pub mod openapi;
pub mod page;
pub mod postman;
mod samples;
pub mod security;
pub mod story;
