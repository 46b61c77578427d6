//! The operator's commands about stablecoins: unmatched money, payouts, sweeps, addresses, and the books against the
//! chains. Run as people and programs run them, on both databases.
//!
//! The binary has the wall clock, so these tests wait for blocks instead of moving the gateway's clock.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use simgate::chain::sim::ChainMode;
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency, Network};
use simgate::domain::transfer::Transfer;
use simgate::ops::{restore, transfers};
use simgate::store::addresses::{self, Address};

use crate::support::command_line::{Told, ok, simgate, split};
use crate::support::database;
use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{DEPOSIT, ORDERS, column, money};

const HASH: &str = "0xABCDEF0123456789abcdef0123456789abcdef0123456789abcdef0123456789";

/// A transaction that the operator may have made.
fn hash(n: u8) -> String {
    format!("0x{}", format!("{n:02x}").repeat(32))
}

fn refused(gateway: &Gateway, line: &str) -> Told {
    simgate(gateway, &[split(line).as_slice(), &["--json"]].concat())
}

/// The newest deed in the audit log: who, by what command, and what.
#[track_caller]
fn last_deed(gateway: &Gateway, command: &str, words: &[&str]) {
    let log = database::rows(
        &gateway.app.settings.database,
        "SELECT actor, command, detail FROM audit ORDER BY id DESC LIMIT 1",
    );
    assert_eq!((log[0][0].as_str(), log[0][1].as_str()), ("cli:tester", command));
    assert!(words.iter().all(|word| log[0][2].contains(word)), "{:?}: {words:?}", log[0]);
}

fn deeds(gateway: &Gateway) -> usize {
    database::rows(&gateway.app.settings.database, "SELECT id FROM audit").len()
}

/// An address that belongs to no account, as a restored backup has them.
async fn house_address(gateway: &Gateway, kind: AddressKind) -> String {
    let xpub = gateway.app.settings.settlement.xpub(kind).clone();
    let now = gateway.app.now();
    let make = move |tx: &mut simgate::store::tx::Tx| {
        let index = addresses::take_indexes(tx, kind, xpub.fingerprint(), 1)?;
        let address = Address {
            address: xpub.address(index as u32),
            kind,
            fingerprint: xpub.fingerprint().into(),
            index,
            account: None,
            watch_until: now.plus_days(7),
            standing: false,
        };
        addresses::insert(tx, &address, now)?;
        Ok(address.address)
    };
    gateway.app.store.write(0, make).await.unwrap()
}

async fn pay(gateway: &Gateway, network: Network, address: &str, currency: Currency, usd: i64) -> String {
    let chain = &gateway.app.sim_chains[&network];
    let hash = chain.pay(address, currency, Usd::dollars(usd)).await.unwrap();
    gateway.app.expected.send_modify(|count| *count += 1);
    hash
}

async fn until_unmatched(gateway: &Gateway, count: usize) -> Vec<Transfer> {
    gateway
        .until("unmatched money", async || {
            let found = transfers::unmatched(&gateway.app).await.unwrap();
            let found: Vec<Transfer> = found.into_iter().map(|waiting| waiting.transfer).collect();
            (found.len() == count).then_some(found)
        })
        .await
}

/// Opens an invoice, pays it in full and waits for the credit; the address and the transaction.
async fn deposit(gateway: &Gateway, usd: i64) -> (Value, String) {
    let body = json!({ "amountUsd": usd, "currency": "USDC", "network": "BASE" });
    let invoice = gateway.post(DEPOSIT, body).await.expect(200);
    let address = invoice["depositAddress"].as_str().unwrap();
    let hash = pay(gateway, Network::Base, address, Currency::Usdc, usd).await;
    let path = format!("{DEPOSIT}/{}", invoice["invoiceId"].as_str().unwrap());
    let paid = gateway
        .until("the credit", async || {
            let found = gateway.get(&path).await.expect(200);
            (found["status"] == "CONFIRMED").then_some(found)
        })
        .await;
    (paid, hash)
}

both_databases! {
    async fn unmatched_money_is_assigned_returned_or_written_off(gateway) {
        let evm = house_address(gateway, AddressKind::Evm).await;
        let tron = house_address(gateway, AddressKind::Tron).await;
        pay(gateway, Network::Base, &evm, Currency::Usdc, 10).await;
        let hash_of_20 = pay(gateway, Network::Polygon, &evm, Currency::Usdt, 20).await;
        pay(gateway, Network::Tron, &tron, Currency::Usdt, 30).await;
        let waiting = until_unmatched(gateway, 3).await;
        let id = |usd: i64| {
            waiting.iter().find(|transfer| transfer.amount == Usd::dollars(usd)).unwrap().id.to_string()
        };
        let told = simgate(gateway, &["transfers", "unmatched", "--json"]);
        money(&told.stdout);
        let listed = told.document(0)["transfers"].clone();
        let of_20 = listed.as_array().unwrap().iter().find(|line| line["id"] == json!(id(20))).unwrap().clone();
        assert_eq!(of_20["network"], "POLYGON");
        assert_eq!((&of_20["currency"], &of_20["address"], &of_20["age"]), (&json!("USDT"), &json!(evm), &json!("0 min")));
        assert_eq!(of_20["amountUsd"].to_string(), "20");
        assert!(of_20["from"].as_str().unwrap().starts_with("0x"));
        assert!(simgate(gateway, &["transfers", "unmatched"]).stdout.contains(&id(30)));
        let health = simgate(gateway, &["doctor", "--json"]).document(0);
        let check = health["checks"].as_array().unwrap().iter().find(|check| check["check"] == "transfers").unwrap().clone();
        assert_eq!((&check["health"], &check["finding"]), (&json!("warn"), &json!("transfers that arrived and belong to nobody: 3")));

        // Whatever it is called by, the operator finds it.
        for text in [id(20), hash_of_20.clone(), hash_of_20.to_uppercase().replace("0X", "0x")] {
            let found = ok(gateway, &format!("find {text}"));
            assert_eq!(column(&found["transfers"], "id"), [id(20)], "{text}");
        }
        let found = ok(gateway, &format!("find {}", evm.to_lowercase()));
        assert_eq!(found["transfers"].as_array().unwrap().len(), 2);
        assert_eq!(found["invoices"], json!([]));

        let before = deeds(gateway);
        let partner = &gateway.partner;
        for (line, exit, code) in [
            (format!("transfers assign {}:9 {partner}", &id(10)[..id(10).len() - 2]), 1, "NOT_FOUND"),
            (format!("transfers assign nothing {partner}"), 1, "NOT_FOUND"),
            (format!("transfers assign {} ptn_none", id(10)), 1, "NOT_FOUND"),
            (format!("transfers returned {} --tx 0x12", id(10)), 2, "INVALID_REQUEST"),
            (format!("transfers returned {}", id(10)), 2, "INVALID_REQUEST"),
            (format!("transfers write-off {}", id(10)), 2, "INVALID_REQUEST"),
        ] {
            refused(gateway, &line).refused(exit, code);
        }
        assert_eq!((deeds(gateway), gateway.balance().await), (before, "1000".into()), "a refusal changes nothing");

        let assigned = ok(gateway, &format!("transfers assign {} {partner} --reason 'asked by mail'", id(10)));
        assert_eq!((&assigned["state"], assigned["balanceUsd"].to_string()), (&json!("ASSIGNED"), "1010".into()));
        assert_eq!(gateway.balance().await, "1010");
        last_deed(gateway, "transfers assign", &[&id(10), "10 USD", partner, "asked by mail"]);
        let line = &ok(gateway, &format!("wallet statement {partner}"))["transactions"][0];
        assert_eq!((&line["type"], line["amountUsd"].to_string()), (&json!("ASSIGNED"), "10".into()));
        assert_eq!(ok(gateway, "ledger verify")["ok"], true);

        let back = ok(gateway, &format!("transfers returned {} --tx {HASH} --reason 'sent by mistake'", id(20)));
        assert_eq!((&back["state"], &back["txHash"]), (&json!("RETURNED"), &json!(HASH.to_lowercase())));
        last_deed(gateway, "transfers returned", &[&id(20), "20 USD", &HASH.to_lowercase(), "sent by mistake"]);
        assert_eq!(ok(gateway, "ledger verify")["ok"], true);

        let off = ok(gateway, &format!("transfers write-off {} --reason 'a year has passed'", id(30)));
        assert_eq!(off["state"], "WRITTEN_OFF");
        last_deed(gateway, "transfers write-off", &[&id(30), "30 USD", "a year has passed"]);
        assert_eq!(ok(gateway, "ledger verify")["ok"], true);

        // Each is decided once.
        let before = deeds(gateway);
        for line in [
            format!("transfers assign {} {partner}", id(10)),
            format!("transfers assign {} {partner}", id(20)),
            format!("transfers returned {} --tx {HASH}", id(30)),
            format!("transfers write-off {} --reason x", id(10)),
        ] {
            refused(gateway, &line).refused(1, "TRANSFER_ALREADY_USED");
        }
        assert_eq!((deeds(gateway), gateway.balance().await), (before, "1010".into()));
        assert_eq!(ok(gateway, "transfers unmatched")["transfers"], json!([]));
        let books = ok(gateway, "report trial-balance");
        let booked = |name: &str| {
            let line = books["accounts"].as_array().unwrap().iter().find(|line| line["account"] == name);
            line.unwrap()["balanceUsd"].to_string()
        };
        // What was sent back has left; what was assigned or written off is still there.
        for (account, balance) in [
            ("cash:BASE:USDC", "10"),
            ("cash:POLYGON:USDT", "0"),
            ("cash:TRON:USDT", "30"),
            ("unmatched", "0"),
            ("unclaimed", "-30"),
        ] {
            assert_eq!(booked(account), balance, "{account}: {books}");
        }
    }

    async fn two_operators_cannot_both_decide(gateway) {
        let evm = house_address(gateway, AddressKind::Evm).await;
        pay(gateway, Network::Base, &evm, Currency::Usdc, 10).await;
        let id = until_unmatched(gateway, 1).await[0].id.clone();
        let account = simgate::ops::operator::account(&gateway.app, &gateway.partner).await.unwrap();
        let tries = (0..8).map(|n| {
            let (app, id, account) = (gateway.app.clone(), id.clone(), account.clone());
            tokio::spawn(async move {
                match n % 2 {
                    0 => transfers::assign(&app, "a", &id, &account, None).await.is_ok(),
                    _ => transfers::write_off(&app, "b", &id, "gone").await.is_ok(),
                }
            })
        });
        let mut done = 0;
        for attempt in tries.collect::<Vec<_>>() {
            done += usize::from(attempt.await.unwrap());
        }
        assert_eq!(done, 1);
    }

    async fn payouts_and_sweeps_are_recorded_once_and_never_beyond_what_is_there(gateway) {
        let (invoice, tx_hash) = deposit(gateway, 100).await;
        let partner = &gateway.partner;
        let id = invoice["invoiceId"].as_str().unwrap();
        let address = invoice["depositAddress"].as_str().unwrap();
        let lines = ok(gateway, &format!("wallet statement {partner}"))["transactions"].clone();
        assert_eq!((&lines[0]["invoiceId"], &lines[0]["ref"]), (&invoice["invoiceId"], &json!(null)));
        for text in [id, &tx_hash, address] {
            let found = ok(gateway, &format!("find {text}"));
            assert_eq!(column(&found["invoices"], "invoiceId"), [id], "{text}");
            assert_eq!(found["transfers"][0]["state"], "CREDITED", "{text}");
        }
        let verdict = ok(gateway, "ledger verify --chain");
        let purse = |verdict: &Value, network: &str, currency: &str| {
            let lines = verdict["chain"].as_array().unwrap().clone();
            lines.into_iter().find(|line| line["network"] == network && line["currency"] == currency).unwrap()
        };
        assert_eq!(verdict["chain"].as_array().unwrap().len(), 8);
        assert_eq!(
            purse(&verdict, "BASE", "USDC"),
            json!({ "network": "BASE", "currency": "USDC", "bookedUsd": 100, "pendingUsd": 0, "onChainUsd": 100, "differenceUsd": 0 })
        );
        assert!(ok(gateway, "ledger verify")["chain"].is_null());

        let listed = ok(gateway, "addresses list --funded");
        let line = &listed["addresses"][0];
        assert_eq!(listed["addresses"].as_array().unwrap().len(), 1);
        assert_eq!((&line["path"], &line["address"]), (&json!("m/44'/60'/0'/0/0"), &json!(address)));
        assert_eq!((&line["kind"], &line["owner"]), (&json!("EVM"), &json!(partner)));
        let funded: Vec<&Value> = line["balances"].as_array().unwrap().iter().filter(|held| held["balanceUsd"] != 0).collect();
        assert_eq!(funded, [&json!({ "network": "BASE", "currency": "USDC", "balanceUsd": 100 })]);
        assert_eq!(line["balances"].as_array().unwrap().len(), 6, "every EVM network and token");
        assert!(simgate(gateway, &["addresses", "list"]).stdout.contains("100 USDC on BASE"));

        let before = deeds(gateway);
        let on_base = format!("--network base --currency usdc --tx {}", hash(1));
        for (line, exit, code) in [
            (format!("payout record {partner} 101 {on_base} --reason x"), 1, "INVALID_REQUEST"),
            (format!("payout record {partner} 1 --network TRON --currency USDT --tx {} --reason x", hash(1)), 1, "INVALID_REQUEST"),
            (format!("payout record {partner} 1100.000001 --bank --reason x"), 1, "INSUFFICIENT_BALANCE"),
            (format!("payout record ptn_none 1 {on_base} --reason x"), 1, "NOT_FOUND"),
            (format!("payout record {partner} 1 --reason x"), 2, "INVALID_REQUEST"),
            (format!("payout record {partner} 1 --bank {on_base} --reason x"), 2, "INVALID_REQUEST"),
            (format!("payout record {partner} 1 --bank --network BASE --reason x"), 2, "INVALID_REQUEST"),
            (format!("payout record {partner} 1 --network BASE --tx {} --reason x", hash(1)), 2, "INVALID_REQUEST"),
            (format!("payout record {partner} 0 {on_base} --reason x"), 2, "INVALID_REQUEST"),
            (format!("payout record {partner} 1 {on_base}"), 2, "INVALID_REQUEST"),
            (format!("sweep record --network BASE --currency USDC --amount 100.000001 --tx {}", hash(2)), 1, "INVALID_REQUEST"),
            (format!("sweep record --network BASE --currency USDT --amount 1 --tx {}", hash(2)), 1, "INVALID_REQUEST"),
            ("sweep record --network BASE --currency USDC --amount 1 --tx 12".into(), 2, "INVALID_REQUEST"),
            (format!("sweep record --network ETH --currency USDC --amount 1 --tx {}", hash(2)), 2, "INVALID_REQUEST"),
        ] {
            refused(gateway, &line).refused(exit, code);
        }
        assert_eq!((deeds(gateway), gateway.balance().await), (before, "1100".into()), "a refusal changes nothing");

        let paid = ok(gateway, &format!("payout record {partner} 40 {on_base} --reason 'closes its account'"));
        assert_eq!((&paid["from"], paid["balanceUsd"].to_string()), (&json!("cash"), "1060".into()));
        last_deed(gateway, "payout record", &[partner, "40 USD", "USDC on BASE", &hash(1), "closes its account"]);
        refused(gateway, &format!("payout record {partner} 40 {on_base} --reason again")).refused(1, "TRANSFER_ALREADY_USED");
        assert_eq!(ok(gateway, "ledger verify")["ok"], true);
        let paid = ok(gateway, &format!("payout record {partner} 10.5 --bank --reason wire"));
        assert_eq!((&paid["from"], paid["balanceUsd"].to_string()), (&json!("bank"), "1049.5".into()));
        assert_eq!(gateway.balance().await, "1049.5");
        let lines = &ok(gateway, &format!("wallet statement {partner}"))["transactions"];
        assert_eq!(column(lines, "type")[..3], ["PAYOUT", "PAYOUT", "DEPOSIT"]);

        let sweep = format!("sweep record --network BASE --currency USDC --amount 50 --tx {} --reason weekly", hash(2));
        assert_eq!(ok(gateway, &sweep)["leftUsd"].to_string(), "10");
        last_deed(gateway, "sweep record", &["50 USD", "USDC on BASE", &hash(2), "weekly"]);
        refused(gateway, &sweep).refused(1, "TRANSFER_ALREADY_USED");
        refused(gateway, &sweep.replace(&hash(2), &hash(3))).refused(1, "INVALID_REQUEST");
        assert_eq!(ok(gateway, &sweep.replace(&hash(2), &hash(3)).replace("50", "10"))["leftUsd"].to_string(), "0");
        assert_eq!(ok(gateway, "ledger verify")["ok"], true);

        // Nobody can send tokens away on a simulated chain: to the books, what left is still there.
        let verdict = refused(gateway, "ledger verify --chain").document(1);
        assert_eq!(verdict["ok"], false);
        assert_eq!(verdict["breaches"], json!([]));
        assert_eq!(purse(&verdict, "BASE", "USDC")["differenceUsd"].to_string(), "100");
    }

    /// Two sweeps at once, or a sweep and a payout: together they take no more than there is.
    async fn cash_is_taken_once(gateway) {
        deposit(gateway, 50).await;
        let sweeps = (1..=6u8).map(|n| {
            let app = gateway.app.clone();
            let sweep = transfers::Sweep {
                network: Network::Base,
                currency: Currency::Usdc,
                amount: Usd::dollars(20),
                tx_hash: hash(n),
                reason: None,
            };
            tokio::spawn(async move { transfers::record_sweep(&app, "test", sweep).await.is_ok() })
        });
        let mut done = 0;
        for attempt in sweeps.collect::<Vec<_>>() {
            done += usize::from(attempt.await.unwrap());
        }
        assert_eq!(done, 2);
        assert_eq!(ok(gateway, "ledger verify")["ok"], true);
    }

    async fn a_network_that_is_silent_hides_no_other(gateway) {
        deposit(gateway, 20).await;
        gateway.app.sim_chains[&Network::Polygon].behave(ChainMode::Down, 0).await.unwrap();
        let listed = ok(gateway, "addresses list");
        assert_eq!(listed["unknownNetworks"], json!(["POLYGON"]));
        let balances = listed["addresses"][0]["balances"].as_array().unwrap().clone();
        let of = |network: &str| {
            let held = balances.iter().find(|held| held["network"] == network && held["currency"] == "USDC");
            held.unwrap()["balanceUsd"].clone()
        };
        assert_eq!((of("BASE"), of("POLYGON")), (json!(20), Value::Null));
        let text = simgate(gateway, &["addresses", "list"]);
        assert!(text.exit == 0 && text.stdout.contains("? USDC on POLYGON") && text.stdout.contains("did not answer"), "{}", text.stdout);
        let verdict = refused(gateway, "ledger verify --chain").document(1);
        let differences: BTreeSet<String> = verdict["chain"].as_array().unwrap().iter().map(|line| line["differenceUsd"].to_string()).collect();
        assert_eq!(differences, BTreeSet::from(["0".to_string(), "null".to_string()]));
        let health = simgate(gateway, &["doctor", "--json"]).document(1);
        let of_polygon = health["checks"].as_array().unwrap().iter().find(|check| check["finding"].as_str().unwrap().starts_with("POLYGON"));
        assert_eq!(of_polygon.unwrap()["health"], "fail");
        gateway.app.sim_chains[&Network::Polygon].behave(ChainMode::Ok, 0).await.unwrap();
        assert_eq!(ok(gateway, "ledger verify --chain")["ok"], true);
    }

    async fn the_doctor_shows_addresses_and_chains(gateway) {
        deposit(gateway, 20).await;
        let health = simgate(gateway, &["doctor", "--json"]).document(0);
        let findings = |check: &str| -> Vec<String> {
            let all = health["checks"].as_array().unwrap().iter().filter(|line| line["check"] == check);
            all.map(|line| line["finding"].as_str().unwrap().to_string()).collect()
        };
        let addresses = findings("addresses");
        assert_eq!(addresses.len(), 2);
        for first in ["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "m/44'/60'/0'/0/2 0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC", "compare"] {
            assert!(addresses[0].contains(first), "{addresses:?}");
        }
        assert!(addresses[1].contains("TB7mhtkvfhsRBRhe5FuRa4tFXSEyGDe4eA"));
        let chains = findings("chain");
        assert_eq!(chains.len(), 4);
        assert!(chains[0].starts_with("BASE is simulated") && chains[0].contains("scanned up to"), "{chains:?}");
        assert_eq!(findings("transfers"), ["none waits for an owner"]);
    }

    /// Adopting in place, while a gateway runs: what a restored database forbids, and what it does not.
    async fn buying_waits_for_the_operators_word(gateway) {
        let known = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "known" });
        let order = gateway.post(ORDERS, known.clone()).await.expect(200)["order"].clone();
        let adopted = restore::adopt(&gateway.app, "cli:tester").await.unwrap();
        last_deed(gateway, "restore", &["on hold"]);
        assert_eq!(adopted.skipped.iter().map(|part| (part.from, part.to)).collect::<Vec<_>>(), [(0, 999), (0, 999)]);
        let again = restore::adopt(&gateway.app, "cli:tester").await.unwrap();
        assert_eq!((again.skipped[0].from, again.skipped[0].to), (1_000, 1_999));
        let reply = gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await;
        assert_eq!(reply.problem(503), "ON_HOLD");
        assert!(reply.text.contains("on hold"), "{}", reply.text);
        let topup = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        let reply = gateway.post(&topup, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await;
        assert_eq!(reply.problem(503), "ON_HOLD", "{}", reply.text);
        let replay = gateway.post(ORDERS, known).await;
        assert_eq!(replay.expect(200)["order"]["id"], order["id"]);
        // Money may come in meanwhile, to an address that was never given out.
        let (invoice, _) = deposit(gateway, 10).await;
        let found = ok(gateway, "addresses list --funded");
        assert_eq!(found["addresses"][0]["path"], "m/44'/60'/0'/0/2000");
        assert_eq!(found["addresses"][0]["address"], invoice["depositAddress"]);
        let house = ok(gateway, "addresses list")["addresses"].as_array().unwrap().iter().filter(|line| line["owner"] == "house").count();
        assert_eq!(house, 4_000);
        let health = simgate(gateway, &["doctor", "--json"]).document(0);
        assert!(column(&health["checks"], "check").contains(&"restore"));

        assert_eq!(ok(gateway, "restore --confirm")["buyingOnHold"], false);
        last_deed(gateway, "restore --confirm", &["goes on"]);
        gateway.until("buying goes on", async || {
            let reply = gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await;
            (reply.status == 200).then_some(())
        }).await;
        let before = deeds(gateway);
        assert_eq!(ok(gateway, "restore --confirm")["buyingOnHold"], false);
        assert_eq!(deeds(gateway), before);
        for line in ["restore", "restore --adopt --confirm", "restore x --confirm", "restore --force --adopt"] {
            refused(gateway, line).refused(2, "INVALID_REQUEST");
        }
    }
}
