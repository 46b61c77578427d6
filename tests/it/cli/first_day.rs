//! An operator's first day: finding things, pasting commands twice, lists for a spreadsheet, helping orders, and what the
//! audit log says of it.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::browser::guest;
use crate::support::buying;
use crate::support::command_line::{database_url, ok, simgate, split};
use crate::support::database::{execute, rows};
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::{mails, sign_in};
use crate::support::shapes::{API, ORDERS, column, is_time};

/// The lines of a command's CSV, without the header.
fn csv(gateway: &Gateway, line: &str) -> (String, Vec<String>) {
    let told = simgate(gateway, &[split(line).as_slice(), &["--csv"]].concat());
    assert_eq!(told.exit, 0, "{}", told.stderr);
    let mut lines = told.stdout.lines().map(str::to_string);
    (lines.next().unwrap(), lines.collect())
}

/// Runs a command as on a terminal, where this is typed, and returns the exit code and what was on the screen.
fn on_terminal(gateway: &Gateway, line: &str, typed: &str) -> (i32, String) {
    let mut child = Command::new("script")
        .args(["-qec", &format!("{} {line}", env!("CARGO_BIN_EXE_simgate")), "/dev/null"])
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("SIMGATE_DATABASE_URL", database_url(gateway))
        .current_dir(&gateway.dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The newest line of the audit log.
fn newest_deed(gateway: &Gateway) -> Value {
    ok(gateway, "audit list --limit 1")["deeds"][0].clone()
}

both_databases! {
    async fn find_finds_guests_transactions_addresses_and_invoices(gateway) {
        let made = guest(gateway, "kid@example.com").await;
        let hash = buying::pay(gateway, &made).await;
        let done = buying::until_status(gateway, &made, "COMPLETED").await;
        let by_email = ok(gateway, "find Kid@Example.com");
        assert_eq!(by_email["checkouts"][0]["customerEmail"], "kid@example.com");
        assert_eq!(by_email["checkouts"][0]["orderRef"], done["orderRef"]);
        assert_eq!(by_email["orders"].as_array().unwrap().len(), 1);
        let by_hash = ok(gateway, &format!("find {hash}"));
        assert_eq!(by_hash["transfers"].as_array().unwrap().len(), 1);
        assert_eq!(by_hash["checkouts"][0]["invoiceId"], made["invoiceId"]);
        let by_address = ok(gateway, &format!("find {}", buying::address(&made)));
        assert_eq!(by_address["addresses"][0]["address"], buying::address(&made));
        assert!(by_address["addresses"][0]["path"].as_str().unwrap().starts_with("m/"), "{by_address}");
        let body = json!({ "amountUsd": 25, "currency": "USDC", "network": "BASE" });
        let deposit = gateway.post(&format!("{API}/balance/deposit"), body).await.expect(200);
        let by_invoice = ok(gateway, &format!("find {}", deposit["invoiceId"].as_str().unwrap()));
        assert_eq!(by_invoice["invoices"][0]["partnerId"], gateway.partner.as_str());
        for unknown in ["nobody@example.com", "nothing like this", "0x00", "SG0000000000"] {
            let told = simgate(gateway, &["find", unknown, "--json"]).refused(1, "NOT_FOUND");
            assert!(told.contains(unknown), "{told}");
        }
    }

    async fn an_email_of_two_accounts_names_neither(gateway) {
        let first = ok(gateway, "partner create --name Acme --email ops@acme.example");
        let twice = simgate(gateway, &split("partner create --name Acme --email OPS@acme.example --credit 5 --json"));
        let why = twice.refused(1, "INVALID_REQUEST");
        let first = first["partnerId"].as_str().unwrap();
        assert!(why.contains(first) && why.contains("--allow-duplicate"), "{why}");
        assert_eq!(ok(gateway, "find ops@acme.example")["partners"].as_array().unwrap().len(), 1, "nothing was made");
        let second = ok(gateway, "partner create --name Acme --email ops@acme.example --allow-duplicate");
        let second = second["partnerId"].as_str().unwrap();
        sign_in(gateway, "ops@acme.example", "agent").await;
        let found = ok(gateway, "find ops@acme.example");
        assert_eq!(column(&found["partners"], "partnerId"), [first, second]);
        let user = found["users"][0]["userId"].as_str().unwrap();
        for line in ["wallet credit ops@acme.example 5 --reason x", "partner suspend ops@acme.example", "key create ops@acme.example"] {
            let why = simgate(gateway, &[split(line).as_slice(), &["--json"]].concat()).refused(1, "NOT_FOUND");
            assert!([first, second, user].iter().all(|id| why.contains(id)), "{why}");
        }
        let mine = &gateway.partner;
        let why = simgate(gateway, &["partner", "set", mine, "--email", "ops@acme.example", "--json"]).refused(1, "INVALID_REQUEST");
        assert!(why.contains("--allow-duplicate"), "{why}");
        ok(gateway, &format!("partner set {first} --email ops@acme.example --name 'Acme Ltd' --allow-duplicate"));
    }

    async fn a_reference_is_booked_once(gateway) {
        let (partner, other) = (gateway.partner.clone(), gateway.partner("Other", simgate::domain::money::Usd::ZERO).await.0);
        let line = format!("wallet credit {partner} 25 --reason wire --ref wire-1");
        let first = ok(gateway, &line);
        assert_eq!((&first["alreadyDone"], first["balanceUsd"].to_string()), (&json!(false), "1025".into()));
        assert_eq!(ok(gateway, "find wire-1")["entries"][0]["note"], "wire");
        let again = ok(gateway, &line);
        assert_eq!((&again["alreadyDone"], again["balanceUsd"].to_string()), (&json!(true), "1025".into()));
        for wrong in [
            format!("wallet credit {partner} 26 --reason wire --ref wire-1"),
            format!("wallet credit {other} 25 --reason wire --ref wire-1"),
            format!("wallet debit {partner} 25 --reason wire --ref wire-1"),
            format!("wallet credit {partner} 25 --reason wire --ref wire-1 --kind promo"),
        ] {
            let why = simgate(gateway, &[split(&wrong).as_slice(), &["--json"]].concat()).refused(1, "IDEMPOTENCY_CONFLICT");
            assert!(why.contains("wire-1"), "{why}");
        }
        assert_eq!(ok(gateway, &format!("wallet debit {partner} 25 --reason back --ref wire-2"))["balanceUsd"], 1000);
        // Many at once are one.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| ok(gateway, &format!("wallet credit {partner} 7 --reason wire --ref race")));
            }
        });
        assert_eq!(gateway.balance().await, "1007");
    }

    async fn the_same_money_within_a_day_is_asked_about(gateway) {
        let line = format!("wallet credit {} 5 --reason hello", gateway.partner);
        let args = split(&line);
        assert_eq!(simgate(gateway, &args).stderr, "");
        let warned = simgate(gateway, &args);
        assert!(warned.exit == 0 && warned.stderr.contains("already") && warned.stderr.contains(&gateway.partner), "{}", warned.stderr);
        assert_eq!(simgate(gateway, &[args.as_slice(), &["--yes"]].concat()).stderr, "");
        let other = format!("wallet credit {} 50 --reason hello", gateway.partner);
        assert_eq!(simgate(gateway, &split(&other)).stderr, "", "another amount is another matter");
        assert_eq!(gateway.balance().await, "1065");
        let (exit, screen) = on_terminal(gateway, &line, "n\n");
        assert!(exit == 1 && screen.contains("Do it again?") && screen.contains("nothing was done"), "{screen}");
        assert_eq!(gateway.balance().await, "1065");
        let (exit, screen) = on_terminal(gateway, &line, "y\n");
        assert_eq!(exit, 0, "{screen}");
        assert_eq!(on_terminal(gateway, &format!("{line} --yes"), "").0, 0);
        assert_eq!(gateway.balance().await, "1075");

        let order = gateway.order("JP-1GB-7D").await;
        let refund = format!("order refund {} 0.2 --reason sorry", order["id"].as_str().unwrap());
        assert_eq!(simgate(gateway, &split(&refund)).stderr, "");
        assert!(simgate(gateway, &split(&refund)).stderr.contains("already"));
        let payout = format!("payout record {} 1 --bank --reason closing", gateway.partner);
        assert_eq!(simgate(gateway, &split(&payout)).stderr, "");
        assert!(simgate(gateway, &split(&payout)).stderr.contains("already"));
    }

    async fn lists_for_a_spreadsheet_are_whole_and_dated(gateway) {
        for n in 0..55 {
            gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D", "partnerRefId": format!("=ref,{n}") })).await.expect(200);
        }
        let (head, lines) = csv(gateway, "report margin");
        assert_eq!(lines.len(), 55, "not cut");
        assert!(head.starts_with("createdAt,orderId,") && is_time(lines[0].split(',').next().unwrap()), "{head} {}", lines[0]);
        assert_eq!(ok(gateway, "report margin")["orders"].as_array().unwrap().len(), 50);
        assert_eq!(csv(gateway, "report margin --limit 3").1.len(), 3);
        assert_eq!(csv(gateway, "report margin --to 2020-01-01").1.len(), 0);
        let (head, lines) = csv(gateway, "order list");
        assert!(lines.len() == 55 && head.ends_with("createdAt"), "{head}");
        assert!(lines.iter().all(|line| line.contains(",\"'=ref,")), "a spreadsheet takes no reference for a formula: {}", lines[0]);
        assert_eq!(csv(gateway, &format!("wallet statement {}", gateway.partner)).1.len(), 56);
        assert!(csv(gateway, "report wallets").0.starts_with("asOf,"));
        let trial = ok(gateway, "report trial-balance --to 2020-01-01");
        assert_eq!((&trial["accounts"], &trial["balanced"]), (&json!([]), &json!(true)));
        let (whole, part) = (ok(gateway, "report trial-balance"), ok(gateway, "report trial-balance --from 2020-01-01"));
        assert_eq!((&whole["debitUsd"], whole["accounts"].as_array().unwrap().len()), (&part["debitUsd"], part["accounts"].as_array().unwrap().len()));
        assert!(csv(gateway, "catalog list").1.len() > 400);
        for list in [
            "partner list", "key list", "user list", "coupon list", "transfers unmatched", "addresses list", "audit list", "config", "doctor",
        ] {
            csv(gateway, list);
        }
        let piped = simgate(gateway, &["catalog", "list", "--limit", "1000000"]).stdout;
        assert!(!piped.contains(" +"), "what goes into a pipe is not cut");
    }

    async fn a_retry_says_what_the_supplier_answered(gateway) with [("answer_within_ms", "150"), ("supplier_timeout_ms", "60000")] {
        gateway.supplier("timeout").await;
        let begin = async |reference: &str| {
            let body = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": reference });
            gateway.post(ORDERS, body).await.expect(202)["order"]["id"].as_str().unwrap().to_string()
        };
        let (sold, silent) = (begin("a").await, begin("b").await);
        gateway.supplier("unavailable").await;
        let told = simgate(gateway, &["order", "retry", &silent]);
        assert!(told.exit == 0 && told.stdout.contains("still gave no clear answer"), "{}{}", told.stdout, told.stderr);
        assert!(told.stderr.starts_with(&format!("asking the supplier sim about {silent}, for up to 30 s\n")), "{}", told.stderr);
        assert_eq!(ok(gateway, &format!("order retry {silent}"))["supplierAnswer"], "NO_ANSWER");
        gateway.supplier("ok").await;
        let told = ok(gateway, &format!("order retry {sold}"));
        assert_eq!((&told["supplierAnswer"], &told["status"]), (&json!("DELIVERED"), &json!("FULFILLED")));
        let deed = newest_deed(gateway);
        assert_eq!((&deed["command"], &deed["before"], &deed["after"]), (&json!("order retry"), &json!("PROVISIONING"), &json!("FULFILLED")));
    }

    async fn an_operator_cancels_as_the_supplier_decides(gateway) {
        let before = gateway.balance().await;
        let order = gateway.order("JP-1GB-7D").await;
        let number = order["orderNo"].as_str().unwrap();
        let told = ok(gateway, &format!("order cancel {number} --reason 'bought by mistake'"));
        assert_eq!((&told["status"], told["refundedUsd"].to_string(), told["balanceUsd"].to_string()), (&json!("CANCELLED"), "0.82".into(), before));
        let deeds = ok(gateway, "audit list --command 'order cancel'")["deeds"].clone();
        assert_eq!(column(&deeds, "before"), ["CANCELLING", "FULFILLED"]);
        assert_eq!(column(&deeds, "after"), ["CANCELLED", "CANCELLING"]);
        assert!(deeds[1]["detail"].as_str().unwrap().contains("bought by mistake"));
        simgate(gateway, &["order", "cancel", number, "--reason", "x", "--json"]).refused(1, "NOT_CANCELLABLE");
        let used = gateway.order("JP-1GB-7D").await;
        gateway.sandbox("usage", json!({ "iccid": used["iccid"], "usedGb": 0.1 })).await;
        let why = simgate(gateway, &["order", "cancel", used["id"].as_str().unwrap(), "--reason", "x", "--json"]).refused(1, "NOT_CANCELLABLE");
        assert!(why.contains("used"), "{why}");
        assert_eq!(newest_deed(gateway)["after"], "FULFILLED", "the supplier said no");
        simgate(gateway, &["order", "cancel", "ord_none", "--reason", "x", "--json"]).refused(1, "ORDER_NOT_FOUND");
    }

    async fn receipts_are_mailed_again_and_codes_never(gateway) {
        let made = guest(gateway, "kid@example.com").await;
        buying::pay(gateway, &made).await;
        let done = buying::until_status(gateway, &made, "COMPLETED").await;
        assert_eq!(mails(gateway, "kid@example.com").await.len(), 1);
        let order = ok(gateway, "find kid@example.com")["orders"][0]["id"].as_str().unwrap().to_string();
        for named in [order.as_str(), done["orderRef"].as_str().unwrap(), "Kid@example.com"] {
            let told = ok(gateway, &format!("mail resend {named}"));
            assert_eq!((&told["mails"][0]["orderId"], &told["mails"][0]["to"]), (&json!(order), &json!("kid@example.com")));
        }
        let sent = mails(gateway, "kid@example.com").await;
        assert!(sent.len() == 4 && sent.iter().all(|mail| mail["subject"] == "Your eSIM is ready" && mail["text"] == sent[3]["text"]), "{sent:?}");
        assert!(newest_deed(gateway)["command"] == "mail resend" && !newest_deed(gateway).to_string().contains("kid@example.com"));
        // A code was mailed to this one, and no receipt.
        sign_in(gateway, "ann@example.com", "agent").await;
        let before = mails(gateway, "ann@example.com").await.len();
        simgate(gateway, &["mail", "resend", "ann@example.com", "--json"]).refused(1, "ORDER_NOT_FOUND");
        assert_eq!(mails(gateway, "ann@example.com").await.len(), before);
        let partners = gateway.order("JP-1GB-7D").await;
        let why = simgate(gateway, &["mail", "resend", partners["id"].as_str().unwrap(), "--json"]).refused(1, "INVALID_REQUEST");
        assert!(why.contains("partner"), "{why}");
        ok(gateway, &format!("order cancel {order} --reason x"));
        let why = simgate(gateway, &["mail", "resend", &order, "--json"]).refused(1, "INVALID_REQUEST");
        assert!(why.contains("CANCELLED"), "{why}");
    }

    async fn every_deed_is_in_the_audit_log_for_good(gateway) {
        sign_in(gateway, "ann@example.com", "agent").await;
        let users = ok(gateway, "user list");
        assert_eq!(column(&users["users"], "email"), ["ann@example.com"]);
        let partner = gateway.partner.clone();
        let order = gateway.order("JP-1GB-7D").await["id"].as_str().unwrap().to_string();
        let key = ok(gateway, &format!("key create {partner} --name shop"))["apiKey"].as_str().unwrap().to_string();
        for line in [
            format!("partner set {partner} --name 'New Name' --low-balance 20"), format!("partner suspend {partner}"), format!("partner resume {partner}"),
            format!("key revoke {key}"), format!("wallet credit {partner} 3 --reason x"), format!("wallet debit {partner} 4 --reason x"),
            format!("order refund {order} 0.1 --reason x"), "coupon create --code ONE --percent 5".into(), "coupon disable ONE".into(),
            format!("payout record {partner} 1 --bank --reason x"), "user suspend ann@example.com".into(), "catalog sync".into(),
        ] {
            ok(gateway, &line);
            let deed = newest_deed(gateway);
            assert!(line.starts_with(deed["command"].as_str().unwrap()), "{line}: {deed}");
            assert!(deed["actor"] == "cli:tester" && deed["before"].is_string() && deed["after"].is_string(), "{line}: {deed}");
        }
        let deeds = ok(gateway, "audit list --command 'partner set'")["deeds"].clone();
        assert_eq!((&deeds[0]["before"], &deeds[0]["after"]), (&json!("name Test Travel; low balance 50 USD"), &json!("name New Name; low balance 20 USD")));
        let deeds = ok(gateway, "audit list --command wallet --actor cli:tester --limit 1")["deeds"].clone();
        assert_eq!((&deeds[0]["before"], &deeds[0]["after"]), (&json!("1002.18 USD"), &json!("998.18 USD")));
        assert_eq!(ok(gateway, "audit list --to 2020-01-01")["deeds"], json!([]));
        assert_eq!(ok(gateway, "audit list --actor nobody")["deeds"], json!([]));
        let database = &gateway.app.settings.database;
        let count = rows(database, "SELECT CAST(COUNT(*) AS TEXT) FROM audit");
        for damage in ["DELETE FROM audit", "UPDATE audit SET actor = 'nobody'"] {
            let refused = execute(database, damage).unwrap_err();
            assert!(refused.contains("append-only"), "{refused}");
        }
        assert_eq!(rows(database, "SELECT CAST(COUNT(*) AS TEXT) FROM audit"), count);
    }
}
