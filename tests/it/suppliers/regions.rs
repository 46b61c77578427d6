//! Regions in price rules are called by their countries, whoever sells; top-ups stay with the supplier of their plan.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::price::{Rule, Scope};
use simgate::ops::prices;

use super::selling::{airalo_api, buy, open, plan_of, with_supplier};
use crate::support::harness::{Db, Gateway, each_database};

async fn price(gateway: &Gateway, code: &str) -> String {
    gateway.get(&format!("/api/b2b/v1/plans?query={code}")).await.expect(200)["plans"][0]["priceUsd"]
        .to_string()
}

mod one_rule_is_for_every_supplier_of_a_region {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, airalo_api, async |gateway, _| {
            open(gateway).await;
            let code = plan_of(gateway, "eurolink-7days-1gb");
            let here = plan_of(gateway, "change-7days-1gb");
            let is_sold = async || Some(price(gateway, &here).await).filter(|price| price != "null");
            let before = gateway.until("it is on sale", is_sold).await;
            let scope = Scope::parse("region", "europe").unwrap();
            let rule = Rule { price: Some(Usd::dollars(77)), ..Rule::default() };
            let drafted = prices::set(&gateway.app, "test", "default", scope, rule).await.unwrap();
            assert!(drafted.plans > 2, "the simulator's and acme's: {}", drafted.plans);
            prices::publish(&gateway.app, "test").await.unwrap();
            gateway
                .until("it is sold for that", async || (price(gateway, &code).await == "77").then_some(()))
                .await;
            assert_eq!(price(gateway, &here).await, before);
            // What fills it up is its supplier's alone.
            let order = buy(gateway, &code).await;
            let path = format!("/api/b2b/v1/orders/{}/topup-plans", order["iccid"].as_str().unwrap());
            let fits = gateway.get(&path).await.expect(200)["plans"].clone();
            let fits: Vec<&Value> =
                fits.as_array().unwrap().iter().map(|plan| &plan["packageCode"]).collect();
            assert_eq!(fits, [&json!(plan_of(gateway, "eurolink-7days-1gb-topup"))]);
        });
    }

    each_database!(check);
}
