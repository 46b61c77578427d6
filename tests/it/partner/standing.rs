//! The standing address: an account's own, without an invoice. What comes to it is credited like everything else, and
//! counts for no invoice.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::time::Time;
use simgate::ops::{low_balance, operator};
use simgate::store::addresses;

use crate::support::command_line::ok;
use crate::support::database::execute;
use crate::support::deposits::{record, until_status};
use crate::support::events::read_on;
use crate::support::harness::{Gateway, Key, both_databases};
use crate::support::qr_codes;
use crate::support::shapes::{API, DEPOSIT, names};

const DAY_MS: i64 = 24 * 3_600_000;
/// More blocks than any network asks for come in this time.
const UNTIL_FINAL_MS: i64 = 6_000;

async fn ask_as(gateway: &Gateway, key: &Key, network: &str, currency: &str) -> Value {
    let path = format!("{API}/balance/address?network={network}&currency={currency}");
    gateway.send_as(key, "GET", &path, None).await.expect(200)
}

async fn ask(gateway: &Gateway, network: &str) -> String {
    let answer = ask_as(gateway, &gateway.key, network, "usdc").await;
    answer["depositAddress"].as_str().unwrap().to_string()
}

async fn open(gateway: &Gateway, network: &str) -> Value {
    gateway
        .post(DEPOSIT, json!({ "amountUsd": 25, "currency": "USDC", "network": network }))
        .await
        .expect(200)
}

async fn pay(gateway: &Gateway, network: Network, currency: Currency, address: &str, dollars: i64) {
    gateway.app.sim_chains[&network].pay(address, currency, Usd::dollars(dollars)).await.unwrap();
}

async fn until_balance(gateway: &Gateway, balance: &str) {
    gateway.pass_time(UNTIL_FINAL_MS);
    gateway.until(balance, async || (gateway.balance().await == balance).then_some(())).await;
}

async fn watched_until(gateway: &Gateway, address: &str) -> Time {
    let address = address.to_string();
    let found = gateway.app.store.read(move |tx| addresses::find(tx, &address)).await.unwrap();
    found.unwrap().watch_until
}

both_databases! {
    async fn it_has_the_fields_of_the_contract(gateway) {
        let reply = gateway.get(&format!("{API}/balance/address")).await;
        assert_eq!(reply.header("cache-control"), "no-store");
        let answer = reply.expect(200);
        assert_eq!(
            names(&answer),
            ["currency", "depositAddress", "network", "paymentUri", "qrDataUrl", "requiredConfirmations", "sandbox", "sandboxNotice", "success"]
        );
        assert_eq!((&answer["network"], &answer["currency"]), (&json!("BASE"), &json!("USDC")), "the usual ones");
        let (address, uri) = (answer["depositAddress"].as_str().unwrap(), answer["paymentUri"].as_str().unwrap());
        assert!(uri.starts_with("ethereum:0x") && uri.ends_with(&format!("@8453/transfer?address={address}")), "{uri}");
        let image = answer["qrDataUrl"].as_str().unwrap().strip_prefix("data:image/png;base64,").unwrap();
        assert_eq!(qr_codes::png(&STANDARD.decode(image).unwrap()), uri);
        let tron = ask_as(gateway, &gateway.key, "tron", "USDT").await;
        let (address, uri) = (tron["depositAddress"].as_str().unwrap(), tron["paymentUri"].as_str().unwrap());
        assert!(uri.starts_with(&format!("tron:{address}?token=T")) && !uri.contains("amount"), "{uri}");
        assert_eq!(tron["requiredConfirmations"], 19);
    }

    async fn an_account_has_one_for_each_kind_of_network(gateway) {
        // Asked for by many at once, it is made once.
        let asked = tokio::join!(ask(gateway, "BASE"), ask(gateway, "POLYGON"), ask(gateway, "ARBITRUM"), ask(gateway, "BASE"));
        let (evm, tron) = (ask(gateway, "BASE").await, ask(gateway, "TRON").await);
        assert_eq!(asked, (evm.clone(), evm.clone(), evm.clone(), evm.clone()));
        let (_, stranger) = gateway.partner("Stranger", Usd::ZERO).await;
        assert_ne!(ask_as(gateway, &stranger, "BASE", "USDC").await["depositAddress"], evm.as_str());
        gateway.pass_time(20 * DAY_MS);
        assert_eq!((ask(gateway, "POLYGON").await, ask(gateway, "TRON").await), (evm.clone(), tron.clone()));
        for _ in 0..5 {
            let taken = [open(gateway, "BASE").await, open(gateway, "TRON").await].map(|invoice| invoice["depositAddress"].clone());
            assert!(!taken.contains(&json!(evm)) && !taken.contains(&json!(tron)), "no invoice uses it");
        }
        assert_eq!((ask(gateway, "BASE").await, ask(gateway, "TRON").await), (evm, tron));
    }

    async fn what_comes_is_credited_without_an_invoice(gateway) {
        let (evm, tron) = (ask(gateway, "BASE").await, ask(gateway, "TRON").await);
        pay(gateway, Network::Base, Currency::Usdc, &evm, 40).await;
        until_balance(gateway, "1040").await;
        pay(gateway, Network::Tron, Currency::Usdt, &tron, 5).await;
        until_balance(gateway, "1045").await;
        // Again, the other token, by another network of the same kind.
        pay(gateway, Network::Base, Currency::Usdc, &evm, 40).await;
        pay(gateway, Network::Polygon, Currency::Usdt, &evm, 3).await;
        pay(gateway, Network::Tron, Currency::Usdc, &tron, 2).await;
        until_balance(gateway, "1090").await;
        gateway.pass_time(20 * DAY_MS);
        // The scanner looks for it still: it need not wait for the daily look.
        assert!(watched_until(gateway, &evm).await > gateway.app.now().plus_days(300));
        pay(gateway, Network::Arbitrum, Currency::Usdc, &evm, 7).await;
        pay(gateway, Network::Tron, Currency::Usdt, &tron, 3).await;
        until_balance(gateway, "1100").await;
        let lines = gateway.get(&format!("{API}/balance/transactions")).await.expect(200)["transactions"].clone();
        let deposits = lines.as_array().unwrap().iter().filter(|line| line["type"] == "DEPOSIT");
        assert!(deposits.clone().all(|line| line["invoiceId"] == Value::Null), "{lines}");
        assert_eq!(deposits.count(), 7);
    }

    async fn an_invoice_beside_it_counts_only_its_own(gateway) {
        for (network, chain) in [("BASE", Network::Base), ("TRON", Network::Tron)] {
            let before = open(gateway, network).await;
            let standing = ask(gateway, network).await;
            let after = open(gateway, network).await;
            let balance = Usd::parse(&gateway.balance().await).unwrap();
            // As much as the invoices ask for.
            pay(gateway, chain, Currency::Usdc, &standing, 25).await;
            until_balance(gateway, &balance.plus(Usd::dollars(25)).to_string()).await;
            for invoice in [&before, &after] {
                let record = record(gateway, invoice).await;
                assert_eq!((&record["status"], &record["transactions"]), (&json!("PENDING"), &json!([])));
            }
            pay(gateway, chain, Currency::Usdc, after["depositAddress"].as_str().unwrap(), 25).await;
            until_balance(gateway, &balance.plus(Usd::dollars(50)).to_string()).await;
            let paid = until_status(gateway, &after, "CONFIRMED").await;
            assert_eq!((&paid["exception"], &paid["creditedUsd"]), (&Value::Null, &json!(25)));
            // What comes later finds no older invoice to be too much for.
            pay(gateway, chain, Currency::Usdc, &standing, 10).await;
            until_balance(gateway, &balance.plus(Usd::dollars(60)).to_string()).await;
            assert_eq!(record(gateway, &after).await["transactions"].as_array().unwrap().len(), 1);
        }
    }

    async fn it_is_watched_on_while_it_is_paid_to_or_asked_for(gateway) {
        let address = ask(gateway, "BASE").await;
        let fade = || {
            let soon = gateway.app.now().plus_days(5).micros();
            execute(&gateway.app.settings.database, &format!("UPDATE addresses SET watch_until = {soon}")).unwrap();
        };
        fade();
        pay(gateway, Network::Base, Currency::Usdc, &address, 4).await;
        until_balance(gateway, "1004").await;
        assert!(watched_until(gateway, &address).await > gateway.app.now().plus_days(360), "it was paid to");
        fade();
        assert_eq!(ask(gateway, "POLYGON").await, address);
        let renewed = watched_until(gateway, &address).await;
        assert!(renewed > gateway.app.now().plus_days(360), "it was asked for");
        gateway.pass_time(DAY_MS);
        ask(gateway, "BASE").await;
        assert_eq!(watched_until(gateway, &address).await, renewed, "asking again writes nothing");
    }

    async fn a_mail_about_a_low_balance_names_it(gateway) {
        ok(gateway, &format!("partner set {} --low-balance 999.5", gateway.partner));
        ok(gateway, &format!("wallet debit {} 1 --reason less", gateway.partner));
        low_balance::round(&gateway.app).await.unwrap();
        let told = async |count: usize| {
            gateway.until("the crossing is told", async || {
                let (events, _) = read_on(gateway, "types=wallet.low_balance&limit=100").await;
                let last = events.get(count - 1)?;
                Some(last["data"]["refill"]["depositAddress"].clone())
            }).await
        };
        let named = told(1).await;
        // The address that was mailed already, since no invoice has used it.
        assert_eq!(named, ask(gateway, "BASE").await.as_str());
        assert_ne!(open(gateway, "BASE").await["depositAddress"], named);
        ok(gateway, &format!("wallet credit {} 100 --reason more", gateway.partner));
        ok(gateway, &format!("wallet debit {} 100 --reason less", gateway.partner));
        low_balance::round(&gateway.app).await.unwrap();
        assert_eq!(told(2).await, named);
    }

    async fn a_suspended_account_gets_none_but_is_credited(gateway) {
        let address = ask(gateway, "BASE").await;
        operator::set_suspended(&gateway.app, "test", &gateway.partner, true).await.unwrap();
        for network in ["BASE", "TRON"] {
            let refused = gateway.get(&format!("{API}/balance/address?network={network}")).await;
            assert_eq!(refused.problem(403), "ACCOUNT_SUSPENDED");
        }
        gateway.sandbox("pay", json!({ "address": address, "amountUsd": 12.5 })).await;
        until_balance(gateway, "1012.5").await;
        operator::set_suspended(&gateway.app, "test", &gateway.partner, false).await.unwrap();
        assert_eq!(ask(gateway, "BASE").await, address);
    }

    async fn a_pair_that_is_not_taken_is_refused(gateway) with [("base_usdt", "off"), ("tron_usdc", "off"), ("tron_usdt", "off")] {
        for query in ["currency=USDT", "network=TRON", "network=TRON&currency=USDT"] {
            let refused = gateway.get(&format!("{API}/balance/address?{query}")).await;
            assert_eq!(refused.problem(422), "UNSUPPORTED_PAIR", "{query}");
            assert_eq!(refused.json()["pairs"].as_array().unwrap().len(), 5);
        }
        gateway.get(&format!("{API}/balance/address?network=Base&currency=usdc")).await.expect(200);
    }
}
