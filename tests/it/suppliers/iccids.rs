//! ICCIDs as suppliers print them: Airalo's sandbox has 18 digits, others fill theirs up with an `F`.

use serde_json::json;
use simgate::ops::find;

use super::fakes::airalo;
use super::selling::{airalo_api, buy, ended, open, plan_of, with_supplier};
use crate::support::harness::{Db, each_database};
use crate::support::shapes::ORDERS;

/// One of 18 digits is sold. Its order names it where an ICCID must have 19 or 20.
mod one_of_18_digits_is_named_by_its_order {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, airalo_api, async |gateway, shop| {
            shop.airalo.as_ref().unwrap().world().iccid_digits = 18;
            open(gateway).await;
            let (code, more) = (plan_of(gateway, airalo::BASE), plan_of(gateway, airalo::TOPUP));
            let order = buy(gateway, &code).await;
            let (id, iccid) = (order["id"].as_str().unwrap(), order["iccid"].as_str().unwrap());
            assert_eq!((iccid.len(), &order["status"]), (18, &json!("FULFILLED")));
            let plans = gateway.get(&format!("{ORDERS}/{id}/topup-plans")).await.expect(200);
            assert_eq!(plans["iccid"], iccid, "{plans}");
            let filled = gateway.post(&format!("{ORDERS}/{id}/topup"), json!({ "packageCode": more })).await;
            let filled = ended(gateway, filled.json()["topUpOrder"]["id"].as_str().unwrap()).await;
            assert_eq!(filled["status"], "FULFILLED", "{filled}");
            // Its meter was read before it was filled.
            gateway.pass_time(61_000);
            let usage = gateway.get(&format!("{ORDERS}/{id}/usage")).await.expect(200);
            assert_eq!((&usage["iccid"], &usage["totalGb"]), (&json!(iccid), &json!(2.0)), "{usage}");
            for wrong in [iccid, &format!("{iccid}F"), &format!("{iccid}1F")] {
                let refused = gateway.get(&format!("{ORDERS}/{wrong}/usage")).await;
                assert_eq!(refused.problem(400), "INVALID_REQUEST", "{wrong}");
            }
            // Operators type what they read on a card.
            for named in [iccid, &format!("{iccid}F"), &format!("{iccid}ff")] {
                let found = find::find(&gateway.app, named).await.unwrap();
                assert_eq!(found.orders[0].id.as_str(), order["id"], "{named}");
            }
        });
    }

    each_database!(check);
}
