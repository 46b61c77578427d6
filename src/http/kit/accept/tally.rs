//! Counts connections without room and logs one line a minute: a flood of connections must not become a flood of lines.

use std::io;
use std::time::{Duration, Instant};

use metrics::counter;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Tally {
    refused: u64,
    crowded_out: u64,
    waited: u64,
    not_accepted: u64,
    error: Option<io::Error>,
    told: Option<Instant>,
}

impl Tally {
    /// A newcomer was turned away, because its network holds its share.
    pub fn refused(&mut self) {
        counter!("simgate_connections_refused_total").increment(1);
        self.refused += 1;
        self.tell_in_time();
    }

    /// An idle connection had to make room.
    pub fn crowded_out(&mut self) {
        counter!("simgate_connections_closed_total", "reason" => "crowded").increment(1);
        self.crowded_out += 1;
        self.tell_in_time();
    }

    /// A newcomer had to wait, because all are being served.
    pub fn waited(&mut self) {
        self.waited += 1;
        self.tell_in_time();
    }

    pub fn not_accepted(&mut self, error: io::Error) {
        counter!("simgate_accept_errors_total").increment(1);
        self.not_accepted += 1;
        self.error = Some(error);
        self.tell_in_time();
    }

    /// Ends when the next line may be logged; never while nothing is counted.
    pub async fn next_line(&self) {
        match self.told {
            Some(told) if !self.is_empty() => tokio::time::sleep_until((told + MINUTE).into()).await,
            _ => std::future::pending().await,
        }
    }

    pub fn tell_in_time(&mut self) {
        let now = Instant::now();
        if self.is_empty() || self.told.is_some_and(|told| now < told + MINUTE) {
            return;
        }
        let error = self.error.take().map(tracing::field::display);
        tracing::warn!(
            refused = self.refused,
            crowded_out = self.crowded_out,
            waited = self.waited,
            not_accepted = self.not_accepted,
            error,
            "no room for all connections"
        );
        *self = Tally { told: Some(now), ..Tally::default() };
    }

    fn is_empty(&self) -> bool {
        self.refused + self.crowded_out + self.waited + self.not_accepted == 0
    }
}
