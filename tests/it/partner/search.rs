//! A partner's search among its own: orders by state and time, in pages both ways and as a stream, the one that waits
//! for long, and whatever has a name.

use serde_json::{Value, json};
use simgate::domain::ids::AccountNo;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::order::OrderStatus;
use simgate::domain::time::Time;
use simgate::ops::look_up::{Hits, look_up};
use simgate::ops::orders::{self, Found, Listed, Search};
use simgate::ops::{low_balance, operator};

use crate::support::command_line::ok;
use crate::support::database::{execute, rows};
use crate::support::deposits::{id, pay, until_status};
use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{DEPOSIT, ORDERS};

const SECOND: i64 = 1_000_000;
/// When the first made-up order was placed.
const BEGIN: i64 = 1_700_000_000 * SECOND;
/// How many of them each account has; a stream takes several portions.
const MADE: i64 = 1_203;
/// Between two of them.
const APART: i64 = 20 * SECOND;

async fn number_of(gateway: &Gateway, partner: &str) -> AccountNo {
    operator::account(&gateway.app, partner).await.unwrap().no
}

/// Orders in all states, placed a little out of order, with gaps between their places. Nobody asks a supplier about them.
fn make(gateway: &Gateway, account: AccountNo) {
    let made = format!(
        "WITH RECURSIVE made (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM made WHERE n < {MADE})
         INSERT INTO orders (id, account, seq, package_code, plan_name, family, data_mb, duration_days, price, cost, supplier,
             key_id, status, ask_until, cancel_request, created_at, updated_at, keyed)
         SELECT 'ord_{no}_' || n, {no}, n + n / 10, 'JP-1GB-7D', 'Japan', 'JP', 1024, 7, 820000, 500000, 'sim', 'key_made',
             CASE n % 30 WHEN 0 THEN 'FAILED' WHEN 1 THEN 'CANCELLED' WHEN 2 THEN 'PROVISIONING' WHEN 3 THEN 'CANCELLING'
                 ELSE 'FULFILLED' END,
             9000000000000000000, 'made up', {BEGIN} + n * {APART} + (n * 7919 % 240 - 120) * {SECOND}, {BEGIN}, 1 FROM made",
        no = account.0
    );
    execute(&gateway.app.settings.database, &made).unwrap();
}

struct Made {
    id: String,
    seq: i64,
    status: OrderStatus,
    created_at: Time,
}

/// All orders of an account, newest first.
fn all_of(gateway: &Gateway, account: AccountNo) -> Vec<Made> {
    let sql = format!(
        "SELECT id, CAST(seq AS TEXT), status, CAST(created_at AS TEXT) FROM orders WHERE account = {} AND seq IS NOT NULL ORDER BY orders.seq DESC",
        account.0
    );
    let made = |row: Vec<String>| Made {
        id: row[0].clone(),
        seq: row[1].parse().unwrap(),
        status: OrderStatus::parse(&row[2]).unwrap(),
        created_at: Time::from_micros(row[3].parse().unwrap()),
    };
    rows(&gateway.app.settings.database, &sql).into_iter().map(made).collect()
}

fn ids(listed: &[Listed]) -> Vec<String> {
    listed.iter().map(|listed| listed.order.id.to_string()).collect()
}

fn ids_of(made: &[&Made]) -> Vec<String> {
    made.iter().map(|made| made.id.clone()).collect()
}

async fn found(gateway: &Gateway, account: AccountNo, search: Search) -> Found {
    orders::search(&gateway.app, account, search).await.unwrap()
}

/// From the newest to the oldest, page by page.
async fn walk_back(gateway: &Gateway, account: AccountNo, search: Search, expected: &[&Made]) {
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = found(gateway, account, Search { before, ..search }).await;
        let place = |listed: Option<&Listed>| listed.and_then(|listed| listed.order.seq);
        assert_eq!(page.newer, place(page.orders.first()).filter(|_| before.is_some()), "{search:?}");
        seen.extend(ids(&page.orders));
        if page.older.is_none() {
            break;
        }
        assert_eq!(
            (page.orders.len() as i64, page.older),
            (search.limit, place(page.orders.last())),
            "{search:?}"
        );
        before = page.older;
    }
    assert_eq!(seen, ids_of(expected), "{search:?}");
}

/// From the oldest to the newest; the last page is the one that a search begins with.
async fn walk_on(gateway: &Gateway, account: AccountNo, search: Search, expected: &[&Made]) {
    let (limit, mut end, mut after) = (search.limit as usize, expected.len(), Some(0));
    loop {
        let page = found(gateway, account, Search { after, ..search }).await;
        let begin = end.saturating_sub(limit);
        if end <= limit {
            assert_eq!(ids(&page.orders), ids_of(&expected[..limit.min(expected.len())]), "{search:?}");
            assert_eq!(page.newer, None, "{search:?}");
            return;
        }
        assert_eq!(ids(&page.orders), ids_of(&expected[begin..end]), "{search:?}");
        assert_eq!(page.older, Some(expected[end - 1].seq).filter(|_| end < expected.len()), "{search:?}");
        (end, after) = (begin, page.newer);
    }
}

async fn streamed(gateway: &Gateway, account: AccountNo, search: Search) -> Vec<String> {
    let (mut stream, mut seen) = (orders::stream(account, search), Vec::new());
    loop {
        let portion = stream.next(&gateway.app).await.unwrap();
        assert!(portion.len() <= 500);
        if portion.is_empty() {
            assert!(stream.next(&gateway.app).await.unwrap().is_empty());
            return seen;
        }
        seen.extend(ids(&portion));
    }
}

/// All that a look-up found, by id.
fn names(hits: &Hits) -> Vec<String> {
    let orders = hits.orders.iter().map(|order| order.id.to_string());
    let deposits = hits.deposits.iter().map(|invoice| invoice.id.to_string());
    orders.chain(deposits).chain(hits.transfers.iter().map(|transfer| transfer.id.to_string())).collect()
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_string()
}

/// As codes are shown, in groups of four.
fn grouped(code: &str) -> String {
    let groups: Vec<&str> =
        code.as_bytes().chunks(4).map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(" ")
}

/// The id of the transfer that a transaction made.
fn transfer_of(gateway: &Gateway, hash: &str) -> String {
    let id = "SELECT network || ':' || tx_hash || ':' || CAST(position AS TEXT) FROM transfers";
    rows(&gateway.app.settings.database, &format!("{id} WHERE tx_hash = '{hash}'"))[0][0].clone()
}

/// Pays an address of the partner's own, without an invoice. Answers the transaction.
async fn pay_directly(gateway: &Gateway, account: AccountNo) -> String {
    ok(gateway, &format!("partner set {} --low-balance 5000", gateway.partner));
    ok(gateway, &format!("wallet credit {} 9000 --reason more", gateway.partner));
    low_balance::round(&gateway.app).await.unwrap();
    ok(gateway, &format!("wallet debit {} 9000 --reason less", gateway.partner));
    low_balance::round(&gateway.app).await.unwrap();
    let database = &gateway.app.settings.database;
    let own = format!(
        "SELECT address FROM addresses WHERE account = {} AND address NOT IN (SELECT address FROM invoices)",
        account.0
    );
    let address = rows(database, &own)[0][0].clone();
    gateway.app.sim_chains[&Network::Base].pay(&address, Currency::Usdc, Usd::dollars(40)).await.unwrap();
    let sql = format!("SELECT tx_hash FROM transfers WHERE address = '{address}' AND state = 'CREDITED'");
    gateway
        .until("the payment is credited", async || {
            gateway.pass_time(6_000);
            rows(database, &sql).first().map(|row| row[0].clone())
        })
        .await
}

both_databases! {
    async fn a_search_finds_what_fits_and_nothing_else(gateway) {
        let (mine, _) = gateway.partner("Big Travel", Usd::ZERO).await;
        let (other, _) = gateway.partner("Other Travel", Usd::ZERO).await;
        let (mine, other) = (number_of(gateway, &mine).await, number_of(gateway, &other).await);
        for account in [mine, other] {
            make(gateway, account);
        }
        let all = all_of(gateway, mine);
        assert_eq!(all.len() as i64, MADE);
        let at = |n: i64| Some(Time::from_micros(BEGIN + n * APART));
        let exactly = |n: usize| Some(all[n].created_at);
        let times = [
            (None, None),
            // Far back, and short.
            (at(100), at(110)),
            (at(100), at(100).map(|time| time.plus_millis(1))),
            (at(500), at(900)),
            (exactly(700), exactly(300)),
            (at(900), None),
            (None, at(90)),
            // Before the first, after the last, and the wrong way round.
            (None, at(-100)),
            (at(MADE + 100), None),
            (at(600), at(500)),
        ];
        let states = [None].into_iter().chain(OrderStatus::ALL.map(Some));
        for (status, (from, to)) in states.flat_map(|status| times.map(|times| (status, times))) {
            let fits = |made: &&Made| {
                status.is_none_or(|status| made.status == status)
                    && from.is_none_or(|from| made.created_at >= from)
                    && to.is_none_or(|to| made.created_at < to)
            };
            let expected: Vec<&Made> = all.iter().filter(fits).collect();
            let limit = (expected.len() as i64 / 5).max(3);
            let search = Search { status, from, to, limit, ..Search::default() };
            walk_back(gateway, mine, search, &expected).await;
            walk_on(gateway, mine, search, &expected).await;
            assert_eq!(streamed(gateway, mine, search).await, ids_of(&expected), "{search:?}");
            // Cursors that no page gave.
            let beyond = found(gateway, mine, Search { before: Some(1), ..search }).await;
            assert!(beyond.orders.is_empty() && beyond.older.is_none());
            assert_eq!(beyond.newer, Some(0).filter(|_| !expected.is_empty()));
            let newest = found(gateway, mine, Search { after: Some(i64::MAX), ..search }).await;
            assert_eq!(ids(&newest.orders), ids_of(&expected[..expected.len().min(limit as usize)]));
        }
        let made = "DELETE FROM orders WHERE key_id = 'key_made'";
        execute(&gateway.app.settings.database, made).unwrap();
    }

    async fn orders_are_found_with_their_top_ups_and_counted(gateway) {
        let account = number_of(gateway, &gateway.partner).await;
        let order = gateway.order("JP-1GB-7D").await;
        let topup = format!("{ORDERS}/{}/topup", text(&order, "iccid"));
        gateway.post(&topup, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.expect(200);
        gateway.supplier("reject").await;
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.problem(502);
        gateway.post(&topup, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.problem(502);
        let search = Search { limit: 10, ..Search::default() };
        let all = found(gateway, account, search).await;
        assert_eq!((all.total, all.orders.len()), (Some(2), 2));
        assert_eq!((all.orders[0].order.status, all.orders[0].topups.len()), (OrderStatus::Failed, 0));
        assert_eq!((ids(&all.orders)[1].as_str(), all.orders[1].topups.len()), (order["id"].as_str().unwrap(), 2));
        assert_eq!(streamed(gateway, account, search).await, ids(&all.orders));
        // A top-up that failed is no failed order.
        let failed = found(gateway, account, Search { status: Some(OrderStatus::Failed), ..search }).await;
        assert_eq!((failed.total, ids(&failed.orders)), (None, ids(&all.orders[..1])));
    }

    async fn what_waits_for_long_is_counted(gateway) with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")] {
        let account = number_of(gateway, &gateway.partner).await;
        let (other, _) = gateway.partner("Other Travel", Usd::ZERO).await;
        let other = number_of(gateway, &other).await;
        gateway.order("JP-1GB-7D").await;
        gateway.supplier("timeout").await;
        let first = gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(202);
        gateway.pass_time(60_000);
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(202);
        let waiting = async |account| {
            let waiting = orders::waiting_long(&gateway.app, account).await.unwrap();
            (waiting.count, waiting.oldest.map(|order| order.id.to_string()))
        };
        assert_eq!(waiting(account).await, (0, None));
        gateway.pass_time(31 * 60_000);
        assert_eq!(waiting(account).await, (2, Some(text(&first["order"], "id"))));
        assert_eq!(waiting(other).await, (0, None));
    }

    async fn everything_has_a_name_and_is_found_by_its_owner_alone(gateway) {
        let account = number_of(gateway, &gateway.partner).await;
        let (other, key) = gateway.partner("Other Travel", Usd::dollars(100)).await;
        let other = number_of(gateway, &other).await;
        let body = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "booking 7/ä" });
        let order = gateway.delivered(body.clone()).await;
        // The same reference is somebody else's, too.
        let theirs = gateway.send_as(&key, "POST", ORDERS, Some(body)).await.expect(200)["order"].clone();
        let path = format!("{ORDERS}/{}/topup", text(&order, "iccid"));
        let topup = gateway.post(&path, json!({ "packageCode": "JP-1GB-7D-TOPUP", "partnerRefId": "more" })).await.expect(200);
        let topup = text(&topup["topUpOrder"], "id");
        gateway.supplier("reject").await;
        let failing = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "refused" });
        gateway.post(ORDERS, failing).await.problem(502);
        gateway.supplier("ok").await;
        let failed = all_of(gateway, account)[0].id.clone();
        // Before there is an invoice that it could be for.
        let direct = pay_directly(gateway, account).await;
        let wish = json!({ "amountUsd": 20, "currency": "USDT", "network": "POLYGON" });
        let invoice = gateway.post(DEPOSIT, wish).await.expect(200);
        let hash = pay(gateway, &invoice, "20").await;
        gateway.pass_time(6_000);
        until_status(gateway, &invoice, "CONFIRMED").await;
        let (order_id, number, iccid) = (text(&order, "id"), text(&order, "orderNo"), text(&order, "iccid"));
        let paid = id(&invoice).to_string();
        let (transfer, for_invoice) = (transfer_of(gateway, &direct), transfer_of(gateway, &hash));
        for (name, expected) in [
            (order_id.clone(), &order_id),
            (format!("  {order_id}\n"), &order_id),
            (topup.clone(), &topup),
            (number.clone(), &order_id),
            (grouped(&number.to_lowercase()), &order_id),
            (iccid.clone(), &order_id),
            (grouped(&iccid), &order_id),
            (format!("{iccid}F"), &order_id),
            ("booking 7/ä".into(), &order_id),
            ("more".into(), &topup),
            ("refused".into(), &failed),
            (paid.clone(), &paid),
            (hash.clone(), &paid),
            (hash.to_uppercase().replace("0X", "0x"), &paid),
            (for_invoice, &paid),
            (direct.clone(), &transfer),
            (transfer.clone(), &transfer),
        ] {
            let hits = look_up(&gateway.app, account, &name).await.unwrap();
            assert_eq!(names(&hits), [expected.as_str()], "{name}");
            let theirs = match name.as_str() {
                "booking 7/ä" => vec![text(&theirs, "id")],
                _ => Vec::new(),
            };
            let hits = look_up(&gateway.app, other, &name).await.unwrap();
            assert_eq!(names(&hits), theirs, "{name}");
        }
        for nothing in ["", " ", "%", "ord_", "unknown", "SG0000000000", "0x", "a\0b", "Test Travel", &"x".repeat(5_000)] {
            assert!(names(&look_up(&gateway.app, account, nothing).await.unwrap()).is_empty(), "{nothing}");
        }
    }
}
