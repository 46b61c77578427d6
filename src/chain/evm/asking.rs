//! Which nodes to ask and which to believe. A fact counts when a quorum says it: more than half of all nodes. A fact
//! that is the same for everybody (a receipt, a block) is asked of a quorum, and of more nodes while the answers
//! differ. The head of the chain is asked of all, and is the block that a quorum has reached. A node that contradicts
//! the quorum is demoted, and the others go on.

use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::timeout;

use super::Evm;
use crate::chain::rpc::{Provider, RpcError};
use crate::chain::{Tip, Trouble, health::Demerit};
use crate::domain::network::Network;
use crate::domain::transfer::Block;

/// After this long without an answer, another node is asked too, or the silent one is left out.
const PATIENCE: Duration = Duration::from_secs(2);
/// Honest nodes differ by less than this about how far the chain has come.
const APART: Duration = Duration::from_secs(120);

/// How many nodes must say the same: 1 of 1, 2 of 2, 2 of 3, 3 of 5.
const fn quorum(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// The answers in the order in which they came, and why the other nodes gave none.
pub(super) struct Answers<'a, T> {
    pub given: Vec<(&'a Provider, T)>,
    said: Vec<(usize, String)>,
}

/// How a question is put.
struct Manner {
    /// How many nodes are asked at first.
    at_once: usize,
    /// How long the others may still answer once there is enough.
    grace: Duration,
}

impl Evm {
    pub(super) fn quorum(&self) -> usize {
        quorum(self.nodes.len())
    }

    /// The nodes, the best first.
    fn ranked(&self) -> Vec<&Provider> {
        let mut nodes: Vec<&Provider> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| node.rank());
        nodes
    }

    /// The nodes, beginning with another one each turn; those that were wrong lately come last.
    pub(super) fn in_turn(&self, turn: usize) -> Vec<&Provider> {
        let count = self.nodes.len();
        let mut nodes: Vec<&Provider> = (0..count).map(|n| &self.nodes[(turn + n) % count]).collect();
        nodes.sort_by_key(|node| node.rank().0);
        nodes
    }

    /// Asks one node after the other, or several at once, until `enough` is true.
    async fn poll<'a, T, F>(
        &'a self,
        nodes: Vec<&'a Provider>,
        manner: Manner,
        question: impl Fn(&'a Provider) -> F + Send,
        enough: impl Fn(&[(&'a Provider, T)]) -> bool + Send,
    ) -> Answers<'a, T>
    where
        F: Future<Output = Result<T, RpcError>> + Send,
        T: Send,
    {
        let mut waiting = nodes.into_iter();
        let mut asked = FuturesUnordered::new();
        let mut unheard: Vec<(&Provider, Instant)> = Vec::new();
        let mut answers = Answers { given: Vec::new(), said: Vec::new() };
        let (mut wanted, mut until) = (manner.at_once, None);
        loop {
            while until.is_none()
                && asked.len() + answers.given.len() < wanted
                && let Some(node) = waiting.next()
            {
                if !node.is_ready() {
                    let why = node.demotion().map_or(String::new(), |demotion| demotion.said);
                    answers.said.push((node.index, format!("{} rests: it {why}", node.name)));
                    continue;
                }
                unheard.push((node, Instant::now()));
                let question = question(node);
                asked.push(async move {
                    let answer = match self.verify(node).await {
                        Ok(()) => question.await,
                        Err(error) => Err(error),
                    };
                    (node, answer)
                });
            }
            let patience =
                until.map_or(PATIENCE, |until: Instant| until.saturating_duration_since(Instant::now()));
            match timeout(patience, asked.next()).await {
                Ok(None) => break,
                Ok(Some((node, answer))) => {
                    unheard.retain(|(other, _)| other.index != node.index);
                    match answer {
                        Ok(answer) => {
                            node.succeeded();
                            answers.given.push((node, answer));
                        }
                        Err(error) => {
                            node.failed(&error);
                            answers.said.push((node.index, format!("{} {error}", node.name)));
                        }
                    }
                }
                Err(_) if until.is_some() => break,
                Err(_) => wanted += 1,
            }
            if until.is_none() && enough(&answers.given) {
                until = Some(Instant::now() + manner.grace);
            }
            if until.is_some() && manner.grace.is_zero() {
                break;
            }
            // The nodes asked so far differ: one more may decide.
            if asked.is_empty() {
                wanted = wanted.max(answers.given.len() + 1);
            }
        }
        for (node, since) in unheard {
            if since.elapsed() >= PATIENCE {
                node.failed(&RpcError::Slow);
                answers.said.push((node.index, format!("{} {}", node.name, RpcError::Slow)));
            }
        }
        answers
    }

    /// The first sound answer of these nodes.
    pub(super) async fn first_of<'a, T, F>(
        &'a self,
        nodes: Vec<&'a Provider>,
        question: impl Fn(&'a Provider) -> F + Send,
    ) -> Result<(&'a Provider, T), Trouble>
    where
        F: Future<Output = Result<T, RpcError>> + Send,
        T: Send,
    {
        let manner = Manner { at_once: 1, grace: Duration::ZERO };
        let mut answers = self.poll(nodes, manner, question, |given| !given.is_empty()).await;
        answers.given.pop().ok_or_else(|| self.too_few(answers))
    }

    pub(super) async fn any<'a, T, F>(
        &'a self,
        question: impl Fn(&'a Provider) -> F + Send,
    ) -> Result<T, Trouble>
    where
        F: Future<Output = Result<T, RpcError>> + Send,
        T: Send,
    {
        self.first_of(self.ranked(), question).await.map(|(_, answer)| answer)
    }

    /// The answers of a quorum that agrees. Nodes that say otherwise are demoted.
    pub(super) async fn agreeing<'a, T, F>(
        &'a self,
        question: impl Fn(&'a Provider) -> F + Send,
        same: impl Fn(&T, &T) -> bool + Send + Sync,
    ) -> Result<Vec<(&'a Provider, T)>, Trouble>
    where
        F: Future<Output = Result<T, RpcError>> + Send,
        T: Send,
    {
        let quorum = self.quorum();
        let decides = |given: &[(&Provider, T)]| {
            given
                .iter()
                .position(|(_, one)| given.iter().filter(|(_, other)| same(one, other)).count() >= quorum)
        };
        let manner = Manner { at_once: quorum, grace: Duration::ZERO };
        let answers = self.poll(self.ranked(), manner, question, |given| decides(given).is_some()).await;
        let Some(chosen) = decides(&answers.given) else { return Err(self.too_few(answers)) };
        let same_as_chosen = |(_, answer): &(&Provider, T)| same(&answers.given[chosen].1, answer);
        let right: Vec<bool> = answers.given.iter().map(same_as_chosen).collect();
        let mut voices = Vec::new();
        for ((node, answer), right) in answers.given.into_iter().zip(right) {
            if right {
                voices.push((node, answer));
            } else {
                node.demote(Demerit::Outvoted, "says something different from most nodes");
            }
        }
        Ok(voices)
    }

    /// The answer that a quorum gives.
    pub(super) async fn agreed<'a, T, F>(
        &'a self,
        question: impl Fn(&'a Provider) -> F + Send,
    ) -> Result<T, Trouble>
    where
        F: Future<Output = Result<T, RpcError>> + Send,
        T: PartialEq + Send + Sync,
    {
        let mut voices = self.agreeing(question, T::eq).await?;
        voices.pop().map(|(_, answer)| answer).ok_or_else(|| self.trouble("nobody answered"))
    }

    /// The answers of all nodes that answer in time: at least a quorum of them.
    pub(super) async fn all<'a, T, F>(
        &'a self,
        question: impl Fn(&'a Provider) -> F + Send,
    ) -> Result<Vec<(&'a Provider, T)>, Trouble>
    where
        F: Future<Output = Result<T, RpcError>> + Send,
        T: Send,
    {
        let quorum = self.quorum();
        let manner = Manner { at_once: self.nodes.len(), grace: PATIENCE };
        let answers = self.poll(self.ranked(), manner, question, |given| given.len() >= quorum).await;
        if answers.given.len() < quorum { Err(self.too_few(answers)) } else { Ok(answers.given) }
    }

    /// Asks all nodes and returns the answers that come in time: at least one.
    pub(super) async fn each<'a, T, F>(
        &'a self,
        question: impl Fn(&'a Provider) -> F + Send,
    ) -> Result<Vec<T>, Trouble>
    where
        F: Future<Output = Result<T, RpcError>> + Send,
        T: Send,
    {
        let manner = Manner { at_once: self.nodes.len(), grace: PATIENCE };
        let answers = self.poll(self.ranked(), manner, question, |given| !given.is_empty()).await;
        if answers.given.is_empty() {
            return Err(self.too_few(answers));
        }
        Ok(answers.given.into_iter().map(|(_, answer)| answer).collect())
    }

    /// The largest value that a quorum reaches: that many nodes say this much or more.
    pub(super) fn granted<V: Ord + Copy>(&self, values: impl IntoIterator<Item = V>) -> Option<V> {
        let mut values: Vec<V> = values.into_iter().collect();
        values.sort_unstable_by(|one, other| other.cmp(one));
        values.get(self.quorum() - 1).copied()
    }

    /// The tip that a quorum has reached. A node that is far from it is wrong or behind.
    pub(super) fn common_tip(&self, tips: &[(&Provider, Tip)]) -> Option<Tip> {
        let mut heads: Vec<&Block> = tips.iter().map(|(_, tip)| &tip.head).collect();
        heads.sort_by_key(|head| std::cmp::Reverse(head.number));
        let head = (*heads.get(self.quorum() - 1)?).clone();
        let apart = blocks_in(self.network, APART);
        for (node, tip) in tips {
            let there = tip.head.number;
            if there < head.number - apart {
                node.demote(
                    Demerit::Lagging,
                    format_args!("is at block {there}, and others at {}", head.number),
                );
            } else if there > head.number + apart && tips.len() > self.quorum() {
                node.demote(
                    Demerit::Outvoted,
                    format_args!("is at block {there}, and others at {}", head.number),
                );
            }
        }
        let safe = self.granted(tips.iter().map(|(_, tip)| tip.safe))?.min(head.number);
        let finalized = self.granted(tips.iter().map(|(_, tip)| tip.finalized))?.min(head.number);
        Some(Tip { head, safe: safe.max(finalized), finalized })
    }

    fn too_few<T>(&self, mut answers: Answers<'_, T>) -> Trouble {
        answers.said.sort();
        let mut said: Vec<String> = answers.said.into_iter().map(|(_, said)| said).collect();
        let mut names: Vec<&str> = answers.given.iter().map(|(node, _)| node.name.as_str()).collect();
        names.sort_unstable();
        if names.len() > 1 {
            said.push(format!("{} tell of different things", names.join(" and ")));
        }
        if said.is_empty() {
            said.push("no node shows what most of them agree on".into());
        }
        self.trouble(said.join("; "))
    }

    pub(super) fn trouble(&self, what: impl std::fmt::Display) -> Trouble {
        Trouble::new(format_args!("{}: {what}", self.network.as_str()))
    }
}

/// The most blocks that the network makes in this time, today or soon.
pub(super) fn blocks_in(network: Network, time: Duration) -> i64 {
    let fastest_ms = match network {
        Network::Arbitrum => 100,
        Network::Base | Network::Polygon | Network::Tron => 1_000,
    };
    time.as_millis() as i64 / fastest_ms
}

#[cfg(test)]
mod tests {
    use super::quorum;

    #[test]
    fn most_of_them() {
        assert_eq!([1, 2, 3, 4, 5].map(quorum), [1, 2, 2, 3, 3]);
    }
}
