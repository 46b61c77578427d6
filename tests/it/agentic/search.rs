//! The search for agents, over HTTP: shapes, limits, order and what is refused. How texts are read is a table in
//! `domain::search`.

use std::collections::HashSet;
use std::io::Read;

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::harness::{Gateway, Reply, both_databases, reply, until};
use crate::support::shapes::{column, names};

const SEARCH: &str = "/api/products/search";

/// A search without any login.
async fn ask(gateway: &Gateway, parameters: &[(&str, &str)]) -> Reply {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    reply(gateway.client.get(format!("{}{SEARCH}?{query}", gateway.base))).await
}

async fn search(gateway: &Gateway, text: &str) -> Value {
    ask(gateway, &[("country", text), ("limit", "200")]).await.expect(200)
}

fn plans(found: &Value) -> &Vec<Value> {
    found["plans"].as_array().unwrap()
}

fn codes(found: &Value) -> Vec<&str> {
    column(&found["plans"], "packageCode")
}

fn covers(plan: &Value, code: &str) -> bool {
    plan["locationCodes"].as_array().unwrap().contains(&json!(code))
}

fn countries(plan: &Value) -> usize {
    plan["locationCodes"].as_array().unwrap().len()
}

fn gigabyte_price(plan: &Value) -> f64 {
    plan["retailPrice"].as_f64().unwrap() / plan["dataAmount"].as_f64().unwrap()
}

both_databases! {
    async fn a_search_shows_retail_plans(gateway) {
        let answer = ask(gateway, &[("country", "Japan")]).await;
        for price in answer.text.split("\"retailPrice\":").skip(1) {
            let decimals = price.split(',').next().unwrap().split('.').nth(1).unwrap_or("");
            assert!(decimals.len() <= 2, "{price}");
        }
        let found = answer.expect(200);
        assert_eq!(answer.header("content-type"), "application/json");
        assert!(!answer.header("ratelimit").is_empty());
        assert_eq!(names(&found), ["currency", "plans", "success", "totalCount"]);
        assert_eq!((&found["success"], &found["currency"]), (&json!(true), &json!("USD")));
        assert_eq!(plans(&found).len(), 10, "a model reads all of it");
        assert!(found["totalCount"].as_u64().unwrap() > 50);
        let first = search(gateway, "japan 500mb 1 day").await["plans"][0].clone();
        let mut one = first.clone();
        let wholesale = gateway.get("/api/b2b/v1/plans?query=jp-500mb-1d").await.expect(200)["plans"][0].clone();
        assert_eq!(one.as_object_mut().unwrap().remove("networks").as_ref(), wholesale.get("networks"));
        insta::assert_json_snapshot!(one, @r#"
        {
          "activationPolicy": "Its days begin with its first use.",
          "currency": "USD",
          "dataAmount": 0.5,
          "dataUnit": "GB",
          "duration": 1,
          "durationUnit": "DAY",
          "hotspot": true,
          "kind": "FIXED",
          "locationCodes": [
            "JP"
          ],
          "locationNames": [
            "Japan"
          ],
          "name": "Japan 500 MB 1 day",
          "operator": "NTT Docomo / SoftBank / KDDI",
          "packageCode": "JP-500MB-1D",
          "planType": "BASE",
          "retailPrice": 0.69,
          "speed": "4G/5G",
          "topUp": true
        }
        "#);
        let all = search(gateway, "JP").await;
        assert_eq!(all["totalCount"], plans(&all).len());
        for plan in plans(&all) {
            let alike = countries(plan) > 1 || names(plan) == names(&first);
            assert!(alike, "{plan}");
            assert_eq!(plan["planType"], "BASE");
            assert!(covers(plan, "JP"), "{plan}");
            assert_eq!(countries(plan), plan["locationNames"].as_array().unwrap().len());
        }
        let wholesale = gateway.price("JP-5GB-30D").await;
        let shown = plans(&all).iter().find(|plan| plan["packageCode"] == "JP-5GB-30D").unwrap();
        assert!(Usd::parse(&shown["retailPrice"].to_string()).unwrap() > wholesale);
    }

    async fn best_first(gateway) {
        let japan = search(gateway, "Japan").await;
        let own = plans(&japan).iter().take_while(|plan| countries(plan) == 1).count();
        assert!(own > 10 && plans(&japan)[own..].iter().all(|plan| countries(plan) > 1));
        assert!(plans(&japan)[..own].is_sorted_by_key(gigabyte_price));
        let global = plans(&japan).iter().position(|plan| countries(plan) > 55).unwrap();
        assert!(plans(&japan)[own..global].is_sorted_by_key(gigabyte_price));
        assert!(plans(&japan)[global..].iter().all(|plan| countries(plan) > 55), "regional plans come before global ones");

        for text in ["cheapest Japan", "Japan, lowest price"] {
            let cheap = search(gateway, text).await;
            assert_eq!(cheap["totalCount"], japan["totalCount"], "a wish and no limit");
            let price = |plan: &Value| plan["retailPrice"].as_f64().unwrap();
            assert!(plans(&cheap)[..own].is_sorted_by_key(price) && plans(&cheap)[..own].iter().all(|plan| countries(plan) == 1));
            assert!(plans(&cheap)[own..global].is_sorted_by_key(price), "wider ones come after them");
        }

        for (text, first) in [
            ("Spain 10GB 30 days", "ES-10GB-30D"),
            ("spain 10 gb one month", "ES-10GB-30D"),
            ("cheap esim for my trip to Germny 5gb 30 days", "DE-5GB-30D"),
            ("UK 5gb 30 days", "GB-5GB-30D"),
            ("it 5gb 30 days", "IT-5GB-30D"),
            ("europe 10gb 30 days", "EUROPE-10GB-30D"),
            ("japan and korea 5gb 30 days", "JAPAN-KOREA-5GB-30D"),
            ("benelux 5gb 30 days", "BENELUX-5GB-30D"),
            ("balkans 5gb 30 days", "BALKANS-5GB-30D"),
            ("southeast asia 5gb 30 days", "SOUTHEAST-ASIA-5GB-30D"),
            ("gcc 5gb 30 days", "GCC-5GB-30D"),
            ("nordics 5gb 30 days", "NORDICS-5GB-30D"),
            ("central asia 5gb 30 days", "CENTRAL-ASIA-5GB-30D"),
            ("caribbean 5gb 30 days", "CARIBBEAN-5GB-30D"),
            ("latin america 5gb 30 days", "LATIN-AMERICA-5GB-30D"),
            ("middle east 5gb 30 days", "MIDDLE-EAST-5GB-30D"),
            ("north africa 5gb 30 days", "NORTH-AFRICA-5GB-30D"),
            ("oceania 5gb 30 days", "OCEANIA-5GB-30D"),
            ("africa 5gb 30 days", "AFRICA-5GB-30D"),
            ("asia 5gb 30 days", "ASIA-5GB-30D"),
            ("EU 5gb 30 days", "EU-UK-5GB-30D"),
            ("worldwide 5gb 30 days", "GLOBAL-LITE-5GB-30D"),
        ] {
            assert_eq!(codes(&search(gateway, text).await).first(), Some(&first), "{text}");
        }
        let both = search(gateway, "Japan and Korea").await;
        let partly = plans(&both).iter().position(|plan| !(covers(plan, "JP") && covers(plan, "KR"))).unwrap();
        assert!(plans(&both)[partly..].iter().all(|plan| countries(plan) == 1));
        let cheap = search(gateway, "Japan under $5").await;
        assert!(!plans(&cheap).is_empty() && cheap["totalCount"].as_u64() < japan["totalCount"].as_u64());
        assert!(plans(&cheap).iter().all(|plan| plan["retailPrice"].as_f64().unwrap() < 5.0));
    }

    async fn limits_and_what_is_not_understood(gateway) {
        let all = search(gateway, "Japan").await;
        for limit in ["1", "7", "200"] {
            let some = ask(gateway, &[("country", "Japan"), ("limit", limit)]).await.expect(200);
            assert_eq!(some["totalCount"], all["totalCount"]);
            assert_eq!(codes(&some), codes(&all)[..limit.parse::<usize>().unwrap().min(codes(&all).len())]);
        }
        let long = "x".repeat(201);
        for (parameters, field) in [
            (&[("limit", "0")][..], "limit"),
            (&[("limit", "201")], "limit"),
            (&[("limit", "-1")], "limit"),
            (&[("limit", "x")], "limit"),
            (&[("limit", "1.5")], "limit"),
            (&[("limit", "")], "limit"),
            (&[("country", "Japan"), ("country", "Peru")], "country"),
            (&[("country", &long)], "country"),
        ] {
            let refused = ask(gateway, parameters).await;
            assert_eq!(refused.problem(400), "INVALID_REQUEST", "{parameters:?}");
            assert_eq!(refused.json()["errors"][0]["field"], field, "{parameters:?}");
        }
        let wrong = reply(gateway.client.post(format!("{}{SEARCH}", gateway.base))).await;
        assert_eq!(wrong.problem(405), "METHOD_NOT_ALLOWED");
        assert_eq!((wrong.header("allow"), &wrong.json()["detail"]), ("GET,HEAD", &json!("This address does not take this method. It takes GET, HEAD.")));
        let html = gateway.client.get(format!("{}{SEARCH}", gateway.base)).header("accept", "text/html");
        assert_eq!(reply(html).await.problem(406), "NOT_ACCEPTABLE");
    }

    /// An empty answer says why it is empty, and which places are near when none was recognised.
    async fn nothing_found_has_a_reason(gateway) {
        let unread = "No destination was recognised. Name a country, a region or a city, for example Japan or Europe.";
        for (text, message, near) in [
            ("Jappaan", "No destination was recognised. Did you mean Japan?", Some(json!(["Japan"]))),
            ("slov", "No destination was recognised. Did you mean Slovakia or Slovenia?", Some(json!(["Slovakia", "Slovenia"]))),
            ("Atlantis", unread, Some(json!([]))),
            ("what is it", unread, Some(json!([]))),
            ("10GB 30 days", unread, Some(json!([]))),
            ("????", unread, Some(json!([]))),
            (&"x".repeat(200), unread, Some(json!([]))),
            ("\u{0}\n\t", unread, Some(json!([]))),
            ("💥🗾", unread, Some(json!([]))),
            ("North Korea", "Nothing is on sale for this destination.", None),
            ("Japan under $0.50", "Nothing is that cheap: the lowest price for this destination is 0.69 USD.", None),
        ] {
            let found = search(gateway, text).await;
            assert_eq!((&found["totalCount"], &found["plans"], &found["message"]), (&json!(0), &json!([]), &json!(message)), "{text}");
            assert_eq!(found.get("didYouMean"), near.as_ref(), "{text}");
        }
        // What is proposed is found, and a typing error still is.
        for text in ["Japan", "Germny"] {
            let found = search(gateway, text).await;
            assert!(!plans(&found).is_empty() && found.get("message").is_none(), "{text}");
        }
        // Two empty answers are two answers.
        let (one, other) = (ask(gateway, &[("country", "Jappaan")]).await, ask(gateway, &[("country", "Atlantis")]).await);
        assert_ne!(one.header("etag"), other.header("etag"));
    }

    async fn without_a_destination_featured_plans_are_shown(gateway) {
        let few = reply(gateway.client.get(format!("{}{SEARCH}", gateway.base))).await.expect(200);
        let featured = ask(gateway, &[("limit", "50")]).await.expect(200);
        assert_eq!((plans(&few).len(), plans(&featured).len()), (10, 50));
        assert_eq!(codes(&few), codes(&featured)[..10]);
        assert!(featured["totalCount"].as_u64().unwrap() > 100);
        assert_eq!(codes(&featured)[..4], ["EUROPE-5GB-30D", "US-5GB-30D", "JP-5GB-30D", "TH-5GB-30D"]);
        assert_eq!(codes(&featured).iter().collect::<HashSet<_>>().len(), 50);
        assert_eq!(ask(gateway, &[("country", " ")]).await.expect(200), few);
    }

    async fn answers_are_the_same_in_every_encoding(gateway) {
        let url = format!("{}{SEARCH}?country=japan", gateway.base);
        let client = crate::support::harness::client().no_gzip().build().unwrap();
        let get = |encoding: &str| client.get(&url).header("accept-encoding", encoding);
        let plain = reply(get("identity")).await;
        let packed = get("gzip").send().await.unwrap();
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&packed.bytes().await.unwrap()[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain.text);
        let again = reply(get("identity").header("if-none-match", plain.header("etag"))).await;
        assert_eq!((again.status, again.text.as_str()), (304, ""));
    }

    /// A kept answer must not outlive its catalog.
    async fn a_new_catalog_is_searched(gateway) {
        let before = search(gateway, "Japan 5gb 30 days").await;
        assert_eq!(codes(&before)[0], "JP-5GB-30D");
        let withdraw = |tx: &mut simgate::store::tx::Tx| {
            simgate::store::catalog::withdraw(tx, "JP-5GB-30D")?;
            simgate::store::catalog::publish(tx)
        };
        gateway.app.store.finish(0, withdraw).await.unwrap();
        until("the plan is gone", async || {
            let now = search(gateway, "Japan 5gb 30 days").await;
            (!codes(&now).contains(&"JP-5GB-30D")).then_some(())
        })
        .await;
    }

    async fn a_flood_is_held_back(gateway) with [("ip_rate_limit", "1"), ("ip_rate_burst", "3")] {
        let all = join_all((0..20).map(|_| ask(gateway, &[("country", "Japan")]))).await;
        assert!(all.iter().filter(|reply| reply.status == 200).count() >= 3);
        let refused = all.iter().find(|reply| reply.status != 200).unwrap();
        assert_eq!(refused.problem(429), "RATE_LIMITED");
        assert!(!refused.header("retry-after").is_empty());
    }
}
