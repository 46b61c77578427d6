//! Order numbers: unreadable without the key, never two alike, those from before stay and are found, checkouts draw
//! from their own, and there is a refusal long before the last one.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::ids::AccountNo;
use simgate::domain::money::Usd;
use simgate::domain::number::{ACCOUNTS, Number, Series};
use simgate::domain::refusal::Refusal;
use simgate::error::Error;
use simgate::ops::operator::{self, NewPartner};
use simgate::start::{self, Role};

use crate::support::browser::{guest, submit};
use crate::support::buying::{self, PLAN, account, ask, fund, open, usd};
use crate::support::command_line::{ok, simgate};
use crate::support::database;
use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::logins::{self, sign_in, with_token};
use crate::support::shapes::ORDERS;
use crate::support::tool_caller::{call, failure};

/// The program's own constants, and no key.
fn without_key(text: &str) -> Option<Number> {
    Number::parse(text, |_, _| 0)
}

/// As an older gateway spelled it.
fn old_text(account: AccountNo, n: i64) -> String {
    Number { series: Series::First, account, n }.text(|_, _| 0).unwrap()
}

async fn partner_no(gateway: &Gateway) -> AccountNo {
    let found = operator::account(&gateway.app, &gateway.partner).await.unwrap();
    found.no
}

fn sql(gateway: &Gateway, text: &str) {
    database::execute(gateway.app.store.location(), text).unwrap();
}

/// How many numbers an account has drawn, of orders and of checkouts.
fn drawn(gateway: &Gateway, account: AccountNo) -> (String, String) {
    let text = format!(
        "SELECT CAST(numbers AS TEXT), CAST(opened AS TEXT) FROM wallets WHERE account = {}",
        account.0
    );
    let row = database::rows(gateway.app.store.location(), &text).remove(0);
    (row[0].clone(), row[1].clone())
}

/// The operator finds exactly this order by a number.
fn is_found(gateway: &Gateway, number: &str, order: &str) {
    let shown = ok(gateway, &format!("order show {number}"));
    assert_eq!((shown["id"].as_str().unwrap(), shown["orderNo"].as_str().unwrap()), (order, number));
    let found = ok(gateway, &format!("find {}", number.to_lowercase()));
    let ids: Vec<&str> =
        found["orders"].as_array().unwrap().iter().map(|order| order["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [order], "{number}");
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}

async fn place(gateway: &Gateway) -> Reply {
    gateway.post(ORDERS, json!({ "packageCode": PLAN })).await
}

async fn from_wallet(gateway: &Gateway, token: &str) -> Reply {
    ask(gateway, token, &json!({ "packageCode": PLAN, "payWith": "wallet" })).await
}

both_databases! {
    async fn a_number_says_nothing_without_the_key(gateway) {
        let owner = partner_no(gateway).await;
        let mut numbers = BTreeSet::new();
        for n in 1..=20 {
            let order = gateway.order(PLAN).await;
            let number = text(&order, "orderNo").to_string();
            // What the source alone says of it is no account's n-th order.
            let read = without_key(&number);
            assert!(read.is_none_or(|read| read.series != Series::First && (read.account, read.n) != (owner, n)), "{number}");
            assert_eq!(gateway.app.numbers.parse(&number), Some(Number { series: Series::Orders, account: owner, n }));
            assert!(numbers.insert(number));
        }
        // Every process of this database reads them, and the key lies in it sealed.
        let other = start::open(gateway.app.settings.clone(), Role::Command).await.unwrap();
        for (n, order) in gateway.get(&format!("{ORDERS}?limit=20")).await.expect(200)["orders"].as_array().unwrap().iter().rev().enumerate() {
            let number = other.numbers.parse(text(order, "orderNo")).unwrap();
            assert_eq!((number.account, number.n), (owner, n as i64 + 1));
        }
        let kept = database::rows(gateway.app.store.location(), "SELECT value FROM meta WHERE name = 'order_numbers'");
        assert_eq!(kept[0][0].len(), 2 * (12 + 32 + 16), "a nonce, a key and a seal");
    }

    async fn numbers_from_before_stay_and_are_found(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let ann = account(gateway, "ann@example.com").await;
        let bought = from_wallet(gateway, &token).await.expect(200);
        let paid_later = open(gateway, &token).await;
        let unpaid = open(gateway, &token).await;
        // As an older gateway left them: one count for both, and no key.
        let of_ann = format!("WHERE account = {}", ann.0);
        sql(gateway, &format!("UPDATE orders SET keyed = 0 {of_ann}; UPDATE wallets SET numbers = 3, opened = 0 {of_ann};
            UPDATE checkouts SET keyed = 0, seq = seq + 10 {of_ann}; UPDATE checkouts SET seq = seq - 9 {of_ann}"));
        let old: Vec<String> = (1..=3).map(|n| old_text(ann, n)).collect();
        let path = format!("/api/agentic/order/{}", text(&bought, "orderId"));
        assert_eq!(with_token(gateway, &token, "GET", &path).await.expect(200)["orderRef"], old[0]);
        is_found(gateway, &old[0], text(&bought, "orderId"));
        assert_eq!(buying::record(gateway, &unpaid).await["orderRef"], old[2]);
        assert_eq!(ok(gateway, &format!("find {}", old[2]))["checkouts"][0]["invoiceId"], unpaid["invoiceId"]);
        // Paid for now, it keeps the number that its buyer was shown.
        let done = buying::settle(gateway, &paid_later, "COMPLETED").await;
        assert_eq!(done["orderRef"], old[1]);
        is_found(gateway, &old[1], text(&done, "orderId"));
        // What comes now has the key, and collides with nothing.
        let newer = from_wallet(gateway, &token).await.expect(200);
        let opened = open(gateway, &token).await;
        let later = buying::settle(gateway, &opened, "COMPLETED").await;
        assert_eq!(later["orderRef"], opened["orderRef"]);
        let new = [text(&newer, "orderRef"), text(&later, "orderRef")];
        assert!(new.iter().all(|number| without_key(number).is_none_or(|read| read.series != Series::First)), "{new:?}");
        is_found(gateway, new[0], text(&newer, "orderId"));
        is_found(gateway, new[1], text(&later, "orderId"));
        let listed = with_token(gateway, &token, "GET", "/api/agentic/orders").await.expect(200);
        let listed: Vec<&str> = listed["orders"].as_array().unwrap().iter().map(|order| text(order, "orderNo")).collect();
        assert_eq!(listed, [new[1], new[0], old[1].as_str(), old[0].as_str()], "newest first");
        // A number that nothing has leads nowhere, in either way of writing.
        for nobody in [old_text(ann, 4), old_text(ann, 1 << 20)] {
            let told = simgate(gateway, &["order", "show", &nobody, "--json"]).refused(1, "ORDER_NOT_FOUND");
            assert!(told.contains(&nobody), "{told}");
        }
    }

    async fn unpaid_checkouts_use_up_no_orders(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let ann = account(gateway, "ann@example.com").await;
        let opened = join_all((0..8).map(|_| open(gateway, &token))).await;
        assert_eq!(drawn(gateway, ann), ("0".into(), "8".into()));
        let bought = from_wallet(gateway, &token).await.expect(200);
        assert_eq!(drawn(gateway, ann), ("1".into(), "8".into()));
        // The same place in both series, and two numbers.
        let series = |text: &str| gateway.app.numbers.parse(text).unwrap();
        let mut all: BTreeSet<String> = opened.iter().map(|checkout| text(checkout, "orderRef").to_string()).collect();
        assert!(all.iter().all(|number| series(number).series == Series::Checkouts && series(number).account == ann));
        assert_eq!(series(text(&bought, "orderRef")), Number { series: Series::Orders, account: ann, n: 1 });
        all.insert(text(&bought, "orderRef").to_string());
        assert_eq!(all.len(), 9);
        // Paid in any order, each order has its checkout's number and a place of its own in the list.
        for checkout in opened.iter().rev() {
            let done = buying::settle(gateway, checkout, "COMPLETED").await;
            assert_eq!(done["orderRef"], checkout["orderRef"]);
            is_found(gateway, text(&done, "orderRef"), text(&done, "orderId"));
        }
        assert_eq!(drawn(gateway, ann), ("9".into(), "8".into()));
        let mut expected: Vec<&str> = opened.iter().map(|checkout| text(checkout, "orderRef")).collect();
        expected.push(text(&bought, "orderRef"));
        let listed = with_token(gateway, &token, "GET", "/api/agentic/orders?limit=20").await.expect(200);
        let listed: Vec<&str> = listed["orders"].as_array().unwrap().iter().map(|order| text(order, "orderNo")).collect();
        assert_eq!(listed, expected, "newest first");
    }

    async fn an_account_that_has_used_up_its_numbers_is_refused(gateway) {
        let owner = partner_no(gateway).await;
        let set = |column: &str, account: AccountNo, drawn: i64| {
            sql(gateway, &format!("UPDATE wallets SET {column} = {drawn} WHERE account = {}", account.0));
        };
        assert!(!doctor_warns(gateway));
        // Past what every account has, an early one has more; those numbers are found too.
        set("numbers", owner, (1 << 23) - 2);
        for _ in 0..3 {
            let order = gateway.order(PLAN).await;
            is_found(gateway, text(&order, "orderNo"), text(&order, "id"));
        }
        let room = (1 << 23) + (1 << 27);
        set("numbers", owner, room / 2);
        assert!(doctor_warns(gateway));
        set("numbers", owner, room - 10_001);
        let last = gateway.order(PLAN).await;
        is_found(gateway, text(&last, "orderNo"), text(&last, "id"));
        assert_eq!(place(gateway).await.problem(403), "LIMIT_EXCEEDED");
        let many = join_all((0..12).map(|_| place(gateway))).await;
        assert!(many.iter().all(|reply| reply.problem(403) == "LIMIT_EXCEEDED"));
        // What needs no number goes on.
        let filled = format!("{ORDERS}/{}/topup", text(&last, "iccid"));
        gateway.post(&filled, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.expect(200);
        // Checkouts have an end of their own.
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let ann = account(gateway, "ann@example.com").await;
        set("opened", ann, (1 << 23) + (1 << 26) - 10_000);
        assert_eq!(ask(gateway, &token, &json!({ "packageCode": PLAN })).await.problem(403), "LIMIT_EXCEEDED");
        from_wallet(gateway, &token).await.expect(200);
        set("numbers", ann, room - 10_000);
        let refused = call(gateway, "purchase_esim_with_wallet", json!({ "packageCode": PLAN, "token": token })).await;
        assert_eq!(failure(&refused), "LIMIT_EXCEEDED");
    }

    async fn guests_have_more_checkouts_than_anybody_opens(gateway) {
        let drawn = 70_000_000_000_000i64;
        sql(gateway, &format!("UPDATE wallets SET opened = {drawn} WHERE account = 0"));
        let made = guest(gateway, "kid@example.com").await;
        let order_ref = text(&made, "orderRef");
        let number = gateway.app.numbers.parse(order_ref).unwrap();
        assert_eq!(number, Number { series: Series::Checkouts, account: AccountNo(0), n: drawn + 1 });
        assert_eq!(ok(gateway, &format!("find {order_ref}"))["checkouts"][0]["invoiceId"], made["invoiceId"]);
        let done = buying::settle(gateway, &made, "COMPLETED").await;
        is_found(gateway, order_ref, text(&done, "orderId"));
        sql(gateway, &format!("UPDATE wallets SET opened = {} WHERE account = 0", (1i64 << 46) - 10_000));
        let wish = [("plan", PLAN), ("email", "kid@example.com"), ("network", "POLYGON")];
        assert_eq!(submit(gateway, "/checkout", &wish).await.status, 403);
    }

    async fn accounts_end_with_a_refusal(gateway) {
        let known = sign_in(gateway, "ann@example.com", "agent").await;
        // The last account but those that are kept back.
        let last = ACCOUNTS - 10_001;
        sql(gateway, &format!("INSERT INTO accounts (no, id, name, email, price_list, low_balance, created_at, kind)
            VALUES ({0}, 'ptn_late', 'Late', NULL, 'default', 0, 0, 'PARTNER');
            INSERT INTO wallets (account, balance, lines, placed, numbers, opened, failed, suspended) VALUES ({0}, 0, 0, 0, 0, 0, 0, 0)", last - 1));
        // One more is let in, and its numbers are as good as any.
        let bob = sign_in(gateway, "bob@example.com", "agent").await;
        assert_eq!(account(gateway, "bob@example.com").await, AccountNo(last));
        fund(gateway, "bob@example.com", Usd::dollars(20)).await;
        let bought = from_wallet(gateway, &bob).await.expect(200);
        is_found(gateway, text(&bought, "orderRef"), text(&bought, "orderId"));
        let opened = open(gateway, &bob).await;
        assert_eq!(ok(gateway, &format!("find {}", text(&opened, "orderRef")))["checkouts"][0]["invoiceId"], opened["invoiceId"]);
        assert!(doctor_warns(gateway));
        // Then nobody, by any door; and nobody is harmed.
        logins::ask(gateway, "cem@example.com").await.expect(200);
        let code = logins::code(gateway, "cem@example.com").await;
        assert_eq!(logins::verify(gateway, "cem@example.com", &code).await.problem(403), "LIMIT_EXCEEDED");
        assert_eq!(logins::verify(gateway, "cem@example.com", &code).await.problem(403), "LIMIT_EXCEEDED", "it is still good");
        let new = NewPartner { name: "Nobody".into(), email: None, credit: Usd::dollars(5), shares_email: false };
        let refused = operator::create_partner(&gateway.app, "test", new).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::NoMoreAccounts))));
        assert_eq!(simgate(gateway, &["partner", "create", "--name", "Nobody", "--json"]).document(1)["code"], "LIMIT_EXCEEDED");
        assert_eq!(usd(&with_token(gateway, &known, "GET", "/api/agentic/wallet").await.expect(200)["balanceUsd"]), Usd::ZERO);
        gateway.pass_time(2 * buying::MINUTE_MS);
        sign_in(gateway, "ann@example.com", "again").await;
    }

    async fn a_row_beyond_all_numbers_is_still_shown(gateway) {
        let order = gateway.order(PLAN).await;
        sql(gateway, &format!("UPDATE wallets SET numbers = {0}; UPDATE orders SET seq = {0}", 1i64 << 50));
        let listed = gateway.get(ORDERS).await.expect(200);
        assert_eq!((&listed["orders"][0]["id"], &listed["orders"][0]["orderNo"]), (&order["id"], &json!("")));
        assert_eq!(place(gateway).await.problem(403), "LIMIT_EXCEEDED");
    }
}

/// Whether the doctor speaks of numbers.
fn doctor_warns(gateway: &Gateway) -> bool {
    let told = simgate(gateway, &["doctor", "--json"]);
    let report: Value = serde_json::from_str(&told.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "numbers").unwrap();
    check["health"] == "warn"
}
