//! Deposits through the partner's door and on the pay page: what is credited is what arrived, once, to the account
//! whose address it came to, and every answer says how that compares with what was asked for.

use serde_json::{Value, json};
use simgate::chain::address;
use simgate::chain::sim::{ChainMode, Payment};
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency, Network};
use simgate::ops::operator::{self, KeyTerms};

use crate::support::deposits::{id, pay, record, until, until_status};
use crate::support::harness::{Gateway, Key, Reply, both_databases, reply};
use crate::support::qr_codes;
use crate::support::shapes::{API, DEPOSIT, mask, money, names};

const VERIFY: &str = "/api/b2b/v1/balance/verify-deposit";
/// More blocks than any network asks for come in this time.
const UNTIL_FINAL_MS: i64 = 6_000;
const HOUR_MS: i64 = 3_600_000;

fn usd(text: &str) -> Usd {
    Usd::parse(text).unwrap()
}

async fn open_as(gateway: &Gateway, key: &Key, amount: i64, currency: &str, network: &str) -> Reply {
    let body = json!({ "amountUsd": amount, "currency": currency, "network": network });
    gateway.send_as(key, "POST", DEPOSIT, Some(body)).await
}

async fn open(gateway: &Gateway, amount: i64, currency: &str, network: &str) -> Value {
    open_as(gateway, &gateway.key, amount, currency, network).await.expect(200)
}

/// Pays, lets the blocks come that are asked for, and waits for the credit.
async fn settle(gateway: &Gateway, invoice: &Value, amount: &str) -> Value {
    pay(gateway, invoice, amount).await;
    gateway.pass_time(UNTIL_FINAL_MS);
    until_status(gateway, invoice, "CONFIRMED").await
}

async fn verify_as(gateway: &Gateway, key: &Key, invoice: &Value, hash: Option<&str>) -> Reply {
    let mut body = json!({ "invoiceId": id(invoice) });
    if let Some(hash) = hash {
        body["txHash"] = json!(hash);
    }
    gateway.send_as(key, "POST", VERIFY, Some(body)).await
}

async fn verify(gateway: &Gateway, invoice: &Value, hash: Option<&str>) -> Reply {
    verify_as(gateway, &gateway.key, invoice, hash).await
}

async fn page(gateway: &Gateway, invoice: &Value) -> Reply {
    let url = invoice["checkoutUrl"].as_str().unwrap();
    reply(gateway.client.get(url).header("accept", "text/html,*/*;q=0.8")).await
}

/// What a reader of the page sees.
fn text_of(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<') {
        text.push_str(piece.split_once('>').map_or(piece, |(_, after)| after));
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

both_databases! {
    async fn an_invoice_has_the_fields_of_the_contract(gateway) {
        let body = json!({ "amountUsd": 25.5, "currency": "USDC" });
        let reply = gateway.post(DEPOSIT, body).await;
        money(&reply.text);
        assert_eq!(reply.header("cache-control"), "no-store");
        let invoice = reply.expect(200);
        insta::assert_json_snapshot!(mask(&invoice), @r#"
        {
          "amountDueUsd": 25.5,
          "amountUsd": 25.5,
          "checkoutUrl": "http://…/pay/…",
          "confirmations": 0,
          "confirmedAt": null,
          "createdAt": "…Z",
          "creditedUsd": 0,
          "currency": "USDC",
          "depositAddress": "0x…",
          "exception": null,
          "expiresAt": "…Z",
          "invoiceId": "inv_…",
          "network": "BASE",
          "receivedUsd": 0,
          "requiredConfirmations": 5,
          "sandbox": true,
          "sandboxNotice": "This is a sandbox: do not send real money. Its chains are simulated, so nothing would arrive, and the money would be lost. Pay with POST /sandbox/pay instead.",
          "status": "PENDING",
          "success": true,
          "transactions": []
        }
        "#);
        assert_eq!(record(gateway, &invoice).await, invoice);
        let times = ["createdAt", "expiresAt"].map(|name| {
            invoice[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
        });
        assert_eq!(times[1] - times[0], HOUR_MS, "an invoice is open for 60 minutes");
        let mut paid = settle(gateway, &invoice, "25.5").await;
        assert!(paid["transactions"][0]["confirmations"].as_i64().unwrap() >= 5);
        assert_eq!(paid["confirmations"], paid["transactions"][0]["confirmations"]);
        paid["confirmations"] = json!(5);
        paid["transactions"][0]["confirmations"] = json!(5);
        insta::assert_json_snapshot!(mask(&paid), @r#"
        {
          "amountDueUsd": 0,
          "amountUsd": 25.5,
          "checkoutUrl": "http://…/pay/…",
          "confirmations": 5,
          "confirmedAt": "…Z",
          "createdAt": "…Z",
          "creditedUsd": 25.5,
          "currency": "USDC",
          "depositAddress": "0x…",
          "exception": null,
          "expiresAt": "…Z",
          "invoiceId": "inv_…",
          "network": "BASE",
          "receivedUsd": 25.5,
          "requiredConfirmations": 5,
          "sandbox": true,
          "sandboxNotice": "This is a sandbox: do not send real money. Its chains are simulated, so nothing would arrive, and the money would be lost. Pay with POST /sandbox/pay instead.",
          "status": "CONFIRMED",
          "success": true,
          "transactions": [
            {
              "amountUsd": 25.5,
              "confirmations": 5,
              "currency": "USDC",
              "network": "BASE",
              "status": "CONFIRMED",
              "txHash": "0x…"
            }
          ]
        }
        "#);
        assert_eq!(gateway.balance().await, "1025.5");
        let line = &gateway.get(&format!("{API}/balance/transactions")).await.expect(200)["transactions"][0];
        insta::assert_json_snapshot!(mask(line), @r#"
        {
          "amountUsd": 25.5,
          "balanceUsd": 1025.5,
          "createdAt": "…Z",
          "invoiceId": "inv_…",
          "line": 2,
          "note": null,
          "orderId": null,
          "type": "DEPOSIT"
        }
        "#);
        assert_eq!(line["invoiceId"], invoice["invoiceId"]);
    }

    async fn all_eight_pairs_are_credited(gateway) {
        let mut open_ones = Vec::new();
        for (network, confirmations) in [("BASE", 5), ("POLYGON", 12), ("ARBITRUM", 20), ("TRON", 19)] {
            for currency in ["USDT", "USDC"] {
                let invoice = open(gateway, 25, currency, network).await;
                assert_eq!((&invoice["network"], &invoice["currency"]), (&json!(network), &json!(currency)));
                assert_eq!(invoice["requiredConfirmations"], confirmations);
                let address = invoice["depositAddress"].as_str().unwrap();
                let kind = if network == "TRON" { AddressKind::Tron } else { AddressKind::Evm };
                assert!(address::bytes(kind, address).is_some(), "{address}");
                let paid = gateway.sandbox("pay", json!({ "invoiceId": id(&invoice) })).await;
                assert_eq!(names(&paid), ["amountUsd", "currency", "network", "success", "txHash"]);
                assert_eq!((&paid["network"], &paid["currency"], &paid["amountUsd"]), (&json!(network), &json!(currency), &json!(25)));
                open_ones.push(invoice);
            }
        }
        let addresses: std::collections::BTreeSet<&str> =
            open_ones.iter().map(|invoice| invoice["depositAddress"].as_str().unwrap()).collect();
        assert_eq!(addresses.len(), 8, "an address serves one open invoice at a time");
        gateway.pass_time(UNTIL_FINAL_MS);
        for invoice in &open_ones {
            let paid = until_status(gateway, invoice, "CONFIRMED").await;
            let transaction = &paid["transactions"][0];
            assert_eq!((&transaction["network"], &transaction["currency"]), (&invoice["network"], &invoice["currency"]));
            assert_eq!((&paid["exception"], &paid["creditedUsd"]), (&Value::Null, &json!(25)));
        }
        assert_eq!(gateway.balance().await, "1200");
    }

    async fn what_arrived_is_credited_whatever_was_asked_for(gateway) {
        let mut balance = usd("1000");
        for (payments, status, exception, due) in [
            (&["25"][..], "CONFIRMED", Value::Null, "0"),
            (&["24.999999"], "CONFIRMED", json!("UNDER"), "0.000001"),
            (&["26.5"], "CONFIRMED", json!("OVER"), "0"),
            (&["10", "15"], "CONFIRMED", Value::Null, "0"),
            (&["20", "10"], "CONFIRMED", json!("OVER"), "0"),
            (&["1"], "CONFIRMED", json!("UNDER"), "24"),
            (&["0.5", "24.5"], "CONFIRMED", Value::Null, "0"),
            (&["0.999999"], "PENDING", Value::Null, "24.000001"),
        ] {
            let invoice = open(gateway, 25, "USDC", "BASE").await;
            let mut sum = Usd::ZERO;
            for amount in payments {
                sum = sum.plus(usd(amount));
                pay(gateway, &invoice, amount).await;
            }
            gateway.pass_time(UNTIL_FINAL_MS);
            let all = |record: &Value| usd(&record["creditedUsd"].to_string()) == sum;
            let paid = until(gateway, &invoice, "all is credited", all).await;
            assert_eq!((paid["status"].as_str().unwrap(), &paid["exception"]), (status, &exception), "{payments:?}");
            let [still_due, received] = ["amountDueUsd", "receivedUsd"].map(|name| usd(&paid[name].to_string()));
            assert_eq!((still_due, received), (usd(due), sum), "{payments:?}");
            assert_eq!(paid["transactions"].as_array().unwrap().len(), payments.len());
            assert_eq!(paid["confirmedAt"].is_string(), status == "CONFIRMED");
            balance = balance.plus(sum);
            assert_eq!(gateway.balance().await, balance.to_string(), "{payments:?}");
        }
    }

    async fn a_late_payment_is_credited_too(gateway) {
        for (amount, exception) in [("25", "LATE"), ("24", "UNDER")] {
            let invoice = open(gateway, 25, "USDC", "BASE").await;
            gateway.pass_time(HOUR_MS - 60_000);
            assert_eq!(record(gateway, &invoice).await["status"], "PENDING");
            gateway.pass_time(120_000);
            let expired = until_status(gateway, &invoice, "EXPIRED").await;
            assert_eq!((&expired["exception"], &expired["amountDueUsd"]), (&Value::Null, &json!(25)));
            let answer = verify(gateway, &invoice, None).await.expect(200);
            assert_eq!((&answer["status"], &answer["creditedUsd"]), (&json!("EXPIRED"), &json!(0)));
            let paid = settle(gateway, &invoice, amount).await;
            assert_eq!(paid["exception"], exception);
        }
        assert_eq!(gateway.balance().await, "1049");
    }

    async fn a_payment_in_time_is_never_late(gateway) {
        let invoice = open(gateway, 25, "USDC", "BASE").await;
        gateway.pass_time(HOUR_MS - 60_000);
        pay(gateway, &invoice, "25").await;
        gateway.pass_time(60_000 + UNTIL_FINAL_MS);
        let paid = until_status(gateway, &invoice, "CONFIRMED").await;
        assert_eq!(paid["exception"], Value::Null);
    }

    async fn an_account_keeps_its_addresses(gateway) {
        let address = |invoice: &Value| invoice["depositAddress"].as_str().unwrap().to_string();
        let first = open(gateway, 25, "USDC", "BASE").await;
        let beside = open(gateway, 25, "USDT", "POLYGON").await;
        assert_ne!(address(&first), address(&beside), "one with an open invoice gets a further one");
        settle(gateway, &first, "25").await;
        let again = open(gateway, 30, "USDC", "ARBITRUM").await;
        assert_eq!(address(&again), address(&first), "its own address again, on every network of its kind");
        let (_, stranger) = gateway.partner("Stranger", Usd::ZERO).await;
        let theirs = open_as(gateway, &stranger, 25, "USDC", "BASE").await.expect(200);
        assert!(![address(&first), address(&beside)].contains(&address(&theirs)));
        // What comes now counts for the newest invoice of the address; the one that was paid keeps its record.
        settle(gateway, &again, "30").await;
        let kept = record(gateway, &first).await;
        assert_eq!((kept["transactions"].as_array().unwrap().len(), &kept["creditedUsd"]), (1, &json!(25)));
        assert_eq!(gateway.balance().await, "1055");
    }

    async fn five_invoices_may_be_open_on_a_network(gateway) {
        let mut open_ones = Vec::new();
        for _ in 0..5 {
            open_ones.push(open(gateway, 25, "USDC", "BASE").await);
        }
        let refused = open_as(gateway, &gateway.key, 25, "USDT", "BASE").await;
        assert_eq!(refused.problem(429), "RATE_LIMITED");
        let wait: i64 = refused.header("retry-after").parse().unwrap();
        assert!((3_500..=3_600).contains(&wait), "{wait}");
        open(gateway, 25, "USDC", "POLYGON").await;
        settle(gateway, &open_ones[0], "25").await;
        open(gateway, 25, "USDC", "BASE").await;
        assert_eq!(open_as(gateway, &gateway.key, 25, "USDC", "BASE").await.problem(429), "RATE_LIMITED");
        gateway.pass_time(HOUR_MS + 1_000);
        until_status(gateway, &open_ones[1], "EXPIRED").await;
        open(gateway, 25, "USDC", "BASE").await;
    }

    async fn the_wrong_network_or_token_arrives_all_the_same(gateway) {
        for (network, currency) in [(Network::Polygon, Currency::Usdt), (Network::Base, Currency::Usdt), (Network::Arbitrum, Currency::Usdc)] {
            let invoice = open(gateway, 25, "USDC", "BASE").await;
            let address = invoice["depositAddress"].as_str().unwrap();
            gateway.app.sim_chains[&network].pay(address, currency, Usd::dollars(25)).await.unwrap();
            gateway.pass_time(UNTIL_FINAL_MS);
            let paid = until_status(gateway, &invoice, "CONFIRMED").await;
            let transaction = &paid["transactions"][0];
            assert_eq!((&transaction["network"], &transaction["currency"]), (&json!(network.as_str()), &json!(currency.as_str())));
            assert_eq!((&paid["network"], &paid["currency"], &paid["exception"]), (&json!("BASE"), &json!("USDC"), &Value::Null));
        }
        assert_eq!(gateway.balance().await, "1075");
    }

    async fn verify_tells_what_is_awaited_and_credits_once(gateway) with [("arbitrum_confirmations", "250")] {
        let invoice = open(gateway, 25, "USDC", "ARBITRUM").await;
        let reply = verify(gateway, &invoice, None).await;
        money(&reply.text);
        assert_eq!(reply.header("cache-control"), "no-store");
        insta::assert_json_snapshot!(mask(&reply.expect(200)), @r#"
        {
          "creditedUsd": 0,
          "currency": "USDC",
          "invoiceId": "inv_…",
          "message": "Waiting for 25 USDC on Arbitrum.",
          "network": "ARBITRUM",
          "newBalanceUsd": 1000,
          "status": "PENDING",
          "success": true
        }
        "#);
        let hash = pay(gateway, &invoice, "25").await;
        // So many blocks take a minute: this look finds the transfer, but not its confirmations.
        let seen = gateway.until("the transfer is seen", async || {
            let answer = verify(gateway, &invoice, Some(&hash)).await.expect(200);
            (answer["status"] != "PENDING").then_some(answer)
        }).await;
        assert_eq!((&seen["status"], &seen["creditedUsd"], &seen["newBalanceUsd"]), (&json!("CONFIRMING"), &json!(0), &json!(1000)));
        assert!(seen["message"].as_str().unwrap().contains("of 250"), "{seen}");
        let confirming = record(gateway, &invoice).await;
        assert_eq!((&confirming["receivedUsd"], &confirming["creditedUsd"]), (&json!(25), &json!(0)));
        assert_eq!(confirming["transactions"][0]["status"], "CONFIRMING");
        gateway.pass_time(10 * UNTIL_FINAL_MS);
        // All at once, with and without the hash, in any spelling.
        let shouted = format!("0x{}", hash[2..].to_uppercase());
        let (a, b, c, d) = tokio::join!(
            verify(gateway, &invoice, None),
            verify(gateway, &invoice, Some(&hash)),
            verify(gateway, &invoice, Some(&shouted)),
            verify(gateway, &invoice, None),
        );
        for answer in [a, b, c, d] {
            let answer = answer.expect(200);
            assert_eq!((&answer["status"], &answer["creditedUsd"], &answer["newBalanceUsd"]), (&json!("CONFIRMED"), &json!(25), &json!(1025)));
            assert_eq!(names(&answer), ["creditedUsd", "currency", "invoiceId", "message", "network", "newBalanceUsd", "status", "success"]);
        }
        for hash in [None, Some(hash.as_str())] {
            let again = verify(gateway, &invoice, hash).await.expect(200);
            assert_eq!((&again["creditedUsd"], &again["newBalanceUsd"]), (&json!(25), &json!(1025)));
        }
        settle_more(gateway, &invoice).await;
        assert_eq!(gateway.balance().await, "1030");
    }

    async fn verify_refuses_what_does_not_pay_the_invoice(gateway) {
        let base = gateway.app.sim_chains[&Network::Base].clone();
        let (_, stranger) = gateway.partner("Stranger", Usd::ZERO).await;
        let invoice = open(gateway, 25, "USDC", "BASE").await;
        let theirs = open_as(gateway, &stranger, 25, "USDC", "BASE").await.expect(200);
        let elsewhere = base.pay(&address::text(AddressKind::Evm, &[7; 20]), Currency::Usdc, Usd::dollars(25)).await.unwrap();
        let payment = Payment {
            recipient: invoice["depositAddress"].as_str().unwrap().into(),
            currency: Currency::Usdc,
            amount: Usd::dollars(25),
        };
        let in_vain = base.pay_in_vain(payment).await.unwrap();
        let for_them = pay(gateway, &theirs, "25").await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_credited_to(gateway, &stranger, &theirs).await;
        for (hash, status, code) in [
            (&elsewhere, 422, "TX_NOT_FOR_INVOICE"),
            (&in_vain, 422, "TX_FAILED"),
            (&for_them, 409, "TRANSFER_ALREADY_USED"),
        ] {
            assert_eq!(verify(gateway, &invoice, Some(hash)).await.problem(status), code);
        }
        let unknown = format!("0x{}", "ab".repeat(32));
        assert_eq!(verify(gateway, &invoice, Some(&unknown)).await.expect(200)["status"], "PENDING");
        let bare = "ab".repeat(32);
        for wrong in ["0x", "x", "0x12", bare.as_str(), &format!("{unknown}0"), &format!("0x{}", "zz".repeat(32)), " "] {
            let refused = verify(gateway, &invoice, Some(wrong)).await;
            assert_eq!(refused.problem(400), "INVALID_REQUEST", "{wrong}");
            assert_eq!(refused.json()["errors"][0]["field"], "txHash");
            let nobody = json!({ "invoiceId": "inv_1" });
            assert_eq!(verify(gateway, &nobody, Some(wrong)).await.problem(404), "INVOICE_NOT_FOUND", "{wrong}");
        }
        let tron = open(gateway, 25, "USDT", "TRON").await;
        for either in [&bare, &unknown] {
            assert_eq!(verify(gateway, &tron, Some(either)).await.expect(200)["status"], "PENDING");
        }
        assert_eq!(gateway.balance().await, "1000");
    }

    async fn a_transaction_of_another_invoice_is_named(gateway) {
        let (paid, other) = (open(gateway, 25, "USDC", "BASE").await, open(gateway, 30, "USDC", "BASE").await);
        let hash = pay(gateway, &paid, "25").await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &paid, "CONFIRMED").await;
        let answer = verify(gateway, &other, Some(&hash)).await.expect(200);
        assert_eq!((&answer["creditedTo"], &answer["invoiceId"]), (&paid["invoiceId"], &other["invoiceId"]));
        assert_eq!((&answer["status"], &answer["creditedUsd"], &answer["newBalanceUsd"]), (&json!("PENDING"), &json!(0), &json!(1025)));
    }

    async fn an_unreachable_chain_says_so(gateway) {
        let invoice = open(gateway, 25, "USDC", "BASE").await;
        let hash = pay(gateway, &invoice, "25").await;
        gateway.app.sim_chains[&Network::Base].behave(ChainMode::Down, 0).await.unwrap();
        for hash in [None, Some(hash.as_str())] {
            gateway.pass_time(2_100);
            let refused = verify(gateway, &invoice, hash).await;
            assert_eq!(refused.problem(503), "CHAIN_UNAVAILABLE");
            assert!(!refused.header("retry-after").is_empty());
        }
        gateway.app.sim_chains[&Network::Base].behave(ChainMode::Ok, 0).await.unwrap();
        gateway.pass_time(UNTIL_FINAL_MS);
        assert_eq!(verify(gateway, &invoice, None).await.expect(200)["status"], "CONFIRMED");
    }

    async fn what_is_not_yours_is_not_found(gateway) {
        let invoice = open(gateway, 25, "USDC", "BASE").await;
        let (_, stranger) = gateway.partner("Stranger", Usd::dollars(10)).await;
        let path = format!("{DEPOSIT}/{}", id(&invoice));
        assert_eq!(gateway.send_as(&stranger, "GET", &path, None).await.problem(404), "INVOICE_NOT_FOUND");
        assert_eq!(verify_as(gateway, &stranger, &invoice, None).await.problem(404), "INVOICE_NOT_FOUND");
        let almost = format!("{}{}", &id(&invoice)[..33], if id(&invoice).ends_with('0') { "1" } else { "0" });
        for wrong in ["inv_", "inv_0", "x", &almost, "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U", "inv_%00", "%FF", "inv_%C3%A9", &"a".repeat(300)] {
            assert_eq!(gateway.get(&format!("{DEPOSIT}/{wrong}")).await.problem(404), "INVOICE_NOT_FOUND", "{wrong}");
            let url = json!({ "checkoutUrl": format!("{}/pay/{wrong}", gateway.base) });
            let missing = page(gateway, &url).await;
            assert_eq!((missing.status, missing.header("content-type")), (404, "text/html; charset=utf-8"), "{wrong}");
        }
        for wrong in ["inv_0", "nothing", "é", "0x12"] {
            let nobody = json!({ "invoiceId": wrong });
            assert_eq!(verify(gateway, &nobody, None).await.problem(404), "INVOICE_NOT_FOUND", "{wrong}");
        }
    }

    async fn a_suspended_account_reads_but_opens_nothing(gateway) {
        let invoice = open(gateway, 25, "USDC", "BASE").await;
        operator::set_suspended(&gateway.app, "test", &gateway.partner, true).await.unwrap();
        assert_eq!(open_as(gateway, &gateway.key, 25, "USDC", "BASE").await.problem(403), "ACCOUNT_SUSPENDED");
        assert_eq!(record(gateway, &invoice).await["status"], "PENDING");
        settle(gateway, &invoice, "25").await;
        assert_eq!(verify(gateway, &invoice, None).await.expect(200)["newBalanceUsd"], 1025);
        operator::set_suspended(&gateway.app, "test", &gateway.partner, false).await.unwrap();
        open(gateway, 25, "USDC", "BASE").await;
    }

    async fn a_read_only_key_opens_nothing(gateway) {
        let account = operator::account(&gateway.app, &gateway.partner).await.unwrap().no;
        let terms = KeyTerms { read_only: true, ..KeyTerms::default() };
        let made = operator::create_key(&gateway.app, "test", account, terms).await.unwrap();
        let reader = Key { id: made.id.to_string(), secret: made.secret };
        reader.until_known(&gateway.app).await;
        assert_eq!(open_as(gateway, &reader, 25, "USDC", "BASE").await.problem(403), "LIMIT_EXCEEDED");
        let invoice = open(gateway, 25, "USDC", "BASE").await;
        gateway.send_as(&reader, "GET", &format!("{DEPOSIT}/{}", id(&invoice)), None).await.expect(200);
    }

    async fn wrong_fields_are_all_named(gateway) {
        for (body, fields) in [
            (json!({}), &["amountUsd", "currency"][..]),
            (json!({ "amountUsd": null, "currency": null, "network": "x" }), &["amountUsd", "currency", "network"]),
            (json!({ "amountUsd": "25", "currency": "USDC" }), &["amountUsd"]),
            (json!({ "amountUsd": 9.999999, "currency": "USDC" }), &["amountUsd"]),
            (json!({ "amountUsd": 1_000_000.000001, "currency": "USDC" }), &["amountUsd"]),
            (json!({ "amountUsd": 10.0000001, "currency": "USDC" }), &["amountUsd"]),
            (json!({ "amountUsd": 0, "currency": "USDC" }), &["amountUsd"]),
            (json!({ "amountUsd": -25, "currency": "USDC" }), &["amountUsd"]),
            (json!({ "amountUsd": 1e12, "currency": "USDC" }), &["amountUsd"]),
            (json!({ "amountUsd": [25], "currency": "USDC" }), &["amountUsd"]),
            (json!({ "amountUsd": true, "currency": 5 }), &["amountUsd", "currency"]),
            (json!({ "amountUsd": 25, "currency": "USD" }), &["currency"]),
            (json!({ "amountUsd": 25, "currency": "USDC", "network": "ETHEREUM" }), &["network"]),
            (json!({ "amountUsd": 25, "currency": "USDC", "network": "" }), &["network"]),
            (json!({ "amountUsd": 25, "currency": "USDC", "network": {} }), &["network"]),
        ] {
            let refused = gateway.post(DEPOSIT, body.clone()).await;
            assert_eq!(refused.problem(400), "INVALID_REQUEST", "{body}");
            let named: Vec<Value> = refused.json()["errors"].as_array().unwrap().iter().map(|e| e["field"].clone()).collect();
            assert_eq!(json!(named), json!(fields), "{body}");
        }
        let low = gateway.post(DEPOSIT, json!({ "amountUsd": 5, "currency": "USDC" })).await;
        assert_eq!(low.json()["errors"], json!([{ "field": "amountUsd", "message": "must be at least 10" }]));
        for body in [json!({}), json!({ "invoiceId": 5 }), json!({ "invoiceId": "" }), json!({ "invoiceId": "inv_1", "txHash": 5 }), json!([])] {
            assert_eq!(gateway.post(VERIFY, body.clone()).await.problem(400), "INVALID_REQUEST", "{body}");
        }
        for amount in ["10", "1e1", "10.000000", "1000000", "10.000001"] {
            let request = gateway.request("POST", DEPOSIT).header("content-type", "application/json");
            reply(request.body(format!("{{\"amountUsd\": {amount}, \"currency\": \"USDC\", \"network\": null}}"))).await.expect(200);
        }
    }

    async fn an_unsupported_pair_is_refused_with_those_that_work(gateway) with [("tron_usdc", "off"), ("base_usdt", "off"), ("polygon_min_deposit_usd", "50")] {
        let refused = open_as(gateway, &gateway.key, 25, "USDC", "TRON").await;
        assert_eq!(refused.problem(422), "UNSUPPORTED_PAIR");
        let pairs = refused.json()["pairs"].clone();
        assert_eq!(pairs.as_array().unwrap().len(), 6);
        for pair in pairs.as_array().unwrap() {
            let (currency, network) = (pair["currency"].as_str().unwrap(), pair["network"].as_str().unwrap());
            open(gateway, 50, currency, network).await;
        }
        assert_eq!(open_as(gateway, &gateway.key, 25, "USDT", "BASE").await.problem(422), "UNSUPPORTED_PAIR");
        let low = open_as(gateway, &gateway.key, 49, "USDC", "POLYGON").await;
        assert_eq!(low.problem(400), "INVALID_REQUEST");
        assert_eq!(low.json()["errors"], json!([{ "field": "amountUsd", "message": "must be at least 50" }]));
    }

    async fn the_pay_page_says_how_it_stands(gateway) with [("arbitrum_confirmations", "250")] {
        let invoice = open(gateway, 25, "USDC", "ARBITRUM").await;
        let address = invoice["depositAddress"].as_str().unwrap();
        let pending = page(gateway, &invoice).await;
        assert_eq!((pending.status, pending.header("content-type")), (200, "text/html; charset=utf-8"));
        for (name, value) in [("cache-control", "no-store"), ("referrer-policy", "no-referrer")] {
            assert_eq!(pending.header(name), value);
        }
        assert!(pending.header("content-security-policy").contains("default-src 'none'"));
        assert!(pending.header("x-robots-tag").contains("noindex"));
        let shown = text_of(&pending.text);
        for part in ["25 USDC", "Arbitrum", address, "Waiting for your payment", "59:", "UTC", "send nothing real", "Only this arrives here"] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        let uri = format!("ethereum:0xaf88d065e77c8cC2239327C5EDb3A432268e5831@42161/transfer?address={address}");
        assert!(shown.contains(&uri), "{shown}");
        assert!(!pending.text.contains("href=\"ethereum:"), "nobody must follow it from a sandbox");
        assert!(!pending.text.contains("<script>") && !pending.text.contains("style="), "the policy would refuse it");
        assert!(pending.text.contains("http-equiv=\"refresh\""), "without scripts it loads itself anew");
        let codes = qr_codes::svgs(&pending.text);
        assert!(codes.len() == 2 && codes[0].starts_with(&uri) && codes[1] == address, "{codes:?}");

        let hash = pay(gateway, &invoice, "24").await;
        let confirming = gateway.until("the page shows the payment", async || {
            let page = page(gateway, &invoice).await;
            page.text.contains("of 250 confirmations").then_some(page)
        }).await;
        let shown = text_of(&confirming.text);
        for part in [hash.as_str(), "24.00 USDC", "Still due: 1 USDC", "confirming"] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        assert!(confirming.text.contains("http-equiv=\"refresh\""));
        gateway.pass_time(10 * UNTIL_FINAL_MS);
        until_status(gateway, &invoice, "CONFIRMED").await;
        let under = page(gateway, &invoice).await;
        let shown = text_of(&under.text);
        for part in ["Paid in part", "24.00 USD arrived, and 24.00 USD was credited", "1.00 USDC is still open", address] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        assert!(!under.text.contains("http-equiv=\"refresh\""));
        pay(gateway, &invoice, "1").await;
        gateway.pass_time(10 * UNTIL_FINAL_MS);
        until(gateway, &invoice, "the rest is there", |record| record["creditedUsd"] == 25).await;
        let done = page(gateway, &invoice).await;
        assert!(qr_codes::svgs(&done.text).is_empty() && !done.text.contains("still open"), "nothing is left to pay: {}", done.text);

        let tron = open(gateway, 25, "USDT", "TRON").await;
        let shown = page(gateway, &tron).await.text;
        assert!(text_of(&shown).contains(tron["depositAddress"].as_str().unwrap()));
        assert!(!shown.contains("ethereum:"));
        gateway.pass_time(HOUR_MS + 1_000);
        until_status(gateway, &tron, "EXPIRED").await;
        let late = page(gateway, &tron).await.text;
        assert!(text_of(&late).contains("has expired") && !late.contains("How to pay"));
    }
}

/// A further transfer to a confirmed invoice raises its sum.
async fn settle_more(gateway: &Gateway, invoice: &Value) {
    pay(gateway, invoice, "5").await;
    gateway.pass_time(10 * UNTIL_FINAL_MS);
    let answer = verify(gateway, invoice, None).await.expect(200);
    assert_eq!((&answer["creditedUsd"], &answer["newBalanceUsd"]), (&json!(30), &json!(1030)));
    assert_eq!(record(gateway, invoice).await["exception"], "OVER");
}

async fn until_credited_to(gateway: &Gateway, key: &Key, invoice: &Value) {
    gateway
        .until("it is credited", async || {
            let reply =
                gateway.send_as(key, "GET", &format!("{DEPOSIT}/{}", id(invoice)), None).await.expect(200);
            (reply["status"] == "CONFIRMED").then_some(())
        })
        .await;
}
