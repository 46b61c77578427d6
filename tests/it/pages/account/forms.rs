//! Forms that change something come from a page that we gave to this browser, in this session.

use simgate::domain::money::Usd;

use super::{ANN, EVE, OPEN};
use crate::support::browser::wallet_of;
use crate::support::buying::fund;
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::mails;
use crate::support::visitor::{Visitor, hidden};

/// The token of the forms on a page of the account.
async fn token(visitor: &mut Visitor) -> String {
    let page = visitor.open("/account/settings").await;
    hidden(&page, "/account/sign-out").remove(0).1
}

async fn signed_in(gateway: &Gateway, email: &str) -> Visitor {
    let mut visitor = Visitor::new(gateway);
    visitor.sign_in(gateway, email).await;
    visitor
}

/// Everything that a form can change, with what would be right in it.
const CHANGES: &[(&str, &[(&str, &str)])] = &[
    ("/account/sign-out", &[]),
    ("/account/sign-out-everywhere", &[]),
    ("/account/deposit", &[("amountUsd", "20"), ("means", "USDC BASE")]),
    ("/account/buy/JP-1GB-7D", &[("choice", "JP-1GB-7D 100"), ("once", "0123456789abcdef0123456789abcdef")]),
    ("/account/settings/theme", &[("theme", "dark")]),
];

both_databases! {
    async fn a_form_without_its_token_changes_nothing(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN).await;
        fund(gateway, ANN, Usd::dollars(50)).await;
        let mut eve = signed_in(gateway, EVE).await;
        let foreign = token(&mut eve).await;
        for (path, fields) in CHANGES {
            for sent in [None, Some(""), Some("x"), Some(foreign.as_str())] {
                let mut all = fields.to_vec();
                all.extend(sent.map(|token| ("form", token)));
                let refused = ann.post(path, &all).await;
                assert_eq!(refused.status, 403, "{path} {sent:?}: {}", refused.text);
                assert!(refused.text.contains("Nothing was changed") && refused.headers.get("set-cookie").is_none());
            }
        }
        assert!(ann.is_signed_in().await);
        assert_eq!(wallet_of(gateway, ANN).await, Usd::dollars(50));
        assert!(gateway.journalled("sold").is_empty());
        assert!(!ann.open("/account/wallet").await.text.contains("/pay/"));
    }

    /// A form from an earlier session is no good in the next one.
    async fn an_old_token_is_no_good(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN).await;
        let old = token(&mut ann).await;
        let page = ann.open("/account").await;
        ann.submit(&page, "/account/sign-out", &[]).await;
        gateway.pass_time(2 * crate::support::buying::MINUTE_MS);
        ann.sign_in(gateway, ANN).await;
        assert_ne!(token(&mut ann).await, old);
        assert_eq!(ann.post("/account/sign-out", &[("form", &old)]).await.status, 403);
        assert!(ann.is_signed_in().await);
        // Signed out, a form leads to the sign-in.
        let turned = Visitor::new(gateway).post("/account/sign-out", &[("form", &old)]).await;
        assert_eq!((turned.status, turned.header("location")), (303, "/account?form=ended"));
    }

    /// The forms of the sign-in prove themselves too: nobody is signed in by another site.
    async fn a_sign_in_is_begun_on_our_page(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = Visitor::new(gateway);
        let page = ann.open("/account").await;
        let own = hidden(&page, "/account/code").remove(0).1;
        let mut other = Visitor::new(gateway);
        other.open("/account").await;
        for (visitor, sent) in [(&mut other, own.as_str()), (&mut Visitor::new(gateway), own.as_str()), (&mut ann, "x")] {
            for path in ["/account/code", "/account/sign-in"] {
                let refused = visitor.post(path, &[("form", sent), ("email", ANN), ("code", "000000")]).await;
                assert!(refused.status == 403 && refused.text.contains("cookies"), "{path}: {}", refused.text);
            }
        }
        assert!(mails(gateway, ANN).await.is_empty());
        assert_eq!(ann.submit(&page, "/account/code", &[("email", ANN)]).await.status, 200);
    }

    /// What a browser says of where a form comes from is heard, even with the right token.
    async fn a_form_from_another_site_is_refused(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN).await;
        let token = token(&mut ann).await;
        for said in [
            vec![("sec-fetch-site", "cross-site")],
            vec![("sec-fetch-site", "same-site"), ("origin", "null")],
            vec![("origin", "https://evil.example")],
        ] {
            ann.headers = said;
            assert_eq!(ann.post("/account/sign-out", &[("form", &token)]).await.status, 403);
        }
        // Older browsers say nothing, or only that the page names no origin.
        ann.headers = vec![("origin", "null")];
        let changed = ann.post("/account/settings/theme", &[("form", &token), ("theme", "dark")]).await;
        assert_eq!(changed.status, 303);
        ann.headers = Vec::new();
        assert_eq!(ann.post("/account/sign-out", &[("form", &token)]).await.status, 303);
        assert!(!ann.is_signed_in().await);
    }

    /// Opening a page changes nothing: every change is a form.
    async fn looking_changes_nothing(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN).await;
        for (path, _) in CHANGES {
            let looked = ann.open(path).await;
            assert!([200, 405].contains(&looked.status), "{path}: {}", looked.text);
        }
        assert!(ann.is_signed_in().await);
    }

    /// Light or dark is the reader's choice, in a cookie of its own.
    async fn the_theme_is_kept(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN).await;
        let theme = "/account/settings/theme";
        for (chosen, shown) in [("dark", Some("<html lang=\"en\" data-theme=\"dark\">")), ("light", Some("<html lang=\"en\" data-theme=\"light\">")), ("system", None), ("\"><script>", None)] {
            let page = ann.open("/account/settings").await;
            assert_eq!(ann.submit(&page, theme, &[("theme", chosen)]).await.status, 303);
            let page = ann.open("/account").await;
            match shown {
                Some(shown) => assert!(page.text.contains(shown), "{}", page.text),
                None => assert!(page.text.contains("<html lang=\"en\">"), "{}", page.text),
            }
        }
    }
}
