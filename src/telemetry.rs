//! Logs to stderr, and metrics in Prometheus' text form. Neither ever holds a secret, a token or a body.

use std::io::IsTerminal;
use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

const SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
const GROUPS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// The protocol library writes whole requests to its log, with the tokens and codes in them; and an error for every
/// client that hangs up before its answer.
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
    // A second initialisation, as tests make it, keeps the first.
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
