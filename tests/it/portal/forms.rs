//! Forms of the portal come from a page that we gave to this browser, in this session.

use simgate::domain::role::Role;

use super::{DEV, EVE, OWNER};
use crate::support::buying::MINUTE_MS;
use crate::support::desk::{OPEN, form, is_in, member, sign_in};
use crate::support::harness::both_databases;
use crate::support::visitor::Visitor;

/// What forms can change, with what would be right in them.
const CHANGES: &[(&str, &[(&str, &str)])] = &[
    ("/portal/sign-out", &[]),
    ("/portal/sign-out-everywhere", &[]),
    ("/portal/team", &[("email", EVE), ("role", "OWNER")]),
    ("/portal/settings/company", &[("name", "Evil")]),
    ("/portal/settings/warning", &[("threshold", "0"), ("email", EVE)]),
    ("/portal/settings/theme", &[("theme", "dark")]),
    ("/portal/settings/second-factor/begin", &[]),
];

both_databases! {
    async fn a_form_without_its_token_changes_nothing(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let mut dev = member(gateway, DEV, Role::Owner).await;
        let foreign = form(&mut dev).await;
        let own = form(&mut ann).await;
        let mut buyer = Visitor::new(gateway);
        buyer.sign_in(gateway, OWNER).await;
        let page = buyer.open("/account/settings").await;
        let of_account = crate::support::visitor::hidden(&page, "/account/sign-out").remove(0).1;
        for (path, fields) in CHANGES {
            for sent in [None, Some(""), Some("x"), Some(foreign.as_str()), Some(of_account.as_str())] {
                let mut all = fields.to_vec();
                all.extend(sent.map(|token| ("form", token)));
                let refused = ann.post(path, &all).await;
                assert_eq!(refused.status, 403, "{path} {sent:?}: {}", refused.text);
                assert!(refused.text.contains("Nothing was changed") && refused.headers.get("set-cookie").is_none());
            }
            // The right token, from a page that a browser says is another site's.
            let mut all = fields.to_vec();
            all.push(("form", &own));
            ann.headers = vec![("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")];
            assert_eq!(ann.post(path, &all).await.status, 403, "{path}");
            ann.headers = vec![("sec-fetch-site", "same-origin"), ("origin", "null")];
        }
        assert!(is_in(&mut ann).await);
        let page = ann.open("/portal/team").await;
        assert!(!page.text.contains(EVE) && !ann.open("/portal/settings").await.text.contains("Evil"));
    }

    /// A form from an earlier session is no good in the next one, and none is good before a sign-in.
    async fn an_old_token_is_no_good(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let old = form(&mut ann).await;
        let page = ann.open("/portal").await;
        ann.submit(&page, "/portal/sign-out", &[]).await;
        gateway.pass_time(2 * MINUTE_MS);
        sign_in(gateway, &mut ann, OWNER).await;
        assert_eq!(ann.post("/portal/settings/company", &[("form", &old), ("name", "Evil")]).await.status, 403);
        let turned = Visitor::new(gateway).post("/portal/team", &[("form", &old)]).await;
        assert_eq!((turned.status, turned.header("location")), (303, "/portal?next=team&form=ended"));
        let mut other = Visitor::new(gateway);
        let entrance = other.open("/portal").await;
        let token = crate::support::visitor::hidden(&entrance, "/portal/code").remove(0).1;
        for path in ["/portal/code", "/portal/sign-in"] {
            let refused = Visitor::new(gateway).post(path, &[("form", &token), ("email", OWNER), ("code", "1")]).await;
            assert_eq!(refused.status, 403, "{path}");
        }
    }
}
