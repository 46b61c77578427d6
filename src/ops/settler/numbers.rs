//! Gaps in a gas key's numbers. A chain takes a key's transactions in the order of their numbers: when nobody has the
//! one that it waits for, everything behind it waits for ever. That happens when nodes told of too many transactions, or
//! when a deep reorganisation took some back.

use super::{Settling, lane};
use crate::app::App;
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::scan::Halt;
use crate::store::settlements::{self, Settlement, Turn};
use crate::store::tx::Tx;
use crate::x402::settler::Sender;

/// Nodes that lag show a gap where there is none; one that lasts this long is real.
const GAP_MS: i64 = 30_000;

/// The number that the chain waits for and nobody has, and since when.
#[derive(Clone, Copy)]
pub struct Gap {
    number: i64,
    since: Time,
}

impl Settling {
    /// What lies behind a gap is given up and sent again, from the gap on.
    pub(super) async fn close_gap(
        &mut self,
        app: &App,
        sender: &Sender,
        turn: &Turn,
        pending: &[Settlement],
    ) -> Result<(), Halt> {
        let now = app.now();
        let number = sender.nodes.purse(&sender.gas.key.bytes).await?.nonce;
        let read = turn.clone();
        let next = app.store.read(move |tx| settlements::next_nonce(tx, &read)).await?;
        if next.is_none_or(|next| next <= number) || pending.iter().any(|sent| sent.tx_nonce == number) {
            self.gap = None;
            return Ok(());
        }
        match self.gap {
            Some(gap) if gap.number == number && now.is_within(GAP_MS, gap.since) => return Ok(()),
            Some(gap) if gap.number == number => {}
            _ => {
                self.gap = Some(Gap { number, since: now });
                return Ok(());
            }
        }
        self.gap = None;
        let own = turn.clone();
        let close = move |tx: &mut Tx| settlements::go_back(tx, &own, number);
        if app.store.finish(lane(turn.network), close).await? {
            tracing::error!(
                network = turn.network.as_str(),
                sender = sender.gas.key.address,
                number,
                "the gas key's numbers had a gap; what waited behind it is sent again"
            );
        }
        Ok(())
    }
}
