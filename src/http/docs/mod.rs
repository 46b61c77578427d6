//! Instructions for newcomers to this gateway: OpenAPI descriptions, what is made of them (a page, a Postman collection),
//! `/llms.txt`, security.txt.

mod examples;
pub mod llms;
pub mod openapi;
pub mod page;
pub mod postman;
pub mod security;
