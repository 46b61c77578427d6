//! ICCIDs as suppliers print them: Airalo's sandbox has 18 digits, others fill theirs up with an `F`.

use serde_json::json;
use simgate::ops::find;

use super::fakes::airalo;
use super::selling::{airalo_api, buy, fill, open, plan_of, with_supplier};
use crate::support::harness::{Db, each_database};
use crate::support::shapes::ORDERS;

/// One of 18 digits is sold, and every door takes it.
mod one_of_18_digits_is_as_good_as_any {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, airalo_api, async |gateway, shop| {
            shop.airalo.as_ref().unwrap().world().iccid_digits = 18;
            open(gateway).await;
            let (code, more) = (plan_of(gateway, airalo::BASE), plan_of(gateway, airalo::TOPUP));
            let order = buy(gateway, &code).await;
            let iccid = order["iccid"].as_str().unwrap().to_string();
            assert_eq!((iccid.len(), &order["status"]), (18, &json!("FULFILLED")));
            let plans = gateway.get(&format!("{ORDERS}/{iccid}/topup-plans")).await.expect(200);
            assert_eq!(plans["iccid"], iccid, "{plans}");
            assert_eq!(fill(gateway, &order, &more).await["status"], "FULFILLED");
            // Its meter was read before it was filled.
            gateway.pass_time(61_000);
            for named in [iccid.clone(), format!("{iccid}F"), format!("{iccid}ff")] {
                let usage = gateway.get(&format!("{ORDERS}/{named}/usage")).await.expect(200);
                assert_eq!((&usage["iccid"], &usage["totalGb"]), (&json!(iccid), &json!(2.0)), "{usage}");
                let listed = gateway.get(&format!("{ORDERS}?iccid={named}")).await.expect(200);
                assert_eq!((&listed["total"], &listed["orders"][0]["id"]), (&json!(1), &order["id"]));
                let found = find::find(&gateway.app, &named).await.unwrap();
                assert_eq!(found.orders[0].id.as_str(), order["id"]);
            }
            for wrong in [&iccid[1..], &format!("{iccid}FFF"), &format!("F{iccid}"), &format!("{iccid}E")] {
                let refused = gateway.get(&format!("{ORDERS}/{wrong}/usage")).await;
                assert_eq!(refused.problem(400), "INVALID_REQUEST", "{wrong}");
            }
        });
    }

    each_database!(check);
}
