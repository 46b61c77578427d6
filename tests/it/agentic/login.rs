//! Logging in by a mailed code: what is answered, how often one may ask and guess, and what a stranger learns.

use futures_util::future::join_all;
use serde_json::json;
use simgate::domain::email::Email;
use simgate::domain::login::{Door, Realm};
use simgate::domain::refusal::Refusal;
use simgate::domain::token::TokenKind;
use simgate::error::Error;
use simgate::ops::login::{self, Ask, Asked};
use simgate::ops::retention;
use simgate::start::{self, Role};

use crate::support::database;
use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::logins::{
    ask, code, digit_runs, elsewhere, link, mails, post_from, sameness, sign_in, user, verify,
};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const HOME: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

async fn is_user(gateway: &Gateway, address: &str) -> bool {
    match user(&gateway.app, &email(address)).await {
        Ok(_) => true,
        Err(Error::Refused(Refusal::AccountNotFound)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// A code of the same length that is not the right one.
fn another(code: &str) -> String {
    let first = if code.starts_with('1') { '2' } else { '1' };
    format!("{first}{}", &code[1..])
}

async fn guess_wrong(gateway: &Gateway, address: &str, times: usize) {
    for _ in 0..times {
        assert_eq!(verify(gateway, address, "00000x").await.problem(401), "OTP_INVALID");
    }
}

both_databases! {
    async fn a_code_is_mailed_and_opens_once(gateway) {
        let sent = ask(gateway, " Ann@Example.COM ").await;
        let body = sent.expect(200);
        assert_eq!((&body["success"], &body["expiresInSeconds"], &body["resendAfterSeconds"]), (&json!(true), &json!(600), &json!(60)));
        assert!(body["message"].is_string());
        assert_eq!(sent.header("cache-control"), "no-store");
        assert!(!is_user(gateway, "ann@example.com").await, "asking makes no account");
        let inbox = mails(gateway, "Ann@example.com").await;
        assert_eq!(inbox.len(), 1);
        assert_eq!(inbox[0]["to"], "ann@example.com");
        assert!(inbox[0]["createdAt"].as_str().unwrap().ends_with('Z'));
        let runs = digit_runs(inbox[0]["text"].as_str().unwrap(), 6);
        assert_eq!(runs.len(), 1, "six digits together and no other run: {inbox:?}");
        assert_eq!(runs[0].len(), 6);
        let otp = &runs[0];
        let body = json!({ "email": "ANN@example.com", "otp": otp, "agentName": "Trip planner" });
        let made = post_from(gateway, "127.0.0.1", "verify-otp", body).await;
        assert_eq!(made.header("cache-control"), "no-store");
        let made = made.expect(200);
        assert!(made["token"].as_str().unwrap().starts_with("sgp_"));
        assert_eq!((&made["tokenType"], &made["email"], &made["agentName"]), (&json!("Bearer"), &json!("ann@example.com"), &json!("Trip planner")));
        assert!(made["success"] == true && made["createdAt"].is_string());
        let account = user(&gateway.app, &email("ann@example.com")).await.unwrap();
        assert!(account.id.as_str().starts_with("usr_"));
        assert_eq!(account.price_list, "retail");
        assert_eq!(verify(gateway, "ann@example.com", otp).await.problem(401), "OTP_INVALID");
        let told = &mails(gateway, "ann@example.com").await[0];
        assert_eq!(told["subject"], "A new access token for your account");
        assert!(told["text"].as_str().unwrap().contains("Trip planner"));
        // The next login is to the same account.
        gateway.pass_time(MINUTE);
        sign_in(gateway, "ann@example.com", "").await;
        assert_eq!(user(&gateway.app, &email("ann@example.com")).await.unwrap().id, account.id);
    }

    async fn a_wrong_code_tells_nothing(gateway) with [("trusted_proxies", "127.0.0.1")] {
        sign_in(gateway, "known@example.com", "").await;
        gateway.pass_time(MINUTE);
        let known = ask(gateway, "known@example.com").await;
        let unknown = ask(gateway, "unknown@example.com").await;
        assert_eq!(known.expect(200), unknown.expect(200));
        let right = code(gateway, "known@example.com").await;
        let mut answers = vec![
            verify(gateway, "known@example.com", &another(&right)).await,
            verify(gateway, "known@example.com", "nonsense").await,
            verify(gateway, "unknown@example.com", &another(&code(gateway, "unknown@example.com").await)).await,
            verify(gateway, "never-asked@example.com", &right).await,
            verify(gateway, "unknown@example.com", &right).await,
        ];
        verify(gateway, "known@example.com", &right).await.expect(200);
        answers.push(verify(gateway, "known@example.com", &right).await);
        let late = code(gateway, "unknown@example.com").await;
        gateway.pass_time(10 * MINUTE);
        answers.push(verify(gateway, "unknown@example.com", &late).await);
        for answer in &answers {
            assert_eq!(answer.problem(401), "OTP_INVALID");
            assert_eq!(sameness(answer), sameness(&answers[0]), "one body for all");
        }
        assert!(!is_user(gateway, "unknown@example.com").await);
    }

    async fn five_wrong_tries_end_a_code(gateway) with [("trusted_proxies", "127.0.0.1")] {
        ask(gateway, "ann@example.com").await.expect(200);
        let right = code(gateway, "ann@example.com").await;
        guess_wrong(gateway, "ann@example.com", 5).await;
        assert_eq!(verify(gateway, "ann@example.com", &right).await.problem(401), "OTP_INVALID");
        gateway.pass_time(MINUTE);
        assert_eq!(ask(gateway, "ann@example.com").await.expect(200)["expiresInSeconds"], 600);
        let next = code(gateway, "ann@example.com").await;
        assert_ne!(next, right);
        guess_wrong(gateway, "ann@example.com", 4).await;
        verify(gateway, "ann@example.com", &format!(" {}-{} ", &next[..3], &next[3..])).await.expect(200);
    }

    async fn asking_again_mails_the_same_code_and_does_not_extend_it(gateway) with [("trusted_proxies", "127.0.0.1")] {
        ask(gateway, "ann@example.com").await.expect(200);
        let first = code(gateway, "ann@example.com").await;
        gateway.pass_time(9 * MINUTE);
        let again = ask(gateway, "ann@example.com").await.expect(200);
        assert_eq!((&again["expiresInSeconds"], &again["resendAfterSeconds"]), (&json!(600), &json!(60)), "whoever asks learns nothing of others");
        assert_eq!(code(gateway, "ann@example.com").await, first);
        assert_eq!(mails(gateway, "ann@example.com").await.len(), 2);
        gateway.pass_time(MINUTE);
        assert_eq!(verify(gateway, "ann@example.com", &first).await.problem(401), "OTP_INVALID");
        ask(gateway, "ann@example.com").await.expect(200);
        assert_ne!(code(gateway, "ann@example.com").await, first);
    }

    /// One a minute, three in a row, then one every seven and a half minutes.
    async fn asking_is_limited_for_an_address(gateway) with [("trusted_proxies", "127.0.0.1")] {
        for n in 0..3 {
            ask(gateway, "ann@example.com").await.expect(200);
            let soon = ask(gateway, "Ann@Example.com").await;
            assert_eq!(soon.problem(429), "RATE_LIMITED", "{n}");
            let wait = if n < 2 { 1..=60 } else { 200..=330 };
            assert!(wait.contains(&soon.header("retry-after").parse::<i64>().unwrap()), "{n}");
            gateway.pass_time(MINUTE);
        }
        let full = ask(gateway, "ann@example.com").await;
        assert_eq!(full.problem(429), "RATE_LIMITED");
        let wait: i64 = full.header("retry-after").parse().unwrap();
        assert!((140..=270).contains(&wait), "{wait}");
        assert_eq!(mails(gateway, "ann@example.com").await.len(), 3);
        // Another door shares the address's limits.
        let tools = Ask { door: Door::Tools, email: email("ann@example.com"), client: HOME };
        assert!(matches!(login::ask(&gateway.app, tools.clone()).await, Ok(Asked::Enough { until: Some(_), .. })));
        ask(gateway, "bob@example.com").await.expect(200);
        gateway.pass_time(wait * 1_000);
        ask(gateway, "ann@example.com").await.expect(200);
        assert!(matches!(login::ask(&gateway.app, tools).await, Ok(Asked::TooSoon { until: Some(_), .. })));
        gateway.pass_time(MINUTE);
        assert_eq!(ask(gateway, "ann@example.com").await.problem(429), "RATE_LIMITED", "it gained only one");
        gateway.pass_time(23 * MINUTE);
        for _ in 0..3 {
            ask(gateway, "ann@example.com").await.expect(200);
            gateway.pass_time(MINUTE);
        }
        assert_eq!(ask(gateway, "ann@example.com").await.problem(429), "RATE_LIMITED", "it holds no more than three");
    }

    async fn limits_hold_over_restarts_and_on_every_instance(gateway) {
        let other = start::open(gateway.app.settings.clone(), Role::Command).await.unwrap();
        let asked = Ask { door: Door::Rest, email: email("ann@example.com"), client: HOME };
        let both = join_all((0..8).map(|n| login::ask(if n % 2 == 0 { &gateway.app } else { &other }, asked.clone()))).await;
        let sent = both.iter().filter(|outcome| matches!(outcome, Ok(Asked::Sent { .. }))).count();
        assert_eq!(sent, 1, "{both:?}");
        assert!(both.iter().all(Result::is_ok));
        database::on_plain_thread(|| other.store.close());
    }

    async fn asking_is_limited_for_a_client(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        for n in 0..50 {
            let body = json!({ "email": format!("p{n}@example.com") });
            post_from(gateway, &format!("2001:db8:1:2::{n:x}"), "request-otp", body).await.expect(200);
        }
        let body = json!({ "email": "one-more@example.com" });
        let full = post_from(gateway, "2001:db8:1:2:ffff::1", "request-otp", body.clone()).await;
        assert_eq!(full.problem(429), "RATE_LIMITED");
        assert!(full.header("retry-after").parse::<u32>().unwrap() > 3_000);
        post_from(gateway, "2001:db8:1:3::1", "request-otp", body).await.expect(200);
        gateway.pass_time(HOUR);
        let body = json!({ "email": "later@example.com" });
        post_from(gateway, "2001:db8:1:2::1", "request-otp", body).await.expect(200);
    }

    async fn whoever_guesses_makes_codes_longer_and_locks_nobody_out(gateway) with [("trusted_proxies", "127.0.0.1")] {
        let ann = "ann@example.com";
        for _ in 0..2 {
            ask(gateway, ann).await.expect(200);
            assert_eq!(code(gateway, ann).await.len(), 6);
            guess_wrong(gateway, ann, 5).await;
            gateway.pass_time(MINUTE);
        }
        ask(gateway, ann).await.expect(200);
        let long = code(gateway, ann).await;
        assert!(long.len() == 20 && long.bytes().all(|b| b.is_ascii_uppercase()), "{long}");
        assert_eq!(digit_runs(mails(gateway, ann).await[0]["text"].as_str().unwrap(), 6), Vec::<String>::new());
        // Guessing at a long code does not end it.
        guess_wrong(gateway, ann, 9).await;
        gateway.pass_time(8 * MINUTE);
        ask(gateway, ann).await.expect(200);
        assert_eq!(code(gateway, ann).await, long);
        gateway.pass_time(25 * HOUR);
        ask(gateway, ann).await.expect(200);
        let later = code(gateway, ann).await;
        assert_eq!(later.len(), 20, "long until one succeeds");
        verify(gateway, ann, &later.to_lowercase()).await.expect(200);
        gateway.pass_time(MINUTE);
        ask(gateway, ann).await.expect(200);
        assert_eq!(code(gateway, ann).await.len(), 6);
    }

    /// Long ones begin while a short one is alive, which has a try left: both are good, and each once.
    async fn a_short_code_that_is_alive_stays_good_beside_a_long_one(gateway) with [("trusted_proxies", "127.0.0.1")] {
        let ann = "ann@example.com";
        ask(gateway, ann).await.expect(200);
        guess_wrong(gateway, ann, 6).await;
        gateway.pass_time(MINUTE);
        ask(gateway, ann).await.expect(200);
        let short = code(gateway, ann).await;
        guess_wrong(gateway, ann, 4).await;
        gateway.pass_time(MINUTE);
        ask(gateway, ann).await.expect(200);
        let long = code(gateway, ann).await;
        assert_eq!((short.len(), long.len()), (6, 20));
        for right in [&short, &long] {
            verify(gateway, ann, right).await.expect(200);
            assert_eq!(verify(gateway, ann, right).await.problem(401), "OTP_INVALID");
        }
    }

    async fn one_code_makes_one_token_however_many_send_it(gateway) with [("trusted_proxies", "127.0.0.1")] {
        ask(gateway, "ann@example.com").await.expect(200);
        let right = code(gateway, "ann@example.com").await;
        let answers = join_all((0..64).map(|_| verify(gateway, "ann@example.com", &right))).await;
        let made: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(made.len(), 1);
        assert!(answers.iter().all(|answer| answer.status == 200 || answer.status == 401));
    }

    /// Wherever it was asked for, and once. The mail says where that was, and what the code grants.
    async fn a_live_code_opens_every_door(gateway) {
        for (asked_at, words) in [(Door::Rest, "through its API"), (Door::Tools, "through its tools"), (Door::Pages, "on a payment page"), (Door::Account, "with a browser")] {
            for door in Door::ALL.into_iter().filter(|door| door.realm() == Realm::Buyers) {
                let address = format!("{}-{}@example.com", asked_at.as_str(), door.as_str()).to_lowercase();
                let asked = Ask { door: asked_at, email: email(&address), client: HOME };
                assert!(matches!(login::ask(&gateway.app, asked).await, Ok(Asked::Sent { .. })));
                let text = mails(gateway, &address).await[0]["text"].as_str().unwrap().to_string();
                let host = gateway.base.trim_start_matches("http://");
                assert!(text.contains(words) && text.contains(host) && text.contains("every door for customers"), "{text}");
                let code = code(gateway, &address).await;
                let answer = || login::CodeAnswer {
                    door, email: email(&address), code: code.clone(), client: HOME, agent_name: "agent".into(), kind: TokenKind::Session,
                };
                login::verify(&gateway.app, answer()).await.unwrap();
                assert!(matches!(login::verify(&gateway.app, answer()).await, Err(Error::Refused(Refusal::OtpInvalid))));
            }
        }
    }

    async fn not_me_silences_an_address_and_looking_does_not(gateway) with [("trusted_proxies", "127.0.0.1")] {
        let ann = "ann@example.com";
        ask(gateway, ann).await.expect(200);
        let right = code(gateway, ann).await;
        let url = link(gateway, ann, "/not-me/").await;
        assert!(url.starts_with(&gateway.base));
        for method in ["GET", "HEAD"] {
            let page = reply(gateway.client.request(method.parse().unwrap(), &url)).await;
            assert_eq!((page.status, page.header("referrer-policy"), page.header("cache-control")), (200, "no-referrer", "no-store"));
        }
        gateway.pass_time(MINUTE);
        ask(gateway, ann).await.expect(200);
        assert_eq!(mails(gateway, ann).await.len(), 2, "looking did not act");
        let done = reply(gateway.client.post(&url)).await;
        assert_eq!(done.status, 200);
        assert!(done.text.contains("30 days") && !done.text.contains(ann));
        assert_eq!(verify(gateway, ann, &right).await.problem(401), "OTP_INVALID");
        gateway.pass_time(MINUTE);
        let silent = ask(gateway, ann).await;
        let loud = ask(gateway, "bob@example.com").await;
        assert_eq!(silent.expect(200), loud.expect(200), "nobody else can tell");
        assert_eq!(mails(gateway, ann).await.len(), 2);
        reply(gateway.client.post(format!("{url}/undo"))).await;
        gateway.pass_time(8 * MINUTE);
        ask(gateway, ann).await.expect(200);
        assert_eq!(mails(gateway, ann).await.len(), 3);
        reply(gateway.client.post(&url)).await;
        gateway.pass_time(29 * 24 * HOUR);
        ask(gateway, ann).await.expect(200);
        assert_eq!(mails(gateway, ann).await.len(), 0);
        gateway.pass_time(2 * 24 * HOUR);
        ask(gateway, ann).await.expect(200);
        assert_eq!(mails(gateway, ann).await.len(), 1);
        assert_eq!(reply(gateway.client.get(&url)).await.status, 404, "a link ends with what it does");
        for wrong in ["/not-me/x", "/not-me/abcdef", "/revoke-token/abcd"] {
            assert_eq!(reply(gateway.client.post(format!("{}{wrong}", gateway.base))).await.status, 404);
        }
    }

    async fn no_table_holds_a_code_a_token_or_an_address(gateway) with [("trusted_proxies", "127.0.0.1")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        ask(gateway, "bob@example.com").await.expect(200);
        let right = code(gateway, "bob@example.com").await;
        let body = json!({ "email": "bob@example.com", "otp": another(&right) });
        for from in ["198.51.100.77", "2001:db8:77:78::79"] {
            post_from(gateway, from, "verify-otp", body.clone()).await.problem(401);
        }
        let location = &gateway.app.settings.database;
        let mut held = String::new();
        for sql in [
            "SELECT id || email || realm FROM logins",
            "SELECT id || kind || email || ip || site || area || login FROM login_attempts",
            "SELECT id || recipient || kind || data FROM mails",
            "SELECT id || prefix || agent_name || ips FROM api_keys",
            "SELECT command || detail FROM audit",
        ] {
            held.push_str(&database::rows(location, sql).concat().concat());
        }
        assert!(held.contains("bob@example.com"));
        // Among longer numbers, such as times, its digits may stand by chance.
        assert!(!digit_runs(&held, 6).contains(&right), "the code is stored");
        for secret in [token.as_str(), &token[8..], "198.51.100.77", "2001:db8"] {
            assert!(!held.contains(secret), "{secret} is stored");
        }
    }

    async fn logins_are_forgotten_after_a_day(gateway) with [("trusted_proxies", "127.0.0.1")] {
        sign_in(gateway, "ann@example.com", "agent").await;
        guess_wrong(gateway, "bob@example.com", 3).await;
        gateway.pass_time(25 * HOUR);
        ask(gateway, "carl@example.com").await.expect(200);
        retention::forget_logins(&gateway.app).await.unwrap();
        let location = &gateway.app.settings.database;
        for (sql, left) in [
            ("SELECT CAST(COUNT(*) AS TEXT) FROM logins", "1"),
            ("SELECT CAST(COUNT(*) AS TEXT) FROM login_attempts", "1"),
            ("SELECT CAST(COUNT(*) AS TEXT) FROM mailboxes", "0"),
        ] {
            assert_eq!(database::rows(location, sql), [[left]], "{sql}");
        }
        gateway.pass_time(49 * HOUR);
        retention::forget_logins(&gateway.app).await.unwrap();
        assert_eq!(database::rows(location, "SELECT CAST(COUNT(*) AS TEXT) FROM mails"), [["0"]]);
    }

    async fn wrong_input_is_named(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        for wrong in [
            json!({}), json!({ "email": null }), json!({ "email": 5 }), json!({ "email": "" }), json!({ "email": "ann" }),
            json!({ "email": "a@example.com\r\nBcc: b@example.com" }), json!({ "email": "a@example.com,b@example.com" }),
            json!({ "email": "<a@example.com>" }), json!({ "email": format!("{}@example.com", "a".repeat(250)) }),
            json!({ "email": "a\u{0}@example.com" }), json!({ "email": ["a@example.com"] }), json!([]),
        ] {
            for path in ["request-otp", "verify-otp"] {
                let refused = post_from(gateway, &elsewhere(), path, wrong.clone()).await;
                assert_eq!(refused.problem(400), "INVALID_REQUEST", "{wrong}");
            }
        }
        for wrong in [json!(null), json!(123456), json!(""), json!("1".repeat(65)), json!("1\u{0}")] {
            let body = json!({ "email": "ann@example.com", "otp": wrong, "agentName": 5 });
            let refused = post_from(gateway, &elsewhere(), "verify-otp", body).await;
            let named: Vec<_> = refused.expect(400)["errors"].as_array().unwrap().iter().map(|e| e["field"].clone()).collect();
            assert_eq!(named, ["otp", "agentName"]);
        }
        let long = json!({ "email": "ann@example.com", "otp": "1", "agentName": "x".repeat(65) });
        assert_eq!(post_from(gateway, &elsewhere(), "verify-otp", long).await.problem(400), "INVALID_REQUEST");
        let outbox = |query: &str| reply(gateway.client.get(format!("{}/sandbox/outbox{query}", gateway.base)));
        assert_eq!(outbox("").await.problem(400), "INVALID_REQUEST");
        assert_eq!(outbox("?email=nobody@example.com").await.expect(200)["emails"], json!([]));
    }
}
