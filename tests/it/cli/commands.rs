//! The operator's commands, run as people and programs run them: the binary itself, on both databases, while a
//! gateway serves. With `--json` stdout is one document and nothing else; the exit code is 0, 1 or 2.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::command_line::{database_url, ok, run, simgate, split};
use crate::support::harness::{Db, Gateway, Key, both_databases};
use crate::support::shapes::{API, ORDERS, column, id_prefix, is_time, money};

async fn works_soon(gateway: &Gateway, key: &Key, status: u16) {
    gateway
        .until("the gateway has seen it", async || {
            let reply = gateway.send_as(key, "GET", &format!("{API}/balance"), None).await;
            (reply.status == status).then_some(())
        })
        .await;
}

fn key_of(document: &Value) -> Key {
    Key {
        id: document["apiKey"].as_str().unwrap().into(),
        secret: document["apiSecret"].as_str().unwrap().into(),
    }
}

both_databases! {
    async fn partners_and_keys(gateway) {
        let made = ok(gateway, "partner create --name 'Acme Travel' --email Ops@Acme.example --credit 100.5");
        let (partner, key) = (made["partnerId"].as_str().unwrap(), key_of(&made));
        assert_eq!((id_prefix(partner), id_prefix(&key.id)), ("ptn_", "key_"));
        assert!(key.secret.len() >= 43);
        works_soon(gateway, &key, 200).await;
        let balance = gateway.send_as(&key, "GET", &format!("{API}/balance"), None).await.expect(200);
        assert_eq!((&balance["companyName"], balance["balanceUsd"].to_string()), (&json!("Acme Travel"), "100.5".into()));
        let bare = ok(gateway, "partner create --name Bare --credit 0");
        assert_eq!(ok(gateway, &format!("wallet statement {}", bare["partnerId"].as_str().unwrap()))["transactions"], json!([]));

        let shown = ok(gateway, "partner show ops@acme.example");
        assert_eq!(shown["partnerId"], partner);
        assert_eq!(shown["keys"][0]["apiKey"], key.id.as_str());
        assert!(is_time(shown["createdAt"].as_str().unwrap()));
        assert!(!simgate(gateway, &["partner", "show", partner]).stdout.contains(&key.secret), "a secret is shown once");
        let listed = ok(gateway, "partner list");
        assert!(column(&listed["partners"], "partnerId").contains(&partner));
        assert!(column(&listed["partners"], "name").contains(&"Demo Travel"));

        let changed = ok(gateway, &format!("partner set {partner} --name 'Acme Ltd' --low-balance 200"));
        assert_eq!((&changed["name"], changed["lowBalanceUsd"].to_string()), (&json!("Acme Ltd"), "200".into()));
        gateway.until("the new name", async || {
            let balance = gateway.send_as(&key, "GET", &format!("{API}/balance"), None).await.expect(200);
            (balance["companyName"] == "Acme Ltd" && balance["isLowBalance"] == true).then_some(())
        }).await;
        ok(gateway, &format!("partner suspend {partner}"));
        let body = Some(json!({ "packageCode": "JP-1GB-7D" }));
        assert_eq!(gateway.send_as(&key, "POST", ORDERS, body.clone()).await.problem(403), "ACCOUNT_SUSPENDED");
        assert_eq!(ok(gateway, &format!("partner show {partner}"))["suspended"], true);
        ok(gateway, &format!("partner resume {partner}"));
        gateway.send_as(&key, "POST", ORDERS, body.clone()).await.expect(200);

        let limited = ok(gateway, &format!("key create {partner} --daily-limit 1 --ips 127.0.0.1,10.0.0.0/8"));
        let reader = ok(gateway, &format!("key create {partner} --read-only"));
        works_soon(gateway, &key_of(&reader), 200).await;
        assert_eq!(gateway.send_as(&key_of(&reader), "POST", ORDERS, body.clone()).await.problem(403), "LIMIT_EXCEEDED");
        gateway.send_as(&key_of(&limited), "POST", ORDERS, body.clone()).await.expect(200);
        assert_eq!(gateway.send_as(&key_of(&limited), "POST", ORDERS, body).await.problem(403), "LIMIT_EXCEEDED");
        let keys = ok(gateway, &format!("key list {partner}"));
        assert_eq!(keys["keys"].as_array().unwrap().len(), 3);
        assert_eq!(keys["keys"][1]["ips"], json!(["127.0.0.1/32", "10.0.0.0/8"]));
        ok(gateway, &format!("key revoke {}", reader["apiKey"].as_str().unwrap()));
        works_soon(gateway, &key_of(&reader), 401).await;
        assert!(ok(gateway, "key list")["keys"].as_array().unwrap().len() >= 5);
        for (line, code) in [
            ("partner show ptn_none", "NOT_FOUND"),
            ("partner suspend nobody@acme.example", "NOT_FOUND"),
            ("key revoke key_none", "NOT_FOUND"),
            ("key create ptn_none", "NOT_FOUND"),
            ("wallet statement ptn_none", "NOT_FOUND"),
            ("order show ord_none", "ORDER_NOT_FOUND"),
            ("order fail ord_none --reason x", "ORDER_NOT_FOUND"),
        ] {
            simgate(gateway, &[split(line).as_slice(), &["--json"]].concat()).refused(1, code);
        }
    }

    async fn wallets(gateway) {
        let partner = gateway.partner.clone();
        for (line, balance) in [
            (format!("wallet credit {partner} 19.999123 --reason 'wire of March'"), "1019.999123"),
            (format!("wallet credit {partner} 1 --reason hello --kind promo"), "1020.999123"),
            (format!("wallet credit {partner} 1e1 --reason hello --kind goodwill"), "1030.999123"),
            (format!("wallet debit {partner} 0.000123 --reason oops"), "1030.999"),
            (format!("wallet debit {partner} 30.999 --reason oops --kind bank"), "1000"),
        ] {
            let told = ok(gateway, &line);
            assert_eq!(told["balanceUsd"].to_string(), balance, "{line}");
            assert_eq!(gateway.balance().await, balance, "the gateway sees it at once");
        }
        let too_much = simgate(gateway, &["wallet", "debit", &partner, "1000.000001", "--reason", "x", "--json"]);
        assert!(too_much.refused(1, "INSUFFICIENT_BALANCE").contains("1000 USD"));
        assert_eq!(gateway.balance().await, "1000");
        for (amount, _) in [("0", ""), ("-5", ""), ("1.0000001", ""), ("much", ""), ("1000000000", "")] {
            simgate(gateway, &["wallet", "credit", &partner, amount, "--reason", "x", "--json"]).refused(2, "INVALID_REQUEST");
        }
        simgate(gateway, &["wallet", "credit", &partner, "5", "--json"]).refused(2, "INVALID_REQUEST");
        let told = simgate(gateway, &["wallet", "statement", &partner, "--json"]);
        money(&told.stdout);
        let lines = &told.document(0)["transactions"];
        assert_eq!(column(lines, "type"), ["DEBIT", "DEBIT", "CREDIT", "CREDIT", "CREDIT", "CREDIT"]);
        assert_eq!(column(lines, "note")[4], "wire of March");
        let statement = gateway.get(&format!("{API}/balance/transactions")).await.expect(200);
        assert_eq!(lines[0]["balanceUsd"], statement["transactions"][0]["balanceUsd"]);
        assert_eq!(ok(gateway, &format!("wallet statement {partner} --limit 2"))["more"], true);
        assert_eq!(ok(gateway, &format!("wallet statement {partner} --to 2020-01-01"))["transactions"], json!([]));
    }

    async fn orders_that_need_a_hand(gateway) with [("answer_within_ms", "150"), ("supplier_timeout_ms", "60000")] {
        let done = gateway.order("JP-1GB-7D").await;
        // A supplier that stays silent keeps the server waiting, so that nobody else asks while the operator does.
        gateway.supplier("timeout").await;
        let body = |reference: &str| json!({ "packageCode": "JP-1GB-7D", "partnerRefId": reference });
        let doubtful = gateway.post(ORDERS, body("doubt-1")).await.expect(202)["order"].clone();
        let hopeless = gateway.post(ORDERS, body("doubt-2")).await.expect(202)["order"].clone();
        let id = |order: &Value| order["id"].as_str().unwrap().to_string();

        let listed = ok(gateway, "order list --status PROVISIONING");
        assert_eq!(column(&listed["orders"], "partnerRefId"), ["doubt-2", "doubt-1"]);
        assert_eq!(ok(gateway, "order list --limit 1")["orders"].as_array().unwrap().len(), 1);
        assert_eq!(ok(gateway, &format!("order list --partner {}", gateway.partner))["orders"].as_array().unwrap().len(), 3);
        assert_eq!(ok(gateway, "order list --stuck")["orders"], json!([]));

        let told = simgate(gateway, &["order", "show", done["orderNo"].as_str().unwrap(), "--json"]);
        let shown = told.document(0);
        assert_eq!((&shown["id"], &shown["iccid"], &shown["partnerId"]), (&done["id"], &done["iccid"], &json!(gateway.partner)));
        assert_eq!((shown["chargedUsd"].to_string(), shown["costUsd"].to_string()), ("0.82".into(), "0.71".into()));
        assert!(!told.stdout.contains(done["matchingId"].as_str().unwrap()), "an activation code is not for the terminal");

        gateway.supplier("ok").await;
        let retried = ok(gateway, &format!("order retry {}", id(&doubtful)));
        assert_eq!(retried["status"], "FULFILLED");
        let failed = ok(gateway, &format!("order fail {} --reason 'nobody knows'", id(&hopeless)));
        assert_eq!((&failed["status"], &failed["failure"]["detail"]), (&json!("FAILED"), &json!("nobody knows")));
        let seen = gateway.get(&format!("{ORDERS}/{}", id(&hopeless))).await.expect(200);
        assert_eq!((&seen["order"]["status"], seen["order"]["failure"]["refundedUsd"].to_string()), (&json!("FAILED"), "0.82".into()));
        simgate(gateway, &["order", "fail", &id(&doubtful), "--reason", "x", "--json"]).document(1);
        simgate(gateway, &["order", "retry", &id(&hopeless), "--json"]).document(1);

        let refund = ok(gateway, &format!("order refund {} 0.5 --reason 'bad network'", id(&done)));
        assert_eq!((refund["refundedUsd"].to_string(), refund["balanceUsd"].to_string()), ("0.5".into(), "998.86".into()));
        simgate(gateway, &["order", "refund", &id(&done), "0.5", "--reason", "again", "--json"]).document(1);
        assert_eq!(gateway.balance().await, "998.86", "never more than was paid");

        for (text, orders) in [
            (id(&done), 1), (done["orderNo"].as_str().unwrap().to_lowercase(), 1), (done["iccid"].as_str().unwrap().into(), 1),
            ("doubt-1".into(), 1),
        ] {
            let found = simgate(gateway, &["find", &text, "--json"]).document(0);
            assert_eq!(found["orders"].as_array().unwrap().len(), orders, "{text}");
        }
        let found = ok(gateway, &format!("find {}", gateway.partner));
        assert_eq!(column(&found["partners"], "partnerId"), [gateway.partner.as_str()]);

        let margin = ok(gateway, "report margin");
        assert_eq!((margin["salesUsd"].to_string(), margin["costUsd"].to_string()), ("1.64".into(), "1.42".into()));
        assert_eq!((margin["lossesUsd"].to_string(), margin["profitUsd"].to_string()), ("0.5".into(), "-0.28".into()));
        let of_done = margin["orders"].as_array().unwrap().iter().find(|line| line["orderId"] == done["id"]).unwrap();
        assert_eq!(of_done["profitUsd"].to_string(), "-0.39");
    }

    async fn reports_come_as_table_csv_and_json(gateway) {
        gateway.order("JP-1GB-7D").await;
        let told = simgate(gateway, &["report", "trial-balance", "--json"]);
        money(&told.stdout);
        let trial = told.document(0);
        assert_eq!((&trial["balanced"], &trial["debitUsd"]), (&json!(true), &trial["creditUsd"]));
        let accounts = column(&trial["accounts"], "account");
        assert!(["cost:sim", "held", "promo", "sales", "supplier:sim", "wallet"].iter().all(|name| accounts.contains(name)), "{accounts:?}");
        let wallets = ok(gateway, "report wallets");
        assert!(column(&wallets["wallets"], "partnerId").contains(&gateway.partner.as_str()));
        for report in ["margin", "trial-balance", "wallets"] {
            let table = simgate(gateway, &["report", report]);
            assert_eq!(table.exit, 0, "{}", table.stderr);
            assert!(!table.stdout.is_empty());
            let csv = simgate(gateway, &["report", report, "--csv"]);
            assert_eq!(csv.exit, 0, "{}", csv.stderr);
            let widths: Vec<usize> = csv.stdout.lines().map(|line| line.split(',').count()).collect();
            assert!(widths.len() > 1 && widths.iter().all(|width| *width == widths[0]), "{}", csv.stdout);
            simgate(gateway, &["report", report, "--csv", "--json"]).document(2);
        }
        assert_eq!(ok(gateway, "report margin --to 2020-01-01")["orderCount"], 0);
        simgate(gateway, &["report", "margin", "--from", "yesterday", "--json"]).refused(2, "INVALID_REQUEST");
    }

    async fn the_catalog(gateway) {
        let listed = ok(gateway, "catalog list --country jp --type TOPUP --limit 1000");
        assert!(column(&listed["plans"], "packageCode").contains(&"JP-1GB-7D-TOPUP"));
        for plan in listed["plans"].as_array().unwrap() {
            let price = |name: &str| plan[name].as_f64().unwrap();
            assert!(price("costUsd") < price("wholesalePriceUsd"), "{plan}");
            assert!(price("retailPriceUsd") >= price("wholesalePriceUsd") * 1.3, "{plan}");
        }
        let all = ok(gateway, "catalog list --limit 1000000");
        assert_eq!(all["total"], all["plans"].as_array().unwrap().len());
        assert!(all["plans"].as_array().unwrap().iter().any(|plan| plan["retailPriceUsd"].as_f64().unwrap() < 1.0));
        // What the operator withdrew comes back with a sync, and a running gateway sells it again within a second.
        let location = &gateway.app.settings.database;
        crate::support::database::execute(location, "UPDATE plans SET on_sale = 0 WHERE code = 'JP-1GB-7D'").unwrap();
        assert_eq!(gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.problem(404), "PLAN_NOT_FOUND");
        crate::support::database::execute(location, "UPDATE versions SET n = n + 1 WHERE name = 'catalog'").unwrap();
        let count = async || gateway.get(&format!("{API}/plans?query=jp-1gb-7d")).await.expect(200)["total"].clone();
        gateway.until("the plan is gone", async || (count().await == 0).then_some(())).await;
        let synced = ok(gateway, "catalog sync");
        assert_eq!((&synced["plans"], &synced["withdrawn"]), (&all["total"], &json!(0)));
        gateway.until("the plan is back", async || (count().await == 1).then_some(())).await;
        gateway.order("JP-1GB-7D").await;
    }

    /// From its first byte on, whatever the umask says.
    async fn a_backup_is_its_owners_alone(gateway) {
        let (copy, seen) = (gateway.dir.join("private.db"), gateway.dir.join("seen"));
        let mode = |path: &std::path::Path| std::fs::metadata(path).map(|found| found.permissions().mode() & 0o777);
        let made = if gateway.db == Db::Sqlite {
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| while !done.load(Ordering::Relaxed) {
                    assert_eq!(mode(&copy).unwrap_or(0o600), 0o600);
                });
                let made = simgate(gateway, &["backup", &copy.display().to_string(), "--json"]);
                done.store(true, Ordering::Relaxed);
                made
            })
        } else {
            // One that tells what it was given.
            let script = "#!/bin/sh\nwhile [ \"$1\" != --file ]; do shift; done\nstat -c %a \"$2\" > seen; echo dump > \"$2\"\n";
            std::fs::create_dir(gateway.dir.join("bin")).unwrap();
            let tool = gateway.dir.join("bin/pg_dump");
            std::fs::write(&tool, script).unwrap();
            std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
            let path = format!("{}:{}", gateway.dir.join("bin").display(), std::env::var("PATH").unwrap());
            let made = run(&database_url(gateway), &gateway.dir, &[("PATH", &path)], &["backup", &copy.display().to_string(), "--json"]);
            assert_eq!(std::fs::read_to_string(&seen).unwrap().trim(), "600");
            made
        };
        made.document(0);
        assert_eq!(mode(&copy).unwrap(), 0o600);
        // One that fails leaves nothing behind.
        let none = gateway.dir.join("none.db");
        run("sqlite:not-there.db", &gateway.dir, &[], &["backup", &none.display().to_string(), "--json"]).document(2);
        assert!(!none.exists());
    }

    async fn a_backup_is_whole(gateway) {
        gateway.order("JP-1GB-7D").await;
        let copy = gateway.dir.join("copy.db");
        let path = copy.display().to_string();
        let made = simgate(gateway, &["backup", &path, "--json"]).document(0);
        assert_eq!((&made["path"], made["bytes"].as_u64()), (&json!(path), Some(std::fs::metadata(&copy).unwrap().len())));
        simgate(gateway, &["backup", &path, "--json"]).document(1);
        if gateway.db == Db::Sqlite {
            let verdict = run(&format!("sqlite:{path}"), &gateway.dir, &[], &["ledger", "verify", "--json"]).document(0);
            let original = ok(gateway, "ledger verify");
            assert_eq!(verdict, original);
            let orders = run(&format!("sqlite:{path}"), &gateway.dir, &[], &["order", "list", "--json"]).document(0);
            assert_eq!(orders, ok(gateway, "order list"));
        } else {
            let listed = Command::new("pg_restore").arg("--list").arg(&copy).output().unwrap();
            let listed = String::from_utf8(listed.stdout).unwrap();
            assert!(["postings", "orders", "wallets"].iter().all(|table| listed.contains(table)), "{listed}");
        }
    }

    async fn settings_are_shown_checked_and_named(gateway) {
        let url = database_url(gateway);
        let secret = "a secret of more than 32 characters";
        let with = |env: &[(&str, &str)], args: &[&str]| run(&url, &gateway.dir, env, args);
        let told = with(&[("SIMGATE_SECRET", secret), ("SIMGATE_RATE_LIMIT", "7")], &["config", "--json", "--rate-burst", "9"]);
        assert!(!told.stdout.contains(secret) && !told.stderr.contains(secret));
        let shown = told.document(0);
        let of = |name: &str| shown["settings"].as_array().unwrap().iter().find(|line| line["name"] == name).unwrap().clone();
        assert_eq!(of("secret")["value"], "(hidden)");
        assert_eq!(of("rate_limit"), json!({ "name": "rate_limit", "value": "7", "source": "SIMGATE_RATE_LIMIT in the environment" }));
        assert_eq!(of("rate_burst")["source"], "--rate-burst");
        assert_eq!((of("listen")["value"].clone(), of("listen")["source"].clone()), (json!("127.0.0.1:8402"), json!("default")));
        let told = run("postgres://me:hunter2@db.example/x", &gateway.dir, &[], &["config"]);
        assert!(told.exit == 0 && !told.stdout.contains("hunter2"), "{}", told.stdout);
        // However it is mistyped, a password is not shown.
        for url in ["mysql://me:hunter2@db/x", "postgres:me:hunter2@db/x", "postgresq://db/x?password=hunter2", "host=db password=hunter2", "postgres://me:hunter2@[db/x", "postgres://me:hun@hunter2@127.0.0.1:1/x"] {
            for args in [&["config", "--json"][..], &["partner", "list"], &["doctor"], &["migrate"], &["backup", "never"]] {
                let told = run(url, &gateway.dir, &[], args);
                let all = told.stdout + &told.stderr;
                assert!(!all.contains("hunter2") && !all.is_empty(), "{url} {args:?}: {all}");
            }
        }
        let facilitator = [("SIMGATE_X402_FACILITATOR_URL", "https://me:hunter2@pay.example"), ("SIMGATE_X402_SETTLER", "remote")];
        let told = run("sqlite:x.db", &gateway.dir, &facilitator, &["config"]);
        assert!(!(told.stdout + &told.stderr).contains("hunter2"));
        let nodes = [("SIMGATE_BASE_RPC", "ftp://node.example/hunter2-is-a-key"), ("SIMGATE_STAGING", "true")];
        let told = run("sqlite:x.db", &gateway.dir, &nodes, &["doctor"]);
        assert!(told.exit == 2 && !(told.stdout + &told.stderr).contains("hunter2"));
        std::fs::write(gateway.dir.join("wrong.toml"), "lisen = 1\n").unwrap();
        for (env, args, named) in [
            (vec![("SIMGATE_LISTN", "x")], vec!["config"], "SIMGATE_LISTN"),
            (vec![("SIMGATE_LISTEN", "x")], vec!["config"], "SIMGATE_LISTEN"),
            (vec![("SIMGATE_SECRET", "short-secret")], vec!["partner", "list"], "SIMGATE_SECRET"),
            (vec![("SIMGATE_MODE", "test")], vec!["serve"], "SIMGATE_MODE"),
            (vec![], vec!["config", "--rate-limit", "-1"], "--rate-limit"),
            (vec![], vec!["config", "--config", "wrong.toml"], "lisen"),
            (vec![], vec!["config", "--config", "absent.toml"], "absent.toml"),
            (vec![], vec!["serve", "--listen", "0.0.0.0:0"], "--public-sandbox"),
            (vec![("SIMGATE_DATABASE_URL", "mysql://x")], vec!["partner", "list"], "SIMGATE_DATABASE_URL"),
            (vec![("SIMGATE_DATABASE_URL", "sqlite:nothing-here.db")], vec!["partner", "list"], "simgate serve"),
            (vec![("SIMGATE_SECRET", "another secret of at least 32 characters")], vec!["partner", "list"], "secret"),
            (vec![("SIMGATE_MODE", "live"), ("SIMGATE_SECRET", secret)], vec!["partner", "list"], "mode"),
        ] {
            let told = with(&env, &[args.as_slice(), &["--json"]].concat());
            let sentence = told.refused(2, "INVALID_SETTINGS");
            assert!(sentence.contains(named), "{args:?}: {sentence}");
            assert!(!sentence.contains("short-secret"), "{sentence}");
        }
        assert!(!gateway.dir.join("nothing-here.db").exists(), "a look does not make a database");
    }

    async fn usage_errors_exit_2_and_help_exits_0(gateway) {
        for args in [
            vec!["nonsense"], vec!["partner"], vec!["partner", "create"], vec!["wallet", "credit"], vec!["order", "list", "--status", "DONE"],
            vec!["--listne", "x"], vec!["find"], vec!["key", "create", "x", "--ips", "home"], vec!["catalog", "list", "--country", "JPN"],
            vec!["partner", "set", "x"], vec!["report", "margin", "--limit", "0"], vec!["partner", "create", "--name", " "],
            vec!["partner", "create", "--name", "x", "--email", "nobody"], vec!["partner", "create", "--name", "x", "--credit", "-1"],
        ] {
            let told = simgate(gateway, &[args.as_slice(), &["--json"]].concat());
            assert_eq!(told.document(2)["code"], "INVALID_REQUEST", "{args:?}");
            let told = simgate(gateway, &args);
            assert_eq!((told.exit, told.stdout.as_str()), (2, ""), "{args:?}");
            assert!(!told.stderr.is_empty());
        }
        for args in [vec!["--help"], vec!["--version"], vec!["order", "--help"], vec!["help"]] {
            let told = simgate(gateway, &args);
            assert!(told.exit == 0 && !told.stdout.is_empty(), "{args:?}: {}", told.stderr);
        }
        for shell in ["bash", "zsh", "fish"] {
            let script = simgate(gateway, &["completions", shell]);
            assert!(script.exit == 0 && script.stdout.contains("simgate") && script.stdout.len() > 1000, "{shell}");
        }
        for args in [["--json", "partner", "list"], ["partner", "--json", "list"], ["partner", "list", "--json"]] {
            assert!(simgate(gateway, &args).document(0)["partners"].is_array());
        }
    }

    async fn the_doctor_says_how_things_stand(gateway) {
        let health = simgate(gateway, &["doctor", "--json"]).document(0);
        assert_eq!(health["ok"], true);
        let checks = column(&health["checks"], "check");
        assert!(["settings", "database", "supplier"].iter().all(|check| checks.contains(check)), "{checks:?}");
        let support = health["checks"].as_array().unwrap().iter().find(|check| check["check"] == "support").unwrap();
        assert!(support["health"] == "warn" && support["advice"].as_str().unwrap().contains("SIMGATE_SUPPORT_CONTACT"), "{support}");
        let told = run("sqlite:nothing-here.db", &gateway.dir, &[], &["doctor", "--json"]);
        let health = told.document(1);
        assert_eq!(health["ok"], false);
        let text = run("sqlite:nothing-here.db", &gateway.dir, &[], &["doctor"]);
        assert_eq!(text.exit, 1);
        assert!(text.stdout.contains("simgate migrate") || text.stdout.contains("simgate serve"), "{}", text.stdout);
    }

    /// Who moved money, and why, is written down with it.
    async fn money_commands_are_in_the_audit_log(gateway) {
        ok(gateway, &format!("wallet credit {} 5 --reason 'for the log'", gateway.partner));
        let log = crate::support::database::rows(&gateway.app.settings.database, "SELECT actor, command, detail FROM audit ORDER BY id DESC LIMIT 1");
        assert_eq!((log[0][0].as_str(), log[0][1].as_str()), ("cli:tester", "wallet credit"));
        assert!(log[0][2].contains("for the log") && log[0][2].contains("5 USD") && log[0][2].contains(&gateway.partner), "{log:?}");
    }
}
