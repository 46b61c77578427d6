//! The tools at `/api/mcp`.

mod protocol;
mod tools;
