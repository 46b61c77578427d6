//! Messages of suppliers about profiles: they make a meter be read earlier, at its pace, and are believed in nothing.

use serde_json::{Value, json};
use simgate::ops::{hooks, usage};
use simgate::supplier::airalo::signature;

use super::fakes::airalo;
use super::selling::{Shop, airalo_api, buy, esim_access_family, open, plan_of, with_supplier};
use crate::support::database;
use crate::support::harness::{Db, Gateway, each_database, reply};

fn number(gateway: &Gateway, sql: &str) -> i64 {
    database::rows(&gateway.app.settings.database, sql)[0][0].parse().unwrap()
}

/// How often meters were read, and in how many seconds this one is due.
fn readings(gateway: &Gateway, order: &Value) -> (i64, i64) {
    let id = order["id"].as_str().unwrap();
    let due = format!("SELECT CAST(due_at AS TEXT) FROM esims WHERE order_id = '{id}'");
    let due = (number(gateway, &due) - gateway.app.now().micros()) / 1_000_000;
    (number(gateway, "SELECT CAST(SUM(readings) AS TEXT) FROM esims"), due)
}

/// The path that a supplier sends its messages to.
fn path(gateway: &Gateway) -> String {
    hooks::address(&gateway.app, "acme").strip_prefix(&gateway.base).unwrap().to_string()
}

async fn tell(gateway: &Gateway, message: &Value, headers: &[(&str, String)]) -> u16 {
    let request = gateway.client.post(format!("{}{}", gateway.base, path(gateway))).body(message.to_string());
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
    reply(request.header("content-type", "application/json")).await.status
}

async fn is_read(gateway: &Gateway, order: &Value, times: i64) {
    gateway
        .until("its meter is read", async || {
            usage::round(&gateway.app).await.unwrap();
            (readings(gateway, order).0 == times).then_some(())
        })
        .await;
}

mod of_the_esim_access_family {
    use super::*;

    fn told(kind: &str, id: &str, iccid: &Value) -> Value {
        json!({ "notifyType": kind, "notifyId": id, "content": { "orderNo": "B-1", "iccid": iccid, "remain": 0, "esimStatus": "USED_UP" } })
    }

    fn check(db: Db) {
        with_supplier(db, esim_access_family, async |gateway, _| {
            open(gateway).await;
            let code = plan_of(gateway, "JC172");
            let (order, other) = (buy(gateway, &code).await, buy(gateway, &code).await);
            assert!(readings(gateway, &order).1 > 3_600, "it would be read in hours");
            // What is nobody's, or no ICCID, does nothing.
            for stranger in [json!("8985200000000000000"), json!("89"), json!(7)] {
                assert_eq!(tell(gateway, &told("DATA_USAGE", "n0", &stranger), &[]).await, 200);
            }
            assert!(readings(gateway, &order).1 > 3_600 && readings(gateway, &other).1 > 3_600);
            assert_eq!(tell(gateway, &told("ESIM_STATUS", "n1", &order["iccid"]), &[]).await, 200);
            is_read(gateway, &order, 1).await;
            let usage =
                gateway.get(&format!("/api/b2b/v1/orders/{}/usage", order["iccid"].as_str().unwrap())).await;
            assert_eq!(usage.expect(200)["status"], "NEW", "the message is not believed");
            // Many more make one more reading, when the pace allows it.
            for (nth, kind) in
                ["DATA_USAGE", "VALIDITY_USAGE", "SMDP_EVENT", "ESIM_STATUS"].into_iter().enumerate()
            {
                tell(gateway, &told(kind, &format!("m{nth}"), &order["iccid"]), &[]).await;
            }
            let (read, due) = readings(gateway, &order);
            assert!(read == 1 && (1..=60).contains(&due), "{due}");
            gateway.pass_time(61_000);
            is_read(gateway, &order, 2).await;
            // One that was heard before says nothing new.
            gateway.pass_time(61_000);
            tell(gateway, &told("ESIM_STATUS", "n1", &order["iccid"]), &[]).await;
            assert!(readings(gateway, &order).1 > 600 && readings(gateway, &other).1 > 3_000);
        });
    }

    each_database!(check);
}

mod of_airalo {
    use super::*;

    async fn short_iccids() -> Shop {
        let shop = airalo_api().await;
        shop.airalo.as_ref().unwrap().world().iccid_digits = 18;
        shop
    }

    fn check(db: Db) {
        with_supplier(db, short_iccids, async |gateway, _| {
            open(gateway).await;
            let order = buy(gateway, &plan_of(gateway, airalo::BASE)).await;
            let message = json!({ "level": "90%", "remaining_percentage": 10, "iccid": order["iccid"] });
            let signed = |secret: &str| [("airalo-signature", signature::sign(secret, &message.to_string()))];
            assert_eq!(tell(gateway, &message, &[]).await, 404);
            assert_eq!(tell(gateway, &message, &signed("another secret")).await, 404);
            assert!(readings(gateway, &order).1 > 3_600, "a forged one does nothing");
            assert_eq!(tell(gateway, &message, &signed(airalo::SECRET)).await, 200);
            is_read(gateway, &order, 1).await;
        });
    }

    each_database!(check);
}
