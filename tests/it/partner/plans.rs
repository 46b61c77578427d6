//! The catalog as partners see it: filters, pages, and bodies that are the same in every encoding.

use std::collections::{BTreeSet, HashSet};
use std::io::Read;

use serde_json::{Value, json};

use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{column, money, names};

const PLANS: &str = "/api/b2b/v1/plans";

async fn plans(gateway: &Gateway, query: &str) -> Value {
    gateway.get(&format!("{PLANS}{query}")).await.expect(200)
}

/// The body as it was sent, before any decoding.
async fn raw(gateway: &Gateway, query: &str, encoding: &str) -> (String, Vec<u8>) {
    let client = crate::support::harness::client().no_gzip().build().unwrap();
    let request = client
        .get(format!("{}{PLANS}{query}", gateway.base))
        .header("x-b2b-key", &gateway.key.id)
        .header("x-b2b-secret", &gateway.key.secret)
        .header("accept-encoding", encoding);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers()["vary"].to_str().unwrap().contains("accept-encoding"));
    let used =
        response.headers().get("content-encoding").map_or("", |value| value.to_str().unwrap()).to_string();
    (used, response.bytes().await.unwrap().to_vec())
}

both_databases! {
    async fn the_catalog_covers_the_world(gateway) {
        let reply = gateway.get(PLANS).await;
        money(&reply.text);
        let all = reply.expect(200);
        assert_eq!(names(&all), ["currency", "plans", "success", "total"]);
        assert_eq!((&all["success"], &all["currency"]), (&json!(true), &json!("USD")));
        let listed = all["plans"].as_array().unwrap();
        assert_eq!(all["total"], listed.len());
        assert!(listed.len() >= 2_000);
        let mut countries = BTreeSet::new();
        for plan in listed {
            for name in ["dataAmountGb", "durationDays", "locationCodes", "name", "operator", "packageCode", "planType", "priceUsd"] {
                assert!(names(plan).contains(&name), "{name} of {plan}");
            }
            assert_eq!(plan["planType"], "BASE");
            assert!(plan["dataAmountGb"].as_f64().unwrap() > 0.0 && plan["durationDays"].as_i64().unwrap() > 0);
            assert!(plan["priceUsd"].as_f64().unwrap() > 0.0);
            assert!(!plan["operator"].as_str().unwrap().is_empty() && !plan["name"].as_str().unwrap().is_empty());
            for code in plan["locationCodes"].as_array().unwrap() {
                let code = code.as_str().unwrap();
                assert!(code.len() == 2 && code.bytes().all(|b| b.is_ascii_uppercase()), "{code}");
                countries.insert(code);
            }
        }
        assert!(countries.len() > 190, "{} countries", countries.len());
        let topups = plans(gateway, "?type=TOPUP").await;
        for plan in topups["plans"].as_array().unwrap() {
            assert_eq!(names(plan), ["dataAmountGb", "durationDays", "kind", "name", "packageCode", "planType", "priceUsd"]);
            assert_eq!(plan["planType"], "TOPUP");
        }
        let codes: Vec<&str> = column(&all["plans"], "packageCode").into_iter().chain(column(&topups["plans"], "packageCode")).collect();
        assert_eq!(codes.len(), codes.iter().collect::<HashSet<_>>().len(), "a code is unique over both types");
        insta::assert_json_snapshot!(plans(gateway, "?query=jp-500mb-1d").await, @r#"
        {
          "currency": "USD",
          "plans": [
            {
              "activationPolicy": "Its days begin with its first use.",
              "dataAmountGb": 0.5,
              "durationDays": 1,
              "hotspot": true,
              "kind": "FIXED",
              "locationCodes": [
                "JP"
              ],
              "name": "Japan 500 MB 1 day",
              "networks": [
                {
                  "country": "JP",
                  "operators": [
                    {
                      "name": "NTT Docomo",
                      "technologies": [
                        "4G",
                        "5G"
                      ]
                    },
                    {
                      "name": "SoftBank",
                      "technologies": [
                        "4G",
                        "5G"
                      ]
                    },
                    {
                      "name": "KDDI",
                      "technologies": [
                        "4G",
                        "5G"
                      ]
                    }
                  ]
                }
              ],
              "operator": "NTT Docomo / SoftBank / KDDI",
              "packageCode": "JP-500MB-1D",
              "planType": "BASE",
              "priceUsd": 0.38,
              "speed": "4G/5G",
              "topUp": true
            }
          ],
          "success": true,
          "total": 1
        }
        "#);
    }

    async fn a_country_is_two_letters_in_any_case(gateway) {
        let japan = plans(gateway, "?country=JP").await;
        assert!(japan["total"].as_u64().unwrap() > 20);
        for plan in japan["plans"].as_array().unwrap() {
            assert!(plan["locationCodes"].as_array().unwrap().contains(&json!("JP")));
        }
        for query in ["?country=jp", "?country=Jp", "?country=jP&type=BASE"] {
            assert_eq!(plans(gateway, query).await, japan, "{query}");
        }
        for query in ["?country=KP", "?country=bv", "?country=KP&type=TOPUP", "?country=KP&query=japan&page=1"] {
            let empty = plans(gateway, query).await;
            assert_eq!(empty, json!({ "success": true, "currency": "USD", "total": 0, "plans": [] }), "{query}");
        }
        for query in ["country=JPN", "country=J", "country=", "country=J1", "country=ZZ", "country=xq", "country=%C3%A9", "country=日本", "country=JP&country=FR",
                      "type=basic", "type=", "type=ALL", "query=", "page=0", "limit=0", "limit=1001", "limit=x", "query=%00",
                      "query=a%0Ab", "page=1.5"] {
            let reply = gateway.get(&format!("{PLANS}?{query}")).await;
            assert_eq!(reply.problem(400), "INVALID_REQUEST", "{query}");
            assert_eq!(reply.json()["errors"][0]["field"], query.split('=').next().unwrap(), "{query}");
        }
        let long = "x".repeat(129);
        assert_eq!(gateway.get(&format!("{PLANS}?query={long}")).await.problem(400), "INVALID_REQUEST");
    }

    /// Every word must occur, in the name, the code, the operator or the name of a country.
    async fn a_query_matches_every_word(gateway) {
        for (query, expected) in [
            ("japan", "JP-1GB-7D"),
            ("JAPAN+5", "JP-5GB-30D"),
            ("jp-1gb-7d", "JP-1GB-7D"),
            ("docomo", "JP-1GB-7D"),
            ("SoftBank+90", "JP-10GB-90D"),
            ("ivoire", "CI-1GB-7D"),
            ("c%C3%B4te+1gb", "CI-1GB-7D"),
            ("ivory+coast", "CI-1GB-7D"),
            ("japan+asia+pacific", "ASIA-PACIFIC-1GB-7D"),
            ("++japan++7+", "JP-1GB-7D"),
        ] {
            let found = plans(gateway, &format!("?query={query}")).await;
            let codes = column(&found["plans"], "packageCode");
            assert!(codes.contains(&expected), "{query}: {codes:?}");
            assert_eq!(found["total"], codes.len());
        }
        for query in ["japan+nonsense", "zzzz", "docomo+vodafone+orange+japan+1d+xyz"] {
            assert_eq!(plans(gateway, &format!("?query={query}")).await["total"], 0, "{query}");
        }
        let japan = plans(gateway, "?query=docomo&country=FR").await;
        assert_eq!(japan["total"], 0, "filters are joined");
        let topups = plans(gateway, "?query=japan&type=TOPUP").await;
        assert!(column(&topups["plans"], "packageCode").contains(&"JP-1GB-7D-TOPUP"));
        for wide in ["?query=japan", "?query=gb"] {
            let codes = plans(gateway, wide).await;
            let narrow = plans(gateway, &format!("{wide}+30")).await;
            let all: HashSet<&str> = column(&codes["plans"], "packageCode").into_iter().collect();
            assert!(column(&narrow["plans"], "packageCode").iter().all(|code| all.contains(code)));
            assert!(narrow["total"].as_u64() < codes["total"].as_u64());
        }
    }

    async fn pages_cut_the_list_and_keep_its_total(gateway) {
        let whole = plans(gateway, "?country=JP").await;
        let total = whole["plans"].as_array().unwrap().len();
        let mut pieces = Vec::new();
        for page in 1..=total.div_ceil(10) + 1 {
            let piece = plans(gateway, &format!("?country=JP&limit=10&page={page}")).await;
            assert_eq!(piece["total"], total);
            pieces.extend(piece["plans"].as_array().unwrap().clone());
        }
        assert_eq!(json!(pieces), whole["plans"]);
        assert_eq!(plans(gateway, "?page=1").await["plans"].as_array().unwrap().len(), 1000);
        assert_eq!(plans(gateway, "?limit=1000&page=1000000").await["plans"], json!([]));
        assert_eq!(plans(gateway, "?query=japan&limit=3").await["plans"].as_array().unwrap().len(), 3);
    }

    async fn an_unchanged_list_is_not_sent_again(gateway) {
        for query in ["", "?country=JP", "?query=japan+5", "?type=TOPUP", "?country=KP"] {
            let path = format!("{PLANS}{query}");
            let first = gateway.get(&path).await;
            let etag = first.header("etag").to_string();
            assert!(etag.len() > 10 && etag.ends_with('"'), "{etag}");
            for known in [etag.clone(), etag.trim_start_matches("W/").to_string(), format!("\"x\", {etag}"), "*".into()] {
                let again = crate::support::harness::reply(gateway.request("GET", &path).header("if-none-match", &known)).await;
                assert_eq!((again.status, again.text.as_str(), again.header("etag")), (304, "", etag.as_str()), "{known}");
            }
            let other = crate::support::harness::reply(gateway.request("GET", &path).header("if-none-match", "\"other\"")).await;
            assert_eq!((other.status, other.text), (200, first.text));
        }
        let (japan, france) = (gateway.get(&format!("{PLANS}?country=JP")).await, gateway.get(&format!("{PLANS}?country=FR")).await);
        assert_ne!(japan.header("etag"), france.header("etag"));
    }

    async fn compressed_bodies_hold_the_same(gateway) {
        for query in ["", "?country=JP", "?query=japan", "?type=TOPUP&page=2&limit=50"] {
            let (used, plain) = raw(gateway, query, "identity").await;
            assert_eq!(used, "");
            let (used, body) = raw(gateway, query, "gzip").await;
            let mut text = Vec::new();
            flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut text).unwrap();
            assert_eq!((used.as_str(), &text), ("gzip", &plain));
            assert!(body.len() < plain.len() / 2);
            let (used, body) = raw(gateway, query, "gzip, deflate, br").await;
            let mut text = Vec::new();
            brotli::Decompressor::new(body.as_slice(), 4096).read_to_end(&mut text).unwrap();
            assert_eq!((used.as_str(), &text), ("br", &plain));
            for refused in ["br;q=0, gzip;q=0", "br; q=0.0", "deflate", "identity, *;q=0"] {
                assert_eq!(raw(gateway, query, refused).await, (String::new(), plain.clone()), "{refused}");
            }
        }
    }
}
