//! Waits for somebody else's work by reading rows: the worker may be in another process, or gone.

use std::time::Duration;

use crate::app::App;
use crate::domain::time::Time;

const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How long a caller waits for an answer.
pub(super) struct Patience {
    until: Time,
    pause: Duration,
}

impl Patience {
    pub(super) fn new(app: &App) -> Patience {
        Patience { until: app.now().plus_millis(app.settings.answer_within_ms), pause: FIRST_PAUSE }
    }

    /// Pauses before the next look, longer each time. False when the caller has waited long enough.
    pub(super) async fn lasts(&mut self, app: &App) -> bool {
        if self.until <= app.now() {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}
