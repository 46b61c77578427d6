//! Sessions of members: what a browser holds, how long it is good, and who ends it.

use simgate::domain::role::Role;

use super::{DEV, EVE, OWNER};
use crate::support::buying::{HOUR_MS, MINUTE_MS};
use crate::support::desk::{COOKIE, OPEN, form, is_in, member, sign_in};
use crate::support::harness::both_databases;
use crate::support::visitor::{Visitor, set_cookies};

both_databases! {
    /// Nobody goes on with a session that somebody else has put into the browser.
    async fn a_session_is_new_at_every_sign_in(gateway) with [OPEN[0], OPEN[1]] {
        let mut eve = member(gateway, EVE, Role::Viewer).await;
        member(gateway, OWNER, Role::Owner).await;
        gateway.pass_time(2 * MINUTE_MS);
        let mut ann = Visitor::new(gateway);
        let page = ann.open("/portal").await;
        ann.cookies.insert(COOKIE.into(), eve.cookies[COOKIE].clone());
        let asked = ann.submit(&page, "/portal/code", &[("email", OWNER)]).await;
        let otp = crate::support::logins::code(gateway, OWNER).await;
        assert_eq!(ann.submit(&asked, "/portal/sign-in", &[("code", &otp)]).await.status, 303);
        assert_ne!(ann.cookies[COOKIE], eve.cookies[COOKIE]);
        assert!(ann.open("/portal").await.text.contains("Signed in as owner@acme.example"));
        assert!(!is_in(&mut eve).await && !ann.cookies.contains_key("simgate-visit"));
    }

    async fn the_secret_is_in_the_cookie_alone(gateway) with [OPEN[0], OPEN[1]] {
        member(gateway, OWNER, Role::Owner).await;
        gateway.pass_time(2 * MINUTE_MS);
        let mut ann = Visitor::new(gateway);
        let entered = sign_in(gateway, &mut ann, OWNER).await;
        let secret = ann.cookies[COOKIE].clone();
        let flags = "Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax";
        assert!(set_cookies(&entered).contains(&format!("{COOKIE}={secret}; {flags}")), "{:?}", set_cookies(&entered));
        for path in ["/portal", "/portal/team", "/portal/settings"] {
            let page = ann.open(path).await;
            assert!(page.status == 200 && !page.text.contains(&secret), "{path}");
            assert_eq!((page.header("cache-control"), page.header("x-robots-tag")), ("no-store", "noindex, nofollow"));
        }
        // A buyer's door takes no member's session, and the other way round.
        ann.cookies.insert("simgate".into(), secret);
        assert!(ann.open("/account").await.text.contains("<h1>Sign in</h1>"));
        let mut buyer = Visitor::new(gateway);
        buyer.sign_in(gateway, DEV).await;
        buyer.cookies.insert(COOKIE.into(), buyer.cookies["simgate"].clone());
        assert!(!is_in(&mut buyer).await);
    }

    async fn it_ends_by_hand_everywhere_and_by_rest(gateway) with [OPEN[0], OPEN[1]] {
        let mut browsers = vec![member(gateway, OWNER, Role::Owner).await];
        for _ in 0..3 {
            gateway.pass_time(8 * MINUTE_MS);
            let mut ann = Visitor::new(gateway);
            sign_in(gateway, &mut ann, OWNER).await;
            browsers.push(ann);
        }
        let mut other = member(gateway, DEV, Role::Developer).await;
        let page = browsers[3].open("/portal/settings").await;
        assert_eq!((page.text.matches("this one").count(), page.text.matches("/end\"").count()), (1, 3));
        let (_, rest) = page.text.rsplit_once("action=\"/portal/sessions/").unwrap();
        let oldest = format!("/portal/sessions/{}", rest.split('"').next().unwrap());
        // It is nobody else's to end, in the same team neither.
        let token = form(&mut other).await;
        assert_eq!(other.post(&oldest, &[("form", &token)]).await.status, 404);
        assert_eq!(browsers[3].submit(&page, &oldest, &[]).await.header("location"), "/portal/settings?done=ended");
        assert!(!is_in(&mut browsers[0]).await && is_in(&mut browsers[1]).await);
        // Signing out ends what was copied from this browser too.
        let page = browsers[1].open("/portal").await;
        let mut copied = browsers[1].again();
        let out = browsers[1].submit(&page, "/portal/sign-out", &[]).await;
        assert_eq!((out.status, out.header("location")), (303, "/portal"));
        assert!(!is_in(&mut copied).await && is_in(&mut browsers[2]).await);
        let page = browsers[2].open("/portal/settings").await;
        browsers[2].submit(&page, "/portal/sign-out-everywhere", &[]).await;
        assert!(!is_in(&mut browsers[2]).await && !is_in(&mut browsers[3]).await && is_in(&mut other).await);
        gateway.pass_time(12 * HOUR_MS + MINUTE_MS);
        assert!(!is_in(&mut other).await);
    }
}
