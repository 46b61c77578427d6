//! Logs to stderr, and metrics in Prometheus' text form. Neither ever holds a secret, a token or a body. Repeated
//! trouble is logged once a minute (`EveryMinute`).

use std::io::IsTerminal;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

const SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
const GROUPS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// The protocol library logs whole requests, with the tokens and codes in them; and an error for every client that
/// hangs up before its answer.
const PROTOCOL: &str = "rmcp";

/// A filter that does not parse falls back to `info`, and says so.
pub fn init_logs(filter: &str, json: bool) {
    let quietly = |filter: &str| format!("{filter},{PROTOCOL}=error,{PROTOCOL}::service=off");
    let parsed = EnvFilter::try_new(quietly(filter));
    let wrong = parsed.is_err();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed.unwrap_or_else(|_| EnvFilter::new(quietly("info"))))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // A second initialisation, as in tests, keeps the first.
    let _ = if json { builder.json().try_init() } else { builder.try_init() };
    if wrong {
        tracing::warn!("the log filter cannot be read; using info");
    }
}

static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Installs the recorder, once for the process. Before that, metrics cost nothing and go nowhere.
pub fn metrics() -> Option<&'static PrometheusHandle> {
    let install = || {
        PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), SECONDS)
            .and_then(|builder| builder.set_buckets_for_metric(Matcher::Suffix("_group_size".into()), GROUPS))
            .and_then(PrometheusBuilder::install_recorder)
            .inspect_err(|error| tracing::error!(%error, "metrics are off"))
            .ok()
    };
    METRICS.get_or_init(install).as_ref()
}

/// Lets one line a minute through: trouble that recurs every second must not bury everything else.
#[derive(Default)]
pub struct EveryMinute(Mutex<Told>);

#[derive(Default)]
struct Told {
    last: Option<Instant>,
    left_out: u64,
}

impl EveryMinute {
    pub const fn new() -> EveryMinute {
        EveryMinute(Mutex::new(Told { last: None, left_out: 0 }))
    }

    /// `None` when the line may not be written now; otherwise how many were left out since the last one.
    pub fn turn(&self) -> Option<u64> {
        self.turn_at(Instant::now())
    }

    fn turn_at(&self, now: Instant) -> Option<u64> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.last.is_some_and(|last| now < last + Duration::from_secs(60)) {
            told.left_out += 1;
            return None;
        }
        told.last = Some(now);
        Some(std::mem::take(&mut told.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_minute_tells_how_many_it_stands_for() {
        let (lines, start) = (EveryMinute::new(), Instant::now());
        let after = |seconds| lines.turn_at(start + Duration::from_secs(seconds));
        assert_eq!(
            [after(0), after(1), after(59), after(60), after(119), after(500)],
            [Some(0), None, None, Some(2), None, Some(1)]
        );
    }
}
