//! Signatures that moved nothing are forgotten when they are old, with the transactions that tried them and the checkouts
//! they were for; what was paid stays.

use super::proxy::Mood;
use super::signed_doubts::LATER_MS;
use super::till::{Setup, Till, at_till};
use crate::support::database;
use crate::support::harness::{reply, until};

async fn pass_days(till: &Till, days: i64) {
    till.gateway.pass_time(days * 86_400_000);
    till.node.pass_time(days * 86_400).await;
}

fn count(till: &Till, table: &str) -> i64 {
    let sql = format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table}");
    database::rows(&till.gateway.app.settings.database, &sql)[0][0].parse().unwrap()
}

at_till! {
    async fn old_signatures(till) with { proxies: 1, settings: &[("answer_within_ms", "50")] } {
        let bought = till.offer().await;
        let good = till.payer.pay(&bought, 1);
        let paid = till.pay(&good).await.expect(202)["invoiceId"].clone();
        till.until_completed(&paid).await;
        till.proxies[0].set(Mood::Swallows);
        let bad = till.payer.pay(&till.offer().await, 2);
        let dead = till.pay(&bad).await.expect(202)["invoiceId"].clone();
        until("it was written down", async || (till.pending().await == 1).then_some(())).await;
        till.gateway.pass_time(LATER_MS);
        till.node.pass_time(LATER_MS / 1_000).await;
        until("the signature is dead", async || {
            till.node.mine(1).await;
            (till.pay(&bad).await.status == 402).then_some(())
        })
        .await;
        assert_eq!(count(till, "authorizations"), 2);

        let url = format!("{}/api/agentic/order/{}", till.gateway.base, dead.as_str().unwrap());
        pass_days(till, 100).await;
        until("the dead one is forgotten", async || {
            // What is old is gone through once a day.
            pass_days(till, 1).await;
            till.node.mine(1).await;
            let gone = reply(till.gateway.client.get(&url)).await.status == 404;
            (gone && count(till, "authorizations") == 1).then_some(())
        })
        .await;
        assert_eq!(count(till, "settlements WHERE state = 'DONE'"), 0);
        assert_eq!(till.poll(&paid).await["status"], "COMPLETED");
        // Both are as old as their signatures say: nothing is bought with them.
        let again = till.pay(&bad).await;
        assert!(again.status != 200 && again.status != 202, "{}", again.text);
        assert_eq!(till.pay(&good).await.expect(200)["invoiceId"], paid);
        assert_eq!(till.spent().await.micros().to_string(), bought["amount"]);
    }
}
