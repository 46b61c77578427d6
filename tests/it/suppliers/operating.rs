//! What an operator does with suppliers by the command line.

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::command_line::{ok, simgate, split};
use crate::support::harness::{Gateway, booked, both_databases};

const ORDERS: &str = "/api/b2b/v1/orders";

async fn sells(gateway: &Gateway) -> bool {
    gateway.get("/api/b2b/v1/plans?query=jp-1gb-7d").await.expect(200)["total"] == 1
}

async fn until_sells(gateway: &Gateway, wanted: bool) {
    gateway.until("the catalog follows", async || (sells(gateway).await == wanted).then_some(())).await;
}

/// A command that must not succeed: what it says.
fn refused(gateway: &Gateway, line: &str) -> Value {
    let args = split(line);
    simgate(gateway, &[args.as_slice(), &["--json"]].concat()).document(1)
}

fn count(list: &Value, name: &str) -> i64 {
    list[name].as_i64().unwrap_or_else(|| panic!("{name}: {list}"))
}

both_databases! {
    async fn a_supplier_is_listed_with_how_it_stands(gateway) {
        let list = ok(gateway, "supplier list");
        let sim = &list["suppliers"][0];
        assert_eq!((&sim["name"], &sim["kind"], &sim["enabled"]), (&json!("sim"), &json!("simulator"), &json!(true)));
        assert!(count(sim, "plans") > 3_000 && sim["plans"] == sim["onSale"], "{sim}");
        let tried = ok(gateway, "supplier test sim");
        assert_eq!((&tried["passed"], &tried["plans"]), (&json!(true), &sim["plans"]));
        let unknown = simgate(gateway, &["supplier", "test", "acme", "--json"]).refused(2, "INVALID_SETTINGS");
        assert!(unknown.contains("the settings have sim"), "{unknown}");
    }

    async fn a_disabled_supplier_sells_nothing_and_delivers_what_it_sold(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let off = ok(gateway, "supplier disable sim");
        assert_eq!((&off["changed"], &off["onSale"]), (&json!(true), &json!(0)));
        assert_eq!(gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.problem(404), "PLAN_NOT_FOUND");
        until_sells(gateway, false).await;
        // A sync does not put it back on sale.
        ok(gateway, "supplier sync sim");
        assert_eq!(gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.problem(404), "PLAN_NOT_FOUND");
        let usage = format!("{ORDERS}/{}/usage", order["iccid"].as_str().unwrap());
        gateway.get(&usage).await.expect(200);
        assert_eq!(ok(gateway, "supplier enable sim")["changed"], true);
        assert_eq!(ok(gateway, "supplier enable sim")["changed"], false);
        until_sells(gateway, true).await;
        gateway.order("JP-1GB-7D").await;
    }

    async fn a_sync_that_looks_wrong_waits_for_the_operator(gateway) {
        let before = count(&ok(gateway, "supplier list")["suppliers"][0], "plans");
        let preview = ok(gateway, "supplier sync sim --dry-run --sandbox-plans 8000");
        assert_eq!((count(&preview, "addedCount"), count(&preview, "goneCount")), (8_000 - before, 0));
        assert_eq!(preview["applied"], false);
        assert_eq!(count(&ok(gateway, "supplier list")["suppliers"][0], "plans"), before);
        assert_eq!(ok(gateway, "supplier sync sim --sandbox-plans 8000")["applied"], true);
        let held = refused(gateway, "supplier sync sim");
        assert_eq!((count(&held, "goneCount"), &held["applied"]), (8_000 - before, &json!(false)));
        assert!(held["looksWrong"][0].as_str().unwrap().contains("would be gone"), "{held}");
        let sim = &ok(gateway, "supplier list")["suppliers"][0];
        assert_eq!(count(sim, "onSale"), 8_000);
        assert!(sim["heldBack"].as_str().unwrap().contains("would be gone"), "{sim}");
        let checks = simgate(gateway, &["doctor", "--json"]).document(0);
        assert!(checks.to_string().contains("was held back"), "{checks}");
        ok(gateway, "supplier sync sim --accept");
        let sim = &ok(gateway, "supplier list")["suppliers"][0];
        assert_eq!((count(sim, "onSale"), &sim["heldBack"]), (before, &Value::Null));
        // A plan that comes back has the code that it had.
        ok(gateway, "supplier sync sim --sandbox-plans 8000");
        assert_eq!(count(&ok(gateway, "supplier list")["suppliers"][0], "onSale"), 8_000);
    }

    async fn a_trial_buys_once_a_day_and_is_in_the_books(gateway) {
        let asked = simgate(gateway, &["supplier", "test", "sim", "--buy", "--json"]).refused(1, "IDEMPOTENCY_CONFLICT");
        assert!(asked.contains("nothing was bought"), "{asked}");
        let tried = ok(gateway, "supplier test sim --buy --yes");
        assert_eq!((&tried["passed"], &tried["doubts"]), (&json!(true), &json!("resolved as declared")));
        assert_eq!(tried["cost"], tried["returned"], "{tried}");
        assert_eq!(booked(&gateway.app, "supplier:sim").await, Usd::ZERO);
        let again = simgate(gateway, &["supplier", "test", "sim", "--buy", "--yes", "--json"]).refused(1, "IDEMPOTENCY_CONFLICT");
        assert!(again.contains("within the last day"), "{again}");
        let audit = ok(gateway, "audit list").to_string();
        assert!(audit.contains("supplier test --buy") && audit.contains(tried["order"].as_str().unwrap()), "{audit}");
    }

    async fn what_was_paid_in_is_booked_once(gateway) {
        let paid = ok(gateway, "supplier fund sim 500 --ref wire-1");
        assert_eq!((&paid["bookedUsd"], &paid["known"]), (&json!(500), &json!(false)));
        assert_eq!(ok(gateway, "supplier fund sim 500 --ref wire-1")["known"], true);
        simgate(gateway, &["supplier", "fund", "sim", "400", "--ref", "wire-1", "--json"]).refused(1, "IDEMPOTENCY_CONFLICT");
        ok(gateway, "supplier fund sim 100 --ref wire-2");
        gateway.order("JP-1GB-7D").await;
        let cost = booked(&gateway.app, "cost:sim").await;
        assert!(cost.is_positive());
        assert_eq!(booked(&gateway.app, "supplier:sim").await, Usd::dollars(600).minus(cost));
        // The simulator's balance is not what we paid in, and without its journal it lists no sales.
        let found = refused(gateway, "supplier reconcile sim");
        assert_eq!(found["agrees"], false);
        assert!(found["trouble"].as_str().unwrap().contains("sandbox_journal"), "{found}");
        let journal = gateway.app.settings.sandbox_journal.as_ref().unwrap().display().to_string();
        let found = refused(gateway, &format!("supplier reconcile sim --sandbox-journal {journal}"));
        assert_eq!((&found["differences"], &found["salesListed"]), (&json!([]), &json!(1)), "{found}");
    }
}
