//! A gateway that sells what real adapters buy, from fakes: entered in the settings, synced, enabled, sold, filled, given
//! back, and reconciled.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::suppliers::{self, books};
use simgate::ops::sync::{self, Consent};
use simgate::ops::{hooks, recover};

use super::fakes::{airalo, esim_access};
use crate::support::harness::{Db, Gateway, check_books, each_database, on_place, start_gateway};

pub const ORDERS: &str = "/api/b2b/v1/orders";

/// Runs a test on a gateway that has this supplier, called acme.
pub fn with_supplier(
    db: Db,
    fields: impl AsyncFnOnce() -> Shop + 'static,
    test: impl AsyncFnOnce(&Gateway, &Shop) + 'static,
) {
    on_place(db, async move |place| {
        let shop = fields().await;
        let (gateway, stop, served) = start_gateway(place, &shop.fields()).await;
        test(&gateway, &shop).await;
        check_books(&gateway.app).await;
        stop.cancel();
        served.await.unwrap();
    });
}

pub struct Shop {
    pub settings: Vec<(&'static str, String)>,
    pub access: Option<esim_access::Fake>,
    pub airalo: Option<airalo::Fake>,
}

impl Shop {
    /// The settings that name it.
    pub fn fields(&self) -> Vec<(&str, &str)> {
        self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

pub async fn esim_access_family() -> Shop {
    let fake = esim_access::Fake::start().await;
    let settings = vec![
        ("supplier_acme_kind", "esim-access".to_string()),
        ("supplier_acme_url", fake.url.clone()),
        ("supplier_acme_access_code", esim_access::CODE.to_string()),
        ("supplier_acme_rate", "1000".to_string()),
    ];
    Shop { settings, access: Some(fake), airalo: None }
}

pub async fn airalo_api() -> Shop {
    let fake = airalo::Fake::start().await;
    let settings = vec![
        ("supplier_acme_kind", "airalo".to_string()),
        ("supplier_acme_url", fake.url.clone()),
        ("supplier_acme_client_id", airalo::CLIENT.to_string()),
        ("supplier_acme_client_secret", airalo::SECRET.to_string()),
        ("supplier_acme_rate", "1000".to_string()),
    ];
    Shop { settings, access: None, airalo: Some(fake) }
}

/// Takes in its plans and sells them; what was paid in there is booked.
pub async fn open(gateway: &Gateway) {
    let app = &gateway.app;
    let left = suppliers::balance(app, "acme").await.unwrap().unwrap().in_usd().unwrap();
    books::fund(app, "test", "acme", left, "first").await.unwrap();
    let synced = sync::by_hand(app, "test", "supplier sync", "acme", Consent::Needed).await.unwrap();
    assert!(synced.applied, "{:?}", synced.changes.suspicious);
    assert!(
        gateway.post(ORDERS, json!({ "packageCode": plan(gateway) })).await.problem(404) == "PLAN_NOT_FOUND"
    );
    assert!(suppliers::enable(app, "test", "acme", true).await.unwrap());
}

/// A plan of this supplier's, by its code at the supplier.
pub fn plan_of(gateway: &Gateway, supplier_code: &str) -> String {
    let wanted =
        format!("SELECT code FROM plans WHERE supplier = 'acme' AND supplier_code = '{supplier_code}'");
    crate::support::database::rows(&gateway.app.settings.database, &wanted).remove(0).remove(0)
}

fn plan(gateway: &Gateway) -> String {
    let one = "SELECT code FROM plans WHERE supplier = 'acme' AND plan_type = 'BASE' ORDER BY code LIMIT 1";
    crate::support::database::rows(&gateway.app.settings.database, one).remove(0).remove(0)
}

pub async fn ended(gateway: &Gateway, id: &str) -> Value {
    gateway
        .until("the order ends", async || {
            let found = gateway.get(&format!("{ORDERS}/{id}")).await.expect(200);
            let order =
                if id.starts_with("top_") { found["topUpOrder"].clone() } else { found["order"].clone() };
            if order["status"] == "PROVISIONING" {
                gateway.pass_time(1_000);
                recover::round(&gateway.app).await.unwrap();
                return None;
            }
            Some(order)
        })
        .await
}

pub async fn buy(gateway: &Gateway, plan: &str) -> Value {
    let placed = gateway.post(ORDERS, json!({ "packageCode": plan })).await;
    assert!(matches!(placed.status, 200 | 202), "{}", placed.text);
    ended(gateway, placed.json()["order"]["id"].as_str().unwrap()).await
}

pub async fn fill(gateway: &Gateway, order: &Value, plan: &str) -> Value {
    let path = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
    let placed = gateway.post(&path, json!({ "packageCode": plan })).await;
    assert!(matches!(placed.status, 200 | 202), "{}", placed.text);
    ended(gateway, placed.json()["topUpOrder"]["id"].as_str().unwrap()).await
}

async fn agrees(gateway: &Gateway, sales: usize) {
    let found = books::reconcile(&gateway.app, "acme").await.unwrap();
    let named: Vec<&str> = found.differences.iter().map(|difference| difference.what).collect();
    assert_eq!((found.off_by(), named, found.listed.clone()), (Some(Usd::ZERO), vec![], Ok(sales)));
    assert!(found.agrees());
}

mod a_whole_life_at_esim_access {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, esim_access_family, async |gateway, shop| {
            let fake = shop.access.as_ref().unwrap();
            open(gateway).await;
            let (code, more) = (plan_of(gateway, "JC172"), plan_of(gateway, "TOPUP_JC172"));
            assert!(code.starts_with("JP-") && more.contains("-TOPUP-"), "{code} {more}");
            let first = buy(gateway, &code).await;
            assert_eq!(first["status"], "FULFILLED", "{first}");
            assert!(first["lpaString"].as_str().unwrap().starts_with("LPA:1$"), "{first}");
            assert_eq!(fill(gateway, &first, &more).await["status"], "FULFILLED");
            let usage = gateway
                .get(&format!("{ORDERS}/{}/usage", first["iccid"].as_str().unwrap()))
                .await
                .expect(200);
            assert_eq!((&usage["status"], &usage["stale"]), (&json!("NEW"), &json!(false)), "{usage}");
            let second = buy(gateway, &code).await;
            let cancelled =
                gateway.post(&format!("{ORDERS}/{}/cancel", second["id"].as_str().unwrap()), json!({})).await;
            cancelled.expect(200);
            assert_eq!(fake.world().sales(), 3);
            agrees(gateway, 3).await;
        });
    }

    each_database!(check);
}

mod a_whole_life_at_airalo {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, airalo_api, async |gateway, shop| {
            let fake = shop.airalo.as_ref().unwrap();
            open(gateway).await;
            let (code, more) = (plan_of(gateway, airalo::BASE), plan_of(gateway, airalo::TOPUP));
            let first = buy(gateway, &code).await;
            assert_eq!(first["status"], "FULFILLED", "{first}");
            assert_eq!(fill(gateway, &first, &more).await["status"], "FULFILLED");
            let cancel =
                gateway.post(&format!("{ORDERS}/{}/cancel", first["id"].as_str().unwrap()), json!({})).await;
            assert_eq!(cancel.problem(409), "NOT_CANCELLABLE");
            assert_eq!(fake.world().orders.len(), 2);
            agrees(gateway, 2).await;
        });
    }

    each_database!(check);
}

/// A lost answer buys nothing twice, and what is bought is found again.
mod lost_answers_at_esim_access {
    use super::*;
    use esim_access::Fault;

    fn check(db: Db) {
        with_supplier(db, esim_access_family, async |gateway, shop| {
            let fake = shop.access.as_ref().unwrap();
            open(gateway).await;
            let code = plan_of(gateway, "JC172");
            for fault in [Fault::BreakAfter, Fault::MumbleAfter, Fault::TooMany] {
                fake.world().fault = fault;
                let placed = gateway.app.tasks.spawn({
                    let request = gateway.request("POST", ORDERS).json(&json!({ "packageCode": code }));
                    async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
                });
                gateway
                    .until("it was asked", async || (!fake.world().requests.is_empty()).then_some(()))
                    .await;
                fake.world().fault = Fault::None;
                let placed = placed.await.unwrap();
                let order = ended(gateway, placed["order"]["id"].as_str().unwrap()).await;
                assert_eq!(order["status"], "FULFILLED", "{fault:?} {order}");
                fake.world().requests.clear();
            }
            assert_eq!(fake.world().sales(), 3);
            agrees(gateway, 3).await;
        });
    }

    each_database!(check);
}

/// Messages come to a secret path, are never believed, and only make us ask.
mod messages_only_make_us_ask {
    use super::*;

    fn check(db: Db) {
        with_supplier(db, esim_access_family, async |gateway, shop| {
            let fake = shop.access.as_ref().unwrap();
            open(gateway).await;
            let address = hooks::address(&gateway.app, "acme");
            let path = address.strip_prefix(&gateway.base).unwrap().to_string();
            let told = json!({
                "notifyType": "ORDER_STATUS", "notifyId": "n1",
                "content": { "orderNo": "B-NOBODYS", "orderStatus": "GOT_RESOURCE" },
            });
            gateway.post(&path, told.clone()).await;
            assert_eq!(gateway.post(&path, told.clone()).await.status, 200, "twice is once");
            assert_eq!(gateway.post("/hooks/abcdefgh", told).await.problem(404), "NOT_FOUND");
            assert!(
                fake.world().requests.iter().all(|request| !request.path.contains("order")),
                "nothing was asked"
            );
            assert_eq!(buy(gateway, &plan_of(gateway, "JC172")).await["status"], "FULFILLED");
            agrees(gateway, 1).await;
        });
    }

    each_database!(check);
}
