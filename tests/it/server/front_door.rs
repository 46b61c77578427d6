//! What a visitor who knows nothing but the host finds.

use reqwest::redirect::Policy;

use crate::support::harness::{both_databases, client, reply};

both_databases! {
    async fn the_root_leads_to_the_documentation(gateway) {
        let visitor = client().redirect(Policy::none()).build().unwrap();
        for path in ["/", "/docs/", "/?from=elsewhere"] {
            for method in [reqwest::Method::GET, reqwest::Method::HEAD] {
                let led = reply(visitor.request(method.clone(), format!("{}{path}", gateway.base))).await;
                assert_eq!((led.status, led.header("location")), (307, "/docs"), "{method} {path}");
            }
        }
        let page = reply(gateway.client.get(&gateway.base)).await;
        assert!(page.status == 200 && page.text.contains("simgate partner API"), "{}", page.text);
        for path in ["/nothing", "/docs/nothing", "/api", "/docs//", "//"] {
            let none = reply(visitor.get(format!("{}{path}", gateway.base))).await;
            assert_eq!(none.problem(404), "NOT_FOUND", "{path}");
        }
        assert_eq!(reply(visitor.post(&gateway.base)).await.problem(405), "METHOD_NOT_ALLOWED");
    }
}
