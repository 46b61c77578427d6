//! Settling by a facilitator. It is asked again while its answer is missing: the token uses a nonce once, however
//! often it is asked for. What it says is written to the log; what arrived is read off the chain.

use crate::domain::authorization::{Authorization, AuthorizationEvent};
use crate::error::Result;
use crate::ops::scan::Halt;
use crate::ops::x402;
use crate::store::authorizations;
use crate::store::tx::Tx;
use crate::telemetry::EveryMinute;
use crate::x402::remote::Said;
use crate::x402::settler::SettledBy;

use super::{Round, arrived, terminal};

/// How long an answer may take before the question is asked again; longer than the question itself may take.
const ASK_AGAIN_MS: i64 = 65_000;
/// The pause after an answer that was a no, or none.
const PAUSE_MS: i64 = 10_000;

impl Round<'_> {
    /// Writes down that the signature leaves us, and lets it. The answer is awaited by a task of its own.
    pub(super) async fn ask_facilitator(&self, authorization: &Authorization) -> Result<(), Halt> {
        let Some(domain) = self.terminal.domain() else { return Ok(()) };
        let requirements =
            x402::requirements(self.terminal, &domain, &x402::bill_of(self.app, authorization).await?);
        let (asked, now) = (authorization.clone(), self.now);
        let write = move |tx: &mut Tx| {
            let ours = authorizations::advance(tx, &asked, AuthorizationEvent::Sent, None, now)?;
            authorizations::rest(tx, &asked.id, now.plus_millis(ASK_AGAIN_MS))?;
            Ok(ours)
        };
        if !self.app.store.finish(authorization.account.0, write).await? {
            return Ok(());
        }
        let (app, authorization, network) = (self.app.clone(), authorization.clone(), self.turn.network);
        let task = async move {
            let Some((settler, terminal)) = terminal(&app, network) else { return };
            let SettledBy::Facilitator(facilitator) = &settler.by else { return };
            let name = network.as_str();
            static LINES: EveryMinute = EveryMinute::new();
            match facilitator.settle(&authorization, &requirements).await {
                Said::Settled(hash) => {
                    let look = async {
                        let tip = terminal.chain().tip().await?;
                        arrived(&app, terminal, &hash, &tip).await
                    };
                    if look.await.is_err() {
                        tracing::debug!(
                            network = name,
                            "a settled payment is not seen yet; the scanner will find it"
                        );
                    }
                }
                Said::Failed(why) => {
                    if let Some(left_out) = LINES.turn() {
                        tracing::warn!(network = name, why, left_out, "the facilitator settled no payment");
                    }
                }
                Said::Doubt(why) => {
                    if let Some(left_out) = LINES.turn() {
                        tracing::warn!(network = name, left_out, "the facilitator {why}");
                    }
                }
            }
            let (id, until) = (authorization.id.clone(), app.now().plus_millis(PAUSE_MS));
            let rested =
                app.store.finish(authorization.account.0, move |tx| authorizations::rest(tx, &id, until));
            if let Err(error) = rested.await {
                tracing::debug!(network = name, %error, "a payment is looked at later than it could be");
            }
        };
        self.app.tasks.spawn(task);
        Ok(())
    }
}
