//! Lines to PostgreSQL that are encrypted: a server that takes nothing else, every `sslmode`, certificates of both ends, and
//! what is told where it does not fit. `0.0.0.0` leads to this machine, but is no address of loopback.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::harness::Key;
use crate::support::postgres_servers::{Ground, Server};
use crate::support::process::{Site, on_site_at};

fn openssl(folder: &Path, args: &str) {
    let done = Command::new("openssl").current_dir(folder).args(args.split(' ')).output().unwrap();
    assert!(done.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&done.stderr));
}

/// An authority in this folder, and what it has signed: the server for `localhost`, a client for the role `carded`. A
/// stranger has signed nothing.
fn make_certificates(folder: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for name in ["authority", "stranger"] {
        openssl(folder, &format!("req -x509 {key} -subj /CN={name} -keyout {name}.key -out {name}.crt"));
    }
    for (name, subject, more) in [
        ("server", "localhost", "subjectAltName=DNS:localhost"),
        ("client", "carded", "keyUsage=digitalSignature"),
    ] {
        openssl(
            folder,
            &format!("req -new {key} -subj /CN={subject} -keyout {name}.key -out {name}.csr")
                .replace(" -days 2", ""),
        );
        std::fs::write(folder.join("more"), more).unwrap();
        let sign = "-CA authority.crt -CAkey authority.key -CAcreateserial -days 2 -extfile more";
        openssl(folder, &format!("x509 -req -in {name}.csr {sign} -out {name}.crt"));
    }
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// A server that speaks TLS only: anybody may come as `postgres`, with a password as `guarded`, with a card as `carded`.
fn guarded_server() -> (Server, PathBuf) {
    let ground = Ground::new();
    let folder = ground.dir.clone();
    make_certificates(&folder);
    for name in ["server.key", "server.crt", "authority.crt"] {
        ground.give_away(&folder.join(name));
    }
    let setting = |name: &str, file_name: &str| format!("{name} = '{}'", file(&folder, file_name));
    let lines = [
        "ssl = on".to_string(),
        setting("ssl_cert_file", "server.crt"),
        setting("ssl_key_file", "server.key"),
        setting("ssl_ca_file", "authority.crt"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let doors = "hostssl all postgres 127.0.0.1/32 trust\nhostssl all guarded 127.0.0.1/32 scram-sha-256\n\
                 hostssl all carded 127.0.0.1/32 cert";
    let server = ground.server("guarded", &lines, doors);
    server.execute("postgres", "CREATE ROLE guarded SUPERUSER LOGIN PASSWORD 'hush'");
    server.execute("postgres", "CREATE ROLE carded SUPERUSER LOGIN");
    server.execute("postgres", "CREATE DATABASE shop");
    (server, folder)
}

/// Runs a command with each URL, which is to succeed.
async fn all_enter(site: &Site, urls: &[String]) {
    for url in urls {
        let verdict = site.by(url).cli(&["ledger", "verify"]).await;
        assert_eq!(verdict["ok"], true, "{url}");
    }
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_server_that_takes_tls_only() {
    let (server, folder) = guarded_server();
    let (port, root, stranger) = (server.port, file(&folder, "authority.crt"), file(&folder, "stranger.crt"));
    let at = move |who: &str, host: &str, rest: &str| format!("postgres://{who}@{host}:{port}/shop{rest}");
    on_site_at(&at("postgres", "localhost", ""), vec![], async move |site| {
        // Also keeps the server alive, as long as the test.
        assert_eq!(server.ask("shop", "SHOW ssl"), "on");
        site.cli(&["migrate"]).await;
        let verified = format!("?sslmode=verify-full&sslrootcert={root}");
        all_enter(
            site,
            &[
                at("postgres", "127.0.0.1", ""),
                at("postgres", "0.0.0.0", ""),
                at("postgres", "127.0.0.1", "?sslmode=prefer"),
                at("postgres", "127.0.0.1", "?sslmode=require"),
                at("postgres", "localhost", &verified),
                // The server's own certificate may be trusted as it is.
                at("postgres", "localhost", &verified.replace("authority", "server")),
                at("postgres", "127.0.0.1", &format!("?sslmode=verify-ca&sslrootcert={root}")),
                at("guarded:hush", "localhost", &format!("{verified}&channel_binding=require")),
            ],
        )
        .await;
        for (url, told) in [
            (at("postgres", "127.0.0.1", "?sslmode=disable"), "no encryption"),
            (at("postgres", "127.0.0.1", &verified), "the URL must name the host as its certificate does"),
            (
                at("postgres", "localhost", &format!("?sslmode=verify-full&sslrootcert={stranger}")),
                "sslrootcert",
            ),
            (
                at("postgres", "127.0.0.1", &format!("?sslmode=verify-ca&sslrootcert={stranger}")),
                "sslrootcert",
            ),
            // As libpq has it: whoever names a root wants it looked at.
            (at("postgres", "127.0.0.1", &format!("?sslmode=require&sslrootcert={stranger}")), "sslrootcert"),
            // The machine's own roots have not signed it.
            (at("postgres", "localhost", "?sslmode=verify-full"), "certificate"),
            (at("guarded:wrong", "localhost", &verified), "password authentication failed"),
            (at("carded", "localhost", &verified), "certificate"),
        ] {
            let (_, words) = site.by(&url).refused(&["ledger", "verify"]).await;
            assert!(words.contains(told), "{url}: {words}");
            assert!(!words.contains("wrong@"), "{url}: {words}");
        }
        let key = file(&folder, "client.key");
        let card = format!("{verified}&sslcert={}&sslkey={key}", file(&folder, "client.crt"));
        let carded = site.by(&at("carded", "localhost", &card));
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let (exit, words) = carded.refused(&["ledger", "verify"]).await;
        assert!(exit == 2 && words.contains("others can read it"), "{words}");
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        sells(&carded).await;
        // The tools that copy a database reach it the same way.
        carded.cli(&["backup", "copy.dump"]).await;
        assert!(site.place.dir.join("copy.dump").exists());
    });
}

async fn sells(site: &Site) {
    let server = site.start().await;
    let (_, key): (String, Key) = site.partner(&server, "Guarded Travel", "100").await;
    let order = serde_json::json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "one" });
    let reply = site.send(&server.base, &key, "POST", "/api/b2b/v1/orders", Some(&order)).await.unwrap();
    reply.expect(200);
    site.verify_books().await;
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_role_without_rights_and_a_line_in_clear() {
    let ground = Ground::new();
    let server = ground.server("plain", &[], "host all all 127.0.0.1/32 trust");
    server.execute("postgres", "CREATE ROLE clerk LOGIN");
    server.execute("postgres", "CREATE DATABASE shop");
    let clerk = server.url("clerk", "shop");
    on_site_at(&server.url("postgres", "shop"), vec![], async move |site| {
        let (exit, words) = site.by(&clerk).refused(&["migrate"]).await;
        let owner = r#"ALTER DATABASE \"shop\" OWNER TO \"clerk\";"#;
        assert!(exit == 2 && words.contains(owner), "{words}");
        site.cli(&["migrate"]).await;
        let (exit, words) = site.by(&clerk).refused(&["partner", "list"]).await;
        let tables = r#"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO \"clerk\";"#;
        assert!(exit == 2 && words.contains(tables), "{words}");
        server.execute("shop", &tables.replace('\\', ""));
        site.by(&clerk).cli(&["partner", "list"]).await;

        let elsewhere = site.place.url.replace("127.0.0.1", "0.0.0.0");
        let (exit, words) = site.by(&elsewhere).refused(&["partner", "list"]).await;
        assert!(exit == 2 && words.contains("must be written in the URL: sslmode=disable"), "{words}");
        site.by(&format!("{elsewhere}?sslmode=disable")).cli(&["partner", "list"]).await;
    });
}
