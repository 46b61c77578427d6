//! A server that takes no writes for a while, and one behind a pooler.

use serde_json::json;

use crate::support::harness::{Key, until};
use crate::support::postgres_servers::Ground;
use crate::support::process::{Server, Site, on_site_at};

const DOORS: &str = "host all all 127.0.0.1/32 trust";

async fn ready(site: &Site, server: &Server) -> u16 {
    let reply = site.client.get(format!("{}/readyz", server.base)).send().await.unwrap();
    reply.status().as_u16()
}

async fn order(site: &Site, server: &Server, key: &Key, reference: &str) -> u16 {
    let order = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": reference });
    site.send(&server.base, key, "POST", "/api/b2b/v1/orders", Some(&order)).await.unwrap().status
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_gateway_is_not_ready_while_its_database_takes_no_writes() {
    let ground = Ground::new();
    let postgres = ground.server("stubborn", &[], DOORS);
    postgres.execute("postgres", "CREATE DATABASE shop");
    on_site_at(&postgres.url("postgres", "shop"), vec![], async move |site| {
        let server = site.start().await;
        let (_, key) = site.partner(&server, "Stubborn Travel", "100").await;
        assert_eq!(order(site, &server, &key, "before").await, 200);
        // Sessions that are there learn it too: this is how they find out that their primary is none any more.
        postgres.set("default_transaction_read_only", "on").await;
        assert!(order(site, &server, &key, "meanwhile").await >= 500);
        until("it is not ready", async || (ready(site, &server).await == 503).then_some(())).await;
        let (_, words) =
            site.refused(&["wallet", "credit", "nobody@shop.example", "1", "--reason", "x"]).await;
        assert!(words.contains("it is read-only"), "{words}");
        postgres.set("default_transaction_read_only", "off").await;
        until("it is ready", async || (ready(site, &server).await == 200).then_some(())).await;
        assert_eq!(order(site, &server, &key, "meanwhile").await, 200);
        site.verify_books().await;
    });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_pooler_by_session_serves_and_another_is_refused() {
    let ground = Ground::new();
    let postgres = ground.server("pooled", &[], DOORS);
    postgres.execute("postgres", "CREATE DATABASE shop");
    on_site_at(&postgres.url("postgres", "shop"), vec![], async move |site| {
        let url = |port: u16| format!("postgres://anybody@127.0.0.1:{port}/shop");
        let by_transaction = ground.pooler(&postgres, "transaction").await;
        let (exit, words) = site.by(&url(by_transaction.port)).refused(&["migrate"]).await;
        assert!(exit == 2 && words.contains("pool_mode = session"), "{words}");
        let by_session = ground.pooler(&postgres, "session").await;
        let pooled = site.by(&url(by_session.port));
        let server = pooled.start().await;
        let (_, key) = pooled.partner(&server, "Pooled Travel", "100").await;
        for number in 0..10 {
            assert_eq!(order(&pooled, &server, &key, &format!("order-{number}")).await, 200);
        }
        assert_eq!(order(&pooled, &server, &key, "order-1").await, 200);
        pooled.verify_books().await;
        // What one session prepared and set is not there for the next one.
        pooled.cli(&["order", "list"]).await;
    });
}
