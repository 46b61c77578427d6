//! An operator's mistakes: countries that are none, periods that are empty, commands that were pasted twice or died half
//! way. Each is answered with one true sentence.

use serde_json::{Value, json};
use simgate::store::Location;

use crate::support::buying;
use crate::support::command_line::{ok, simgate, split};
use crate::support::database::execute;
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::sign_in;
use crate::support::shapes::{API, ORDERS, column};

/// Why a command line is refused with exit code 2.
fn usage(gateway: &Gateway, line: &str) -> String {
    simgate(gateway, &[split(line).as_slice(), &["--json"]].concat()).refused(2, "INVALID_REQUEST")
}

/// Makes the database refuse new keys, until `allow_keys`.
fn refuse_keys(location: &Location) {
    let sql = match location {
        Location::Sqlite(_) => {
            "CREATE TRIGGER no_keys BEFORE INSERT ON api_keys BEGIN SELECT RAISE(ABORT, 'no keys now'); END"
        }
        Location::Postgres(_) => {
            "CREATE FUNCTION no_keys() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no keys now'; END $$;
             CREATE TRIGGER no_keys BEFORE INSERT ON api_keys FOR EACH ROW EXECUTE FUNCTION no_keys()"
        }
    };
    execute(location, sql).unwrap();
}

fn allow_keys(location: &Location) {
    let sql = match location {
        Location::Sqlite(_) => "DROP TRIGGER no_keys",
        Location::Postgres(_) => "DROP TRIGGER no_keys ON api_keys; DROP FUNCTION no_keys()",
    };
    execute(location, sql).unwrap();
}

both_databases! {
    async fn a_country_that_is_none_is_told_as_by_the_api(gateway) {
        for code in ["UK", "xx", "EU", "JPN"] {
            let refused = gateway.get(&format!("{API}/plans?country={code}")).await;
            assert_eq!(refused.status, 400);
            let message = refused.json()["errors"][0]["message"].as_str().unwrap().to_string();
            for line in ["catalog list", "coupon create --code SUMMER --percent 5"] {
                let why = usage(gateway, &format!("{line} --country {code}"));
                assert!(why.contains(&message), "{why}: {message}");
            }
        }
        assert_eq!(ok(gateway, "catalog list --country kp")["total"], 0, "a country without plans");
        assert_eq!(ok(gateway, "coupon create --code SUMMER --percent 5 --country gb")["country"], "GB");
    }

    async fn a_period_that_is_empty_is_refused(gateway) {
        let commands = ["report margin", "report trial-balance", "audit list", &format!("wallet statement {}", gateway.partner)];
        for command in commands {
            for period in ["--from 2026-02-01 --to 2026-01-31", "--from 2026-01-01T00:00:00Z --to 2026-01-01T00:00:00Z"] {
                let why = usage(gateway, &format!("{command} {period}"));
                assert!(why.contains("--from must be before --to"), "{why}");
            }
            ok(gateway, &format!("{command} --from 2026-01-31 --to 2026-01-31"));
        }
    }

    async fn a_refund_pasted_twice_is_told_once(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let refund = format!("order refund {} 0.82 --reason sorry", order["id"].as_str().unwrap());
        assert_eq!(simgate(gateway, &split(&refund)).stderr, "");
        let again = simgate(gateway, &split(&refund));
        assert!(again.exit == 1 && again.stderr.lines().count() == 1, "{}", again.stderr);
        assert!(again.stderr.starts_with("error: At most 0 USD") && again.stderr.contains("the same was done already, at 20"), "{}", again.stderr);
        assert_eq!(gateway.balance().await, "1000");
        let debit = split("wallet debit ID 600 --reason back").into_iter().map(|word| if word == "ID" { gateway.partner.as_str() } else { word });
        let debit: Vec<&str> = debit.collect();
        assert_eq!(simgate(gateway, &debit).exit, 0);
        let again = simgate(gateway, &debit);
        assert!(again.exit == 1 && again.stderr.starts_with("error: the wallet holds only 400 USD"), "{}", again.stderr);
    }

    async fn a_partner_is_made_whole_or_not_at_all(gateway) {
        let database = &gateway.app.settings.database;
        let line = "partner create --name Acme --email ops@acme.example --credit 50";
        refuse_keys(database);
        let died = simgate(gateway, &split(line));
        allow_keys(database);
        assert!(died.exit == 1 && died.stderr.contains("no keys now"), "{}{}", died.stdout, died.stderr);
        simgate(gateway, &["find", "ops@acme.example", "--json"]).refused(1, "NOT_FOUND");
        let made = ok(gateway, line);
        let statement = ok(gateway, "wallet statement ops@acme.example");
        assert_eq!((&statement["partnerId"], &statement["balanceUsd"]), (&made["partnerId"], &json!(50)));
        assert_eq!(column(&statement["transactions"], "note"), ["opening credit"]);
        let deeds = ok(gateway, "audit list --limit 4")["deeds"].clone();
        assert_eq!(column(&deeds, "command"), ["key create", "partner invite", "wallet credit", "partner create"]);
    }

    async fn a_key_of_the_same_name_is_told_by_its_id(gateway) {
        let line = format!("key create {} --name website", gateway.partner);
        let first = ok(gateway, &line);
        let why = simgate(gateway, &[split(&line).as_slice(), &["--json"]].concat()).refused(1, "INVALID_REQUEST");
        assert_eq!(why, format!("name is taken by {}; choose another, or revoke that key first", first["apiKey"].as_str().unwrap()));
    }

    async fn people_and_partners_are_called_what_they_are(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        ok(gateway, "wallet credit ann@example.com 20 --reason gift --ref gift-1");
        let bought = buying::ask(gateway, &token, &json!({ "packageCode": "JP-1GB-7D", "payWith": "wallet" })).await.expect(200);
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(200);
        let user = ok(gateway, "user show ann@example.com")["userId"].clone();
        let listed = ok(gateway, "order list --account ann@example.com")["orders"].clone();
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["partnerId"]), (1, &user), "programs know it by this name");
        let order = bought["orderId"].as_str().unwrap();
        let shown = ok(gateway, &format!("order show {order}"));
        assert!(shown["userId"] == user && shown.get("partnerId").is_none(), "{shown}");
        for line in ["order list", "report wallets", "report margin"] {
            let table = simgate(gateway, &split(line)).stdout;
            assert!(table.contains("account") && !table.contains("partner"), "{table}");
        }
        for line in ["partner show", "partner suspend", "partner set --name Ann", "key create", "key list"] {
            let why = simgate(gateway, &[split(line).as_slice(), &["ann@example.com", "--json"]].concat()).refused(1, "NOT_FOUND");
            assert!(why.contains("is a user, not a partner"), "{line}: {why}");
        }
        let lines = ok(gateway, "wallet statement ann@example.com")["transactions"].clone();
        let of = |line: &Value| (line["ref"].clone(), line["orderId"].clone());
        assert_eq!((of(&lines[1]), of(&lines[0])), ((json!("gift-1"), Value::Null), (Value::Null, json!(order))));
    }
}
