//! The documentation pages: every operation, readable without scripts and without the internet.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::harness::{Gateway, Reply, both_databases, reply};

/// Each page, and the description that it is made from.
const PAGES: [(&str, &str); 4] = [
    ("/docs", "/api/b2b/v1/openapi.json"),
    ("/docs/agentic", "/api/agentic/openapi.json"),
    ("/docs/consumer", "/api/consumer/openapi.json"),
    ("/docs/sandbox", "/sandbox/openapi.json"),
];
const MOST_BYTES: usize = 200_000;
const MOST_SCRIPT_BYTES: usize = 3_000;

/// What stands between two texts, everywhere in `html`.
fn between<'a>(html: &'a str, before: &str, after: &str) -> Vec<&'a str> {
    let parts = html.split(before).skip(1);
    parts.filter_map(|part| part.split(after).next()).collect()
}

async fn get(gateway: &Gateway, path: &str) -> Reply {
    let reply = reply(gateway.client.get(format!("{}{path}", gateway.base))).await;
    assert_eq!(reply.status, 200, "{path}");
    reply
}

fn operations(api: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let items = api["paths"].as_object().unwrap().iter();
    items.flat_map(|(path, item)| item.as_object().unwrap().values().map(move |one| (path, one)))
}

both_databases! {
    async fn every_operation_has_its_section_samples_and_examples(gateway) {
        for (page, description) in PAGES {
            let api = get(gateway, description).await.json();
            let answer = get(gateway, page).await;
            assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
            let html = answer.text;
            for name in api["components"]["schemas"].as_object().unwrap().keys() {
                assert!(html.contains(&format!("<section id=\"{name}\">")), "{page}: {name}");
            }
            for (path, operation) in operations(&api) {
                let id = operation["operationId"].as_str().unwrap();
                let start = format!("<section class=\"operation\" id=\"{id}\"");
                let [section] = between(&html, &start, "</section>")[..] else { panic!("{page}: {id}") };
                assert!(section.contains(path), "{page}: {id} has no path");
                for language in ["sample curl", "sample typescript", "sample python"] {
                    assert!(section.contains(language), "{page}: {id} has no {language}");
                }
                let with_body = !operation["requestBody"].is_null() && operation["requestBody"]["required"] != false;
                assert_eq!(section.contains("class=\"request\""), with_body, "{page}: {id}, request");
                assert!(section.contains("<summary>Answer, 200</summary>"), "{page}: {id} has no answer");
            }
        }
    }

    async fn every_link_of_the_pages_leads_somewhere(gateway) {
        let mut pages = Vec::new();
        for (page, _) in PAGES {
            pages.push((page, get(gateway, page).await.text));
        }
        let anchors: BTreeSet<String> = pages
            .iter()
            .flat_map(|(page, html)| between(html, " id=\"", "\"").into_iter().map(move |id| format!("{page}#{id}")))
            .collect();
        for (page, html) in &pages {
            let ids = between(html, " id=\"", "\"");
            assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{page} has an id twice");
            for link in between(html, "href=\"", "\"") {
                let target = if link.starts_with('#') { format!("{page}{link}") } else { link.to_string() };
                if target.contains('#') {
                    assert!(anchors.contains(&target), "{page} leads to {target}");
                } else {
                    get(gateway, &target).await;
                }
            }
            for code in simgate::error::CODES {
                let target = format!("/docs#{}", simgate::error::anchor(code.0));
                assert!(anchors.contains(&target) && html.contains(&target), "{page}: {target}");
            }
        }
    }

    async fn the_pages_are_small_and_need_nobody_else(gateway) {
        for (page, _) in PAGES {
            let answer = get(gateway, page).await;
            assert!(answer.text.len() <= MOST_BYTES, "{page} has {} bytes", answer.text.len());
            let policy = answer.header("content-security-policy");
            assert!(policy.contains("script-src 'self'; connect-src 'self'"), "{policy}");
            for source in between(&answer.text, "src=\"", "\"") {
                let script = get(gateway, source).await;
                assert!(script.text.len() <= MOST_SCRIPT_BYTES, "{source} has {} bytes", script.text.len());
                assert!(!script.text.contains("Storage") && !script.text.contains("cookie"), "{source} keeps something");
            }
        }
        for nowhere in ["/docs/nowhere", "/docs/%FF", "/js/nowhere.js", "/js/%FF"] {
            assert_eq!(reply(gateway.client.get(format!("{}{nowhere}", gateway.base))).await.status, 404);
        }
    }
}
