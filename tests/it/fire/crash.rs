//! `kill -9` under load, again and again, on one server and on three that share a PostgreSQL database. Afterwards
//! every acknowledged order is there, none is doubled, nothing stays open, supplier and gateway agree on every
//! eSIM, and the books balance. SIMGATE_TEST_KILLS says how often, SIMGATE_TEST_SEED repeats a run's choices.

use std::sync::atomic::Ordering;

use futures_util::future::join;
use serde_json::{Value, json};

use crate::support::crowd::{CREDIT, Crowd, SETTINGS};
use crate::support::dice::Dice;
use crate::support::environment::number;
use crate::support::harness::Db;
use crate::support::process::on_site;

/// In each database's part of the suite; the two together make at least 25.
fn kills() -> usize {
    number("SIMGATE_TEST_KILLS").map_or(13, |kills| (kills as usize).div_ceil(2))
}

/// How the supplier behaves while the server dies.
fn mood(dice: &mut Dice) -> Value {
    match dice.roll(6) {
        0 => json!({ "mode": "slow", "delayMs": 30 }),
        1 => json!({ "mode": "timeout", "count": 8 }),
        2 => json!({ "mode": "malformed", "count": 8 }),
        3 => json!({ "mode": "duplicate", "count": 4 }),
        _ => json!({ "mode": "ok" }),
    }
}

fn one_server(db: Db) {
    on_site(db, SETTINGS.to_vec(), async |site| {
        let mut dice = Dice::new();
        let mut server = site.start().await;
        let (_, key) = site.partner(&server, "Crash Travel", CREDIT).await;
        let crowd = Crowd::new(site, &key);
        for round in 0..kills() {
            *crowd.bases.lock().unwrap() = vec![server.base.clone()];
            site.supplier(&server, mood(&mut dice)).await;
            let mut moment = Dice(dice.roll(u64::MAX));
            let killer = async {
                moment.pause(700).await;
                server.kill();
            };
            join(crowd.run(round, &mut dice, false), killer).await;
            // Some die again while they start, or while they pick up what the last one left.
            if dice.roll(3) == 0 {
                let mut short_lived = site.spawn();
                dice.pause(1_500).await;
                short_lived.kill();
            }
            server = site.start().await;
            site.supplier(&server, json!({ "mode": "ok" })).await;
            crowd.check(&server).await;
            crowd.call_again(&server).await;
        }
        crowd.check(&server).await;
        eprintln!("{} calls, {} kills", crowd.memory.all().len(), kills());
    });
}

#[test]
fn killed_again_and_again_sqlite() {
    one_server(Db::Sqlite);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn killed_again_and_again_postgres() {
    one_server(Db::Postgres);
}

/// Clients go on all the time and repeat at another server what the dead one did not answer.
#[test]
#[ignore = "needs PostgreSQL"]
fn three_servers_on_one_database() {
    on_site(Db::Postgres, SETTINGS.to_vec(), async |site| {
        let mut dice = Dice::new();
        let first = site.start().await;
        let (_, key) = site.partner(&first, "Crash Travel", CREDIT).await;
        let mut servers = vec![first, site.start().await, site.start().await];
        let crowd = Crowd::new(site, &key);
        *crowd.bases.lock().unwrap() = servers.iter().map(|server| server.base.clone()).collect();
        let mut choices = Dice(dice.roll(u64::MAX));
        let killer = async {
            for _ in 0..kills().min(8) {
                choices.pause(800).await;
                let victim = choices.roll(3) as usize;
                servers[victim].kill();
                choices.pause(800).await;
                servers[victim] = site.start().await;
                crowd.bases.lock().unwrap()[victim] = servers[victim].base.clone();
                site.supplier(&servers[victim], mood(&mut choices)).await;
            }
            site.supplier(&servers[0], json!({ "mode": "ok" })).await;
            crowd.closing.store(true, Ordering::Relaxed);
        };
        join(crowd.run(0, &mut dice, true), killer).await;
        for server in &servers {
            crowd.check(server).await;
        }
        crowd.call_again(&servers[0]).await;
        eprintln!("{} calls, {} kills", crowd.memory.all().len(), kills().min(8));
    });
}
