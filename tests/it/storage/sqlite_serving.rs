//! One gateway serves a SQLite database: a second one is refused with a sentence, by whichever name it calls the file, and
//! commands go on beside it. When the first is gone, however it ended, the next one starts.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::harness::{Db, Key};
use crate::support::ports::free_port;
use crate::support::process::{Server, Site, on_site};

async fn buy(site: &Site, server: &Server, key: &Key) {
    let body = json!({ "packageCode": "JP-1GB-7D" });
    site.send(&server.base, key, "POST", "/api/b2b/v1/orders", Some(&body)).await.unwrap().expect(200);
}

#[test]
fn a_second_gateway_is_refused() {
    on_site(Db::Sqlite, vec![], async |site| {
        let mut server = site.start().await;
        let (_, key) = site.partner(&server, "First Travel", "1000").await;
        let (dir, elsewhere) = (&site.place.dir, site.place.dir.join("elsewhere"));
        std::fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink("../simgate.db", elsewhere.join("link.db")).unwrap();
        let others = [
            site.place.url.clone(),
            "sqlite:simgate.db".into(),
            format!("sqlite:{}", dir.join("elsewhere/../simgate.db").display()),
            format!("sqlite:{}", elsewhere.join("link.db").display()),
        ];
        let refusals = join_all(others.iter().map(async |url| {
            let listen = format!("127.0.0.1:{}", free_port());
            let (exit, told) = site.by(url).refused(&["serve", "--listen", &listen]).await;
            assert_eq!(exit, 2, "{url}: {told}");
            let told: serde_json::Value = serde_json::from_str(&told).unwrap();
            let file = dir.canonicalize().unwrap().join("simgate.db");
            let words = told["error"].as_str().unwrap();
            assert!(words.contains(&format!("another gateway already serves {}", file.display())), "{words}");
            assert!(words.contains("stop it first, or use PostgreSQL"), "{words}");
            assert_eq!(told["code"], "INVALID_SETTINGS");
        }));
        let meanwhile = async {
            for round in 0..3 {
                buy(site, &server, &key).await;
                site.cli(&["partner", "create", "--name", "Second Travel"]).await;
                site.cli(&["backup", &format!("copy-{round}.db")]).await;
                site.try_cli(&["doctor"]).await["checks"].as_array().unwrap();
                site.cli(&["migrate"]).await;
                site.verify_books().await;
            }
        };
        futures_util::future::join(refusals, meanwhile).await;
        buy(site, &server, &key).await;
        server.kill();
        let next = site.start().await;
        buy(site, &next, &key).await;
    });
}

/// As service managers do it: the new one is started while the old one stops.
#[test]
fn the_next_gateway_waits_for_one_that_stops() {
    on_site(Db::Sqlite, vec![], async |site| {
        let mut old = site.start().await;
        let (_, key) = site.partner(&old, "Patient Travel", "1000").await;
        let new = site.spawn();
        buy(site, &old, &key).await;
        old.terminate();
        assert_eq!(old.exit_code().await, Some(0));
        let new = site.until_ready(new).await;
        buy(site, &new, &key).await;
    });
}
