//! A member who is removed, or given another role, while their own request is under way. Roles are looked at when a request
//! begins; here each operation gets a member as they were before, and must look once more.

use serde_json::json;
use simgate::domain::batch;
use simgate::domain::email::Email;
use simgate::domain::ids::{KeyId, OrderId, WebhookId};
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::refusal::Refusal;
use simgate::domain::role::Role;
use simgate::error::{Error, Result};
use simgate::ops::buying::{Fills, Wish};
use simgate::ops::deposits::by_team;
use simgate::ops::sessions::portal;
use simgate::ops::team::{self, Member};
use simgate::ops::webhooks::{self, By, Change, NewWebhook, Start, by_hand};
use simgate::ops::{batches, company, desk, operator};

use super::developers::OPEN;
use super::{DEV, EVE, OWNER};
use crate::support::buying::PLAN;
use crate::support::database::rows;
use crate::support::desk::{COOKIE, account, member};
use crate::support::harness::{Gateway, both_databases};
use crate::support::receiver::{Receiver, WEBHOOKS, subscribe};

/// What there is to change.
struct Things {
    order: OrderId,
    webhook: WebhookId,
    key: KeyId,
    other: Member,
}

/// Everything that a member can ask for, asked for by this one.
async fn deeds(gateway: &Gateway, by: &Member, things: &Things) -> Vec<(&'static str, Result<()>)> {
    let (app, Things { order, webhook, key, other }) = (&gateway.app, things);
    let to = || Email::parse("customer@example.com").unwrap();
    let wish = || Wish { package_code: PLAN.into(), ..Wish::default() };
    let fills = Wish {
        package_code: "JP-1GB-7D-TOPUP".into(),
        fills: Some(Fills::Order(order.clone())),
        ..Wish::default()
    };
    let (wanted, shown) = (batch::read(PLAN).unwrap(), batch::Prices::parse(&format!("1000 {PLAN}")));
    let terms = || operator::KeyTerms { name: "shop".into(), ..operator::KeyTerms::default() };
    let target = webhooks::target(app, "https://hooks.example/in").unwrap();
    let new = NewWebhook { target, kinds: Vec::new(), description: String::new() };
    let (pair, hook) = ((Currency::Usdc, Network::Base), By::Member(by));
    let enable = Change { enabled: Some(false), ..Change::default() };
    vec![
        ("invite", team::invite(app, by, to(), Role::Viewer).await),
        ("change a role", team::change_role(app, by, &other.id, Role::Viewer).await),
        ("remove", team::remove(app, by, &other.id).await),
        ("rename", company::rename(app, by, "Evil Travel").await),
        ("warn", company::warn(app, by, Usd::dollars(7), None).await),
        ("place", desk::place(app, by, wish()).await.map(drop)),
        (
            "place once more",
            desk::place(app, by, Wish { reference: Some("trip-1".into()), ..wish() }).await.map(drop),
        ),
        ("top up", desk::top_up(app, by, fills).await.map(drop)),
        ("send", desk::send(app, by, order, to()).await),
        ("cancel", desk::cancel(app, by, order).await.map(drop)),
        ("keep", desk::keep(app, by, order).await.map(drop)),
        ("place several", batches::begin(app, by, "once", wanted, shown).await.map(drop)),
        ("deposit", by_team::open(app, by, Usd::dollars(50), pair.0, pair.1).await.map(drop)),
        ("address", by_team::make_standing(app, by, pair.0, pair.1).await.map(drop)),
        ("make a key", operator::create_key_as(app, by, terms()).await.map(drop)),
        ("replace a key", operator::rotate_key_as(app, by, key, 0).await.map(drop)),
        ("revoke a key", operator::revoke_key_as(app, by, key).await),
        ("add a webhook", webhooks::create(app, hook, new).await.map(drop)),
        ("test a webhook", by_hand::test(app, hook, webhook).await.map(drop)),
        ("change a webhook", webhooks::change(app, hook, webhook, enable).await.map(drop)),
        ("replace its secret", webhooks::rotate(app, hook, webhook, None).await.map(drop)),
        ("replay", webhooks::replay(app, hook, webhook, Start::After(0)).await.map(drop)),
        ("delete a webhook", webhooks::delete(app, hook, webhook).await),
    ]
}

/// All that such deeds change.
async fn state(gateway: &Gateway) -> Vec<Vec<Vec<String>>> {
    [
        "SELECT id, status FROM orders ORDER BY id",
        "SELECT id, command FROM audit ORDER BY id",
        "SELECT CAST(no AS TEXT), name, CAST(low_balance AS TEXT) FROM accounts ORDER BY no",
        "SELECT id, role, CAST(COALESCE(removed_at, 0) AS TEXT) FROM members ORDER BY id",
        "SELECT id, CAST(COALESCE(revoked_at, 0) AS TEXT), CAST(COALESCE(expires_at, 0) AS TEXT) FROM api_keys ORDER BY id",
        "SELECT id, status, CAST(edition AS TEXT) FROM webhooks ORDER BY id",
        "SELECT address FROM addresses ORDER BY address",
        "SELECT id FROM invoices ORDER BY id",
        "SELECT id FROM order_batches ORDER BY id",
    ]
    .map(|sql| rows(&gateway.app.settings.database, sql))
    .to_vec()
}

both_databases! {
    async fn who_is_no_owner_any_more_does_nothing_as_one(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        let (webhook, _) = subscribe(gateway, &receiver, &[]).await;
        assert_eq!(gateway.post(&format!("{WEBHOOKS}/{webhook}/test"), json!({})).await.status, 200);
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let order = gateway.order(PLAN).await["id"].as_str().unwrap().to_string();
        let team = account(gateway).await;
        let as_owner = async |visitor: &crate::support::visitor::Visitor| {
            portal::find(&gateway.app, &visitor.cookies[COOKIE]).await.unwrap().unwrap().member
        };
        let things = Things {
            order: OrderId::from_text(&*order),
            webhook: WebhookId::from_text(&*webhook),
            key: KeyId::from_text(&*gateway.key.id),
            other: as_owner(&ann).await,
        };
        for (email, deed, fields) in [(DEV, "/remove", vec![]), (EVE, "", vec![("role", "VIEWER")])] {
            let former = as_owner(&member(gateway, email, Role::Owner).await).await;
            let page = ann.open(&format!("/portal/team/{}", former.id)).await;
            let ended = ann.submit(&page, &format!("/portal/team/{}{deed}", former.id), &fields).await;
            assert_eq!(ended.status, 303, "{}", ended.text);
            // A webhook is tried once a second.
            gateway.pass_time(1_001);
            let (before, messages) = (state(gateway).await, receiver.all().len());
            for (what, done) in deeds(gateway, &former, &things).await {
                let refused = matches!(done, Err(Error::Refused(Refusal::RoleNotAllowed(_))));
                assert!(refused, "{email}: {what}: {done:?}");
            }
            assert_eq!(state(gateway).await, before, "{email}");
            assert_eq!(receiver.all().len(), messages);
        }
        gateway.pass_time(1_001);
        // Nothing is wrong with the deeds themselves: an owner's are done, or refused for a reason of their own.
        for (what, done) in deeds(gateway, &things.other, &things).await {
            let refused = matches!(done, Err(Error::Refused(Refusal::RoleNotAllowed(_))));
            assert!(!refused, "{what}: {done:?}");
        }
        let left = team::list(&gateway.app, team).await.unwrap();
        assert!(left.iter().all(|person| person.email.as_str() != DEV));
    }
}
