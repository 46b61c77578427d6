//! How TRON differs from the other networks. Its nodes (java-tron) speak Ethereum's JSON-RPC, so `evm.rs` serves them
//! too; addresses are base58 with a leading 0x41 (`address.rs`), hashes are written without `0x`, and a block is final
//! when it is solidified: most of the elected producers have built on it.

/// TronGrid and similar services identify their callers by it.
pub const API_KEY_HEADER: &str = "tron-pro-api-key";
