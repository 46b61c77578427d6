//! Money that comes when nobody waits for it any more: after a week an address is looked at once a day only, and
//! what came to it is credited all the same.

use serde_json::json;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::store::cursors;
use simgate::store::tx::Tx;

use crate::support::harness::{Gateway, both_databases};

const DAY_MS: i64 = 24 * 3_600_000;

async fn deposit(gateway: &Gateway, network: &str) -> (String, String) {
    let wish = json!({ "amountUsd": 25, "currency": "USDC", "network": network });
    let made = gateway.post("/api/b2b/v1/balance/deposit", wish).await.expect(200);
    let text = |field: &str| made[field].as_str().unwrap().to_string();
    (text("invoiceId"), text("depositAddress"))
}

async fn credited(gateway: &Gateway, invoice: &str, amount: i64) {
    gateway
        .until("the money is credited", async || {
            gateway.pass_time(60_000);
            let path = format!("/api/b2b/v1/balance/deposit/{invoice}");
            let record = gateway.get(&path).await.expect(200);
            (record["creditedUsd"] == amount).then_some(())
        })
        .await;
}

both_databases! {
    async fn an_address_that_rests_is_looked_at_once_a_day(gateway) {
        let (invoice, address) = deposit(gateway, "BASE").await;
        gateway.pass_time(8 * DAY_MS);
        gateway.until("the invoice is expired", async || {
            let path = format!("/api/b2b/v1/balance/deposit/{invoice}");
            (gateway.get(&path).await.expect(200)["status"] == "EXPIRED").then_some(())
        }).await;
        // Another token on another network of the same address, twice, with a look in between.
        let chain = &gateway.app.sim_chains[&Network::Polygon];
        chain.pay(&address, Currency::Usdt, Usd::dollars(7)).await.unwrap();
        gateway.pass_time(DAY_MS + 60_000);
        credited(gateway, &invoice, 7).await;
        chain.pay(&address, Currency::Usdt, Usd::dollars(5)).await.unwrap();
        gateway.pass_time(DAY_MS + 60_000);
        credited(gateway, &invoice, 12).await;
        assert_eq!(gateway.balance().await, "1012");
    }

    async fn money_to_a_resting_address_is_found_though_an_invoice_wakes_it_first(gateway) {
        let (first, address) = deposit(gateway, "POLYGON").await;
        gateway.pass_time(8 * DAY_MS);
        gateway.until("the invoice is expired", async || {
            let path = format!("/api/b2b/v1/balance/deposit/{first}");
            (gateway.get(&path).await.expect(200)["status"] == "EXPIRED").then_some(())
        }).await;
        let chain = &gateway.app.sim_chains[&Network::Polygon];
        chain.pay(&address, Currency::Usdc, Usd::dollars(9)).await.unwrap();
        // Longer than the blocks that every round looks at again, and shorter than the day between two looks.
        gateway.pass_time(DAY_MS / 2);
        let paid = gateway.app.now();
        gateway.until("the scanner has passed the payment", async || {
            let read = |tx: &mut Tx| cursors::get(tx, Network::Polygon);
            let cursor = gateway.app.store.read(read).await.unwrap()?;
            (cursor.scanned_time > paid).then_some(())
        }).await;
        let (_, again) = deposit(gateway, "POLYGON").await;
        assert_eq!(again, address);
        gateway.pass_time(DAY_MS);
        credited(gateway, &first, 9).await;
        assert_eq!(gateway.balance().await, "1009");
    }

    async fn what_was_paid_during_a_long_absence_is_found(gateway) {
        let (invoice, address) = deposit(gateway, "ARBITRUM").await;
        let chain = &gateway.app.sim_chains[&Network::Arbitrum];
        chain.pay(&address, Currency::Usdc, Usd::dollars(25)).await.unwrap();
        gateway.pass_time(30 * DAY_MS);
        credited(gateway, &invoice, 25).await;
        let record = gateway.get(&format!("/api/b2b/v1/balance/deposit/{invoice}")).await.expect(200);
        assert_eq!(record["exception"], json!(null), "it was paid in time, by its block");
    }
}
