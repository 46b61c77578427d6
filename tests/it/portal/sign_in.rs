//! Invitations, and signing in by a mailed code.

use simgate::domain::role::Role;

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
}
