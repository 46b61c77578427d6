//! The team: roles that change, people who go, and the log of what members did.

use std::collections::BTreeSet;
use std::path::Path;

use simgate::domain::money::Usd;
use simgate::domain::role::Role;
use simgate::ops::team;

use super::{DEV, EVE, OWNER};
use crate::support::database;
use crate::support::desk::{OPEN, account, account_of, form, invitation, is_in, join, member, member_of};
use crate::support::harness::both_databases;
use crate::support::visitor::Visitor;

both_databases! {
    async fn an_owner_invites_changes_and_removes(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let page = ann.open("/portal/team").await;
        let wrong = ann.submit(&page, "/portal/team", &[("email", "nobody"), ("role", "VIEWER")]).await;
        assert!(wrong.status == 400 && wrong.text.contains("Please check") && wrong.text.contains("value=\"nobody\""), "{}", wrong.text);
        let twice = ann.submit(&page, "/portal/team", &[("email", OWNER), ("role", "VIEWER")]).await;
        assert!(twice.status == 400 && twice.text.contains("in the team already"), "{}", twice.text);
        let sent = ann.submit(&page, "/portal/team", &[("email", DEV), ("role", "VIEWER")]).await;
        assert_eq!(sent.header("location"), "/portal/team?done=invited");
        let path = invitation(gateway, DEV).await;
        let mut dev = Visitor::new(gateway);
        let shown = dev.open(&path).await;
        assert!(shown.text.contains("Invited by") && shown.text.contains(OWNER), "{}", shown.text);
        assert_eq!(join(gateway, &mut dev, &path, DEV).await.status, 303);
        let acme = account(gateway).await;
        let id = team::list(&gateway.app, acme).await.unwrap().into_iter().find(|one| one.email.as_str() == DEV).unwrap().id;
        // A role counts from the next request on.
        let about = ann.open(&format!("/portal/team/{id}")).await;
        assert_eq!(dev.post("/portal/team", &[("form", &form(&mut dev.again()).await), ("email", EVE), ("role", "VIEWER")]).await.status, 403);
        let changed = ann.submit(&about, &format!("/portal/team/{id}"), &[("role", "OWNER")]).await;
        assert_eq!(changed.header("location"), "/portal/team?done=role-changed");
        let token = form(&mut dev).await;
        assert_eq!(dev.post("/portal/team", &[("form", &token), ("email", EVE), ("role", "VIEWER")]).await.status, 303);
        // Removed, they are out at once, and sign in no more.
        let removed = ann.submit(&about, &format!("/portal/team/{id}/remove"), &[]).await;
        assert_eq!(removed.header("location"), "/portal/team?done=removed");
        assert!(!is_in(&mut dev).await);
        assert_eq!(ann.open(&format!("/portal/team/{id}")).await.status, 404);
        gateway.pass_time(10 * 60_000);
        let before = crate::support::logins::mails(gateway, DEV).await.len();
        let entrance = dev.open("/portal").await;
        assert_eq!(dev.submit(&entrance, "/portal/code", &[("email", DEV)]).await.status, 200);
        assert_eq!(crate::support::logins::mails(gateway, DEV).await.len(), before);
        // All of it is in the log, by the members' names, newest first.
        let log = ann.open("/portal/team/log").await;
        let told = [
            "Removed somebody from the team: dev@acme.example",
            "Invited somebody: eve@other.example",
            "VIEWER → OWNER",
            "Joined the team: dev@acme.example",
            "Invited somebody: dev@acme.example",
        ];
        let places = told.map(|what| log.text.find(what).unwrap_or_else(|| panic!("{what} is not in {}", log.text)));
        assert!(places.is_sorted(), "{}", log.text);
    }

    /// Whoever goes leaves no way back in.
    async fn invitations_end_with_who_sent_them(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let acme = account(gateway).await;
        for (deed, fields, told) in [
            ("", vec![("role", "DEVELOPER")], "DEVELOPER, open invitations withdrawn: 1"),
            ("/remove", vec![], "not in the team, open invitations withdrawn: 1"),
        ] {
            let mut dev = member(gateway, DEV, Role::Owner).await;
            let page = dev.open("/portal/team").await;
            assert_eq!(dev.submit(&page, "/portal/team", &[("email", EVE), ("role", "OWNER")]).await.status, 303);
            let path = invitation(gateway, EVE).await;
            let id = team::list(&gateway.app, acme).await.unwrap().into_iter().find(|one| one.email.as_str() == DEV).unwrap().id;
            let about = ann.open(&format!("/portal/team/{id}")).await;
            assert!(about.text.contains("are withdrawn") && about.text.contains("whom the low-balance warning goes to"), "{}", about.text);
            assert_eq!(ann.submit(&about, &format!("/portal/team/{id}{deed}"), &fields).await.status, 303);
            assert_eq!(Visitor::new(gateway).open(&path).await.status, 404);
            let left = team::list(&gateway.app, acme).await.unwrap();
            assert!(left.iter().all(|person| person.email.as_str() != EVE));
            assert!(ann.open("/portal/team/log").await.text.contains(told), "{told}");
            if deed.is_empty() {
                ann.submit(&about, &format!("/portal/team/{id}/remove"), &[]).await;
            }
            gateway.pass_time(10 * 60_000);
        }
    }

    /// Every command that `ops` writes down for members, also one that no test makes a member do.
    async fn the_log_has_words_for_every_deed(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let (account, at) = (account(gateway).await, gateway.app.now().micros());
        let commands = commands();
        assert!(commands.len() > 20, "{commands:?}");
        for (n, command) in commands.iter().enumerate() {
            let line = format!("INSERT INTO audit (id, at, actor, command, detail, account)
                VALUES ('made-{n:03}', {at}, 'member:{DEV}', '{command}', 'made {n:03}', {})", account.0);
            database::execute(&gateway.app.settings.database, &line).unwrap();
        }
        let log = ann.open("/portal/team/log").await;
        for (n, command) in commands.iter().enumerate() {
            assert!(log.text.contains(&format!(": made {n:03}")), "{command}: {}", log.text);
            assert!(!log.text.contains(&format!("{command}: made {n:03}")), "{command} has no words");
        }
    }

    /// Also where one moment holds more deeds than a page.
    async fn the_log_is_leafed_through_without_a_gap(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let (account, at) = (account(gateway).await, gateway.app.now().micros());
        let row = |n| format!("('adt_{n:03}', {at}, 'member:{OWNER}', 'test', 'deed {n:03}', {})", account.0);
        let rows = (0..120).map(row).collect::<Vec<_>>().join(", ");
        let deeds = format!("INSERT INTO audit (id, at, actor, command, detail, account) VALUES {rows}");
        database::execute(&gateway.app.settings.database, &deeds).unwrap();
        let mut path = "/portal/team/log".to_string();
        let mut seen = Vec::new();
        loop {
            let page = ann.open(&path).await.text;
            seen.extend((0..120).rev().filter(|n| page.contains(&format!("deed {n:03}"))));
            let Some((_, rest)) = page.split_once("href=\"/portal/team/log?before=") else { break };
            path = format!("/portal/team/log?before={}", rest.split_once('"').unwrap().0);
        }
        assert_eq!(seen, (0..120).rev().collect::<Vec<_>>());
    }

    /// Nobody floods others with mails of ours.
    async fn a_team_sends_so_many_invitations_in_a_day(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let page = ann.open("/portal/team").await;
        for _ in 0..50 {
            let sent = ann.submit(&page, "/portal/team", &[("email", EVE), ("role", "VIEWER")]).await;
            assert_eq!(sent.status, 303, "{}", sent.text);
        }
        let refused = ann.submit(&page, "/portal/team", &[("email", DEV), ("role", "VIEWER")]).await;
        assert!(refused.status == 400 && refused.text.contains("at most 50 invitations"), "{}", refused.text);
        gateway.pass_time(24 * 3_600_000 + 1);
        crate::support::desk::sign_in(gateway, &mut ann, OWNER).await;
        let page = ann.open("/portal/team").await;
        assert_eq!(ann.submit(&page, "/portal/team", &[("email", DEV), ("role", "VIEWER")]).await.status, 303);
    }

    /// The last owner stays, also when two leave at once.
    async fn a_team_keeps_an_owner(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let acme = account(gateway).await;
        let id_of = async |email: &str| {
            team::list(&gateway.app, acme).await.unwrap().into_iter().find(|one| one.email.as_str() == email).unwrap().id
        };
        let own = id_of(OWNER).await;
        let page = ann.open(&format!("/portal/team/{own}")).await;
        for (path, fields) in [(format!("/portal/team/{own}"), vec![("role", "VIEWER")]), (format!("/portal/team/{own}/remove"), vec![])] {
            let refused = ann.submit(&page, &path, &fields).await;
            assert!(refused.status == 400 && refused.text.contains("a team needs an owner"), "{}", refused.text);
        }
        let mut dev = member(gateway, DEV, Role::Owner).await;
        let theirs = id_of(DEV).await;
        let other = dev.open(&format!("/portal/team/{theirs}")).await;
        let (mine, yours) = (format!("/portal/team/{own}/remove"), format!("/portal/team/{theirs}/remove"));
        let (one, two) = tokio::join!(ann.submit(&page, &mine, &[]), dev.submit(&other, &yours, &[]));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [303, 400], "{} {}", one.text, two.text);
        let left = team::list(&gateway.app, acme).await.unwrap();
        assert!(left.len() == 1 && left[0].role == Role::Owner);
    }

    /// Nobody sees or changes another team.
    async fn other_teams_are_not_there(gateway) with [OPEN[0], OPEN[1]] {
        let (other, _) = gateway.partner("Other Travel", Usd::dollars(1)).await;
        let other = account_of(gateway, &other).await;
        let mut eve = member_of(gateway, other, EVE, Role::Owner).await;
        member(gateway, OWNER, Role::Owner).await;
        let theirs = team::list(&gateway.app, account(gateway).await).await.unwrap()[0].id.to_string();
        let token = form(&mut eve).await;
        assert_eq!(eve.open(&format!("/portal/team/{theirs}")).await.status, 404);
        for (path, fields) in [(format!("/portal/team/{theirs}"), vec![("role", "VIEWER")]), (format!("/portal/team/{theirs}/remove"), vec![])] {
            let mut all = fields;
            all.push(("form", &token));
            assert_eq!(eve.post(&path, &all).await.status, 404, "{path}");
        }
        for path in ["/portal/team", "/portal/team/log", "/portal"] {
            let page = eve.open(path).await;
            assert!(page.status == 200 && !page.text.contains(OWNER), "{path}: {}", page.text);
        }
    }

    async fn what_was_typed_into_settings_comes_back(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let page = ann.open("/portal/settings").await;
        let wrong = ann.submit(&page, "/portal/settings/warning", &[("threshold", "12.5"), ("email", "nobody")]).await;
        assert!(wrong.status == 400 && wrong.text.contains("value=\"12.5\"") && wrong.text.contains("value=\"nobody\""), "{}", wrong.text);
        // A page that is not there leads back to the portal.
        let missed = ann.open("/portal/orders/ord_none").await;
        assert!(missed.status == 404 && missed.text.contains("href=\"/portal\"") && !missed.text.contains("Find a plan"), "{}", missed.text);
    }

    async fn a_company_is_renamed_and_warned(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let page = ann.open("/portal/settings").await;
        let wrong = ann.submit(&page, "/portal/settings/company", &[("name", "\u{202e} ")]).await;
        assert!(wrong.status == 400 && wrong.text.contains("Please check"), "{}", wrong.text);
        assert_eq!(ann.submit(&page, "/portal/settings/company", &[("name", "Acme <b>Travel</b>")]).await.status, 303);
        let page = ann.open("/portal/settings").await;
        assert!(page.text.contains("Acme &#60;b&#62;Travel") && !page.text.contains("<b>Travel"), "{}", page.text);
        for threshold in ["-1", "x", "1000001", "1.0000001"] {
            let wrong = ann.submit(&page, "/portal/settings/warning", &[("threshold", threshold), ("email", "")]).await;
            assert_eq!(wrong.status, 400, "{threshold}: {}", wrong.text);
        }
        let saved = ann.submit(&page, "/portal/settings/warning", &[("threshold", "100000"), ("email", DEV)]).await;
        assert_eq!(saved.status, 303, "{}", saved.text);
        // The API says the same at once.
        gateway.until("the threshold is known", async || {
            (gateway.get("/api/b2b/v1/balance").await.json()["lowBalanceThreshold"] == 100000).then_some(())
        }).await;
        assert_eq!(gateway.get("/api/b2b/v1/balance").await.json()["companyName"], "Acme <b>Travel</b>");
    }
}

/// The commands that are written down for members, as they stand in the source: with a member's line, or under a name that
/// such a line is given.
fn commands() -> BTreeSet<String> {
    let (mut found, mut folders) =
        (BTreeSet::new(), vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // What operators do stands in no team's log.
            if path.ends_with("operator.rs") {
                continue;
            }
            let source = std::fs::read_to_string(path).unwrap();
            let theirs = source.lines().filter(|line| !line.contains("audit_line(app, actor,"));
            for text in theirs.flat_map(|line| line.split('"').skip(1).step_by(2)) {
                let (noun, verb) = text.split_once(' ').unwrap_or_default();
                let is_command =
                    !verb.is_empty() && verb.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
                if is_command && matches!(noun, "order" | "deposit" | "key" | "webhook" | "company" | "team")
                {
                    found.insert(text.to_string());
                }
            }
        }
    }
    found
}
