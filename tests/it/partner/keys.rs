//! Who may come in: keys, their limits, and what a stranger is told.

use std::collections::HashSet;
use std::time::Instant;

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::operator::{self, KeyTerms};

use crate::support::harness::{Gateway, Key, Reply, both_databases, reply};
use crate::support::openapi::operations;
use crate::support::shapes::{API, ORDERS};

async fn new_key(gateway: &Gateway, terms: KeyTerms) -> Key {
    let account = operator::account(&gateway.app, &gateway.partner).await.unwrap().no;
    let made = operator::create_key(&gateway.app, "test", account, terms).await.unwrap();
    let key = Key { id: made.id.to_string(), secret: made.secret };
    key.until_known(&gateway.app).await;
    key
}

/// A refusal without what names the one request.
fn sameness(refused: &Reply) -> Value {
    let mut body = refused.json();
    body["requestId"] = json!("");
    body
}

both_databases! {
    async fn strangers_all_get_the_same_answer(gateway) {
        let revoked = new_key(gateway, KeyTerms::default()).await;
        gateway.send_as(&revoked, "GET", &format!("{API}/balance"), None).await.expect(200);
        operator::revoke_key(&gateway.app, "test", &revoked.id).await.unwrap();
        gateway.until("the revocation counts", async || {
            let reply = gateway.send_as(&revoked, "GET", &format!("{API}/balance"), None).await;
            (reply.status == 401).then_some(())
        }).await;
        let url = format!("{}{API}/balance", gateway.base);
        let (id, secret) = (gateway.key.id.as_str(), gateway.key.secret.as_str());
        let other = gateway.partner("Other", Usd::ZERO).await.1;
        let mut answers = Vec::new();
        for (key, given) in [
            (None, None),
            (Some(id), None),
            (None, Some(secret)),
            (Some(id), Some("")),
            (Some(""), Some(secret)),
            (Some(id), Some("sk_wrong")),
            (Some("key_unknown"), Some(secret)),
            (Some(secret), Some(id)),
            (Some(id), Some(other.secret.as_str())),
            (Some(revoked.id.as_str()), Some(revoked.secret.as_str())),
            (Some("key_\u{e9}"), Some(secret)),
        ] {
            let mut request = gateway.client.get(&url);
            if let Some(key) = key {
                request = request.header("x-b2b-key", key);
            }
            if let Some(given) = given {
                request = request.header("x-b2b-secret", given);
            }
            let refused = reply(request).await;
            assert_eq!(refused.problem(401), "UNAUTHENTICATED", "{key:?}");
            assert!(!refused.header("www-authenticate").is_empty());
            answers.push(sameness(&refused));
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "one body for all");
        // Every door of the API is locked, and whether something is behind it is not told.
        for (method, path) in [
            ("GET", "/balance/transactions"), ("GET", "/balance/address"), ("GET", "/plans"), ("GET", "/orders"), ("POST", "/orders"), ("GET", "/orders/ord_1"),
            ("POST", "/orders/ord_1/cancel"), ("GET", "/orders/1/usage"), ("GET", "/orders/1/topup-plans"), ("POST", "/orders/1/topup"),
        ] {
            let request = gateway.client.request(method.parse().unwrap(), format!("{}{API}{path}", gateway.base));
            assert_eq!(reply(request).await.problem(401), "UNAUTHENTICATED", "{method} {path}");
        }
    }

    async fn a_read_only_key_looks_but_does_not_buy(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let key = new_key(gateway, KeyTerms { read_only: true, ..KeyTerms::default() }).await;
        for path in ["/balance", "/balance/transactions", "/orders", "/plans?country=JP"] {
            gateway.send_as(&key, "GET", &format!("{API}{path}"), None).await.expect(200);
        }
        // Everything that changes something, as the API itself lists it.
        let api = gateway.get(&format!("{API}/openapi.json")).await.json();
        let changes = operations(&api).into_iter().filter(|(method, ..)| method != "get");
        let mut refused = 0;
        for (method, path, _) in changes {
            let named = path
                .replace("{id}", order["id"].as_str().unwrap())
                .replace("{iccid}", order["iccid"].as_str().unwrap())
                .replace("{webhookId}", "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")
                .replace("{deliveryId}", "dlv_5tVq0Zk2LmA");
            let body = match path.rsplit_once('/').unwrap().1 {
                "deposit" => json!({ "amountUsd": 25, "currency": "USDC" }),
                "verify-deposit" => json!({ "invoiceId": "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U" }),
                "webhooks" => json!({ "url": "https://hooks.example/in" }),
                "replay" => json!({ "since": "2026-01-31" }),
                "{webhookId}" => json!({ "description": "mine" }),
                _ => json!({}),
            };
            let sent = gateway.send_as(&key, &method.to_uppercase(), &named, Some(body)).await;
            // There is no such webhook, which is found out first.
            let is_missed = path.ends_with("/redeliver");
            let (status, code) = if is_missed { (404, "NOT_FOUND") } else { (403, "LIMIT_EXCEEDED") };
            assert_eq!(sent.problem(status), code, "{method} {path}");
            refused += 1;
        }
        assert!(refused >= 13, "{refused}");
        // It sees the standing address once there is one, and makes none.
        let address = format!("{API}/balance/address");
        assert_eq!(gateway.send_as(&key, "GET", &address, None).await.problem(403), "LIMIT_EXCEEDED");
        let made = gateway.get(&address).await.expect(200);
        let seen = gateway.send_as(&key, "GET", &address, None).await.expect(200);
        assert_eq!(seen["depositAddress"], made["depositAddress"]);
        assert_eq!(gateway.journalled("sold").len(), 1);
    }

    async fn a_key_may_be_bound_to_addresses(gateway) {
        let here = new_key(gateway, KeyTerms { ips: "127.0.0.0/8".into(), ..KeyTerms::default() }).await;
        gateway.send_as(&here, "GET", &format!("{API}/balance"), None).await.expect(200);
        let elsewhere = new_key(gateway, KeyTerms { ips: "192.0.2.0/24,2001:db8::/32".into(), ..KeyTerms::default() }).await;
        let refused = gateway.send_as(&elsewhere, "GET", &format!("{API}/balance"), None).await;
        assert_eq!(refused.problem(403), "LIMIT_EXCEEDED");
        // Without a trusted proxy nobody is believed about where he comes from.
        let forged = gateway.client.get(format!("{}{API}/balance", gateway.base)).header("x-b2b-key", &elsewhere.id)
            .header("x-b2b-secret", &elsewhere.secret).header("x-forwarded-for", "192.0.2.7");
        assert_eq!(reply(forged).await.problem(403), "LIMIT_EXCEEDED");
    }

    async fn a_trusted_proxy_is_believed(gateway) with [("trusted_proxies", "127.0.0.1,10.0.0.0/8")] {
        let key = new_key(gateway, KeyTerms { ips: "192.0.2.7".into(), ..KeyTerms::default() }).await;
        for (forwarded, status) in [
            ("192.0.2.7", 200),
            ("192.0.2.7, 10.1.2.3", 200),
            ("192.0.2.7, 198.51.100.1", 403),
            ("198.51.100.1, 192.0.2.7", 200),
            ("nonsense", 403),
            ("", 403),
        ] {
            let request = gateway.client.get(format!("{}{API}/balance", gateway.base)).header("x-b2b-key", &key.id)
                .header("x-b2b-secret", &key.secret).header("x-forwarded-for", forwarded);
            assert_eq!(reply(request).await.status, status, "{forwarded}");
        }
    }

    async fn a_daily_limit_counts_what_was_bought_today(gateway) {
        gateway.away_from_midnight();
        let key = new_key(gateway, KeyTerms { daily_limit: Some(Usd::parse("2").unwrap()), ..KeyTerms::default() }).await;
        let body = |reference: &str| Some(json!({ "packageCode": "JP-1GB-7D", "partnerRefId": reference }));
        gateway.send_as(&key, "POST", ORDERS, body("1")).await.expect(200);
        gateway.supplier("reject").await;
        gateway.send_as(&key, "POST", ORDERS, body("2")).await.problem(502);
        gateway.supplier("ok").await;
        let order = gateway.send_as(&key, "POST", ORDERS, body("2")).await.expect(200)["order"].clone();
        assert_eq!(gateway.send_as(&key, "POST", ORDERS, body("3")).await.problem(403), "LIMIT_EXCEEDED", "2.46 > 2");
        gateway.send_as(&key, "POST", ORDERS, body("1")).await.expect(200);
        let topup = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        let bundle = Some(json!({ "packageCode": "JP-1GB-7D-TOPUP" }));
        assert_eq!(gateway.send_as(&key, "POST", &topup, bundle).await.problem(403), "LIMIT_EXCEEDED");
        gateway.post(ORDERS, body("4").unwrap()).await.expect(200);
        gateway.pass_time(86_400_000);
        gateway.send_as(&key, "POST", ORDERS, body("3")).await.expect(200);
    }

    async fn whoever_asks_too_often_is_told_to_wait(gateway) with [("rate_limit", "1"), ("rate_burst", "5"), ("ip_rate_limit", "1"), ("ip_rate_burst", "4")] {
        let path = format!("{API}/balance");
        let started = Instant::now();
        for left in (0..5).rev() {
            let reply = gateway.get(&path).await;
            reply.expect(200);
            assert_eq!(reply.header("ratelimit-policy"), "\"default\";q=5;w=5");
            let told = reply.header("ratelimit").strip_prefix("\"default\";r=").unwrap().strip_suffix(";t=1").unwrap();
            // One comes back each second.
            let most = left + started.elapsed().as_secs() + 1;
            assert!((left..=most).contains(&told.parse().unwrap()), "{told} of {left}");
        }
        let refused = gateway.until("too many", async || {
            let reply = gateway.get(&path).await;
            (reply.status != 200).then_some(reply)
        }).await;
        assert_eq!(refused.problem(429), "RATE_LIMITED");
        assert!((1..=5).contains(&refused.header("retry-after").parse::<u32>().unwrap()));
        assert!(refused.header("ratelimit").contains("r=0"));
        // Another key of the same address has its own allowance; strangers share the address's.
        let other = gateway.partner("Other", Usd::ZERO).await.1;
        gateway.send_as(&other, "GET", &path, None).await.expect(200);
        let strangers = (0..20).map(|_| reply(gateway.client.get(format!("{}{path}", gateway.base))));
        let seen: HashSet<u16> = join_all(strangers).await.iter().map(|reply| reply.status).collect();
        assert_eq!(seen, HashSet::from([401, 429]));
    }

    async fn a_sane_request_id_is_kept(gateway) {
        for sane in ["abc-123", "A.b_c:1", &"x".repeat(128)] {
            let reply = reply(gateway.request("GET", &format!("{API}/balance")).header("x-request-id", sane)).await;
            assert_eq!(reply.header("x-request-id"), sane);
        }
        for odd in ["", "a b", "<script>", "x\u{e9}", &"x".repeat(129), "a\"b"] {
            let reply = reply(gateway.request("GET", &format!("{API}/orders/x")).header("x-request-id", odd)).await;
            let own = reply.header("x-request-id");
            assert!(own != odd && own.len() == 32, "{odd}: {own}");
            assert_eq!(reply.problem(404), "ORDER_NOT_FOUND");
        }
    }
}
