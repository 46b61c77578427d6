//! Tokens: listed, revoked, limited, and what a stranger is told.

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::email::Email;
use simgate::domain::ledger::CreditKind;
use simgate::domain::login::Door;
use simgate::domain::money::Usd;
use simgate::domain::refusal::Refusal;
use simgate::domain::token::TokenKind;
use simgate::error::Error;
use simgate::ops::buying::Fills;
use simgate::ops::login::{self, Ask};
use simgate::ops::operator::{self, Adjustment, Direction};
use simgate::ops::orders::{self, Purchase};
use simgate::ops::{retention, tokens, topups};
use simgate::start;
use tokio_util::sync::CancellationToken;

use crate::support::coupons::plan;
use crate::support::database;
use crate::support::harness::{Gateway, Reply, both_databases, reply};
use crate::support::logins::{
    self, AUTH, ask, code, elsewhere, link, post_from, sameness, sign_in, with_token,
};

async fn list(gateway: &Gateway, token: &str) -> Vec<Value> {
    let listed = with_token(gateway, token, "GET", &format!("{AUTH}/tokens")).await.expect(200);
    listed["tokens"].as_array().unwrap().clone()
}

async fn revoke(gateway: &Gateway, token: &str, id: &str) -> Reply {
    with_token(gateway, token, "DELETE", &format!("{AUTH}/tokens/{id}")).await
}

async fn fund(gateway: &Gateway, email: &str, amount: Usd) {
    let account = logins::user(&gateway.app, &Email::parse(email).unwrap()).await.unwrap().no;
    let credit = Adjustment { account, amount, kind: CreditKind::Promo, reason: "test".into() };
    operator::adjust_wallet(&gateway.app, "test", Direction::Credit, credit, None).await.unwrap();
}

fn purchase(package_code: &str) -> Purchase {
    Purchase {
        package_code: package_code.into(),
        reference: None,
        max_price: None,
        esim_order: None,
        customer_email: None,
        discount_code: None,
    }
}

both_databases! {
    async fn tokens_are_listed_by_their_beginning(gateway) {
        let first = sign_in(gateway, "ann@example.com", "One").await;
        gateway.pass_time(60_000);
        let second = sign_in(gateway, "ann@example.com", "Two").await;
        sign_in(gateway, "bob@example.com", "Other").await;
        let listed = list(gateway, &second).await;
        let names: Vec<_> = listed.iter().map(|token| token["agentName"].as_str().unwrap()).collect();
        assert_eq!(names, ["Two", "One"]);
        for (token, text) in listed.iter().zip([&second, &first]) {
            assert_eq!(token["prefix"], text[..8]);
            assert_eq!(token["dailyLimitUsd"].to_string(), "500");
            assert!(token["createdAt"].as_str().unwrap().ends_with('Z'));
            assert!(!token.to_string().contains(&text[8..]));
        }
        assert_eq!(listed[1]["lastUsedAt"], Value::Null);
        gateway.until("a use is written down", async || {
            list(gateway, &first).await[1]["lastUsedAt"].is_string().then_some(())
        }).await;
    }

    async fn a_use_is_written_down_once_a_minute(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let used = async || list(gateway, &token).await[0]["lastUsedAt"].as_str().map(str::to_string);
        let first = gateway.until("the first use", used).await;
        gateway.pass_time(30_000);
        assert_eq!(used().await.as_ref(), Some(&first));
        gateway.pass_time(31_000);
        gateway.until("the next use", async || used().await.filter(|at| *at != first)).await;
    }

    async fn a_revoked_token_opens_nothing(gateway) {
        let ann = sign_in(gateway, "ann@example.com", "One").await;
        let bob = sign_in(gateway, "bob@example.com", "Two").await;
        gateway.pass_time(60_000);
        let spare = sign_in(gateway, "ann@example.com", "Three").await;
        let id = list(gateway, &spare).await[0]["id"].as_str().unwrap().to_string();
        assert_eq!(revoke(gateway, &bob, &id).await.problem(404), "NOT_FOUND", "not his");
        for wrong in ["tok_0", "x", "%00", "key_1", &gateway.key.id] {
            assert_eq!(revoke(gateway, &ann, wrong).await.problem(404), "NOT_FOUND", "{wrong}");
        }
        let done = revoke(gateway, &ann, &id).await.expect(200);
        assert_eq!((&done["success"], &done["id"]), (&json!(true), &json!(id)));
        assert_eq!(with_token(gateway, &spare, "GET", &format!("{AUTH}/tokens")).await.problem(401), "UNAUTHENTICATED");
        assert_eq!(revoke(gateway, &ann, &id).await.problem(404), "NOT_FOUND", "once");
        assert_eq!(list(gateway, &ann).await.len(), 1);
        let own = list(gateway, &ann).await[0]["id"].as_str().unwrap().to_string();
        revoke(gateway, &ann, &own).await.expect(200);
        assert_eq!(revoke(gateway, &ann, &own).await.problem(401), "UNAUTHENTICATED");
    }

    async fn a_revocation_counts_on_every_instance(gateway) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let elsewhere = format!("http://{}", listener.local_addr().unwrap());
        let other = start::open(gateway.app.settings.clone(), start::Role::Server).await.unwrap();
        let stop = CancellationToken::new();
        let served = tokio::spawn({
            let (other, stop) = (other.clone(), stop.clone());
            async move { start::run(&other, listener, None, stop).await }
        });
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let there = || reply(gateway.client.get(format!("{elsewhere}{AUTH}/tokens")).header("authorization", format!("bearer {token}")));
        let listed = there().await.expect(200);
        revoke(gateway, &token, listed["tokens"][0]["id"].as_str().unwrap()).await.expect(200);
        gateway.until("the other instance knows", async || (there().await.status == 401).then_some(())).await;
        stop.cancel();
        served.await.unwrap();
    }

    async fn a_stranger_hears_one_answer(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let revoked = sign_in(gateway, "bob@example.com", "agent").await;
        let id = list(gateway, &revoked).await[0]["id"].as_str().unwrap().to_string();
        revoke(gateway, &revoked, &id).await.expect(200);
        let unknown = TokenKind::Personal.make(1, 2);
        let mut mistyped = token.clone();
        mistyped.replace_range(10..11, if &token[10..11] == "a" { "b" } else { "a" });
        let mut answers = Vec::new();
        for sent in [
            None, Some(String::new()), Some("Bearer".into()), Some("Bearer ".into()), Some(format!("Basic {token}")), Some(token.clone()),
            Some(format!("Bearer {revoked}")), Some(format!("Bearer {unknown}")), Some(format!("Bearer {mistyped}")),
            Some(format!("Bearer {token}x")), Some(format!("Bearer {} {token}", &token[..4])), Some("Bearer sgp_".into()),
            Some(format!("Bearer {}", gateway.key.secret)), Some("Bearer \u{e9}".into()),
        ] {
            let mut request = gateway.client.get(format!("{}{AUTH}/tokens", gateway.base));
            if let Some(sent) = &sent {
                request = request.header("authorization", sent);
            }
            let refused = reply(request).await;
            assert_eq!(refused.problem(401), "UNAUTHENTICATED", "{sent:?}");
            assert!(refused.header("www-authenticate").starts_with("Bearer"));
            answers.push(sameness(&refused));
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "one body for all");
        with_token(gateway, &token, "GET", &format!("{AUTH}/tokens")).await.expect(200);
    }

    /// Without the table a look into the database would be a fault; what has a wrong checksum never gets that far.
    async fn a_wrong_checksum_costs_no_query(gateway) {
        let location = &gateway.app.settings.database;
        database::execute(location, "ALTER TABLE api_keys RENAME TO api_keys_away").unwrap();
        let well_formed = TokenKind::Personal.make(1, 2);
        let mistyped = format!("{}{}", &well_formed[..37], if well_formed.ends_with('a') { "b" } else { "a" });
        let path = format!("{AUTH}/tokens");
        assert_eq!(with_token(gateway, &mistyped, "GET", &path).await.problem(401), "UNAUTHENTICATED");
        assert_eq!(with_token(gateway, &well_formed, "GET", &path).await.problem(500), "INTERNAL");
        database::execute(location, "ALTER TABLE api_keys_away RENAME TO api_keys").unwrap();
        assert_eq!(with_token(gateway, &well_formed, "GET", &path).await.problem(401), "UNAUTHENTICATED");
    }

    async fn session_tokens_cannot_manage_tokens(gateway) {
        let home = std::net::IpAddr::from([127, 0, 0, 1]);
        let ann = Email::parse("ann@example.com").unwrap();
        login::ask(&gateway.app, Ask { door: Door::Tools, email: ann.clone(), client: home }).await.unwrap();
        let answer = login::CodeAnswer {
            door: Door::Tools, email: ann, code: code(gateway, "ann@example.com").await, client: home,
            agent_name: "chat".into(), kind: TokenKind::Session,
        };
        let session = login::verify(&gateway.app, answer).await.unwrap();
        assert!(session.token.starts_with("sgs_") && session.expires_at.is_some());
        for (method, path) in [("GET", format!("{AUTH}/tokens")), ("DELETE", format!("{AUTH}/tokens/{}", session.token_id))] {
            assert_eq!(with_token(gateway, &session.token, method, &path).await.problem(403), "LIMIT_EXCEEDED");
        }
        tokens::authenticate(&gateway.app, &session.token).await.unwrap();
        gateway.pass_time(24 * 3_600_000);
        assert!(matches!(tokens::authenticate(&gateway.app, &session.token).await, Err(Error::Refused(Refusal::TokenRequired))));
        let kept = || database::rows(&gateway.app.settings.database, "SELECT prefix FROM api_keys WHERE kind = 'SESSION'");
        retention::forget_logins(&gateway.app).await.unwrap();
        assert_eq!(kept(), [[&session.token[..8]]]);
        gateway.pass_time(24 * 3_600_000 + 1);
        retention::forget_logins(&gateway.app).await.unwrap();
        assert!(kept().is_empty(), "a day after it ended");
    }

    async fn a_user_pays_retail_within_a_daily_limit(gateway) with [("token_daily_limit_usd", "5")] {
        gateway.away_from_midnight();
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let buyer = tokens::authenticate(&gateway.app, &token).await.unwrap().buyer();
        let wholesale = gateway.price("JP-1GB-7D").await;
        let retail = plan(gateway, "JP-1GB-7D").retail;
        assert!(retail > wholesale);
        let bought = orders::place(&gateway.app, buyer.clone(), purchase("JP-1GB-7D")).await.unwrap();
        assert_eq!(bought.order.price, retail);
        assert_eq!(bought.balance, Usd::dollars(100).minus(retail));
        let mut spent = retail;
        let limit = loop {
            match orders::place(&gateway.app, buyer.clone(), purchase("JP-1GB-7D")).await {
                Ok(_) => spent = spent.plus(retail),
                Err(error) => break error,
            }
        };
        assert!(matches!(limit, Error::Refused(Refusal::DailyLimit { limit }) if limit == Usd::dollars(5)), "{limit}");
        assert!(spent <= Usd::dollars(5) && spent.plus(retail) > Usd::dollars(5));
        gateway.pass_time(24 * 3_600_000);
        orders::place(&gateway.app, buyer.clone(), purchase("JP-1GB-7D")).await.unwrap();
        // Top-ups are offered at retail too, from a catalog that keeps no list of its own for users.
        assert!(gateway.app.catalog.borrow().list("retail").is_empty());
        let fills = Fills::Iccid(bought.order.esim.as_ref().unwrap().iccid.clone());
        let (_, offered) = topups::plans(&gateway.app, buyer.account, &fills, &buyer.price_list).await.unwrap();
        assert!(!offered.is_empty() && offered.iter().all(|plan| plan.wholesale == plan.retail));
    }

    async fn the_mailed_link_revokes_and_looking_does_not(gateway) {
        let token = sign_in(gateway, "ann@example.com", "<b>agent</b>").await;
        let url = link(gateway, "ann@example.com", "/revoke-token/").await;
        let page = reply(gateway.client.get(&url)).await;
        assert_eq!(page.status, 200);
        assert!(!page.text.contains("<b>agent") && page.text.contains(&token[..8]) && !page.text.contains(&token));
        list(gateway, &token).await;
        for _ in 0..2 {
            let done = reply(gateway.client.post(&url)).await;
            assert_eq!(done.status, 200);
            assert!(done.text.contains("is revoked"));
        }
        assert_eq!(with_token(gateway, &token, "GET", &format!("{AUTH}/tokens")).await.problem(401), "UNAUTHENTICATED");
    }

    async fn agents_are_called_what_can_be_seen(gateway) with [("trusted_proxies", "127.0.0.1")] {
        for (n, (given, kept)) in [
            (json!("a\r\nBcc: x@example.com"), "aBcc: x@example.com"),
            (json!("evil\u{202e}gpj.exe\u{200b}\u{e0041}"), "evilgpj.exe"),
            (json!("\u{feff}\u{0}"), "agent"),
            (json!(null), "agent"),
            (json!("\u{65c5}\u{884c}"), "\u{65c5}\u{884c}"),
        ].into_iter().enumerate() {
            let email = format!("p{n}@example.com");
            ask(gateway, &email).await.expect(200);
            let body = json!({ "email": email, "otp": code(gateway, &email).await, "agentName": given });
            assert_eq!(post_from(gateway, &elsewhere(), "verify-otp", body).await.expect(200)["agentName"], kept);
        }
    }

    async fn a_token_that_asks_too_often_is_told_to_wait(gateway) with [("token_rate_limit", "1"), ("token_rate_burst", "3"), ("ip_rate_limit", "0")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let other = sign_in(gateway, "bob@example.com", "agent").await;
        let path = format!("{AUTH}/tokens");
        let all = join_all((0..20).map(|_| with_token(gateway, &token, "GET", &path))).await;
        let count = |status| all.iter().filter(|reply| reply.status == status).count();
        assert!(count(200) >= 3 && count(429) > 0 && count(200) + count(429) == 20);
        let fine = with_token(gateway, &other, "GET", &path).await;
        fine.expect(200);
        assert_eq!(fine.header("ratelimit-policy"), "\"default\";q=3;w=3");
    }
}
