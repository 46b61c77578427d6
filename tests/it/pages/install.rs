//! Pages for people: what the install page holds and who may see it, QR codes that scan, and secrets that stay
//! where they belong.

use serde_json::{Value, json};
use simgate::ops::recover;
use simgate::store::Location;

use crate::support::harness::{Gateway, Reply, both_databases, reply};
use crate::support::qr_codes;
use crate::support::shapes::{ORDERS, is_time};

async fn open(gateway: &Gateway, url: &Value) -> Reply {
    reply(
        gateway
            .client
            .get(url.as_str().unwrap())
            .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
    )
    .await
}

#[track_caller]
fn assert_guarded(page: &Reply) {
    let policy = page.header("content-security-policy");
    for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert!(page.header("x-robots-tag").contains("noindex"));
}

async fn bytes(gateway: &Gateway, url: &str) -> (reqwest::header::HeaderMap, Vec<u8>) {
    let response = gateway.client.get(url).send().await.unwrap();
    assert_eq!(response.status(), 200);
    (response.headers().clone(), response.bytes().await.unwrap().to_vec())
}

async fn delivered_or_ended(gateway: &Gateway, order: &Value, status: &str) {
    gateway
        .until(status, async || {
            gateway.pass_time(60_000);
            recover::round(&gateway.app).await.unwrap();
            let found = gateway.get(&format!("{ORDERS}/{}", order["id"].as_str().unwrap())).await.expect(200);
            (found["order"]["status"] == status).then_some(())
        })
        .await;
}

both_databases! {
    async fn the_install_page_holds_all_that_is_needed(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let page = open(gateway, &order["installUrl"]).await;
        assert_eq!(page.status, 200);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert_guarded(&page);
        let text = |name: &str| order[name].as_str().unwrap();
        let encoded = text("lpaString").replace(':', "%3A").replace('$', "%24");
        for part in [
            text("planName"), text("orderNo"), text("smdpAddress"), text("matchingId"), text("lpaString"), text("qrCodeUrl"),
            &format!("https://esimsetup.apple.com/esim_qrcode_provisioning?carddata={encoded}"),
            &format!("https://esimsetup.android.com/esim_qrcode_provisioning?carddata={encoded}"),
        ] {
            assert!(page.text.contains(part), "{part} is not on the page");
        }
        assert!(!page.text.contains("<script>"), "the policy would refuse it");
        for foreign in ["src=\"http://cdn", "src=\"https://", "@import", "url(http"] {
            assert!(!page.text.contains(foreign), "{foreign}");
        }
    }

    async fn the_qr_codes_hold_the_activation_string(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let activation = order["lpaString"].as_str().unwrap();
        let svg_url = order["qrCodeUrl"].as_str().unwrap();
        let (headers, svg) = bytes(gateway, svg_url).await;
        assert_eq!((&headers["content-type"], &headers["cache-control"]), (&"image/svg+xml".parse().unwrap(), &"no-store".parse().unwrap()));
        assert_eq!(qr_codes::svg(&String::from_utf8(svg).unwrap()), activation);
        let (headers, image) = bytes(gateway, &svg_url.replace(".svg", ".png")).await;
        assert_eq!(headers["content-type"], "image/png");
        assert_eq!(qr_codes::png(&image), activation);
        for ending in ["", ".gif", ".svg.png", ".SVG"] {
            let url = format!("{}{ending}", svg_url.trim_end_matches(".svg"));
            assert_eq!(reply(gateway.client.get(url)).await.problem(404), "NOT_FOUND", "{ending}");
        }
    }

    async fn before_delivery_the_page_says_so(gateway) with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")] {
        gateway.supplier("timeout").await;
        let order = gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(202)["order"].clone();
        let page = open(gateway, &order["installUrl"]).await;
        assert_eq!(page.status, 200);
        assert_guarded(&page);
        assert!(page.text.contains("being prepared"), "{}", page.text);
        assert!(page.text.contains("http-equiv=\"refresh\""), "without scripts it loads itself anew");
        let svg = order["qrCodeUrl"].as_str().unwrap();
        let (headers, drawn) = bytes(gateway, svg).await;
        assert!(String::from_utf8(drawn).unwrap().contains("being prepared"));
        assert_eq!((&headers["content-type"], headers.contains_key("retry-after")), (&"image/svg+xml".parse().unwrap(), true));
        let (headers, image) = bytes(gateway, &svg.replace(".svg", ".png")).await;
        assert_eq!(headers["content-type"], "image/png");
        assert!(png::Decoder::new(std::io::Cursor::new(image)).read_info().is_ok());
        gateway.supplier("ok").await;
        delivered_or_ended(gateway, &order, "FULFILLED").await;
        assert!(open(gateway, &order["installUrl"]).await.text.contains("Install your eSIM"));
    }

    async fn after_a_cancel_they_are_gone(gateway) with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")] {
        let order = gateway.order("JP-1GB-7D").await;
        gateway.supplier("timeout").await;
        let cancel = format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap());
        gateway.send_as(&gateway.key, "POST", &cancel, None).await.expect(202);
        let urls = [order["installUrl"].clone(), order["qrCodeUrl"].clone(), json!(order["qrCodeUrl"].as_str().unwrap().replace(".svg", ".png"))];
        let matching = order["matchingId"].as_str().unwrap();
        for url in &urls {
            let withheld = open(gateway, url).await;
            assert!(withheld.status >= 400 && !withheld.text.contains(matching), "{url}");
        }
        gateway.supplier("ok").await;
        delivered_or_ended(gateway, &order, "CANCELLED").await;
        for url in &urls {
            let gone = open(gateway, url).await;
            assert_eq!((gone.status, gone.header("content-type")), (410, "text/html; charset=utf-8"));
            assert_guarded(&gone);
            assert!(!gone.text.contains(matching));
            assert_eq!(reply(gateway.client.get(url.as_str().unwrap())).await.status, 410);
        }
    }

    async fn forged_tokens_open_nothing(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let url = order["installUrl"].as_str().unwrap();
        let (base, token) = url.rsplit_once('/').unwrap();
        let swap = |at: usize| {
            let other = if token.as_bytes()[at] == b'0' { "1" } else { "0" };
            format!("{}{other}{}", &token[..at], &token[at + 1..])
        };
        let id = order["id"].as_str().unwrap().trim_start_matches("ord_");
        for forged in [
            swap(0), swap(29), swap(30), swap(token.len() - 1), token[..61].to_string(), format!("{token}0"), id.to_string(),
            format!("{id}{}", "0".repeat(32)), token.to_uppercase(), "%00".into(), "%FF".into(), "%".into(), "x".into(), "%2e%2e%2f".into(),
            format!("{}%C3%A9", &token[..60]),
        ] {
            let page = open(gateway, &json!(format!("{base}/{forged}"))).await;
            assert_eq!((page.status, page.header("content-type")), (404, "text/html; charset=utf-8"), "{forged}");
            assert_guarded(&page);
            let image = reply(gateway.client.get(format!("{}/qr/{forged}.svg", gateway.base))).await;
            assert_eq!(image.problem(404), "NOT_FOUND", "{forged}");
        }
    }

    async fn browsers_get_pages_and_programs_get_problems(gateway) {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let page = open(gateway, &json!(format!("{}/nowhere", gateway.base))).await;
        assert_eq!((page.status, page.header("content-type")), (404, "text/html; charset=utf-8"));
        assert_guarded(&page);
        assert!(page.text.contains(page.header("x-request-id")), "the page names the request");
        assert_eq!(reply(gateway.client.get(format!("{}/nowhere", gateway.base))).await.problem(404), "NOT_FOUND");
        // The API stays an API, even for a browser.
        let api = reply(gateway.client.get(format!("{}/api/b2b/v1/balance", gateway.base)).header("accept", browser)).await;
        assert_eq!(api.problem(401), "UNAUTHENTICATED");
        let wrong = reply(gateway.client.post(format!("{}/docs", gateway.base)).header("accept", browser)).await;
        assert_eq!((wrong.status, wrong.header("content-type")), (405, "text/html; charset=utf-8"));
        let (_, named) = page.text.split_once("rel=\"stylesheet\" href=\"").unwrap();
        let (path, _) = named.split_once('"').unwrap();
        let style = reply(gateway.client.get(format!("{}{path}", gateway.base))).await;
        assert_eq!((style.status, style.header("content-type")), (200, "text/css; charset=utf-8"));
        assert!(style.header("cache-control").contains("immutable"));
        let old = reply(gateway.client.get(format!("{}/assets/0123456789abcdef/style.css", gateway.base))).await;
        assert_eq!((old.status, old.header("cache-control")), (200, "no-store"), "it may be another version's");
        for (path, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
            let answer = reply(gateway.client.get(format!("{}{path}", gateway.base))).await;
            assert_eq!((answer.status, answer.text.as_str()), (200, body));
        }
        let metrics = reply(gateway.client.get(format!("{}/metrics", gateway.base))).await;
        assert_eq!(metrics.status, 200);
    }

    /// Whoever steals the database has no activation code and no API secret.
    async fn codes_and_secrets_are_not_stored_in_the_clear(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let secrets = [
            order["matchingId"].as_str().unwrap().to_string(),
            order["matchingId"].as_str().unwrap().trim_start_matches("SIM-").to_string(),
            gateway.key.secret.clone(),
            order["installUrl"].as_str().unwrap().rsplit('/').next().unwrap().to_string(),
        ];
        let stored = match &gateway.app.settings.database {
            Location::Sqlite(path) => {
                let mut all = std::fs::read(path).unwrap();
                all.extend(std::fs::read(path.with_extension("db-wal")).unwrap());
                all
            }
            Location::Postgres(url) => everything_in(url),
        };
        let holds = |needle: &str| {
            let hex: String = needle.bytes().map(|b| format!("{b:02x}")).collect();
            stored.windows(needle.len()).any(|w| w == needle.as_bytes()) || stored.windows(hex.len()).any(|w| w == hex.as_bytes())
        };
        assert!(holds(order["id"].as_str().unwrap()), "the search itself works");
        for secret in &secrets {
            assert!(!holds(secret), "{secret} is in the database");
        }
    }

    /// Whom to tell about a hole is the operator's to say.
    async fn security_txt_names_the_operator(gateway) with [("security_contact", "Security@shop.example")] {
        let found = reply(gateway.client.get(format!("{}/.well-known/security.txt", gateway.base))).await;
        assert_eq!((found.status, found.header("content-type")), (200, "text/plain; charset=utf-8"));
        let field = |name: &str| {
            found.text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{}", found.text)).to_string()
        };
        assert_eq!(field("Contact: "), "mailto:security@shop.example");
        assert_eq!(field("Canonical: "), format!("{}/.well-known/security.txt", gateway.base));
        assert!(is_time(&field("Expires: ")));
    }

    async fn without_a_contact_there_is_no_security_txt(gateway) {
        let found = reply(gateway.client.get(format!("{}/.well-known/security.txt", gateway.base))).await;
        assert_eq!(found.problem(404), "NOT_FOUND");
    }
}

/// Every row of every table as text.
fn everything_in(url: &str) -> Vec<u8> {
    std::thread::scope(|scope| {
        let read = || {
            let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
            let tables = client
                .query(
                    "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'",
                    &[],
                )
                .unwrap();
            let mut all = String::new();
            for table in tables {
                let name: String = table.get(0);
                for row in client.query(&format!("SELECT t::text FROM {name} t"), &[]).unwrap() {
                    all.push_str(row.get(0));
                }
            }
            all.into_bytes()
        };
        scope.spawn(read).join().unwrap()
    })
}
