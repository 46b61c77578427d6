//! What Airalo lists.

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use super::{BASE, TOPUP};

pub fn package(id: &str) -> Option<Value> {
    all_packages().into_iter().find(|package| package["id"] == id)
}

pub fn all_packages() -> Vec<Value> {
    let catalog = catalog();
    let operators =
        catalog.as_array().unwrap().iter().flat_map(|country| country["operators"].as_array().unwrap());
    operators.flat_map(|operator| operator["packages"].as_array().unwrap().clone()).collect()
}

/// A country with one operator, and a region.
pub fn catalog() -> Value {
    let offer = |id: &str, kind: &str, price: f64, net_price: f64, mb: i64, day: i64| {
        let data = if mb == 0 { "Unlimited".into() } else { format!("{} GB", mb / 1024) };
        json!({
            "id": id, "type": kind, "price": price, "net_price": net_price, "amount": mb, "day": day,
            "is_unlimited": mb == 0, "is_fair_usage_policy": mb == 0,
            "fair_usage_policy": if mb == 0 { json!("1 Mbps after 3 GB a day") } else { Value::Null },
            "title": format!("{data} - {day} Days"), "data": data, "short_info": null, "voice": null, "text": null,
            "prices": { "net_price": { "USD": net_price, "EUR": net_price }, "recommended_retail_price": { "USD": price, "EUR": price } },
        })
    };
    let operator = |id: i64, kind: &str, title: &str, codes: &[&str], packages: Vec<Value>| {
        let coverages: Vec<Value> = codes
            .iter()
            .map(|code| json!({ "name": code, "code": code, "networks": [{ "name": "T-Mobile", "types": ["4G", "5G"] }] }))
            .collect();
        let countries: Vec<Value> =
            codes.iter().map(|code| json!({ "country_code": code, "title": code, "image": {} })).collect();
        json!({
            "id": id, "style": "light", "type": kind, "is_prepaid": false, "title": title, "esim_type": "Prepaid",
            "warning": null, "apn_type": "automatic", "apn_value": "wbdata", "is_roaming": true, "info": ["5G Data-only eSIM."],
            "image": { "width": 1035, "height": 653, "url": "https://cdn.example/a.png" }, "plan_type": "data",
            "activation_policy": "first-usage", "is_kyc_verify": false, "rechargeability": true, "other_info": null,
            "coverages": coverages, "install_window_days": 365, "topup_grace_window_days": 180,
            "apn": { "ios": { "apn_type": "automatic", "apn_value": null }, "android": { "apn_type": "automatic", "apn_value": null } },
            "packages": packages, "countries": countries,
        })
    };
    let country = |slug: &str, code: &str, title: &str, operator: Value| json!({ "slug": slug, "country_code": code, "title": title, "image": { "width": 132, "height": 99, "url": "https://cdn.example/b.png" }, "operators": [operator] });
    json!([
        country(
            "united-states",
            "US",
            "United States",
            operator(
                569,
                "local",
                "Change",
                &["US"],
                vec![
                    offer(BASE, "sim", 4.5, 2.7, 1024, 7),
                    offer("change-30days-3gb", "sim", 11.0, 7.15, 3072, 30),
                    offer("change-3days-unlimited", "sim", 11.5, 9.2, 0, 3),
                    offer(TOPUP, "topup", 4.5, 2.7, 1024, 7),
                ]
            )
        ),
        country(
            "europe",
            "",
            "Europe",
            operator(
                821,
                "global",
                "Eurolink",
                &["FR", "DE", "IT"],
                vec![
                    offer("eurolink-7days-1gb", "sim", 5.0, 3.1, 1024, 7),
                    offer("eurolink-7days-1gb-topup", "topup", 5.0, 3.1, 1024, 7),
                ]
            )
        ),
    ])
}

/// A package whose cost rose.
pub fn dearer(mut package: Value, by: Usd) -> Value {
    let cost = Usd::parse(&package["net_price"].to_string()).unwrap().plus(by);
    package["net_price"] = serde_json::from_str(&cost.to_string()).unwrap();
    package
}
