//! The statement on pages and as a file: the same facts as the API's, line by line; its months add up.

use serde_json::{Value, json};
use simgate::domain::ids::AccountNo;
use simgate::domain::ledger::{CreditKind, Entry};
use simgate::domain::money::Usd;
use simgate::domain::role::Role;
use simgate::domain::time::Time;
use simgate::ops::accounts;
use simgate::ops::operator::{self, Adjustment, Direction};
use simgate::start::{self, Role as Process};
use simgate::store::ledger::{self, Note};
use simgate::store::tx::Tx;
use simgate::wire::dates;

use super::support::{OPEN, account_of, attributes, cells, member, member_of, plain};
use crate::support::database::{on_plain_thread, rows};
use crate::support::deposits::until_status;
use crate::support::harness::{Gateway, Reply, both_databases, check_books};
use crate::support::shapes::{DEPOSIT, ORDERS};
use crate::support::visitor::Visitor;

const STATEMENT: &str = "/portal/statement";
const ARMED: &str = "=HYPERLINK(\"https://evil.example\",\"a, b\")";
const UNTIL_FINAL_MS: i64 = 6_000;
const HOURS_25_MS: i64 = 25 * 3_600_000;

/// So many credits to the gateway's own partner, each a second after the one before, from a time on.
async fn write(gateway: &Gateway, lines: i64, began: Time) {
    write_to(gateway, account_of(gateway, &gateway.partner).await, lines, began).await;
}

async fn write_to(gateway: &Gateway, account: AccountNo, lines: i64, began: Time) {
    let entries: Vec<(Entry, Time)> = (0..lines)
        .map(|line| {
            let (id, amount) = (gateway.app.new_entry_id(), Usd::from_micros(1_000_000 + line));
            (Entry::operator_credit(&id, CreditKind::Promo, account, amount), began.plus_millis(line * 1_000))
        })
        .collect();
    let post = move |tx: &mut Tx| {
        let note = Note { actor: None, text: Some("a line") };
        entries.iter().try_for_each(|(entry, at)| ledger::post(tx, entry, *at, note).map(drop))
    };
    gateway.app.store.write(account.0, post).await.unwrap();
}

/// Every line that the API lists, in pages of a few.
async fn listed(gateway: &Gateway, query: &str) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/b2b/v1/balance/transactions?limit=7{query}{after}");
        let part = gateway.get(&path).await.expect(200);
        all.extend(part["transactions"].as_array().unwrap().clone());
        match part["nextAfter"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

/// A value as a cell of the file.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(['=', '+', '-', '@']) => format!("'{text}"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[track_caller]
fn same(file: &Reply, listed: &[Value]) {
    assert_eq!((file.status, file.header("content-type")), (200, "text/csv; charset=utf-8"), "{}", file.text);
    let lines = cells(&file.text);
    let names = ["line", "type", "amountUsd", "balanceUsd", "orderId", "invoiceId", "note", "createdAt"];
    assert_eq!(lines[0], names);
    assert_eq!(lines.len(), listed.len() + 1);
    for (line, transaction) in lines[1..].iter().zip(listed) {
        assert_eq!(names.len(), transaction.as_object().unwrap().len());
        assert_eq!(line, &names.map(|name| cell(&transaction[name])));
    }
}

/// Something of everything: orders, a cancelled one, a deposit, and a note that looks like a formula.
async fn everything(gateway: &Gateway) -> (String, String) {
    let order = gateway.order("JP-1GB-7D").await["id"].as_str().unwrap().to_string();
    let cancelled = gateway.order("JP-3GB-30D").await;
    let cancel = format!("{ORDERS}/{}/cancel", cancelled["id"].as_str().unwrap());
    gateway.send_as(&gateway.key, "POST", &cancel, None).await.expect(200);
    let body = json!({ "amountUsd": 25, "currency": "USDC", "network": "BASE" });
    let invoice = gateway.post(DEPOSIT, body).await.expect(200);
    crate::support::deposits::pay(gateway, &invoice, "25").await;
    gateway.pass_time(UNTIL_FINAL_MS);
    until_status(gateway, &invoice, "CONFIRMED").await;
    let account = account_of(gateway, &gateway.partner).await;
    let credit = Adjustment {
        account,
        amount: Usd::from_micros(1_234_567),
        kind: CreditKind::Bank,
        reason: ARMED.into(),
    };
    operator::adjust_wallet(&gateway.app, "test", Direction::Credit, credit, None).await.unwrap();
    (order, invoice["invoiceId"].as_str().unwrap().to_string())
}

/// The lines on a page: what each changed, and the balance after it.
fn figures(page: &Reply) -> Vec<String> {
    assert_eq!(page.status, 200, "{}", page.text);
    let (_, table) = page.text.split_once("<tbody>").unwrap_or(("", ""));
    let cells = table.split("<td class=\"number").skip(1);
    cells.map(|cell| cell.split_once('>').unwrap().1.split('<').next().unwrap().to_string()).collect()
}

fn linked(page: &Reply, rel: &str) -> Option<String> {
    let (_, rest) = page.text.split_once(&format!("rel=\"{rel}\" href=\""))?;
    Some(plain(rest.split('"').next().unwrap()))
}

/// The month that is so many after this one, as pages name it.
fn month(gateway: &Gateway, months: u16) -> String {
    let today = dates::date(gateway.app.now());
    let (year, month): (u16, u16) = (today[..4].parse().unwrap(), today[5..7].parse().unwrap());
    let month = month - 1 + months;
    format!("{:04}-{:02}", year + month / 12, month % 12 + 1)
}

fn april() -> Time {
    dates::parse("2025-04-01").unwrap()
}

/// What the pages of February to May say of months that have lines of one type only: what they opened with, how many lines
/// there were, what these came to, and what was there in the end.
async fn four_months(viewer: &mut Visitor) -> [[String; 4]; 4] {
    let mut months = Vec::new();
    for month in ["2025-02", "2025-03", "2025-04", "2025-05"] {
        let page = viewer.open(&format!("{STATEMENT}/{month}")).await;
        let between = |start: &str, end: &str| {
            let (_, rest) = page.text.split_once(start).unwrap_or_else(|| panic!("{start} in {}", page.text));
            rest.split(end).next().unwrap().to_string()
        };
        let credited = between("Credited by the operator <span class=\"soft small\">", "</dd></div>");
        let (count, sum) = credited.split_once("</span></dt><dd>").unwrap();
        let opening = between("Opening balance</dt><dd>", "</dd>");
        let closing = between("Closing balance</dt><dd>", "</dd>");
        months.push([opening, count.to_string(), sum.to_string(), closing]);
    }
    months.try_into().unwrap()
}

/// The last line up to which the lines of a statement are added up.
fn last_sum(gateway: &Gateway, account: AccountNo) -> String {
    let sql = format!("SELECT CAST(MAX(line) AS TEXT) FROM statement_sums WHERE account = {}", account.0);
    rows(&gateway.app.settings.database, &sql).remove(0).remove(0)
}

both_databases! {
    async fn the_file_is_the_apis_list(gateway) with [OPEN[0], OPEN[1]] {
        gateway.away_from_midnight();
        everything(gateway).await;
        let mut viewer = member(gateway, Role::Viewer).await;
        let all = listed(gateway, "").await;
        assert!(all.len() >= 6 && all[0]["note"] == ARMED, "{all:?}");
        let file = viewer.open("/portal/statement.csv").await;
        assert_eq!(file.header("content-disposition"), "attachment; filename=\"statement.csv\"");
        assert_eq!(file.header("cache-control"), "no-store");
        same(&file, &all);
        let today = dates::date(gateway.app.now());
        let tomorrow = dates::date(gateway.app.now().plus_days(1));
        let yesterday = dates::date(gateway.app.now().plus_days(-1));
        let half = all[all.len() / 2]["createdAt"].as_str().unwrap();
        for (query, api) in [
            (format!("from={today}&to={today}"), format!("&from={today}&to={tomorrow}")),
            (format!("from={half}"), format!("&from={half}")),
            (format!("to={half}"), format!("&to={half}")),
            (format!("to={yesterday}"), format!("&to={today}")),
            ("from=&to=".into(), String::new()),
        ] {
            same(&viewer.open(&format!("/portal/statement.csv?{query}")).await, &listed(gateway, &api).await);
        }
        assert!(listed(gateway, &format!("&from={half}")).await.len() < all.len());
        let mut by_month = viewer.open(&format!("/portal/statement.csv?month={}", month(gateway, 0))).await;
        assert!(by_month.header("content-disposition").contains("statement-20"));
        // The month's is in the order of its page.
        let (head, rest) = by_month.text.split_once('\n').unwrap();
        let mut lines: Vec<&str> = rest.lines().collect();
        lines.reverse();
        by_month.text = format!("{head}\n{}\n", lines.join("\n"));
        same(&by_month, &all);
        for wrong in ["from=yesterday", "to=1", "month=2026-13", "month=x"] {
            assert_eq!(viewer.open(&format!("/portal/statement.csv?{wrong}")).await.status, 400, "{wrong}");
        }
    }

    async fn everybody_reads_it_in_words_and_is_led_on(gateway) with [OPEN[0], OPEN[1]] {
        let (order, invoice) = everything(gateway).await;
        let bought = gateway.get(&format!("{ORDERS}/{order}")).await.expect(200)["order"].clone();
        let (iccid, number) = (bought["iccid"].as_str().unwrap(), bought["orderNo"].as_str().unwrap());
        gateway.post(&format!("{ORDERS}/{iccid}/topup"), json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.expect(200);
        let plans = gateway.get(&format!("{ORDERS}/{iccid}/topup-plans")).await.expect(200);
        let filled = plans["plans"].as_array().unwrap().iter().find(|plan| plan["packageCode"] == "JP-1GB-7D-TOPUP").unwrap().clone();
        let named = [("An eSIM was bought", bought["planName"].clone(), number), ("A top-up was bought", filled["name"].clone(), number)];
        for role in Role::ALL {
            let mut visitor = member(gateway, role).await;
            let page = visitor.open(STATEMENT).await;
            assert_eq!(page.status, 200, "{}", page.text);
            for said in ["An eSIM was bought", "Given back: the order was cancelled", "Money was paid in", "Credited by the operator: =HYPERLINK(&#34;https"] {
                assert!(page.text.contains(said), "{said} in {}", page.text);
            }
            // Each line of an order names its plan and its number; a top-up those of its eSIM's order.
            for (what, plan, number) in &named {
                let line = format!("\">{what}</a><br><span class=\"small soft\">{}, order {number}</span>", plan.as_str().unwrap());
                assert!(page.text.contains(&line), "{line} in {}", page.text);
            }
            let links = attributes(&page.text, "href");
            assert_eq!(links.iter().filter(|path| **path == format!("/portal/orders/{order}")).count(), 2);
            assert!(links.contains(&format!("/portal/orders/{order}")) && links.contains(&format!("/portal/deposits/{invoice}")), "{links:?}");
            assert_eq!(figures(&page).len(), 2 * listed(gateway, "").await.len());
            let wrong = visitor.open("/portal/statement?from=yesterday").await;
            assert!(wrong.status == 400 && wrong.text.contains("Please check"), "{}", wrong.text);
        }
        let (other, _) = gateway.partner("Other Travel", Usd::ZERO).await;
        let mut stranger = member_of(gateway, &other, "owner@other.example", Role::Owner).await;
        let page = stranger.open(STATEMENT).await;
        assert!(page.text.contains("Nothing has moved yet") && !page.text.contains(&invoice), "{}", page.text);
        assert_eq!(cells(&stranger.open("/portal/statement.csv").await.text).len(), 1);
    }

    async fn pages_lead_to_older_lines_and_back(gateway) with [OPEN[0], OPEN[1]] {
        gateway.away_from_midnight();
        let today = dates::date(gateway.app.now());
        let midnight = dates::parse(&today).unwrap();
        // Two days ago, and in the first hours of today, which are over.
        write(gateway, 130, midnight.plus_days(-2)).await;
        write(gateway, 60, gateway.app.now().plus_millis(-100_000)).await;
        let mut viewer = member(gateway, Role::Viewer).await;
        for (query, count) in [(String::new(), 191), (format!("?to={}", dates::date(midnight.plus_days(-1))), 130)] {
            let (mut pages, mut path) = (Vec::new(), format!("{STATEMENT}{query}"));
            loop {
                let page = viewer.open(&path).await;
                pages.push(figures(&page));
                match linked(&page, "next") {
                    Some(next) => path = next,
                    None => {
                        assert_eq!(pages.iter().map(Vec::len).sum::<usize>(), 2 * count, "{query}");
                        let mut back = linked(&page, "prev");
                        for expected in pages.iter().rev().skip(1) {
                            let page = viewer.open(&back.unwrap()).await;
                            assert_eq!(&figures(&page), expected);
                            back = linked(&page, "prev");
                        }
                        assert_eq!(back, None, "the first page has nothing newer");
                        break;
                    }
                }
            }
        }
        let empty = viewer.open("/portal/statement?from=2001-01-01&to=2001-01-02").await;
        assert!(empty.text.contains("Nothing moved in this time"), "{}", empty.text);
        // The last line is of today: tomorrow is still to come, and once it has come nothing has moved since.
        let tomorrow = format!("/portal/statement?from={}", dates::date(midnight.plus_days(1)));
        let ahead = viewer.open(&tomorrow).await;
        assert!(ahead.text.contains("These days are still to come"), "{}", ahead.text);
        gateway.pass_time(HOURS_25_MS);
        let mut viewer = member(gateway, Role::Finance).await;
        let since = viewer.open(&tomorrow).await;
        assert!(since.text.contains("Nothing has moved since the last line") && since.text.contains(&format!("datetime=\"{today}")), "{}", since.text);
        assert_eq!(viewer.open("/portal/statement?older=x").await.status, 400);
        assert_eq!(viewer.open("/portal/statement?older=c999999").await.status, 200);
        assert_eq!(viewer.open("/portal/statement?newer=c999999").await.status, 200);
    }

    async fn a_month_is_printed_with_who_and_how_much(gateway) with [OPEN[0], OPEN[1], ("brand_details", "Acme Ltd | 1 High Street | VAT 12")] {
        gateway.away_from_midnight();
        let (order, invoice) = everything(gateway).await;
        let mut viewer = member(gateway, Role::Viewer).await;
        let path = format!("{STATEMENT}/{}", month(gateway, 0));
        let page = viewer.open(&path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let balance = Usd::parse(&gateway.balance().await).unwrap().priced();
        for said in ["Acme Ltd<br>1 High Street<br>VAT 12", "Test Travel", &gateway.partner, "Opening balance</dt><dd>0.00 USD", "Balance so far", &balance] {
            assert!(page.text.contains(said), "{said} in {}", page.text);
        }
        let bought = gateway.price("JP-1GB-7D").await.plus(gateway.price("JP-3GB-30D").await).priced();
        assert!(page.text.contains(&format!("2 times</span></dt><dd>−{bought} USD")), "{}", page.text);
        assert!(page.text.contains(&format!("/portal/orders/{order}")) && page.text.contains(&format!("/portal/deposits/{invoice}")));
        let number = gateway.get(&format!("{ORDERS}/{order}")).await.expect(200)["order"]["orderNo"].as_str().unwrap().to_string();
        assert!(page.text.contains(&format!(", order {number}</span>")), "{}", page.text);
        let mut figures = figures(&page);
        assert_eq!(figures.pop(), Some(balance), "the last line ends with what the month does");
        // Many lines are left to the file.
        write(gateway, 300, gateway.app.now().plus_millis(-1_000_000)).await;
        let page = viewer.open(&path).await;
        assert!(!page.text.contains("<tbody>") && page.text.contains("lines, which are too many for a page"), "{}", page.text);
        let file = viewer.open(&format!("/portal/statement.csv?month={}", month(gateway, 0))).await;
        assert_eq!(cells(&file.text).len(), 1 + listed(gateway, "").await.len());
        for unknown in [month(gateway, 1), "2026-13".into(), "2026".into(), "x".into()] {
            assert_eq!(viewer.open(&format!("{STATEMENT}/{unknown}")).await.status, 404, "{unknown}");
        }
        assert!(viewer.open(STATEMENT).await.text.contains(&format!("href=\"{path}\"")));
        assert_eq!(Visitor::new(gateway).open(&path).await.status, 303);
    }

    /// What the lines of a long statement come to is written down beforehand: its months say the same before and after, whoever
    /// does it, and wherever they begin.
    async fn the_months_of_a_long_statement_add_up(gateway) with [OPEN[0], OPEN[1]] {
        let (partner, _) = gateway.partner("Long Travel", Usd::ZERO).await;
        let account = account_of(gateway, &partner).await;
        // Some in February, seven hundred before April begins, five hundred in it; a hundred more of it say a moment earlier.
        for (lines, seconds) in [(30, -4_000_000), (1_200, -700), (150, -100), (1_150, 3_600), (20, 30 * 86_400)] {
            write_to(gateway, account, lines, april().plus_millis(seconds * 1_000)).await;
        }
        let mut viewer = member_of(gateway, &partner, "eye@long.example", Role::Viewer).await;
        let expected = [
            ["0.00 USD", "30 times", "+30.000435 USD", "30.000435 USD"],
            ["30.000435 USD", "700 times", "+700.24465 USD", "730.245085 USD"],
            ["730.245085 USD", "1800 times", "+1801.1466 USD", "2531.391685 USD"],
            ["2531.391685 USD", "20 times", "+20.00019 USD", "2551.391875 USD"],
        ];
        assert_eq!(four_months(&mut viewer).await, expected);
        let elsewhere = start::open(gateway.app.settings.clone(), Process::Command).await.unwrap();
        for _ in 0..3 {
            let (here, there) = tokio::join!(accounts::month::round(&gateway.app), accounts::month::round(&elsewhere));
            here.unwrap();
            there.unwrap();
        }
        on_plain_thread(|| elsewhere.store.close());
        assert_eq!(last_sum(gateway, account), "2400");
        assert_eq!(four_months(&mut viewer).await, expected);
        let file = viewer.open("/portal/statement.csv?month=2025-04").await;
        assert_eq!(cells(&file.text).len(), 1 + 1800);
        // What moves later is in none of them.
        write_to(gateway, account, 450, gateway.app.now()).await;
        assert!(!accounts::month::round(&gateway.app).await.unwrap());
        assert_eq!(last_sum(gateway, account), "3000");
        assert_eq!(four_months(&mut viewer).await, expected);
        check_books(&gateway.app).await;
    }
}
