//! Webhooks at the portal: added and changed, tried by hand, what was sent and answered, and secrets that are shown once.

use serde_json::json;

use super::developers::{DEV, OPEN, audit, developer, is_nowhere, send, word};
use super::support::seconds_are_told;
use crate::support::database::execute;
use crate::support::harness::{Gateway, both_databases};
use crate::support::receiver::{Receiver, WEBHOOKS, make, subscribe, until_status, webhook};
use crate::support::visitor::Visitor;

const NEW: &str = "/portal/webhooks/new";

/// The members' deeds with webhooks, without who did them.
fn deeds(gateway: &Gateway) -> Vec<String> {
    let who = format!("member:{DEV} | ");
    let lines = audit(gateway).into_iter().filter_map(|line| line.strip_prefix(&who).map(str::to_string));
    lines.filter(|line| line.starts_with("webhook")).collect()
}

/// Opens the page that an answer leads to.
async fn follow(
    visitor: &mut Visitor,
    answer: crate::support::harness::Reply,
) -> crate::support::harness::Reply {
    assert_eq!(answer.status, 303, "{}", answer.text);
    let page = visitor.open(answer.header("location")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    page
}

both_databases! {
    async fn a_webhook_is_added_and_its_secret_shown_once(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        let mut dev = developer(gateway).await;
        assert!(dev.open("/portal/webhooks").await.text.contains("No webhook yet"));
        let form = dev.open(NEW).await;
        // The kinds are folded away until some of them are wanted.
        assert!(form.text.contains("<details><summary>Kinds of events</summary>"), "{}", form.text);
        let url = format!("{}?key=hush", receiver.url);
        let typed = [("url", url.as_str()), ("events", "some"), ("order.fulfilled", "on"), ("description", "The <i>shop</i>")];
        let made = dev.submit(&form, NEW, &typed).await;
        assert_eq!((made.status, made.header("cache-control")), (200, "no-store"), "{}", made.text);
        let (id, secret) = (word(&made, "whk_"), secret(&made.text));
        until_status(gateway, &id, "ACTIVE").await;
        assert_eq!(webhook(gateway, &id).await["events"], json!(["order.fulfilled"]));
        gateway.order("JP-1GB-7D").await;
        let got = gateway.until("the event", async || receiver.accepted().pop()).await;
        assert_eq!(got["type"], "order.fulfilled");
        assert!(receiver.all().iter().all(|got| got.is_signed_by(&secret)));
        // Sent once more it makes no second webhook.
        let again = dev.submit(&form, NEW, &typed).await;
        assert!(again.status == 400 && again.text.contains(&format!("by {id}; change that one")), "{}", again.text);
        assert!(again.text.contains("<title>Please check: ") && again.text.contains("name=\"order.fulfilled\" value=\"on\" checked"), "{}", again.text);
        assert!(again.text.contains("<details open><summary>Kinds of events</summary>"), "{}", again.text);
        let list = dev.open("/portal/webhooks").await;
        assert!(list.text.contains("The &#60;i&#62;shop&#60;/i&#62;") && list.text.contains("Active") && list.text.contains("order.fulfilled"), "{}", list.text);

        let lines = deeds(gateway);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with(&format!("webhook create | {id} | no webhook | PENDING, http://127.0.0.1:")), "{lines:?}");
        // The path and query of a URL may open something too.
        assert!(!lines[0].contains("hush") && !lines[0].contains("/hooks"), "{lines:?}");
        let own = ["", "/rotate", "/delete", "/deliveries"].map(|rest| format!("/portal/webhooks/{id}{rest}"));
        let page = dev.open(&own[0]).await;
        let delivery = format!("/portal/webhooks/{id}/deliveries/{}", word(&page, "dlv_"));
        let mut pages: Vec<&str> = own.iter().map(String::as_str).collect();
        pages.extend([delivery.as_str(), "/portal", "/portal/webhooks", NEW, "/portal/keys", "/portal/team/log"]);
        is_nowhere(gateway, &mut dev, &secret, &pages).await;
    }

    async fn what_is_wrong_with_a_webhook_is_said_above_its_form(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let mut dev = developer(gateway).await;
        let long = "x".repeat(201);
        for (fields, said) in [
            (vec![("events", "all")], "The URL is required."),
            (vec![("url", "ftp://hooks.example/"), ("events", "all")], "The URL must start with"),
            (vec![("url", "https://hooks.example/"), ("events", "some")], "The events must be all, or at least one"),
            (vec![("url", "https://hooks.example/"), ("description", &*long)], "The description must have 1 to 200"),
        ] {
            let refused = send(&mut dev, NEW, &fields).await;
            assert!(refused.status == 400 && refused.text.contains(said), "{fields:?}: {}", refused.text);
        }
        for n in 0..10 {
            let url = format!("https://hooks{n}.example/");
            assert_eq!(send(&mut dev, NEW, &[("url", &url), ("events", "all")]).await.status, 200);
        }
        let full = send(&mut dev, NEW, &[("url", "https://hooks.example/"), ("events", "all")]).await;
        assert!(full.status == 403 && full.text.contains("An account may have 10 webhooks"), "{}", full.text);
    }

    async fn a_webhook_is_tried_by_hand(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        let mut dev = developer(gateway).await;
        let (id, _) = subscribe(gateway, &receiver, &[]).await;
        let path = format!("/portal/webhooks/{id}");
        gateway.order("JP-1GB-7D").await;
        gateway.until("the event", async || receiver.accepted().pop()).await;
        let page = dev.open(&path).await;
        // While one is under way, another is one too many.
        let (test, before, mut hasty) = (format!("{path}/test"), receiver.all().len(), dev.again());
        receiver.hold();
        let second = async {
            gateway.until("the test came", async || (receiver.all().len() > before).then_some(())).await;
            let refused = hasty.submit(&page, &test, &[]).await;
            receiver.release();
            refused
        };
        let (answer, refused) = futures_util::future::join(dev.submit(&page, &test, &[]), second).await;
        assert!(refused.status == 429 && refused.text.contains("<title>Please check: ") && refused.text.contains("once a second"), "{}", refused.text);
        let tested = follow(&mut dev, answer).await;
        assert!(tested.text.contains("Accepted, 204") && tested.text.contains("&#34;webhook.test&#34;") && tested.text.contains("by hand"), "{}", tested.text);
        gateway.pass_time(1_000);
        receiver.answers(|_| 500);
        let answer = dev.submit(&page, &format!("{path}/test"), &[]).await;
        assert!(follow(&mut dev, answer).await.text.contains("Refused, 500"));
        receiver.answers(|_| 204);

        // The delivery of the order, once more.
        let list = dev.open(&format!("{path}/deliveries")).await;
        seconds_are_told(&list.text, 3);
        seconds_are_told(&tested.text, 1);
        let (before, _) = list.text.split_once("order.fulfilled").unwrap();
        let delivery = before.rsplit("/deliveries/").next().unwrap().split('"').next().unwrap().to_string();
        let one = format!("{path}/deliveries/{delivery}");
        let page = dev.open(&one).await;
        let sent = receiver.accepted().pop().unwrap();
        assert!(page.text.contains(&format!("&#34;id&#34;: &#34;{}&#34;", sent["id"].as_str().unwrap())), "{}", page.text);
        for opens in ["LPA:", "smdp", "matchingId", "/esim/", "installUrl", "activation"] {
            assert!(!page.text.contains(opens), "{opens} is on {}", page.text);
        }
        let before = receiver.all().len();
        gateway.pass_time(1_000);
        let answer = dev.submit(&page, &format!("{one}/redeliver"), &[]).await;
        assert_ne!(answer.header("location"), one);
        assert!(follow(&mut dev, answer).await.text.contains("Accepted, 204"));
        let again = receiver.all()[before..].iter().map(|got| got.event()["id"].clone()).collect::<Vec<_>>();
        assert_eq!(again, [sent["id"].clone()]);
        let lines: Vec<String> = deeds(gateway).iter().map(|line| line.split(" | ").next().unwrap().to_string()).collect();
        assert_eq!(lines, ["webhook test", "webhook test", "webhook redeliver"]);
    }

    async fn a_webhook_is_changed_stopped_and_sent_what_it_missed(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        let mut dev = developer(gateway).await;
        let (id, _) = subscribe(gateway, &receiver, &["order.fulfilled"]).await;
        let path = format!("/portal/webhooks/{id}");
        let page = dev.open(&path).await;
        let wrong = dev.submit(&page, &path, &[("url", "nowhere"), ("events", "all"), ("description", "kept")]).await;
        assert!(wrong.status == 400 && wrong.text.contains("The URL must start with") && wrong.text.contains("value=\"kept\""), "{}", wrong.text);
        let typed = [("url", receiver.url.as_str()), ("events", "some"), ("order.fulfilled", "on"), ("order.failed", "on"), ("description", "ours")];
        let saved = dev.submit(&page, &path, &typed).await;
        assert!(follow(&mut dev, saved).await.text.contains("Saved."));
        let now = webhook(gateway, &id).await;
        assert_eq!((&now["events"], &now["description"], &now["status"]), (&json!(["order.fulfilled", "order.failed"]), &json!("ours"), &json!("ACTIVE")));

        let off = dev.submit(&page, &format!("{path}/disable"), &[]).await;
        let page = follow(&mut dev, off).await;
        assert!(page.text.contains("Nothing is sent to it.") && !page.text.contains("/disable\""), "{}", page.text);
        let order = gateway.order("JP-1GB-7D").await;
        let refused = dev.submit(&page, &format!("{path}/replay"), &[("since", "2020-01-31T12:00")]).await;
        assert!(refused.status == 409 && refused.text.contains("Enable it first") && refused.text.contains("value=\"2020-01-31T12:00\""), "{}", refused.text);
        let on = dev.submit(&page, &format!("{path}/enable"), &[]).await;
        let page = follow(&mut dev, on).await;
        for wrong in ["", "yesterday"] {
            let refused = dev.submit(&page, &format!("{path}/replay"), &[("since", wrong)]).await;
            assert!(refused.status == 400 && refused.text.contains("The time "), "{wrong}: {}", refused.text);
        }
        assert_eq!(receiver.accepted().len(), 0);
        let replayed = dev.submit(&page, &format!("{path}/replay"), &[("since", "2020-01-31T12:00")]).await;
        follow(&mut dev, replayed).await;
        let missed = gateway.until("what it missed", async || receiver.accepted().pop()).await;
        assert_eq!(missed["data"]["id"], order["id"]);

        let page = dev.open(&format!("{path}/delete")).await;
        let gone = dev.submit(&page, &format!("{path}/delete"), &[]).await;
        assert_eq!((gone.status, gone.header("location")), (303, "/portal/webhooks?done=webhook-deleted"));
        assert_eq!(dev.open(&path).await.status, 404);
        assert_eq!(gateway.get(WEBHOOKS).await.expect(200)["webhooks"], json!([]));
        let lines: Vec<String> = deeds(gateway).iter().map(|line| line.split(" | ").next().unwrap().to_string()).collect();
        assert_eq!(lines, ["webhook change", "webhook disable", "webhook enable", "webhook replay", "webhook delete"]);
    }

    /// What was not tried yet waits too, and millions of events cost no more to count than some.
    async fn everything_that_waits_is_counted(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let (all, some) = (Receiver::start().await, Receiver::start().await);
        // Neither accepts its test, so neither is sent anything else.
        all.answers(|_| 500);
        some.answers(|_| 500);
        let (all, _) = make(gateway, &gateway.key, &all, &[]).await;
        let (some, _) = make(gateway, &gateway.key, &some, &["order.failed"]).await;
        let mut dev = developer(gateway).await;
        let mut told = async |id: &str| {
            let page = dev.open(&format!("/portal/webhooks/{id}")).await;
            let (_, rest) = page.text.split_once("<dt>Waiting</dt><dd>").unwrap();
            let shown = rest.split('<').next().unwrap().to_string();
            let list = dev.open("/portal/webhooks").await;
            assert!(list.text.contains(&format!("<td class=\"number\">{shown}</td>")), "{shown}: {}", list.text);
            assert_eq!(page.text.contains("Only the next 5000 events were looked at"), !shown.bytes().all(|b| b.is_ascii_digit()), "{}", page.text);
            shown
        };
        assert_eq!((told(&all).await, told(&some).await), ("0".into(), "0".into()));
        gateway.order("JP-1GB-7D").await;
        gateway.order("JP-1GB-7D").await;
        assert_eq!((told(&all).await, told(&some).await), ("2".into(), "0".into()));
        let database = &gateway.app.settings.database;
        let more = |kind: &str, count: i64| {
            let rows = format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
                INSERT INTO events (account, kind, subject, sequence, at, data)
                SELECT account, '{kind}', subject, 100 + i, at, data FROM n, (SELECT * FROM events ORDER BY no LIMIT 1) first");
            execute(database, &rows).unwrap();
        };
        more("order.cancelled", 4_997);
        assert_eq!((told(&all).await, told(&some).await), ("4999".into(), "0".into()));
        more("order.cancelled", 1);
        assert_eq!((told(&all).await, told(&some).await), ("5000 or more".into(), "not counted".into()));
        execute(database, "UPDATE events SET kind = 'order.failed' WHERE sequence = 101").unwrap();
        assert_eq!(told(&some).await, "2 or more");
        // Nothing waits for one that is disabled: it begins at the end.
        let off = json!({ "status": "DISABLED" });
        gateway.send_as(&gateway.key, "PATCH", &format!("{WEBHOOKS}/{all}"), Some(off)).await.expect(200);
        assert_eq!(told(&all).await, "0");
    }

    /// A form that is sent again by "reload" must not end the secret that receivers still have.
    async fn a_secret_is_replaced_once_for_each_page(gateway) with [OPEN[0], OPEN[1], OPEN[2]] {
        let receiver = Receiver::start().await;
        let mut dev = developer(gateway).await;
        let (id, old) = subscribe(gateway, &receiver, &[]).await;
        let path = format!("/portal/webhooks/{id}/rotate");
        let page = dev.open(&path).await;
        let made = dev.submit(&page, &path, &[]).await;
        assert_eq!((made.status, made.header("cache-control")), (200, "no-store"), "{}", made.text);
        let new = secret(&made.text);
        let again = dev.submit(&page, &path, &[]).await;
        assert!(again.status == 400 && again.text.contains("has been replaced since this page was opened"), "{}", again.text);
        assert!(!again.text.contains("whsec_"));
        gateway.pass_time(1_000);
        assert_eq!(send(&mut dev, &format!("/portal/webhooks/{id}/test"), &[]).await.status, 303);
        let last = receiver.all().pop().unwrap();
        assert!(last.is_signed_by(&old) && last.is_signed_by(&new), "both sign for a day");
        is_nowhere(gateway, &mut dev, &new, &[&path, &format!("/portal/webhooks/{id}"), "/portal/webhooks", "/portal/team/log"]).await;
        // Whoever sees how it stands may do so again.
        let third = dev.submit(&again, &path, &[]).await;
        assert_eq!(third.status, 200, "{}", third.text);
        assert_ne!(secret(&third.text), new);
    }
}

/// The secret on a page. Base 64 has slashes, which `word` ends at.
fn secret(text: &str) -> String {
    let (_, rest) = text.split_once("whsec_").unwrap_or_else(|| panic!("no secret in {text}"));
    format!("whsec_{}", rest.split(['<', '"']).next().unwrap())
}
