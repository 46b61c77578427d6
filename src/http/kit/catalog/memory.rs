//! Earlier answers, by what was asked for. The number of bytes is limited; what is asked for often stays.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// The usual size of one answer.
const USUAL_BYTES: usize = 1_024;
/// How many parts threads can use at once. An answer larger than a part is not kept, so the number is fixed.
const PARTS: usize = 4;
/// What the memory itself needs for each answer.
const OVERHEAD_BYTES: usize = 64;

/// Something that can be kept.
pub trait Kept {
    fn bytes(&self) -> usize;
}

impl Kept for str {
    fn bytes(&self) -> usize {
        self.len()
    }
}

#[derive(Clone)]
struct ByBytes;

impl<V: Kept + ?Sized> Weighter<String, Arc<V>> for ByBytes {
    fn weight(&self, key: &String, value: &Arc<V>) -> u64 {
        (key.len() + value.bytes() + OVERHEAD_BYTES) as u64
    }
}

pub struct Memory<V: Kept + ?Sized>(Cache<String, Arc<V>, ByBytes>);

impl<V: Kept + ?Sized> Memory<V> {
    pub fn new(most_bytes: usize) -> Memory<V> {
        let options = OptionsBuilder::new()
            .shards(PARTS)
            .estimated_items_capacity(most_bytes / USUAL_BYTES)
            .weight_capacity(most_bytes as u64)
            .build();
        let options = options.expect("both capacities are given");
        Memory(Cache::with_options(
            options,
            ByBytes,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        ))
    }

    pub fn get(&self, asked: &str) -> Option<Arc<V>> {
        self.0.get(asked)
    }

    pub fn put(&self, asked: &str, answer: Arc<V>) {
        self.0.insert(asked.into(), answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_fuller_than_it_may_be() {
        let memory: Memory<str> = Memory::new(64 * 1024);
        let answer: Arc<str> = "x".repeat(1_000).into();
        for number in 0..1_000 {
            memory.put(&number.to_string(), answer.clone());
        }
        let kept = (0..1_000).filter(|number| memory.get(&number.to_string()).is_some()).count();
        assert!((1..=64).contains(&kept), "{kept}");
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let memory: Memory<str> = Memory::new(10_000);
        memory.put("large", "x".repeat(20_000).into());
        assert!(memory.get("large").is_none());
    }

    #[test]
    fn a_fifth_of_it_may_be_one_thing() {
        let memory: Memory<str> = Memory::new(1_000_000);
        memory.put("large", "x".repeat(200_000).into());
        assert!(memory.get("large").is_some());
    }
}
