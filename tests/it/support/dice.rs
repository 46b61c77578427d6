//! Choices by chance that can be repeated.

use std::time::Duration;

use crate::support::environment::number;

/// Choices that a printed seed repeats (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn new() -> Dice {
        let seed = number("SIMGATE_TEST_SEED").unwrap_or_else(|| simgate::vault::random() as u64);
        eprintln!("SIMGATE_TEST_SEED={seed}");
        Dice(seed)
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    pub async fn pause(&mut self, most_ms: u64) {
        tokio::time::sleep(Duration::from_millis(self.roll(most_ms))).await;
    }
}
