//! A real server before a real node while the machine's clock jumps: two days on, back, and an hour back. Money comes in
//! all the while, and afterwards nobody waits for what was promised by a clock that was wrong. libfaketime sets the
//! clock that the server reads; the node's is the right one.

use std::fs::File;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::desk::{CONFIRMATIONS, LAG};
use super::processes::{Partner, on_node};
use crate::support::harness::{Db, each_database, reply, until};
use crate::support::process::{Server, Site};

/// For so long security.txt says that it is good: so it tells the time.
const GOOD_FOR_DAYS: i64 = 90;

/// Where Debian puts it.
fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|folder| folder.path());
    folders.map(|folder| folder.join("faketime/libfaketime.so.1")).find(|file| file.exists())
}

fn write_clock(site: &Site, seconds: i64) {
    let (new, clock) = (site.place.dir.join("clock.new"), site.place.dir.join("clock"));
    std::fs::write(&new, format!("{seconds:+}")).unwrap();
    std::fs::rename(new, clock).unwrap();
}

/// Sets the clock this far from the right one, and waits until the server goes by it. On PostgreSQL it goes by the
/// database's, and is back at that soon.
async fn set_clock(site: &Site, server: &Server, seconds: i64) {
    write_clock(site, seconds);
    let shown = match site.place.db {
        Db::Sqlite => seconds,
        Db::Postgres => 0,
    };
    until("the server has seen the clock", async || {
        let text = reply(site.client.get(format!("{}/.well-known/security.txt", server.base))).await.text;
        let expires: jiff::Timestamp =
            text.lines().find_map(|line| line.strip_prefix("Expires: "))?.parse().unwrap();
        let ahead = expires.as_second()
            - GOOD_FOR_DAYS * 86_400
            - simgate::clock::Clock::default().now().micros() / 1_000_000;
        ((ahead - shown).abs() < 600).then_some(())
    })
    .await;
}

/// The turn at POLYGON is that of somebody who keeps it by the right clock.
async fn until_turn_is_sound(site: &Site) {
    until("the turn is sound", async || {
        let health: Value = site.try_cli(&["doctor"]).await;
        let lines = health["checks"].as_array()?;
        let turn = lines.iter().find(|line| {
            line["check"] == "turn" && line["finding"].as_str().unwrap().starts_with("POLYGON")
        })?;
        (turn["health"] == "ok").then_some(())
    })
    .await;
}

async fn ask_for_code(site: &Site, server: &Server) {
    let request = site.client.post(format!("{}/api/agentic/auth/request-otp", server.base));
    let body = json!({ "email": "late@example.com" }).to_string();
    reply(request.header("content-type", "application/json").body(body)).await.expect(200);
}

async fn mails(site: &Site, server: &Server) -> usize {
    let url = format!("{}/sandbox/outbox?email=late@example.com", server.base);
    reply(site.client.get(url)).await.expect(200)["emails"].as_array().unwrap().len()
}

fn check(db: Db) {
    let library = library().expect("libfaketime is there: ./test installs it");
    on_node(db, async move |site, node| {
        let mut settings = std::fs::read_to_string(site.place.dir.join("simgate.toml")).unwrap();
        settings.push_str("security_contact = \"security@example.com\"\n");
        std::fs::write(site.place.dir.join("simgate.toml"), settings).unwrap();
        write_clock(site, 0);
        let script = format!(
            "export LD_PRELOAD={} FAKETIME_TIMESTAMP_FILE={}/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 && exec",
            library.display(),
            site.place.dir.display()
        );
        let log = File::create(site.place.dir.join("log")).unwrap();
        let server = site.start_prepared(&script, log).await;
        let (_, key) = site.partner(&server, "Jumping Travel", "0").await;
        let partner = Partner { site, node, key };
        let mut invoices = Vec::new();
        let unpaid = partner.invoice(&server, 15).await;
        // Opened before the clock jumps, paid and credited after it; then it jumps back.
        for (dollars, seconds) in [(10, 0), (20, 2 * 86_400), (40, -3_600)] {
            let invoice = partner.invoice(&server, dollars).await;
            set_clock(site, &server, seconds).await;
            partner.pay(&invoice).await;
            node.mine(CONFIRMATIONS + LAG).await;
            partner.until_confirmed(&server, &invoice).await;
            invoices.push(invoice);
            if seconds > 0 {
                // Two days ahead by the clock, and not ahead of the chain.
                assert_eq!(partner.status(&server, &unpaid).await["status"], "PENDING");
                ask_for_code(site, &server).await;
                assert_eq!(mails(site, &server).await, 1);
            }
            set_clock(site, &server, 0).await;
            until_turn_is_sound(site).await;
            assert_eq!(reply(site.client.get(format!("{}/readyz", server.base))).await.status, 200);
        }
        // All is as before.
        let invoice = partner.invoice(&server, 80).await;
        partner.pay(&invoice).await;
        node.mine(CONFIRMATIONS + LAG).await;
        partner.until_confirmed(&server, &invoice).await;
        invoices.push(invoice);
        partner.check(&server, &invoices).await;
        // Servers on PostgreSQL go by the database's clock, which was right all the time.
        if db == Db::Sqlite {
            // What was counted by the wrong clock keeps nobody from asking now.
            ask_for_code(site, &server).await;
            assert_eq!(mails(site, &server).await, 2);
            // Two days pass on the chain too: what nobody paid ends.
            set_clock(site, &server, 2 * 86_400).await;
            node.pass_time(2 * 86_400).await;
            node.mine(CONFIRMATIONS + LAG).await;
            until("what nobody paid expires", async || {
                (partner.status(&server, &unpaid).await["status"] == "EXPIRED").then_some(())
            })
            .await;
        }
    });
}
each_database!(check, "needs anvil and faketime");
