//! What is forgotten when it is old, and what is not: the books are proved with what is left.

use serde_json::{Value, json};
use simgate::domain::ids::InvoiceId;
use simgate::domain::money::Usd;
use simgate::domain::network::Network;
use simgate::domain::time::Time;
use simgate::store::Location;
use simgate::store::retention::{Aged, forget_checkouts};

use crate::support::buying::*;
use crate::support::coupons::{DEAR, limited, tally};
use crate::support::database;
use crate::support::harness::{Db, Gateway, both_databases, reply, run};
use crate::support::logins::sign_in;

const DAY_MS: i64 = 86_400_000;
const DEPOSIT: &str = "/api/b2b/v1/balance/deposit";
const ORDERS: &str = "/api/b2b/v1/orders";

async fn status_of(gateway: &Gateway, checkout: &Value) -> u16 {
    let url = format!("{}/api/agentic/order/{}", gateway.base, id(checkout));
    reply(gateway.client.get(url)).await.status
}

/// What is old is gone through once a day.
async fn until_forgotten(gateway: &Gateway, checkout: &Value) {
    gateway
        .until("it is forgotten", async || {
            gateway.pass_time(DAY_MS);
            (status_of(gateway, checkout).await == 404).then_some(())
        })
        .await;
}

/// Opens a deposit and lets its time pass.
async fn miss_deposit(gateway: &Gateway) -> String {
    let wish = json!({ "amountUsd": 20, "currency": "USDT", "network": "POLYGON" });
    let invoice = gateway.post(DEPOSIT, wish).await.expect(200)["invoiceId"].as_str().unwrap().to_string();
    let path = format!("{DEPOSIT}/{invoice}");
    gateway.pass_time(61 * MINUTE_MS);
    gateway
        .until("it is expired", async || {
            (gateway.get(&path).await.expect(200)["status"] == "EXPIRED").then_some(())
        })
        .await;
    path
}

fn count(gateway: &Gateway, table: &str) -> i64 {
    let sql = format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table}");
    database::rows(&gateway.app.settings.database, &sql)[0][0].parse().unwrap()
}

both_databases! {
    async fn what_nobody_paid_is_forgotten_and_what_was_paid_is_not(gateway) {
        limited(gateway, "TEN", 5).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let paid = open(gateway, &token).await;
        settle(gateway, &paid, "COMPLETED").await;
        let unpaid = ask(gateway, &token, &json!({ "packageCode": DEAR, "discountCode": "TEN" })).await.expect(402);
        let named = ask_with_key(gateway, &token, "my-own", &json!({ "packageCode": DEAR })).await.expect(402);
        for checkout in [&unpaid, &named] {
            expire(gateway, checkout).await;
        }
        // The newest invoice of an address stays: a late payment counts for it.
        let (older, newest) = (miss_deposit(gateway).await, miss_deposit(gateway).await);
        assert_eq!(count(gateway, "coupon_uses"), 1);

        gateway.pass_time(80 * DAY_MS);
        until_status(gateway, &unpaid, "EXPIRED").await;
        gateway.get(&older).await.expect(200);

        gateway.pass_time(12 * DAY_MS);
        until_forgotten(gateway, &unpaid).await;
        gateway.until("the deposit is forgotten", async || (gateway.get(&older).await.status == 404).then_some(())).await;
        assert_eq!(gateway.get(&newest).await.expect(200)["status"], "EXPIRED");
        assert_eq!(record(gateway, &paid).await["status"], "COMPLETED");
        assert_eq!(ask_with_key(gateway, &token, "my-own", &json!({ "packageCode": DEAR })).await.expect(200)["invoiceId"], named["invoiceId"]);
        assert_eq!((count(gateway, "coupon_uses"), tally(gateway, "TEN").await), (0, (0, 0)));
        // Its number is not given to another one, and its amount is free again.
        let next = open(gateway, &token).await;
        assert_ne!(next["orderRef"], unpaid["orderRef"]);
        settle(gateway, &next, "COMPLETED").await;
    }

    /// The operator may still find out whose it is.
    async fn a_checkout_stays_while_a_payment_may_have_been_meant_for_it(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let meant = open(gateway, &token).await;
        let other = ask(gateway, &token, &json!({ "packageCode": DEAR, "preferredNetwork": "TRON" })).await.expect(402);
        send(gateway, Network::Polygon, address(&meant), amount(&meant).minus(Usd::from_micros(300_000))).await;
        let waiting = unmatched(gateway, 1).await;
        for checkout in [&meant, &other] {
            expire(gateway, checkout).await;
        }
        gateway.pass_time(100 * DAY_MS);
        until_forgotten(gateway, &other).await;
        assert_eq!(status_of(gateway, &meant).await, 200);
        assert_eq!(unmatched(gateway, 1).await.len(), waiting.len());
    }

    async fn an_activation_code_is_kept_while_it_is_of_use(gateway) {
        let (used, fresh, given_back) = (gateway.order("JP-1GB-7D").await, gateway.order("JP-1GB-7D").await, gateway.order("JP-1GB-7D").await);
        let order = async |order: &Value| gateway.get(&format!("{ORDERS}/{}", order["id"].as_str().unwrap())).await.expect(200)["order"].clone();
        let page = async |order: &Value| reply(gateway.client.get(order["installUrl"].as_str().unwrap())).await;
        gateway.sandbox("usage", json!({ "iccid": used["iccid"], "usedGb": 0.2 })).await;
        gateway.get(&format!("{ORDERS}/{}/usage", used["iccid"].as_str().unwrap())).await.expect(200);
        gateway.post(&format!("{ORDERS}/{}/cancel", given_back["id"].as_str().unwrap()), json!({})).await.expect(200);
        let codes = "esims WHERE length(activation) > 0";
        gateway.pass_time(25 * DAY_MS);
        assert_eq!(count(gateway, codes), 3);

        gateway.pass_time(6 * DAY_MS);
        gateway.until("two codes are forgotten", async || (count(gateway, codes) == 1).then_some(())).await;
        let after = order(&used).await;
        assert_eq!((&after["status"], &after["lpaString"], &after["matchingId"]), (&json!("FULFILLED"), &Value::Null, &Value::Null));
        let gone = page(&used).await;
        assert!(gone.status == 200 && gone.text.contains("goes on working") && !gone.text.contains("LPA:1$"), "{}", gone.text);
        assert!(gone.text.contains("GB left"), "it is still the page to come back to: {}", gone.text);
        assert_eq!(order(&fresh).await["lpaString"], fresh["lpaString"]);
        assert_eq!(page(&fresh).await.status, 200);

        // The time to install it ends after 180 days.
        gateway.pass_time(180 * DAY_MS);
        gateway.until("no code is left", async || (count(gateway, codes) == 0).then_some(())).await;
    }
}

/// Whoever finds a payment at the same moment is first, and what it pays for stays.
#[test]
#[ignore = "needs PostgreSQL"]
fn what_is_paid_while_it_is_forgotten_stays() {
    run(Db::Postgres, vec![], async |gateway| {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let checkout = open(gateway, &token).await;
        expire(gateway, &checkout).await;
        gateway.pass_time(2 * DAY_MS);
        let released = format!("SELECT id FROM checkouts WHERE released <> 0 AND id = '{}'", id(&checkout));
        let location = gateway.app.settings.database.clone();
        gateway.until("it has rested", async || database::rows(&location, &released).first().cloned()).await;

        let Location::Postgres(url) = &location else { unreachable!("it is a test of PostgreSQL") };
        let (finder, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let seen = format!(
            "BEGIN; UPDATE checkouts SET updated_at = updated_at WHERE id = '{0}';
             INSERT INTO transfers (network, tx_hash, position, currency, sender, address, amount, state, account, invoice,
                 round, seen_at, updated_at)
             SELECT network, 'aa', 0, 'USDT', address, address, amount, 'ORPHANED', account, id, 0, 0, 0
             FROM checkouts WHERE id = '{0}'",
            id(&checkout)
        );
        finder.batch_execute(&seen).await.unwrap();
        let (store, before) = (gateway.app.store.clone(), gateway.app.now());
        let old = [Aged { at: Time::from_micros(0), id: InvoiceId::from_text(id(&checkout)) }];
        let forgetting =
            tokio::spawn(async move { store.write(0, move |tx| forget_checkouts(tx, &old, before)).await });
        let waits =
            "SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%checkouts%'";
        gateway
            .until("it waits for the payment", async || database::rows(&location, waits).first().cloned())
            .await;
        finder.batch_execute("COMMIT").await.unwrap();
        assert_eq!(forgetting.await.unwrap().unwrap(), 0);
        assert_eq!(status_of(gateway, &checkout).await, 200);
        drop(finder);
        connection.await.unwrap().unwrap();
    });
}
