//! Reads ranges of blocks. New blocks are read several times, each time by another node, so that one node shows what
//! another leaves out. Blocks that are read only once are read by a quorum, and each transfer that some of its nodes do
//! not show is looked up by its transaction.

use std::sync::{MutexGuard, PoisonError};

use super::Evm;
use super::wire;
use crate::chain::health::Demerit;
use crate::chain::rpc::{Provider, RpcError};
use crate::chain::{Scanned, Trouble, Watched};
use crate::domain::transfer::Sighting;

/// Counts how often the newest blocks were read: each pass begins with another node.
#[derive(Default)]
pub(super) struct Passes {
    /// The range that was asked for last.
    last: Option<(i64, i64)>,
    turn: usize,
}

impl Passes {
    /// The node to begin with. The ranges of one pass follow each other, and all lead to the same block.
    fn turn(&mut self, from: i64, to: i64) -> usize {
        let last = self.last.replace((from, to));
        if last.is_some_and(|(before, end)| from <= before || to != end) {
            self.turn = self.turn.wrapping_add(1);
        }
        self.turn
    }
}

impl Evm {
    pub(super) async fn scan_in_turn(
        &self,
        from: i64,
        to: i64,
        watched: &Watched,
    ) -> Result<Scanned, Trouble> {
        let mut nodes = self.in_turn(self.passes().turn(from, to));
        loop {
            let question = |node| self.scan_at(node, from, to, watched);
            let (node, scanned) = self.first_of(nodes.clone(), question).await?;
            let Some((demerit, said)) = self.objection(node, from, &scanned, watched).await? else {
                return Ok(scanned);
            };
            node.demote(demerit, said);
            nodes.retain(|other| other.index != node.index);
        }
    }

    fn passes(&self) -> MutexGuard<'_, Passes> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The case against a node's account of a range: most others have another block at its end, or it leaves out the
    /// logs of a transaction whose receipt it has.
    async fn objection(
        &self,
        node: &Provider,
        from: i64,
        scanned: &Scanned,
        watched: &Watched,
    ) -> Result<Option<(Demerit, String)>, Trouble> {
        if self.nodes.len() == 1 {
            return Ok(None);
        }
        let last = scanned.last.number;
        if self.agreed(|node| self.block_at(node, last)).await?.as_ref() != Some(&scanned.last) {
            return Ok(Some((Demerit::Forked, format!("shows another block {last} than most nodes"))));
        }
        let missed = self.known().missed(from, scanned, watched);
        let Some(place) = missed else { return Ok(None) };
        let hash = wire::spell(self.kind, &place.0);
        match self.transaction_at(node, &hash).await {
            Ok(Some(mined)) if mined.block.hash == wire::spell(self.kind, &place.1) => {
                Ok(Some((Demerit::Omitting, format!("leaves out the logs of {hash}"))))
            }
            Ok(_) => {
                self.known().forget(&place);
                Ok(None)
            }
            Err(_) => Ok(None),
        }
    }

    pub(super) async fn scan_by_quorum(
        &self,
        from: i64,
        to: i64,
        watched: &Watched,
    ) -> Result<Scanned, Trouble> {
        let width = self.granted(self.nodes.iter().map(|node| node.window().size())).unwrap_or(1);
        let to = to.min(from.saturating_add(width - 1));
        let question = |node| self.scan_all_at(node, from, to, watched);
        let voices = self.agreeing(question, |one: &Scanned, other| one.last == other.last).await?;
        self.merged(&voices).await
    }

    /// The whole range, in as many steps as the node wants.
    async fn scan_all_at(
        &self,
        node: &Provider,
        from: i64,
        to: i64,
        watched: &Watched,
    ) -> Result<Scanned, RpcError> {
        let mut scanned = self.scan_at(node, from, to, watched).await?;
        while scanned.last.number < to {
            let next = self.scan_at(node, scanned.last.number + 1, to, watched).await?;
            scanned.last = next.last;
            scanned.sightings.extend(next.sightings);
        }
        Ok(scanned)
    }

    /// The transfers that all of them show, and those of the others that a quorum confirms.
    async fn merged(&self, voices: &[(&Provider, Scanned)]) -> Result<Scanned, Trouble> {
        let Some((_, first)) = voices.first() else { return Err(self.trouble("nobody answered")) };
        let mut merged = Scanned { last: first.last.clone(), sightings: Vec::new() };
        for sighting in voices.iter().flat_map(|(_, scanned)| &scanned.sightings) {
            if merged.sightings.contains(sighting) {
                continue;
            }
            let (shown, hidden): (Vec<_>, Vec<_>) =
                voices.iter().partition(|(_, scanned)| scanned.sightings.contains(sighting));
            let is_true = hidden.is_empty() || self.is_confirmed(sighting).await?;
            let (wrong, demerit) =
                if is_true { (hidden, Demerit::Omitting) } else { (shown, Demerit::Outvoted) };
            for (node, _) in wrong {
                node.demote(demerit, format_args!("is wrong about {}", sighting.id));
            }
            if is_true {
                merged.sightings.push(sighting.clone());
            }
        }
        merged.sightings.sort_by_key(|sighting| sighting.block.number);
        Ok(merged)
    }

    async fn is_confirmed(&self, sighting: &Sighting) -> Result<bool, Trouble> {
        // Recipients are left out: a scan spells ours as they were given to us.
        let plain = |sighting: &Sighting| Sighting { recipient: String::new(), ..sighting.clone() };
        let mined = self.transaction_by_quorum(&sighting.id.tx_hash).await?;
        Ok(mined.is_some_and(|mined| mined.transfers.iter().any(|seen| plain(seen) == plain(sighting))))
    }
}

#[cfg(test)]
mod tests {
    use super::Passes;

    #[test]
    fn each_pass_begins_with_another_node() {
        let mut passes = Passes::default();
        // In one range, and in three of them, as far from the first block as one likes.
        let ranges = [(936, 1_000), (937, 1_001), (938, 1_002), (960, 1_002), (990, 1_002), (938, 1_002)];
        let turns = ranges.map(|(from, to)| passes.turn(from, to));
        assert_eq!(turns, [0, 1, 2, 2, 2, 3]);
    }
}
