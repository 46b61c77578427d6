//! What a partner bought and spent on each day: the days add up to the statement, whoever adds its lines to them and how
//! often.

use std::collections::BTreeMap;

use serde_json::json;
use simgate::app::App;
use simgate::domain::ids::AccountNo;
use simgate::domain::money::Usd;
use simgate::ops::days::{self, Day};
use simgate::ops::operator;
use simgate::start::{self, Role};

use crate::support::command_line::ok;
use crate::support::database::{execute, on_plain_thread, rows};
use crate::support::deposits::{pay, until_status};
use crate::support::harness::{Gateway, both_databases, check_books};
use crate::support::shapes::{DEPOSIT, ORDERS};

const DAY_MS: i64 = 24 * 3_600_000;

async fn number_of(gateway: &Gateway, partner: &str) -> AccountNo {
    operator::account(&gateway.app, partner).await.unwrap().no
}

/// The days as its statement has them.
fn of_statement(gateway: &Gateway, account: AccountNo) -> BTreeMap<i64, Day> {
    let sql = format!(
        "SELECT e.kind, CAST(e.at / 86400000000 AS TEXT), CAST(-p.amount AS TEXT) FROM postings p
         JOIN entries e ON e.id = p.entry WHERE p.wallet = {}",
        account.0
    );
    let mut days = BTreeMap::new();
    for row in rows(&gateway.app.settings.database, &sql) {
        let (day, change) = (row[1].parse().unwrap(), Usd::from_micros(row[2].parse().unwrap()));
        let day: &mut Day = days.entry(day).or_insert(nothing_on(day));
        match row[0].as_str() {
            "ORDER" => (day.orders, day.spent) = (day.orders + 1, day.spent.minus(change)),
            "TOPUP" => (day.topups, day.spent) = (day.topups + 1, day.spent.minus(change)),
            "FAILED" => (day.failed, day.given_back) = (day.failed + 1, day.given_back.plus(change)),
            "CANCELLED" => (day.cancelled, day.given_back) = (day.cancelled + 1, day.given_back.plus(change)),
            "REFUND" => day.given_back = day.given_back.plus(change),
            _ => day.other = day.other.plus(change),
        }
    }
    days
}

fn nothing_on(day: i64) -> Day {
    let (orders, topups, failed, cancelled) = (0, 0, 0, 0);
    let (spent, given_back, other) = (Usd::ZERO, Usd::ZERO, Usd::ZERO);
    Day { day, orders, topups, failed, cancelled, spent, given_back, other }
}

/// Adds up what is left, as the job does.
async fn sum_up(app: &App) {
    while days::round(app).await.unwrap() {}
}

/// The days are exactly those of the statement, and the others are empty.
async fn compare(gateway: &Gateway, account: AccountNo, span: i64) {
    let (today, expected) = (gateway.app.now().day(), of_statement(gateway, account));
    let expected: Vec<Day> = (today - span + 1..=today)
        .map(|day| expected.get(&day).copied().unwrap_or(nothing_on(day)))
        .collect();
    assert_eq!(days::of(&gateway.app, account, span).await.unwrap(), expected);
}

/// One of everything that moves a wallet.
async fn everything(gateway: &Gateway) {
    let order = gateway.order("JP-1GB-7D").await;
    let topup = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
    gateway.post(&topup, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.expect(200);
    gateway.supplier("reject").await;
    gateway.post(ORDERS, json!({ "packageCode": "JP-5GB-30D" })).await.problem(502);
    gateway.post(&topup, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.problem(502);
    gateway.supplier("ok").await;
    let cancelled = gateway.order("JP-3GB-30D").await;
    let cancel = format!("{ORDERS}/{}/cancel", cancelled["id"].as_str().unwrap());
    gateway.send_as(&gateway.key, "POST", &cancel, None).await.expect(200);
    let (id, given) = (order["id"].as_str().unwrap(), Usd::parse("0.2").unwrap());
    operator::refund_order(&gateway.app, "test", id, given, "slow network").await.unwrap();
    ok(gateway, &format!("wallet credit {} 19.999123 --reason more", gateway.partner));
    ok(gateway, &format!("wallet debit {} 0.000123 --reason less", gateway.partner));
}

async fn deposit(gateway: &Gateway) {
    let wish = json!({ "amountUsd": 20, "currency": "USDT", "network": "POLYGON" });
    let invoice = gateway.post(DEPOSIT, wish).await.expect(200);
    pay(gateway, &invoice, "20").await;
    gateway.pass_time(6_000);
    until_status(gateway, &invoice, "CONFIRMED").await;
}

both_databases! {
    async fn the_days_are_those_of_the_statement(gateway) {
        let account = number_of(gateway, &gateway.partner).await;
        gateway.away_from_midnight();
        everything(gateway).await;
        // Without waiting for the job.
        compare(gateway, account, 30).await;
        let today = days::of(&gateway.app, account, 1).await.unwrap()[0];
        assert_eq!((today.orders, today.topups, today.failed, today.cancelled), (3, 2, 2, 1));
        let usd = |text: &str| Usd::parse(text).unwrap();
        assert_eq!((today.spent, today.given_back), (usd("8.59"), usd("7.15")));
        gateway.pass_time(2 * DAY_MS);
        deposit(gateway).await;
        gateway.order("JP-1GB-7D").await;
        for span in [1, 2, 3, 30] {
            compare(gateway, account, span).await;
        }
        let last = days::of(&gateway.app, account, 3).await.unwrap();
        assert_eq!(last[1], nothing_on(last[1].day));
        assert_eq!((last[2].orders, last[2].other), (1, Usd::dollars(20)));
        // A day long ago is in no shorter span.
        gateway.pass_time(40 * DAY_MS);
        compare(gateway, account, 30).await;
        compare(gateway, account, 45).await;
        check_books(&gateway.app).await;
    }

    /// Two instances and whoever looks add the same lines while others are written, and each is added once.
    async fn a_line_counts_once(gateway) {
        let account = number_of(gateway, &gateway.partner).await;
        gateway.away_from_midnight();
        let elsewhere = start::open(gateway.app.settings.clone(), Role::Command).await.unwrap();
        elsewhere.clock.advance((gateway.app.now().micros() - elsewhere.now().micros()) / 1_000);
        for n in 0..12 {
            let orders = futures_util::future::join_all((0..5).map(|_| gateway.order("JP-500MB-1D")));
            let rounds = async {
                for _ in 0..3 {
                    let (here, there) = (days::round(&gateway.app), days::round(&elsewhere));
                    let (a, b, c) = tokio::join!(here, there, days::of(&elsewhere, account, 1));
                    assert_eq!((a.unwrap(), b.unwrap(), c.unwrap().len()), (false, false, 1));
                }
            };
            tokio::join!(orders, rounds);
            if n % 4 == 3 {
                gateway.pass_time(DAY_MS);
                elsewhere.clock.advance(DAY_MS);
            }
        }
        sum_up(&elsewhere).await;
        compare(gateway, account, 30).await;
        // Once more changes nothing.
        tokio::join!(sum_up(&gateway.app), sum_up(&elsewhere));
        compare(gateway, account, 30).await;
        let summed: i64 = days::of(&gateway.app, account, 5).await.unwrap().iter().map(|day| day.orders).sum();
        assert_eq!(summed, 60);
        on_plain_thread(|| elsewhere.store.close());
    }

    /// As after an upgrade: many lines, and no mark.
    async fn an_old_statement_is_added_in_portions(gateway) {
        let account = number_of(gateway, &gateway.partner).await;
        let database = &gateway.app.settings.database;
        sum_up(&gateway.app).await;
        execute(database, &format!("DELETE FROM partner_days WHERE account = {0}; DELETE FROM summed_lines WHERE account = {0}", account.0)).unwrap();
        let wallet = rows(database, &format!("SELECT CAST(lines AS TEXT), CAST(balance AS TEXT), CAST({} AS TEXT) FROM wallets WHERE account = {}", gateway.app.now().micros(), account.0));
        let (lines, balance, now) = (&wallet[0][0], &wallet[0][1], &wallet[0][2]);
        let made = "WITH RECURSIVE made (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM made WHERE n < 2500)";
        let written = [
            format!("INSERT INTO entries (id, kind, at) {made} SELECT 'made.' || n, 'CREDIT', {now} - n * 600000000 FROM made"),
            format!("INSERT INTO postings (entry, leg, account, amount) {made} SELECT 'made.' || n, 1, 'promo', n FROM made"),
            format!(
                "INSERT INTO postings (entry, leg, account, amount, wallet, line, balance) {made}
                 SELECT 'made.' || n, 2, 'wallet', -n, {no}, {lines} + n, {balance} + n * (n + 1) / 2 FROM made",
                no = account.0
            ),
            format!("UPDATE wallets SET lines = lines + 2500, balance = balance + 3126250 WHERE account = {}", account.0),
        ];
        execute(database, &format!("BEGIN; {}; COMMIT", written.join("; "))).unwrap();
        days::enlist(&gateway.app, AccountNo(0)).await.unwrap();
        sum_up(&gateway.app).await;
        compare(gateway, account, 30).await;
        check_books(&gateway.app).await;
    }

    async fn users_have_no_days(gateway) {
        let made = "INSERT INTO accounts (no, id, name, email, price_list, low_balance, created_at, kind)
            SELECT MAX(no) + 1, 'usr_ann', 'Ann', NULL, 'retail', 0, 0, 'USER' FROM accounts;
            INSERT INTO wallets (account, balance, lines, placed, numbers, opened, failed, suspended)
            SELECT MAX(no), 0, 0, 0, 0, 0, 0, 0 FROM accounts";
        execute(&gateway.app.settings.database, made).unwrap();
        let ann = number_of(gateway, "usr_ann").await;
        ok(gateway, "wallet credit usr_ann 60 --reason first");
        days::enlist(&gateway.app, AccountNo(0)).await.unwrap();
        sum_up(&gateway.app).await;
        let days = days::of(&gateway.app, ann, 2).await.unwrap();
        assert_eq!(days, [nothing_on(days[0].day), nothing_on(days[1].day)]);
        check_books(&gateway.app).await;
    }
}
