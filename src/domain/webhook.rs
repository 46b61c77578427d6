//! A webhook: where a partner wants its events sent to.

use super::event::EventKind;
use super::ids::{AccountNo, WebhookId};
use super::time::Time;
use super::words::words;

words! {
    pub enum WebhookStatus: ALL, parse {
        /// It has not accepted its test event yet, and gets no others.
        Pending = "PENDING",
        Active = "ACTIVE",
        /// By its partner, by the operator, or because it accepted nothing for a day.
        Disabled = "DISABLED",
    }
}

/// How many webhooks an account may have.
pub const MOST: i64 = 10;

/// How long a key that was replaced still signs beside the new one.
pub const OVERLAP_MS: i64 = 24 * 60 * 60 * 1_000;

/// What the id of a delivery begins with.
pub const DELIVERY_PREFIX: &str = "dlv_";
/// The kind of a test event.
pub const TEST_KIND: &str = "webhook.test";

#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: WebhookId,
    pub account: AccountNo,
    pub url: String,
    /// The kinds of events that are wanted; all when empty.
    pub kinds: Vec<EventKind>,
    pub description: String,
    pub status: WebhookStatus,
    /// The key of its signatures, encrypted.
    pub secret: Vec<u8>,
    /// The key before, which signs too until then.
    pub old_secret: Option<Vec<u8>>,
    pub old_until: Option<Time>,
    /// Every event up to this place was delivered, is waiting or was not wanted.
    pub cursor: i64,
    /// Counted up by every change but those that deliveries make: what was begun before does not count after it.
    pub edition: i64,
    /// The id of the test event that it must accept first.
    pub test: String,
    /// Since when it has accepted nothing, though it was tried.
    pub failing_since: Option<Time>,
    /// How often it was tried since then.
    pub failures: i64,
    /// Until when it is left alone.
    pub resting_until: Option<Time>,
    pub accepted_at: Option<Time>,
    pub created_at: Time,
    pub disabled_at: Option<Time>,
}

impl Webhook {
    /// The kinds of events that it gets.
    pub fn wanted(&self) -> &[EventKind] {
        if self.kinds.is_empty() { &EventKind::ALL } else { &self.kinds }
    }

    /// Leads it elsewhere. Nobody there has agreed yet to get anything: `test` asks.
    pub fn lead_to(&mut self, url: String, test: String) {
        self.url = url;
        self.test = test;
        self.accepted_at = None;
        self.status = match self.status {
            WebhookStatus::Pending | WebhookStatus::Active => WebhookStatus::Pending,
            WebhookStatus::Disabled => WebhookStatus::Disabled,
        };
        self.begin_anew();
    }

    pub fn disable(&mut self, now: Time) {
        self.status = WebhookStatus::Disabled;
        self.disabled_at = self.disabled_at.or(Some(now));
    }

    /// Sends it events again, from the end of the log on: what it missed can be replayed.
    pub fn enable(&mut self, end: i64) {
        if self.status == WebhookStatus::Disabled {
            self.status =
                if self.accepted_at.is_some() { WebhookStatus::Active } else { WebhookStatus::Pending };
            self.disabled_at = None;
            self.cursor = self.cursor.max(end);
            self.begin_anew();
        }
    }

    /// Takes it back to an earlier place of the log. It is tried at once, and is as healthy as before.
    pub fn rewind(&mut self, cursor: i64) {
        self.cursor = cursor;
        self.resting_until = None;
    }

    fn begin_anew(&mut self) {
        self.failing_since = None;
        self.failures = 0;
        self.resting_until = None;
    }
}

/// A try to deliver an event.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub no: i64,
    pub webhook: WebhookId,
    /// The event's place in the log; `None` for a test.
    pub event: Option<i64>,
    /// The id that was sent.
    pub message: String,
    pub kind: String,
    /// Which try it was; `None` for one by hand.
    pub attempt: Option<i64>,
    pub at: Time,
    pub ms: i64,
    /// The HTTP status and the beginning of the answer, or why there is none.
    pub status: Option<i64>,
    pub answer: Option<String>,
    pub trouble: Option<String>,
}

impl Delivery {
    pub fn accepted(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A webhook that has been refusing for a while.
    fn failing() -> Webhook {
        let at = Time::from_micros(0);
        Webhook {
            id: WebhookId::from_text("whk_1"),
            account: AccountNo(1),
            url: "https://hooks.example/".into(),
            kinds: Vec::new(),
            description: String::new(),
            status: WebhookStatus::Active,
            secret: Vec::new(),
            old_secret: None,
            old_until: None,
            cursor: 9,
            edition: 0,
            test: String::new(),
            failing_since: Some(at),
            failures: 7,
            resting_until: Some(at.plus_days(1)),
            accepted_at: Some(at),
            created_at: at,
            disabled_at: None,
        }
    }

    #[test]
    fn a_replay_changes_nothing_about_health_but_is_tried_at_once() {
        let mut webhook = failing();
        webhook.rewind(3);
        assert_eq!((webhook.cursor, webhook.resting_until), (3, None));
        assert_eq!((webhook.failing_since, webhook.failures), (failing().failing_since, 7));
    }

    #[test]
    fn an_enabled_webhook_begins_anew_at_the_end_of_the_log() {
        let mut webhook = failing();
        webhook.disable(Time::from_micros(5));
        webhook.enable(20);
        assert_eq!((webhook.status, webhook.cursor, webhook.disabled_at), (WebhookStatus::Active, 20, None));
        assert_eq!((webhook.failing_since, webhook.failures, webhook.resting_until), (None, 0, None));
    }
}
