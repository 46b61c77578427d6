//! Signing in and out: what a browser holds, how long it is good, and who ends it.

use simgate::domain::login::Realm;
use simgate::ops::{sessions, tokens};
use simgate::start::{self, Role};

use super::{ANN, EVE, OPEN};
use crate::support::buying::{HOUR_MS, MINUTE_MS};
use crate::support::harness::{Db, Gateway, both_databases, check_books, each_database, on_place};
use crate::support::logins::{code, code_in, mails};
use crate::support::place::Place;
use crate::support::visitor::{Visitor, set_cookies};

const COOKIE: &str = "simgate";

both_databases! {
    async fn a_code_opens_the_account(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = Visitor::new(gateway);
        let page = ann.open("/account").await;
        assert!(page.status == 200 && page.text.contains("<h1>Sign in</h1>"), "{}", page.text);
        assert_eq!((page.header("cache-control"), page.header("x-robots-tag")), ("no-store", "noindex, nofollow"));
        let asked = ann.submit(&page, "/account/code", &[("email", "Ann@Example.com")]).await;
        assert!(asked.text.contains("mailed to <strong>ann@example.com"), "{}", asked.text);
        // The mail names the door and what the code grants.
        let mail = mails(gateway, ANN).await.remove(0);
        let said = mail["text"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("Somebody who signs in to your account with a browser"), "{mail}");
        let wrong = ann.submit(&asked, "/account/sign-in", &[("code", "000000")]).await;
        assert!(wrong.status == 401 && wrong.text.contains("Please check") && wrong.text.contains(ANN), "{}", wrong.text);
        assert!(!ann.is_signed_in().await);
        let otp = code(gateway, ANN).await;
        let entered = ann.submit(&wrong, "/account/sign-in", &[("code", &otp)]).await;
        assert_eq!((entered.status, entered.header("location")), (303, "/account"));
        let page = ann.open("/account").await;
        assert!(page.text.contains("Your account</h1>") && page.text.contains("0.00 USD"), "{}", page.text);
        assert_eq!((page.header("cache-control"), page.header("x-robots-tag")), ("no-store", "noindex, nofollow"));
        // A code is used once, here as elsewhere.
        let mut eve = Visitor::new(gateway);
        let page = eve.open("/account").await;
        let again = eve.submit(&page, "/account/code", &[("email", EVE)]).await;
        assert_eq!(eve.submit(&again, "/account/sign-in", &[("email", ANN), ("code", &otp)]).await.status, 401);
    }

    /// A session ends with the token that its purchases count against.
    async fn a_session_ends_with_its_token(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = Visitor::new(gateway);
        ann.sign_in(gateway, ANN).await;
        let session = sessions::find(&gateway.app, &ann.cookies[COOKIE]).await.unwrap().unwrap();
        tokens::revoke(&gateway.app, session.account, &session.token).await.unwrap();
        assert!(!ann.is_signed_in().await);
    }

    /// The same answers for an address with an account and one without.
    async fn nobody_learns_who_has_an_account(gateway) with [OPEN[0], OPEN[1]] {
        Visitor::new(gateway).sign_in(gateway, ANN).await;
        gateway.pass_time(2 * MINUTE_MS);
        let mut told = Vec::new();
        for email in [ANN, EVE] {
            let mut visitor = Visitor::new(gateway);
            let page = visitor.open("/account").await;
            let asked = visitor.submit(&page, "/account/code", &[("email", email)]).await;
            let wrong = visitor.submit(&asked, "/account/sign-in", &[("code", "000000")]).await;
            let token = crate::support::visitor::hidden(&asked, "/account/sign-in").remove(0).1;
            let plain = |text: &str| text.replace(email, "").replace(&token, "");
            told.push((asked.status, plain(&asked.text), wrong.status, plain(&wrong.text)));
        }
        assert_eq!(told[0], told[1]);
    }

    /// Five wrong tries end a code, on this door as on the others.
    async fn codes_are_guessed_five_times(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = Visitor::new(gateway);
        let page = ann.open("/account").await;
        let asked = ann.submit(&page, "/account/code", &[("email", ANN)]).await;
        let otp = code(gateway, ANN).await;
        let wrong = if otp == "000000" { "111111" } else { "000000" };
        for _ in 0..5 {
            assert_eq!(ann.submit(&asked, "/account/sign-in", &[("code", wrong)]).await.status, 401);
        }
        assert_eq!(ann.submit(&asked, "/account/sign-in", &[("code", &otp)]).await.status, 401);
        assert!(!ann.is_signed_in().await);
        // No more mails than elsewhere: a minute apart, and no error while the code may be good.
        let refused = ann.submit(&page, "/account/code", &[("email", ANN)]).await;
        assert!(refused.status == 429 && !refused.header("retry-after").is_empty(), "{}", refused.text);
        assert_eq!(mails(gateway, ANN).await.len(), 1);
    }

    /// Nobody goes on with a session that somebody else has put into the browser.
    async fn a_session_is_new_at_every_sign_in(gateway) with [OPEN[0], OPEN[1]] {
        let mut eve = Visitor::new(gateway);
        eve.sign_in(gateway, EVE).await;
        let mut ann = Visitor::new(gateway);
        ann.cookies.insert(COOKIE.into(), "a".repeat(44));
        assert!(!ann.is_signed_in().await);
        ann.cookies.insert(COOKIE.into(), eve.cookies[COOKIE].clone());
        let page = Visitor::new(gateway).open("/account").await;
        assert!(page.text.contains("Sign in"), "{}", page.text);
        // Ann's browser holds eve's session, and a visit of its own.
        let mut fresh = Visitor::new(gateway);
        let page = fresh.open("/account").await;
        ann.cookies.extend(fresh.cookies.clone());
        let asked = ann.submit(&page, "/account/code", &[("email", ANN)]).await;
        let otp = code(gateway, ANN).await;
        assert_eq!(ann.submit(&asked, "/account/sign-in", &[("code", &otp)]).await.status, 303);
        assert_ne!(ann.cookies[COOKIE], eve.cookies[COOKIE]);
        assert!(ann.open("/account").await.text.contains("Signed in as ann@example.com"));
        // The one that was there has ended.
        assert!(!eve.is_signed_in().await);
        // The visit ended too.
        assert!(!ann.cookies.contains_key("simgate-visit"));
    }

    async fn signing_out_ends_it(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = Visitor::new(gateway);
        ann.sign_in(gateway, ANN).await;
        let page = ann.open("/account/settings").await;
        let mut stolen = ann.again();
        let out = ann.submit(&page, "/account/sign-out", &[]).await;
        assert_eq!((out.status, out.header("location")), (303, "/account"));
        assert!(!ann.cookies.contains_key(COOKIE));
        assert!(!stolen.is_signed_in().await && !ann.is_signed_in().await);
    }

    async fn sessions_are_listed_and_ended_one_by_one_or_all(gateway) with [OPEN[0], OPEN[1]] {
        let mut browsers = Vec::new();
        for _ in 0..3 {
            let mut ann = Visitor::new(gateway);
            ann.sign_in(gateway, ANN).await;
            browsers.push(ann);
            gateway.pass_time(8 * MINUTE_MS);
        }
        let mut eve = Visitor::new(gateway);
        eve.sign_in(gateway, EVE).await;
        let page = browsers[2].open("/account/settings").await;
        assert_eq!(page.text.matches("last seen").count(), 3);
        assert_eq!((page.text.matches("this one").count(), page.text.matches("/end\"").count()), (1, 2));
        let action = |page: &str| {
            let (_, rest) = page.rsplit_once("action=\"/account/sessions/").unwrap();
            format!("/account/sessions/{}", rest.split('"').next().unwrap())
        };
        let oldest = action(&page.text);
        // It is nobody else's to end.
        let eves = eve.open("/account/settings").await;
        let token = crate::support::visitor::hidden(&eves, "/account/sign-out").remove(0).1;
        assert_eq!(eve.post(&oldest, &[("form", &token)]).await.status, 404);
        assert!(browsers[0].is_signed_in().await);
        let done = browsers[2].submit(&page, &oldest, &[]).await;
        assert_eq!(done.header("location"), "/account/settings?done=ended");
        assert!(!browsers[0].is_signed_in().await);
        assert!(browsers[1].is_signed_in().await);
        assert_eq!(browsers[2].submit(&page, &oldest, &[]).await.status, 404);
        let everywhere = browsers[1].open("/account/settings").await;
        assert_eq!(browsers[1].submit(&everywhere, "/account/sign-out-everywhere", &[]).await.status, 303);
        assert!(!browsers[1].is_signed_in().await && !browsers[2].is_signed_in().await);
        assert!(eve.is_signed_in().await);
    }

    /// What ends here has ended on the other instances.
    async fn the_end_counts_everywhere(gateway) with [OPEN[0], OPEN[1]] {
        let other = start::open(gateway.app.settings.clone(), Role::Server).await.unwrap();
        let mut ann = Visitor::new(gateway);
        ann.sign_in(gateway, ANN).await;
        let secret = ann.cookies[COOKIE].clone();
        assert!(sessions::find(&other, &secret).await.unwrap().is_some());
        let page = ann.open("/account").await;
        ann.submit(&page, "/account/sign-out", &[]).await;
        assert!(sessions::find(&other, &secret).await.unwrap().is_none());
    }

    async fn a_session_that_rests_ends(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = Visitor::new(gateway);
        ann.sign_in(gateway, ANN).await;
        for _ in 0..3 {
            gateway.pass_time(11 * HOUR_MS);
            visit(gateway, &mut ann).await;
        }
        gateway.pass_time(12 * HOUR_MS + MINUTE_MS);
        assert!(!ann.is_signed_in().await);
    }

    async fn the_oldest_session_ends_however_it_is_used(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = Visitor::new(gateway);
        ann.sign_in(gateway, ANN).await;
        for _ in 0..71 {
            gateway.pass_time(10 * HOUR_MS);
            visit(gateway, &mut ann).await;
        }
        gateway.pass_time(10 * HOUR_MS + MINUTE_MS);
        assert!(!ann.is_signed_in().await);
        gateway.pass_time(25 * HOUR_MS);
        gateway.until("its row is forgotten", async || {
            let app = &gateway.app;
            let before = simgate::domain::session::Limits {
                made_after: simgate::domain::time::Time::from_micros(0),
                seen_after: simgate::domain::time::Time::from_micros(0),
            };
            let account = crate::support::buying::account(gateway, ANN).await;
            let read = move |tx: &mut simgate::store::tx::Tx| {
                simgate::store::sessions::of_account(tx, account, Realm::Buyers, before, 10)
            };
            app.store.read(read).await.unwrap().is_empty().then_some(())
        }).await;
    }

    /// The page that was wanted comes after the sign-in, if it is one of ours.
    async fn a_sign_in_leads_to_no_other_site(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = Visitor::new(gateway);
        let turned = ann.open("/account/orders?page=2").await;
        assert_eq!((turned.status, turned.header("location")), (303, "/account?next=orders"));
        for (next, path) in [
            ("orders", "/account/orders"),
            ("buy/JP-1GB-7D", "/account/buy/JP-1GB-7D"),
            ("https://evil.example", "/account"),
            ("//evil.example", "/account"),
            ("orders/../../x", "/account"),
            ("", "/account"),
        ] {
            let mut visitor = Visitor::new(gateway);
            let query: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
            let page = visitor.open(&format!("/account?next={query}")).await;
            let asked = visitor.submit(&page, "/account/code", &[("email", ANN)]).await;
            let otp = code(gateway, ANN).await;
            let entered = visitor.submit(&asked, "/account/sign-in", &[("code", &otp), ("next", if next.is_empty() { "x" } else { next })]).await;
            assert_eq!((entered.status, entered.header("location")), (303, path), "{next}");
            gateway.pass_time(8 * MINUTE_MS);
        }
    }

    /// Nothing that opens the account is in an address, and only a cookie holds the session.
    async fn the_secret_is_in_the_cookie_alone(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = Visitor::new(gateway);
        let entered = ann.sign_in(gateway, ANN).await;
        let secret = ann.cookies[COOKIE].clone();
        assert!(secret.len() == 44 && !entered.header("location").contains(&secret));
        let set = set_cookies(&entered);
        let flags = "Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax";
        assert!(set.contains(&format!("simgate={secret}; {flags}")), "{set:?}");
        for path in ["/account", "/account/settings", "/account/settings/data", "/account/orders"] {
            let page = ann.open(path).await;
            assert!(page.status == 200 && !page.text.contains(&secret), "{path}");
        }
        // It is no bearer token either.
        let asked = gateway.client.get(format!("{}/api/agentic/wallet", gateway.base));
        let asked = crate::support::harness::reply(asked.header("authorization", format!("Bearer {secret}"))).await;
        assert_eq!(asked.status, 401);
    }
}

/// Opens the account, and waits until the visit is written down.
async fn visit(gateway: &Gateway, ann: &mut Visitor) {
    assert!(ann.is_signed_in().await);
    let now = gateway.app.now();
    gateway
        .until("the visit is noted", async || {
            let account = crate::support::buying::account(gateway, ANN).await;
            let listed = sessions::list(&gateway.app, account, Realm::Buyers).await.unwrap();
            listed.iter().any(|one| now.is_within(MINUTE_MS, one.seen_at)).then_some(())
        })
        .await;
}

/// Behind https, names of cookies keep other hosts and plain pages from setting them.
fn strict_cookies(db: Db) {
    on_place(db, async |place: &Place| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let mut settings = place.settings(&[("checkout_url", "https://shop.example"), OPEN[0], OPEN[1]]);
        settings.demo_file = place.dir.join("simgate-demo.env");
        let app = start::open(settings, Role::Server).await.unwrap();
        let stop = tokio_util::sync::CancellationToken::new();
        let served = tokio::spawn({
            let (app, stop) = (app.clone(), stop.clone());
            async move { start::run(&app, listener, None, stop).await }
        });
        let mut ann = Visitor::at(&base);
        let page = ann.open("/account").await;
        let set = set_cookies(&page);
        assert!(
            set[0].starts_with("__Host-simgate-visit=") && set[0].ends_with("HttpOnly; SameSite=Lax; Secure"),
            "{set:?}"
        );
        let asked = ann.submit(&page, "/account/code", &[("email", ANN)]).await;
        assert_eq!(asked.status, 200, "{}", asked.text);
        let outbox = crate::support::harness::reply(ann.get("/sandbox/outbox?email=ann%40example.com")).await;
        let otp = code_in(&outbox.expect(200));
        let entered = ann.submit(&asked, "/account/sign-in", &[("code", &otp)]).await;
        let set = set_cookies(&entered);
        assert!(
            set.iter().any(|one| one.starts_with("__Host-simgate=")
                && one.contains("Path=/;")
                && one.ends_with("Secure")),
            "{set:?}"
        );
        assert!(ann.is_signed_in().await);
        // A cookie without the strict name counts for nothing.
        let secret = ann.cookies.remove("__Host-simgate").unwrap();
        ann.cookies.insert("simgate".into(), secret);
        assert!(!ann.is_signed_in().await);
        check_books(&app).await;
        stop.cancel();
        served.await.unwrap();
    });
}

mod cookies_behind_https_are_strict {
    use super::*;

    each_database!(strict_cookies);
}
