//! Who may do what with keys and webhooks, as a table of routes and roles; and what belongs to another partner.

use serde_json::json;
use simgate::domain::money::Usd;
use simgate::domain::role::Role;

use super::developers::{OPEN, account, audit, developer, member, send};
use crate::support::harness::{Gateway, both_databases};
use crate::support::receiver::{Receiver, WEBHOOKS, subscribe};

/// A key, a webhook and a delivery of the gateway's own partner.
struct Things {
    key: String,
    webhook: String,
    delivery: String,
    url: String,
}

async fn things(gateway: &Gateway, receiver: &Receiver) -> Things {
    let (webhook, _) = subscribe(gateway, receiver, &[]).await;
    let path = format!("{WEBHOOKS}/{webhook}/test");
    gateway.pass_time(1_000);
    let tested = gateway.post(&path, json!({})).await.expect(200);
    let delivery = tested["delivery"]["id"].as_str().unwrap().to_string();
    Things { key: gateway.key.id.clone(), webhook, delivery, url: receiver.url.clone() }
}

impl Things {
    /// The pages that lead to a change, and those that everybody in the team may see.
    fn pages(&self) -> [(String, bool); 9] {
        let Things { key, webhook, delivery, .. } = self;
        [
            ("/portal/keys".into(), false),
            ("/portal/keys/new".into(), true),
            (format!("/portal/keys/{key}/rotate"), true),
            (format!("/portal/keys/{key}/revoke"), true),
            ("/portal/webhooks/new".into(), true),
            (format!("/portal/webhooks/{webhook}"), false),
            (format!("/portal/webhooks/{webhook}/rotate"), true),
            (format!("/portal/webhooks/{webhook}/delete"), true),
            (format!("/portal/webhooks/{webhook}/deliveries/{delivery}"), false),
        ]
    }

    /// Every form, good as it is; what ends something comes last.
    fn forms(&self) -> Vec<(String, Vec<(&str, &str)>)> {
        let Things { key, webhook, delivery, url } = self;
        let of_webhook = |rest: &str| format!("/portal/webhooks/{webhook}{rest}");
        vec![
            ("/portal/keys/new".into(), vec![("name", "shop")]),
            ("/portal/webhooks/new".into(), vec![("url", "https://hooks.example/in"), ("events", "all")]),
            (of_webhook(""), vec![("url", url.as_str()), ("events", "all"), ("description", "changed")]),
            (of_webhook("/test"), vec![]),
            (of_webhook(&format!("/deliveries/{delivery}/redeliver")), vec![]),
            (of_webhook("/replay"), vec![("since", "2026-01-31T12:00")]),
            (of_webhook("/rotate"), vec![("seen", "0")]),
            (of_webhook("/disable"), vec![]),
            (of_webhook("/enable"), vec![]),
            (of_webhook("/delete"), vec![]),
            (format!("/portal/keys/{key}/rotate"), vec![("overlap", "day")]),
            (format!("/portal/keys/{key}/revoke"), vec![]),
        ]
    }
}

/// All that there is of a partner's keys and webhooks.
async fn state(gateway: &Gateway) -> String {
    let keys =
        simgate::ops::operator::list_keys(&gateway.app, Some(account(gateway, &gateway.partner).await))
            .await
            .unwrap();
    let keys: Vec<_> = keys.iter().map(|key| (key.id.to_string(), key.revoked_at, key.expires_at)).collect();
    format!("{keys:?} {}", gateway.get(WEBHOOKS).await.text)
}

both_databases! {
    async fn finance_and_viewers_look_and_change_nothing(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        let things = things(gateway, &receiver).await;
        let (before, deeds) = (state(gateway).await, audit(gateway).len());
        let messages = receiver.all().len();
        for (role, email) in [(Role::Finance, "finance@travel.example"), (Role::Viewer, "viewer@travel.example")] {
            let mut visitor = member(gateway, &gateway.partner, email, role).await;
            for (path, changes) in things.pages() {
                let page = visitor.open(&path).await;
                assert_eq!(page.status, if changes { 403 } else { 200 }, "{role:?} {path}: {}", page.text);
                let forms = page.text.matches("<form method=\"post\"").count();
                let offers = ["/rotate\"", "/revoke\"", "/delete\"", "/new\"", "redeliver"].iter().any(|way| page.text.contains(way));
                assert!(changes || (forms == 1 && !offers), "{role:?} is offered something on {path}: {}", page.text);
                assert!(!page.text.contains("whsec_") && !page.text.contains(&gateway.key.secret), "{path}");
            }
            for (path, fields) in things.forms() {
                for fields in [fields, Vec::new()] {
                    let refused = send(&mut visitor, &path, &fields).await;
                    assert_eq!(refused.status, 403, "{role:?} {path}: {}", refused.text);
                    assert!(refused.text.contains("Your role in this team"), "{role:?} {path}: {}", refused.text);
                }
            }
        }
        assert_eq!(state(gateway).await, before);
        // An invitation and a way in for each, and nothing else.
        assert_eq!(audit(gateway).len(), deeds + 4);
        assert_eq!(receiver.all().len(), messages);
    }

    async fn owners_and_developers_may_do_all_of_it(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        for (role, email) in [(Role::Owner, "owner@travel.example"), (Role::Developer, "dev@travel.example")] {
            let (_, key) = gateway.partner("Other", Usd::ZERO).await;
            let made = gateway.send_as(&key, "GET", WEBHOOKS, None).await;
            assert_eq!(made.status, 200);
            let mut visitor = member(gateway, &gateway.partner, email, role).await;
            let mut things = things(gateway, &receiver).await;
            let terms = simgate::ops::operator::KeyTerms::default();
            let no = account(gateway, &gateway.partner).await;
            things.key = simgate::ops::operator::create_key(&gateway.app, "test", no, terms).await.unwrap().id.to_string();
            for (path, _) in things.pages() {
                assert_eq!(visitor.open(&path).await.status, 200, "{role:?} {path}");
            }
            for (path, mut fields) in things.forms() {
                gateway.pass_time(1_000);
                if let Some((_, name)) = fields.iter_mut().find(|(field, _)| *field == "name") {
                    *name = role.as_str();
                }
                let done = send(&mut visitor, &path, &fields).await;
                assert!(done.status == 200 || done.status == 303, "{role:?} {path}: {} {}", done.status, done.text);
                if path == "/portal/webhooks/new" {
                    let id = crate::portal::developers::word(&done, "whk_");
                    let gone = gateway.send_as(&gateway.key, "DELETE", &format!("{WEBHOOKS}/{id}"), None).await;
                    gone.expect(200);
                }
            }
        }
    }

    async fn what_another_partner_has_is_not_found(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        let things = things(gateway, &receiver).await;
        let before = state(gateway).await;
        let (other, _) = gateway.partner("Other Travel", Usd::ZERO).await;
        let mut eve = member(gateway, &other, "eve@other.example", Role::Owner).await;
        for (path, _) in things.pages() {
            let foreign = path.contains(&things.key) || path.contains(&things.webhook);
            let page = eve.open(&path).await;
            assert_eq!(page.status, if foreign { 404 } else { 200 }, "{path}: {}", page.text);
            assert!(foreign || !page.text.contains(&things.key), "{path}");
        }
        assert_eq!(eve.open(&format!("/portal/webhooks/{}/deliveries", things.webhook)).await.status, 404);
        assert_eq!(eve.open(&format!("/portal/keys?before={}", things.key)).await.status, 404);
        let messages = receiver.all().len();
        for (path, fields) in things.forms() {
            if path.ends_with("/new") {
                continue;
            }
            let refused = send(&mut eve, &path, &fields).await;
            assert_eq!(refused.status, 404, "{path}: {}", refused.text);
        }
        assert_eq!(state(gateway).await, before);
        assert_eq!(receiver.all().len(), messages);
        // Nor is a delivery found by way of a webhook of one's own.
        let made = send(&mut eve, "/portal/webhooks/new", &[("url", &receiver.url), ("events", "all")]).await;
        let own = crate::portal::developers::word(&made, "whk_");
        let path = format!("/portal/webhooks/{own}/deliveries/{}", things.delivery);
        assert_eq!(eve.open(&path).await.status, 404);
        assert_eq!(send(&mut eve, &format!("{path}/redeliver"), &[]).await.status, 404);
    }

    /// What the partner's own programs do leaves no line, as before.
    async fn calls_with_a_key_are_not_in_the_audit_log(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        developer(gateway).await;
        let before = audit(gateway).len();
        let things = things(gateway, &receiver).await;
        gateway.post(&format!("{WEBHOOKS}/{}/rotate", things.webhook), json!({})).await.expect(200);
        gateway.send_as(&gateway.key, "DELETE", &format!("{WEBHOOKS}/{}", things.webhook), None).await.expect(200);
        assert_eq!(audit(gateway).len(), before);
    }
}
