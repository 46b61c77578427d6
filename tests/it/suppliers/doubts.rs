//! Suppliers that do not answer, by each of their rules: no eSIM is bought twice, none is lost, and nothing that a look-up
//! shows is believed unless all of it fits. The simulator sells again whenever it is asked again under `find` and `list`,
//! so its journal would show a gateway that repeats itself.

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::{operator, recover, sync};
use simgate::store::attempts;

use crate::support::harness::{
    Db, Gateway, Reply, booked, both_databases, each_database, on_place, start_gateway,
};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";
/// Where sales are told apart by plan, another plan proves that look-ups work.
const OTHER_PLAN: &str = "JP-3GB-30D";
const HOUR_MS: i64 = 3_600_000;
/// Callers and askers give up soon.
const HASTY: [(&str, &str); 4] = [
    ("answer_within_ms", "200"),
    ("supplier_timeout_ms", "400"),
    ("rate_limit", "0"),
    ("ip_rate_limit", "0"),
];

async fn mood(gateway: &Gateway, rule: &str, mode: &str) {
    gateway.sandbox("supplier", json!({ "mode": mode, "doubtRule": rule })).await;
}

/// For one call.
async fn once(gateway: &Gateway, rule: &str, mode: &str, delay_ms: i64) {
    let body = json!({ "mode": mode, "doubtRule": rule, "count": 1, "delayMs": delay_ms });
    gateway.sandbox("supplier", body).await;
}

async fn place(gateway: &Gateway, plan: &str) -> Reply {
    gateway.post(ORDERS, json!({ "packageCode": plan })).await
}

/// An order that its caller left without an eSIM.
async fn doubtful(gateway: &Gateway, rule: &str, mode: &str, delay_ms: i64) -> String {
    once(gateway, rule, mode, delay_ms).await;
    let id = place(gateway, PLAN).await.expect(202)["order"]["id"].as_str().unwrap().to_string();
    // The asker has given up; what follows is recovery's.
    gateway
        .until("the question was asked", async || (!attempts_of(gateway, &id).await.is_empty()).then_some(()))
        .await;
    gateway
        .until("the mode is used up", async || {
            let now = gateway.client.get(format!("{}/sandbox/supplier", gateway.base));
            (crate::support::harness::reply(now).await.expect(200)["mode"] == "ok").then_some(())
        })
        .await;
    id
}

async fn attempts_of(gateway: &Gateway, id: &str) -> Vec<i64> {
    let id = simgate::domain::ids::OrderId::from_text(id);
    let found = gateway.app.store.read(move |tx| attempts::of(tx, &id)).await.unwrap();
    found.into_iter().map(|attempt| attempt.n).collect()
}

async fn find(gateway: &Gateway, id: &str) -> Value {
    let found = gateway.get(&format!("{ORDERS}/{id}")).await.expect(200);
    if id.starts_with("top_") { found["topUpOrder"].clone() } else { found["order"].clone() }
}

/// Lets time pass in steps, with recovery having its turn after each.
async fn pass(gateway: &Gateway, steps: usize, millis: i64) {
    for _ in 0..steps {
        gateway.pass_time(millis);
        recover::round(&gateway.app).await.unwrap();
    }
}

async fn ends(gateway: &Gateway, id: &str) -> Value {
    gateway
        .until("the order ends", async || {
            pass(gateway, 1, 20_000).await;
            let order = find(gateway, id).await;
            (order["status"] != "PROVISIONING").then_some(order)
        })
        .await
}

/// What the simulator sold for an order, in its order.
fn sold(gateway: &Gateway, id: &str) -> Vec<String> {
    let lines = gateway.journal().into_iter().filter(|line| line[0] == "sold" && line[1] == id);
    let mut iccids: Vec<String> = lines.map(|line| line[2].clone()).collect();
    iccids.dedup();
    iccids
}

fn given_back(gateway: &Gateway, id: &str) -> usize {
    gateway.journalled("cancelled").iter().filter(|line| line[1].starts_with(id)).count()
}

async fn is_delivered_once(gateway: &Gateway, id: &str) {
    let order = ends(gateway, id).await;
    assert_eq!(order["status"], "FULFILLED", "{order}");
    assert_eq!(sold(gateway, id), [order["iccid"].as_str().unwrap()], "one sale, which was delivered");
}

/// Delivers another order, so that look-ups can be proved.
async fn known_sale(gateway: &Gateway, rule: &str) {
    mood(gateway, rule, "ok").await;
    gateway.order(if rule == "list" { OTHER_PLAN } else { PLAN }).await;
}

/// An eSIM to top up, and the bundle that fits it.
async fn esim(gateway: &Gateway) -> (String, String) {
    let iccid = gateway.order(PLAN).await["iccid"].as_str().unwrap().to_string();
    let plans = gateway.get(&format!("{ORDERS}/{iccid}/topup-plans")).await.expect(200);
    (iccid, plans["plans"][0]["packageCode"].as_str().unwrap().to_string())
}

async fn total_gb(gateway: &Gateway, iccid: &str) -> f64 {
    gateway.get(&format!("{ORDERS}/{iccid}/usage")).await.expect(200)["totalGb"].as_f64().unwrap()
}

async fn top_up(gateway: &Gateway, iccid: &str, package: &str) -> Reply {
    gateway.post(&format!("{ORDERS}/{iccid}/topup"), json!({ "packageCode": package })).await
}

/// What a counter stands at.
async fn counted(gateway: &Gateway, what: &str) -> u64 {
    simgate::telemetry::metrics().expect("the recorder is installed");
    let text = gateway.get("/metrics").await.text;
    let line = text.lines().find(|line| line.starts_with(what));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

both_databases! {
    async fn a_sale_without_an_answer_is_found(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for rule in ["repeat", "find", "list", "claim"] {
            // Under `claim` the first two are about the claim, the third is about the sale.
            for mode in ["timeout", "malformed", "hidden"] {
                once(gateway, rule, mode, 0).await;
                let before = Usd::parse(&gateway.balance().await).unwrap();
                let placed = place(gateway, PLAN).await;
                assert!(matches!(placed.status, 200 | 202), "{rule} {mode}: {}", placed.text);
                let id = placed.json()["order"]["id"].as_str().unwrap().to_string();
                is_delivered_once(gateway, &id).await;
                let after = before.minus(gateway.price(PLAN).await);
                assert_eq!(gateway.balance().await, after.to_string(), "{rule} {mode}: charged once");
            }
        }
    }

    async fn a_top_up_without_an_answer_is_found(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for rule in ["repeat", "find", "list", "claim"] {
            mood(gateway, rule, "ok").await;
            let (iccid, package) = esim(gateway).await;
            // Another one just before it must not be taken for it.
            let first = top_up(gateway, &iccid, &package).await;
            assert!(matches!(first.status, 200 | 202), "{}", first.text);
            ends(gateway, first.json()["topUpOrder"]["id"].as_str().unwrap()).await;
            let before = total_gb(gateway, &iccid).await;
            once(gateway, rule, "malformed", 0).await;
            let placed = top_up(gateway, &iccid, &package).await;
            assert!(matches!(placed.status, 200 | 202), "{rule}: {}", placed.text);
            let id = placed.json()["topUpOrder"]["id"].as_str().unwrap().to_string();
            assert_eq!(ends(gateway, &id).await["status"], "FULFILLED", "{rule}");
            let once_more = total_gb(gateway, &iccid).await - before;
            assert!(once_more > 0.0 && once_more < before, "{rule}: filled by {once_more} GB");
        }
    }

    /// Nothing was bought. That it is not found is proof only after the quiet time, twice, and if look-ups work.
    async fn what_was_never_sold_is_bought_once_more(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for rule in ["find", "list"] {
            let id = doubtful(gateway, rule, "silent", 0).await;
            mood(gateway, rule, "ok").await;
            // Without a younger sale nothing is proved, however long it takes.
            pass(gateway, 10, HOUR_MS).await;
            assert_eq!(attempts_of(gateway, &id).await, [1]);
            known_sale(gateway, rule).await;
            pass(gateway, 1, 5_000).await;
            gateway.until("an empty look-up counts", async || {
                pass(gateway, 1, 1_000).await;
                let order = simgate::domain::ids::OrderId::from_text(&*id);
                let found = gateway.app.store.read(move |tx| attempts::of(tx, &order)).await.unwrap();
                found[0].empty_at.map(drop)
            })
            .await;
            assert!(sold(gateway, &id).is_empty(), "a second look-up comes a minute later");
            is_delivered_once(gateway, &id).await;
            assert_eq!(attempts_of(gateway, &id).await, [1, 2]);
        }
    }

    async fn nothing_is_bought_again_within_the_quiet_time(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        let id = doubtful(gateway, "find", "silent", 0).await;
        known_sale(gateway, "find").await;
        // Seven of fifteen minutes.
        pass(gateway, 20, 20_000).await;
        assert_eq!((attempts_of(gateway, &id).await, sold(gateway, &id).len()), (vec![1], 0));
        is_delivered_once(gateway, &id).await;
    }

    async fn look_ups_that_find_nothing_at_all_prove_nothing(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for rule in ["find", "list"] {
            for lie in ["blind", "stranger"] {
                let id = doubtful(gateway, rule, "silent", 0).await;
                known_sale(gateway, rule).await;
                mood(gateway, rule, lie).await;
                pass(gateway, 20, 600_000).await;
                let order = find(gateway, &id).await;
                assert_eq!((order["status"].as_str(), sold(gateway, &id).len()), (Some("PROVISIONING"), 0), "{rule} {lie}");
                mood(gateway, rule, "ok").await;
                is_delivered_once(gateway, &id).await;
            }
        }
    }

    async fn a_sale_that_does_not_fit_is_neither_delivered_nor_bought_again(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for lie in ["wrong_package", "wrong_quantity", "duplicate", "stranger"] {
            let id = doubtful(gateway, "find", "timeout", 0).await;
            known_sale(gateway, "find").await;
            mood(gateway, "find", lie).await;
            pass(gateway, 10, 600_000).await;
            assert_eq!(find(gateway, &id).await["status"], "PROVISIONING", "{lie}");
            assert_eq!(attempts_of(gateway, &id).await, [1], "{lie}");
            mood(gateway, "find", "ok").await;
            is_delivered_once(gateway, &id).await;
        }
    }

    /// The second purchase is the last one, whatever becomes of it.
    async fn a_second_doubt_is_the_operators(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        let id = doubtful(gateway, "find", "silent", 0).await;
        known_sale(gateway, "find").await;
        once(gateway, "find", "hidden", HOUR_MS).await;
        gateway.until("it was bought again", async || {
            pass(gateway, 1, 60_000).await;
            (attempts_of(gateway, &id).await == [1, 2]).then_some(())
        })
        .await;
        pass(gateway, 8, 300_000).await;
        assert_eq!(find(gateway, &id).await["status"], "PROVISIONING");
        assert_eq!(sold(gateway, &id).len(), 1, "never a third time");
        let stuck = operator::longest_waiting(&gateway.app, None, 10).await.unwrap();
        assert!(stuck.iter().any(|order| order.id.as_str() == id), "the operator sees it");
        // Its sale shows in the end.
        is_delivered_once(gateway, &id).await;
    }

    async fn a_second_sale_is_given_back(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for rule in ["find", "list"] {
            let id = doubtful(gateway, rule, "hidden", HOUR_MS).await;
            known_sale(gateway, rule).await;
            let order = ends(gateway, &id).await;
            let both = sold(gateway, &id);
            assert_eq!((both.len(), order["iccid"].as_str().unwrap()), (2, both[1].as_str()));
            assert_eq!(given_back(gateway, &id), 0);
            gateway.until("the first sale is given back", async || {
                pass(gateway, 1, 600_000).await;
                (given_back(gateway, &id) == 1).then_some(())
            })
            .await;
            pass(gateway, 5, HOUR_MS).await;
            assert_eq!(given_back(gateway, &id), 1, "the delivered one stays");
            assert_eq!(booked(&gateway.app, "loss:orphan").await, Usd::ZERO);
            let usage = gateway.get(&format!("{ORDERS}/{}/usage", both[1])).await.expect(200);
            assert_eq!(usage["status"], "NEW");
        }
    }

    async fn of_two_sales_in_doubt_the_older_is_delivered(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for rule in ["find", "list"] {
            let id = doubtful(gateway, rule, "hidden", HOUR_MS).await;
            known_sale(gateway, rule).await;
            once(gateway, rule, "hidden", HOUR_MS).await;
            gateway.until("it was bought again", async || {
                pass(gateway, 1, 60_000).await;
                (attempts_of(gateway, &id).await == [1, 2]).then_some(())
            })
            .await;
            gateway.until("the second question was heard", async || (sold(gateway, &id).len() == 2).then_some(())).await;
            // Both sales turn up between two look-ups.
            gateway.pass_time(2 * HOUR_MS);
            let order = ends(gateway, &id).await;
            let both = sold(gateway, &id);
            assert_eq!(order["iccid"].as_str().unwrap(), both[0], "{rule}");
            gateway.until("the younger is given back", async || {
                pass(gateway, 1, 600_000).await;
                (given_back(gateway, &format!("{id}#2")) == 1).then_some(())
            })
            .await;
            assert_eq!(given_back(gateway, &id), 1);
        }
    }

    async fn a_second_sale_that_cannot_be_given_back_is_a_loss(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        let id = doubtful(gateway, "find", "hidden", HOUR_MS).await;
        known_sale(gateway, "find").await;
        ends(gateway, &id).await;
        let cost = operator::order(&gateway.app, &id).await.unwrap().cost;
        mood(gateway, "find", "reject").await;
        gateway.until("the loss is booked", async || {
            pass(gateway, 1, 600_000).await;
            (booked(&gateway.app, "loss:orphan").await == cost).then_some(())
        })
        .await;
        pass(gateway, 5, HOUR_MS).await;
        assert_eq!(booked(&gateway.app, "loss:orphan").await, cost, "once");
        // A top-up stays where it is, so its second sale is a loss by itself.
        mood(gateway, "find", "ok").await;
        let (iccid, package) = esim(gateway).await;
        once(gateway, "find", "hidden", HOUR_MS).await;
        let topup = top_up(gateway, &iccid, &package).await.expect(202)["topUpOrder"]["id"].as_str().unwrap().to_string();
        gateway.until("it is sold", async || (!attempts_of(gateway, &topup).await.is_empty()).then_some(())).await;
        mood(gateway, "find", "ok").await;
        let (known, _) = esim(gateway).await;
        let done = top_up(gateway, &known, &package).await.json()["topUpOrder"]["id"].as_str().unwrap().to_string();
        ends(gateway, &done).await;
        assert_eq!(ends(gateway, &topup).await["status"], "FULFILLED");
        let both = cost.plus(operator::order(&gateway.app, &topup).await.unwrap().cost);
        gateway.until("its loss is booked too", async || {
            pass(gateway, 1, 600_000).await;
            (booked(&gateway.app, "loss:orphan").await == both).then_some(())
        })
        .await;
    }

    /// What turns up for an order that was given up goes back, and to nobody else.
    async fn a_sale_of_an_order_given_up_is_given_back(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for rule in ["find", "list"] {
            let before = gateway.balance().await;
            let id = doubtful(gateway, rule, "hidden", HOUR_MS).await;
            mood(gateway, rule, "ok").await;
            gateway.pass_time(300_000);
            operator::fail_order(&gateway.app, "test", &id, "it took too long").await.unwrap();
            assert_eq!(gateway.balance().await, before);
            gateway.until("the sale is given back", async || {
                pass(gateway, 1, 600_000).await;
                (given_back(gateway, &id) == 1).then_some(())
            })
            .await;
            assert_eq!(find(gateway, &id).await["status"], "FAILED");
        }
    }

    /// The second purchase is refused: the money goes back, and so does the first sale when it turns up.
    async fn a_refusal_of_the_second_purchase_ends_the_order(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        let id = doubtful(gateway, "find", "hidden", HOUR_MS).await;
        known_sale(gateway, "find").await;
        mood(gateway, "find", "no_funds").await;
        let order = ends(gateway, &id).await;
        assert_eq!((order["status"].as_str(), order["failure"]["code"].as_str()), (Some("FAILED"), Some("SUPPLIER_UNAVAILABLE")));
        gateway.until("the first sale is given back", async || {
            pass(gateway, 1, 600_000).await;
            (given_back(gateway, &id) == 1).then_some(())
        })
        .await;
    }

    async fn second_purchases_are_capped(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3], ("second_purchases_per_hour", "2")] {
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(doubtful(gateway, "find", "silent", 0).await);
        }
        known_sale(gateway, "find").await;
        // Twenty-five minutes, in which all three may be bought again.
        pass(gateway, 50, 30_000).await;
        let bought = async || {
            let mut bought = 0;
            for id in &ids {
                bought += usize::from(attempts_of(gateway, id).await.len() == 2);
            }
            bought
        };
        gateway.until("two are bought again", async || {
            recover::round(&gateway.app).await.unwrap();
            (bought().await == 2).then_some(())
        })
        .await;
        gateway.pass_time(HOUR_MS);
        for id in &ids {
            is_delivered_once(gateway, id).await;
        }
    }

    /// Recovery of many instances, and an operator who is impatient.
    async fn a_race_of_recoveries_buys_once(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for rule in ["find", "list", "claim"] {
            let mode = if rule == "claim" { "underway" } else { "silent" };
            let id = if rule == "claim" {
                once(gateway, rule, mode, 1_000).await;
                place(gateway, PLAN).await.json()["order"]["id"].as_str().unwrap().to_string()
            } else {
                let id = doubtful(gateway, rule, mode, 0).await;
                known_sale(gateway, rule).await;
                id
            };
            gateway.until("the order ends", async || {
                gateway.pass_time(20_000);
                let rounds = join_all((0..4).map(|_| recover::round(&gateway.app)));
                let retries = join_all((0..4).map(|_| operator::retry_order(&gateway.app, "test", &id)));
                let (rounds, _) = futures_util::future::join(rounds, retries).await;
                assert!(rounds.iter().all(Result::is_ok));
                (find(gateway, &id).await["status"] == "FULFILLED").then_some(())
            })
            .await;
            is_delivered_once(gateway, &id).await;
        }
    }

    /// In a list without references only one order of a plan may be open; the others wait, the oldest next.
    async fn orders_of_a_listed_plan_take_turns(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        let first = doubtful(gateway, "list", "silent", 0).await;
        mood(gateway, "list", "ok").await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(place(gateway, PLAN).await.expect(202)["order"]["id"].as_str().unwrap().to_string());
        }
        gateway.order(OTHER_PLAN).await;
        pass(gateway, 10, 5_000).await;
        for id in &ids {
            assert_eq!(find(gateway, id).await["status"], "PROVISIONING");
            assert!(attempts_of(gateway, id).await.is_empty() && sold(gateway, id).is_empty());
        }
        // One of them is given up while it waits, and holds up nobody.
        operator::fail_order(&gateway.app, "test", &ids.remove(1), "the customer left").await.unwrap();
        is_delivered_once(gateway, &first).await;
        for id in &ids {
            is_delivered_once(gateway, id).await;
        }
        let sales: Vec<String> = gateway.journal().into_iter().filter(|line| line[0] == "sold").map(|line| line[1].clone()).collect();
        let place = |id: &String| sales.iter().position(|sold| sold == id).unwrap();
        assert!(place(&ids[0]) < place(&ids[1]), "the older first");
    }

    async fn an_esim_that_follows_later_is_waited_for(gateway)
    with [HASTY[0], HASTY[1], HASTY[2], HASTY[3]] {
        for rule in ["repeat", "find", "list"] {
            let doubts = counted(gateway, "simgate_supplier_calls_total{call=\"provision\",outcome=\"underway\"}").await;
            once(gateway, rule, "underway", 600_000).await;
            let id = place(gateway, PLAN).await.expect(202)["order"]["id"].as_str().unwrap().to_string();
            let number = gateway.until("its number is kept", async || {
                operator::order(&gateway.app, &id).await.unwrap().supplier_number
            })
            .await;
            pass(gateway, 5, 60_000).await;
            assert_eq!(find(gateway, &id).await["status"], "PROVISIONING", "{rule}");
            assert!(counted(gateway, "simgate_supplier_calls_total{call=\"provision\",outcome=\"underway\"}").await > doubts);
            is_delivered_once(gateway, &id).await;
            assert_eq!(operator::order(&gateway.app, &id).await.unwrap().supplier_number, Some(number));
        }
    }

    async fn the_true_cost_is_booked(gateway) {
        simgate::telemetry::metrics().expect("the recorder is installed");
        let cheap = gateway.order(PLAN).await["id"].as_str().unwrap().to_string();
        let listed = operator::order(&gateway.app, &cheap).await.unwrap().cost;
        assert_eq!(booked(&gateway.app, "cost:sim").await, listed);
        for (rule, bought) in [("repeat", 1), ("find", 2)] {
            once(gateway, rule, "dearer", 0).await;
            let dear = gateway.order(PLAN).await["id"].as_str().unwrap().to_string();
            let dearer = operator::order(&gateway.app, &dear).await.unwrap().cost;
            assert_eq!(dearer, listed.percent(110), "{bought}");
            assert_eq!(booked(&gateway.app, "cost:sim").await, listed.plus(dearer));
            assert_eq!(booked(&gateway.app, "supplier:sim").await, listed.plus(dearer).negated());
            gateway.post(&format!("{ORDERS}/{dear}/cancel"), json!({})).await.expect(200);
            assert_eq!(booked(&gateway.app, "cost:sim").await, listed, "all of it comes back");
        }
        assert!(counted(gateway, "simgate_supplier_costs_differ_total{supplier=\"sim\"}").await >= 2);
    }

    async fn refusals_say_why(gateway) {
        simgate::telemetry::metrics().expect("the recorder is installed");
        for rule in ["repeat", "find", "list", "claim"] {
            for (mode, status, code) in [
                ("price_changed", 409, "PRICE_CHANGED"),
                ("no_funds", 503, "SUPPLIER_UNAVAILABLE"),
                ("reject", 502, "SUPPLIER_REJECTED"),
                ("unavailable", 503, "SUPPLIER_UNAVAILABLE"),
                ("sold_out", 502, "SUPPLIER_REJECTED"),
            ] {
                let before = gateway.balance().await;
                mood(gateway, rule, mode).await;
                let body = json!({ "packageCode": PLAN, "partnerRefId": format!("{rule}-{mode}") });
                let refused = gateway.post(ORDERS, body).await;
                assert_eq!(refused.problem(status), code, "{rule} {mode}");
                assert_eq!(gateway.balance().await, before, "{rule} {mode}");
                let list = gateway.get(&format!("{ORDERS}?partnerRefId={rule}-{mode}")).await.expect(200);
                let failed = &list["orders"][0];
                assert_eq!((failed["status"].as_str(), failed["failure"]["code"].as_str()), (Some("FAILED"), Some(code)));
                assert!(sold(gateway, failed["id"].as_str().unwrap()).is_empty());
            }
            // Nobody else can buy what is sold out, until the supplier lists it again.
            mood(gateway, rule, "ok").await;
            assert_eq!(place(gateway, PLAN).await.problem(404), "PLAN_NOT_FOUND");
            place(gateway, OTHER_PLAN).await.expect(200);
            sync::seed(&gateway.app).await.unwrap();
            place(gateway, PLAN).await.expect(200);
        }
        for cause in ["price_changed", "no_funds", "sold_out"] {
            let name = format!("simgate_supplier_refusals_total{{supplier=\"sim\",cause=\"{cause}\"}}");
            assert!(counted(gateway, &name).await > 0, "{cause}");
        }
    }

    async fn moods_are_checked_and_shown(gateway) {
        let shown = gateway.sandbox("supplier", json!({ "mode": "ok", "doubtRule": "LIST", "quietSeconds": 5 })).await;
        assert_eq!((shown["doubtRule"].as_str(), &shown["quietSeconds"]), (Some("list"), &json!(5)));
        let shown = gateway.sandbox("supplier", json!({ "mode": "ok" })).await;
        assert_eq!((shown["doubtRule"].as_str(), &shown["quietSeconds"]), (Some("repeat"), &json!(900)));
        for wrong in [json!({ "mode": "ok", "doubtRule": "guess" }), json!({ "mode": "ok", "quietSeconds": -1 })] {
            assert_eq!(gateway.try_sandbox("supplier", wrong).await.problem(400), "INVALID_REQUEST");
        }
    }
}

/// One gateway ends in the middle, another one goes on.
mod another_instance_goes_on {
    use super::*;

    fn check(db: Db) {
        on_place(db, async |place| {
            let mut left = Vec::new();
            let (gateway, stop, served) = start_gateway(place, &HASTY).await;
            known_sale(&gateway, "find").await;
            // One was sold, one was not, one waits for its turn and was never asked for.
            left.push(doubtful(&gateway, "find", "timeout", 0).await);
            left.push(doubtful(&gateway, "find", "silent", 0).await);
            once(&gateway, "list", "malformed", 0).await;
            let open = super::place(&gateway, PLAN).await.json()["order"]["id"].as_str().unwrap().to_string();
            // It may be found in the list before its caller goes.
            if find(&gateway, &open).await["status"] == "PROVISIONING" {
                left.push(open);
            }
            stop.cancel();
            served.await.unwrap();
            let (gateway, stop, served) = start_gateway(place, &HASTY).await;
            known_sale(&gateway, "find").await;
            for id in &left {
                gateway
                    .until("the order ends", async || {
                        pass(&gateway, 1, 20_000).await;
                        let order = operator::order(&gateway.app, id).await.unwrap();
                        (order.status.as_str() == "FULFILLED").then_some(())
                    })
                    .await;
                assert_eq!(sold(&gateway, id).len(), 1);
            }
            gateway.settle().await;
            crate::support::harness::check_books(&gateway.app).await;
            stop.cancel();
            served.await.unwrap();
        });
    }
    each_database!(check);
}
