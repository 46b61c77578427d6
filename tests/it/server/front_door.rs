//! What a visitor who knows nothing but the host finds.

use reqwest::redirect::Policy;

use crate::support::harness::{both_databases, client, reply};

both_databases! {
    async fn the_root_is_a_page_and_leads_to_the_documentation(gateway) {
        let visitor = client().redirect(Policy::none()).build().unwrap();
        for method in [reqwest::Method::GET, reqwest::Method::HEAD] {
            let page = reply(visitor.request(method.clone(), &gateway.base)).await;
            assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"), "{method}");
            let led = reply(visitor.request(method.clone(), format!("{}/docs/", gateway.base))).await;
            assert_eq!((led.status, led.header("location")), (307, "/docs"), "{method}");
        }
        let page = reply(visitor.get(&gateway.base)).await;
        assert!(page.text.contains("href=\"/docs\"") && page.text.contains("href=\"/help\""), "{}", page.text);
        for path in ["/nothing", "/docs/nothing", "/api", "/docs//", "//"] {
            let none = reply(visitor.get(format!("{}{path}", gateway.base))).await;
            assert_eq!(none.problem(404), "NOT_FOUND", "{path}");
        }
        assert_eq!(reply(visitor.post(&gateway.base)).await.problem(405), "METHOD_NOT_ALLOWED");
    }
}
