//! Ports for servers that a test starts, stops and starts again.

use std::net::TcpListener;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Below the range from which the system gives ports to clients.
const FIRST: u16 = 10_000;
const STRETCHES: u16 = 40;
const LENGTH: u16 = 500;

/// Each process has a stretch of ports to itself, for as long as it holds the first of them: no test takes another's
/// between two starts, not even one of another run on this machine.
fn stretch() -> u16 {
    static HELD: OnceLock<(u16, TcpListener)> = OnceLock::new();
    let hold = || loop {
        let mut firsts = (0..STRETCHES).map(|number| FIRST + number * LENGTH);
        if let Some(held) = firsts.find_map(|first| Some((first, listen(first)?))) {
            return held;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    HELD.get_or_init(hold).0
}

fn listen(port: u16) -> Option<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).ok()
}

pub fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    loop {
        let port = stretch() + 1 + TAKEN.fetch_add(1, Ordering::Relaxed) % (LENGTH - 1);
        if listen(port).is_some() {
            return port;
        }
    }
}
