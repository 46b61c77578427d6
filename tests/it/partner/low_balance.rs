//! A partner is mailed when its balance falls below its threshold: once for each crossing.

use serde_json::json;
use simgate::ops::low_balance;

use crate::support::command_line::ok;
use crate::support::database::execute;
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::mails;
use crate::support::shapes::ORDERS;

const EMAIL: &str = "ops@acme.example";

async fn buy(gateway: &Gateway) {
    gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(200);
}

/// Looks as the job does, at several places at once.
async fn look(gateway: &Gateway) {
    let round = || low_balance::round(&gateway.app);
    let rounds = tokio::join!(round(), round(), round(), round());
    for round in [rounds.0, rounds.1, rounds.2, rounds.3] {
        round.unwrap();
    }
}

async fn told(gateway: &Gateway) -> usize {
    look(gateway).await;
    mails(gateway, EMAIL).await.len()
}

both_databases! {
    async fn one_mail_for_each_crossing(gateway) {
        let partner = gateway.partner.clone();
        ok(gateway, &format!("partner set {partner} --email {EMAIL} --low-balance 999.5"));
        assert_eq!(told(gateway).await, 0);
        buy(gateway).await;
        assert_eq!(told(gateway).await, 1);
        let mail = mails(gateway, EMAIL).await[0].clone();
        assert_eq!(mail["subject"], "Your balance is low");
        for part in ["999.18 USD", "999.5 USD", "Test Travel"] {
            assert!(mail["text"].as_str().unwrap().contains(part), "{mail}");
        }
        buy(gateway).await;
        assert_eq!(told(gateway).await, 1, "it was low before");
        ok(gateway, &format!("wallet credit {partner} 0.5 --reason more"));
        assert_eq!(told(gateway).await, 1, "still low");
        ok(gateway, &format!("wallet credit {partner} 10 --reason more"));
        assert_eq!(told(gateway).await, 1);
        ok(gateway, &format!("wallet debit {partner} 10 --reason less"));
        assert_eq!(told(gateway).await, 2, "up and down again");
        // Up and down again between two looks.
        ok(gateway, &format!("wallet credit {partner} 20 --reason more"));
        ok(gateway, &format!("wallet debit {partner} 20 --reason less"));
        assert_eq!(told(gateway).await, 3);
        assert_eq!(told(gateway).await, 3);
    }

    /// The gateway does it by itself; and a race of purchases crosses once.
    async fn a_race_crosses_once(gateway) {
        ok(gateway, &format!("partner set {} --email {EMAIL} --low-balance 997", gateway.partner));
        let all = (0..8).map(|_| buy(gateway));
        futures_util::future::join_all(all).await;
        gateway.until("a mail", async || (!mails(gateway, EMAIL).await.is_empty()).then_some(())).await;
        assert_eq!(told(gateway).await, 1);
    }

    /// An older instance makes partners without entering them here, in a rolling upgrade.
    async fn a_partner_of_an_older_instance_is_told_too(gateway) {
        let old = "INSERT INTO accounts (no, id, name, email, price_list, low_balance, created_at, kind)
            SELECT MAX(no) + 1, 'ptn_old', 'Old Travel', 'ops@acme.example', 'default', 50000000, 0, 'PARTNER' FROM accounts;
            INSERT INTO wallets (account, balance, lines, placed, numbers, opened, failed, suspended)
            SELECT MAX(no), 0, 0, 0, 0, 0, 0, 0 FROM accounts";
        execute(&gateway.app.settings.database, old).unwrap();
        ok(gateway, "wallet credit ptn_old 60 --reason first");
        ok(gateway, "wallet debit ptn_old 20 --reason less");
        gateway.until("a mail", async || (!mails(gateway, EMAIL).await.is_empty()).then_some(())).await;
        assert_eq!(told(gateway).await, 1);
        // Its threshold can be moved before the job has seen it.
        execute(&gateway.app.settings.database, "DELETE FROM low_balances WHERE account = (SELECT no FROM accounts WHERE id = 'ptn_old')").unwrap();
        ok(gateway, "partner set ptn_old --low-balance 45");
        assert_eq!(told(gateway).await, 1, "a threshold that moves is no crossing");
        ok(gateway, "wallet credit ptn_old 10 --reason more");
        ok(gateway, "wallet debit ptn_old 10 --reason less");
        assert_eq!(told(gateway).await, 2);
    }

    async fn nobody_is_told_without_a_crossing_or_an_email(gateway) {
        let partner = gateway.partner.clone();
        ok(gateway, &format!("partner set {partner} --low-balance 999.5"));
        buy(gateway).await;
        look(gateway).await;
        ok(gateway, &format!("partner set {partner} --email {EMAIL}"));
        assert_eq!(told(gateway).await, 0, "it crossed when nobody could be told");
        ok(gateway, &format!("partner set {partner} --low-balance 5000"));
        buy(gateway).await;
        assert_eq!(told(gateway).await, 0, "a threshold that moves is no crossing");
        // A new partner begins with nothing.
        let new = ok(gateway, "partner create --name New --email new@acme.example");
        look(gateway).await;
        assert_eq!(mails(gateway, "new@acme.example").await.len(), 0);
        ok(gateway, &format!("wallet credit {} 60 --reason first", new["partnerId"].as_str().unwrap()));
        ok(gateway, &format!("wallet debit {} 20 --reason less", new["partnerId"].as_str().unwrap()));
        look(gateway).await;
        assert_eq!(mails(gateway, "new@acme.example").await.len(), 1);
    }
}
