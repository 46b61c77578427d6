//! How much a node lets us ask for at once. Each provider has its own limits and changes them, so we learn them: less
//! after a refusal, and more again after many good answers.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    size: i64,
    most: i64,
    successes: u32,
}

const SUCCESSES_TO_GROW: u32 = 20;

impl Limit {
    pub const fn new(first: i64, most: i64) -> Limit {
        Limit { size: first, most, successes: 0 }
    }

    pub fn size(&self) -> i64 {
        self.size
    }

    /// Notes that this much was too much.
    pub fn shrink(&mut self, asked: i64) {
        *self = Limit { size: (asked.min(self.size) / 2).max(1), successes: 0, ..*self };
    }

    /// Notes a success. Only a question that used the whole limit says anything about it.
    pub fn worked(&mut self, asked: i64) {
        if asked < self.size {
            return;
        }
        self.successes += 1;
        if self.successes >= SUCCESSES_TO_GROW {
            *self = Limit { size: (self.size * 2).min(self.most), successes: 0, ..*self };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_shrinks_at_once_and_grows_slowly() {
        let mut limit = Limit::new(500, 600);
        limit.shrink(500);
        assert_eq!(limit.size, 250);
        // Less was asked for than the limit allowed.
        limit.shrink(10);
        assert_eq!(limit.size, 5);
        let mut grow = |asked: i64| (0..SUCCESSES_TO_GROW).for_each(|_| limit.worked(asked));
        grow(4);
        grow(5);
        assert_eq!(limit.size, 10);
        for _ in 0..10 {
            limit.shrink(limit.size);
        }
        assert_eq!(limit.size, 1);
        for _ in 0..20 {
            (0..SUCCESSES_TO_GROW).for_each(|_| limit.worked(limit.size));
        }
        assert_eq!(limit.size, 600);
    }
}
