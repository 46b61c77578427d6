//! What the seller of the eSIM Access family lists.

use serde_json::{Value, json};

const GB: i64 = 1 << 30;
pub const MB: i64 = 1 << 20;
/// How long an unused profile can be installed.
pub const UNUSED_DAYS: i64 = 180;

fn place(code: &str, name: &str, networks: &[(&str, &str)]) -> Value {
    let operators: Vec<Value> =
        networks.iter().map(|(name, kind)| json!({"operatorName": name, "networkType": kind})).collect();
    json!({"locationName": name, "locationLogo": format!("/img/flags/{code}.png"), "operatorList": operators})
}

fn package(code: &str, slug: &str, name: &str, price: i64, volume: i64, days: i64, location: &str) -> Value {
    let networks = match location {
        "JP" => json!([place("jp", "Japan", &[("IIJ", "4G"), ("KDDI", "4G/5G")])]),
        _ => json!([
            place("us", "United States", &[("AT&T", "5G"), ("T-Mobile", "5G")]),
            place("ca", "Canada", &[("Rogers", "4G"), ("Telus", "4G")]),
        ]),
    };
    json!({
        "packageCode": code, "slug": slug, "name": name, "price": price, "retailPrice": price * 2, "currencyCode": "USD",
        "volume": volume, "smsStatus": 0, "dataType": 1, "unusedValidTime": UNUSED_DAYS, "duration": days,
        "durationUnit": "DAY", "location": location, "description": name, "activeType": 2, "favorite": true,
        "speed": "3G/4G/5G", "locationNetworkList": networks, "ipExport": "UK/NO", "supportTopUpType": 2, "fupPolicy": "",
    })
}

pub fn changed(mut package: Value, changes: Value) -> Value {
    package.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    package
}

pub fn packages() -> Vec<Value> {
    let daily = json!({"dataType": 2, "fupPolicy": "384 kbps", "supportTopUpType": 3});
    vec![
        package("CKH491", "NA-2_1_7", "North America 1GB 7Days", 57_000, GB, 7, "US,CA"),
        package("JC172", "JP_1_7", "Japan 1GB 7Days", 15_000, GB, 7, "JP"),
        package("JC173", "JP_3_30", "Japan 3GB 30Days", 39_000, 3 * GB, 30, "JP"),
        changed(package("PJD01", "JP_0.5_Daily", "Japan 500MB/Day", 5_000, 500 * MB, 1, "JP"), daily),
        // What no shop can sell: no price, and a place that no map has.
        package("BAD001", "JP_9_9", "Free", 0, GB, 7, "JP"),
        package("BAD002", "ZZ_9_9", "Atlantis", 10_000, GB, 7, "ZZ"),
    ]
}

/// They carry no slug, as in the API's own walk-through.
pub fn top_ups() -> Vec<Value> {
    let fixed = ["CKH491", "JC172", "JC173"];
    let mut all: Vec<Value> = packages()
        .into_iter()
        .filter(|package| fixed.contains(&package["packageCode"].as_str().unwrap()))
        .map(|package| {
            let code = format!("TOPUP_{}", package["packageCode"].as_str().unwrap());
            changed(package, json!({"packageCode": code, "slug": ""}))
        })
        .collect();
    let day = package("TOPUP_PJD01", "", "Japan 500MB/Day", 5_000, 500 * MB, 1, "JP");
    all.push(changed(day, json!({"dataType": 2, "supportTopUpType": 3})));
    all
}
