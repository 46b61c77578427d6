//! Every path of the portal that names a thing: to another partner, none of them is there.

use std::collections::BTreeSet;

use serde_json::json;
use simgate::domain::money::Usd;
use simgate::domain::role::Role;

use super::developers::OPEN;
use super::{EVE, OWNER};
use crate::support::buying::{MINUTE_MS, PLAN};
use crate::support::desk::{account, account_of, form, member, member_of, sign_in};
use crate::support::harness::{Gateway, both_databases};
use crate::support::receiver::{Receiver, WEBHOOKS, subscribe};
use crate::support::visitor::Visitor;

const ROUTES: &str = include_str!("../../../src/http/mod.rs");
/// What names a person's own way in, or a time.
const NO_THINGS: [&str; 2] = ["/portal/join/{link}", "/portal/statement/{month}"];

/// Each path of the portal that has a name in it, as it is written where requests are led to their functions.
fn paths() -> BTreeSet<&'static str> {
    let quoted = ROUTES.split('"').filter(|text| text.starts_with("/portal/") && text.contains('{'));
    quoted.filter(|path| !NO_THINGS.contains(path)).collect()
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
    let (batch, _) = begun.header("location").split_once('?').unwrap();
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
            let named = path.replace("{id}", &thing(&things, path)).replace("{delivery}", &thing(&things, "{delivery}"));
            assert!(!named.contains('{'), "{named}");
            let (seen, sent) = (eve.open(&named).await, eve.post(&named, &[("form", &token)]).await);
            // A path takes GET, POST or both.
            let told: BTreeSet<u16> = [seen.status, sent.status].into();
            assert!(told.contains(&404) && told.is_subset(&[404, 405].into()), "{path}: {told:?}");
        }
    }
}
