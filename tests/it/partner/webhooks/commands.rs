//! `simgate webhook`: the same by an operator, for any partner's.

use serde_json::{Value, json};

use super::{PRIVATE, active, events, friendly, made, sent, text, unfriendly, url_of};
use crate::support::command_line::{Told, database_url, ok, run, simgate, split};
use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::ORDERS;

/// A command that may reach this machine.
fn told(gateway: &Gateway, line: &str) -> Told {
    let env = [("SIMGATE_WEBHOOK_ALLOW_PRIVATE", "true")];
    run(&database_url(gateway), &gateway.dir, &env, &split(&format!("{line} --json")))
}

fn deeds(gateway: &Gateway, command: &str) -> Vec<Value> {
    ok(gateway, &format!("audit list --command '{command}'"))["deeds"].as_array().unwrap().clone()
}

both_databases! {
    async fn an_operator_lists_tests_and_sends_again(gateway) with [PRIVATE] {
        let (kind, unkind) = (friendly().await, unfriendly().await);
        let (good, _) = made(gateway, &url_of(&kind)).await;
        let (bad, _) = made(gateway, &url_of(&unkind)).await;
        let tested = told(gateway, &format!("webhook test {good}")).document(0);
        assert_eq!((&tested["status"], &tested["accepted"], &tested["type"]), (&json!("ACTIVE"), &json!(true), &json!("webhook.test")));
        let refused = told(gateway, &format!("webhook test {bad}")).document(1);
        assert_eq!((&refused["status"], &refused["accepted"], &refused["httpStatus"]), (&json!("PENDING"), &json!(false), &json!(500)));
        let listed = ok(gateway, "webhook list")["webhooks"].clone();
        assert_eq!((&listed[0]["webhookId"], &listed[0]["status"], &listed[0]["partnerId"]), (&json!(good), &json!("ACTIVE"), &json!(gateway.partner)));
        let theirs = ok(gateway, &format!("webhook list {}", gateway.partner))["webhooks"].clone();
        assert_eq!((&theirs[0]["webhookId"], &theirs[1]["webhookId"]), (&json!(good), &json!(bad)));
        let tries = ok(gateway, &format!("webhook deliveries {good} --limit 1"));
        let delivery = text(&tries["deliveries"][0]["deliveryId"]).to_string();
        let again = told(gateway, &format!("webhook redeliver {good} {delivery}")).document(0);
        assert_eq!((&again["accepted"], &again["eventId"]), (&json!(true), &tries["deliveries"][0]["eventId"]));
        assert_eq!((deeds(gateway, "webhook test").len(), deeds(gateway, "webhook redeliver").len()), (2, 1));
        // Its partner sees these tries, too.
        let seen = sent(gateway, "GET", &format!("/{good}/deliveries"), None).await.expect(200);
        assert!(seen["deliveries"].as_array().unwrap().iter().any(|one| one["id"] == delivery.as_str()), "{seen}");
        let shown = simgate(gateway, &["webhook", "list"]);
        assert!(shown.exit == 0 && shown.stdout.contains(&good) && !shown.stdout.contains("whsec_"), "{}", shown.stdout);
    }

    async fn an_operator_disables_enables_and_replays(gateway) with [PRIVATE] {
        let receiver = friendly().await;
        let (id, _) = active(gateway, &url_of(&receiver)).await;
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(200);
        let event = events(gateway).await[0].clone();
        assert_eq!(ok(gateway, &format!("webhook disable {id}"))["status"], "DISABLED");
        ok(gateway, &format!("webhook disable {id}"));
        let refused = simgate(gateway, &split(&format!("webhook replay {id} --after {event} --json")));
        refused.refused(1, "WEBHOOK_DISABLED");
        assert_eq!(ok(gateway, &format!("webhook enable {id}"))["status"], "ACTIVE");
        assert_eq!(ok(gateway, &format!("webhook replay {id} --after {event}"))["after"], json!(event));
        ok(gateway, &format!("webhook replay {id} --since 2020-01-01"));
        let disabled = deeds(gateway, "webhook disable");
        assert_eq!(disabled.len(), 1, "a second word of the same changes nothing");
        assert_eq!((&disabled[0]["before"], &disabled[0]["after"]), (&json!("ACTIVE"), &json!("DISABLED")));
        assert_eq!((deeds(gateway, "webhook enable").len(), deeds(gateway, "webhook replay").is_empty()), (1, false));
    }

    async fn wrong_commands_are_refused(gateway) {
        for command in ["test", "deliveries", "enable", "disable", "replay --since 2020-01-01"] {
            let sentence = simgate(gateway, &split(&format!("webhook {command} whk_none --json"))).refused(1, "NOT_FOUND");
            assert!(sentence.contains("simgate webhook list"), "{sentence}");
        }
        simgate(gateway, &split("webhook redeliver whk_none dlv_none --json")).refused(1, "NOT_FOUND");
        for wrong in ["replay whk_none", "replay whk_none --after evt_1 --since 2020-01-01", "replay whk_none --after evt_1", "replay whk_none --since soon"] {
            simgate(gateway, &split(&format!("webhook {wrong} --json"))).refused(2, "INVALID_REQUEST");
        }
    }
}
