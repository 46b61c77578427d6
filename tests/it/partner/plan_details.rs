//! What suppliers say of a plan, at every door that shows plans, and nothing where they do not say.

use std::sync::Arc;

use serde_json::{Value, json};
use simgate::domain::plan::{Carrier, Details, Plan, VolumeKind};
use simgate::ops;
use simgate::store::catalog;
use simgate::store::tx::Tx;

use crate::support::browser::open as look;
use crate::support::buying::fund;
use crate::support::coupons::plan;
use crate::support::database;
use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::logins::{sign_in, with_token};
use crate::support::shapes::column;
use crate::support::tool_caller::{buy, call, fine};

const CODE: &str = "JP-500MB-1D";
const WORDS: &str = "Japan 500 MB 1 day";
/// All members that say what a supplier has said.
const MEMBERS: [&str; 9] = [
    "kind",
    "fairUse",
    "networks",
    "speed",
    "activationPolicy",
    "hotspot",
    "exitCountry",
    "topUp",
    "kycRequired",
];

/// A plan as partners see it.
async fn listed(gateway: &Gateway, code: &str) -> Value {
    let found = gateway.get(&format!("/api/b2b/v1/plans?query={code}")).await.expect(200);
    let mut plans = found["plans"].as_array().unwrap().iter();
    plans.find(|plan| plan["packageCode"] == code).unwrap().clone()
}

/// The same plan in the search.
async fn found(gateway: &Gateway) -> Value {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("country", WORDS).finish();
    let path = format!("{}/api/products/search?{query}&limit=1", gateway.base);
    let plan = reply(gateway.client.get(path)).await.expect(200)["plans"][0].clone();
    assert_eq!(plan["packageCode"], CODE);
    plan
}

/// The same plan by the tool.
async fn told(gateway: &Gateway) -> Value {
    let found = fine(call(gateway, "get_esim_catalog", json!({ "countryCode": WORDS, "limit": 1 })).await);
    assert_eq!(found["plans"][0]["packageCode"], CODE);
    found["plans"][0].clone()
}

async fn page(gateway: &Gateway, code: &str) -> String {
    let page = look(gateway, &format!("/checkout?plan={code}")).await;
    assert_eq!(page.status, 200);
    page.text
}

/// What a plan's supplier has said.
fn details(plan: &Value) -> Value {
    let said = MEMBERS.iter().filter_map(|name| Some((name.to_string(), plan.get(name)?.clone())));
    Value::Object(said.collect())
}

/// Lets the supplier say this of the plan, as a sync does.
async fn say(gateway: &Gateway, said: Details) {
    let said = Plan { details: Arc::new(said.cleaned()), ..Plan::clone(&plan(gateway, CODE)) };
    let before = [listed(gateway, CODE).await, found(gateway).await];
    let write = move |tx: &mut Tx| {
        catalog::put(tx, &[(said.clone(), CODE.into())], "sim", true)?;
        catalog::publish(tx)
    };
    gateway.app.store.write(0, write).await.unwrap();
    until_changed(gateway, &before).await;
}

async fn until_changed(gateway: &Gateway, before: &[Value; 2]) {
    let look = async || {
        let now = [listed(gateway, CODE).await, found(gateway).await];
        (now[0] != before[0] && now[1] != before[1]).then_some(())
    };
    gateway.until("the catalog has changed", look).await;
}

fn carrier(country: &str, operator: &str, technologies: &[&str]) -> Carrier {
    let technologies = technologies.iter().map(|text| text.to_string()).collect();
    Carrier { country: country.into(), operator: operator.into(), technologies }
}

both_databases! {
    async fn the_sandbox_has_some_of_each(gateway) {
        let japan = json!([{ "country": "JP", "operators": [
            { "name": "NTT Docomo", "technologies": ["4G", "5G"] },
            { "name": "SoftBank", "technologies": ["4G", "5G"] },
            { "name": "KDDI", "technologies": ["4G", "5G"] },
        ] }]);
        let said = json!({
            "kind": "FIXED", "networks": japan, "speed": "4G/5G", "activationPolicy": "Its days begin with its first use.",
            "hotspot": true, "topUp": true,
        });
        for plan in [listed(gateway, CODE).await, found(gateway).await, told(gateway).await] {
            assert_eq!(details(&plan), said, "{plan}");
        }
        let both = listed(gateway, "JAPAN-KOREA-1GB-7D").await;
        assert_eq!((column(&both["networks"], "country"), &both["exitCountry"]), (vec!["JP", "KR"], &json!("NL")));
        assert_eq!(listed(gateway, "HK-1GB-7D").await["kycRequired"], true);
        let global = listed(gateway, "GLOBAL-1GB-7D").await;
        assert_eq!((global.get("networks"), global.get("speed"), &global["hotspot"]), (None, None, &json!(true)));

        let text = page(gateway, CODE).await;
        for part in [
            "<dt>Mobile networks</dt><dd>NTT Docomo (4G, 5G), SoftBank (4G, 5G), KDDI (4G, 5G)</dd>",
            "<dt>Speed</dt><dd>4G/5G</dd>", "<dt>Start</dt><dd>Its days begin with its first use.</dd>",
            "<dt>Hotspot</dt><dd>Can be shared with other devices</dd>", "<dt>More data</dt><dd>Can be added later</dd>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("Mobile networks by country") && !text.contains("Identity check") && !text.contains("Internet access"), "{text}");
        let text = page(gateway, "JAPAN-KOREA-1GB-7D").await;
        for part in ["<summary>Mobile networks by country</summary>", "<dt>South Korea</dt><dd>SK Telecom (", "Through Netherlands"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(page(gateway, "HK-1GB-7D").await.contains("<dt>Identity check</dt><dd>Needed before the eSIM works</dd>"));
    }

    async fn top_ups_have_them_too(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", simgate::domain::money::Usd::dollars(20)).await;
        let order = buy(gateway, &token).await["orderId"].clone();
        let packages = fine(call(gateway, "get_topup_packages", json!({ "orderId": order, "token": token })).await);
        assert_eq!(details(&packages["packages"][0]), json!({ "kind": "FIXED" }));
        let path = format!("/api/esims/{}/topup", order.as_str().unwrap());
        let packages = with_token(gateway, &token, "GET", &path).await.expect(200);
        assert_eq!(details(&packages["packages"][0]), json!({ "kind": "FIXED" }));
    }

    async fn what_is_not_said_is_absent(gateway) {
        say(gateway, Details::default()).await;
        for plan in [listed(gateway, CODE).await, found(gateway).await, told(gateway).await] {
            assert_eq!(details(&plan), json!({}), "{plan}");
        }
        let text = page(gateway, CODE).await;
        assert!(text.contains("<dt>Mobile networks</dt><dd>NTT Docomo / SoftBank / KDDI</dd>"), "{text}");
        for part in ["Speed", "<dt>Start", "Hotspot", "More data", "Identity check", "Fair use", "More about this plan", "Mobile networks by country"] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        let stored = "SELECT CAST(COUNT(*) AS TEXT) FROM plans WHERE details IS NULL";
        assert_eq!(database::rows(&gateway.app.settings.database, stored), [["1"]]);
    }

    async fn everything_can_be_said(gateway) {
        say(gateway, Details {
            kind: Some(VolumeKind::DayPass),
            fair_use: Some("1 GB a day, then 512 kbit/s".into()),
            networks: vec![carrier("jp", "NTT Docomo", &["LTE", "5G"]), carrier("JP", "KDDI", &[])],
            speed: Some("Up to 100 Mbit/s".into()),
            activation_policy: Some("With the purchase".into()),
            hotspot: Some(false),
            exit_country: Some("HK,SG".into()),
            top_up: Some(false),
            kyc_required: Some(false),
        }).await;
        let said = json!({
            "kind": "DAY_PASS", "fairUse": "1 GB a day, then 512 kbit/s", "speed": "Up to 100 Mbit/s",
            "activationPolicy": "With the purchase", "hotspot": false, "exitCountry": "HK,SG", "topUp": false,
            "kycRequired": false, "networks": [{ "country": "JP", "operators": [
                { "name": "NTT Docomo", "technologies": ["4G", "5G"] }, { "name": "KDDI", "technologies": [] },
            ] }],
        });
        for plan in [listed(gateway, CODE).await, found(gateway).await, told(gateway).await] {
            assert_eq!(details(&plan), said, "{plan}");
        }
        let text = page(gateway, CODE).await;
        for part in [
            "NTT Docomo (4G, 5G), KDDI</dd>", "The data is for each day", "1 GB a day, then 512 kbit/s", "With the purchase",
            "Cannot be shared with other devices", "Cannot be added later", "Through Hong Kong, Singapore", "Not needed",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// A sync brings what a row from before does not have.
    async fn a_sync_brings_them(gateway) {
        let before = [listed(gateway, CODE).await, found(gateway).await];
        let location = &gateway.app.settings.database;
        database::execute(location, "UPDATE plans SET details = NULL").unwrap();
        gateway.app.store.write(0, catalog::publish).await.unwrap();
        until_changed(gateway, &before).await;
        assert_eq!(details(&listed(gateway, "HK-1GB-7D").await), json!({}));
        let without = [listed(gateway, CODE).await, found(gateway).await];
        ops::sync::seed(&gateway.app).await.unwrap();
        until_changed(gateway, &without).await;
        assert_eq!([listed(gateway, CODE).await, found(gateway).await], before);
    }

    /// The plan is sold all the same.
    async fn what_cannot_be_read_is_left_out(gateway) {
        let before = [listed(gateway, CODE).await, found(gateway).await];
        let garbled = format!("UPDATE plans SET details = '{{\"kind\":\"SIDEWAYS\"' WHERE code = '{CODE}'");
        database::execute(&gateway.app.settings.database, &garbled).unwrap();
        gateway.app.store.write(0, catalog::publish).await.unwrap();
        until_changed(gateway, &before).await;
        for plan in [listed(gateway, CODE).await, found(gateway).await] {
            assert_eq!(details(&plan), json!({}), "{plan}");
        }
        assert_ne!(details(&listed(gateway, "HK-1GB-7D").await), json!({}), "the others have theirs");
        gateway.order(CODE).await;
    }

    /// Whatever a supplier writes is text.
    async fn hostile_texts_are_text(gateway) {
        let hostile = "</dd><script>alert(1)</script>\"}],\u{202e}\u{0}";
        say(gateway, Details {
            fair_use: Some(hostile.into()),
            networks: vec![carrier("JP", hostile, &["4G", hostile]), carrier("<b>", "Nobody", &["4G"]), carrier("KR", hostile, &[])],
            speed: Some(hostile.into()),
            activation_policy: Some(hostile.into()),
            exit_country: Some(hostile.into()),
            ..Details::default()
        }).await;
        let text = "</dd><script>alert(1)</script>\"}],";
        let said = json!({
            "fairUse": text, "speed": text, "activationPolicy": text, "networks": [
                { "country": "JP", "operators": [{ "name": text, "technologies": ["4G"] }] },
                { "country": "KR", "operators": [{ "name": text, "technologies": [] }] },
            ],
        });
        for plan in [listed(gateway, CODE).await, found(gateway).await, told(gateway).await] {
            assert_eq!(details(&plan), said, "{plan}");
        }
        let shown = page(gateway, CODE).await;
        assert!(!shown.contains("<script") && shown.matches("alert(1)").count() == 5, "{shown}");
    }

    /// A list that nobody reads is not in searches; partners and people have all of it.
    async fn a_long_list_of_networks_is_left_out_of_searches(gateway) {
        let before = found(gateway).await;
        let codes = ["AT", "BE", "CH", "DE", "DK", "ES", "FI", "FR", "GB", "IT", "NL", "NO", "PL", "PT", "SE"];
        let networks = codes.iter().flat_map(|code| [carrier(code, "First Mobile", &["4G"]), carrier(code, "Second Mobile", &["5G"])]);
        say(gateway, Details { networks: networks.collect(), ..plan(gateway, CODE).details.as_ref().clone() }).await;
        let mut expected = details(&before);
        expected.as_object_mut().unwrap().remove("networks");
        assert_eq!((details(&found(gateway).await), details(&told(gateway).await)), (expected.clone(), expected));
        assert_eq!(listed(gateway, CODE).await["networks"].as_array().unwrap().len(), codes.len());
        let text = page(gateway, CODE).await;
        assert_eq!(text.matches("First Mobile (4G), Second Mobile (5G)").count(), codes.len(), "{text}");
    }
}
