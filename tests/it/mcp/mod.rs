//! The tools at `/api/mcp`.

mod mistakes;
mod protocol;
mod tools;
