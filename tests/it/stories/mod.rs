//! Stories about money: thousands of random ones, each played to the gateway and to a small model that knows only what
//! was agreed and what lies on the chains. `story.rs` makes them up, `play.rs` and `signing.rs` play them, `model.rs`
//! says what must come of them, `verdict.rs` compares. A story that goes wrong is shortened before it is shown.
//! SIMGATE_TEST_STORIES says how many are played; SIMGATE_TEST_STORY plays one of them, by its number.

mod chain;
mod collect;
mod model;
mod node;
mod play;
mod signing;
mod story;
mod verdict;
mod world;

use std::sync::{Arc, Mutex};

use self::play::Play;
use self::story::Step;
use self::world::World;
use crate::support::environment::number;
use crate::support::harness::{Db, on_place};

/// How many stories all tests on SQLite play together.
const STORIES: u64 = 2_000;
/// Tests that share them.
const PARTS: u64 = 4;
/// One story of so many is played on PostgreSQL too.
const SHARE: u64 = 20;
/// So many stories share a database.
const SHELF: usize = 50;

async fn play(world: &mut World, story: &[Step]) -> Result<(), String> {
    let mut play = Play::new(world).await;
    for (nth, step) in story.iter().enumerate() {
        play.take(step).await.map_err(|why| format!("step {nth}: {why}"))?;
    }
    play.end().await
}

/// Plays stories one after the other in a world of their own. Answers which of them went wrong, and why.
fn play_all(db: Db, stories: Vec<Vec<Step>>) -> Option<(usize, String)> {
    let wrong = Arc::new(Mutex::new(None));
    let found = wrong.clone();
    on_place(db, async move |place| {
        let mut world = World::new(place).await;
        for (index, story) in stories.iter().enumerate() {
            if let Err(why) = play(&mut world, story).await {
                *found.lock().unwrap() = Some((index, why));
                break;
            }
        }
        world.end().await;
    });
    let wrong = wrong.lock().unwrap();
    wrong.clone()
}

/// Leaves out what is not needed to make a story go wrong.
fn shortened(db: Db, story: Vec<Step>, why: String) -> (Vec<Step>, String) {
    let (mut shortest, mut reason) = (story, why);
    let mut size = shortest.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < shortest.len() {
            let mut shorter = shortest.clone();
            shorter.drain(from..(from + size).min(shorter.len()));
            match play_all(db, vec![shorter.clone()]) {
                Some((_, why)) => (shortest, reason) = (shorter, why),
                None => from += size,
            }
        }
        size /= 2;
    }
    (shortest, reason)
}

/// Plays the stories that fall to this part.
fn play_part(db: Db, part: u64, parts: u64, count: u64) {
    let numbers: Vec<u64> = match number("SIMGATE_TEST_STORY") {
        Some(one) => vec![one],
        None => (0..count).filter(|story| story % parts == part).collect(),
    };
    for shelf in numbers.chunks(SHELF) {
        let stories: Vec<Vec<Step>> = shelf.iter().map(|number| story::told(*number)).collect();
        let Some((index, why)) = play_all(db, stories.clone()) else { continue };
        let (number, story) = (shelf[index], stories[index].clone());
        let (story, why) = match play_all(db, vec![story.clone()]) {
            Some((_, why)) => shortened(db, story, why),
            None => (story, format!("{why} (only after other stories)")),
        };
        let steps: Vec<String> = story.iter().map(|step| format!("    {step:?}")).collect();
        panic!("story {number} went wrong: {why}\n{}", steps.join("\n"));
    }
}

mod on_sqlite {
    use super::*;

    fn part(part: u64) {
        play_part(Db::Sqlite, part, PARTS, number("SIMGATE_TEST_STORIES").unwrap_or(STORIES));
    }

    #[test]
    fn first_part() {
        part(0);
    }

    #[test]
    fn second_part() {
        part(1);
    }

    #[test]
    fn third_part() {
        part(2);
    }

    #[test]
    fn fourth_part() {
        part(3);
    }
}

mod on_postgres {
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL"]
    fn some_of_them() {
        let count = number("SIMGATE_TEST_STORIES").unwrap_or(STORIES) / SHARE;
        play_part(Db::Postgres, 0, 1, count.max(1));
    }
}
