//! The tools, each doing what it is for and each refusing what it must. `support/tool_caller.rs` looks at every result.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::{catalog, operator, sync};

use crate::support::buying::{self, PLAN, fund, usd};
use crate::support::command_line::ok;
use crate::support::coupons::{self, DEAR, make, plan};
use crate::support::database;
use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::logins::{ask, code, sign_in};
use crate::support::tool_caller::{buy, call, failure, fine, log_in, request, told, tool_call};

const ANN: &str = "ann@example.com";
const BOB: &str = "bob@example.com";

/// Ann, logged in, with so much money.
async fn ann(gateway: &Gateway, dollars: i64) -> String {
    let token = log_in(gateway, ANN).await;
    if dollars > 0 {
        fund(gateway, ANN, Usd::dollars(dollars)).await;
    }
    token
}

async fn balance(gateway: &Gateway, token: &str) -> Usd {
    let wallet = fine(call(gateway, "get_wallet_balance", json!({ "token": token })).await);
    assert_eq!(wallet["currency"], "USD");
    usd(&wallet["balanceUsd"])
}

async fn topup_for(gateway: &Gateway, token: &str, order: &Value) -> Value {
    let found = fine(call(gateway, "get_topup_packages", json!({ "orderId": order, "token": token })).await);
    assert_eq!(found["orderId"], *order);
    found["packages"][0].clone()
}

both_databases! {
    async fn plans_are_found_and_linked_to(gateway) {
        let found = fine(call(gateway, "get_esim_catalog", json!({ "countryCode": "Japan 1GB 7 days" })).await);
        assert_eq!(found["plans"][0]["packageCode"], PLAN);
        assert_eq!(found["plans"].as_array().unwrap().len(), 10, "a model reads all of it");
        assert!(found["totalCount"].as_u64().unwrap() > 10);
        let few = fine(call(gateway, "get_esim_catalog", json!({ "countryCode": "japan", "limit": 2 })).await);
        assert_eq!(few["plans"].as_array().unwrap().len(), 2);
        let featured = fine(call(gateway, "get_esim_catalog", json!({ "countryCode": "" })).await);
        assert_eq!(featured, fine(call(gateway, "get_esim_catalog", json!({})).await));
        let none = fine(call(gateway, "get_esim_catalog", json!({ "countryCode": "Atlantis" })).await);
        assert_eq!((&none["totalCount"], &none["plans"]), (&json!(0), &json!([])));
        assert!(none["message"].as_str().unwrap().contains("No destination was recognised") && none["didYouMean"] == json!([]), "{none}");
        let near = fine(call(gateway, "get_esim_catalog", json!({ "countryCode": "Jappaan" })).await);
        assert_eq!((&near["didYouMean"], &near["plans"]), (&json!(["Japan"]), &json!([])));
        let wrong = call(gateway, "get_esim_catalog", json!({ "countryCode": 81, "limit": 201 })).await;
        assert_eq!(failure(&wrong), "INVALID_REQUEST");
        let fields: Vec<&str> = wrong["error"]["errors"].as_array().unwrap().iter().map(|e| e["field"].as_str().unwrap()).collect();
        assert_eq!(fields, ["countryCode", "limit"]);

        let link = fine(call(gateway, "get_checkout_url", json!({ "packageCode": PLAN, "discountCode": "A&B" })).await);
        assert_eq!(link["checkoutUrl"], format!("{}/checkout?plan={PLAN}&discount=A%26B", gateway.base));
        let unknown = call(gateway, "get_checkout_url", json!({ "packageCode": "XX-1" })).await;
        assert_eq!((failure(&unknown).as_str(), &unknown["error"]["next"]["tool"]), ("PLAN_NOT_FOUND", &json!("get_esim_catalog")));
        assert_eq!(failure(&call(gateway, "get_checkout_url", json!({})).await), "INVALID_REQUEST");
    }

    async fn a_customer_logs_in(gateway) with [("trusted_proxies", "127.0.0.1")] {
        let token = ann(gateway, 0).await;
        assert!(token.starts_with("sgs_"));
        // The code is used, and another may not be mailed yet.
        let used = fine(call(gateway, "send_agent_otp", json!({ "email": ANN })).await);
        assert_eq!((&used["sent"], &used["alreadySent"], &used["expiresInSeconds"]), (&json!(false), &json!(true), &json!(0)));
        gateway.pass_time(buying::MINUTE_MS);
        let again = fine(call(gateway, "send_agent_otp", json!({ "email": "Ann@Example.com" })).await);
        assert_eq!((&again["sent"], &again["alreadySent"]), (&json!(true), &json!(false)));
        assert!((500..=600).contains(&again["expiresInSeconds"].as_i64().unwrap()), "{again}");
        let soon = fine(call(gateway, "send_agent_otp", json!({ "email": ANN })).await);
        assert_eq!((&soon["sent"], &soon["alreadySent"]), (&json!(false), &json!(true)));
        let left = soon["expiresInSeconds"].as_i64().unwrap();
        assert!((1..=600).contains(&left), "{left}");
        let wrong = call(gateway, "verify_agent_otp", json!({ "email": ANN, "code": "000" })).await;
        assert_eq!((failure(&wrong).as_str(), &wrong["error"]["next"]["tool"]), ("OTP_INVALID", &json!("send_agent_otp")));
        for arguments in [json!({}), json!({ "email": "nobody" }), json!({ "email": 3 })] {
            assert_eq!(failure(&call(gateway, "send_agent_otp", arguments).await), "INVALID_REQUEST");
        }
        // A code that was asked for at another door opens this one, once.
        ask(gateway, BOB).await.expect(200);
        let otp = code(gateway, BOB).await;
        let other = fine(call(gateway, "send_agent_otp", json!({ "email": BOB })).await);
        assert!(other["alreadySent"] == true && other["expiresInSeconds"].as_i64().unwrap() > 0, "{other}");
        fine(call(gateway, "verify_agent_otp", json!({ "email": BOB, "code": otp })).await);
        let used = fine(call(gateway, "send_agent_otp", json!({ "email": BOB })).await);
        assert_eq!((&used["alreadySent"], &used["expiresInSeconds"]), (&json!(true), &json!(0)));
        // It ends after a day.
        balance(gateway, &token).await;
        gateway.pass_time(24 * 3_600_000);
        assert_eq!(failure(&call(gateway, "get_wallet_balance", json!({ "token": token })).await), "UNAUTHENTICATED");
    }

    /// Login comes first, whatever else is wrong, and the words say what to do.
    async fn without_a_login_nothing_of_a_customers_is_touched(gateway) {
        for tool in [
            "get_wallet_balance", "get_wallet_transactions", "get_user_orders", "validate_coupon", "refresh_esim_usage",
            "get_topup_packages", "purchase_esim_with_wallet", "purchase_topup", "cancel_order",
        ] {
            for arguments in [json!({}), json!({ "token": "" }), json!({ "token": "sgs_made_up" }), json!({ "token": null })] {
                let told = call(gateway, tool, arguments).await;
                assert_eq!(failure(&told), "UNAUTHENTICATED", "{tool}");
                assert_eq!(told["error"]["httpStatus"], 401);
                assert_eq!(told["error"]["next"], json!({ "tool": "send_agent_otp", "requires": ["email"] }));
                let message = told["error"]["message"].as_str().unwrap();
                assert!(message.contains("HTTP 401") && message.contains("send_agent_otp") && message.contains(tool));
            }
            assert_eq!(failure(&call(gateway, tool, json!({ "token": 7 })).await), "INVALID_REQUEST");
        }
        // A stale token in the header does not stop what needs none.
        let search = request(gateway, &tool_call("get_esim_catalog", json!({ "countryCode": "JP" })));
        let found = reply(search.header("authorization", "Bearer sgs_stale")).await;
        fine(told(gateway, "get_esim_catalog", &found).await);
    }

    async fn tokens_of_either_kind_come_either_way(gateway) with [("trusted_proxies", "127.0.0.1")] {
        let personal = sign_in(gateway, BOB, "agent").await;
        fund(gateway, BOB, Usd::dollars(7)).await;
        assert_eq!(balance(gateway, &personal).await, Usd::dollars(7));
        assert_eq!(balance(gateway, &format!("Bearer {personal}")).await, Usd::dollars(7));
        let ask = request(gateway, &tool_call("get_wallet_balance", json!({})));
        let by_header = reply(ask.header("authorization", format!("Bearer {personal}"))).await;
        assert_eq!(fine(told(gateway, "get_wallet_balance", &by_header).await)["balanceUsd"], 7);
        // The argument wins.
        let token = ann(gateway, 3).await;
        let ask = request(gateway, &tool_call("get_wallet_balance", json!({ "token": token })));
        let by_both = reply(ask.header("authorization", format!("Bearer {personal}"))).await;
        assert_eq!(fine(told(gateway, "get_wallet_balance", &by_both).await)["balanceUsd"], 3);
    }

    async fn an_esim_is_bought_used_topped_up_and_listed(gateway) {
        let token = ann(gateway, 100).await;
        let price = plan(gateway, PLAN).retail;
        let bought = buy(gateway, &token).await;
        assert_eq!(usd(&bought["order"]["chargedUsd"]), price);
        assert_eq!(usd(&bought["balanceUsd"]), Usd::dollars(100).minus(price));
        assert_eq!((&bought["replayed"], &bought["orderId"]), (&json!(false), &bought["order"]["id"]));
        assert!(bought["order"]["lpaString"].as_str().unwrap().starts_with("LPA:1$"));
        let order = &bought["orderId"];

        let usage = json!({ "iccid": bought["order"]["iccid"], "usedGb": 0.25 });
        gateway.sandbox("usage", usage).await;
        let report = fine(call(gateway, "refresh_esim_usage", json!({ "orderId": order, "token": token })).await);
        assert_eq!((&report["usedGb"], &report["remainingGb"], &report["stale"]), (&json!(0.25), &json!(0.75), &json!(false)));

        let package = topup_for(gateway, &token, order).await;
        let arguments = json!({ "orderId": order, "packageCode": package["packageCode"], "token": token });
        let added = fine(call(gateway, "purchase_topup", arguments).await);
        assert_eq!((&added["purchased"], &added["topUpOrder"]["status"]), (&json!(true), &json!("FULFILLED")));
        assert_eq!(added["topUpOrder"]["chargedUsd"], package["priceUsd"]);
        let topup = json!({ "orderId": added["topUpOrder"]["id"], "token": token });
        let refused = call(gateway, "refresh_esim_usage", topup).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("ord_"), "{refused}");
        let wrong = json!({ "orderId": order, "packageCode": PLAN, "token": token });
        let wrong = call(gateway, "purchase_topup", wrong).await;
        assert_eq!((failure(&wrong).as_str(), &wrong["error"]["next"]["tool"]), ("WRONG_PLAN_TYPE", &json!("get_topup_packages")));
        let wrong = json!({ "packageCode": package["packageCode"], "token": token });
        assert_eq!(failure(&call(gateway, "purchase_esim_with_wallet", wrong).await), "WRONG_PLAN_TYPE");

        // Bought by another door, and listed all the same.
        let checkout = buying::open(gateway, &token).await;
        buying::settle(gateway, &checkout, "COMPLETED").await;
        let listed = fine(call(gateway, "get_user_orders", json!({ "token": token })).await);
        assert_eq!((&listed["page"], &listed["limit"], &listed["total"]), (&json!(1), &json!(20), &json!(2)));
        assert_eq!(listed["orders"][1]["topUps"][0]["id"], added["topUpOrder"]["id"]);
        let other = &listed["orders"][0]["id"];
        fine(call(gateway, "refresh_esim_usage", json!({ "orderId": other, "token": token })).await);
        let second = fine(call(gateway, "get_user_orders", json!({ "token": token, "page": 2, "limit": 1 })).await);
        assert_eq!(second["orders"][0]["id"], *order);
        assert_eq!(failure(&call(gateway, "get_user_orders", json!({ "token": token, "limit": 0 })).await), "INVALID_REQUEST");
        assert_eq!(failure(&call(gateway, "get_user_orders", json!({ "token": token, "limit": 101 })).await), "INVALID_REQUEST");

        // Newest first, each with the balance after it.
        let moves = fine(call(gateway, "get_wallet_transactions", json!({ "token": token, "limit": 2 })).await);
        assert_eq!(moves["total"], 3);
        let kinds: Vec<&str> = moves["transactions"].as_array().unwrap().iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["TOPUP", "ORDER"]);
        assert_eq!(usd(&moves["transactions"][0]["balanceAfterUsd"]), balance(gateway, &token).await);
        let rest = fine(call(gateway, "get_wallet_transactions", json!({ "token": token, "limit": 2, "page": 2 })).await);
        assert_eq!((&rest["transactions"][0]["type"], &rest["transactions"][0]["id"]), (&json!("CREDIT"), &json!("1")));
        let beyond = fine(call(gateway, "get_wallet_transactions", json!({ "token": token, "page": 9 })).await);
        assert_eq!(beyond["transactions"], json!([]));
    }

    async fn a_list_of_orders_fits_into_a_models_view(gateway) with [("token_rate_limit", "0"), ("ip_rate_limit", "0")] {
        let token = ann(gateway, 200).await;
        let order = buy(gateway, &token).await["orderId"].clone();
        let package = topup_for(gateway, &token, &order).await;
        let mut topups = Vec::new();
        for _ in 0..6 {
            let arguments = json!({ "orderId": order, "packageCode": package["packageCode"], "token": token });
            topups.push(fine(call(gateway, "purchase_topup", arguments).await)["topUpOrder"]["id"].clone());
        }
        for _ in 0..26 {
            buy(gateway, &token).await;
        }
        let page = async |number: i64| {
            let listed = fine(call(gateway, "get_user_orders", json!({ "token": token, "limit": 100, "page": number })).await);
            assert_eq!((&listed["limit"], &listed["total"]), (&json!(25), &json!(27)));
            assert!(listed.to_string().len() < 32 * 1024);
            listed["orders"].as_array().unwrap().clone()
        };
        assert_eq!(page(1).await.len(), 25);
        let last = page(2).await;
        assert_eq!((last.len(), &last[1]["id"]), (2, &order));
        let shown: Vec<&Value> = last[1]["topUps"].as_array().unwrap().iter().map(|topup| &topup["id"]).collect();
        assert_eq!(shown, topups[1..].iter().collect::<Vec<_>>());
        assert_eq!(page(3).await.len(), 0);
    }

    async fn what_is_not_the_customers_is_not_there(gateway) {
        let token = ann(gateway, 50).await;
        let order = buy(gateway, &token).await["orderId"].clone();
        let bob = log_in(gateway, BOB).await;
        fund(gateway, BOB, Usd::dollars(50)).await;
        for id in [order, json!("ord_nothing"), json!("top_0"), json!("x"), json!("../..")] {
            for (tool, arguments) in [
                ("refresh_esim_usage", json!({ "orderId": id, "token": bob })),
                ("get_topup_packages", json!({ "orderId": id, "token": bob })),
                ("purchase_topup", json!({ "orderId": id, "packageCode": "x", "token": bob })),
                ("cancel_order", json!({ "orderId": id, "token": bob })),
                ("cancel_order", json!({ "orderId": id, "token": bob, "dryRun": true })),
            ] {
                let refused = call(gateway, tool, arguments).await;
                assert_eq!(failure(&refused), "ORDER_NOT_FOUND", "{tool} {id}");
                assert_eq!(refused["error"]["next"]["tool"], "get_user_orders");
            }
        }
        assert_eq!(fine(call(gateway, "get_user_orders", json!({ "token": bob })).await)["total"], 0);
    }

    /// The same key is the same purchase; another request under it is refused; a dry run does nothing.
    async fn a_key_makes_a_purchase_single(gateway) {
        let token = ann(gateway, 100).await;
        let price = plan(gateway, PLAN).retail;
        let dry = json!({ "packageCode": PLAN, "token": token, "dryRun": true, "idempotencyKey": "k1" });
        let preview = fine(call(gateway, "purchase_esim_with_wallet", dry).await);
        assert_eq!((&preview["purchased"], &preview["dryRun"], &preview["sufficient"]), (&json!(false), &json!(true), &json!(true)));
        assert_eq!(usd(&preview["priceUsd"]), price);
        assert_eq!(balance(gateway, &token).await, Usd::dollars(100));

        let arguments = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": "k1" });
        let first = fine(call(gateway, "purchase_esim_with_wallet", arguments.clone()).await);
        let again = fine(call(gateway, "purchase_esim_with_wallet", arguments).await);
        assert_eq!((&first["replayed"], &again["replayed"]), (&json!(false), &json!(true)));
        assert_eq!(first["order"], again["order"]);
        let other = json!({ "packageCode": "JP-5GB-30D", "token": token, "idempotencyKey": "k1" });
        assert_eq!(failure(&call(gateway, "purchase_esim_with_wallet", other).await), "IDEMPOTENCY_CONFLICT");

        let order = &first["orderId"];
        let package = topup_for(gateway, &token, order).await;
        let arguments = |key: &str, dry: bool| json!({
            "orderId": order, "packageCode": package["packageCode"], "token": token, "idempotencyKey": key, "dryRun": dry,
        });
        let preview = fine(call(gateway, "purchase_topup", arguments("k2", true)).await);
        assert_eq!(preview["priceUsd"], package["priceUsd"]);
        assert_eq!(failure(&call(gateway, "purchase_topup", arguments("k1", false)).await), "IDEMPOTENCY_CONFLICT");
        let first = fine(call(gateway, "purchase_topup", arguments("k2", false)).await);
        let again = fine(call(gateway, "purchase_topup", arguments("k2", false)).await);
        assert_eq!((&first["topUpOrder"]["id"], &again["replayed"]), (&again["topUpOrder"]["id"], &json!(true)));
        assert_eq!(balance(gateway, &token).await, Usd::dollars(100).minus(price).minus(usd(&package["priceUsd"])));
        let wrong = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": "x".repeat(129), "dryRun": "yes" });
        let wrong = call(gateway, "purchase_esim_with_wallet", wrong).await;
        assert_eq!(wrong["error"]["errors"].as_array().unwrap().len(), 2, "{wrong}");
    }

    /// What is misspelt would cost money if it were passed over.
    async fn a_purchase_takes_only_what_it_knows(gateway) {
        let token = ann(gateway, 100).await;
        let order = buy(gateway, &token).await["orderId"].clone();
        let before = balance(gateway, &token).await;
        for (tool, given, field, said) in [
            ("purchase_esim_with_wallet", json!({ "packageCode": PLAN, "dry_run": true }), "dry_run", "did you mean dryRun?"),
            ("purchase_esim_with_wallet", json!({ "packageCode": PLAN, "idempotency_key": "k" }), "idempotency_key", "did you mean idempotencyKey?"),
            ("purchase_esim_with_wallet", json!({ "packageCode": PLAN, "maxPriceUsd": 1 }), "maxPriceUsd", "unknown; known are"),
            ("purchase_esim_with_wallet", json!({ "packageCode": PLAN, "idempotencyKey": "" }), "idempotencyKey", "must have 1 to 128"),
            ("purchase_esim_with_wallet", json!({ "packageCode": PLAN, "idempotencyKey": "a\u{200d}b" }), "idempotencyKey", "printable"),
            ("purchase_esim_with_wallet", json!({ "packageCode": PLAN, "idempotencyKey": "a\u{e0041}b" }), "idempotencyKey", "printable"),
            ("cancel_order", json!({ "orderId": order, "idempotencyKey": "\u{2066}a" }), "idempotencyKey", "printable"),
            ("purchase_topup", json!({ "orderId": order, "packageCode": PLAN, "discountCode": "X" }), "discountCode", "unknown; known are"),
            ("cancel_order", json!({ "orderId": order, "dryrun": true }), "dryrun", "did you mean dryRun?"),
        ] {
            let mut arguments = given;
            assert_eq!(failure(&call(gateway, tool, arguments.clone()).await), "UNAUTHENTICATED", "login comes first");
            arguments["token"] = json!(token);
            let refused = call(gateway, tool, arguments).await;
            assert_eq!((failure(&refused).as_str(), &refused["error"]["errors"][0]["field"]), ("INVALID_REQUEST", &json!(field)));
            assert!(refused["error"]["message"].as_str().unwrap().contains(said), "{refused}");
        }
        assert_eq!(balance(gateway, &token).await, before);
    }

    /// Who only reads may say more than is asked for, and hears what was not understood.
    async fn what_is_passed_over_is_named(gateway) {
        let token = ann(gateway, 0).await;
        let wallet = fine(call(gateway, "get_wallet_balance", json!({ "token": token, "random": "", "currency": 1 })).await);
        assert_eq!(wallet["ignoredInputs"], json!(["currency", "random"]));
        for _ in 0..2 {
            // The second time from memory.
            let found = fine(call(gateway, "get_esim_catalog", json!({ "destination": "Japan", "hid\u{200b}den": 1 })).await);
            assert_eq!(found["ignoredInputs"], json!(["destination", "hidden"]));
        }
        let failed = call(gateway, "verify_agent_otp", json!({ "email": ANN, "otp": "123456" })).await;
        assert_eq!((failure(&failed).as_str(), &failed["ignoredInputs"]), ("INVALID_REQUEST", &json!(["otp"])));
        for (tool, arguments) in [("get_available_coupons", json!({ "token": token })), ("get_wallet_balance", json!({ "token": token }))] {
            assert!(fine(call(gateway, tool, arguments).await).get("ignoredInputs").is_none(), "{tool} knows a token");
        }
        let many: serde_json::Map<String, Value> = (0..1_000).map(|number| (format!("input{number}"), Value::Null)).collect();
        let found = fine(call(gateway, "get_available_coupons", many.into()).await);
        assert_eq!(found["ignoredInputs"].as_array().unwrap().len(), 20);
    }

    /// Inputs as models and people send them.
    async fn inputs_are_taken_as_they_come(gateway) {
        fine(call(gateway, "send_agent_otp", json!({ "email": ANN })).await);
        // A client that makes a number of a code loses its leading zeros.
        let otp: u64 = code(gateway, ANN).await.parse().unwrap();
        let session = fine(call(gateway, "verify_agent_otp", json!({ "email": ANN, "code": otp })).await);
        let token = session["token"].as_str().unwrap();
        fund(gateway, ANN, Usd::dollars(50)).await;

        let japan = fine(call(gateway, "get_esim_catalog", json!({ "countryCode": "Japan", "limit": 2 })).await);
        let same = fine(call(gateway, "get_esim_catalog", json!({ "country": "Japan", "limit": "2" })).await);
        assert_eq!(japan, same, "country is another name of countryCode");
        let both = fine(call(gateway, "get_esim_catalog", json!({ "country": "Peru", "countryCode": "Japan", "limit": " 2 " })).await);
        assert_eq!((&both["plans"], &both["ignoredInputs"]), (&japan["plans"], &json!(["country"])));
        for limit in ["", "2.0"] {
            fine(call(gateway, "get_esim_catalog", json!({ "country": "Japan", "limit": limit })).await);
        }
        for limit in ["two", "0", "201", "2.5"] {
            let wrong = call(gateway, "get_esim_catalog", json!({ "country": "Japan", "limit": limit })).await;
            assert_eq!((failure(&wrong).as_str(), &wrong["error"]["errors"][0]["field"]), ("INVALID_REQUEST", &json!("limit")));
        }

        let dry = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": 1, "dryRun": "true" });
        assert_eq!(fine(call(gateway, "purchase_esim_with_wallet", dry).await)["dryRun"], true);
        let buy = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": 1, "dryRun": "false" });
        let bought = fine(call(gateway, "purchase_esim_with_wallet", buy).await);
        let again = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": "1" });
        let again = fine(call(gateway, "purchase_esim_with_wallet", again).await);
        assert_eq!((&again["orderId"], &again["replayed"]), (&bought["orderId"], &json!(true)));
        let listed = fine(call(gateway, "get_user_orders", json!({ "token": token, "page": "1", "limit": "1" })).await);
        assert_eq!((&listed["limit"], &listed["total"]), (&json!(1), &json!(1)));
        // What costs money is never guessed: another name of an input is none there.
        let other = json!({ "packageCode": PLAN, "token": token, "country": "Japan" });
        assert_eq!(failure(&call(gateway, "purchase_esim_with_wallet", other).await), "INVALID_REQUEST");

        // A package has the names of orders and those of the catalog.
        let package = topup_for(gateway, token, &bought["orderId"]).await;
        assert_eq!((&package["dataAmount"], &package["dataUnit"]), (&package["dataAmountGb"], &json!("GB")));
        assert_eq!((&package["duration"], &package["retailPrice"]), (&package["durationDays"], &package["priceUsd"]));
        assert!(package["dataAmount"].is_f64() && package["duration"].is_u64() && package["retailPrice"].is_number(), "{package}");
    }

    /// A model reads all of a result: one about all the world ends in time.
    async fn a_result_has_its_length(gateway) with [("sandbox_plans", "5000")] {
        sync::seed(&gateway.app).await.unwrap();
        catalog::load(&gateway.app).await.unwrap();
        let found = fine(call(gateway, "get_esim_catalog", json!({ "countryCode": "global", "limit": 200 })).await);
        let shown = found["plans"].as_array().unwrap().len() as u64;
        assert!(0 < shown && shown < found["totalCount"].as_u64().unwrap().min(200), "{shown}");
        assert!(found.to_string().len() < 25_000);
    }

    async fn short_of_money_there_is_a_link(gateway) {
        let token = ann(gateway, 1).await;
        let price = plan(gateway, PLAN).retail;
        let dry = json!({ "packageCode": PLAN, "token": token, "dryRun": true });
        let preview = fine(call(gateway, "purchase_esim_with_wallet", dry).await);
        assert_eq!((&preview["sufficient"], usd(&preview["shortfallUsd"])), (&json!(false), price.minus(Usd::dollars(1))));
        let arguments = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": "trip" });
        let short = fine(call(gateway, "purchase_esim_with_wallet", arguments.clone()).await);
        assert_eq!((&short["purchased"], usd(&short["requiredUsd"])), (&json!(false), price));
        assert_eq!(usd(&short["shortfallUsd"]), price.minus(Usd::dollars(1)));
        let link = short["magicLink"].as_str().unwrap();
        assert!(link.starts_with(&format!("{}/topup/", gateway.base)));
        assert_eq!(reply(gateway.client.get(link).header("accept", "text/html")).await.status, 200);
        // Nothing was claimed: with the money there, the same call buys.
        fund(gateway, ANN, price).await;
        assert_eq!(fine(call(gateway, "purchase_esim_with_wallet", arguments).await)["purchased"], true);
        let order = fine(call(gateway, "get_user_orders", json!({ "token": token })).await)["orders"][0]["id"].clone();
        let package = topup_for(gateway, &token, &order).await;
        let arguments = json!({ "orderId": order, "packageCode": package["packageCode"], "token": token });
        let short = fine(call(gateway, "purchase_topup", arguments).await);
        assert_eq!((&short["purchased"], usd(&short["balanceUsd"])), (&json!(false), Usd::dollars(1)));
    }

    async fn an_order_is_given_back(gateway) {
        let token = ann(gateway, 100).await;
        let order = buy(gateway, &token).await["orderId"].clone();
        let dry = json!({ "orderId": order, "token": token, "dryRun": true });
        let preview = fine(call(gateway, "cancel_order", dry.clone()).await);
        assert_eq!((&preview["eligible"], &preview["status"], &preview["dryRun"]), (&json!(true), &json!("FULFILLED"), &json!(true)));
        let arguments = json!({ "orderId": order, "token": token, "idempotencyKey": "c1" });
        let given = fine(call(gateway, "cancel_order", arguments.clone()).await);
        assert_eq!((&given["status"], &given["replayed"]), (&json!("CANCELLED"), &json!(false)));
        assert_eq!(given["refundedUsd"], preview["refundableUsd"]);
        assert_eq!(usd(&given["balanceUsd"]), Usd::dollars(100));
        // The same again with its key; without one, or with another, it was cancelled before.
        let again = fine(call(gateway, "cancel_order", arguments).await);
        assert_eq!((&again["status"], &again["replayed"], &again["refundedUsd"]), (&json!("CANCELLED"), &json!(true), &given["refundedUsd"]));
        for key in [None, Some("c2")] {
            let refused = call(gateway, "cancel_order", json!({ "orderId": order, "token": token, "idempotencyKey": key })).await;
            assert_eq!((failure(&refused).as_str(), &refused["error"]["reason"]), ("NOT_CANCELLABLE", &json!("ALREADY_CANCELLED")));
            assert_eq!(refused["error"]["retryable"], false);
            assert!(refused["error"]["message"].as_str().unwrap().contains("was cancelled"), "{refused}");
        }
        assert_eq!(fine(call(gateway, "cancel_order", dry).await)["eligible"], false);
        // A key is for one thing.
        let other = buy(gateway, &token).await;
        let reused = json!({ "orderId": other["orderId"], "token": token, "idempotencyKey": "c1" });
        assert_eq!(failure(&call(gateway, "cancel_order", reused).await), "IDEMPOTENCY_CONFLICT");
        let keyed = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": "b1" });
        let keyed = fine(call(gateway, "purchase_esim_with_wallet", keyed).await);
        let reused = json!({ "orderId": keyed["orderId"], "token": token, "idempotencyKey": "b1" });
        assert_eq!(failure(&call(gateway, "cancel_order", reused).await), "IDEMPOTENCY_CONFLICT");
        let bought = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": "c1" });
        assert_eq!(failure(&call(gateway, "purchase_esim_with_wallet", bought).await), "IDEMPOTENCY_CONFLICT");
        let package = topup_for(gateway, &token, &keyed["orderId"]).await;
        let filled = json!({ "orderId": keyed["orderId"], "packageCode": package["packageCode"], "token": token, "idempotencyKey": "c1" });
        assert_eq!(failure(&call(gateway, "purchase_topup", filled).await), "IDEMPOTENCY_CONFLICT");
        let body = json!({ "packageCode": PLAN });
        assert_eq!(buying::ask_with_key(gateway, &token, "c1", &body).await.problem(409), "IDEMPOTENCY_CONFLICT");
        // Installed, it stays, and the key is free to try again. A dry run asks the carrier too.
        gateway.sandbox("usage", json!({ "iccid": other["order"]["iccid"], "status": "INSTALLED" })).await;
        let dry = fine(call(gateway, "cancel_order", json!({ "orderId": other["orderId"], "token": token, "dryRun": true })).await);
        assert_eq!((&dry["eligible"], &dry["reason"], usd(&dry["refundableUsd"])), (&json!(false), &json!("DOWNLOADED"), Usd::ZERO));
        let arguments = json!({ "orderId": other["orderId"], "token": token, "idempotencyKey": "c3" });
        for _ in 0..2 {
            assert_eq!(failure(&call(gateway, "cancel_order", arguments.clone()).await), "NOT_CANCELLABLE");
        }
    }

    async fn the_account_and_the_supplier_can_say_no(gateway) {
        let token = ann(gateway, 100).await;
        let arguments = json!({ "packageCode": PLAN, "token": token });
        gateway.supplier("reject").await;
        let refused = call(gateway, "purchase_esim_with_wallet", arguments.clone()).await;
        assert_eq!((failure(&refused).as_str(), &refused["error"]["httpStatus"]), ("SUPPLIER_REJECTED", &json!(502)));
        assert_eq!(balance(gateway, &token).await, Usd::dollars(100));
        gateway.supplier("ok").await;
        operator::set_suspended(&gateway.app, "test", ANN, true).await.unwrap();
        assert_eq!(failure(&call(gateway, "purchase_esim_with_wallet", arguments.clone()).await), "ACCOUNT_SUSPENDED");
        let wallet = fine(call(gateway, "get_wallet_balance", json!({ "token": token })).await);
        assert_eq!(wallet["status"], "SUSPENDED");
        operator::set_suspended(&gateway.app, "test", ANN, false).await.unwrap();
        let unknown = json!({ "packageCode": "XX-1", "token": token });
        assert_eq!(failure(&call(gateway, "purchase_esim_with_wallet", unknown).await), "PLAN_NOT_FOUND");
    }

    async fn coupons_are_checked_used_and_told(gateway) {
        let token = ann(gateway, 100).await;
        ok(gateway, "coupon create --code HALF --percent 50 --description 'Half\u{200b} price' --uses-per-user 1");
        ok(gateway, "coupon create --code APPONLY --percent 10 --app-only --description 'In the app'");
        ok(gateway, "coupon create --code PARTNER7 --percent 10 --affiliate");
        ok(gateway, "coupon create --code Save20now --percent 20");
        let told = fine(call(gateway, "get_available_coupons", json!({})).await);
        let mut coupons: Vec<(&str, &str, &str)> = told["coupons"]
            .as_array()
            .unwrap()
            .iter()
            .map(|coupon| {
                let word = |field: &str| coupon[field].as_str().unwrap();
                (word("code"), word("applicability"), word("discount"))
            })
            .collect();
        coupons.sort_unstable();
        assert_eq!(coupons, [("APPONLY", "MOBILE_APP", "10 %"), ("HALF", "GENERAL", "50 %")]);
        assert!(told.to_string().contains("Half price"), "nothing hidden is told");
        for coupon in told["coupons"].as_array().unwrap() {
            let counted = (coupon["code"] == "HALF").then_some(&Value::Bool(true));
            assert_eq!(coupon.get("loginRequired"), counted, "what counts by customer is not for guests: {coupon}");
        }

        let price = plan(gateway, DEAR).retail;
        let arguments = json!({ "code": "half", "packageCode": DEAR, "token": token });
        let valid = fine(call(gateway, "validate_coupon", arguments).await);
        assert_eq!((&valid["valid"], &valid["code"]), (&json!(true), &json!("HALF")));
        assert_eq!(usd(&valid["discountUsd"]).plus(usd(&valid["finalPriceUsd"])), price);
        let mut answers = Vec::new();
        for code in ["APPONLY", "PARTNER7", "NOTHING"] {
            let refused = call(gateway, "validate_coupon", json!({ "code": code, "packageCode": DEAR, "token": token })).await;
            assert_eq!((failure(&refused).as_str(), &refused["error"]["next"]["tool"]), ("COUPON_INVALID", &json!("get_available_coupons")));
            answers.push(refused["error"].clone());
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "one answer to all of them");
        assert!(answers[0]["message"].as_str().unwrap().contains("dryRun"), "how a partner's is tried: {}", answers[0]);
        let buy = |dry: bool| json!({ "packageCode": DEAR, "token": token, "discountCode": "Half", "dryRun": dry });
        let preview = fine(call(gateway, "purchase_esim_with_wallet", buy(true)).await);
        assert_eq!((&preview["priceUsd"], &preview["discountUsd"]), (&valid["finalPriceUsd"], &valid["discountUsd"]));
        let bought = fine(call(gateway, "purchase_esim_with_wallet", buy(false)).await);
        assert_eq!(bought["order"]["chargedUsd"], valid["finalPriceUsd"]);
        assert_eq!(failure(&call(gateway, "purchase_esim_with_wallet", buy(false)).await), "COUPON_INVALID", "once for each");
        // Given back with the order.
        fine(call(gateway, "cancel_order", json!({ "orderId": bought["orderId"], "token": token })).await);
        assert_eq!(balance(gateway, &token).await, Usd::dollars(100));
        fine(call(gateway, "purchase_esim_with_wallet", buy(false)).await);
    }

    /// Whatever else there is: ended ones do not hide it, and many fit into a model's view.
    async fn every_active_coupon_is_told_as_far_as_it_fits(gateway) {
        let now = gateway.app.now();
        make(gateway, coupons::plain(gateway, "FIRST", 5)).await;
        let sql = "INSERT INTO coupons (code, percent, affiliate, applicability, ends_at, below_cost, description, used, created_at) SELECT";
        let ended = format!("{sql} 'OLD' || code, 5, 0, 'GENERAL', {}, 0, 'x', 0, {} FROM plans LIMIT 600", now.micros(), now.plus_days(1).micros());
        database::execute(&gateway.app.settings.database, &ended).unwrap();
        let told = fine(call(gateway, "get_available_coupons", json!({})).await);
        assert_eq!((&told["totalCount"], &told["coupons"][0]["code"]), (&json!(1), &json!("FIRST")));
        let many = format!("{sql} 'NEW' || code, 5, 0, 'GENERAL', NULL, 0, '{}', 0, {} FROM plans LIMIT 600", "y".repeat(200), now.micros() - 1);
        database::execute(&gateway.app.settings.database, &many).unwrap();
        let told = fine(call(gateway, "get_available_coupons", json!({})).await);
        assert_eq!((&told["totalCount"], &told["coupons"][0]["code"]), (&json!(601), &json!("FIRST")), "the newest first");
        let shown = told["coupons"].as_array().unwrap().len();
        assert!((50..300).contains(&shown) && told.to_string().len() < 25 * 1024, "{shown}");
    }

    async fn a_token_spends_no_more_than_it_may(gateway) with [("token_daily_limit_usd", "5")] {
        gateway.away_from_midnight();
        let token = ann(gateway, 100).await;
        let mut bought = 0;
        let refused = loop {
            let told = call(gateway, "purchase_esim_with_wallet", json!({ "packageCode": PLAN, "token": token })).await;
            if told.get("error").is_some() {
                break told;
            }
            bought += 1;
            assert!(bought < 10, "the limit holds");
        };
        assert_eq!(failure(&refused), "LIMIT_EXCEEDED");
        assert!(Usd::dollars(100).minus(balance(gateway, &token).await) <= Usd::dollars(5));
        // Nobody is asked to pay in for what his token may not buy, and a dry run says so too.
        let bob = log_in(gateway, BOB).await;
        for dry in [true, false] {
            let dear = json!({ "packageCode": DEAR, "token": bob, "dryRun": dry });
            assert_eq!(failure(&call(gateway, "purchase_esim_with_wallet", dear).await), "LIMIT_EXCEEDED");
        }
    }
}
