//! The second factor at the portal: set up, asked for, lost and turned off.

use simgate::domain::role::Role;

use super::{DEV, OWNER};
use crate::support::authenticator::Authenticator;
use crate::support::buying::MINUTE_MS;
use crate::support::desk::{COOKIE, OPEN, is_in, member, sign_in};
use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::logins::subjects;
use crate::support::visitor::{Visitor, hidden};

/// Turns it on, and answers the app and the recovery codes.
pub async fn set_up(gateway: &Gateway, visitor: &mut Visitor, email: &str) -> (Authenticator, Vec<String>) {
    let page = visitor.open("/portal/settings/second-factor").await;
    let begun = visitor.submit(&page, "/portal/settings/second-factor/begin", &[]).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    let secret = hidden(&begun, "/portal/settings/second-factor/confirm")
        .into_iter()
        .find(|(name, _)| name == "secret")
        .unwrap()
        .1;
    let app = Authenticator::scan(&format!("otpauth://totp/simgate:{email}?secret={secret}&issuer=simgate"));
    let now = gateway.app.now();
    let wrong = visitor
        .submit(&begun, "/portal/settings/second-factor/confirm", &[("code", &app.never_shows(now))])
        .await;
    assert!(wrong.status == 401 && wrong.text.contains(&secret), "the same setup again: {}", wrong.text);
    let on =
        visitor.submit(&wrong, "/portal/settings/second-factor/confirm", &[("code", &app.shows(now))]).await;
    assert!(
        on.status == 200 && on.text.contains("The second factor is on") && !on.text.contains(&secret),
        "{}",
        on.text
    );
    let (_, rest) = on.text.split_once("data-copy=\"").unwrap();
    let codes: Vec<String> = rest.split('"').next().unwrap().lines().map(str::to_string).collect();
    assert_eq!(codes.len(), 10);
    (app, codes)
}

async fn enter(visitor: &mut Visitor, code: &str) -> Reply {
    let page = visitor.open("/portal/second-factor").await;
    visitor.submit(&page, "/portal/second-factor", &[("code", code)]).await
}

both_databases! {
    async fn a_mailed_code_alone_opens_nothing_then(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let (app, codes) = set_up(gateway, &mut ann, OWNER).await;
        gateway.pass_time(2 * MINUTE_MS);
        let mut phone = Visitor::new(gateway);
        assert_eq!(sign_in(gateway, &mut phone, OWNER).await.status, 303);
        let half = phone.cookies[COOKIE].clone();
        // Nothing but the question is open to it.
        for path in ["/portal", "/portal/team", "/portal/settings", "/portal/settings/second-factor"] {
            let page = phone.open(path).await;
            assert!(page.status == 303 && page.header("location").starts_with("/portal"), "{path}: {}", page.text);
        }
        assert_eq!(phone.open("/portal").await.header("location"), "/portal/second-factor");
        let asked = phone.open("/portal/second-factor").await;
        let token = hidden(&asked, "/portal/second-factor").remove(0).1;
        let refused = phone.post("/portal/settings/company", &[("form", &token), ("name", "Evil")]).await;
        assert_eq!((refused.status, refused.header("location")), (303, "/portal?next=settings&form=ended"));
        let now = gateway.app.now();
        let wrong = enter(&mut phone, &app.never_shows(now)).await;
        assert!(wrong.status == 401 && wrong.text.contains("Please check"), "{}", wrong.text);
        let right = app.shows(now);
        let entered = enter(&mut phone, &right).await;
        assert_eq!((entered.status, entered.header("location")), (303, "/portal"));
        assert!(is_in(&mut phone).await && phone.cookies[COOKIE] != half);
        // The half session has ended, and the code was good once.
        let mut thief = Visitor::new(gateway);
        thief.cookies.insert(COOKIE.into(), half);
        assert_eq!(thief.open("/portal/second-factor").await.header("location"), "/portal");
        // The same code within its half minute is refused elsewhere.
        let page = phone.open("/portal/settings/second-factor").await;
        let used = phone.submit(&page, "/portal/settings/second-factor/off", &[("code", &right)]).await;
        assert!(used.status == 401 && used.text.contains("each counts once"), "{}", used.text);
        // A recovery code is good once too.
        gateway.pass_time(2 * MINUTE_MS);
        let mut lost = Visitor::new(gateway);
        sign_in(gateway, &mut lost, OWNER).await;
        assert_eq!(enter(&mut lost, &codes[3]).await.status, 303);
        gateway.pass_time(8 * MINUTE_MS);
        let mut second = Visitor::new(gateway);
        sign_in(gateway, &mut second, OWNER).await;
        assert_eq!(enter(&mut second, &codes[3]).await.status, 401);
        assert!(!is_in(&mut second).await);
    }

    async fn five_wrong_codes_end_the_sign_in(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let (app, _) = set_up(gateway, &mut ann, OWNER).await;
        gateway.pass_time(2 * MINUTE_MS);
        let mut eve = Visitor::new(gateway);
        sign_in(gateway, &mut eve, OWNER).await;
        let page = eve.open("/portal/second-factor").await;
        let now = gateway.app.now();
        for _ in 0..5 {
            let wrong = eve.submit(&page, "/portal/second-factor", &[("code", &app.never_shows(now))]).await;
            assert_eq!(wrong.status, 401, "{}", wrong.text);
        }
        // A right one comes too late.
        let late = eve.submit(&page, "/portal/second-factor", &[("code", &app.shows(now))]).await;
        assert_eq!((late.status, late.header("location")), (303, "/portal?form=ended"));
        assert!(!is_in(&mut eve).await && is_in(&mut ann).await);
        // It ends by time too.
        gateway.pass_time(8 * MINUTE_MS);
        let mut slow = Visitor::new(gateway);
        sign_in(gateway, &mut slow, OWNER).await;
        let page = slow.open("/portal/second-factor").await;
        gateway.pass_time(11 * MINUTE_MS);
        let late = slow.submit(&page, "/portal/second-factor", &[("code", &app.shows(gateway.app.now()))]).await;
        assert_eq!(late.status, 303);
        assert!(!is_in(&mut slow).await);
    }

    async fn it_is_renewed_and_turned_off_by_a_code(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let (app, codes) = set_up(gateway, &mut ann, OWNER).await;
        gateway.pass_time(2 * MINUTE_MS);
        let page = ann.open("/portal/settings/second-factor").await;
        assert!(page.text.contains("10 recovery codes are left") && codes.iter().all(|code| !page.text.contains(code)));
        for action in ["codes", "off"] {
            let action = format!("/portal/settings/second-factor/{action}");
            let wrong = ann.submit(&page, &action, &[("code", "000000")]).await;
            assert!(wrong.status == 401 && wrong.text.contains("It is on"), "{}", wrong.text);
        }
        let renewed = ann.submit(&page, "/portal/settings/second-factor/codes", &[("code", &codes[0])]).await;
        assert!(renewed.status == 200 && !renewed.text.contains(&codes[1]), "{}", renewed.text);
        let off = ann.submit(&page, "/portal/settings/second-factor/off", &[("code", &codes[1])]).await;
        assert_eq!(off.status, 401, "an earlier code has ended");
        let off = ann.submit(&page, "/portal/settings/second-factor/off", &[("code", &app.shows(gateway.app.now()))]).await;
        assert_eq!(off.header("location"), "/portal/settings/second-factor?done=factor-off");
        let mut phone = Visitor::new(gateway);
        sign_in(gateway, &mut phone, OWNER).await;
        assert!(is_in(&mut phone).await);
        // Each change was mailed once, and wrong codes changed nothing.
        let mut told = subjects(gateway, OWNER).await;
        told.retain(|subject| !["Your sign-in code", "You are invited to a team"].contains(&subject.as_str()));
        assert_eq!(told, ["Your second factor is off", "You have new recovery codes", "Your second factor is on"]);
    }

    /// Whoever was in before never showed a second factor.
    async fn it_ends_the_sessions_from_before(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let mut dev = member(gateway, DEV, Role::Developer).await;
        gateway.pass_time(8 * MINUTE_MS);
        let mut stolen = Visitor::new(gateway);
        sign_in(gateway, &mut stolen, OWNER).await;
        assert!(is_in(&mut stolen).await);
        set_up(gateway, &mut ann, OWNER).await;
        assert!(is_in(&mut ann).await && !is_in(&mut stolen).await && is_in(&mut dev).await);
    }

    /// A browser that was left open, or whose cookie somebody has, does not lock its owner out.
    async fn it_takes_a_sign_in_of_the_last_minutes(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let fresh = ann.open("/portal/settings/second-factor").await;
        let mut thief = ann.again();
        thief.cookies = ann.cookies.clone();
        gateway.pass_time(16 * MINUTE_MS);
        let page = thief.open("/portal/settings/second-factor").await;
        assert!(page.text.contains("Sign in anew to set it up") && !page.text.contains("/second-factor/begin"), "{}", page.text);
        let refused = thief.submit(&fresh, "/portal/settings/second-factor/begin", &[]).await;
        assert!(refused.status == 403 && refused.text.contains("Sign in anew to set it up"), "{}", refused.text);
        assert!(!refused.text.contains("otpauth") && !refused.text.contains("name=\"secret\""), "{}", refused.text);
        // The owner signs in anew, and is led on.
        let page = ann.open("/portal/settings/second-factor").await;
        assert!(page.text.contains("name=\"next\" value=\"settings/second-factor\""), "{}", page.text);
        let out = ann.submit(&page, "/portal/sign-out", &[("next", "settings/second-factor")]).await;
        assert_eq!((out.status, out.header("location")), (303, "/portal?next=settings/second-factor"));
        let entrance = ann.open(out.header("location")).await;
        let asked = ann.submit(&entrance, "/portal/code", &[("email", OWNER)]).await;
        let otp = crate::support::logins::code(gateway, OWNER).await;
        let entered = ann.submit(&asked, "/portal/sign-in", &[("code", &otp)]).await;
        assert_eq!(entered.header("location"), "/portal/settings/second-factor");
        set_up(gateway, &mut ann, OWNER).await;
        assert!(is_in(&mut ann).await && !is_in(&mut thief).await);
    }

    /// Where the operator wants it, owners begin with it.
    async fn owners_set_it_up_first(gateway) with [OPEN[0], OPEN[1], ("owners_need_second_factor", "true")] {
        let path = crate::support::desk::invite(gateway, crate::support::desk::account(gateway).await, OWNER, Role::Owner).await;
        let mut ann = Visitor::new(gateway);
        crate::support::desk::join(gateway, &mut ann, &path, OWNER).await;
        for path in ["/portal", "/portal/team", "/portal/settings"] {
            assert_eq!(ann.open(path).await.header("location"), "/portal/settings/second-factor", "{path}");
        }
        let page = ann.open("/portal/settings/second-factor").await;
        let token = hidden(&page, "/portal/sign-out").remove(0).1;
        let refused = ann.post("/portal/settings/company", &[("form", &token), ("name", "Evil")]).await;
        assert_eq!(refused.header("location"), "/portal/settings/second-factor");
        set_up(gateway, &mut ann, OWNER).await;
        assert!(is_in(&mut ann).await);
        // Others are free to.
        let mut dev = member(gateway, DEV, Role::Developer).await;
        assert!(is_in(&mut dev).await);
    }
}
