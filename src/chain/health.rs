//! How well a node does. A node that is silent, or on another chain, is left alone for a while; one that was wrong is
//! asked after all others. Both are tried again, after pauses that grow while nothing improves.

use crate::domain::words::words;

use std::time::{Duration, Instant};

/// After this many outages in a row the node is left alone.
const PATIENCE: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// A silent node that comes back is wanted soon; one that was wrong can wait.
const LONGEST_REST: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// A node that was good for this long, or for twice its last demotion, starts with the shortest pause again.
const PROBATION: Duration = Duration::from_secs(60);

words! {
    /// Why a node does not count like the others.
    pub enum Demerit: ALL {
        /// It does not answer, or nothing readable.
        Silent = "silent",
        /// It asks us to wait.
        Busy = "busy",
        /// It is on another chain, or does not show our tokens.
        Foreign = "foreign",
        /// Most others say something else.
        Outvoted = "outvoted",
        /// Its newest block is far behind the others'.
        Lagging = "lagging",
        /// It shows another block than most others.
        Forked = "forked",
        /// It leaves out logs of transactions that it has.
        Omitting = "omitting",
    }
}

impl Demerit {
    /// Whether a node with this demerit is left alone: asking it is useless or unwelcome. The others may be asked when
    /// no better node is left, because their answers are compared anyway.
    fn rests(self) -> bool {
        match self {
            Demerit::Silent | Demerit::Busy | Demerit::Foreign => true,
            Demerit::Outvoted | Demerit::Lagging | Demerit::Forked | Demerit::Omitting => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demotion {
    pub demerit: Demerit,
    /// What the node did: a sentence continued from its name.
    pub said: String,
    until: Instant,
    pause: Duration,
}

#[derive(Default)]
pub struct Health {
    /// Failures of any sort in a row: the fewer, the sooner the node is asked.
    disappointments: u32,
    /// Outages in a row: after `PATIENCE` of them the node is left alone.
    outages: u32,
    demotion: Option<Demotion>,
    /// When the last demotion ended, and its pause.
    past: Option<(Instant, Duration)>,
}

impl Health {
    /// Whether the node may be asked now. After its rest one caller is let through, and the others wait for the
    /// outcome, at most for `trial`.
    pub fn is_ready(&mut self, now: Instant, trial: Duration) -> bool {
        match &mut self.demotion {
            Some(demotion) if demotion.demerit.rests() => {
                let over = now >= demotion.until;
                if over {
                    demotion.until = now + trial;
                }
                over
            }
            Some(_) | None => true,
        }
    }

    pub fn demotion(&self) -> Option<&Demotion> {
        self.demotion.as_ref()
    }

    /// The lower, the sooner it is asked.
    pub fn rank(&self, now: Instant) -> (bool, u32) {
        let demoted = self.demotion.as_ref().is_some_and(|demotion| now < demotion.until);
        (demoted, self.disappointments)
    }

    /// Notes a good answer. True when it ends a demotion.
    pub fn succeeded(&mut self, now: Instant) -> bool {
        (self.disappointments, self.outages) = (0, 0);
        let ends = |demotion: &mut Demotion| demotion.demerit.rests() || now >= demotion.until;
        let Some(demotion) = self.demotion.take_if(ends) else { return false };
        self.past = Some((now, demotion.pause));
        true
    }

    /// Notes a failure. True after enough outages in a row that the node should rest.
    pub fn disappointed(&mut self, outage: bool) -> bool {
        self.disappointments = self.disappointments.saturating_add(1);
        self.outages = if outage { self.outages.saturating_add(1) } else { 0 };
        self.outages >= PATIENCE
    }

    /// Demotes the node for a while, at least for `least`. True when this demerit is new.
    pub fn demote(&mut self, now: Instant, demerit: Demerit, said: String, least: Duration) -> bool {
        // Only a node that is wrong again after a pause gets a longer one.
        if let Some(demotion) = &self.demotion
            && now < demotion.until
            && !demotion.demerit.rests()
            && !demerit.rests()
        {
            return false;
        }
        let last = match (&self.demotion, self.past) {
            (Some(demotion), _) => Some(demotion.pause),
            (None, Some((ended, pause))) if now < ended + PROBATION.max(pause * 2) => Some(pause),
            (None, _) => None,
        };
        let longest = if demerit.rests() { LONGEST_REST } else { LONGEST_PAUSE };
        let pause = last.map_or(FIRST_PAUSE, |last| (last * 2).min(longest)).max(least).min(LONGEST_PAUSE);
        let before = self.demotion.replace(Demotion { demerit, said, until: now + pause, pause });
        before.is_none_or(|before| before.demerit != demerit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIAL: Duration = Duration::from_secs(10);

    #[test]
    fn a_silent_node_is_left_alone_and_tried_by_one_at_a_time() {
        let (mut health, now) = (Health::default(), Instant::now());
        assert!(!health.disappointed(true) && !health.disappointed(true) && health.is_ready(now, TRIAL));
        assert!(health.disappointed(true), "three times in a row");
        assert!(health.demote(now, Demerit::Silent, "is silent".into(), Duration::ZERO));
        assert!(!health.is_ready(now, TRIAL));
        let later = now + FIRST_PAUSE;
        assert!(health.is_ready(later, TRIAL), "one may try");
        assert!(!health.is_ready(later, TRIAL), "and only one");
        assert!(!health.demote(later, Demerit::Silent, "is silent".into(), Duration::ZERO));
        assert!(
            !health.is_ready(later + FIRST_PAUSE, TRIAL) && health.is_ready(later + FIRST_PAUSE * 2, TRIAL)
        );
        assert!(health.succeeded(later) && health.is_ready(later, TRIAL));
        // The wait that it asks for is granted, up to a limit.
        assert!(health.demote(later, Demerit::Busy, "is busy".into(), Duration::from_secs(90)));
        assert!(!health.is_ready(later + Duration::from_secs(89), TRIAL));
        assert!(health.is_ready(later + Duration::from_secs(90), TRIAL));
        health.demote(later, Demerit::Busy, "is busy".into(), Duration::from_secs(86_400));
        assert!(health.is_ready(later + LONGEST_PAUSE, TRIAL));
    }

    #[test]
    fn a_liar_is_asked_last_and_for_longer_each_time() {
        let (mut health, mut now) = (Health::default(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..14 {
            health.demote(now, Demerit::Outvoted, "lies".into(), Duration::ZERO);
            assert!(health.rank(now).0 && health.is_ready(now, TRIAL), "last, but not never");
            assert!(!health.demote(now, Demerit::Forked, "lies".into(), Duration::ZERO), "once is enough");
            assert!(!health.succeeded(now), "one good answer is not enough");
            let pause = health.demotion().unwrap().pause;
            pauses.push(pause.as_millis());
            now += pause;
            assert!(!health.rank(now).0 && health.succeeded(now));
        }
        assert_eq!(pauses[..4], [500, 1_000, 2_000, 4_000]);
        assert_eq!(pauses[13], LONGEST_PAUSE.as_millis());
        now += LONGEST_PAUSE * 3;
        health.demote(now, Demerit::Outvoted, "lies".into(), Duration::ZERO);
        assert_eq!(health.demotion().unwrap().pause, FIRST_PAUSE, "it was good for long enough");
    }
}
