//! Mail against a real server (`support/mail_server.rs`). Each check runs on both databases.

use serde_json::{Value, json};

use crate::support::database;
use crate::support::harness::{Db, Gateway, run, until};
use crate::support::logins::{ask, digit_runs, elsewhere, post_from, verify};
use crate::support::mail_server::{MailServer, Settings, mailbox};

const MINUTE: i64 = 60_000;

fn header<'a>(mail: &'a Value, name: &str) -> Vec<&'a str> {
    let all = mail["headers"].as_array().unwrap().iter();
    all.filter(|pair| pair[0].as_str().unwrap().eq_ignore_ascii_case(name))
        .map(|pair| pair[1].as_str().unwrap())
        .collect()
}

fn queued(gateway: &Gateway) -> String {
    database::rows(&gateway.app.settings.database, "SELECT CAST(COUNT(*) AS TEXT) FROM mails")[0][0].clone()
}

/// Runs a check on both databases.
fn on_both(door: &'static str, more: Settings, check: impl AsyncFn(&Gateway, &MailServer) + Copy + 'static) {
    let server = MailServer::told();
    for db in [Db::Sqlite, Db::Postgres] {
        let settings = [server.settings(door), more.clone()].concat();
        let server = server.clone();
        run(db, settings, async move |gateway| check(gateway, &server).await);
    }
}

async fn arrives(gateway: &Gateway, server: &MailServer, door: &str) {
    let to = mailbox("ann");
    ask(gateway, &to).await.expect(200);
    let mails = server.until_mailed(&to, 1).await;
    assert_eq!(mails.len(), 1);
    let mail = &mails[0];
    assert_eq!(
        (&mail["door"], &mail["tls"], &mail["from"]),
        (&json!(door), &json!(door != "plain"), &json!("codes@simgate.example"))
    );
    assert_eq!(mail["login"], if door == "starttls" { json!("codes") } else { Value::Null });
    assert_eq!(mail["type"], "multipart/alternative");
    assert_eq!(header(mail, "to"), [to.as_str()]);
    assert_eq!(header(mail, "from"), ["simgate codes <codes@simgate.example>"]);
    assert_eq!(header(mail, "subject"), ["Your sign-in code"]);
    assert_eq!(header(mail, "auto-submitted"), ["auto-generated"]);
    let text = mail["parts"]["text/plain"].as_str().unwrap();
    let codes = digit_runs(text, 6);
    assert_eq!(codes.len(), 1, "{text}");
    assert_eq!(digit_runs(mail["parts"]["text/html"].as_str().unwrap(), 6), codes);
    until("nothing is left of a mail that was sent", async || (queued(gateway) == "0").then_some(())).await;
    verify(gateway, &to, &codes[0]).await.expect(200);
    server.until_mailed(&to, 2).await;
}

#[test]
#[ignore = "needs a mail server"]
fn a_code_arrives_by_plain_smtp() {
    on_both("plain", vec![], async |gateway, server| arrives(gateway, server, "plain").await);
}

#[test]
#[ignore = "needs a mail server"]
fn a_code_arrives_by_starttls_with_a_login() {
    on_both("starttls", vec![], async |gateway, server| arrives(gateway, server, "starttls").await);
}

#[test]
#[ignore = "needs a mail server"]
fn a_code_arrives_by_tls() {
    on_both("tls", vec![], async |gateway, server| arrives(gateway, server, "tls").await);
}

#[test]
#[ignore = "needs a mail server"]
fn a_server_that_cannot_be_trusted_gets_no_mail() {
    for (door, more) in [
        ("tls", vec![("smtp_certificate", "")]),
        ("starttls", vec![("smtp_certificate", "")]),
        ("starttls", vec![("smtp_password", "wrong")]),
        ("plain", vec![("smtp_tls", "starttls")]),
    ] {
        on_both(door, more, async |gateway, server| {
            let to = mailbox("ann");
            ask(gateway, &to).await.expect(200);
            let tried = "SELECT CAST(tries AS TEXT) FROM mails";
            until("it was tried", async || {
                (database::rows(&gateway.app.settings.database, tried) != [["0"]]).then_some(())
            })
            .await;
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            assert_eq!(queued(gateway), "1", "it waits for better times");
            assert!(server.mails(&to).is_empty());
        });
    }
}

#[test]
#[ignore = "needs a mail server"]
fn a_mail_that_is_put_off_is_sent_later() {
    on_both("plain", vec![], async |gateway, server| {
        let to = mailbox("later");
        ask(gateway, &to).await.expect(200);
        until("it arrives at the third try", async || {
            gateway.pass_time(1_000);
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            (!server.mails(&to).is_empty()).then_some(())
        })
        .await;
        assert_eq!(server.mails(&to).len(), 1);
    });
}

#[test]
#[ignore = "needs a mail server"]
fn a_mail_that_is_refused_is_not_sent_again() {
    on_both("plain", vec![], async |gateway, server| {
        let to = mailbox("refused");
        ask(gateway, &to).await.expect(200);
        until("it is given up", async || (queued(gateway) == "0").then_some(())).await;
        assert!(server.mails(&to).is_empty());
    });
}

#[test]
#[ignore = "needs a mail server"]
fn a_code_that_has_expired_is_not_mailed() {
    // Nobody listens on the discard port.
    on_both("plain", vec![("smtp_port", "9")], async |gateway, server| {
        let to = mailbox("ann");
        ask(gateway, &to).await.expect(200);
        until("it was tried", async || {
            let tries =
                database::rows(&gateway.app.settings.database, "SELECT CAST(tries AS TEXT) FROM mails");
            (tries[0][0] != "0").then_some(())
        })
        .await;
        gateway.pass_time(11 * MINUTE);
        until("it is dropped", async || (queued(gateway) == "0").then_some(())).await;
        assert!(server.mails(&to).is_empty());
    });
}

/// Nothing that a caller types reaches a header or the HTML as more than text.
#[test]
#[ignore = "needs a mail server"]
fn nobody_else_gets_a_mail() {
    on_both("plain", vec![("ip_rate_limit", "0")], async |gateway, server| {
        let (victim, thief) = (mailbox("victim"), mailbox("thief"));
        for wrong in [
            format!("{victim}\r\nBcc: {thief}"),
            format!("{victim}\nBcc: {thief}"),
            format!("{victim}\rBcc: {thief}"),
            format!("{victim},{thief}"),
            format!("{victim};{thief}"),
            format!("{victim} {thief}"),
            format!("{victim}>\r\nRCPT TO:<{thief}"),
            format!("<{victim}>,<{thief}>"),
            format!("{victim}\u{0}{thief}"),
            format!("{victim}\u{2028}Bcc: {thief}"),
            format!("\"{victim}\" <{thief}>"),
            format!("{victim}%0d%0aBcc:{thief}"),
        ] {
            let refused = post_from(gateway, &elsewhere(), "request-otp", json!({ "email": wrong })).await;
            assert_eq!(refused.problem(400), "INVALID_REQUEST", "{wrong:?}");
        }
        ask(gateway, &victim).await.expect(200);
        let sent = server.until_mailed(&victim, 1).await;
        let otp = digit_runs(sent[0]["parts"]["text/plain"].as_str().unwrap(), 6)[0].clone();
        let name = format!("x\r\nBcc: {thief}\r\n\r\n<script>alert(1)</script>");
        let name: String = name.chars().take(64).collect();
        let body = json!({ "email": victim, "otp": otp, "agentName": name });
        post_from(gateway, &elsewhere(), "verify-otp", body).await.expect(200);
        let mails = server.until_mailed(&victim, 2).await;
        let told = mails
            .iter()
            .find(|mail| header(mail, "subject") == ["A new access token for your account"])
            .unwrap();
        for mail in &mails {
            let names: Vec<String> = mail["headers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|pair| pair[0].as_str().unwrap().to_lowercase())
                .collect();
            assert!(!names.iter().any(|name| name == "bcc" || name == "cc"), "{names:?}");
        }
        assert!(!told["parts"]["text/html"].as_str().unwrap().contains("<script"));
        assert!(server.mails(&thief).is_empty());
    });
}
