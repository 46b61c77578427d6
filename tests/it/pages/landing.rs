//! The landing page: the search of what is on sale, what it says when there is nothing, and who may index it.

use serde_json::Value;

use crate::support::browser::open;
use crate::support::harness::{Gateway, Reply, both_databases, reply};

async fn find(gateway: &Gateway, text: &str) -> Reply {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", text).finish();
    let page = open(gateway, &format!("/?{query}")).await;
    assert_eq!(page.status, 200, "{text}");
    assert!(page.header("x-robots-tag").contains("noindex"), "{text}");
    page
}

/// What stands in the part that the script swaps.
fn results(page: &Reply) -> &str {
    let (_, part) = page.text.split_once("data-filter-part").expect("the page has results");
    part.split("id=\"how\"").next().unwrap()
}

/// The codes of the plans on the page, in their order.
fn bought(page: &Reply) -> Vec<String> {
    let links = page.text.split("href=\"/checkout?plan=").skip(1);
    let codes = links.map(|link| link.split('"').next().unwrap().to_string());
    codes.take(page.text.matches("class=\"price money\"").count()).collect()
}

/// What agents find by the same text.
async fn found_by_agents(gateway: &Gateway, text: &str, limit: usize) -> Value {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let query = query.append_pair("country", text).append_pair("limit", &limit.to_string()).finish();
    reply(gateway.client.get(format!("{}/api/products/search?{query}", gateway.base))).await.expect(200)
}

both_databases! {
    async fn visitors_find_what_agents_find(gateway) {
        for text in ["Japan", "japan 1gb 7 days", "Japan and Korea", "Eurpoe 10 GB", "cheapest for Turkey", "JP"] {
            let page = find(gateway, text).await;
            let told = found_by_agents(gateway, text, 12).await;
            let codes: Vec<&str> =
                told["plans"].as_array().unwrap().iter().map(|plan| plan["packageCode"].as_str().unwrap()).collect();
            assert_eq!(bought(&page), codes, "{text}");
            let total = told["totalCount"].as_u64().unwrap();
            assert!(total > 12 && page.text.contains(&format!("The best 12 of {total} plans")), "{text}: {total}");
        }
        let page = find(gateway, "Japan 1GB 7 days").await;
        let card = results(&page).split("</li>").find(|card| card.contains("plan=JP-1GB-7D")).unwrap();
        for told in [">JP<", "Japan", "1 GB", "7 days", "4G/5G", "Docomo", "USD"] {
            assert!(card.contains(told), "{told}: {card}");
        }
        let sold = open(gateway, "/checkout?plan=JP-1GB-7D").await;
        let price = card.split("class=\"price money\">").nth(1).unwrap().split(' ').next().unwrap();
        assert!(sold.text.contains(&format!("Pay {price} USD")), "{price}");
    }

    async fn more_plans_are_shown_when_asked_for(gateway) {
        let page = find(gateway, "Japan").await;
        assert!(page.text.contains("href=\"/?q=Japan&amp;limit=48\""), "{}", results(&page));
        let more = open(gateway, "/?q=Japan&limit=48").await;
        assert!(bought(&more).len() > 12 && more.header("x-robots-tag").contains("noindex"));
        assert_eq!(bought(&open(gateway, "/?limit=48").await).len(), 48, "of the popular ones too");
        for odd in ["/?limit=", "/?limit=x", "/?limit=-1", "/?q=Japan&q=Peru", "/?utm_source=mail", "/?q="] {
            assert_eq!(bought(&open(gateway, odd).await).len(), 12, "{odd}");
        }
        assert_eq!(bought(&open(gateway, "/?limit=0").await).len(), 1);
        assert!(bought(&open(gateway, "/?q=world+or+Japan&limit=99999999").await).len() <= 200);
    }

    async fn what_is_not_found_is_said(gateway) {
        let typo = find(gateway, "Jappaan").await;
        assert!(results(&typo).contains("We do not know this place"), "{}", results(&typo));
        assert!(results(&typo).contains("href=\"/?q=Japan\"") && bought(&typo).is_empty());
        for (text, told) in [
            ("Atlantis", "No destination was recognised."),
            ("North Korea", "Nothing is on sale for this destination."),
            ("Japan under $0.01", "Nothing is that cheap"),
        ] {
            let page = find(gateway, text).await;
            assert!(results(&page).contains(told) && bought(&page).is_empty(), "{text}: {}", results(&page));
            assert!(page.text.contains(&format!("data-said=\"{}", told.split(':').next().unwrap())), "{text}");
        }
    }

    async fn hostile_text_is_text(gateway) {
        for text in ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "Japan' onfocus='x", "Japan</title><b>"] {
            let page = find(gateway, text).await;
            for raw in ["<script>alert", "<img src=x", "<b>"] {
                assert!(!page.text.contains(raw), "{text}: {raw}");
            }
            assert!(!page.text.contains(" onfocus='x"), "{text}");
        }
        let page = find(gateway, &"Japan ".repeat(1_000)).await;
        assert!(!bought(&page).is_empty(), "a long text is cut");
        assert_eq!(open(gateway, "/?q=%ff%fe").await.status, 200);
        assert!(!find(gateway, "Ja\u{202e}pan").await.text.contains('\u{202e}'));
    }

    async fn only_the_page_itself_help_and_docs_may_be_indexed(gateway) {
        for path in ["/", "/help", "/help/policy/refunds", "/help/devices", "/docs", "/docs/agentic"] {
            let page = open(gateway, path).await;
            assert_eq!((page.status, page.header("x-robots-tag")), (200, ""), "{path}");
            assert_eq!(page.header("cache-control"), "no-store", "{path}");
        }
        for path in ["/?q=Japan", "/?q=", "/help?q=refund", "/help/devices?q=iPhone", "/checkout?plan=JP-1GB-7D", "/nowhere"] {
            assert!(open(gateway, path).await.header("x-robots-tag").contains("noindex"), "{path}");
        }
        let robots = reply(gateway.client.get(format!("{}/robots.txt", gateway.base))).await.text;
        assert_eq!(robots, "User-agent: *\nAllow: /$\nAllow: /help\nAllow: /docs\nDisallow: /\n");
    }

    async fn developers_and_the_sandbox_have_their_part(gateway) {
        let page = open(gateway, "/").await;
        let address = format!("{}/api/mcp", gateway.base);
        assert!(page.text.contains(&format!("claude mcp add --transport http esim {address}")), "{}", page.text);
        assert!(page.text.matches(&address).count() >= 5, "the address and each client");
        for link in ["/docs", "/docs/agentic", "/docs/consumer", "/docs/sandbox", "/llms.txt", "/readyz", "/healthz", "/help"] {
            assert!(page.text.contains(&format!("href=\"{link}\"")), "{link}");
            assert_eq!(open(gateway, link).await.status, 200, "{link}");
        }
        assert!(page.text.contains("All systems work") && page.text.contains("Try this sandbox"));
        assert_eq!(page.text.matches("<h1").count(), 1);
        let script = page.text.split("src=\"").find(|rest| rest.contains("/filter.js\"")).unwrap().split('"').next().unwrap();
        let script = reply(gateway.client.get(format!("{}{script}", gateway.base))).await;
        assert!(script.status == 200 && script.text.len() < 3_000);
    }

    async fn an_operator_is_named(gateway) with [("brand_name", "Sunny Travel")] {
        let page = open(gateway, "/").await;
        assert!(page.text.contains("eSIM data plans for your trip · Sunny Travel</title>"), "{}", page.text);
        let lost = open(gateway, "/nowhere").await;
        assert_eq!(lost.status, 404);
        for way in ["href=\"/\">Find a plan", "href=\"/help\">Search the help pages"] {
            assert!(lost.text.contains(way), "{}", lost.text);
        }
    }

    async fn without_a_storefront_nothing_is_sold_here(gateway) with [("storefront", "false")] {
        for path in ["/", "/?q=Japan"] {
            let page = open(gateway, path).await;
            assert_eq!(page.status, 200);
            for shop in ["/checkout", "data-filter", "name=\"q\"", "filter.js", "class=\"price"] {
                assert!(!page.text.contains(shop), "{path} has {shop}");
            }
            assert!(page.text.contains("id=\"mcp\"") && page.text.contains("href=\"/help/devices\""));
        }
        assert!(open(gateway, "/nowhere").await.text.contains("To the start"));
        assert_eq!(open(gateway, "/checkout?plan=JP-1GB-7D").await.status, 200, "links to a plan go on working");
    }

    async fn visitors_are_limited(gateway) with [("ip_rate_limit", "1"), ("ip_rate_burst", "3")] {
        let mut answers = Vec::new();
        for _ in 0..5 {
            answers.push(open(gateway, "/?q=Japan").await.status);
        }
        assert!(answers.starts_with(&[200]) && answers.ends_with(&[429]), "{answers:?}");
    }
}
