//! Whoever keeps others from signing in: by guessing from an address that they share, by asking in their name, by using
//! up the day's mails. How far each gets, and that those who are meant can still sign in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use serde_json::json;
use simgate::clock::Clock;

use crate::support::database;
use crate::support::harness::{Db, Gateway, Reply, both_databases, each_database, reply, until};
use crate::support::logins::{AUTH, ask, code, link, mails, post_from, sameness, sign_in, verify};
use crate::support::process::on_site;
use crate::support::tool_caller::{call, failure, fine};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// An address that many people share.
const SHARED: &str = "192.0.2.7";

async fn ask_from(gateway: &Gateway, from: &str, email: &str) -> Reply {
    post_from(gateway, from, "request-otp", json!({ "email": email })).await
}

async fn verify_from(gateway: &Gateway, from: &str, email: &str, otp: &str) -> Reply {
    post_from(gateway, from, "verify-otp", json!({ "email": email, "otp": otp })).await
}

/// Wrong codes for people who do not exist.
async fn guess(gateway: &Gateway, from: &str, times: usize) {
    for n in 0..times {
        let invented = format!("p{n}-{from}@example.com").replace(':', "-");
        assert_eq!(verify_from(gateway, from, &invented, "123456").await.problem(401), "OTP_INVALID");
    }
}

/// Asks from somewhere, and answers the code that was mailed.
async fn coded(gateway: &Gateway, from: &str, email: &str, chars: usize) -> String {
    ask_from(gateway, from, email).await.expect(200);
    let otp = code(gateway, email).await;
    assert_eq!(otp.len(), chars, "{otp}");
    otp
}

fn counted(gateway: &Gateway, sql: &str) -> i64 {
    database::rows(&gateway.app.settings.database, sql)[0][0].parse().unwrap()
}

fn wrong_tries(gateway: &Gateway) -> i64 {
    counted(gateway, "SELECT CAST(COUNT(*) AS TEXT) FROM login_attempts WHERE kind = 'WRONG'")
}

both_databases! {
    /// Twenty wrong codes for invented people, from the address of a hosted agent. Its customers still sign in; codes
    /// that were asked for elsewhere are closed to that address, and stay good elsewhere.
    async fn a_guesser_behind_a_shared_address_locks_nobody_out(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let early = coded(gateway, SHARED, "early@example.com", 6).await;
        let away = coded(gateway, "198.51.100.1", "away@example.com", 6).await;
        let both = coded(gateway, "198.51.100.1", "both@example.com", 6).await;
        guess(gateway, SHARED, 20).await;
        let refused = verify_from(gateway, SHARED, "away@example.com", &away).await;
        assert_eq!(refused.problem(401), "OTP_INVALID");
        verify_from(gateway, SHARED, "early@example.com", &early).await.expect(200);
        let late = coded(gateway, SHARED, "late@example.com", 20).await;
        verify_from(gateway, SHARED, "late@example.com", &late).await.expect(200);
        // A code for both: a long one for who asks from here, beside the short one, which was asked for elsewhere.
        gateway.pass_time(MINUTE);
        let long = coded(gateway, SHARED, "both@example.com", 20).await;
        assert_eq!(verify_from(gateway, SHARED, "both@example.com", &both).await.problem(401), "OTP_INVALID");
        verify_from(gateway, SHARED, "both@example.com", &long).await.expect(200);
        verify_from(gateway, "198.51.100.2", "both@example.com", &both).await.expect(200);
        verify_from(gateway, "198.51.100.2", "away@example.com", &away).await.expect(200);
        // What is refused is refused like any wrong code, and after an hour it is over.
        assert_eq!(sameness(&refused), sameness(&verify(gateway, "nobody@example.com", "1").await));
        gateway.pass_time(HOUR);
        let again = coded(gateway, SHARED, "late@example.com", 6).await;
        verify_from(gateway, SHARED, "late@example.com", &again).await.expect(200);
    }

    /// Asking again makes a client an asker of the code that is alive: it may try it also when somebody behind the same
    /// address has guessed too often since.
    async fn asking_again_makes_an_asker(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let first = coded(gateway, "198.51.100.1", "ann@example.com", 6).await;
        gateway.pass_time(MINUTE);
        assert_eq!(coded(gateway, SHARED, "ann@example.com", 6).await, first);
        guess(gateway, SHARED, 20).await;
        verify_from(gateway, SHARED, "ann@example.com", &first).await.expect(200);
    }

    /// Who is told that a code was just sent has become an asker of it too. That counts like asking, or it would be a way
    /// to short codes without end.
    async fn being_told_that_one_was_sent_makes_an_asker(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let mut codes = Vec::new();
        for n in 0..3 {
            codes.push(coded(gateway, "198.51.100.1", &format!("ann{n}@example.com"), 6).await);
        }
        for _ in 0..2 {
            gateway.pass_time(MINUTE);
            for n in 0..3 {
                coded(gateway, "198.51.100.1", &format!("ann{n}@example.com"), 6).await;
            }
        }
        assert_eq!(ask_from(gateway, SHARED, "ann0@example.com").await.problem(429), "RATE_LIMITED");
        guess(gateway, SHARED, 20).await;
        verify_from(gateway, SHARED, "ann0@example.com", &codes[0]).await.expect(200);
        let busy = "192.0.2.8";
        for n in 0..49 {
            ask_from(gateway, busy, &format!("own{n}@example.com")).await.expect(200);
        }
        for email in ["ann1@example.com", "ann1@example.com", "one-more@example.com", "ann2@example.com"] {
            assert_eq!(ask_from(gateway, busy, email).await.problem(429), "RATE_LIMITED", "{email}");
        }
        guess(gateway, busy, 20).await;
        assert_eq!(verify_from(gateway, busy, "ann2@example.com", &codes[2]).await.problem(401), "OTP_INVALID");
        verify_from(gateway, busy, "ann1@example.com", &codes[1]).await.expect(200);
    }

    /// What a limited client types at the codes of others is a guess at nothing: it ends no code, makes no address's
    /// codes longer, and is not even written down. Of its own short codes five tries are left.
    async fn who_guessed_too_often_has_nothing_left_to_guess_at(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let sprayer = "192.0.2.66";
        let victim = coded(gateway, "198.51.100.1", "victim@example.com", 6).await;
        let mut own = BTreeMap::new();
        for n in 0..3 {
            let email = format!("own{n}@example.com");
            own.insert(email.clone(), coded(gateway, sprayer, &email, 6).await);
        }
        guess(gateway, sprayer, 20).await;
        let mut heard = BTreeSet::new();
        for _ in 0..12 {
            let told = verify_from(gateway, sprayer, "victim@example.com", "00000x").await;
            assert_eq!(told.problem(401), "OTP_INVALID");
            heard.insert(sameness(&told).1.to_string());
        }
        heard.insert(sameness(&verify_from(gateway, sprayer, "victim@example.com", &victim).await).1.to_string());
        assert_eq!(wrong_tries(gateway), 20);
        for (email, right) in &own {
            for _ in 0..7 {
                heard.insert(sameness(&verify_from(gateway, sprayer, email, "00000x").await).1.to_string());
            }
            heard.insert(sameness(&verify_from(gateway, sprayer, email, right).await).1.to_string());
        }
        assert_eq!(heard.len(), 1, "one body for all: {heard:?}");
        assert_eq!(wrong_tries(gateway), 20 + 3 * 5);
        // What it asks for now cannot be guessed, and trying that is not written down either.
        let long = coded(gateway, sprayer, "more@example.com", 20).await;
        for _ in 0..9 {
            verify_from(gateway, sprayer, "more@example.com", "00000x").await.problem(401);
        }
        assert_eq!(wrong_tries(gateway), 20 + 3 * 5);
        verify_from(gateway, sprayer, "more@example.com", &long).await.expect(200);
        verify_from(gateway, "198.51.100.1", "victim@example.com", &victim).await.expect(200);
        gateway.pass_time(MINUTE);
        coded(gateway, "198.51.100.1", "victim@example.com", 6).await;
    }

    /// Wrong codes from many networks of one customer: a hundred from a /56, five hundred from a /48. Each client below
    /// is limited then, and neighbours are not.
    async fn wider_networks_have_shares_of_wrong_codes(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        for n in 0..4 {
            let email = format!("victim{n}@example.com");
            coded(gateway, "198.51.100.1", &email, 6).await;
        }
        let is_let_in = async |from: &str, n: usize| {
            let email = format!("victim{n}@example.com");
            let otp = code(gateway, &email).await;
            match verify_from(gateway, from, &email, &otp).await.status {
                200 => true,
                401 => false,
                other => panic!("{other}"),
            }
        };
        for client in 0..5 {
            guess(gateway, &format!("2001:db8:7:{client:x}::1"), 20).await;
        }
        assert!(!is_let_in("2001:db8:7:ff::1", 0).await, "its /56 guessed a hundred times");
        assert!(is_let_in("2001:db8:7:100::1", 0).await, "another /56");
        for client in 0..20 {
            guess(gateway, &format!("2001:db8:7:{:x}::1", 0x100 * (1 + client / 5) + client % 5), 20).await;
        }
        assert_eq!(wrong_tries(gateway), 500);
        assert!(!is_let_in("2001:db8:7:ff00::1", 1).await, "its /48 guessed five hundred times");
        assert!(is_let_in("2001:db8:8::1", 1).await, "another /48");
        // The whole /48 counts as one client now: what one of it asks for another of it may try.
        let long = coded(gateway, "2001:db8:7:fe00::1", "home@example.com", 20).await;
        verify_from(gateway, "2001:db8:7:ff00::1", "home@example.com", &long).await.expect(200);
    }

    async fn wider_networks_have_shares_of_asks(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let asks = async |from: String, times: usize| {
            let mut told = BTreeMap::<u16, usize>::new();
            for n in 0..times {
                let email = format!("p{n}-{from}@example.com").replace(':', "-");
                *told.entry(ask_from(gateway, &from, &email).await.status).or_default() += 1;
            }
            told
        };
        for client in 0..5 {
            let told = asks(format!("2001:db8:7:{client:x}::1"), 51).await;
            assert_eq!(told, BTreeMap::from([(200, 50), (429, 1)]), "{client}");
        }
        assert_eq!(asks("2001:db8:7:ff::1".into(), 1).await, BTreeMap::from([(429, 1)]), "its /56 asked 250 times");
        assert_eq!(asks("2001:db8:7:100::1".into(), 1).await, BTreeMap::from([(200, 1)]));
        // The rest of what a /48 may ask is written down as if other sites of it had.
        for most in [251, 502, 245] {
            let more = format!(
                "INSERT INTO login_attempts (id, kind, email, ip, site, area, at)
                 SELECT id || '{most}', kind, '', ip || 'x', 'other/', area, at FROM login_attempts WHERE kind = 'ASKED' LIMIT {most}"
            );
            database::execute(&gateway.app.settings.database, &more).unwrap();
        }
        assert_eq!(asks("2001:db8:7:ff00::1".into(), 2).await, BTreeMap::from([(200, 1), (429, 1)]), "its /48 asked 1250 times");
        assert_eq!(asks("2001:db8:8::1".into(), 1).await, BTreeMap::from([(200, 1)]));
        gateway.pass_time(HOUR);
        assert_eq!(asks("2001:db8:7:fe00::1".into(), 1).await, BTreeMap::from([(200, 1)]));
    }

    /// Somebody asks in the name of another, again and again, at one door. The other comes in by any door, with the
    /// code that this very nuisance has mailed.
    async fn asks_at_one_door_lock_out_of_no_other(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let (ann, bob) = ("ann@example.com", "bob@example.com");
        for _ in 0..6 {
            ask(gateway, ann).await;
            gateway.pass_time(MINUTE);
        }
        let sent = fine(call(gateway, "send_agent_otp", json!({ "email": ann })).await);
        assert_eq!((&sent["sent"], &sent["alreadySent"]), (&json!(false), &json!(true)));
        assert!((1..=240).contains(&sent["expiresInSeconds"].as_i64().unwrap()), "{sent}");
        let otp = code(gateway, ann).await;
        let session = fine(call(gateway, "verify_agent_otp", json!({ "email": ann, "code": otp })).await);
        assert!(session["token"].as_str().unwrap().starts_with("sgs_"));
        assert_eq!(failure(&call(gateway, "send_agent_otp", json!({ "email": ann })).await), "RATE_LIMITED");
        // The other way round.
        for _ in 0..6 {
            call(gateway, "send_agent_otp", json!({ "email": bob })).await;
            gateway.pass_time(MINUTE);
        }
        assert_eq!(ask(gateway, bob).await.problem(429), "RATE_LIMITED");
        let otp = code(gateway, bob).await;
        verify(gateway, bob, &otp).await.expect(200);
    }

    /// Whoever keeps a mailbox's bucket empty does not lock out who shares an address with a guesser either: asking makes
    /// an asker of the long code that is alive, though it cannot be mailed again. A short code is not to be had that way;
    /// then the next mail carries a long one, whoever asks for it.
    async fn an_empty_bucket_locks_no_shared_address_out(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let (ann, bob, nuisance) = ("ann@example.com", "bob@example.com", "192.0.2.9");
        let short = coded(gateway, nuisance, bob, 6).await;
        for _ in 0..2 {
            gateway.pass_time(MINUTE);
            assert_eq!(coded(gateway, nuisance, bob, 6).await, short);
        }
        guess(gateway, SHARED, 20).await;
        guess(gateway, nuisance, 20).await;
        let long = coded(gateway, nuisance, ann, 20).await;
        for _ in 0..2 {
            gateway.pass_time(MINUTE);
            assert_eq!(coded(gateway, nuisance, ann, 20).await, long);
        }
        for (email, otp) in [(ann, &long), (bob, &short)] {
            assert_eq!(verify_from(gateway, SHARED, email, otp).await.problem(401), "OTP_INVALID");
            assert_eq!(ask_from(gateway, SHARED, email).await.problem(429), "RATE_LIMITED");
        }
        verify_from(gateway, SHARED, ann, &long).await.expect(200);
        assert_eq!(verify_from(gateway, SHARED, bob, &short).await.problem(401), "OTP_INVALID");
        gateway.pass_time(4 * MINUTE);
        let long = coded(gateway, "198.51.100.9", bob, 20).await;
        assert_eq!(verify_from(gateway, SHARED, bob, &long).await.problem(401), "OTP_INVALID");
        assert_eq!(ask_from(gateway, SHARED, bob).await.problem(429), "RATE_LIMITED");
        verify_from(gateway, SHARED, bob, &long).await.expect(200);
        verify(gateway, bob, &short).await.expect(200);
        // That was it: the next is short again.
        gateway.pass_time(10 * MINUTE);
        coded(gateway, "198.51.100.9", bob, 6).await;
    }

    /// Somebody asks in another's name as often as it goes, and tries codes to end them. Of every fifteen minutes there
    /// are five without a live code at most, and the next one comes by itself.
    async fn whoever_is_harassed_has_a_live_code(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let (ann, bob) = ("ann@example.com", "bob@example.com");
        let minutes = || gateway.app.now().micros() as f64 / 60e6;
        let (mut seen, mut newest): (Vec<(String, f64)>, String) = Default::default();
        let (mut gaps, mut mailed): (Vec<f64>, Vec<f64>) = Default::default();
        let started = minutes();
        while minutes() < started + 90.0 {
            let before = minutes();
            ask(gateway, bob).await;
            verify(gateway, bob, "00000x").await.problem(401);
            if ask(gateway, ann).await.status == 200 {
                newest = code(gateway, ann).await;
                mailed.push(before - started);
                if seen.last().is_none_or(|(last, _)| *last != newest) {
                    let died = seen.last().map(|(_, since)| since + 10.0);
                    gaps.extend(died.map(|died| before - died));
                    seen.push((newest.clone(), before));
                }
            }
            gateway.pass_time(30_000);
        }
        assert!((12..=15).contains(&mailed.len()), "three and then one every 7.5 minutes: {mailed:?}");
        assert!(gaps.len() >= 4 && gaps.iter().all(|gap| *gap < 7.5), "less than one gain: {gaps:?}");
        // Between two codes one has to wait, for as long as one is told; then there is a code, whoever asks.
        let (_, born) = seen.last().unwrap().clone();
        gateway.pass_time((((born + 10.0 - minutes()).max(0.0) * 60e3) as i64) + 1_000);
        assert_eq!(verify(gateway, ann, &newest).await.problem(401), "OTP_INVALID");
        let refused = ask(gateway, ann).await;
        if refused.status != 200 {
            let wait: i64 = refused.header("retry-after").parse().unwrap();
            assert!((1..=450).contains(&wait), "{wait}");
            gateway.pass_time(wait * 1_000);
            ask(gateway, ann).await.expect(200);
        }
        verify(gateway, ann, &code(gateway, ann).await).await.expect(200);
        // Bob's codes were guessed at until they could not be ended any more.
        gateway.pass_time(15 * MINUTE);
        ask(gateway, bob).await.expect(200);
        for _ in 0..6 {
            verify(gateway, bob, "00000x").await.problem(401);
        }
        let long = code(gateway, bob).await;
        assert_eq!(long.len(), 20);
        verify(gateway, bob, &long).await.expect(200);
    }

    /// The day's budget is spent: everybody hears the same, and the same is done for everybody; but only who has an
    /// account is mailed. Nobody's limits are other ones.
    async fn a_spent_budget_tells_nothing(gateway) with [("trusted_proxies", "127.0.0.1"), ("otp_daily_budget", "3")] {
        gateway.away_from_midnight();
        for name in ["known", "quiet"] {
            sign_in(gateway, &format!("{name}@example.com"), "agent").await;
        }
        let url = link(gateway, "quiet@example.com", "/not-me/").await;
        assert_eq!(reply(gateway.client.post(&url)).await.status, 200);
        ask(gateway, "last@example.com").await.expect(200);
        gateway.pass_time(MINUTE);
        let queued = || counted(gateway, "SELECT CAST(COUNT(*) AS TEXT) FROM mails");
        let mut told = Vec::new();
        for email in ["known@example.com", "quiet@example.com", "unknown@example.com", "last@example.com"] {
            let (had, rows) = (mails(gateway, email).await.len(), queued());
            let sent = ask(gateway, email).await;
            let soon = ask(gateway, email).await;
            assert!((1..=60).contains(&soon.header("retry-after").parse::<i64>().unwrap()), "{email}");
            told.push((sent.expect(200), soon.problem(429)));
            assert_eq!(queued() - rows, 1, "the same work for {email}");
            let gained = mails(gateway, email).await.len() - had;
            assert_eq!(gained, usize::from(email.starts_with("known")), "{email}");
        }
        assert!(told.iter().all(|heard| *heard == told[0]), "{told:?}");
        let right = code(gateway, "known@example.com").await;
        verify(gateway, "known@example.com", &right).await.expect(200);
        // Tomorrow there is a new one.
        gateway.pass_time(DAY);
        ask(gateway, "unknown@example.com").await.expect(200);
        assert_eq!(mails(gateway, "unknown@example.com").await.len(), 1);
    }

    /// A network that has had its share of the day's mails asks in others' names and ends their codes. Who has an account
    /// is mailed with every gain all the same, however often she asks herself; and hears what everybody hears.
    async fn a_spent_share_takes_nobodys_mails_away(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0"), ("otp_daily_budget", "600")] {
        gateway.away_from_midnight();
        let people = ["ann@example.com", "stranger@example.com"];
        sign_in(gateway, people[0], "agent").await;
        gateway.pass_time(30 * MINUTE);
        let attacker = |n: usize| format!("2001:db8:7:{:x}::1", n << 8);
        for n in 0..58 {
            ask_from(gateway, &attacker(n), &format!("p{n}@example.com")).await.expect(200);
        }
        assert!(mails(gateway, "p57@example.com").await.is_empty(), "its share is spent");
        let codes = async |email: &str| {
            let mails = mails(gateway, email).await;
            mails.iter().filter(|mail| mail["subject"] == "Your sign-in code").count()
        };
        let (mut told, mut mailed) = ([Vec::new(), Vec::new()], Vec::new());
        let mut had = codes(people[0]).await;
        for round in 0..120 {
            let begun = gateway.app.now();
            for (email, told) in people.iter().zip(&mut told) {
                told.push(ask_from(gateway, &attacker(58 + round), email).await.status);
                verify(gateway, email, "00000x").await.problem(401);
                if round >= 6 {
                    told.push(ask(gateway, email).await.status);
                }
            }
            let has = codes(people[0]).await;
            if has > had {
                mailed.push(round as f64 * 0.55);
            }
            had = has;
            // However long a round takes: gains must not come while one is in the middle.
            let took = (gateway.app.now().micros() - begun.micros()) / 1_000;
            gateway.pass_time((33_000 - took).max(0));
        }
        assert_eq!(told[0], told[1]);
        assert!(mailed.windows(2).all(|two| two[1] - two[0] < 8.0) && mailed.len() > 8, "{mailed:?}");
        gateway.until("the next one is mailed", async || {
            gateway.pass_time(MINUTE / 2);
            ask(gateway, people[0]).await;
            (codes(people[0]).await > had).then_some(())
        }).await;
        verify(gateway, people[0], &code(gateway, people[0]).await).await.expect(200);
    }

    /// One network cannot use the day's mails up for all: it gets a tenth of what is left.
    async fn a_network_gets_a_share_of_the_budget(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0"), ("otp_daily_budget", "600")] {
        gateway.away_from_midnight();
        let mut mailed = Vec::new();
        for n in 0..58 {
            let email = format!("p{n}@example.com");
            ask_from(gateway, &format!("2001:db8:7:{n:x}::1"), &email).await.expect(200);
            mailed.push(!mails(gateway, &email).await.is_empty());
        }
        let got = mailed.iter().filter(|mailed| **mailed).count();
        assert!(got == 54 && mailed[..54].iter().all(|mailed| *mailed), "{mailed:?}");
        for (from, email) in [("2001:db8:8::1", "v6@example.com"), ("198.51.100.1", "v4@example.com")] {
            ask_from(gateway, from, email).await.expect(200);
            assert_eq!(mails(gateway, email).await.len(), 1, "{from}");
        }
        // Whoever has an account is mailed, whoever else is behind the same network; others are not. That tells nobody
        // apart, and who asks in the name of others and is not mailed for it does not keep them waiting.
        sign_in(gateway, "known@example.com", "agent").await;
        gateway.pass_time(MINUTE);
        let mut told = Vec::new();
        for (email, mailed) in [("known@example.com", [true, false]), ("new@example.com", [false, true])] {
            let had = mails(gateway, email).await.len();
            let mut heard = vec![ask_from(gateway, "2001:db8:7:ff::1", email).await];
            let first = mails(gateway, email).await.len();
            heard.push(ask_from(gateway, "2001:db8:7:fe::1", email).await);
            heard.push(ask_from(gateway, "198.51.100.2", email).await);
            heard.push(ask_from(gateway, "198.51.100.3", email).await);
            let second = mails(gateway, email).await.len();
            assert_eq!([first > had, second > first], mailed, "{email}: one mail in a minute");
            told.push(heard.iter().map(|answer| answer.status).collect::<Vec<_>>());
            verify_from(gateway, "198.51.100.4", email, &code(gateway, email).await).await.expect(200);
        }
        assert_eq!(told, [[200, 429, 200, 429], [200, 429, 200, 429]]);
    }
}

/// The operator hears once that the budget is spent, and sees how many got no mail for it.
fn the_operator_is_alarmed(db: Db) {
    on_site(db, vec![("otp_daily_budget", "2")], async |site| {
        let log = site.place.dir.join("log");
        let server = site.start_talkative("warn", File::create(&log).unwrap()).await;
        // Its clock cannot be moved.
        let clock = Clock::default();
        until("no day begins soon", async || {
            (DAY - clock.now().micros() / 1_000 % DAY > MINUTE / 2).then_some(())
        })
        .await;
        let unmailed = async || {
            let metrics = reply(site.client.get(format!("{}/metrics", server.base))).await.text;
            let line =
                metrics.lines().find(|line| line.starts_with("simgate_logins_total{outcome=\"unmailed\"} "));
            line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
        };
        let alarms = || {
            let written = std::fs::read_to_string(&log).unwrap();
            written.lines().filter(|line| line.contains("budget of sign-in codes is spent")).count()
        };
        let mut seen = Vec::new();
        for n in 0..4 {
            let body = json!({ "email": format!("p{n}@example.com") }).to_string();
            let url = format!("{}{AUTH}/request-otp", server.base);
            reply(site.client.post(url).header("content-type", "application/json").body(body))
                .await
                .expect(200);
            seen.push(unmailed().await);
        }
        assert_eq!(seen, [0, 0, 1, 2]);
        until("it is in the log", async || (alarms() > 0).then_some(())).await;
        assert_eq!(alarms(), 1);
    });
}

mod alarm {
    super::each_database!(super::the_operator_is_alarmed);
}
