//! Follows every network, each in a task of its own: one network's trouble never delays another.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::halted;
use crate::app::App;
use crate::chain::Chain;
use crate::ops::jobs;
use crate::ops::scan::{Halt, Pace, Scanner};
use crate::telemetry::EveryMinute;

/// The pause while nobody waits for money; a new invoice ends it.
const EASY: Duration = Duration::from_secs(5);
/// The pause after trouble, growing up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

pub async fn run(app: App, chain: Arc<dyn Chain>, stop: CancellationToken) {
    let network = chain.network().as_str();
    let every = match app.settings.settlement.networks.get(&chain.network()) {
        Some(terms) if terms.is_simulated() => Duration::from_millis(200),
        Some(terms) => Duration::from_millis(terms.poll_ms.unsigned_abs()),
        None => return,
    };
    let mut scanner = Scanner::new(chain);
    let (mut trouble_pause, lines) = (None, EveryMinute::default());
    let mut expected = app.expected.subscribe();
    loop {
        expected.mark_unchanged();
        let Some(round) = stop.run_until_cancelled(scanner.round(&app)).await else { break };
        let pause = match round {
            Ok(pace) => {
                if trouble_pause.take().is_some() {
                    tracing::info!(network, "the chain answers again");
                }
                if pace == Pace::Brisk { every } else { EASY.max(every) }
            }
            Err(halt) => {
                let pause = trouble_pause.map_or(FIRST_PAUSE, |last: Duration| (last * 2).min(LONGEST_PAUSE));
                let sentence = match &halt {
                    Halt::Chain(_) => "the chain cannot be followed; trying again",
                    Halt::Ours(_) => "the chain's blocks cannot be stored; trying again",
                };
                halted(&halt, &lines, network, sentence);
                trouble_pause = Some(pause);
                pause
            }
        };
        jobs::finished();
        let wait = async {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = expected.changed(), if pause == EASY => {}
            }
        };
        if stop.run_until_cancelled(wait).await.is_none() {
            break;
        }
    }
    if let Err(error) = scanner.give_up_turn(&app).await {
        tracing::debug!(network, %error, "the turn could not be given up; it ends by itself");
    }
}
