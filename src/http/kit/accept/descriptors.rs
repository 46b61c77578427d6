//! File descriptors: each connection takes one, and so do the database, the nodes and the files. A process that runs
//! out of them can serve nobody, so the limit is raised if it may be, and connections get what is left.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For nodes, mail, listeners, files, and connections that are ending.
const SPARE: u64 = 256;
/// For the database: writers and readers for every core, with a few files each.
const SPARE_PER_CORE: u64 = 16;

/// How many of the wanted connections this process can have, after raising its limit.
pub fn affordable(wanted: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get()) as u64;
    let spare = SPARE + SPARE_PER_CORE * cores;
    let limit = raised(wanted as u64 + spare);
    let connections = within(wanted, spare, limit);
    if connections < wanted {
        tracing::warn!(
            max_connections = wanted,
            descriptors = limit,
            "too few file descriptors: at most {connections} connections are served (see ulimit -n, LimitNOFILE)"
        );
    }
    connections
}

/// The limit after raising it to what is needed, if it may be raised.
fn raised(needed: u64) -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(soft) = current.filter(|soft| *soft < needed) else { return current.unwrap_or(u64::MAX) };
    let target = maximum.map_or(needed, |hard| needed.min(hard));
    match setrlimit(Resource::Nofile, Rlimit { current: Some(target), maximum }) {
        Ok(()) => target,
        Err(_) => soft,
    }
}

/// What a limit leaves for connections: all but the spare ones, and at least half of it.
fn within(wanted: usize, spare: u64, limit: u64) -> usize {
    let left = limit.saturating_sub(spare).max(limit / 2).max(1);
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_into_the_limit() {
        for (wanted, limit, expected) in [
            (4096, u64::MAX, 4096),
            (4096, 4384, 4096),
            (4096, 1024, 736),
            (4096, 300, 150),
            (4096, 0, 1),
            (8, 300, 8),
        ] {
            assert_eq!(within(wanted, 288, limit), expected, "{limit}");
        }
    }
}
