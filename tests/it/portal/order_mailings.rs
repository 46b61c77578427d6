//! Who is mailed how much: one mailbox gets a few mails of a team's in a day, by lists and by hand together, and whoever orders
//! is told before anything is bought. What is not mailed is bought and shown all the same.

use simgate::domain::money::Usd;
use simgate::domain::role::Role;
use simgate::ops::mailings::A_DAY;
use simgate::ops::retention;

use super::order_batches::{checked, ended, path_of};
use super::support::{OPEN, attributes, member, member_of};
use crate::support::database;
use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::logins::mails;
use crate::support::visitor::Visitor;

const BATCH: &str = "/portal/orders/batch";
const DAY_MS: i64 = 86_400_000;
const ANN: &str = "ann@example.com";
const COUNT: &str = "SELECT CAST(COUNT(*) AS TEXT) FROM mailings";

/// Lines for one customer, with references from the first to before the last.
fn list(email: &str, references: std::ops::Range<i64>) -> String {
    references.map(|n| format!("JP-1GB-7D, r-{n}, {email}\n")).collect()
}

/// Places a list: the page on which it was looked at, and the page when it was done.
async fn placed(gateway: &Gateway, visitor: &mut Visitor, list: &str) -> (Reply, Reply) {
    let check = checked(visitor, list).await;
    let path = path_of(&visitor.submit(&check, BATCH, &[("step", "place")]).await);
    (check, ended(gateway, visitor, &path).await)
}

/// The pages of the orders of a list, in its order.
fn orders(done: &Reply) -> Vec<String> {
    attributes(&done.text, "href")
        .into_iter()
        .filter(|path| path.starts_with("/portal/orders/ord_"))
        .collect()
}

async fn sent_by_hand(visitor: &mut Visitor, order: &str, email: &str) -> Reply {
    let path = format!("{order}/send");
    let page = visitor.open(&path).await;
    visitor.submit(&page, &path, &[("email", email)]).await
}

both_databases! {
    async fn lists_and_hands_share_what_a_mailbox_gets_in_a_day(gateway) with [OPEN[0], OPEN[1]] {
        gateway.away_from_midnight();
        let mut owner = member(gateway, Role::Owner).await;
        let (check, done) = placed(gateway, &mut owner, &list(ANN, 0..A_DAY - 2)).await;
        assert!(!check.text.contains("not mailed") && !done.text.contains("Not mailed"), "{}", check.text);
        let first = orders(&done)[0].clone();
        assert_eq!(sent_by_hand(&mut owner, &first, "Ann+more@example.com").await.status, 303);

        // One more fits, whatever it is called. Of the rest the member is told, and it is bought.
        let rest = format!("{}JP-1GB-7D, other, bo@example.com\n", list("ann+trip@example.com", 100..103));
        let (check, done) = placed(gateway, &mut owner, &rest).await;
        assert!(check.text.contains("2 of these eSIMs are bought but not mailed"), "{}", check.text);
        assert_eq!(check.text.matches(">not mailed</span>").count(), 2, "{}", check.text);
        assert!(done.text.contains("All 4 eSIMs are delivered"), "{}", done.text);
        assert_eq!(done.text.matches("Not mailed: this mailbox had 20 mails").count(), 2, "{}", done.text);
        let mailed = mails(gateway, "ann+trip@example.com").await.len() + mails(gateway, ANN).await.len();
        assert_eq!((mailed as i64, mails(gateway, "bo@example.com").await.len()), (A_DAY - 1, 1));
        let [kept, unsent] = [&orders(&done)[0], &orders(&done)[2]];
        assert!(owner.open(kept).await.text.contains("Sent to a***@example.com"));
        let shown = owner.open(unsent).await;
        assert!(shown.text.contains("/send\"") && !shown.text.contains("Sent to"), "{}", shown.text);

        // By hand it has to wait for the next day, too.
        let refused = sent_by_hand(&mut owner, unsent, ANN).await;
        assert!(refused.status == 429 && refused.text.contains("to this mailbox"), "{}", refused.text);
        gateway.pass_time(DAY_MS);
        let mut owner = member(gateway, Role::Developer).await;
        assert_eq!(sent_by_hand(&mut owner, unsent, ANN).await.status, 303);
        // The same list again is the same orders, whether they were mailed or not.
        let sold = gateway.journalled("sold").len();
        let (_, again) = placed(gateway, &mut owner, &rest).await;
        assert_eq!(again.text.matches("nothing was charged or mailed again").count(), 4, "{}", again.text);
        assert_eq!((orders(&again), gateway.journalled("sold").len()), (orders(&done), sold));
        assert!(mails(gateway, "bo@example.com").await.is_empty(), "the mail of yesterday is forgotten, and there is no other");
    }

    /// What one team sends is nothing to another's customers; and the counts are forgotten.
    async fn every_team_has_a_count_of_its_own_that_is_forgotten(gateway) with [OPEN[0], OPEN[1]] {
        gateway.away_from_midnight();
        let mut owner = member(gateway, Role::Owner).await;
        placed(gateway, &mut owner, &list(ANN, 0..A_DAY)).await;
        assert!(checked(&mut owner, &list(ANN, 200..201)).await.text.contains("1 of these eSIMs is bought but not mailed"));
        let (other, _) = gateway.partner("Other Travel", Usd::dollars(100)).await;
        let mut other = member_of(gateway, &other, "owner@other.example", Role::Owner).await;
        assert!(!checked(&mut other, &list(ANN, 0..1)).await.text.contains("not mailed"));
        let location = gateway.app.settings.database.clone();
        assert_eq!(database::rows(&location, COUNT), [["1"]]);
        gateway.pass_time(3 * DAY_MS);
        gateway
            .until("the count is forgotten", async || {
                retention::forget_logins(&gateway.app).await.unwrap();
                (database::rows(&location, COUNT) == [["0"]]).then_some(())
            })
            .await;
    }
}
