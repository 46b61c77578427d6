//! Whoever guesses codes or tokens, from one place or from many: how far it gets, and that nothing answered tells it
//! whether it is close. What is logged of it is in `server/logs.rs`.

use serde_json::{Value, json};
use simgate::domain::email::Email;
use simgate::domain::login::Door;
use simgate::domain::refusal::Refusal;
use simgate::domain::token::TokenKind;
use simgate::error::Error;
use simgate::ops::login;
use simgate::start::{self, Role};

use crate::support::database;
use crate::support::harness::both_databases;
use crate::support::logins::{AUTH, ask, code, post_from, sameness, sign_in, verify, with_token};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

fn wrong(email: &str) -> Value {
    json!({ "email": email, "otp": "00000x" })
}

both_databases! {
    /// Every guess comes from another address. Ten of a million codes can be tried; then there is nothing to guess.
    async fn many_places_guess_at_one_mailbox(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let ann = "ann@example.com";
        let mut answers = Vec::new();
        for tries in [7, 5] {
            ask(gateway, ann).await.expect(200);
            let right = code(gateway, ann).await;
            assert_eq!(right.len(), 6);
            for _ in 0..tries {
                answers.push(sameness(&verify(gateway, ann, "00000x").await));
            }
            answers.push(sameness(&verify(gateway, ann, &right).await));
            gateway.pass_time(MINUTE);
        }
        ask(gateway, ann).await.expect(200);
        let long = code(gateway, ann).await;
        assert_eq!(long.len(), 20);
        for _ in 0..30 {
            answers.push(sameness(&verify(gateway, ann, "00000x").await));
        }
        // A mailbox that nobody ever asked a code for answers the same.
        answers.push(sameness(&verify(gateway, "nobody@example.com", "00000x").await));
        assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 401));
        verify(gateway, ann, &long).await.expect(200);
    }

    /// One client tries a code at many mailboxes: twenty in an hour, on all instances, whoever logs in meanwhile.
    async fn one_place_guesses_at_many_mailboxes(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let sprayer = "192.0.2.66";
        sign_in(gateway, "known@example.com", "agent").await;
        gateway.pass_time(MINUTE);
        for asked in ["known@example.com", "asked@example.com"] {
            ask(gateway, asked).await.expect(200);
        }
        let mut answers = Vec::new();
        for _ in 0..3 {
            for email in ["known@example.com", "asked@example.com", "nobody@example.com"] {
                answers.push(sameness(&post_from(gateway, sprayer, "verify-otp", wrong(email)).await));
            }
        }
        // An owner who logs in is forgiven; the sprayer is not.
        let right = code(gateway, "known@example.com").await;
        verify(gateway, "known@example.com", &right).await.expect(200);
        for n in 9..20 {
            answers.push(sameness(&post_from(gateway, sprayer, "verify-otp", wrong(&format!("p{n}@example.com"))).await));
        }
        assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 401), "{answers:?}");
        // From here on what it types is refused, right or wrong, on every instance, and sounds the same.
        let right = code(gateway, "asked@example.com").await;
        for (email, otp) in [("known@example.com", "00000x"), ("asked@example.com", &right), ("nobody@example.com", "00000x")] {
            let refused = post_from(gateway, sprayer, "verify-otp", json!({ "email": email, "otp": otp })).await;
            assert_eq!(sameness(&refused), answers[0]);
        }
        let other = start::open(gateway.app.settings.clone(), Role::Command).await.unwrap();
        let elsewhere = login::CodeAnswer {
            door: Door::Rest, email: Email::parse("asked@example.com").unwrap(), code: right.clone(),
            client: sprayer.parse().unwrap(), agent_name: "agent".into(), kind: TokenKind::Personal,
        };
        let refused = login::verify(&other, elsewhere).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::OtpInvalid))));
        database::on_plain_thread(|| other.store.close());
        verify(gateway, "asked@example.com", &right).await.expect(200);
        gateway.pass_time(HOUR);
        ask(gateway, "asked@example.com").await.expect(200);
        let right = code(gateway, "asked@example.com").await;
        post_from(gateway, sprayer, "verify-otp", json!({ "email": "asked@example.com", "otp": right })).await.expect(200);
    }

    /// Without the table, looking for an account would be a fault: neither asking nor a wrong code does. So no
    /// stopwatch can tell who has one.
    async fn who_has_an_account_is_not_looked_at_before_a_code_is_right(gateway) with [("trusted_proxies", "127.0.0.1")] {
        sign_in(gateway, "known@example.com", "agent").await;
        gateway.pass_time(MINUTE);
        let location = &gateway.app.settings.database;
        database::execute(location, "ALTER TABLE accounts RENAME TO accounts_away").unwrap();
        let mut answers = Vec::new();
        for email in ["known@example.com", "unknown@example.com"] {
            let asked = ask(gateway, email).await.expect(200);
            let refused = sameness(&verify(gateway, email, "00000x").await);
            answers.push((asked, refused));
        }
        assert_eq!(answers[0], answers[1]);
        let right = code(gateway, "unknown@example.com").await;
        assert_eq!(verify(gateway, "unknown@example.com", &right).await.problem(500), "INTERNAL");
        database::execute(location, "ALTER TABLE accounts_away RENAME TO accounts").unwrap();
        verify(gateway, "unknown@example.com", &right).await.expect(200);
    }

    /// Made-up tokens are held to the limit of their address; a good one from the same address is not harmed.
    async fn one_place_guesses_at_tokens(gateway) with [("ip_rate_limit", "1"), ("ip_rate_burst", "20"), ("trusted_proxies", "127.0.0.1")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let path = format!("{AUTH}/tokens");
        let mistyped = format!("{}{}", &token[..37], if token.ends_with('a') { "b" } else { "a" });
        let mut told = Vec::new();
        for n in 0.. {
            let sent = [TokenKind::Personal.make(7, n), TokenKind::Session.make(7, n), mistyped.clone()];
            let heard = with_token(gateway, &sent[n as usize % 3], "GET", &path).await;
            if heard.status == 429 {
                assert_eq!(heard.problem(429), "RATE_LIMITED");
                assert!(!heard.header("retry-after").is_empty());
                break;
            }
            told.push(sameness(&heard));
        }
        assert!(told.len() >= 10 && told.iter().all(|answer| *answer == told[0] && answer.0 == 401));
        with_token(gateway, &token, "GET", &path).await.expect(200);
    }

    /// Not even at once do more tries count than one after the other.
    async fn guesses_at_the_same_moment_are_counted_one_by_one(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let guesses = (0..60).map(|n| post_from(gateway, "192.0.2.67", "verify-otp", wrong(&format!("p{}@example.com", n % 7))));
        let heard = futures_util::future::join_all(guesses).await;
        assert!(heard.iter().all(|answer| sameness(answer) == sameness(&heard[0]) && answer.status == 401));
        let counted = database::rows(&gateway.app.settings.database, "SELECT CAST(COUNT(*) AS TEXT) FROM login_attempts WHERE kind = 'WRONG'");
        assert_eq!(counted, [["20"]]);
    }
}
