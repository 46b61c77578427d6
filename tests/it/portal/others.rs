//! Every path of the portal: to another partner nothing that it names is there, and no answer has a header that names what
//! opens a door without a login.

use std::collections::BTreeSet;

use serde_json::json;
use simgate::domain::money::Usd;
use simgate::domain::role::Role;

use super::developers::OPEN;
use super::order_batches::path_of;
use super::{EVE, OWNER};
use crate::support::buying::{MINUTE_MS, PLAN, UNTIL_FINAL_MS};
use crate::support::deposits::{pay, until_status};
use crate::support::desk::{account, account_of, form, is_in, member, member_of, sign_in};
use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::receiver::{Receiver, WEBHOOKS, subscribe};
use crate::support::visitor::Visitor;

const ROUTES: &str = include_str!("../../../src/http/mod.rs");
/// What names a person's own way in, or a time.
const NO_THINGS: [&str; 2] = ["/portal/join/{link}", "/portal/statement/{month}"];

/// Each path of the portal, as it is written where requests are led to their functions.
fn all_paths() -> BTreeSet<&'static str> {
    let quoted = ROUTES.split('"').filter(|text| *text == "/portal" || text.starts_with("/portal/"));
    quoted.filter(|path| !NO_THINGS.contains(path)).collect()
}

/// Those that have a name in them.
fn paths() -> BTreeSet<&'static str> {
    all_paths().into_iter().filter(|path| path.contains('{')).collect()
}

/// A path with the names of these things.
fn named(path: &str, things: &[(&str, String)]) -> String {
    let Some(_) = path.find('{') else { return path.into() };
    let named =
        path.replace("{id}", &thing(things, path)).replace("{delivery}", &thing(things, "{delivery}"));
    assert!(!named.contains('{'), "{named}");
    named
}

/// What the names stand for: a thing of the gateway's own partner for each beginning of a path.
async fn things(gateway: &Gateway, receiver: &Receiver) -> Vec<(&'static str, String)> {
    let mut owner = member(gateway, OWNER, Role::Owner).await;
    let (webhook, _) = subscribe(gateway, receiver, &[]).await;
    gateway.pass_time(1_000);
    let tested = gateway.post(&format!("{WEBHOOKS}/{webhook}/test"), json!({})).await.expect(200);
    let deposit = json!({ "amountUsd": 25, "currency": "USDC", "network": "BASE" });
    let invoice = gateway.post("/api/b2b/v1/balance/deposit", deposit).await.expect(200);
    let path = "/portal/orders/batch";
    let page = owner.open(path).await;
    let checked = owner.submit(&page, path, &[("orders", PLAN)]).await;
    let begun = owner.submit(&checked, path, &[("step", "place")]).await;
    let batch = path_of(&begun);
    let people = simgate::ops::team::list(&gateway.app, account(gateway).await).await.unwrap();
    // Somewhere else too, where they are still signed in.
    gateway.pass_time(2 * MINUTE_MS);
    let mut elsewhere = Visitor::new(gateway);
    sign_in(gateway, &mut elsewhere, OWNER).await;
    let settings = elsewhere.open("/portal/settings").await;
    let (_, session) = settings.text.split_once("/portal/sessions/").unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    vec![
        ("/portal/orders/batches/", batch.rsplit_once('/').unwrap().1.into()),
        ("/portal/orders/", text(&gateway.order(PLAN).await["id"])),
        ("/portal/deposits/", text(&invoice["invoiceId"])),
        ("/portal/keys/", gateway.key.id.clone()),
        ("/portal/webhooks/", webhook),
        ("{delivery}", text(&tested["delivery"]["id"])),
        ("/portal/team/", people[0].id.to_string()),
        ("/portal/sessions/", session.split('/').next().unwrap().into()),
    ]
}

fn thing(things: &[(&str, String)], path: &str) -> String {
    let found = things.iter().find(|(begins, _)| path.starts_with(begins));
    found.unwrap_or_else(|| panic!("no thing is made for {path}")).1.clone()
}

both_databases! {
    async fn what_others_have_is_not_there(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        let things = things(gateway, &receiver).await;
        let (other, _) = gateway.partner("Other Travel", Usd::dollars(100)).await;
        let other = account_of(gateway, &other).await;
        let mut eve = member_of(gateway, other, EVE, Role::Owner).await;
        let token = form(&mut eve).await;
        let paths = paths();
        assert!(paths.len() > 20, "{paths:?}");
        for path in paths {
            let named = named(path, &things);
            let (seen, sent) = (eve.open(&named).await, eve.post(&named, &[("form", &token)]).await);
            // A path takes GET, POST or both.
            let told: BTreeSet<u16> = [seen.status, sent.status].into();
            assert!(told.contains(&404) && told.is_subset(&[404, 405].into()), "{path}: {told:?}");
        }
    }

    /// An invoice's id and the tokens of an eSIM's pages are keys: they may stand on pages, in no header.
    async fn what_opens_a_door_is_in_no_header(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        let things = things(gateway, &receiver).await;
        let order = gateway.get(&format!("/api/b2b/v1/orders/{}", thing(&things, "/portal/orders/"))).await.expect(200);
        let (_, token) = order["order"]["installUrl"].as_str().unwrap().rsplit_once('/').unwrap();
        let deposit = json!({ "amountUsd": 26, "currency": "USDC", "network": "BASE" });
        let paid = gateway.post("/api/b2b/v1/balance/deposit", deposit).await.expect(200);
        let hash = pay(gateway, &paid, "26").await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &paid, "CONFIRMED").await;
        let invoice = thing(&things, "/portal/deposits/");
        let own = |answer: &Reply| {
            for (name, value) in &answer.headers {
                let value = String::from_utf8_lossy(value.as_bytes());
                assert!(!value.contains("inv_") && !value.contains(token), "{name}: {value}");
            }
        };
        let mut owner = Visitor::new(gateway);
        gateway.pass_time(8 * MINUTE_MS);
        sign_in(gateway, &mut owner, OWNER).await;
        let form = form(&mut owner).await;
        // What is searched for, seen, wanted before a sign-in, and opened.
        for path in [format!("/portal/search?q={invoice}"), format!("/portal/search?q={hash}"), format!("/portal/orders?q={invoice}")] {
            let page = owner.open(&path).await;
            assert!(page.status == 200 && page.text.contains("inv_"), "{path}: {}", page.text);
            own(&page);
        }
        let opened = owner.post("/portal/deposits", &[("form", &form), ("amountUsd", "27"), ("means", "USDC BASE")]).await;
        assert!(opened.status == 200 && opened.text.contains("/pay/inv_"), "{}", opened.text);
        own(&opened);
        for path in all_paths() {
            let named = named(path, &things);
            own(&Visitor::new(gateway).open(&named).await);
            own(&Visitor::new(gateway).post(&named, &[]).await);
            own(&owner.open(&named).await);
            // Signing out would end it for the paths after this one.
            if !path.starts_with("/portal/sign-out") {
                own(&owner.post(&named, &[("form", &form), ("means", "USDC BASE"), ("email", EVE)]).await);
            }
        }
        assert!(is_in(&mut owner).await, "it was seen by somebody who is signed in");
    }
}
