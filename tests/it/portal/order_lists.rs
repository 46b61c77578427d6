//! The list of orders at the portal: filters that live in the address, pages both ways, a file of the same, and the search.

use serde_json::json;
use simgate::domain::role::Role;

use super::support::{OPEN, attributes, cells, member};
use crate::support::buying::{PLAN, UNTIL_FINAL_MS};
use crate::support::deposits::{id, pay, until_status};
use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{DEPOSIT, ORDERS};

const DAY_MS: i64 = 86_400_000;

/// The orders that a page links to, from top to bottom.
fn listed(page: &str) -> Vec<String> {
    attributes(page, "href").into_iter().filter(|path| path.starts_with("/portal/orders/ord_")).collect()
}

/// Where the link with these words leads.
fn link(page: &str, words: &str) -> Option<String> {
    let before = page.split(&format!(">{words}</a>")).next().filter(|before| before.len() < page.len())?;
    attributes(before, "href").pop()
}

async fn place(gateway: &Gateway, reference: &str) -> String {
    let order = gateway.delivered(json!({ "packageCode": PLAN, "partnerRefId": reference })).await;
    format!("/portal/orders/{}", order["id"].as_str().unwrap())
}

both_databases! {
    async fn pages_lead_both_ways_and_keep_the_filter(gateway) with [OPEN[0], OPEN[1]] {
        gateway.away_from_midnight();
        let mut placed = Vec::new();
        for n in 0..28 {
            placed.push(place(gateway, &format!("b-{n}")).await);
        }
        placed.reverse();
        let mut viewer = member(gateway, Role::Viewer).await;
        for (filter, total) in [("", true), ("?state=FULFILLED", false)] {
            let first = viewer.open(&format!("/portal/orders{filter}")).await;
            assert_eq!(listed(&first.text), placed[..25], "{filter}");
            assert_eq!(first.text.contains("of 28 in all"), total, "{filter}");
            assert_eq!(link(&first.text, "Newer"), None);
            let older = link(&first.text, "Older").unwrap();
            assert_eq!(older.contains("state=FULFILLED"), !total, "{older}");
            let second = viewer.open(&older).await;
            assert_eq!(listed(&second.text), placed[25..], "{filter}");
            assert_eq!(link(&second.text, "Older"), None);
            let back = viewer.open(&link(&second.text, "Newer").unwrap()).await;
            assert_eq!(listed(&back.text), placed[..25], "{filter}");
        }
        assert!(viewer.open("/portal/orders?state=FAILED").await.text.contains("No orders here"));
    }

    async fn days_are_chosen_and_mistakes_told(gateway) with [OPEN[0], OPEN[1]] {
        gateway.away_from_midnight();
        let yesterday = place(gateway, "old").await;
        let day = |page: &str| attributes(page, "datetime").into_iter().next().unwrap()[..10].to_string();
        let mut viewer = member(gateway, Role::Viewer).await;
        let then = day(&viewer.open("/portal/orders").await.text);
        gateway.pass_time(DAY_MS);
        let mut viewer = member(gateway, Role::Finance).await;
        let today = place(gateway, "new").await;
        let now = day(&viewer.open("/portal/orders").await.text);
        assert_ne!(then, now);
        for (query, expected) in [
            (format!("from={now}"), vec![&today]),
            (format!("to={then}"), vec![&yesterday]),
            (format!("from={then}&to={now}"), vec![&today, &yesterday]),
            (format!("from={now}&to={then}"), vec![]),
        ] {
            let page = viewer.open(&format!("/portal/orders?{query}&state=&q=")).await;
            assert_eq!(listed(&page.text).iter().collect::<Vec<_>>(), expected, "{query}");
            // What was chosen stays in the form, and the file is of the same orders.
            assert!(query.split('&').all(|pair| page.text.contains(&format!("value=\"{}\"", pair.split_once('=').unwrap().1))), "{}", page.text);
            let file = viewer.open(&format!("/portal/orders.csv?{query}")).await;
            assert_eq!(cells(&file.text).len(), expected.len() + 1, "{query}");
        }
        let wrong = viewer.open("/portal/orders?from=%3Cb%3E").await;
        assert!(wrong.status == 400 && wrong.text.contains("<title>Please check: ") && !wrong.text.contains("<b>"), "{}", wrong.text);
        assert_eq!(viewer.open("/portal/orders.csv?to=soon").await.status, 400);
    }

    async fn the_file_has_every_order_with_its_topups(gateway) with [OPEN[0], OPEN[1]] {
        let mut viewer = member(gateway, Role::Viewer).await;
        let order = gateway.delivered(json!({ "packageCode": PLAN, "partnerRefId": "=cmd(1)" })).await;
        let topup = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        gateway.post(&topup, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.expect(200);
        for n in 0..3 {
            place(gateway, &format!("a, \"{n}\"")).await;
        }
        gateway.supplier("reject").await;
        gateway.post(ORDERS, json!({ "packageCode": PLAN, "partnerRefId": "failed" })).await.expect(502);
        let file = viewer.open("/portal/orders.csv").await;
        assert_eq!((file.header("content-type"), file.header("content-disposition")), ("text/csv; charset=utf-8", "attachment; filename=\"orders.csv\""));
        assert_eq!(file.header("cache-control"), "no-store");
        let lines = cells(&file.text);
        assert!(lines.iter().all(|line| line.len() == 12), "{lines:?}");
        let column = |nth: usize| lines[1..].iter().map(|line| line[nth].as_str()).collect::<Vec<_>>();
        assert_eq!(column(3)[0], "FAILED");
        assert_eq!(column(7)[0], column(8)[0], "what failed was given back");
        let references = column(10);
        assert_eq!(references.iter().filter(|cell| cell.starts_with("a, \"")).count(), 3);
        assert!(references.contains(&"'=cmd(1)"), "a spreadsheet must not run it: {references:?}");
        assert_eq!(column(1).iter().filter(|id| id.starts_with("ord_")).count(), 5);
        assert_eq!(column(11)[1], gateway.key.id);
        assert!(!file.text.contains("LPA:") && !file.text.contains("/esim/"));
        let only = cells(&viewer.open("/portal/orders.csv?q=%3Dcmd(1)").await.text);
        let wanted: Vec<_> = lines.iter().filter(|line| line[10] == "'=cmd(1)").cloned().collect();
        assert_eq!((only[1..].to_vec(), wanted.len()), (wanted, 1), "what was searched for, without the rest");
    }

    async fn the_search_box_leads_to_one_order_and_lists_all_else(gateway) with [OPEN[0], OPEN[1]] {
        let order = gateway.delivered(json!({ "packageCode": PLAN, "partnerRefId": "both" })).await;
        let path = format!("/portal/orders/{}", order["id"].as_str().unwrap());
        let mut viewer = member(gateway, Role::Viewer).await;
        let page = viewer.open("/portal/orders").await;
        assert!(page.text.contains("action=\"/portal/search\""), "{}", page.text);
        let number = order["orderNo"].as_str().unwrap();
        let spaced = format!("{}+{}", &number[..6].to_lowercase(), &number[6..]);
        for name in [order["id"].as_str().unwrap(), number, &spaced, order["iccid"].as_str().unwrap(), "both"] {
            let led = viewer.open(&format!("/portal/search?q={name}")).await;
            assert_eq!((led.status, led.header("location")), (303, &*path), "{name}");
            let found = viewer.open(&format!("/portal/orders?q={name}")).await;
            assert_eq!(listed(&found.text), std::slice::from_ref(&path), "{name}");
        }
        // A deposit is found by its transaction, beside orders or alone.
        let opened = gateway.post(DEPOSIT, json!({ "amountUsd": 10, "currency": "USDC", "network": "POLYGON" })).await.expect(200);
        let invoice = id(&opened).to_string();
        let hash = pay(gateway, &opened, "10").await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &opened, "CONFIRMED").await;
        for name in [&invoice, &hash] {
            let page = viewer.open(&format!("/portal/search?q={name}")).await;
            let leads = attributes(&page.text, "href").contains(&format!("/portal/deposits/{invoice}"));
            assert!(page.status == 200 && leads, "{name}: {}", page.text);
            let page = viewer.open(&format!("/portal/orders?q={name}")).await;
            assert!(page.text.contains("Deposits with this name"), "{}", page.text);
        }
        let body = json!({ "packageCode": PLAN, "partnerRefId": invoice });
        gateway.post(ORDERS, body).await.expect(200);
        let several = viewer.open(&format!("/portal/search?q={invoice}")).await;
        assert!(several.status == 200 && listed(&several.text).len() == 1 && several.text.contains("Credited"), "{}", several.text);
        for nothing in ["", "nothing", "%00", "%3Cscript%3E"] {
            let page = viewer.open(&format!("/portal/search?q={nothing}")).await;
            assert!(page.status == 200 && page.text.contains("Nothing has this name") && !page.text.contains("<script>"), "{nothing}: {}", page.text);
        }
    }
}
