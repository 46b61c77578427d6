//! Words of suppliers that we do not know. An adapter goes on without them; each is counted, and told once a minute.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use metrics::counter;

const EVERY: Duration = Duration::from_secs(60);
/// How much of a value is logged: it may be anything.
const MOST_CHARS: usize = 64;

/// When a field of a supplier was last told.
type Told = HashMap<(&'static str, &'static str), Instant>;

static TOLD: LazyLock<Mutex<Told>> = LazyLock::new(Mutex::default);

/// Notes that a supplier's field holds a word that we do not know.
pub fn note(supplier: &'static str, field: &'static str, value: &str) {
    counter!("simgate_supplier_unknown_values_total", "supplier" => supplier, "field" => field).increment(1);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if is_due(&mut told, (supplier, field), Instant::now()) {
        let value: String = value.chars().take(MOST_CHARS).collect();
        tracing::warn!(supplier, field, ?value, "a supplier's answer has a word that we do not know");
    }
}

fn is_due(told: &mut Told, what: (&'static str, &'static str), now: Instant) -> bool {
    if told.get(&what).is_some_and(|last| now < *last + EVERY) {
        return false;
    }
    told.insert(what, now);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_told_once_a_minute() {
        let (mut told, start) = (Told::new(), Instant::now());
        let mut at = |field, seconds| is_due(&mut told, ("one", field), start + Duration::from_secs(seconds));
        let turns = [at("status", 0), at("state", 1), at("status", 59), at("status", 60), at("status", 61)];
        assert_eq!(turns, [true, true, false, true, false]);
    }

    #[test]
    fn any_word_can_be_noted() {
        note("one", "status", &"\u{1b}[31m".repeat(10_000));
        note("one", "status", "");
    }
}
