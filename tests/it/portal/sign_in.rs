//! Invitations, and signing in by a mailed code.

use simgate::domain::role::Role;

use super::second_factor::set_up;
use super::{DEV, EVE, OWNER};
use crate::support::buying::{HOUR_MS, MINUTE_MS};
use crate::support::desk::{OPEN, account, invitation, invite, is_in, join, member, sign_in};
use crate::support::harness::both_databases;
use crate::support::logins::{code, mails};
use crate::support::visitor::{Visitor, hidden};

both_databases! {
    async fn an_invitation_and_a_code_open_the_portal(gateway) with [OPEN[0], OPEN[1]] {
        let path = invite(gateway, account(gateway).await, OWNER, Role::Owner).await;
        let mail = mails(gateway, OWNER).await.remove(0);
        assert_eq!(mail["subject"], "You are invited to a team");
        let mut ann = Visitor::new(gateway);
        let page = ann.open(&path).await;
        assert!(page.text.contains("Join the team of") && page.text.contains(OWNER), "{}", page.text);
        // Looking uses nothing up, and asks for no code.
        assert_eq!((ann.open(&path).await.status, mails(gateway, OWNER).await.len()), (200, 1));
        let joined = join(gateway, &mut ann, &path, OWNER).await;
        assert_eq!((joined.status, joined.header("location")), (303, "/portal?done=joined"));
        let mail = mails(gateway, OWNER).await.remove(0);
        let said = mail["text"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("signs in to the partner portal as the member"), "{said}");
        let page = ann.open("/portal?done=joined").await;
        assert!(page.text.contains("Welcome to the team") && page.text.contains("· Owner"), "{}", page.text);
        // It is used up, for its owner as for others.
        assert_eq!(Visitor::new(gateway).open(&path).await.status, 404);
        // From now on the mailed code is enough.
        gateway.pass_time(2 * MINUTE_MS);
        let mut again = Visitor::new(gateway);
        assert_eq!(sign_in(gateway, &mut again, OWNER).await.header("location"), "/portal");
        assert!(is_in(&mut again).await);
    }

    /// Whoever finds the link has nothing without the mailbox, and the mailbox of somebody else opens nothing.
    async fn an_invitation_is_for_one_address(gateway) with [OPEN[0], OPEN[1]] {
        member(gateway, DEV, Role::Developer).await;
        gateway.pass_time(2 * MINUTE_MS);
        let path = invite(gateway, account(gateway).await, OWNER, Role::Owner).await;
        let mut thief = Visitor::new(gateway);
        let page = thief.open(&path).await;
        let asked = thief.submit(&page, "/portal/code", &[("email", DEV)]).await;
        let otp = code(gateway, DEV).await;
        let refused = thief.submit(&asked, "/portal/sign-in", &[("email", DEV), ("code", &otp)]).await;
        assert_eq!(refused.status, 404, "{}", refused.text);
        assert!(!is_in(&mut thief).await);
        // The invitation is still its owner's.
        let joined = join(gateway, &mut Visitor::new(gateway), &path, OWNER).await;
        assert_eq!(joined.status, 303, "{}", joined.text);
    }

    async fn an_invitation_ends(gateway) with [OPEN[0], OPEN[1]] {
        let acme = account(gateway).await;
        let late = invite(gateway, acme, DEV, Role::Viewer).await;
        gateway.pass_time(71 * HOUR_MS);
        let mut dev = Visitor::new(gateway);
        let page = dev.open(&late).await;
        assert_eq!(page.status, 200);
        gateway.pass_time(HOUR_MS + MINUTE_MS);
        assert_eq!(dev.open(&late).await.status, 404);
        // It expects nobody any more: no code is mailed.
        let before = mails(gateway, DEV).await.len();
        assert_eq!(dev.submit(&page, "/portal/code", &[]).await.status, 200);
        assert_eq!(mails(gateway, DEV).await.len(), before);
        // A new one takes the place of the old one.
        let first = invite(gateway, acme, DEV, Role::Viewer).await;
        gateway.pass_time(MINUTE_MS);
        let second = invite(gateway, acme, DEV, Role::Developer).await;
        assert_ne!(first, second);
        assert_eq!((dev.open(&first).await.status, dev.open(&second).await.status), (404, 200));
        for path in [format!("{second}x"), "/portal/join/x".into(), "/portal/join/".to_string() + &"a".repeat(200)] {
            assert_eq!(dev.open(&path).await.status, 404, "{path}");
        }
        let joined = join(gateway, &mut dev, &second, DEV).await;
        assert_eq!(joined.status, 303, "{}", joined.text);
        assert!(dev.open("/portal").await.text.contains("· Developer"));
    }

    /// The same answers for an address in a team and one in none, and only the one is mailed.
    async fn nobody_learns_who_is_in_a_team(gateway) with [OPEN[0], OPEN[1]] {
        member(gateway, OWNER, Role::Owner).await;
        gateway.pass_time(2 * MINUTE_MS);
        let mailed = mails(gateway, OWNER).await.len();
        let mut told = Vec::new();
        for email in [OWNER, EVE] {
            let mut visitor = Visitor::new(gateway);
            let page = visitor.open("/portal").await;
            let asked = visitor.submit(&page, "/portal/code", &[("email", email)]).await;
            let wrong = visitor.submit(&asked, "/portal/sign-in", &[("code", "000000")]).await;
            let token = hidden(&asked, "/portal/sign-in").remove(0).1;
            let plain = |text: &str| text.replace(email, "").replace(&token, "");
            told.push((asked.status, plain(&asked.text), wrong.status, plain(&wrong.text)));
        }
        assert_eq!(told[0], told[1]);
        assert_eq!((mails(gateway, OWNER).await.len(), mails(gateway, EVE).await.len()), (mailed + 1, 0));
    }

    /// Buyers and members are apart: codes, wrong tries, mails and silence of one count nothing for the other.
    async fn each_realm_has_its_own_codes_and_counters(gateway) with [OPEN[0], OPEN[1]] {
        member(gateway, OWNER, Role::Owner).await;
        gateway.pass_time(10 * MINUTE_MS);
        // Somebody uses up the mails to the address as a buyer, and guesses.
        let mut eve = Visitor::new(gateway);
        let page = eve.open("/account").await;
        let asked = eve.submit(&page, "/account/code", &[("email", OWNER)]).await;
        let otp = code(gateway, OWNER).await;
        for _ in 0..2 {
            gateway.pass_time(MINUTE_MS + 1);
            eve.submit(&page, "/account/code", &[("email", OWNER)]).await;
        }
        let mut ann = Visitor::new(gateway);
        let entrance = ann.open("/portal").await;
        let typed = ann.submit(&entrance, "/portal/code", &[("email", OWNER)]).await;
        assert_eq!(typed.status, 200, "{}", typed.text);
        let own = code(gateway, OWNER).await;
        assert_ne!(own, otp);
        // Neither code opens the other's door.
        assert_eq!(ann.submit(&typed, "/portal/sign-in", &[("code", &otp)]).await.status, 401);
        assert_eq!(eve.submit(&asked, "/account/sign-in", &[("code", &own)]).await.status, 401);
        // "That was not me", of a buyer's mail, silences buyers' codes alone.
        let mail = mails(gateway, OWNER).await.into_iter()
            .find(|mail| mail["text"].as_str().unwrap().contains("as the customer")).unwrap();
        let link = mail["text"].as_str().unwrap().split_whitespace().find(|word| word.contains("/not-me/")).unwrap().to_string();
        let path = link[link.find("/not-me/").unwrap()..].to_string();
        let silenced = ann.open(&path).await;
        assert_eq!(ann.submit(&silenced, &path, &[]).await.status, 200);
        let entered = ann.submit(&typed, "/portal/sign-in", &[("code", &own)]).await;
        assert_eq!(entered.status, 303, "{}", entered.text);
        assert_eq!(eve.submit(&asked, "/account/sign-in", &[("code", &otp)]).await.status, 401, "it was silenced");
    }

    async fn codes_are_guessed_five_times(gateway) with [OPEN[0], OPEN[1]] {
        member(gateway, OWNER, Role::Owner).await;
        gateway.pass_time(2 * MINUTE_MS);
        let mut ann = Visitor::new(gateway);
        let page = ann.open("/portal").await;
        let asked = ann.submit(&page, "/portal/code", &[("email", OWNER)]).await;
        let otp = code(gateway, OWNER).await;
        let wrong = if otp == "000000" { "111111" } else { "000000" };
        for _ in 0..5 {
            assert_eq!(ann.submit(&asked, "/portal/sign-in", &[("code", wrong)]).await.status, 401);
        }
        assert_eq!(ann.submit(&asked, "/portal/sign-in", &[("code", &otp)]).await.status, 401);
        assert!(!is_in(&mut ann).await);
    }

    /// A new partner's email owns its team.
    async fn a_new_partner_is_invited(gateway) with [OPEN[0], OPEN[1]] {
        use simgate::domain::money::Usd;
        use simgate::ops::operator::{self, NewPartner};
        let new = NewPartner { name: "New <Co>".into(), email: Some(EVE.into()), credit: Usd::ZERO, shares_email: false };
        operator::create_partner(&gateway.app, "test", new).await.unwrap();
        let path = invitation(gateway, EVE).await;
        let mut eve = Visitor::new(gateway);
        assert_eq!(join(gateway, &mut eve, &path, EVE).await.status, 303);
        let page = eve.open("/portal").await;
        assert!(page.text.contains("New &#60;Co&#62;") && page.text.contains("· Owner"), "{}", page.text);
    }

    /// Somebody in two teams signs in to one and changes over.
    async fn a_person_of_two_teams_changes_over(gateway) with [OPEN[0], OPEN[1]] {
        let (other, _) = gateway.partner("Other Travel", simgate::domain::money::Usd::dollars(7)).await;
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        gateway.pass_time(2 * MINUTE_MS);
        let other = crate::support::desk::account_of(gateway, &other).await;
        crate::support::desk::member_of(gateway, other, OWNER, Role::Viewer).await;
        let page = ann.open("/portal/settings").await;
        assert!(page.text.contains("Your other teams") && page.text.contains("Other Travel"), "{}", page.text);
        let held = ann.cookies[crate::support::desk::COOKIE].clone();
        let changed = ann.submit(&page, "/portal/switch", &[]).await;
        assert_eq!((changed.status, changed.header("location")), (303, "/portal"));
        assert_ne!(ann.cookies[crate::support::desk::COOKIE], held);
        let page = ann.open("/portal").await;
        assert!(page.text.contains("Other Travel") && page.text.contains("7.00 USD") && page.text.contains("· Viewer"));
        // Only to a team that one is in.
        let mut dev = member(gateway, DEV, Role::Owner).await;
        let token = crate::support::desk::form(&mut dev).await;
        let members = simgate::ops::team::list(&gateway.app, other).await.unwrap();
        let refused = dev.post("/portal/switch", &[("form", &token), ("member", members[0].id.as_str())]).await;
        assert_eq!(refused.status, 404, "{}", refused.text);
    }

    /// The page that was wanted comes after the sign-in and the second factor, and no page that is none of ours.
    async fn a_sign_in_leads_to_the_page_that_was_wanted(gateway) with [OPEN[0], OPEN[1]] {
        member(gateway, OWNER, Role::Owner).await;
        let order = gateway.order(crate::support::buying::PLAN).await;
        let path = format!("/portal/orders/{}", order["id"].as_str().unwrap());
        let next = path.strip_prefix("/portal/").unwrap();
        let turned = Visitor::new(gateway).open(&format!("{path}?done=placed")).await;
        assert_eq!((turned.status, turned.header("location")), (303, &*format!("/portal?next={next}")));
        for (wanted, leads) in [
            (next, &*path),
            ("settings/second-factor", "/portal/settings/second-factor"),
            ("", "/portal"),
            ("https://evil.example", "/portal"),
            ("//evil.example", "/portal"),
            ("\\evil.example", "/portal"),
            ("orders/../../x", "/portal"),
            ("orders/ord_1\r\nx: y", "/portal"),
            ("deposits/inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U", "/portal"),
            ("sign-out", "/portal"),
        ] {
            gateway.pass_time(8 * MINUTE_MS);
            let mut visitor = Visitor::new(gateway);
            let query: String = form_urlencoded::byte_serialize(wanted.as_bytes()).collect();
            let page = visitor.open(&format!("/portal?next={query}")).await;
            let asked = visitor.submit(&page, "/portal/code", &[("email", OWNER), ("next", wanted)]).await;
            let again = if leads == "/portal" { "/portal".into() } else { format!("/portal?next={wanted}") };
            assert!(asked.text.contains(&format!("href=\"{again}\">ask for a new code")), "{wanted}: {}", asked.text);
            let otp = code(gateway, OWNER).await;
            let entered = visitor.submit(&asked, "/portal/sign-in", &[("code", &otp), ("next", wanted)]).await;
            assert_eq!((entered.status, entered.header("location")), (303, leads), "{wanted}");
        }
        gateway.pass_time(8 * MINUTE_MS);
        let mut ann = Visitor::new(gateway);
        sign_in(gateway, &mut ann, OWNER).await;
        let app = set_up(gateway, &mut ann, OWNER).await.0;
        gateway.pass_time(8 * MINUTE_MS);
        let mut phone = Visitor::new(gateway);
        let page = phone.open(&format!("/portal?next={next}")).await;
        let asked = phone.submit(&page, "/portal/code", &[("email", OWNER)]).await;
        let otp = code(gateway, OWNER).await;
        let entered = phone.submit(&asked, "/portal/sign-in", &[("code", &otp)]).await;
        assert_eq!(entered.header("location"), path);
        let turned = phone.open(&path).await;
        let led = phone.open(turned.header("location")).await;
        assert_eq!(led.header("location"), format!("/portal/second-factor?next={next}"));
        let asked = phone.open(led.header("location")).await;
        let now = gateway.app.now();
        let wrong = phone.submit(&asked, "/portal/second-factor", &[("code", &app.never_shows(now))]).await;
        let right = phone.submit(&wrong, "/portal/second-factor", &[("code", &app.shows(now))]).await;
        assert_eq!((right.status, right.header("location")), (303, &*path));
        assert!(phone.open(&path).await.text.contains("Signed in as"));
    }

    /// Each page of the portal is one that a sign-in can lead to, unless its path opens a door or it is no page to read.
    async fn every_page_can_be_wanted(gateway) with [OPEN[0], OPEN[1]] {
        let names = [("orders/batches/{id}", "bat_1"), ("orders/{id}", "ord_1"), ("keys/{id}", "key_1"), ("webhooks/{id}", "whk_1"),
            ("team/{id}", "mbr_1"), ("statement/{month}", "2026-11"), ("deposits/{id}", "inv_1"), ("sessions/{id}", "ses_1")];
        let led_elsewhere = ["/portal/join/{link}", "/portal/deposits/{id}", "/portal/orders.csv", "/portal/plans.csv", "/portal/statement.csv",
            "/portal/search", "/portal/second-factor", "/portal"];
        let (mut pages, mut forms) = (0, 0);
        for route in include_str!("../../../src/http/mod.rs").split(".route(").skip(1) {
            let Some((path, takes)) = route.split_once('"').and_then(|(_, rest)| rest.split_once('"')) else { continue };
            if !path.starts_with("/portal") || path == "/portal/code" || path == "/portal/sign-in" {
                continue;
            }
            let mut named = path.replace("{delivery}", "dlv_1");
            for (shape, name) in names {
                named = named.replace(shape, &shape.replace(&shape[shape.find('{').unwrap()..], name));
            }
            if takes.contains("get(") && !led_elsewhere.contains(&path) {
                let turned = Visitor::new(gateway).open(&named).await;
                let next = named.strip_prefix("/portal/").unwrap();
                assert_eq!((turned.status, turned.header("location")), (303, &*format!("/portal?next={next}")), "{path}");
                pages += 1;
            }
            if takes.contains("post(") {
                let turned = Visitor::new(gateway).post(&named, &[]).await;
                assert!(turned.status == 303 && turned.header("location").ends_with("form=ended"), "{path}: {}", turned.header("location"));
                forms += 1;
            }
        }
        assert!(pages > 25 && forms > 30, "{pages} {forms}");
    }

    /// Somebody whose form came too late hears that nothing was changed, and is led back to its page.
    async fn a_form_that_came_too_late_changes_nothing(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let page = ann.open("/portal/keys/new").await;
        ann.submit(&page, "/portal/sign-out", &[]).await;
        gateway.pass_time(2 * MINUTE_MS);
        for (sent, next, about) in [
            ("/portal/keys/new", "keys/new", "It was about making an API key: sign in, and its page opens again."),
            ("/portal/settings/company", "settings", "It was about settings: sign in, and its page opens again."),
            ("/portal/sign-out", "", "before your form was sent: sign in again."),
        ] {
            let turned = ann.post(sent, &[("form", "x"), ("name", "Shop")]).await;
            let page = ann.open(turned.header("location")).await;
            assert!(page.text.contains("Nothing was changed.") && page.text.contains(about), "{sent}: {}", page.text);
            let hidden = hidden(&page, "/portal/code");
            assert!(hidden.contains(&("next".into(), next.into())), "{sent}: {hidden:?}");
        }
        let (entrance, wanted) = (ann.open("/portal").await, ann.open("/portal?next=keys%2Fnew").await);
        assert!(!entrance.text.contains("Nothing was changed") && !wanted.text.contains("Nothing was changed"));
        let account = account(gateway).await;
        assert_eq!(simgate::ops::operator::keys_in_use(&gateway.app, account).await.unwrap().len(), 1);
    }
}
