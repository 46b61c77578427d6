//! Who may do what with orders at the portal: every route in every role, and what is another partner's.

use simgate::domain::money::Usd;
use simgate::domain::role::{Ability, Role};

use super::support::{OPEN, member, member_of};
use crate::support::buying::PLAN;
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::mails;
use crate::support::visitor::{Visitor, hidden};

/// What a form sends.
type Fields = &'static [(&'static str, &'static str)];

/// Pages that everybody in the team may open, and those for who handles orders.
const READ: [&str; 7] = [
    "/portal/orders",
    "/portal/orders?state=FULFILLED",
    "/portal/orders?q={number}",
    "/portal/orders.csv",
    "/portal/orders/{id}",
    "/portal/search?q=nothing",
    "/portal/orders/batches/{batch}",
];
const ASK: [&str; 6] = [
    "/portal/orders/new",
    "/portal/orders/new?plan=JP-1GB-7D",
    "/portal/orders/batch",
    "/portal/orders/{id}/data",
    "/portal/orders/{id}/cancel",
    "/portal/orders/{id}/send",
];
/// What changes something. The last one ends the order.
const CHANGES: [(&str, Fields); 7] = [
    ("/portal/orders/new", &[("choice", "JP-1GB-7D 1000"), ("once", ONCE)]),
    ("/portal/orders/batch", &[("orders", "JP-1GB-7D"), ("once", ONCE)]),
    (
        "/portal/orders/batch",
        &[("orders", "JP-1GB-7D"), ("prices", "1000 JP-1GB-7D"), ("once", ONCE), ("step", "place")],
    ),
    ("/portal/orders/{id}/data", &[("choice", "JP-1GB-7D-TOPUP 1000"), ("once", ONCE)]),
    ("/portal/orders/{id}/send", &[("email", "customer@example.com")]),
    ("/portal/orders/{id}/keep", &[]),
    ("/portal/orders/{id}/cancel", &[]),
];
const ONCE: &str = "0123456789abcdef0123456789abcdef";

/// The token of the forms on a page.
async fn token(visitor: &mut Visitor) -> String {
    let page = visitor.open("/portal").await;
    hidden(&page, "/portal/sign-out").remove(0).1
}

/// Has an owner place two orders at once; answers the list's id.
async fn batch(gateway: &Gateway, owner: &mut Visitor) -> String {
    let page = owner.open("/portal/orders/batch").await;
    let path = "/portal/orders/batch";
    let checked = owner.submit(&page, path, &[("orders", "2 x JP-1GB-7D, trip")]).await;
    let begun = owner.submit(&checked, path, &[("step", "place")]).await;
    assert_eq!(begun.status, 303, "{}", begun.text);
    let path = begun.header("location").to_string();
    gateway
        .until("both are placed", async || {
            owner.open(&path).await.text.contains("All 2 eSIMs are delivered").then_some(())
        })
        .await;
    path.rsplit_once('/').unwrap().1.to_string()
}

both_databases! {
    async fn every_route_in_every_role(gateway) with [OPEN[0], OPEN[1]] {
        let order = gateway.order(PLAN).await;
        let (id, number) = (order["id"].as_str().unwrap(), order["orderNo"].as_str().unwrap());
        let (lpa, iccid) = (order["lpaString"].as_str().unwrap(), order["iccid"].as_str().unwrap());
        let mut owner = member(gateway, Role::Owner).await;
        let batch = batch(gateway, &mut owner).await;
        let named = |path: &str| path.replace("{id}", id).replace("{number}", number).replace("{batch}", &batch);
        let (balance, sold) = (gateway.balance().await, gateway.journalled("sold").len());
        // Whoever may do the least comes first: nothing has changed until then.
        for role in [Role::Viewer, Role::Finance, Role::Developer, Role::Owner] {
            let mut visitor = match role {
                Role::Owner => owner.again(),
                role => member(gateway, role).await,
            };
            let may = role.may(Ability::Order);
            for path in READ {
                let page = visitor.open(&named(path)).await;
                assert_eq!(page.status, 200, "{role:?} {path}: {}", page.text);
                let opens = page.text.contains("/esim/") || page.text.contains(lpa) || page.text.contains("/qr/");
                assert_eq!(opens, role.may(Ability::SeeCodes) && path.ends_with("/{id}"), "{role:?} {path}");
            }
            let page = visitor.open(&named("/portal/orders/{id}")).await;
            assert!(page.text.contains(iccid) && page.text.contains(number), "{}", page.text);
            for offered in ["/send\"", "/data\"", "/cancel\""] {
                assert_eq!(page.text.contains(offered), may, "{role:?} {offered}");
            }
            let list = visitor.open("/portal/orders").await;
            assert_eq!(list.text.contains("/portal/orders/new\""), may, "{role:?}");
            for path in ASK {
                let page = visitor.open(&named(path)).await;
                assert_eq!(page.status, if may { 200 } else { 403 }, "{role:?} {path}: {}", page.text);
            }
            let token = token(&mut visitor).await;
            for (path, fields) in CHANGES {
                if may {
                    continue;
                }
                let mut all = fields.to_vec();
                all.push(("form", &token));
                let sent = visitor.post(&named(path), &all).await;
                assert!(sent.status == 403 && sent.text.contains("Your role"), "{role:?} {path}: {}", sent.text);
                // Fields that make no sense tell nothing either.
                let sent = visitor.post(&named(path), &[("form", &token)]).await;
                assert_eq!(sent.status, 403, "{role:?} {path}: {}", sent.text);
            }
        }
        assert_eq!((gateway.balance().await, gateway.journalled("sold").len()), (balance, sold));
        assert!(mails(gateway, "customer@example.com").await.is_empty());
        // The same forms do it for who may.
        let token = token(&mut owner).await;
        for (path, fields) in CHANGES {
            let mut all = fields.to_vec();
            all.push(("form", &token));
            let sent = owner.post(&named(path), &all).await;
            assert!([200, 303, 409].contains(&sent.status), "{path}: {}", sent.text);
        }
        assert_eq!(mails(gateway, "customer@example.com").await.len(), 1);
    }

    async fn what_is_another_partners_is_not_found(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let batch = batch(gateway, &mut owner).await;
        let order = gateway.order(PLAN).await;
        let (id, number) = (order["id"].as_str().unwrap(), order["orderNo"].as_str().unwrap());
        let named = |path: &str| path.replace("{id}", id).replace("{batch}", &batch);
        let (other, _) = gateway.partner("Other Trips", Usd::dollars(100)).await;
        let mut eve = member_of(gateway, &other, "eve@other.example", Role::Owner).await;
        let own_paths = |path: &&&str| path.contains("{id}") || path.contains("{batch}");
        for path in READ.iter().chain(&ASK).filter(own_paths) {
            assert_eq!(eve.open(&named(path)).await.status, 404, "{path}");
        }
        let token = token(&mut eve).await;
        for (path, fields) in CHANGES.iter().filter(|(path, _)| path.contains("{id}")) {
            let mut all = fields.to_vec();
            all.push(("form", &token));
            assert_eq!(eve.post(&named(path), &all).await.status, 404, "{path}");
        }
        for name in [id, number, order["iccid"].as_str().unwrap(), "trip-1"] {
            for path in ["/portal/search?q=", "/portal/orders?q="] {
                let page = eve.open(&format!("{path}{name}")).await;
                assert!(page.status == 200 && page.text.contains("Nothing has this name"), "{name}: {}", page.text);
            }
        }
        let file = eve.open("/portal/orders.csv").await;
        assert_eq!((file.status, file.text.lines().count()), (200, 1), "{}", file.text);
        assert!(eve.open("/portal/orders").await.text.contains("No orders yet"));
        for made_up in ["/portal/orders/ord_x", "/portal/orders/x%2F..", "/portal/orders/top_1", "/portal/orders/batches/bat_1", "/portal/orders/ord_x/send"] {
            assert_eq!(owner.open(made_up).await.status, 404, "{made_up}");
        }
    }

    /// Nobody who is signed out gets further than the entrance, nor does a form without its token.
    async fn a_stranger_is_led_to_the_entrance(gateway) with [OPEN[0], OPEN[1]] {
        let order = gateway.order(PLAN).await;
        let id = order["id"].as_str().unwrap();
        let mut stranger = Visitor::new(gateway);
        for path in READ.iter().chain(&ASK) {
            let turned = stranger.open(&path.replace("{id}", id)).await;
            assert_eq!((turned.status, turned.header("location").starts_with("/portal")), (303, true), "{path}");
        }
        let mut owner = member(gateway, Role::Owner).await;
        for (path, fields) in CHANGES {
            assert_eq!(owner.post(&path.replace("{id}", id), fields).await.status, 403, "{path}");
        }
        assert_eq!(gateway.journalled("sold").len(), 1);
    }
}
