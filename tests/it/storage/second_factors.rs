//! Second factors: how one is set up and turned off, that every code counts once, what guessers meet, and what stands in the
//! database.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use simgate::app::App;
use simgate::domain::email::Email;
use simgate::domain::ids::SessionId;
use simgate::domain::login::Realm;
use simgate::domain::refusal::Refusal;
use simgate::error::{Error, Fault, FaultKind};
use simgate::ops::second_factor::{self, Answer, Standing, Verdict};
use simgate::start::{self, Role};

use crate::support::authenticator::Authenticator;
use crate::support::command_line::{ok, simgate};
use crate::support::database;
use crate::support::harness::{Db, Gateway, both_databases};
use crate::support::logins::subjects;

const STEP: i64 = 30_000;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const PARTNERS: Realm = Realm::Partners;

fn email(name: &str) -> Email {
    Email::parse(&format!("{name}@example.com")).unwrap()
}

#[track_caller]
fn refusal<T>(outcome: Result<T, Error>) -> Refusal {
    match outcome {
        Err(Error::Refused(refusal)) => refusal,
        Err(other) => panic!("no refusal: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

/// The session that turns one on.
fn here() -> SessionId {
    SessionId::from_text("ses_here")
}

/// Somebody who has a second factor: the phone, and the recovery codes.
struct Owner {
    email: Email,
    phone: Authenticator,
    recovery: Vec<String>,
}

impl Owner {
    async fn new(gateway: &Gateway, name: &str) -> Owner {
        let email = email(name);
        let setup = second_factor::begin(&gateway.app, PARTNERS, &email, gateway.app.now()).await.unwrap();
        let phone = Authenticator::scan(&setup.uri);
        let code = phone.shows(gateway.app.now());
        let recovery = second_factor::confirm(&gateway.app, PARTNERS, &email, &code, &here()).await.unwrap();
        // The code of the setting up is used up, and another is not shown at once.
        gateway.pass_time(STEP);
        Owner { email, phone, recovery }
    }

    fn shows(&self, app: &App) -> String {
        self.phone.shows(app.now())
    }

    fn wrong(&self, app: &App) -> String {
        self.phone.never_shows(app.now())
    }

    async fn types(&self, app: &App, text: &str) -> Verdict {
        typed(app, PARTNERS, &self.email, text).await
    }

    async fn left(&self, app: &App) -> i64 {
        match second_factor::state(app, PARTNERS, &self.email).await.unwrap() {
            Standing::On { recovery_codes, .. } => recovery_codes,
            other => panic!("it is {other:?}"),
        }
    }
}

/// What a sign-in is told that checks a code.
async fn typed(app: &App, realm: Realm, email: &Email, text: &str) -> Verdict {
    let answer = Answer::new(app, realm, email, text);
    app.store.write(0, move |tx| second_factor::check(tx, &answer)).await.unwrap()
}

async fn is_on(app: &App, email: &Email) -> bool {
    let email = email.clone();
    app.store.read(move |tx| second_factor::is_on(tx, PARTNERS, &email)).await.unwrap()
}

/// Another instance of the gateway, at the same time of day.
async fn elsewhere(gateway: &Gateway) -> App {
    let other = start::open(gateway.app.settings.clone(), Role::Command).await.unwrap();
    let ahead = gateway.app.now().micros() - other.now().micros();
    other.clock.advance(ahead / 1_000);
    other
}

/// Actor, command, detail, before and after of what the audit log has on this.
fn audited(gateway: &Gateway) -> Vec<Vec<String>> {
    let sql = "SELECT actor, command, detail, before, after FROM audit
               WHERE command LIKE 'second-factor%' OR command LIKE '%reset-second-factor' ORDER BY at, id";
    database::rows(&gateway.app.settings.database, sql)
}

both_databases! {
    async fn one_counts_when_its_app_has_shown_a_right_code(gateway) with [("brand_name", "Caf\u{e9} & Co: eSIMs")] {
        let (app, ann) = (&gateway.app, email("ann"));
        assert_eq!(second_factor::state(app, PARTNERS, &ann).await.unwrap(), Standing::Off);
        assert_eq!(refusal(second_factor::confirm(app, PARTNERS, &ann, "123456", &here()).await), Refusal::NoSecondFactor);

        let setup = second_factor::begin(app, PARTNERS, &ann, app.now()).await.unwrap();
        let phone = Authenticator::scan(&setup.uri);
        assert_eq!((phone.issuer.as_str(), phone.account.as_str()), ("Caf\u{e9} & Co  eSIMs", "ann@example.com"));
        assert!(setup.secret_text.len() == 32 && setup.uri.contains(&setup.secret_text), "{}", setup.uri);
        assert!(matches!(second_factor::state(app, PARTNERS, &ann).await.unwrap(), Standing::Begun { .. }));
        assert!(!is_on(app, &ann).await);
        assert_eq!(typed(app, PARTNERS, &ann, &phone.shows(app.now())).await, Verdict::Off);

        for wrong in [phone.never_shows(app.now()), "12345".into(), String::new()] {
            assert_eq!(refusal(second_factor::confirm(app, PARTNERS, &ann, &wrong, &here()).await), Refusal::SecondFactorWrong);
        }
        let code = phone.shows(app.now());
        let spaced = format!(" {} {}", &code[..3], &code[3..]);
        let recovery = second_factor::confirm(app, PARTNERS, &ann, &spaced, &here()).await.unwrap();
        assert_eq!(recovery.iter().collect::<BTreeSet<_>>().len(), 10);
        assert!(recovery.iter().all(|code| code.len() == 20 && code.split('-').count() == 3), "{recovery:?}");
        assert!(is_on(app, &ann).await);
        assert!(matches!(second_factor::state(app, PARTNERS, &ann).await.unwrap(), Standing::On { recovery_codes: 10, .. }));

        // What is on is not begun or confirmed anew, and belongs to this realm alone.
        gateway.pass_time(STEP);
        assert_eq!(refusal(second_factor::begin(app, PARTNERS, &ann, app.now()).await), Refusal::SecondFactorOn);
        assert_eq!(refusal(second_factor::confirm(app, PARTNERS, &ann, &phone.shows(app.now()), &here()).await), Refusal::SecondFactorOn);
        assert_eq!(typed(app, Realm::Buyers, &ann, &phone.shows(app.now())).await, Verdict::Off);
        assert_eq!(typed(app, PARTNERS, &ann, &phone.shows(app.now())).await, Verdict::Right);
    }

    async fn another_secret_takes_the_place_of_one_that_was_not_confirmed(gateway) {
        let (app, ann) = (&gateway.app, email("ann"));
        let first = second_factor::begin(app, PARTNERS, &ann, app.now()).await.unwrap();
        let again = second_factor::again(app, PARTNERS, &ann, &first.secret_text).await.unwrap().unwrap();
        assert_eq!(again.uri, first.uri);
        let second = second_factor::begin(app, PARTNERS, &ann, app.now()).await.unwrap();
        assert!(second_factor::again(app, PARTNERS, &ann, &first.secret_text).await.unwrap().is_none());
        let (old, new) = (Authenticator::scan(&first.uri), Authenticator::scan(&second.uri));
        assert_eq!(refusal(second_factor::confirm(app, PARTNERS, &ann, &old.shows(app.now()), &here()).await), Refusal::SecondFactorWrong);

        // It is good for an hour.
        gateway.pass_time(HOUR + MINUTE);
        assert_eq!(second_factor::state(app, PARTNERS, &ann).await.unwrap(), Standing::Off);
        assert!(second_factor::again(app, PARTNERS, &ann, &second.secret_text).await.unwrap().is_none());
        assert_eq!(refusal(second_factor::confirm(app, PARTNERS, &ann, &new.shows(app.now()), &here()).await), Refusal::NoSecondFactor);
        let third = second_factor::begin(app, PARTNERS, &ann, app.now()).await.unwrap();
        let phone = Authenticator::scan(&third.uri);
        second_factor::confirm(app, PARTNERS, &ann, &phone.shows(app.now()), &here()).await.unwrap();
        assert!(second_factor::again(app, PARTNERS, &ann, &third.secret_text).await.unwrap().is_none(), "it is shown no more");
    }

    async fn each_code_of_the_app_counts_once_and_soon(gateway) {
        let app = &gateway.app;
        let (ann, bob) = (Owner::new(gateway, "ann").await, Owner::new(gateway, "bob").await);
        gateway.pass_time(10 * MINUTE);
        let code = ann.shows(app);
        assert_eq!(bob.types(app, &code).await, Verdict::Wrong);
        assert_eq!(ann.types(app, &code).await, Verdict::Right);
        assert_eq!(ann.types(app, &code).await, Verdict::Used);
        assert_eq!(bob.types(app, &bob.shows(app)).await, Verdict::Right, "one's code uses up none of another's");

        // A phone whose clock is half a minute slow or fast; one that is off by minutes is not heard.
        gateway.pass_time(10 * MINUTE);
        let at = |steps: i64| ann.phone.shows(app.now().plus_millis(steps * STEP));
        for away in [-4, 4] {
            assert_eq!(ann.types(app, &at(away)).await, Verdict::Wrong);
        }
        let fast = at(1);
        assert_eq!(ann.types(app, &fast).await, Verdict::Right);
        // Nothing older than what was used: somebody may have looked over a shoulder.
        assert_eq!(ann.types(app, &at(0)).await, Verdict::Used);
        gateway.pass_time(STEP);
        assert_eq!(ann.types(app, &fast).await, Verdict::Used);
        gateway.pass_time(4 * STEP);
        assert_eq!(ann.types(app, &fast).await, Verdict::Wrong);
        assert_eq!(ann.types(app, &at(0)).await, Verdict::Right);
    }

    async fn each_recovery_code_counts_once_however_it_is_typed(gateway) {
        let app = &gateway.app;
        let (ann, bob) = (Owner::new(gateway, "ann").await, Owner::new(gateway, "bob").await);
        let codes = &ann.recovery;
        assert_eq!(bob.types(app, &codes[0]).await, Verdict::Wrong, "it is another's");
        for (typed, left) in [
            (codes[0].clone(), 9),
            (codes[1].replace('-', ""), 8),
            (format!(" {}\n", codes[2].to_lowercase().replace('-', " ")), 7),
        ] {
            assert_eq!(ann.types(app, &typed).await, Verdict::Right);
            assert_eq!(ann.left(app).await, left);
            assert_eq!(ann.types(app, &typed).await, Verdict::Wrong);
        }
        assert_eq!(bob.left(app).await, 10);

        // New ones take the place of all, and are had for a right code only.
        for wrong in [ann.wrong(app), codes[0].clone(), bob.recovery[0].clone()] {
            let refused = second_factor::new_recovery_codes(app, PARTNERS, &ann.email, &wrong).await;
            assert_eq!(refusal(refused), Refusal::SecondFactorWrong);
        }
        assert_eq!(ann.left(app).await, 7);
        let fresh = second_factor::new_recovery_codes(app, PARTNERS, &ann.email, &codes[3]).await.unwrap();
        assert_eq!((fresh.len(), ann.left(app).await), (10, 10));
        assert_eq!(ann.types(app, &codes[4]).await, Verdict::Wrong);
        assert_eq!(ann.types(app, &fresh[4]).await, Verdict::Right);
        let newer = second_factor::new_recovery_codes(app, PARTNERS, &ann.email, &ann.shows(app)).await.unwrap();
        assert_eq!(ann.types(app, &fresh[5]).await, Verdict::Wrong);
        assert_eq!(ann.types(app, &newer[5]).await, Verdict::Right);
        let log = audited(gateway);
        assert_eq!(log[0][..3], ["member:ann@example.com", "second-factor on", "ann@example.com"]);
        assert_eq!(log[2][..3], ["member:ann@example.com", "second-factor codes", "ann@example.com"]);
        assert!(log[2][3].ends_with("recovery codes: 7") && log[2][4].ends_with("recovery codes: 10"), "{log:?}");
        assert_eq!(log.len(), 4);
    }

    /// Two people with one code, or a thief beside its owner, at two instances.
    async fn of_two_at_one_moment_one_passes(gateway) {
        let app = &gateway.app;
        let ann = Owner::new(gateway, "ann").await;
        let other = elsewhere(gateway).await;
        for round in 0..10 {
            gateway.pass_time(2 * STEP);
            other.clock.advance(2 * STEP);
            let code = if round % 2 == 0 { ann.shows(app) } else { ann.recovery[round].clone() };
            let tries = (0..8).map(|n| {
                let from = if n % 2 == 0 { app } else { &other };
                let answer = Answer::new(from, PARTNERS, &ann.email, &code);
                from.store.write(n, move |tx| second_factor::check(tx, &answer))
            });
            let verdicts: Vec<Verdict> = join_all(tries).await.into_iter().map(Result::unwrap).collect();
            let right = verdicts.iter().filter(|verdict| **verdict == Verdict::Right).count();
            assert_eq!(right, 1, "{verdicts:?}");
        }
        // Nor does a crowd get more guesses.
        let wrong = ann.wrong(app);
        let guesses = (0..24).map(|n| {
            let from = if n % 2 == 0 { app } else { &other };
            let answer = Answer::new(from, PARTNERS, &ann.email, &wrong);
            from.store.write(n, move |tx| second_factor::check(tx, &answer))
        });
        let verdicts: Vec<Verdict> = join_all(guesses).await.into_iter().map(Result::unwrap).collect();
        let heard = verdicts.iter().filter(|verdict| **verdict == Verdict::Wrong).count();
        assert_eq!(heard, 10, "{verdicts:?}");
        database::on_plain_thread(|| other.store.close());
    }

    async fn after_ten_wrong_codes_the_app_rests_and_recovery_codes_do_not(gateway) {
        let app = &gateway.app;
        let (ann, bob) = (Owner::new(gateway, "ann").await, Owner::new(gateway, "bob").await);
        let guess = async |times: usize| {
            for _ in 0..times {
                assert_eq!(ann.types(app, &ann.wrong(app)).await, Verdict::Wrong);
            }
        };
        let minutes = |verdict: Verdict| match verdict {
            Verdict::Resting { until } => (until.micros() - app.now().micros() + 59_999_999) / 60_000_000,
            other => panic!("it does not rest: {other:?}"),
        };
        // What cannot be a code of the app is no guess at one.
        for _ in 0..12 {
            assert_eq!(ann.types(app, "12345").await, Verdict::Wrong);
            assert_eq!(ann.types(app, "ABCDEF-ABCDEF-ABCDEF").await, Verdict::Wrong);
        }
        guess(9).await;
        // A right one between them gives a guesser no more.
        assert_eq!(ann.types(app, &ann.shows(app)).await, Verdict::Right);
        gateway.pass_time(HOUR);
        guess(1).await;
        assert_eq!(minutes(ann.types(app, &ann.shows(app)).await), 15);
        assert_eq!(bob.types(app, &bob.shows(app)).await, Verdict::Right);
        let told = refusal(second_factor::turn_off(app, PARTNERS, &ann.email, &ann.shows(app)).await);
        let Refusal::SecondFactorRests { retry_after_secs } = &told else { panic!("{told:?}") };
        assert!((1..=900).contains(retry_after_secs) && told.retry_after_secs() == Some(*retry_after_secs));
        // The owner gets in all the same, and opens it again; the next rest is longer.
        assert_eq!(ann.types(app, &ann.recovery[0]).await, Verdict::Right);
        assert_eq!(ann.types(app, &ann.shows(app)).await, Verdict::Right);
        guess(10).await;
        assert_eq!(minutes(ann.types(app, &ann.wrong(app)).await), 30);
        gateway.pass_time(29 * MINUTE);
        assert!(matches!(ann.types(app, &ann.shows(app)).await, Verdict::Resting { .. }));
        gateway.pass_time(2 * MINUTE);
        assert_eq!(ann.types(app, &ann.shows(app)).await, Verdict::Right);
    }

    /// A commit whose answer was lost: the write runs once more.
    async fn a_write_that_runs_again_finds_what_it_found(gateway) {
        let app = &gateway.app;
        let ann = Owner::new(gateway, "ann").await;
        for (text, verdict) in [
            (ann.shows(app), Verdict::Right),
            (ann.recovery[0].clone(), Verdict::Right),
            (ann.wrong(app), Verdict::Wrong),
        ] {
            let answer = Arc::new(Answer::new(app, PARTNERS, &ann.email, &text));
            let first = answer.clone();
            assert_eq!(app.store.write(0, move |tx| second_factor::check(tx, &first)).await.unwrap(), verdict);
            let failed = AtomicBool::new(false);
            let again = app.store.write(0, move |tx| {
                if !failed.swap(true, Ordering::Relaxed) {
                    return Err(Error::Fault(Fault { what: "a test".into(), kind: FaultKind::Conflict }));
                }
                second_factor::check(tx, &answer)
            });
            assert_eq!(again.await.unwrap(), verdict, "{text}");
        }
        let wrong = "SELECT CAST(wrong AS TEXT) FROM second_factors";
        assert_eq!(database::rows(&app.settings.database, wrong), [["1"]]);
        assert_eq!(ann.left(app).await, 9);
    }

    async fn it_is_turned_off_by_a_right_code_alone(gateway) {
        let app = &gateway.app;
        let (ann, bob) = (Owner::new(gateway, "ann").await, Owner::new(gateway, "bob").await);
        for (typed, told) in [
            (ann.wrong(app), Refusal::SecondFactorWrong),
            (bob.recovery[0].clone(), Refusal::SecondFactorWrong),
        ] {
            assert_eq!(refusal(second_factor::turn_off(app, PARTNERS, &ann.email, &typed).await), told);
        }
        let code = ann.shows(app);
        assert_eq!(ann.types(app, &code).await, Verdict::Right);
        assert_eq!(refusal(second_factor::turn_off(app, PARTNERS, &ann.email, &code).await), Refusal::SecondFactorUsed);
        gateway.pass_time(STEP);
        second_factor::turn_off(app, PARTNERS, &ann.email, &ann.shows(app)).await.unwrap();
        assert_eq!(second_factor::state(app, PARTNERS, &ann.email).await.unwrap(), Standing::Off);
        assert_eq!(ann.types(app, &ann.recovery[0]).await, Verdict::Off, "nothing is left");
        assert_eq!(refusal(second_factor::turn_off(app, PARTNERS, &ann.email, &code).await), Refusal::NoSecondFactor);
        second_factor::turn_off(app, PARTNERS, &bob.email, &bob.recovery[0]).await.unwrap();
        let left = "SELECT email FROM second_factors UNION ALL SELECT email FROM recovery_codes";
        assert!(database::rows(&app.settings.database, left).is_empty());
        let log = audited(gateway);
        assert_eq!(log[2][..3], ["member:ann@example.com", "second-factor off", "ann@example.com"]);
        assert!(log[2][3].starts_with("on since ") && log[2][4] == "off", "{log:?}");
    }

    async fn an_operator_takes_it_away(gateway) {
        let app = &gateway.app;
        let (ann, bob) = (Owner::new(gateway, "ann").await, Owner::new(gateway, "bob").await);
        let command = |more: &[&'static str]| {
            simgate(gateway, &[&["partner", "reset-second-factor", "Ann@Example.com", "--json"], more].concat())
        };
        let unsure = command(&[]).refused(1, "IDEMPOTENCY_CONFLICT");
        assert!(unsure.contains("nothing was changed"), "{unsure}");
        assert!(is_on(app, &ann.email).await);
        let done = ok(gateway, "partner reset-second-factor Ann@Example.com --yes");
        assert_eq!((&done["email"], &done["secondFactor"]), (&"ann@example.com".into(), &"OFF".into()));
        assert!(!is_on(app, &ann.email).await && is_on(app, &bob.email).await);
        assert_eq!(ann.types(app, &ann.recovery[0]).await, Verdict::Off);
        let told = subjects(gateway, "ann@example.com").await;
        assert_eq!(told.iter().filter(|subject| *subject == "Your second factor was taken away").count(), 1, "{told:?}");
        assert_eq!(subjects(gateway, "bob@example.com").await, ["Your second factor is on"]);
        let none = command(&["--yes"]).refused(1, "NOT_FOUND");
        assert_eq!(none, "ann@example.com has no second factor in the partner portal");
        let log = audited(gateway);
        // The command has the clock of this machine, and the gateway's was moved.
        let reset = log.iter().find(|line| line[1] == "partner reset-second-factor").unwrap();
        let [actor, command, detail, before, after] = reset.as_slice() else { panic!("{log:?}") };
        assert_eq!([actor, command, detail, after].map(String::as_str), ["cli:tester", "partner reset-second-factor", "ann@example.com", "off"]);
        assert!(before.starts_with("on since ") && before.ends_with("recovery codes: 10"), "{before}");
        assert_eq!(log.len(), 3);
        Owner::new(gateway, "ann").await;
    }

    /// Whoever reads the database can neither show a code nor try recovery codes; whoever writes it cannot put one person's
    /// secret in another's place.
    async fn the_database_tells_no_code(gateway) {
        let app = &gateway.app;
        let (ann, bob) = (Owner::new(gateway, "ann").await, Owner::new(gateway, "bob").await);
        let location = &app.settings.database;
        let hex = |table: &str, column: &str| {
            let sql = match gateway.db {
                Db::Sqlite => format!("SELECT lower(hex({column})) FROM {table}"),
                Db::Postgres => format!("SELECT encode({column}, 'hex') FROM {table}"),
            };
            database::rows(location, &sql).into_iter().flatten().collect::<Vec<String>>()
        };
        let (secrets, hashes) = (hex("second_factors", "secret"), hex("recovery_codes", "hash"));
        assert_eq!((secrets.len(), hashes.iter().collect::<BTreeSet<_>>().len()), (2, 20));
        let known = simgate::vault::hex(ann.phone.secret());
        assert!(secrets.iter().all(|sealed| sealed.len() == 2 * (12 + 20 + 16) && !sealed.contains(&known)));
        for code in &ann.recovery {
            let plain = simgate::vault::hex(&simgate::vault::hash_secret(&code.replace('-', "")));
            assert!(!hashes.contains(&plain), "a hash without a key can be tried");
        }
        let moved = "UPDATE second_factors SET secret = (SELECT secret FROM second_factors WHERE email = 'ann@example.com')
                     WHERE email = 'bob@example.com'";
        database::execute(location, moved).unwrap();
        let answer = Answer::new(app, PARTNERS, &bob.email, &ann.shows(app));
        let told = app.store.write(0, move |tx| second_factor::check(tx, &answer)).await;
        assert!(matches!(told, Err(Error::Fault(_))), "a moved secret does not open");
        database::execute(location, "UPDATE recovery_codes SET email = 'carl@example.com' WHERE email = 'bob@example.com'").unwrap();
        database::execute(location, "UPDATE recovery_codes SET email = 'bob@example.com' WHERE email = 'ann@example.com'").unwrap();
        assert_eq!(bob.types(app, &ann.recovery[0]).await, Verdict::Wrong);
    }
}
