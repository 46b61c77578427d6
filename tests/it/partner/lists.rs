//! The list of orders: what it shows by default, its filters, and pages that do not shift.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::shapes::{ORDERS, column, money};

async fn list(gateway: &Gateway, query: &str) -> Value {
    gateway.get(&format!("{ORDERS}{query}")).await.expect(200)
}

async fn buy(gateway: &Gateway, count: usize) -> Vec<Value> {
    let mut bought = Vec::new();
    for _ in 0..count {
        bought.push(gateway.order("JP-500MB-1D").await);
    }
    bought
}

/// The path of the next page, from a `Link` header.
fn next(reply: &Reply, base: &str) -> Option<String> {
    let link = Some(reply.header("link")).filter(|link| !link.is_empty())?;
    let path = link.strip_prefix(&format!("<{base}")).unwrap_or_else(|| panic!("not absolute: {link}"));
    Some(path.strip_suffix(">; rel=\"next\"").unwrap().to_string())
}

/// Follows `Link` to the end, doing something between pages; answers every id it was shown.
async fn follow(gateway: &Gateway, first: &str, mut between: impl AsyncFnMut()) -> Vec<String> {
    let mut seen = Vec::new();
    let mut path = format!("{ORDERS}{first}");
    loop {
        let reply = gateway.get(&path).await;
        seen.extend(column(&reply.expect(200)["orders"], "id").into_iter().map(str::to_string));
        match next(&reply, &gateway.base) {
            Some(next) => path = next,
            None => return seen,
        }
        between().await;
    }
}

fn newest_first(orders: &[Value]) -> Vec<&str> {
    orders.iter().rev().map(|order| order["id"].as_str().unwrap()).collect()
}

both_databases! {
    async fn by_default_delivered_and_cancelled_orders_are_listed(gateway) {
        let orders = buy(gateway, 3).await;
        let cancel = format!("{ORDERS}/{}/cancel", orders[1]["id"].as_str().unwrap());
        gateway.send_as(&gateway.key, "POST", &cancel, None).await.expect(200);
        gateway.supplier("reject").await;
        let body = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "refused one" });
        gateway.post(ORDERS, body).await.problem(502);

        let reply = gateway.get(ORDERS).await;
        money(&reply.text);
        let all = reply.expect(200);
        assert_eq!(crate::support::shapes::names(&all), ["limit", "orders", "page", "success", "total", "totalPages"]);
        assert_eq!((&all["page"], &all["limit"], &all["total"], &all["totalPages"]), (&json!(1), &json!(20), &json!(3), &json!(1)));
        assert_eq!(column(&all["orders"], "id"), newest_first(&orders));
        assert_eq!(column(&all["orders"], "status"), ["FULFILLED", "CANCELLED", "FULFILLED"]);
        assert_eq!(all["orders"][0], orders[2]);
        assert_eq!(reply.header("link"), "");
        for (query, count) in [
            ("?status=FULFILLED", 2),
            ("?status=CANCELLED", 1),
            ("?status=FAILED", 1),
            ("?status=PROVISIONING", 0),
            ("?status=CANCELLING", 0),
            ("?partnerRefId=refused%20one", 1),
            ("?partnerRefId=refused+one&status=FAILED", 1),
            ("?partnerRefId=refused+one&status=FULFILLED", 0),
            ("?partnerRefId=unknown", 0),
        ] {
            let listed = list(gateway, query).await;
            assert_eq!((&listed["total"], listed["orders"].as_array().unwrap().len()), (&json!(count), count), "{query}");
            assert_eq!(listed["totalPages"], usize::from(count > 0), "{query}");
        }
    }

    async fn pages_have_bounds(gateway) {
        let orders = buy(gateway, 5).await;
        let ids = newest_first(&orders);
        for (query, shown, pages) in [
            ("?limit=2", &ids[0..2], 3),
            ("?limit=2&page=2", &ids[2..4], 3),
            ("?limit=2&page=3", &ids[4..5], 3),
            ("?limit=2&page=4", &[][..], 3),
            ("?limit=1", &ids[0..1], 5),
            ("?limit=5", &ids[..], 1),
            ("?limit=100", &ids[..], 1),
            ("?page=1000000000", &[][..], 1),
            ("?status=FULFILLED&limit=2&page=2", &ids[2..4], 3),
        ] {
            let listed = list(gateway, query).await;
            assert_eq!(column(&listed["orders"], "id"), shown, "{query}");
            assert_eq!((&listed["total"], &listed["totalPages"]), (&json!(5), &json!(pages)), "{query}");
        }
        for query in ["limit=0", "limit=101", "limit=-1", "limit=ten", "limit=", "limit=2.0", "page=0", "page=-1", "page=x",
                      "limit=99999999999999999999", "after=1", "after=c0", "after=c-1", "after=", "status=full", "status=",
                      "status=DONE", "from=yesterday", "to=2026-13-01", "to=", "iccid=123", "iccid=89123456789012345x",
                      "partnerRefId=", "limit=1&limit=1"] {
            let reply = gateway.get(&format!("{ORDERS}?{query}")).await;
            assert_eq!(reply.problem(400), "INVALID_REQUEST", "{query}");
            let field = query.split('=').next().unwrap();
            assert_eq!(reply.json()["errors"][0]["field"], field, "{query}");
        }
        // Every mistake is told at once.
        let reply = gateway.get(&format!("{ORDERS}?limit=0&page=0&iccid=x&status=x")).await;
        reply.problem(400);
        assert_eq!(column(&reply.json()["errors"], "field"), ["page", "limit", "iccid", "status"]);
    }

    async fn the_cursor_does_not_shift_while_orders_arrive(gateway) {
        let orders = buy(gateway, 7).await;
        for first in ["?limit=2", "?limit=2&status=FULFILLED", "?limit=3&from=2020-01-01&to=2999-01-01T00:00:00Z"] {
            let known: Vec<String> = follow(gateway, "?limit=100", async || {}).await;
            let seen = follow(gateway, first, async || drop(buy(gateway, 1).await)).await;
            assert_eq!(seen, known, "{first}: all orders of before, once each");
        }
        let seen = follow(gateway, "?limit=1", async || {}).await;
        assert_eq!(seen.len(), seen.iter().collect::<HashSet<_>>().len());
        assert!(orders.iter().all(|order| seen.iter().any(|id| order["id"] == id.as_str())));
        let total = list(gateway, "?limit=1").await["total"].clone();
        let reply = gateway.get(&format!("{ORDERS}?limit=1")).await;
        let second = gateway.get(&next(&reply, &gateway.base).unwrap()).await.expect(200);
        assert_eq!(second["total"], total, "the total is that of the whole list");
    }

    /// A reference can have several orders when some failed; the cursor walks them like any list.
    async fn the_orders_of_a_reference_have_pages_too(gateway) {
        gateway.supplier("reject").await;
        let body = json!({ "packageCode": "JP-500MB-1D", "partnerRefId": "a&b=ü 1" });
        for _ in 0..4 {
            gateway.post(ORDERS, body.clone()).await.problem(502);
            gateway.pass_time(2);
        }
        gateway.supplier("ok").await;
        gateway.post(ORDERS, body).await.expect(200);
        let query = "?partnerRefId=a%26b%3D%C3%BC+1";
        let whole = list(gateway, query).await;
        assert_eq!(column(&whole["orders"], "status"), ["FULFILLED", "FAILED", "FAILED", "FAILED", "FAILED"]);
        let walked = follow(gateway, &format!("{query}&limit=2"), async || {}).await;
        assert_eq!(walked, column(&whole["orders"], "id"));
        let reply = gateway.get(&format!("{ORDERS}{query}&limit=2")).await;
        let second = gateway.get(&next(&reply, &gateway.base).unwrap()).await.expect(200);
        assert_eq!((&second["total"], &second["totalPages"]), (&json!(5), &json!(3)));
    }

    async fn orders_are_found_by_time_and_by_iccid(gateway) {
        let mut orders = Vec::new();
        for _ in 0..3 {
            orders.push(gateway.order("JP-500MB-1D").await);
            gateway.pass_time(1_000);
        }
        let at = |n: usize| orders[n]["createdAt"].as_str().unwrap();
        let ids = newest_first(&orders);
        for (query, shown) in [
            (format!("?from={}", at(1)), &ids[0..2]),
            (format!("?to={}", at(1)), &ids[2..3]),
            (format!("?from={}&to={}", at(1), at(2)), &ids[1..2]),
            (format!("?from={}&to={}", at(2), at(1)), &[][..]),
            ("?from=2020-01-01".to_string(), &ids[..]),
            ("?to=2020-01-01".to_string(), &[][..]),
            (format!("?iccid={}", orders[1]["iccid"].as_str().unwrap()), &ids[1..2]),
            (format!("?iccid={}&status=CANCELLED", orders[1]["iccid"].as_str().unwrap()), &[][..]),
            (format!("?iccid={}&from={}", orders[1]["iccid"].as_str().unwrap(), at(2)), &[][..]),
            ("?iccid=8900000000000000000".to_string(), &[][..]),
            ("?iccid=89000000000000000000".to_string(), &[][..]),
        ] {
            let listed = list(gateway, &query).await;
            assert_eq!(column(&listed["orders"], "id"), shown, "{query}");
            assert_eq!(listed["total"], shown.len(), "{query}");
        }
    }
}
