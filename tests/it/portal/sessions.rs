//! Sessions of members: what a browser holds, how long it is good, and who ends it.

use futures_util::future::join_all;
use simgate::domain::money::Usd;
use simgate::domain::role::Role;

use super::{DEV, EVE, OWNER};
use crate::support::buying::{HOUR_MS, MINUTE_MS};
use crate::support::desk::{COOKIE, OPEN, account_of, form, is_in, member, member_of, sign_in};
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

    /// Whoever is in another team of the same person would change over, and be back.
    async fn everywhere_is_in_every_team(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let (other, _) = gateway.partner("Other Travel", Usd::dollars(1)).await;
        gateway.pass_time(8 * MINUTE_MS);
        let mut there = member_of(gateway, account_of(gateway, &other).await, OWNER, Role::Viewer).await;
        let mut eve = member(gateway, EVE, Role::Viewer).await;
        let page = ann.open("/portal/settings").await;
        assert!(page.text.contains("in all your teams") && page.text.matches("/end\"").count() == 1, "{}", page.text);
        ann.submit(&page, "/portal/sign-out-everywhere", &[]).await;
        assert!(!is_in(&mut ann).await && !is_in(&mut there).await && is_in(&mut eve).await);
    }

    /// One session becomes one, and no younger by it.
    async fn changing_over_makes_no_second_session(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let (other, _) = gateway.partner("Other Travel", Usd::dollars(1)).await;
        gateway.pass_time(8 * MINUTE_MS);
        let mut there = member_of(gateway, account_of(gateway, &other).await, OWNER, Role::Viewer).await;
        let page = ann.open("/portal/settings").await;
        let mut copies: Vec<Visitor> = (0..6).map(|_| ann.again()).collect();
        join_all(copies.iter_mut().map(|copy| copy.submit(&page, "/portal/switch", &[]))).await;
        let mut changed = Vec::new();
        for mut copy in copies {
            if is_in(&mut copy).await {
                changed.push(copy);
            }
        }
        assert!(changed.len() == 1 && !is_in(&mut ann).await, "{}", changed.len());
        // It is used and changes over again and again, and ends after thirty days all the same.
        let mut ann = changed.remove(0);
        for _ in 0..60 {
            gateway.pass_time(12 * HOUR_MS - MINUTE_MS);
            let page = ann.open("/portal/settings").await;
            assert_eq!(ann.submit(&page, "/portal/switch", &[]).await.status, 303, "{}", page.text);
            assert!(is_in(&mut ann).await);
        }
        gateway.pass_time(2 * HOUR_MS);
        assert!(!is_in(&mut ann).await && !is_in(&mut there).await);
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
