//! A partner is told when its balance falls below its threshold: by one event for each crossing, and by a mail. Both name
//! an address, and what is paid to it is credited without an invoice.

use serde_json::{Value, json};
use simgate::chain::sim::ChainMode;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::ops::low_balance;

use crate::support::command_line::ok;
use crate::support::database::execute;
use crate::support::events::{self, brief, read_on};
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::mails;
use crate::support::shapes::{API, DEPOSIT, ORDERS, names};

const EMAIL: &str = "ops@acme.example";
const DAY_MS: i64 = 24 * 3_600_000;
/// How long a partner is not mailed again.
const BETWEEN_MAILS_MS: i64 = DAY_MS / 4;

async fn buy(gateway: &Gateway) {
    gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(200);
}

/// Looks as the job does, at several places at once.
async fn look(gateway: &Gateway) {
    let round = || low_balance::round(&gateway.app);
    let rounds = tokio::join!(round(), round(), round(), round());
    for round in [rounds.0, rounds.1, rounds.2, rounds.3] {
        round.unwrap();
    }
}

async fn told(gateway: &Gateway) -> usize {
    look(gateway).await;
    mails(gateway, EMAIL).await.len()
}

/// The events about the balance, from the first on, when there are so many. A long transaction of another test's on the
/// same server may hold back the newest.
async fn crossings(gateway: &Gateway, count: usize) -> Vec<Value> {
    gateway
        .until("the crossings are told", async || {
            let (events, _) = read_on(gateway, "types=wallet.low_balance&limit=100").await;
            (events.len() >= count).then_some(events)
        })
        .await
}

/// Lets the balance fall below a threshold, by a purchase.
async fn cross(gateway: &Gateway) -> Value {
    ok(gateway, &format!("partner set {} --low-balance 999.5", gateway.partner));
    buy(gateway).await;
    look(gateway).await;
    let told = crossings(gateway, 1).await;
    assert_eq!(told.len(), 1, "{told:?}");
    told[0]["data"].clone()
}

/// Below the threshold again, after a credit.
async fn cross_again(gateway: &Gateway, count: usize) -> Value {
    ok(gateway, &format!("wallet credit {} 100 --reason more", gateway.partner));
    ok(gateway, &format!("wallet debit {} 100 --reason less", gateway.partner));
    look(gateway).await;
    crossings(gateway, count).await.last().unwrap()["data"].clone()
}

fn address(told: &Value) -> &str {
    told["refill"]["depositAddress"].as_str().unwrap()
}

async fn pay(gateway: &Gateway, told: &Value, dollars: i64) {
    let chain = &gateway.app.sim_chains[&Network::Base];
    chain.pay(address(told), Currency::Usdc, Usd::dollars(dollars)).await.unwrap();
}

async fn until_balance(gateway: &Gateway, balance: &str) {
    gateway
        .until(balance, async || {
            gateway.pass_time(6_000);
            (gateway.balance().await == balance).then_some(())
        })
        .await;
}

both_databases! {
    async fn a_crossing_is_told_with_an_address_that_works(gateway) {
        let told = cross(gateway).await;
        assert_eq!(names(&told), ["balanceUsd", "currency", "lowBalanceThreshold", "refill"]);
        assert_eq!(told["balanceUsd"].to_string(), gateway.balance().await);
        assert_eq!((&told["lowBalanceThreshold"], &told["currency"]), (&json!(999.5), &json!("USD")));
        let refill = &told["refill"];
        assert_eq!(names(refill), ["currency", "depositAddress", "network", "paymentUri"]);
        assert_eq!((&refill["network"], &refill["currency"]), (&json!("BASE"), &json!("USDC")));
        // Less is missing than the smallest deposit.
        let asked = format!("@8453/transfer?address={}&uint256=10000000", address(&told));
        assert!(refill["paymentUri"].as_str().unwrap().ends_with(&asked), "{refill}");
        pay(gateway, &told, 40).await;
        until_balance(gateway, "1039.18").await;
        let statement = gateway.get(&format!("{API}/balance/transactions")).await.expect(200);
        let line = &statement["transactions"][0];
        assert_eq!((&line["type"], &line["amountUsd"], &line["invoiceId"]), (&json!("DEPOSIT"), &json!(40), &Value::Null));
        let log = events::all(gateway).await;
        assert_eq!(brief(&log), [("order.fulfilled", 1), ("wallet.low_balance", 1)], "no invoice, no deposit");
        // The other token, by another network of the same kind.
        let chain = &gateway.app.sim_chains[&Network::Polygon];
        chain.pay(address(&told), Currency::Usdt, Usd::dollars(3)).await.unwrap();
        until_balance(gateway, "1042.18").await;
    }

    async fn the_link_asks_for_what_is_missing(gateway) {
        ok(gateway, &format!("partner set {} --low-balance 999.5", gateway.partner));
        ok(gateway, &format!("wallet debit {} 300.25 --reason less", gateway.partner));
        look(gateway).await;
        let told = crossings(gateway, 1).await;
        let uri = told[0]["data"]["refill"]["paymentUri"].as_str().unwrap().to_string();
        assert!(uri.ends_with("&uint256=299750000"), "{uri}");
    }

    async fn an_account_keeps_the_address(gateway) {
        let first = cross(gateway).await;
        let second = cross_again(gateway, 2).await;
        assert_eq!(address(&first), address(&second));
        // An invoice takes it; what comes is the invoice's then, and the next crossing names another one.
        let invoice = gateway.post(DEPOSIT, json!({ "amountUsd": 25, "currency": "USDC" })).await.expect(200);
        assert_eq!(invoice["depositAddress"], address(&first));
        let third = cross_again(gateway, 3).await;
        assert_ne!(address(&first), address(&third));
        pay(gateway, &third, 7).await;
        until_balance(gateway, "1006.18").await;
        pay(gateway, &first, 25).await;
        until_balance(gateway, "1031.18").await;
        let record = gateway.get(&format!("{DEPOSIT}/{}", invoice["invoiceId"].as_str().unwrap())).await.expect(200);
        assert_eq!((&record["status"], &record["creditedUsd"]), (&json!("CONFIRMED"), &json!(25)));
        assert_eq!(brief(&crossings(gateway, 3).await), [1, 2, 3].map(|place| ("wallet.low_balance", place)));
    }

    async fn money_that_comes_weeks_later_is_credited_too(gateway) {
        let told = cross(gateway).await;
        gateway.pass_time(20 * DAY_MS);
        pay(gateway, &told, 40).await;
        gateway.pass_time(DAY_MS + 60_000);
        until_balance(gateway, "1039.18").await;
    }

    async fn money_from_before_an_invoice_does_not_pay_it(gateway) {
        let told = cross(gateway).await;
        let chain = &gateway.app.sim_chains[&Network::Base];
        chain.behave(ChainMode::Down, 0).await.unwrap();
        pay(gateway, &told, 25).await;
        gateway.pass_time(10 * 60_000);
        let invoice = gateway.post(DEPOSIT, json!({ "amountUsd": 25, "currency": "USDC" })).await.expect(200);
        assert_eq!(invoice["depositAddress"], address(&told));
        chain.behave(ChainMode::Ok, 0).await.unwrap();
        until_balance(gateway, "1024.18").await;
        let record = gateway.get(&format!("{DEPOSIT}/{}", invoice["invoiceId"].as_str().unwrap())).await.expect(200);
        assert_eq!((&record["status"], &record["transactions"]), (&json!("PENDING"), &json!([])));
        pay(gateway, &told, 25).await;
        until_balance(gateway, "1049.18").await;
        let record = gateway.get(&format!("{DEPOSIT}/{}", invoice["invoiceId"].as_str().unwrap())).await.expect(200);
        assert_eq!((&record["status"], &record["exception"]), (&json!("CONFIRMED"), &Value::Null));
    }

    async fn another_token_or_network_where_the_usual_is_not_taken(gateway)
        with [("base_usdc", "off"), ("base_usdt", "off"), ("polygon_usdc", "off")]
    {
        let refill = cross(gateway).await["refill"].clone();
        assert_eq!((&refill["network"], &refill["currency"]), (&json!("POLYGON"), &json!("USDT")));
    }

    async fn nothing_is_named_where_no_deposits_are_taken(gateway)
        with [
            ("base_usdc", "off"), ("base_usdt", "off"), ("polygon_usdc", "off"), ("polygon_usdt", "off"),
            ("arbitrum_usdc", "off"), ("arbitrum_usdt", "off"), ("tron_usdc", "off"), ("tron_usdt", "off"),
        ]
    {
        ok(gateway, &format!("partner set {} --email {EMAIL}", gateway.partner));
        assert_eq!(names(&cross(gateway).await), ["balanceUsd", "currency", "lowBalanceThreshold"]);
        let mail = mails(gateway, EMAIL).await[0].clone();
        assert!(!mail["text"].as_str().unwrap().contains("to this address"), "{mail}");
    }

    async fn each_crossing_is_an_event_and_some_are_mailed(gateway) {
        let partner = gateway.partner.clone();
        ok(gateway, &format!("partner set {partner} --email {EMAIL} --low-balance 999.5"));
        assert_eq!(told(gateway).await, 0);
        buy(gateway).await;
        assert_eq!(told(gateway).await, 1);
        let mail = mails(gateway, EMAIL).await[0].clone();
        assert_eq!(mail["subject"], "Your balance is low");
        let refill = crossings(gateway, 1).await[0]["data"]["refill"]["depositAddress"].clone();
        for part in ["999.18 USD", "999.50 USD", "Test Travel", "USDC on Base", refill.as_str().unwrap(), "do not send real money"] {
            assert!(mail["text"].as_str().unwrap().contains(part), "{part} is not in {mail}");
        }
        buy(gateway).await;
        assert_eq!(told(gateway).await, 1, "it was low before");
        ok(gateway, &format!("wallet credit {partner} 0.5 --reason more"));
        assert_eq!(told(gateway).await, 1, "still low");
        ok(gateway, &format!("wallet credit {partner} 10 --reason more"));
        assert_eq!(told(gateway).await, 1);
        ok(gateway, &format!("wallet debit {partner} 10 --reason less"));
        assert_eq!(told(gateway).await, 1, "it was mailed a moment ago");
        assert_eq!(crossings(gateway, 2).await.len(), 2);
        gateway.pass_time(BETWEEN_MAILS_MS);
        assert_eq!(told(gateway).await, 1, "nothing has crossed since");
        cross_again(gateway, 3).await;
        assert_eq!(told(gateway).await, 2);
        // Up and down again between two looks, many times: a mailbox is not flooded.
        for count in 4..8 {
            gateway.pass_time(BETWEEN_MAILS_MS / 5);
            cross_again(gateway, count).await;
        }
        assert_eq!(told(gateway).await, 2);
        gateway.pass_time(BETWEEN_MAILS_MS / 5);
        cross_again(gateway, 8).await;
        assert_eq!(told(gateway).await, 3);
        assert_eq!(brief(&crossings(gateway, 8).await), [1, 2, 3, 4, 5, 6, 7, 8].map(|place| ("wallet.low_balance", place)));
    }

    /// The gateway does it by itself; and a race of purchases crosses once.
    async fn a_race_crosses_once(gateway) {
        ok(gateway, &format!("partner set {} --email {EMAIL} --low-balance 997", gateway.partner));
        let all = (0..8).map(|_| buy(gateway));
        futures_util::future::join_all(all).await;
        gateway.until("a mail", async || (!mails(gateway, EMAIL).await.is_empty()).then_some(())).await;
        assert_eq!((told(gateway).await, crossings(gateway, 1).await.len()), (1, 1));
    }

    /// An older instance makes partners without entering them here, in a rolling upgrade.
    async fn a_partner_of_an_older_instance_is_told_too(gateway) {
        let old = "INSERT INTO accounts (no, id, name, email, price_list, low_balance, created_at, kind)
            SELECT MAX(no) + 1, 'ptn_old', 'Old Travel', 'ops@acme.example', 'default', 50000000, 0, 'PARTNER' FROM accounts;
            INSERT INTO wallets (account, balance, lines, placed, numbers, opened, failed, suspended)
            SELECT MAX(no), 0, 0, 0, 0, 0, 0, 0 FROM accounts";
        execute(&gateway.app.settings.database, old).unwrap();
        ok(gateway, "wallet credit ptn_old 60 --reason first");
        ok(gateway, "wallet debit ptn_old 20 --reason less");
        gateway.until("a mail", async || (!mails(gateway, EMAIL).await.is_empty()).then_some(())).await;
        assert_eq!(told(gateway).await, 1);
        // Its threshold can be moved before the job has seen it.
        execute(&gateway.app.settings.database, "DELETE FROM low_balances WHERE account = (SELECT no FROM accounts WHERE id = 'ptn_old')").unwrap();
        ok(gateway, "partner set ptn_old --low-balance 45");
        assert_eq!(told(gateway).await, 1, "a threshold that moves is no crossing");
        gateway.pass_time(BETWEEN_MAILS_MS);
        ok(gateway, "wallet credit ptn_old 10 --reason more");
        ok(gateway, "wallet debit ptn_old 10 --reason less");
        assert_eq!(told(gateway).await, 2);
    }

    async fn nobody_is_mailed_without_a_crossing_or_an_email(gateway) {
        let partner = gateway.partner.clone();
        ok(gateway, &format!("partner set {partner} --low-balance 999.5"));
        buy(gateway).await;
        look(gateway).await;
        ok(gateway, &format!("partner set {partner} --email {EMAIL}"));
        assert_eq!(told(gateway).await, 0, "it crossed when nobody could be mailed");
        assert_eq!(crossings(gateway, 1).await.len(), 1, "an event needs no email");
        ok(gateway, &format!("partner set {partner} --low-balance 5000"));
        buy(gateway).await;
        assert_eq!(told(gateway).await, 0, "a threshold that moves is no crossing");
        assert_eq!(crossings(gateway, 1).await.len(), 1);
        // A new partner begins with nothing.
        let new = ok(gateway, "partner create --name New --email new@acme.example");
        look(gateway).await;
        // Beside the invitation to its team.
        let warned = async || {
            let mails = mails(gateway, "new@acme.example").await;
            mails.iter().filter(|mail| mail["subject"] == "Your balance is low").count()
        };
        assert_eq!(warned().await, 0);
        ok(gateway, &format!("wallet credit {} 60 --reason first", new["partnerId"].as_str().unwrap()));
        ok(gateway, &format!("wallet debit {} 20 --reason less", new["partnerId"].as_str().unwrap()));
        look(gateway).await;
        assert_eq!(warned().await, 1);
    }
}
