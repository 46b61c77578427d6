//! API keys at the portal: made once, shown once, replaced with an overlap, revoked after asking; and when each was used.

use serde_json::json;
use simgate::ops::operator::{self, KEYS_A_DAY, KeyTerms, MOST_KEYS};

use super::developers::{DEV, OPEN, account, audit, developer, is_nowhere, send, word};
use crate::support::database::{self, rows};
use crate::support::harness::{Gateway, Key, both_databases};
use crate::support::shapes::{API, ORDERS};

const NEW: &str = "/portal/keys/new";

async fn status(gateway: &Gateway, key: &Key) -> u16 {
    gateway.send_as(key, "GET", &format!("{API}/balance"), None).await.status
}

/// When a key was used last, as it is written down; 0 for never.
fn last_used(gateway: &Gateway, key: &Key) -> i64 {
    let sql = format!("SELECT CAST(COALESCE(last_used_at, 0) AS TEXT) FROM api_keys WHERE id = '{}'", key.id);
    rows(&gateway.app.settings.database, &sql)[0][0].parse().unwrap()
}

both_databases! {
    async fn a_key_is_made_and_its_secret_shown_once(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        gateway.away_from_midnight();
        let mut dev = developer(gateway).await;
        let form = dev.open(NEW).await;
        let typed = [("name", "Web <b>shop</b>"), ("limitUsd", "50"), ("ips", "127.0.0.1, 10.0.0.0/8"), ("expires", "2099-01-31")];
        let made = dev.submit(&form, NEW, &typed).await;
        assert_eq!((made.status, made.header("cache-control")), (200, "no-store"), "{}", made.text);
        let key = Key { id: word(&made, "key_"), secret: word(&made, "sk_") };
        assert!(made.text.contains(&format!("curl -sS &#39;{}/api/b2b/v1/balance&#39;", gateway.base)), "{}", made.text);
        assert!(made.text.contains(&format!("X-B2B-Key: {}&#39;", key.id)) && made.text.contains(&format!("X-B2B-Secret: {}&#39;", key.secret)));
        key.until_known(&gateway.app).await;
        assert_eq!(status(gateway, &key).await, 200);
        // Sent once more it makes no second key, and what was typed is kept.
        let again = dev.submit(&form, NEW, &typed).await;
        assert!(again.status == 400 && again.text.contains(&format!("is taken by {}", key.id)), "{}", again.text);
        assert!(again.text.contains("<title>Please check: ") && again.text.contains("value=\"127.0.0.1, 10.0.0.0/8\""), "{}", again.text);

        let bought = gateway.send_as(&key, "POST", ORDERS, Some(json!({ "packageCode": "JP-1GB-7D" }))).await;
        assert!(bought.status == 200 || bought.status == 202, "{}", bought.text);
        gateway.until("the key was used", async || (last_used(gateway, &key) > 0).then_some(())).await;
        let list = dev.open("/portal/keys").await;
        let (_, card) = list.text.split_once("<h2>Web &#60;b&#62;shop&#60;/b&#62;</h2>").unwrap();
        let card = card.split("</li>").next().unwrap();
        let spent = gateway.price("JP-1GB-7D").await;
        for said in ["50.00 USD a day", &format!("{} USD today", spent.priced()), "127.0.0.1/32, 10.0.0.0/8", DEV, "1 February 2099, 00:00 UTC"] {
            assert!(card.contains(said), "no {said} in {card}");
        }
        assert!(!card.contains("never"), "{card}");
        let lines = audit(gateway);
        assert!(lines.iter().any(|line| line.starts_with(&format!("member:{DEV} | key create | {} | no key | name", key.id))), "{lines:?}");
        let (rotate, revoke) = (format!("/portal/keys/{}/rotate", key.id), format!("/portal/keys/{}/revoke", key.id));
        let pages = ["/portal", "/portal/keys", NEW, &rotate, &revoke, "/portal/team/log", "/portal/webhooks"];
        is_nowhere(gateway, &mut dev, &key.secret, &pages).await;
    }

    async fn what_is_wrong_with_a_key_is_said_above_its_form(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let mut dev = developer(gateway).await;
        for (field, value, said) in [
            ("name", "", "The name is required."),
            ("name", "\u{200b}", "The name must have 1 to 100 printable characters."),
            ("limitUsd", "0", "The limit must be more than 0."),
            ("limitUsd", "much", "The limit must be a number like 200 or 200.50."),
            ("ips", "home", "The addresses must be addresses or networks like"),
            ("ips", &vec!["10.0.0.1"; 51].join(","), "The addresses must be at most 50."),
            ("expires", "2001-01-31", "The last day must not be over."),
            ("expires", "soon", "The last day must be a day like"),
        ] {
            let mut fields = vec![("name", "shop"), (field, value)];
            if field == "name" {
                fields.remove(0);
            }
            let refused = send(&mut dev, NEW, &fields).await;
            assert!(refused.status == 400 && refused.text.contains(said), "{field} {value}: {}", refused.text);
        }
        let account = account(gateway, &gateway.partner).await;
        for _ in 1..MOST_KEYS {
            operator::create_key(&gateway.app, "test", account, KeyTerms::default()).await.unwrap();
        }
        let full = send(&mut dev, NEW, &[("name", "shop")]).await;
        assert!(full.status == 400 && full.text.contains("The key is one too many"), "{}", full.text);
        // One that ends at once makes room for the one in its place.
        let rotate = format!("/portal/keys/{}/rotate", gateway.key.id);
        assert_eq!(send(&mut dev, &rotate, &[("overlap", "day")]).await.status, 400);
        assert_eq!(send(&mut dev, &rotate, &[("overlap", "now")]).await.status, 200);
        assert_eq!(operator::keys_in_use(&gateway.app, account).await.unwrap().len(), MOST_KEYS);
    }

    async fn a_key_is_replaced_with_an_overlap(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let mut dev = developer(gateway).await;
        let path = format!("/portal/keys/{}/rotate", gateway.key.id);
        let form = dev.open(&path).await;
        assert!(form.text.contains("value=\"day\" required checked"), "{}", form.text);
        for wrong in ["", "month"] {
            let refused = dev.submit(&form, &path, &[("overlap", wrong)]).await;
            assert!(refused.status == 400 && refused.text.contains("<title>Please check: "), "{wrong}: {}", refused.text);
        }
        let made = dev.submit(&form, &path, &[("overlap", "hour")]).await;
        assert_eq!(made.status, 200, "{}", made.text);
        let new = Key { id: word(&made, "key_"), secret: word(&made, "sk_") };
        assert!(made.text.contains(&format!("The old key <code>{}</code> works until", gateway.key.id)), "{}", made.text);
        let again = dev.submit(&form, &path, &[("overlap", "hour")]).await;
        assert!(again.status == 400 && again.text.contains(&format!("was replaced by {} already", new.id)), "{}", again.text);
        new.until_known(&gateway.app).await;
        assert_eq!((status(gateway, &gateway.key).await, status(gateway, &new).await), (200, 200));
        let list = dev.open("/portal/keys").await;
        assert!(list.text.contains(&format!("<dt>Replaced by</dt><dd><code>{}</code>", new.id)), "{}", list.text);
        gateway.pass_time(3_600_000);
        assert_eq!((status(gateway, &gateway.key).await, status(gateway, &new).await), (401, 200));
        let list = dev.open("/portal/keys").await;
        let (in_use, ended) = list.text.split_once("Keys that have ended").unwrap();
        assert!(ended.contains(&gateway.key.id) && !in_use.contains(&gateway.key.id) && in_use.contains(&new.id), "{}", list.text);
        // Nothing is left of one that somebody else has.
        let path = format!("/portal/keys/{}/rotate", new.id);
        let made = send(&mut dev, &path, &[("overlap", "now")]).await;
        let newest = Key { id: word(&made, "key_"), secret: word(&made, "sk_") };
        newest.until_known(&gateway.app).await;
        assert_eq!((status(gateway, &new).await, status(gateway, &newest).await), (401, 200));
        for secret in [new.secret, newest.secret] {
            is_nowhere(gateway, &mut dev, &secret, &["/portal/keys", "/portal/team/log"]).await;
        }
    }

    async fn a_key_is_revoked_after_asking(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let mut dev = developer(gateway).await;
        let path = format!("/portal/keys/{}/revoke", gateway.key.id);
        let page = dev.open(&path).await;
        assert!(page.text.contains("cannot be undone") && status(gateway, &gateway.key).await == 200, "{}", page.text);
        let done = dev.submit(&page, &path, &[]).await;
        assert_eq!((done.status, done.header("location")), (303, "/portal/keys?done=key-revoked"));
        gateway.until("the revocation counts", async || (status(gateway, &gateway.key).await == 401).then_some(())).await;
        assert!(dev.open("/portal/keys").await.text.contains("No key is in use"));
        assert!(audit(gateway).iter().any(|line| line.starts_with(&format!("member:{DEV} | key revoke | {}", gateway.key.id))));
    }

    async fn keys_that_have_ended_are_turned_over(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let mut dev = developer(gateway).await;
        let account = account(gateway, &gateway.partner).await;
        let mut ids = Vec::new();
        for _ in 0..45 {
            let key = operator::create_key(&gateway.app, "test", account, KeyTerms::default()).await.unwrap();
            operator::revoke_key(&gateway.app, "test", key.id.as_str()).await.unwrap();
            ids.push(key.id.to_string());
        }
        let (mut path, mut seen) = ("/portal/keys".to_string(), Vec::new());
        loop {
            let page = dev.open(&path).await;
            assert_eq!(page.text.contains(">Newest</a>"), !seen.is_empty());
            let (_, ended) = page.text.split_once("Keys that have ended").unwrap();
            let shown: Vec<String> = ended.split("<code>").skip(1).map(|rest| rest.split('<').next().unwrap().to_string()).collect();
            assert!(shown.len() <= 20);
            seen.extend(shown);
            let Some((_, rest)) = ended.split_once("rel=\"next\" href=\"") else { break };
            path = rest.split(['"', '#']).next().unwrap().to_string();
        }
        seen.sort();
        ids.sort();
        assert_eq!(seen, ids);
    }

    /// The rows of ended keys stay: nobody makes them without an end.
    async fn a_team_makes_so_many_keys_in_a_day(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let mut dev = developer(gateway).await;
        let (account, at) = (account(gateway, &gateway.partner).await, gateway.app.now().micros());
        for command in ["key create", "key rotate"] {
            let row = |n| format!("('adt_{command}{n}', {at}, 'member:{DEV}', '{command}', 'key_{n}', {})", account.0);
            let rows = (0..KEYS_A_DAY).map(row).collect::<Vec<_>>().join(", ");
            let made = format!("INSERT INTO audit (id, at, actor, command, detail, account) VALUES {rows}");
            database::execute(&gateway.app.settings.database, &made).unwrap();
        }
        let rotate = format!("/portal/keys/{}/rotate", gateway.key.id);
        for (path, fields) in [(NEW, [("name", "shop")]), (&rotate, [("overlap", "now")])] {
            let refused = send(&mut dev, path, &fields).await;
            assert!(refused.status == 400 && refused.text.contains("at most 100 keys in a day"), "{path}: {}", refused.text);
        }
        assert_eq!(status(gateway, &gateway.key).await, 200);
        // The operator's keys are not counted, and the next day has its own.
        operator::create_key(&gateway.app, "test", account, KeyTerms::default()).await.unwrap();
        gateway.pass_time(24 * 3_600_000 + 1);
        crate::support::desk::sign_in(gateway, &mut dev, DEV).await;
        assert_eq!(send(&mut dev, NEW, &[("name", "shop")]).await.status, 200);
        assert_eq!(send(&mut dev, &rotate, &[("overlap", "now")]).await.status, 200);
    }

    async fn the_use_of_a_key_is_noted_once_a_minute(gateway) {
        let key = &gateway.key;
        assert_eq!(status(gateway, key).await, 200);
        gateway.until("the use is noted", async || (last_used(gateway, key) > 0).then_some(())).await;
        let first = last_used(gateway, key);
        gateway.pass_time(30_000);
        assert_eq!(status(gateway, key).await, 200);
        gateway.pass_time(31_000);
        assert_eq!(status(gateway, key).await, 200);
        gateway.until("the next use is noted", async || (last_used(gateway, key) > first).then_some(())).await;
        assert!(last_used(gateway, key) >= first + 61_000_000, "a use within the minute was noted");
        // A wrong secret is no use.
        let (before, wrong) = (last_used(gateway, key), Key { secret: "sk_wrong".into(), ..key.clone() });
        gateway.pass_time(120_000);
        assert_eq!(status(gateway, &wrong).await, 401);
        assert_eq!(status(gateway, key).await, 200);
        gateway.until("the right one is noted", async || (last_used(gateway, key) > before).then_some(())).await;
    }
}
