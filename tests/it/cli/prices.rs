//! `simgate price`: rules, drafts, previews, sheets, and what buyers see of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::buying::{PLAN, amount, ask, balance, fund, open, settle, usd};
use crate::support::command_line::{database_url, ok, run, simgate, split};
use crate::support::database;
use crate::support::harness::{Gateway, Key, both_databases};
use crate::support::logins::sign_in;
use crate::support::shapes::{API, ORDERS, column};

const OTHER: &str = "JP-5GB-30D";

/// What a partner is shown of a country, by code; empty for what it cannot buy.
async fn shelf(gateway: &Gateway, key: &Key, country: &str) -> BTreeMap<String, Usd> {
    let path = format!("{API}/plans?country={country}");
    let listed = gateway.send_as(key, "GET", &path, None).await.expect(200);
    let plans = listed["plans"].as_array().unwrap().clone();
    plans
        .iter()
        .map(|plan| (plan["packageCode"].as_str().unwrap().to_string(), usd(&plan["priceUsd"])))
        .collect()
}

/// Waits until the gateway shows this price; `None`: not for sale.
async fn until_shown(gateway: &Gateway, key: &Key, code: &str, price: Option<&str>) {
    let price = price.map(|price| Usd::parse(price).unwrap());
    gateway
        .until("the price is shown", async || {
            (shelf(gateway, key, &code[..2]).await.get(code).copied() == price).then_some(())
        })
        .await;
}

/// What a partner is charged for a plan now.
async fn charged(gateway: &Gateway, key: &Key, code: &str) -> String {
    let order = gateway.send_as(key, "POST", ORDERS, Some(json!({ "packageCode": code }))).await;
    assert!(matches!(order.status, 200 | 202), "{}", order.text);
    order.json()["order"]["chargedUsd"].to_string()
}

fn cost(gateway: &Gateway, code: &str) -> Usd {
    let sql = format!("SELECT CAST(cost AS TEXT) FROM plans WHERE code = '{code}'");
    let rows = database::rows(&gateway.app.settings.database, &sql);
    Usd::from_micros(rows[0][0].parse().unwrap())
}

fn file(gateway: &Gateway, text: &str) -> PathBuf {
    let path = gateway.dir.join("prices.csv");
    std::fs::write(&path, text).unwrap();
    path
}

fn refused(gateway: &Gateway, line: &str, exit: i32, code: &str) -> String {
    let args: Vec<&str> = split(line);
    simgate(gateway, &[args.as_slice(), &["--json"]].concat()).refused(exit, code)
}

/// The formulas that prices of a sandbox were made by before there were rules.
fn formula(cost: i64) -> (i64, i64) {
    const CENT: i64 = 10_000;
    let up = |amount: i64, step: i64| (amount + step - 1) / step * step;
    let wholesale = up(cost + cost * 8 / 100 + (cost * 7 / 100).min(14 * CENT), CENT);
    let target = wholesale * 135 / 100 + (wholesale * 40 / 100).min(80 * CENT);
    let step = match target / CENT {
        ..500 => 10 * CENT,
        500..5_000 => 50 * CENT,
        _ => 100 * CENT,
    };
    (wholesale, up(target + CENT, step) - CENT)
}

both_databases! {
    async fn a_sandbox_sells_at_the_prices_that_it_always_had(gateway) {
        let listed = ok(gateway, "catalog list --limit 1000000");
        let plans = listed["plans"].as_array().unwrap();
        assert!(plans.len() > 3_000);
        for plan in plans {
            let (wholesale, retail) = formula(usd(&plan["costUsd"]).micros());
            let shown = (usd(&plan["wholesalePriceUsd"]).micros(), usd(&plan["retailPriceUsd"]).micros());
            assert_eq!(shown, (wholesale, retail), "{plan}");
        }
        let rules = ok(gateway, "price list");
        assert_eq!(column(&rules["rules"], "priceList"), ["default", "retail"]);
        assert_eq!(column(&rules["rules"], "state"), ["published", "published"]);
        assert_eq!(rules["rules"][0]["published"], "8 % over cost, plus 7 % of it but at most 0.14 USD, up to the cent");
        let preview = ok(gateway, "price preview");
        assert_eq!((&preview["rulesChanged"], &preview["pricesChanged"]), (&json!(0), &json!(0)));
        let synced = ok(gateway, "catalog sync");
        assert_eq!(synced["plans"], plans.len());
        assert_eq!(ok(gateway, "price preview")["pricesChanged"], 0, "a sync makes the same prices");
    }

    async fn the_most_specific_rule_makes_the_price(gateway) {
        let start = shelf(gateway, &gateway.key, "JP").await;
        ok(gateway, "price set --all --fixed 10");
        ok(gateway, "price set --supplier sim --fixed 20");
        ok(gateway, "price set --region asia --fixed 30");
        ok(gateway, "price set --country jp --fixed 40");
        let set = ok(gateway, "price set --plan jp-1gb-7d --price 50.5");
        assert_eq!((&set["target"], &set["plans"], &set["draft"], &set["published"]),
            (&json!(PLAN), &json!(1), &json!("50.50 USD"), &json!(false)));
        assert_eq!(shelf(gateway, &gateway.key, "JP").await, start, "a draft sells nothing");
        assert_eq!(charged(gateway, &gateway.key, PLAN).await, start[PLAN].to_string());

        let preview = ok(gateway, "price preview --list default --limit 100000");
        assert_eq!(preview["rulesChanged"], 5);
        let promised: BTreeMap<String, String> = preview["prices"].as_array().unwrap().iter()
            .map(|line| (line["packageCode"].as_str().unwrap().to_string(), line["priceUsd"].to_string())).collect();
        let line = preview["prices"].as_array().unwrap().iter().find(|line| line["packageCode"] == OTHER).unwrap();
        assert_eq!(usd(&line["marginUsd"]), usd(&line["priceUsd"]).minus(usd(&line["costUsd"])));
        assert_eq!(usd(&line["marginChangeUsd"]), usd(&line["priceUsd"]).minus(start[OTHER]));
        let totals = &preview["lists"][0];
        assert_eq!((&totals["priceList"], totals["dearer"].as_u64()), (&json!("default"), Some(promised.len() as u64)));
        assert!(usd(&totals["marginUsd"]) > usd(&totals["marginBeforeUsd"]));

        let published = ok(gateway, "price publish");
        assert_eq!(published["rulesChanged"], 5);
        until_shown(gateway, &gateway.key, PLAN, Some("50.5")).await;
        let shown = ok(gateway, "catalog list --limit 1000000");
        let shown: BTreeMap<String, String> = shown["plans"].as_array().unwrap().iter()
            .map(|plan| (plan["packageCode"].as_str().unwrap().to_string(), plan["wholesalePriceUsd"].to_string())).collect();
        assert_eq!(shown, promised, "the preview is what publishing makes");
        let over = |code: &str| Usd::parse(&shown[code]).unwrap().minus(cost(gateway, code)).micros() / 1_000_000;
        let asia = shown.keys().find(|code| code.starts_with("ASIA-")).unwrap();
        assert_eq!((over(OTHER), over(asia), over("KR-1GB-7D")), (40, 30, 20));
        assert_eq!(charged(gateway, &gateway.key, PLAN).await, "50.5");

        ok(gateway, "price unset --plan JP-1GB-7D");
        ok(gateway, "price unset --country JP --publish");
        assert_eq!(charged(gateway, &gateway.key, PLAN).await, cents_up(cost(gateway, PLAN).plus(Usd::dollars(20))).to_string());
        let log = database::rows(&gateway.app.settings.database,
            "SELECT command, detail, before, after FROM audit WHERE command LIKE 'price %' ORDER BY id");
        assert_eq!(log[4], ["price set", "default, plan JP-1GB-7D", "no rule", "50.50 USD"]);
        assert_eq!(log[5][0], "price publish");
        assert_eq!(log[6], ["price unset", "default, plan JP-1GB-7D", "50.50 USD", "no rule"]);
        assert_eq!(log.len(), 9);
    }

    async fn a_draft_can_be_taken_back(gateway) {
        ok(gateway, "price set --all --percent 50");
        ok(gateway, "price set --country JP --percent 60");
        ok(gateway, "price unset --list retail --all");
        assert_eq!(column(&ok(gateway, "price list")["rules"], "state"), ["changed", "new", "removed"]);
        assert!(ok(gateway, "price preview --list retail")["lists"][0]["takenOff"].as_i64().unwrap() > 3_000);
        assert_eq!(ok(gateway, "price discard")["rulesDiscarded"], 3);
        assert_eq!(column(&ok(gateway, "price list")["rules"], "state"), ["published", "published"]);
        // What is set back to what is published is no change.
        ok(gateway, "price set --all --percent 50");
        ok(gateway, "price set --all --of cost --percent 8 --plus-percent 7 --plus-at-most 0.14 --round cent");
        assert_eq!(column(&ok(gateway, "price list")["rules"], "state"), ["published", "published"]);
        assert_eq!(ok(gateway, "price publish")["pricesChanged"], 0);
    }

    async fn what_would_sell_below_cost_is_not_for_sale(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let below = ok(gateway, "price set --plan JP-1GB-7D --price 0.01");
        assert_eq!(below["plans"], 1);
        let preview = ok(gateway, "price preview");
        assert_eq!(column(&preview["prices"], "packageCode"), [PLAN, PLAN], "retail follows the default price");
        assert_eq!((&preview["prices"][0]["priceUsd"], preview["prices"][0]["belowCostUsd"].to_string()), (&Value::Null, "0.01".into()));
        assert_eq!(column(&preview["lists"], "priceList"), ["default", "retail"]);
        for list in preview["lists"].as_array().unwrap() {
            assert_eq!((&list["takenOff"], &list["notForSaleBelowCost"]), (&json!(1), &json!(1)));
        }
        ok(gateway, "price publish");
        let refusal = gateway.post(ORDERS, json!({ "packageCode": PLAN })).await;
        assert_eq!(refusal.problem(404), "PLAN_NOT_FOUND");
        until_shown(gateway, &gateway.key, PLAN, None).await;
        assert_eq!(ask(gateway, &token, &json!({ "packageCode": PLAN })).await.problem(404), "PLAN_NOT_FOUND");
        gateway.until("it is not found", async || {
            let found = gateway.get("/api/products/search?country=Japan&limit=200").await.expect(200);
            (!column(&found["plans"], "packageCode").contains(&PLAN)).then_some(())
        }).await;

        ok(gateway, "price set --plan JP-1GB-7D --price 0.01 --below-cost --publish");
        assert_eq!(charged(gateway, &gateway.key, PLAN).await, "0.01");
        until_shown(gateway, &gateway.key, PLAN, Some("0.01")).await;
        assert_eq!(ask(gateway, &token, &json!({ "packageCode": PLAN })).await.problem(404), "PLAN_NOT_FOUND", "people's list says nothing of it");
        assert_eq!(ok(gateway, "price preview --list default")["lists"][0]["soldBelowCost"], 1);
    }

    /// Between a supplier's new cost and our new price nobody buys at a loss.
    async fn a_cost_that_rises_above_the_price_stops_the_sale(gateway) {
        let location = &gateway.app.settings.database;
        database::execute(location, &format!("UPDATE plans SET cost = 900000000 WHERE code = '{PLAN}'")).unwrap();
        assert_eq!(gateway.post(ORDERS, json!({ "packageCode": PLAN })).await.problem(404), "PLAN_NOT_FOUND");
        ok(gateway, "price publish");
        let dear = charged(gateway, &gateway.key, PLAN).await;
        assert_eq!(dear, "972.14");
    }

    async fn a_partner_has_a_list_of_its_own(gateway) {
        let (partner, key) = gateway.partner("Acme", Usd::dollars(500)).await;
        let start = shelf(gateway, &key, "JP").await;
        let unknown = format!("partner set {partner} --price-list acme");
        assert!(refused(gateway, &unknown, 1, "INVALID_REQUEST").contains("price publish"));
        assert!(refused(gateway, &format!("partner set {partner} --price-list retail"), 1, "INVALID_REQUEST").contains("for partners"));
        ok(gateway, "price set --list acme --country JP --of default --percent -1 --least-margin 0 --publish");
        ok(gateway, &unknown);
        let cheaper = start[OTHER].percent(99);
        let cheaper = cents_up(cheaper).to_string();
        until_shown(gateway, &key, OTHER, Some(&cheaper)).await;
        assert_eq!(charged(gateway, &key, OTHER).await, cheaper);
        assert_eq!(charged(gateway, &gateway.key, OTHER).await, start[OTHER].to_string(), "the others pay what they paid");
        assert_eq!(shelf(gateway, &key, "KR").await, shelf(gateway, &gateway.key, "KR").await, "the rest is default's");
        // The list stays while a partner has it, also without rules of its own.
        ok(gateway, "price unset --list acme --country JP --publish");
        until_shown(gateway, &key, OTHER, Some(&start[OTHER].to_string())).await;
        ok(gateway, &format!("partner set {partner} --price-list default"));
        assert!(ok(gateway, "price publish")["pricesChanged"].as_i64().unwrap() > 3_000, "then its prices go");
        refused(gateway, &unknown, 1, "INVALID_REQUEST");
    }

    async fn a_checkout_keeps_its_price(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        ok(gateway, "price set --list retail --plan JP-1GB-7D --price 77.77 --publish");
        let paid = settle(gateway, &made, "COMPLETED").await;
        assert_eq!(paid["plan"]["basePriceUsd"], made["plan"]["basePriceUsd"]);
        let dearer = open(gateway, &token).await;
        assert_eq!(usd(&dearer["plan"]["basePriceUsd"]), Usd::parse("77.77").unwrap());
        assert!(amount(&dearer) > Usd::dollars(77));
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        ask(gateway, &token, &json!({ "packageCode": PLAN, "payWith": "wallet" })).await.expect(200);
        assert_eq!(balance(gateway, &token).await, Usd::parse("22.23").unwrap());
    }

    /// Two plans change their price at once: whoever pays the new one for one of them never pays the old one for the
    /// other afterwards, and no list shows a mixture.
    async fn publishing_is_one_moment_for_everybody(gateway) with [("rate_limit", "100000"), ("rate_burst", "100000")] {
        let start = shelf(gateway, &gateway.key, "JP").await;
        ok(gateway, "price set --all --percent 30");
        let (url, dir) = (database_url(gateway), gateway.dir.clone());
        let (_, key) = gateway.partner("Rich", Usd::dollars(100_000)).await;
        assert_eq!(charged(gateway, &key, PLAN).await, start[PLAN].to_string());
        let publishing = tokio::task::spawn_blocking(move || run(&url, &dir, &[], &["price", "publish", "--json"]));
        let new: BTreeMap<&str, Usd> = [PLAN, OTHER]
            .map(|code| (code, cents_up(Usd::from_micros((cost(gateway, code).micros() * 130 + 99) / 100))))
            .into();
        let buy = async |code: &str| usd(&serde_json::from_str(&charged(gateway, &key, code).await).unwrap());
        let mut after = 0;
        while after < 3 {
            let (first, second) = (buy(PLAN).await, buy(OTHER).await);
            assert!(first == start[PLAN] || first == new[PLAN], "{first}");
            assert!(second == start[OTHER] || second == new[OTHER], "{second}");
            assert!(first == start[PLAN] || second == new[OTHER], "new, then old: {first} {second}");
            let shown = shelf(gateway, &key, "JP").await;
            let is_new = [PLAN, OTHER].map(|code| shown[code] == new[code]);
            assert_eq!(is_new[0], is_new[1], "a mixture is shown");
            assert!(is_new[0] || [PLAN, OTHER].iter().all(|code| shown[*code] == start[*code]));
            after += usize::from(first == new[PLAN] && publishing.is_finished());
        }
        publishing.await.unwrap().document(0);
        let old = start[PLAN].to_string();
        let limited = json!({ "packageCode": PLAN, "maxPriceUsd": serde_json::from_str::<Value>(&old).unwrap() });
        assert_eq!(gateway.send_as(&key, "POST", ORDERS, Some(limited)).await.problem(409), "PRICE_CHANGED");
    }

    /// A process that dies while it publishes leaves rows of an edition that never began.
    async fn half_a_publication_is_never_sold(gateway) {
        let start = shelf(gateway, &gateway.key, "JP").await;
        let half = format!("UPDATE prices SET earlier_price = price, earlier_below_cost = below_cost, price = 10000, below_cost = 1,
             since = (SELECT n + 1 FROM versions WHERE name = 'prices') WHERE code IN ('{PLAN}', 'KR-1GB-7D');
             UPDATE price_turn SET holder = 'the dead', until = 1");
        database::execute(&gateway.app.settings.database, &half).unwrap();
        assert_eq!(charged(gateway, &gateway.key, PLAN).await, start[PLAN].to_string());
        ok(gateway, "price set --plan KR-1GB-7D --price 9.99");
        assert_eq!(ok(gateway, "price publish")["pricesChanged"], 2, "its wholesale and its retail price");
        assert_eq!(charged(gateway, &gateway.key, PLAN).await, start[PLAN].to_string());
        assert_eq!(charged(gateway, &gateway.key, "KR-1GB-7D").await, "9.99");
    }

    async fn sheets_go_out_and_come_back(gateway) {
        let sheet = simgate(gateway, &["price", "export", "--prices"]).stdout;
        assert!(sheet.starts_with("packageCode,name,supplier,costUsd,priceUsd,belowCost\n"), "{sheet}");
        let path = file(gateway, &sheet);
        let back = ok(gateway, &format!("price import {}", path.display()));
        assert_eq!((back["lines"].as_u64(), &back["rulesChanged"]), (Some(sheet.lines().count() as u64 - 1), &json!(0)));
        let path = file(gateway, "\u{feff}name,packageCode,priceUsd\r\n\"Japan, 1 GB\",jp-1gb-7d,8.5\r\nother,JP-5GB-30D,\r\n");
        assert_eq!(ok(gateway, &format!("price import {} --publish", path.display()))["pricesChanged"], 2);
        assert_eq!(charged(gateway, &gateway.key, PLAN).await, "8.5");

        ok(gateway, "price set --region ASIA --percent -5 --least-margin 0.1 --round .49/.99");
        let rules = simgate(gateway, &["price", "export"]).stdout;
        assert_eq!(rules.lines().collect::<Vec<_>>(), [
            "scope,target,percent,plusPercent,plusAtMostUsd,fixedUsd,leastMarginUsd,rounding,priceUsd,belowCost,base",
            "all,,8,7,0.14,,,cent,,false,cost",
            "region,ASIA,-5,,,,0.1,.49/.99,,false,",
            "plan,JP-1GB-7D,,,,,,,8.5,false,",
        ]);
        let path = file(gateway, &rules);
        assert_eq!(ok(gateway, &format!("price import {} --list acme", path.display()))["rulesChanged"], 3);
        assert_eq!(ok(gateway, &format!("price import {}", path.display()))["rulesChanged"], 0);
        let taken = simgate(gateway, &["price", "export", "--list", "acme"]).stdout;
        assert_eq!(taken, rules);
        assert_eq!(ok(gateway, "price export --list acme")["rules"][1]["percent"], -5);
        let log = database::rows(&gateway.app.settings.database,
            "SELECT detail, before, after FROM audit WHERE command = 'price import' ORDER BY id");
        assert_eq!(log, [["default, 2 lines", "1 rules", "1 rules new or changed"], ["acme, 3 lines", "0 rules", "3 rules new or changed"]]);
    }

    async fn every_wrong_line_is_named_and_nothing_is_changed(gateway) {
        let path = file(gateway, "packageCode,priceUsd\nJP-1GB-7D,5\nNO-SUCH,5\nJP-5GB-30D,cheap\njp-1gb-7d,6\nKR-1GB-7D,-2\n,3\nKR-5GB-30D,1,2\n");
        let said = refused(gateway, &format!("price import {}", path.display()), 1, "INVALID_REQUEST");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines, [
            "nothing was changed:",
            "line 3 is for plan NO-SUCH, and there is none",
            "line 4 is wrong: priceUsd must be a number",
            "line 5 is for plan JP-1GB-7D again, like line 2",
            "line 6 is wrong: a price must be more than 0",
            "line 7 is wrong: the scope plan needs a target",
            "line 8 has 3 cells, and there are 2 columns",
        ]);
        let path = file(gateway, "scope,target,percent,rounding,base\nregion,NOWHERE,5,,\ncountry,XX,5,,\nall,,,shop,\nall,,5,dime,\nall,,5,,default\nsupplier,nobody,5,,\ncity,Rome,5,,\n");
        let said = refused(gateway, &format!("price import {}", path.display()), 1, "INVALID_REQUEST");
        assert_eq!(said.lines().count(), 8, "{said}");
        for (text, why) in [
            ("", "line 1 must name the columns"),
            ("code,price\nx,1\n", "line 1 must name the columns"),
            ("scope,targett\nall,\n", "line 1 names the column \"targett\""),
            ("packageCode,priceUsd,priceUsd\nx,1,1\n", "line 1 names the column priceUsd twice"),
            ("packageCode,priceUsd\n\"x,1\n", "line 2 has quotes without an end"),
        ] {
            let path = file(gateway, text);
            let said = refused(gateway, &format!("price import {}", path.display()), 1, "INVALID_REQUEST");
            assert!(said.contains(why), "{text:?}: {said}");
        }
        refused(gateway, "price import /no/such/file.csv", 2, "INVALID_REQUEST");
        assert_eq!(column(&ok(gateway, "price list")["rules"], "state"), ["published", "published"]);
    }

    async fn wrong_rules_are_refused(gateway) {
        for (line, exit, code) in [
            ("price set --all", 1, "INVALID_REQUEST"),
            ("price set --percent 5", 2, "INVALID_REQUEST"),
            ("price set --all --country JP --percent 5", 2, "INVALID_REQUEST"),
            ("price set --all --percent 5 --price 1", 1, "INVALID_REQUEST"),
            ("price set --all --percent 5.001", 2, "INVALID_REQUEST"),
            ("price set --all --percent -100", 1, "INVALID_REQUEST"),
            ("price set --all --plus-percent 5", 1, "INVALID_REQUEST"),
            ("price set --all --percent 5 --of default", 1, "INVALID_REQUEST"),
            ("price set --all --percent 5 --of nothing", 2, "INVALID_REQUEST"),
            ("price set --all --percent 5 --round dime", 2, "INVALID_REQUEST"),
            ("price set --all --least-margin 1 --below-cost", 1, "INVALID_REQUEST"),
            ("price set --list 'my list' --all --percent 5", 2, "INVALID_REQUEST"),
            ("price set --country XX --percent 5", 2, "INVALID_REQUEST"),
            ("price set --region NOWHERE --percent 5", 1, "INVALID_REQUEST"),
            ("price set --supplier nobody --percent 5", 1, "INVALID_REQUEST"),
            ("price set --plan NO-SUCH --price 5", 1, "PLAN_NOT_FOUND"),
            ("price set --plan JP-1GB-7D --price 0", 1, "INVALID_REQUEST"),
            ("price unset --country JP", 1, "INVALID_REQUEST"),
        ] {
            refused(gateway, line, exit, code);
        }
        assert!(refused(gateway, "price unset --country JP", 1, "INVALID_REQUEST").contains("country JP has no rule on the list default"));
        assert_eq!(column(&ok(gateway, "price list")["rules"], "state"), ["published", "published"]);
        let text = simgate(gateway, &["price", "preview"]);
        assert!(text.exit == 0 && text.stdout.contains("notForSaleBelowCost"), "{}", text.stdout);
        let told = simgate(gateway, &["price", "set", "--all", "--percent", "9"]);
        assert!(told.exit == 0 && told.stdout.contains("simgate price publish"), "{}{}", told.stdout, told.stderr);
    }
}

fn cents_up(amount: Usd) -> Usd {
    Usd::from_micros((amount.micros() + 9_999) / 10_000 * 10_000)
}
