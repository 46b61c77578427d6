//! Many orders at once at the portal: pasted, looked at with their prices, placed once, and followed.

use simgate::domain::ledger::CreditKind;
use simgate::domain::money::Usd;
use simgate::domain::role::Role;
use simgate::ops::operator::{self, Adjustment, Direction};

use super::support::{OPEN, member};
use crate::support::desk;
use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::logins::mails;
use crate::support::visitor::Visitor;

const PATH: &str = "/portal/orders/batch";
const LIST: &str = "JP-1GB-7D, trip-1, ann@example.com\nJP-3GB-30D\tinvoice 7\n2 x jp-1gb-7d, group";

pub(super) async fn checked(visitor: &mut Visitor, list: &str) -> Reply {
    let page = visitor.open(PATH).await;
    visitor.submit(&page, PATH, &[("orders", list)]).await
}

/// Waits until every line has its answer: the page then.
pub(super) async fn ended(gateway: &Gateway, visitor: &mut Visitor, path: &str) -> Reply {
    gateway
        .until("every line has its answer", async || {
            let page = visitor.open(path).await;
            assert_eq!(page.status, 200, "{}", page.text);
            page.text.contains("data-polled=\"over\"").then_some(page)
        })
        .await
}

pub(super) fn path_of(begun: &Reply) -> String {
    assert_eq!(begun.status, 303, "{}", begun.text);
    begun.header("location").to_string()
}

both_databases! {
    async fn a_list_is_looked_at_and_placed_once(gateway) with [OPEN[0], OPEN[1]] {
        let mut dev = member(gateway, Role::Developer).await;
        let (small, large) = (gateway.price("JP-1GB-7D").await, gateway.price("JP-3GB-30D").await);
        let total = small.plus(small).plus(small).plus(large);
        let check = checked(&mut dev, LIST).await;
        for part in ["Place 4 orders", "Nothing is bought yet", &format!("{} USD", total.priced()), "Japan 3 GB 30 days", "invoice 7", "ann@example.com", "group-2"] {
            assert!(check.text.contains(part), "{part}: {}", check.text);
        }
        assert!(gateway.journalled("sold").is_empty());
        // What was pasted comes back to be changed.
        let change = dev.submit(&check, PATH, &[("step", "change")]).await;
        assert!(change.status == 200 && change.text.contains("JP-3GB-30D\tinvoice 7"), "{}", change.text);
        let path = path_of(&dev.submit(&check, PATH, &[("step", "place")]).await);
        assert_eq!(path_of(&dev.submit(&check, PATH, &[("step", "place")]).await), path, "a form that is sent twice");
        let done = ended(gateway, &mut dev, &path).await;
        for part in ["All 4 eSIMs are delivered", "developer@travel.example", &format!("<dt>Came to</dt><dd>{} USD</dd>", total.priced()), "trip-1"] {
            assert!(done.text.contains(part), "{part}: {}", done.text);
        }
        assert!(!done.text.contains("so far") && !done.text.contains("<progress"), "{}", done.text);
        assert_eq!((done.text.matches("/portal/orders/ord_").count(), gateway.journalled("sold").len()), (4, 4));
        assert_eq!(Usd::parse(&gateway.balance().await).unwrap(), Usd::dollars(1_000).minus(total));
        let log = dev.open("/portal/team/log").await;
        assert_eq!(log.text.matches("Placed several orders").count(), 1, "{}", log.text);
        assert!(dev.open(PATH).await.text.contains(&path), "it is listed");
        let order = dev.open("/portal/search?q=trip-1").await.header("location").to_string();
        let shown = dev.open(&order).await;
        for part in ["developer@travel.example, by hand", "Sent to a***@example.com"] {
            assert!(shown.text.contains(part), "{part}: {}", shown.text);
        }
        // A customer whose address stands in the list gets the eSIM, and no price.
        let mails = mails(gateway, "ann@example.com").await;
        let text = mails[0]["text"].as_str().unwrap();
        assert!(mails.len() == 1 && text.contains("Test Travel sends you an eSIM") && !text.contains("USD"), "{text}");
        // Whoever may not order looks at it, too.
        let mut viewer = member(gateway, Role::Viewer).await;
        assert!(viewer.open(&path).await.text.contains("All 4 eSIMs are delivered"));
    }

    async fn everything_that_is_wrong_is_told_at_once(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let wrong = checked(&mut owner, "NO-SUCH-1, a\nJP-1GB-7D, a, <b>\nJP-1GB-7D, b, c, d").await;
        assert!(wrong.status == 400 && wrong.text.contains("<title>Please check: "), "{}", wrong.text);
        for part in ["Nothing was bought", "line 2 has &#60;b&#62; where the email", "line 3 has c where the email", "NO-SUCH-1, a\nJP-1GB-7D, a, &#60;b&#62;"] {
            assert!(wrong.text.contains(part), "{part}: {}", wrong.text);
        }
        let unsold = checked(&mut owner, "NO-SUCH-1\nJP-1GB-7D-TOPUP").await;
        assert!(unsold.text.contains("line 1 names NO-SUCH-1") && unsold.text.contains("line 2 names JP-1GB-7D-TOPUP"), "{}", unsold.text);
        assert!(checked(&mut owner, " \n ").await.text.contains("the list is empty"));
        assert!(checked(&mut owner, "101 x JP-1GB-7D").await.text.contains("100 can be bought at once"));
    }

    /// Prices that rose meanwhile, and prices that nobody was shown, buy nothing.
    async fn nothing_is_bought_for_more_than_was_shown(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let check = checked(&mut owner, "JP-1GB-7D").await;
        for prices in ["0.01 JP-1GB-7D", "", "x"] {
            let refused = owner.submit(&check, PATH, &[("prices", prices), ("step", "place")]).await;
            assert!(refused.status == 409 && refused.text.contains("look at the prices again"), "{prices}: {}", refused.text);
        }
        assert!(gateway.journalled("sold").is_empty());
        // The wallet is short: none of them is placed.
        let take = Adjustment { account: desk::account(gateway).await, amount: Usd::parse("999.5").unwrap(), kind: CreditKind::Promo, reason: "test".into() };
        operator::adjust_wallet(&gateway.app, "test", Direction::Debit, take, None).await.unwrap();
        let short = owner.submit(&check, PATH, &[("step", "place")]).await;
        assert!(short.status == 402 && short.text.contains("more is needed"), "{}", short.text);
        let check = checked(&mut owner, "JP-1GB-7D").await;
        assert!(check.text.contains("does not suffice") && !check.text.contains("value=\"place\""), "{}", check.text);
    }

    async fn what_the_supplier_refuses_is_told_beside_its_line(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let check = checked(&mut owner, "2 x JP-1GB-7D").await;
        gateway.supplier("reject").await;
        let path = path_of(&owner.submit(&check, PATH, &[("step", "place")]).await);
        let done = ended(gateway, &mut owner, &path).await;
        assert!(done.text.contains("0 of 2 eSIMs delivered") && done.text.contains("The supplier refused"), "{}", done.text);
        assert_eq!(Usd::parse(&gateway.balance().await).unwrap(), Usd::dollars(1_000));
    }
}
