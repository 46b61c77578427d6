//! Suppliers that change under a gateway that sells: one that leaves the settings, one that falls silent, and costs that
//! are others than we knew.

use serde_json::json;
use simgate::domain::money::Usd;
use simgate::ops::suppliers;
use simgate::ops::sync;

use super::fakes::esim_access::Fault;
use super::selling::{ORDERS, airalo_api, buy, esim_access_family, open, plan_of, with_supplier};
use crate::support::command_line::{ok, simgate};
use crate::support::database::{execute, rows};
use crate::support::harness::{
    Db, Gateway, booked, check_books, each_database, on_place, reply, start_gateway,
};

const CODE: &str = "JC172";

async fn refused(gateway: &Gateway, code: &str, status: u16) -> String {
    let before = gateway.balance().await;
    let problem = gateway.post(ORDERS, json!({ "packageCode": code })).await.problem(status);
    assert_eq!(gateway.balance().await, before, "the money is there");
    problem
}

async fn cost(gateway: &Gateway, code: &str) -> Option<Usd> {
    let lines = format!("SELECT CAST(cost AS TEXT) FROM plans WHERE code = '{code}' AND on_sale = 1");
    let found = rows(&gateway.app.settings.database, &lines);
    found.first().map(|row| Usd::from_micros(row[0].parse().unwrap()))
}

/// Its plans are refused at once, and what it sold before is answered without it.
mod one_that_left_the_settings_sells_nothing {
    use super::*;

    fn check(db: Db) {
        on_place(db, async |place| {
            let shop = esim_access_family().await;
            let (gateway, stop, served) = start_gateway(place, &shop.fields()).await;
            open(&gateway).await;
            let code = plan_of(&gateway, CODE);
            let order = buy(&gateway, &code).await;
            let usage = format!("{ORDERS}/{}/usage", order["iccid"].as_str().unwrap());
            gateway.get(&usage).await.expect(200);
            let key = gateway.key.clone();
            stop.cancel();
            served.await.unwrap();

            let (gateway, stop, served) = start_gateway(place, &[]).await;
            let gateway = Gateway { key, ..gateway };
            assert_eq!(refused(&gateway, &code, 503).await, "SUPPLIER_UNAVAILABLE");
            let report = gateway.get(&usage).await.expect(200);
            assert_eq!(report["stale"], true, "{report}");
            let cancel = format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap());
            assert_eq!(gateway.post(&cancel, json!({})).await.problem(503), "SUPPLIER_UNAVAILABLE");
            let shown = gateway.get(&format!("{ORDERS}/{}", order["id"].as_str().unwrap())).await.expect(200);
            assert_eq!(shown["order"]["status"], "FULFILLED", "{shown}");
            let checks = simgate(&gateway, &["doctor", "--json"]).document(1).to_string();
            assert!(checks.contains("acme is enabled, and the settings do not name it"), "{checks}");
            ok(&gateway, "supplier disable acme");
            let checks = simgate(&gateway, &["doctor", "--json"]).document(0).to_string();
            assert!(!checks.contains("acme"), "{checks}");
            assert_eq!(refused(&gateway, &code, 404).await, "PLAN_NOT_FOUND");
            check_books(&gateway.app).await;
            stop.cancel();
            served.await.unwrap();
        });
    }

    each_database!(check);
}

/// Five questions without an answer, then none are asked until its balance can be read.
mod one_that_falls_silent_is_taken_out_and_back {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, esim_access_family, async |gateway, shop| {
            let fake = shop.access.as_ref().unwrap();
            open(gateway).await;
            let code = plan_of(gateway, CODE);
            fake.world().fault = Fault::BreakAfter;
            let place = |code: String| {
                let request = gateway.request("POST", ORDERS).json(&json!({ "packageCode": code }));
                gateway.app.tasks.spawn(async move { reply(request).await.status })
            };
            let placed: Vec<_> = (0..5).map(|_| place(code.clone())).collect();
            let sells = || gateway.app.breakers.selling().contains(&"acme");
            gateway.until("it is out", async || (!sells()).then_some(())).await;
            let sold = fake.world().sales();
            match place(code.clone()).await.unwrap() {
                503 => assert_eq!(fake.world().sales(), sold),
                // Its balance was read meanwhile.
                _ => assert!(sells(), "a supplier that is out sells nothing"),
            }
            gateway.order("JP-1GB-7D").await;
            fake.world().fault = Fault::None;
            for placed in placed {
                assert!(matches!(placed.await.unwrap(), 200 | 202));
            }
            suppliers::round(&gateway.app).await.unwrap();
            assert_eq!(buy(gateway, &code).await["status"], "FULFILLED");
            gateway.settle().await;
        });
    }

    each_database!(check);
}

/// A plan that became dearer is refused once, with the money back; then its price follows.
mod a_higher_cost_is_refused_and_taken_in {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, esim_access_family, async |gateway, shop| {
            open(gateway).await;
            let code = plan_of(gateway, CODE);
            let before = cost(gateway, &code).await.unwrap();
            let price = async || {
                let found = gateway.get(&format!("/api/b2b/v1/plans?query={code}")).await.expect(200);
                let price = found["plans"].get(0)?["priceUsd"].to_string();
                Some(Usd::parse(&price).unwrap())
            };
            let first = gateway.until("it is shown", price).await;
            shop.access.as_ref().unwrap().world().surcharge = 1_000;
            assert_eq!(refused(gateway, &code, 409).await, "PRICE_CHANGED");
            suppliers::round(&gateway.app).await.unwrap();
            let after = before.plus(Usd::from_micros(100_000));
            assert_eq!(cost(gateway, &code).await, Some(after));
            gateway.until("the price follows", async || price().await.filter(|now| *now > first)).await;
            assert_eq!(buy(gateway, &code).await["status"], "FULFILLED");
        });
    }

    each_database!(check);
}

/// A cost that moves by half is an operator's business: until then nobody buys the plan.
mod a_cost_that_makes_no_sense_takes_the_plan_off_sale {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, esim_access_family, async |gateway, shop| {
            open(gateway).await;
            let code = plan_of(gateway, CODE);
            let before = cost(gateway, &code).await.unwrap();
            let price = before.micros() / 100;
            shop.access.as_ref().unwrap().world().surcharge = price;
            assert_eq!(refused(gateway, &code, 409).await, "PRICE_CHANGED");
            suppliers::round(&gateway.app).await.unwrap();
            assert_eq!(cost(gateway, &code).await, None);
            assert_eq!(refused(gateway, &code, 404).await, "PLAN_NOT_FOUND");
            let agreed =
                sync::by_hand(&gateway.app, "test", "supplier sync", "acme", sync::Consent::Given).await;
            assert!(agreed.unwrap().applied);
            assert_eq!(cost(gateway, &code).await, Some(before.plus(before)));
        });
    }

    each_database!(check);
}

/// Who is told no cost says afterwards what it was: that is booked, and the plan is taken in again.
mod a_cost_that_is_told_afterwards_is_booked_and_taken_in {
    use super::*;
    use crate::suppliers::fakes::airalo::BASE;

    fn check(db: Db) {
        with_supplier(db, airalo_api, async |gateway, _| {
            open(gateway).await;
            let code = plan_of(gateway, BASE);
            let true_cost = cost(gateway, &code).await.unwrap();
            let cheaper = format!("UPDATE plans SET cost = cost - 50000 WHERE code = '{code}'");
            execute(&gateway.app.settings.database, &cheaper).unwrap();
            assert_eq!(buy(gateway, &code).await["status"], "FULFILLED");
            assert_eq!(booked(&gateway.app, "cost:acme").await, true_cost);
            suppliers::round(&gateway.app).await.unwrap();
            assert_eq!(cost(gateway, &code).await, Some(true_cost));
        });
    }

    each_database!(check);
}

/// A supplier whose bills are not what it lists is asked for its list once, and then rests.
mod bills_that_no_list_explains_pull_it_once {
    use super::*;
    use crate::suppliers::fakes::airalo::BASE;

    fn check(db: Db) {
        with_supplier(db, airalo_api, async |gateway, shop| {
            open(gateway).await;
            let (fake, code) = (shop.airalo.as_ref().unwrap(), plan_of(gateway, BASE));
            // One question for countries, and one for regions.
            let pulls = || fake.asked("GET", "/v2/packages").len() / 2;
            let round = async || suppliers::round(&gateway.app).await.unwrap();
            // The gateway makes rounds of its own, too.
            let until_pulled = async |times: usize| {
                let pulled = async || {
                    round().await;
                    (pulls() == times).then_some(())
                };
                gateway.until("the list is pulled", pulled).await;
            };
            let is_sold = async || assert_eq!(buy(gateway, &code).await["status"], "FULFILLED");
            // By hand, and because it was due.
            until_pulled(2).await;
            fake.world().unlisted = Usd::from_micros(10_000);
            is_sold().await;
            until_pulled(3).await;
            is_sold().await;
            round().await;
            assert_eq!(pulls(), 3, "it had nothing new a moment ago");
            gateway.pass_time(601_000);
            until_pulled(4).await;
        });
    }

    each_database!(check);
}

/// Prices are there before a supplier sells, so that they can be looked at first.
mod plans_have_prices_before_their_supplier_is_enabled {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, esim_access_family, async |gateway, _| {
            let synced =
                sync::by_hand(&gateway.app, "test", "supplier sync", "acme", sync::Consent::Needed).await;
            assert!(synced.unwrap().applied);
            let code = plan_of(gateway, CODE);
            ok(gateway, &format!("price set --plan {code} --price 4.44 --publish"));
            assert_eq!(refused(gateway, &code, 404).await, "PLAN_NOT_FOUND");
            suppliers::enable(&gateway.app, "test", "acme", true).await.unwrap();
            let order = buy(gateway, &code).await;
            assert_eq!(order["chargedUsd"], json!(4.44), "{order}");
        });
    }

    each_database!(check);
}

/// A preview says what the new costs would do.
mod a_preview_names_what_would_be_below_cost {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, esim_access_family, async |gateway, shop| {
            open(gateway).await;
            let code = plan_of(gateway, CODE);
            for line in [format!("price set --plan {code} --price 1.60"), "price publish".into()] {
                ok(gateway, &line);
            }
            let (_, below) = sync::preview(&gateway.app, "acme").await.unwrap();
            assert!(below.iter().all(|plan| plan.code != code));
            shop.access.as_ref().unwrap().world().surcharge = 2_000;
            let (_, below) = sync::preview(&gateway.app, "acme").await.unwrap();
            let found = below.iter().find(|plan| plan.code == code && plan.list == "default").unwrap();
            assert!(!found.sold && found.price == Usd::from_micros(1_600_000) && found.cost > found.price);
        });
    }

    each_database!(check);
}
