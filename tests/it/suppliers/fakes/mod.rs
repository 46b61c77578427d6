//! Sellers of ours, as their vendors' SDKs know them.

use std::sync::atomic::{AtomicI64, Ordering};

pub mod airalo;
pub mod esim_access;

/// Where a seller begins to count that is beside others: no two sell the same ICCID.
pub fn first_number() -> i64 {
    static SELLERS: AtomicI64 = AtomicI64::new(0);
    SELLERS.fetch_add(300_000, Ordering::Relaxed)
}
