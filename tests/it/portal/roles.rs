//! What each role may do by a form that is sent by hand. Pages hide what they refuse; here nothing is hidden.

use simgate::domain::role::Role;

use super::{DEV, EVE, EYE, FIN, OWNER};
use crate::support::desk::{OPEN, account, form, member};
use crate::support::harness::both_databases;

/// What a form sends.
type Fields = &'static [(&'static str, &'static str)];

/// Each form that changes something of the company's, and the roles that may send it.
const TABLE: &[(&str, Fields, &[Role])] = &[
    ("/portal/team", &[("email", EVE), ("role", "VIEWER")], &[Role::Owner]),
    ("/portal/team/{owner}", &[("role", "OWNER")], &[Role::Owner]),
    ("/portal/team/{owner}/remove", &[], &[]),
    ("/portal/settings/company", &[("name", "Acme Travel")], &[Role::Owner]),
    ("/portal/settings/warning", &[("threshold", "25")], &[Role::Owner, Role::Finance]),
];

both_databases! {
    async fn a_role_does_what_it_may_and_nothing_else(gateway) with [OPEN[0], OPEN[1]] {
        let acme = account(gateway).await;
        let people = [(Role::Owner, OWNER), (Role::Developer, DEV), (Role::Finance, FIN), (Role::Viewer, EYE)];
        let mut visitors = Vec::new();
        for (role, email) in people {
            visitors.push((role, member(gateway, email, role).await));
        }
        let team = simgate::ops::team::list(&gateway.app, acme).await.unwrap();
        let owner = team.iter().find(|person| person.email.as_str() == OWNER).unwrap().id.to_string();
        for (role, visitor) in &mut visitors {
            let token = form(visitor).await;
            for (path, fields, allowed) in TABLE {
                let path = path.replace("{owner}", &owner);
                let mut all = fields.to_vec();
                all.push(("form", &token));
                let sent = visitor.post(&path, &all).await;
                let expected = match (allowed.contains(role), &*role) {
                    (true, _) => 303,
                    // The only owner cannot leave.
                    (false, Role::Owner) => 400,
                    (false, _) => 403,
                };
                assert_eq!(sent.status, expected, "{role:?} {path}: {}", sent.text);
            }
        }
        // Pages offer what may be done.
        for (role, visitor) in &mut visitors {
            let page = visitor.open("/portal/team").await;
            assert_eq!(page.text.contains("Invite somebody"), *role == Role::Owner);
            let page = visitor.open("/portal/settings").await;
            assert_eq!(page.text.contains("/portal/settings/company"), *role == Role::Owner);
            assert_eq!(page.text.contains("/portal/settings/warning"), matches!(role, Role::Owner | Role::Finance));
        }
        let left = simgate::ops::team::list(&gateway.app, acme).await.unwrap();
        assert_eq!(left.len(), people.len() + 1, "one was invited, and nobody removed");
    }
}
