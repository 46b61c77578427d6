//! What tests use and that holds no tests but its own. Start with `harness.rs`, which gives each test a gateway.

pub mod browser;
pub mod buying;
pub mod command_line;
pub mod connections;
pub mod coupons;
pub mod crowd;
pub mod customers;
pub mod database;
pub mod dice;
pub mod environment;
pub mod harness;
pub mod http2_frames;
pub mod json_schema;
pub mod logins;
pub mod mail_server;
pub mod mock_node;
pub mod openapi;
pub mod payer;
pub mod persistent_agents;
pub mod place;
pub mod ports;
pub mod postgres_servers;
pub mod process;
pub mod qr_codes;
pub mod shapes;
pub mod tool_caller;
