//! References at the portal: a partner sees those that it gave, wherever an order is shown, and never one of ours.

use serde_json::{Value, json};
use simgate::domain::role::Role;
use simgate::store::Location;

use super::order_batches::{checked, ended, path_of};
use super::support::{OPEN, cells, member};
use crate::support::buying::PLAN;
use crate::support::database::{self, rows};
use crate::support::events;
use crate::support::harness::both_databases;
use crate::support::shapes::ORDERS;

const NEW: &str = "/portal/orders/new";
const BATCH: &str = "/portal/orders/batch";
/// A partner's own, however much they look like what we make.
const LOOKS: [&str; 2] = ["portal 0123456789abcdef0123456789abcdef", "bat_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U-1"];

/// How many of these have no reference; the others in their order.
fn given(references: Vec<Option<String>>) -> (usize, Vec<String>) {
    let none = references.iter().filter(|reference| reference.is_none()).count();
    let mut given: Vec<String> = references.into_iter().flatten().collect();
    given.sort();
    (none, given)
}

fn reference_of(order: &Value) -> Option<String> {
    assert!(order.get("partnerRefId").is_some(), "{order}");
    order["partnerRefId"].as_str().map(str::to_string)
}

both_databases! {
    async fn a_partner_sees_only_references_that_it_gave(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let page = owner.open(&format!("{NEW}?plan={PLAN}")).await;
        let placed = owner.submit(&page, NEW, &[("reference", "  ")]).await;
        assert_eq!(placed.status, 303, "{}", placed.text);
        let order = placed.header("location").split('?').next().unwrap().to_string();
        let data = format!("{order}/data");
        let page = owner.open(&data).await;
        let choice = page.text.split("name=\"choice\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_string();
        assert_eq!(owner.submit(&page, &data, &[("choice", &choice)]).await.status, 303);
        let check = checked(&mut owner, &format!("2 x {PLAN}\n{PLAN}, trip-1\n{PLAN}, {}", LOOKS[1])).await;
        let list = path_of(&owner.submit(&check, BATCH, &[("step", "place")]).await);
        ended(gateway, &mut owner, &list).await;
        gateway.delivered(json!({ "packageCode": PLAN, "partnerRefId": LOOKS[0] })).await;
        let theirs = vec![LOOKS[1].to_string(), LOOKS[0].to_string(), "trip-1".to_string()];

        // The page of the order, the list, the file with the top-up, and the search.
        assert!(owner.open(&order).await.text.contains("<dt>Reference</dt><dd>none</dd>"));
        let listed = owner.open("/portal/orders").await;
        assert_eq!(listed.text.matches("no reference").count(), 3, "{}", listed.text);
        assert!(theirs.iter().all(|reference| listed.text.contains(&format!("\"long\">{reference}<br>"))), "{}", listed.text);
        let file = cells(&owner.open("/portal/orders.csv").await.text);
        let column = file[1..].iter().map(|line| Some(line[10].clone()).filter(|cell| !cell.is_empty()));
        assert_eq!(given(column.collect()), (4, theirs.clone()));
        for reference in LOOKS {
            let found = owner.open(&format!("/portal/search?q={}", reference.replace(' ', "+"))).await;
            assert!(found.header("location").starts_with("/portal/orders/ord_"), "{}", found.text);
        }

        // The API, and what it tells of each order.
        let orders = gateway.get(ORDERS).await.expect(200)["orders"].as_array().unwrap().clone();
        assert_eq!(given(orders.iter().map(reference_of).collect()), (3, theirs.clone()));
        let topups: Vec<&Value> = orders.iter().flat_map(|order| order["topUps"].as_array().unwrap()).collect();
        assert_eq!(topups.into_iter().map(reference_of).collect::<Vec<_>>(), [None]);
        let told = events::all(gateway).await;
        let told = told.iter().map(|event| &event["data"]).filter(|data| data.get("partnerRefId").is_some());
        let told = told.map(reference_of);
        assert_eq!(given(told.collect()), (4, theirs));
        // Ours as they were made before: the migration makes them what they are, and leaves theirs.
        let (url, hidden) = (&gateway.app.settings.database, "\u{1f}");
        let all = ["SELECT reference FROM orders ORDER BY id", "SELECT reference FROM claims ORDER BY order_id"];
        let before = all.map(|sql| rows(url, sql));
        for table in ["orders", "claims"] {
            let strip = format!("UPDATE {table} SET reference = substr(reference, 2) WHERE substr(reference, 1, 1) = '{hidden}'");
            database::execute(url, &strip).unwrap();
        }
        assert!(owner.open("/portal/orders.csv").await.text.contains("bat_"));
        let migration = match url {
            Location::Sqlite(_) => include_str!("../../../migrations/sqlite/V41__references_of_ours.sql"),
            Location::Postgres(_) => include_str!("../../../migrations/postgres/V41__references_of_ours.sql"),
        };
        database::execute(url, migration).unwrap();
        assert_eq!(all.map(|sql| rows(url, sql)), before);
        for path in ["/portal", "/portal/statement", "/portal/statement.csv", "/portal/team/log"] {
            let page = owner.open(path).await;
            assert!(!page.text.contains("portal 0") && !page.text.contains('\u{1f}'), "{path}: {}", page.text);
        }
    }
}
