//! Behaviour through the public doors, on both databases. Start with `support/harness.rs`.

mod agentic;
mod anvil;
mod chain;
mod checkouts;
mod cli;
mod consumer;
mod docs;
mod fire;
mod mcp;
mod pages;
mod partner;
mod portal;
mod server;
mod storage;
mod stories;
mod suppliers;
mod support;
mod tidy;
mod webhook_sender;
