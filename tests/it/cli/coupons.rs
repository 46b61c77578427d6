//! `simgate coupon`, as people and programs run it, and what `ledger verify` says when somebody tampers with uses.

use serde_json::{Value, json};

use crate::support::browser::open;
use crate::support::buying::{ask, fund, settle};
use crate::support::command_line::{ok, simgate, split};
use crate::support::coupons::{DEAR, limited};
use crate::support::database;
use crate::support::harness::both_databases;
use crate::support::logins::sign_in;
use crate::support::shapes::{column, is_time};
use simgate::domain::money::Usd;
use simgate::ops::coupons;

both_databases! {
    async fn coupons_are_made_listed_and_disabled(gateway) {
        let made = ok(gateway, "coupon create --code Autumn --fixed 2.5 --affiliate --app-only --package jp-1gb-7d --country jp \
            --min 3 --starts 2026-09-01 --ends 2099-09-30 --uses 100 --uses-per-user 2 --below-cost --description 'For friends'");
        for (field, value) in [
            ("code", json!("AUTUMN")), ("percent", Value::Null), ("affiliate", json!(true)), ("applicability", json!("MOBILE_APP")),
            ("packageCode", json!("JP-1GB-7D")), ("country", json!("JP")), ("uses", json!(100)), ("usesPerUser", json!(2)),
            ("belowCost", json!(true)), ("description", json!("For friends")), ("startsAt", json!("2026-09-01T00:00:00.000Z")),
            ("endsAt", json!("2099-10-01T00:00:00.000Z")), ("disabledAt", Value::Null),
        ] {
            assert_eq!(made[field], value, "{field}");
        }
        assert_eq!((made["fixedUsd"].to_string(), made["minUsd"].to_string()), ("2.5".into(), "3".into()));
        assert!(is_time(made["createdAt"].as_str().unwrap()));
        let plain = ok(gateway, "coupon create --percent 100 --code x");
        assert_eq!((&plain["code"], &plain["description"], &plain["status"]), (&json!("X"), &json!("100% off"), &json!("ACTIVE")));
        let listed = ok(gateway, "coupon list");
        assert_eq!(column(&listed["coupons"], "code"), ["AUTUMN", "X"]);
        assert_eq!((&listed["coupons"][0]["reserved"], &listed["coupons"][0]["spent"]), (&json!(0), &json!(0)));
        let disabled = ok(gateway, "coupon disable autumn");
        assert_eq!((&disabled["code"], &disabled["status"]), (&json!("AUTUMN"), &json!("DISABLED")));
        assert_eq!(ok(gateway, "coupon disable AUTUMN"), disabled, "twice is once");
        let text = simgate(gateway, &["coupon", "list"]);
        assert!(text.exit == 0 && text.stdout.contains("DISABLED") && text.stdout.contains("100% off"), "{}", text.stdout);
        let log = database::rows(&gateway.app.settings.database, "SELECT actor, command, detail FROM audit WHERE command LIKE 'coupon %' ORDER BY id");
        let log: Vec<(&str, &str)> = log.iter().map(|line| (line[1].as_str(), line[2].as_str())).collect();
        assert_eq!(log, [("coupon create", "AUTUMN: 2.5 USD off"), ("coupon create", "X: 100% off"), ("coupon disable", "AUTUMN")]);
    }

    async fn what_cannot_be_a_coupon_is_refused(gateway) {
        ok(gateway, "coupon create --code TAKEN --percent 5");
        for (line, exit, code) in [
            ("coupon create --code taken --percent 6", 1, "COUPON_INVALID"),
            ("coupon create --code A --percent 5 --package NO-SUCH", 1, "PLAN_NOT_FOUND"),
            ("coupon create --code A --percent 5 --package JP-5GB-30D-TOPUP", 1, "WRONG_PLAN_TYPE"),
            ("coupon disable NOTHING", 1, "NOT_FOUND"),
            ("coupon create --code A", 2, "INVALID_REQUEST"),
            ("coupon create --percent 5", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 5 --fixed 1", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 0", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 101", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 12.5", 2, "INVALID_REQUEST"),
            ("coupon create --code A --fixed 0", 2, "INVALID_REQUEST"),
            ("coupon create --code A --fixed -1", 2, "INVALID_REQUEST"),
            ("coupon create --code A --fixed 0.333333", 2, "INVALID_REQUEST"),
            ("coupon create --code 'two words' --percent 5", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 5 --country JPN", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 5 --country XX", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 5 --uses 0", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 5 --uses-per-user 0", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 5 --starts soon", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 5 --starts 2026-02-02 --ends 2026-02-01", 2, "INVALID_REQUEST"),
            ("coupon create --code A --percent 5 --ends 2026-02-01", 2, "INVALID_REQUEST"),
        ] {
            let args: Vec<&str> = split(line);
            simgate(gateway, &[args.as_slice(), &["--json"]].concat()).refused(exit, code);
        }
        for (option, value, said) in [
            ("--package", "JP-5GB-30D-TOPUP", "JP-5GB-30D-TOPUP is a TOPUP plan"),
            ("--country", "xx", "is XX, the code of no country"),
        ] {
            let args = ["coupon", "create", "--code", "A", "--percent", "5", option, value];
            let told = simgate(gateway, &args);
            assert!(told.exit > 0 && told.stderr.contains(said), "{}", told.stderr);
        }
        let told = simgate(gateway, &split("coupon create --code A --fixed 0.333333"));
        assert!(told.exit == 2 && told.stderr.contains("must be whole cents"), "{}", told.stderr);
        assert_eq!(column(&ok(gateway, "coupon list")["coupons"], "code"), ["TAKEN"]);
    }

    async fn nothing_hidden_is_told_of_a_coupon(gateway) {
        let made = ok(gateway, "coupon create --code HALF --percent 50 --description '\u{202e}Half\u{200b} price\u{e0041}'");
        assert_eq!(made["description"], "Half price");
        let blank = ok(gateway, "coupon create --code BLANK --percent 5 --description '\u{2066}\u{feff}'");
        assert_eq!(blank["description"], "5% off", "what nobody can see is no description");
        // Older rows hold what nobody looked at.
        let sql = "UPDATE coupons SET description = 'Ha\u{200b}lf \u{202e}off' WHERE code = 'HALF'";
        database::execute(&gateway.app.settings.database, sql).unwrap();
        assert_eq!(column(&ok(gateway, "coupon list")["coupons"], "description"), ["Half off", "5% off"]);
        let page = open(gateway, &format!("/checkout?plan={DEAR}&discount=half")).await;
        assert!(page.status == 200 && page.text.contains("Half off"), "{}", page.text);
        assert!(!page.text.contains(['\u{200b}', '\u{202e}']), "{}", page.text);
        let told = coupons::available(&gateway.app, 10).await.unwrap().newest;
        let told: Vec<(&str, &str)> = told.iter().map(|offer| (offer.code.as_str(), offer.description.as_str())).collect();
        assert_eq!(told, [("BLANK", "5% off"), ("HALF", "Half off")]);
    }

    async fn tampering_with_uses_is_found_and_named(gateway) {
        limited(gateway, "TEN", 10).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let wish = json!({ "packageCode": DEAR, "discountCode": "TEN" });
        let open = ask(gateway, &token, &wish).await.expect(402);
        let asked = ask(gateway, &token, &wish).await.expect(402);
        let paid = settle(gateway, &asked, "COMPLETED").await;
        let from_wallet = json!({ "packageCode": DEAR, "discountCode": "TEN", "payWith": "wallet" });
        let bought = ask(gateway, &token, &from_wallet).await.expect(200);
        let text = |value: &Value| value.as_str().unwrap().to_string();
        let (open, asked, paid, bought) = (text(&open["invoiceId"]), text(&asked["invoiceId"]), text(&paid["orderId"]), text(&bought["orderId"]));
        let location = &gateway.app.settings.database;
        let tables = ["coupons", "coupon_uses", "orders", "checkouts"];
        for table in tables {
            database::execute(location, &format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).unwrap();
        }
        let counts = "every coupon's count equals its uses";
        let uses = "a coupon's use is reserved only while its checkout is open, spent while its order stands";
        let (order_use, checkout_use) = ("every discounted order has its coupon's use", "every discounted checkout has its coupon's use");
        let booked = "what a coupon took off a delivered order's price is booked, and nothing else is";
        for (damage, law, row) in [
            ("UPDATE coupons SET used = used - 1".to_string(), counts, "TEN"),
            ("UPDATE coupons SET used = used + 1".to_string(), counts, "TEN"),
            (format!("DELETE FROM coupon_uses WHERE holder = '{bought}'"), counts, "TEN"),
            (format!("DELETE FROM coupon_uses WHERE holder = '{bought}'"), order_use, bought.as_str()),
            (format!("DELETE FROM coupon_uses WHERE holder = '{open}'"), checkout_use, open.as_str()),
            (format!("UPDATE coupon_uses SET state = 'RETURNED' WHERE holder = '{open}'"), counts, "TEN"),
            (format!("UPDATE coupon_uses SET state = 'SPENT' WHERE holder = '{open}'"), uses, open.as_str()),
            (format!("UPDATE coupon_uses SET state = 'RETURNED' WHERE holder = '{bought}'"), uses, bought.as_str()),
            (format!("UPDATE coupon_uses SET account = account + 1 WHERE holder = '{asked}'"), uses, asked.as_str()),
            (format!("UPDATE coupon_uses SET order_id = NULL WHERE holder = '{asked}'"), uses, asked.as_str()),
            (format!("UPDATE checkouts SET status = 'EXPIRED' WHERE id = '{open}'"), uses, open.as_str()),
            (format!("UPDATE checkouts SET coupon = NULL WHERE id = '{open}'"), checkout_use, open.as_str()),
            (format!("UPDATE orders SET coupon = NULL WHERE id = '{paid}'"), order_use, paid.as_str()),
            (format!("UPDATE orders SET discount = discount + 1 WHERE id = '{paid}'"), booked, paid.as_str()),
            (format!("UPDATE orders SET discount = 0 WHERE id = '{bought}'"), booked, bought.as_str()),
        ] {
            database::execute(location, &damage).unwrap_or_else(|error| panic!("{damage}: {error}"));
            let verdict = simgate(gateway, &["ledger", "verify", "--json"]).document(1);
            let breaches = verdict["breaches"].as_array().unwrap();
            let named = breaches.iter().any(|breach| breach["law"] == law && breach["row"] == row);
            assert!(named, "{damage}: {law}: {row} is not among {breaches:#?}");
            let restore: String = tables.iter().map(|t| format!("DELETE FROM {t}; INSERT INTO {t} SELECT * FROM kept_{t};")).collect();
            database::execute(location, &format!("BEGIN; {restore} COMMIT")).unwrap();
        }
        assert_eq!(ok(gateway, "ledger verify")["ok"], true);
        // And the schema is the second to assert what the program asserts first.
        for sql in ["UPDATE coupons SET used = 11", "UPDATE coupons SET used = -1", "UPDATE coupons SET fixed = 5"] {
            database::execute(location, sql).expect_err(sql);
        }
    }
}
