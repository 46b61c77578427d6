//! A connection's time: one alarm decides when the connection must end. The alarm is moved when something is due
//! earlier, and set again when it rings; so a request that comes and goes does not touch it.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, ready};
use std::time::Duration;

use hyper_util::server::graceful::GracefulConnection;
use metrics::counter;
use tokio::time::sleep_until;

use super::PATIENCE;
use super::life::{FAREWELL, Life, Millis, NEVER};
use crate::config::Connections;

/// How much longer an idle connection is kept than its client is told: a request that it sends in the last moment may
/// still be arriving.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
enum Next {
    /// Over HTTP/2 the client is told, and requests that are under way are finished.
    Leave,
    Close,
}

/// Why a connection had to end.
#[derive(Clone, Copy)]
enum Why {
    /// No request came for too long.
    Idle,
    /// The head of a request did not arrive in time.
    Slow,
    /// The client stopped reading an answer.
    Unread,
    /// It is HTTP/2 and old.
    Old,
    /// It was sent away earlier, and counted then.
    Sent,
}

impl Why {
    fn count(self) {
        let reason = match self {
            Why::Idle => "idle",
            Why::Slow => "slow",
            Why::Unread => "unread",
            Why::Old => "old",
            Why::Sent => return,
        };
        counter!("simgate_connections_closed_total", "reason" => reason).increment(1);
    }
}

/// Drives a connection to its end, which comes from its client or from the clock.
pub async fn attend(connection: impl GracefulConnection, life: &Life, limits: &Connections) {
    let mut connection = pin!(connection);
    let mut times = Times::new(life, limits);
    let mut set_to = life.born + millis(PATIENCE);
    let mut alarm = pin!(sleep_until(life.at(set_to)));
    let end = poll_fn(|cx| {
        life.attended_by(cx);
        loop {
            // It ends even when there is no room to write the farewell.
            let ends = life.leaves_at_once() && !life.is_served();
            if times.left.is_none() && life.is_leaving() {
                times.left = Some(life.now());
                connection.as_mut().graceful_shutdown();
            }
            // Broken connections are the client's affair.
            if connection.as_mut().poll(cx).is_ready() || ends {
                return Poll::Ready(());
            }
            let now = life.now();
            let (due, next, why) = times.due(now);
            if due > now {
                if due < set_to {
                    set_to = due;
                    alarm.as_mut().reset(life.at(due));
                }
                ready!(alarm.as_mut().poll(cx));
                // While a request is served, perhaps nothing is due; then it is enough to look now and then.
                set_to = due.min(now + times.write_stall);
                alarm.as_mut().reset(life.at(set_to));
                continue;
            }
            why.count();
            match next {
                Next::Close => return Poll::Ready(()),
                Next::Leave => life.send_away(false),
            }
        }
    });
    end.await;
}

fn millis(duration: Duration) -> Millis {
    duration.as_millis() as Millis
}

struct Times<'a> {
    life: &'a Life,
    /// When the head that is arriving now began to arrive.
    head: Option<Millis>,
    /// When the connection was told to end.
    left: Option<Millis>,
    /// When the current round of watching answers began.
    round: Millis,
    keep_alive: Millis,
    age: Millis,
    write_stall: Millis,
}

impl Times<'_> {
    fn new<'a>(life: &'a Life, limits: &Connections) -> Times<'a> {
        Times {
            life,
            head: None,
            left: None,
            round: life.born,
            keep_alive: millis(limits.keep_alive + GRACE),
            age: millis(limits.http2_age),
            write_stall: millis(limits.write_stall),
        }
    }

    /// What must happen to the connection next, when, and why.
    fn due(&mut self, now: Millis) -> (Millis, Next, Why) {
        let life = self.life;
        let unread = self.unread(now);
        let old = match self.left {
            None if life.is_http2() => (life.born + self.age, Next::Leave, Why::Old),
            _ => (NEVER, Next::Leave, Why::Old),
        };
        let first = if old.0 < unread.0 { old } else { unread };
        let rest = self.rest(now);
        if rest.0 < first.0 { rest } else { first }
    }

    /// The same for answers. An answer without progress for a whole round makes its connection leave, and closes it
    /// after another round: other answers on that connection have this long to end.
    fn unread(&mut self, now: Millis) -> (Millis, Next, Why) {
        let life = self.life;
        let why = if self.left.is_some() { Why::Sent } else { Why::Unread };
        let stalled = life.stalled_since() + self.write_stall;
        if !life.owes() {
            return (stalled, Next::Close, why);
        }
        if self.round + self.write_stall <= now {
            self.round = now;
            match (life.next_round(), self.left) {
                (2, _) => return (now, Next::Close, why),
                (1, None) => return (now, Next::Leave, why),
                _ => {}
            }
        }
        (stalled.min(self.round + self.write_stall), Next::Close, why)
    }

    /// The same for a connection that serves nothing.
    fn rest(&mut self, now: Millis) -> (Millis, Next, Why) {
        let life = self.life;
        self.head = if life.hears_a_head() { self.head.or(Some(now)) } else { None };
        let Some(idle_since) = life.idle_since() else { return (NEVER, Next::Leave, Why::Idle) };
        match (self.left, self.head) {
            (Some(left), _) if life.leaves_at_once() => (left, Next::Close, Why::Sent),
            (Some(left), _) => (left.max(idle_since) + FAREWELL, Next::Close, Why::Sent),
            (None, Some(head)) => (head + millis(PATIENCE), Next::Close, Why::Slow),
            (None, None) if !life.has_asked() => (life.born + millis(PATIENCE), Next::Close, Why::Slow),
            (None, None) => (idle_since + self.keep_alive, Next::Leave, Why::Idle),
        }
    }
}
