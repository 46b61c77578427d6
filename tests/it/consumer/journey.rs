//! A customer's way through the consumer API, field by field as clients read them.

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::browser::{onward, submit};
use crate::support::buying::{UNTIL_FINAL_MS, usd};
use crate::support::command_line::ok;
use crate::support::coupons::{DEAR, plan};
use crate::support::customers::*;
use crate::support::harness::{both_databases, reply};

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

both_databases! {
    async fn a_customer_comes_and_buys(gateway) {
        let help = get(gateway, "", "/api/mcp/knowledge").await.expect(200);
        let help = text(&help["content"]);
        for part in ["# Install", "refund", "no data"] {
            assert!(help.to_lowercase().contains(&part.to_lowercase()), "{part}: {help}");
        }

        let sent = post(gateway, "", "/api/auth/otp/send", json!({ "email": "Ann@Example.com", "source": "mcp" })).await.expect(200);
        assert_eq!((&sent["success"], &sent["sent"], sent.get("error")), (&json!(true), &json!(true), None));
        // A client that is impatient is told that the code is there.
        let again = post(gateway, "", "/api/auth/otp/send", json!({ "email": ANN })).await.expect(200);
        assert_eq!((&again["sent"], &again["expiresAt"]), (&json!(false), &sent["expiresAt"]));
        let code = crate::support::logins::code(gateway, ANN).await;
        let session = post(gateway, "", "/api/auth/otp/verify", json!({ "email": ANN, "code": code })).await.expect(200);
        let token = text(&session["token"]);
        assert!(token.starts_with("sgs_") && session["expiresAt"].is_string(), "{session}");
        assert_eq!(balance(gateway, token).await, Usd::ZERO);

        // The wallet is filled by the link of the refusal.
        let wish = json!({ "packageCode": DEAR, "discountCode": "welcome", "source": "mcp" });
        ok(gateway, "coupon create --code WELCOME --percent 10");
        let short = post(gateway, token, ORDERS, wish.clone()).await;
        assert_eq!(short.problem(402), "INSUFFICIENT_BALANCE");
        let link = short.json()["magicLink"].as_str().unwrap().to_string();
        let path = link.strip_prefix(&gateway.base).unwrap();
        let invoice = onward(&submit(gateway, path, &[("amountUsd", "50"), ("means", "USDC BASE")]).await);
        gateway.sandbox("pay", json!({ "invoiceId": invoice })).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        gateway.until("the money", async || (balance(gateway, token).await == Usd::dollars(50)).then_some(())).await;

        let quoted = post(gateway, token, "/api/discount/validate", json!({ "code": "welcome", "packageCode": DEAR })).await.expect(200);
        let price = usd(&quoted["finalPrice"]);
        assert_eq!(price.plus(usd(&quoted["discount"])), plan(gateway, DEAR).retail);
        assert!(usd(&quoted["discount"]).is_positive());
        let order = post(gateway, token, ORDERS, wish).await.expect(200);
        assert_eq!((&order["status"], order.get("error")), (&json!("COMPLETED"), None));
        assert_eq!(usd(&order["balance"]), Usd::dollars(50).minus(price));
        let (smdp, matching) = (text(&order["smdpAddress"]), text(&order["matchingId"]));
        assert_eq!(text(&order["lpaUrl"]), format!("LPA:1${smdp}${matching}"));
        let image = reply(gateway.client.get(text(&order["qrCode"]))).await;
        assert_eq!((image.status, image.header("content-type")), (200, "image/svg+xml"));

        let id = text(&order["orderId"]);
        let listed = get(gateway, token, "/api/orders?page=1&limit=20").await.expect(200);
        assert_eq!((&listed["total"], &listed["page"], &listed["limit"]), (&json!(1), &json!(1), &json!(20)));
        let shown = &listed["orders"][0];
        assert_eq!((text(&shown["id"]), &shown["product"]["name"]), (id, &json!(plan(gateway, DEAR).name)));
        for field in ["status", "product", "amount", "iccid", "smdpAddress", "matchingId", "lpaUrl", "qrCode", "installUrl"] {
            assert_eq!(shown[field], order[field]);
        }
        assert!(text(&shown["createdAt"]).ends_with('Z'));

        gateway.sandbox("usage", json!({ "iccid": order["iccid"], "usedGb": 0.5, "status": "ACTIVE" })).await;
        let usage = press(gateway, token, &format!("/api/esims/{id}/usage")).await.expect(200);
        assert_eq!((&usage["usedVolumeFormatted"], &usage["totalVolumeFormatted"]), (&json!("0.5 GB"), &json!("10 GB")));
        let topup = format!("/api/esims/{id}/topup");
        let packages = get(gateway, token, &topup).await.expect(200)["packages"].clone();
        let package = &packages[0];
        assert!(text(&package["name"]).len() > 3 && package["dataAmount"].is_number() && package["dataUnit"] == "GB" && package["duration"].is_u64());
        let before = balance(gateway, token).await;
        let added = post(gateway, token, &topup, json!({ "packageCode": package["packageCode"], "source": "mcp" })).await.expect(200);
        assert_eq!((&added["status"], added.get("error")), (&json!("COMPLETED"), None));
        assert_eq!(usd(&added["balance"]), before.minus(usd(&package["retailPrice"])));
        let usage = press(gateway, token, &format!("/api/esims/{id}/usage")).await.expect(200);
        assert!(usage["totalGb"].as_f64().unwrap() > 10.0);

        let second = bought(gateway, token).await;
        let before = balance(gateway, token).await;
        let cancelled = press(gateway, token, &format!("/api/orders/{second}/cancel")).await.expect(200);
        assert_eq!((&cancelled["status"], cancelled.get("error")), (&json!("CANCELLED"), None));
        assert_eq!(usd(&cancelled["balance"]), before.plus(usd(&cancelled["refunded"])));
        assert_eq!(orders(gateway, token).await, [(second, "CANCELLED".into()), (id.into(), "COMPLETED".into())]);
        let moves = get(gateway, token, "/api/wallet/transactions?page=1&limit=20").await.expect(200);
        let moves = moves["transactions"].as_array().unwrap();
        let kinds: Vec<&str> = moves.iter().map(|line| text(&line["type"])).collect();
        assert_eq!(kinds, ["CANCELLED", "ORDER", "TOPUP", "ORDER", "DEPOSIT"]);
        assert_eq!(usd(&moves[0]["balanceAfter"]), balance(gateway, token).await);
        assert_eq!((usd(&moves[4]["amount"]), usd(&moves[3]["amount"])), (Usd::dollars(50), price.negated()));
        assert!(moves.iter().all(|line| !text(&line["description"]).is_empty() && text(&line["createdAt"]).ends_with('Z')));
    }

    async fn lists_come_page_by_page(gateway) {
        let token = ann(gateway, 100).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.insert(0, bought(gateway, &token).await);
        }
        let page = async |list: &str, query: &str| get(gateway, &token, &format!("{list}?{query}")).await.expect(200);
        let first = page(ORDERS, "page=1&limit=2").await;
        let second = page(ORDERS, "page=2&limit=2").await;
        let shown = |page: &Value| page["orders"].as_array().unwrap().iter().map(|order| text(&order["id"]).to_string()).collect::<Vec<_>>();
        assert_eq!([shown(&first), shown(&second)].concat(), ids);
        assert_eq!((&first["total"], &second["total"], &second["page"]), (&json!(3), &json!(3), &json!(2)));
        let moves = "/api/wallet/transactions";
        let (first, second) = (page(moves, "limit=3").await, page(moves, "limit=3&page=2").await);
        let amounts = |page: &Value| page["transactions"].as_array().unwrap().len();
        assert_eq!((amounts(&first), amounts(&second), &first["total"]), (3, 1, &json!(4)));
        for list in [ORDERS, moves] {
            for wrong in ["limit=0", "limit=101", "page=0", "page=x"] {
                let refused = get(gateway, &token, &format!("{list}?{wrong}")).await;
                assert_eq!(refused.problem(400), "INVALID_REQUEST", "{list}?{wrong}");
            }
            assert_eq!(page(list, "page=1000000&limit=100&source=mcp").await["page"], 1_000_000);
        }
    }

    /// The tools see the same, because they do the same.
    async fn the_tools_see_the_same_customer(gateway) {
        use crate::support::tool_caller::{call, fine};
        let token = ann(gateway, 20).await;
        let body = json!({ "packageCode": crate::support::buying::PLAN });
        let order = post_with_key(gateway, &token, "trip-1", ORDERS, body.clone()).await.expect(200);
        let mut arguments = body.clone();
        arguments["token"] = json!(token);
        arguments["idempotencyKey"] = json!("trip-1");
        let again = fine(call(gateway, "purchase_esim_with_wallet", arguments).await);
        assert_eq!((&again["orderId"], &again["replayed"]), (&order["orderId"], &json!(true)));
        assert_eq!(usd(&again["balanceUsd"]), balance(gateway, &token).await);
    }

    async fn bodies_need_no_content_type(gateway) {
        let token = ann(gateway, 20).await;
        for kind in ["application/json", "text/plain;charset=UTF-8", "application/vnd.api+json"] {
            let request = request(gateway, &token, "POST", ORDERS).header("content-type", kind);
            reply(request.body(wish().to_string())).await.expect(200);
        }
        for kind in ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let request = request(gateway, &token, "POST", ORDERS).header("content-type", kind);
            assert_eq!(reply(request.body(wish().to_string())).await.problem(415), "UNSUPPORTED_MEDIA_TYPE");
        }
        assert_eq!(press(gateway, &token, ORDERS).await.problem(400), "INVALID_REQUEST", "no body at all");
        assert_eq!(orders(gateway, &token).await.len(), 3);
    }
}
