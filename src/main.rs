//! The program. Everything is in the library; the commands begin in `cli/mod.rs`.

use std::process::ExitCode;

/// A gateway allocates small objects on many threads; mimalloc serves them faster than the system does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    simgate::cli::run(std::env::args_os().collect())
}
