//! Buying from the wallet with a session: once for a form, at the price that was shown, within the wallet and the limit.

use serde_json::json;
use simgate::domain::money::Usd;

use super::{ANN, EVE, OPEN};
use crate::support::browser::{claimed, wallet_of};
use crate::support::buying::{PLAN, fund};
use crate::support::coupons::{limited, plan, tally};
use crate::support::harness::{Gateway, Reply, booked, both_databases};
use crate::support::visitor::{Visitor, hidden};

async fn signed_in(gateway: &Gateway, email: &str, dollars: i64) -> Visitor {
    let mut visitor = Visitor::new(gateway);
    visitor.sign_in(gateway, email).await;
    if dollars > 0 {
        fund(gateway, email, Usd::dollars(dollars)).await;
    }
    visitor
}

fn path(code: &str) -> String {
    format!("/account/buy/{code}")
}

/// Buys a plan with the form of its page: the path of the order.
async fn buy(visitor: &mut Visitor, code: &str) -> String {
    let page = visitor.open(&path(code)).await;
    bought(&visitor.submit(&page, &path(code), &[]).await)
}

#[track_caller]
fn bought(answer: &Reply) -> String {
    assert_eq!(answer.status, 303, "{}", answer.text);
    let (order, done) = answer.header("location").split_once('?').unwrap();
    assert_eq!(done, "done=bought");
    order.to_string()
}

both_databases! {
    async fn a_plan_is_found_and_bought_once(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN, 50).await;
        let found = ann.open("/account/buy?q=japan+1gb").await;
        assert!(found.text.contains(&format!("href=\"{}\"", path(PLAN))), "{}", found.text);
        let nothing = ann.open("/account/buy?q=atlantis%3Cb%3E").await;
        assert!(nothing.text.contains("Nothing found") && nothing.text.contains("atlantis&#60;b&#62;"), "{}", nothing.text);
        let page = ann.open(&path(PLAN)).await;
        let price = plan(gateway, PLAN).retail;
        assert!(page.text.contains(&format!("{} USD", price.priced())), "{}", page.text);
        // The same form twice is one purchase.
        let first = bought(&ann.submit(&page, &path(PLAN), &[]).await);
        let again = bought(&ann.submit(&page, &path(PLAN), &[]).await);
        assert_eq!(first, again);
        assert_eq!(wallet_of(gateway, ANN).await, Usd::dollars(50).minus(price));
        assert_eq!(gateway.journalled("sold").len(), 1);
        let order = ann.open(&format!("{first}?done=bought")).await;
        assert!(order.text.contains("Bought, and paid") && order.text.contains("/esim/"), "{}", order.text);
        // A new page is a new purchase.
        assert_ne!(buy(&mut ann, PLAN).await, first);
        let list = ann.open("/account/orders").await;
        assert!(list.text.contains("2 orders") && list.text.contains(&first), "{}", list.text);
        assert!(ann.open("/account").await.text.contains(&first));
    }

    /// What a guest's checkout owed, claimed by its buyer, is spent here.
    async fn what_was_claimed_is_spent(gateway) with [OPEN[0], OPEN[1]] {
        claimed(gateway, ANN).await;
        let worth = wallet_of(gateway, ANN).await;
        gateway.pass_time(2 * crate::support::buying::MINUTE_MS);
        let mut ann = signed_in(gateway, ANN, 0).await;
        let page = ann.open("/account").await;
        assert!(page.text.contains(&format!("{} USD", worth.priced())) && page.text.contains("owed to you"), "{}", page.text);
        buy(&mut ann, "JP-500MB-1D").await;
        assert!(wallet_of(gateway, ANN).await < worth);
    }

    async fn a_wallet_that_is_short_says_what_is_missing(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN, 50).await;
        let page = ann.open(&path(PLAN)).await;
        let account = crate::support::buying::account(gateway, ANN).await;
        let take = simgate::ops::operator::Adjustment { account, amount: Usd::dollars(49), kind: simgate::domain::ledger::CreditKind::Promo, reason: "test".into() };
        simgate::ops::operator::adjust_wallet(&gateway.app, "test", simgate::ops::operator::Direction::Debit, take, None).await.unwrap();
        let short = ann.submit(&page, &path(PLAN), &[]).await;
        let missing = plan(gateway, PLAN).retail.minus(Usd::dollars(1));
        assert!(short.status == 402 && short.text.contains("Nothing was bought"), "{}", short.text);
        assert!(short.text.contains(&format!("/account/deposit?amount={missing}")), "{}", short.text);
        assert_eq!(wallet_of(gateway, ANN).await, Usd::dollars(1));
        // The page itself offers no button that cannot work.
        let page = ann.open(&path(PLAN)).await;
        assert!(page.text.contains("Add money") && !page.text.contains("Buy now"), "{}", page.text);
    }

    /// Whoever was shown less is not charged more.
    async fn a_dearer_plan_is_shown_anew(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN, 50).await;
        let page = ann.open(&path(PLAN)).await;
        let lower = format!("{PLAN} 0.01");
        let refused = ann.submit(&page, &path(PLAN), &[("choice", &lower)]).await;
        assert!(refused.status == 409 && refused.text.contains("more than you were shown"), "{}", refused.text);
        assert_eq!(wallet_of(gateway, ANN).await, Usd::dollars(50));
        // The form of that page holds the price that is true.
        bought(&ann.submit(&refused, &path(PLAN), &[]).await);
        for wrong in ["", "JP-1GB-7D", "JP-1GB-7D x", "JP-3GB-30D 100"] {
            let refused = ann.submit(&page, &path(PLAN), &[("choice", wrong)]).await;
            assert_eq!(refused.status, 400, "{wrong}: {}", refused.text);
        }
        assert_eq!(ann.open(&path("NO-SUCH")).await.status, 404);
    }

    /// A coupon counts as it was shown: applied, typed and not applied, or wrong.
    async fn a_coupon_is_taken_off(gateway) with [OPEN[0], OPEN[1]] {
        limited(gateway, "TRIP10", 2).await;
        let mut ann = signed_in(gateway, ANN, 50).await;
        let price = plan(gateway, PLAN).retail;
        let page = ann.open(&path(PLAN)).await;
        let applied = ann.submit(&page, &path(PLAN), &[("discount", "trip10"), ("apply", "1")]).await;
        assert!(applied.status == 200 && applied.text.contains("Coupon TRIP10"), "{}", applied.text);
        assert_eq!((wallet_of(gateway, ANN).await, tally(gateway, "TRIP10").await), (Usd::dollars(50), (0, 0)), "nothing is bought yet");
        let wrong = ann.submit(&page, &path(PLAN), &[("discount", "NOPE"), ("apply", "1")]).await;
        assert!(wrong.text.contains("This discount code is unknown") && wrong.text.contains(&format!("<dt>You pay</dt><dd>{} USD</dd>", price.priced())), "{}", wrong.text);
        let refused = ann.submit(&page, &path(PLAN), &[("discount", "NOPE")]).await;
        assert!(refused.status == 422 && refused.text.contains("This discount code is unknown"), "{}", refused.text);
        assert_eq!(wallet_of(gateway, ANN).await, Usd::dollars(50));
        // Without the code the price is another one, and it is shown before it is taken.
        let dropped = ann.submit(&applied, &path(PLAN), &[("discount", "")]).await;
        assert!(dropped.status == 409 && dropped.text.contains("more than you were shown"), "{}", dropped.text);
        let first = bought(&ann.submit(&applied, &path(PLAN), &[("discount", "trip10")]).await);
        assert_eq!(bought(&ann.submit(&applied, &path(PLAN), &[("discount", "trip10")]).await), first);
        let once = Usd::dollars(50).minus(wallet_of(gateway, ANN).await);
        assert!(once < price && booked(&gateway.app, "discount:coupon").await == price.minus(once), "{once}");
        // Typed and not applied, it counts too.
        let page = ann.open(&path(PLAN)).await;
        bought(&ann.submit(&page, &path(PLAN), &[("discount", "trip10")]).await);
        assert_eq!(Usd::dollars(50).minus(wallet_of(gateway, ANN).await), once.plus(once));
        let page = ann.open(&path(PLAN)).await;
        let used_up = ann.submit(&page, &path(PLAN), &[("discount", "trip10")]).await;
        assert!(used_up.status == 422 && used_up.text.contains("This discount code is unknown"), "{}", used_up.text);
        assert_eq!((tally(gateway, "TRIP10").await, gateway.journalled("sold").len()), ((0, 2), 2));
    }

    /// A code that is sent with the purchase is one guess: of twenty in an hour, the twentieth still counts.
    async fn a_wrong_coupon_is_one_guess(gateway) with [OPEN[0], OPEN[1]] {
        limited(gateway, "TRIP10", 2).await;
        let mut ann = signed_in(gateway, ANN, 50).await;
        let page = ann.open(&path(PLAN)).await;
        for n in 0..19 {
            let refused = ann.submit(&page, &path(PLAN), &[("discount", &format!("NOPE{n}"))]).await;
            assert_eq!(refused.status, 422, "{}", refused.text);
        }
        bought(&ann.submit(&page, &path(PLAN), &[("discount", "TRIP10")]).await);
        assert_eq!(tally(gateway, "TRIP10").await, (0, 1));
    }

    /// A session may spend as much in a day as a session token may.
    async fn a_session_has_a_daily_limit(gateway) with [OPEN[0], OPEN[1], ("token_daily_limit_usd", "2")] {
        gateway.away_from_midnight();
        let mut ann = signed_in(gateway, ANN, 50).await;
        buy(&mut ann, PLAN).await;
        let page = ann.open(&path(PLAN)).await;
        let refused = ann.submit(&page, &path(PLAN), &[]).await;
        assert!(refused.status == 403 && refused.text.contains("2 USD a day"), "{}", refused.text);
        assert_eq!(gateway.journalled("sold").len(), 1);
    }

    async fn what_cannot_be_delivered_costs_nothing(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN, 50).await;
        let page = ann.open(&path(PLAN)).await;
        gateway.sandbox("supplier", json!({ "mode": "reject" })).await;
        let refused = ann.submit(&page, &path(PLAN), &[]).await;
        assert!(refused.status == 502 && refused.text.contains("Nothing was bought"), "{}", refused.text);
        assert_eq!(wallet_of(gateway, ANN).await, Usd::dollars(50));
        gateway.supplier("ok").await;
        // The same form may try again: the first try holds nothing.
        bought(&ann.submit(&page, &path(PLAN), &[]).await);
    }

    async fn data_is_added_once(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN, 50).await;
        let order = buy(&mut ann, PLAN).await;
        let before = wallet_of(gateway, ANN).await;
        let data = format!("{order}/data");
        let page = ann.open(&data).await;
        let choice = page.text.split("name=\"choice\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_string();
        let price = Usd::parse(choice.split_once(' ').unwrap().1).unwrap();
        for _ in 0..2 {
            let added = ann.submit(&page, &data, &[("choice", &choice)]).await;
            assert_eq!((added.status, added.header("location")), (303, &*format!("{order}?done=topped-up")));
        }
        assert_eq!(wallet_of(gateway, ANN).await, before.minus(price));
        let shown = ann.open(&order).await;
        assert!(shown.text.contains("Data that was added") && shown.text.contains("cannot be given back"), "{}", shown.text);
    }

    async fn an_order_is_given_back_after_a_second_question(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN, 50).await;
        let order = buy(&mut ann, PLAN).await;
        let back = format!("{order}/give-back");
        let page = ann.open(&back).await;
        assert!(page.text.contains("cannot be undone"), "{}", page.text);
        assert!(wallet_of(gateway, ANN).await < Usd::dollars(50));
        let done = ann.submit(&page, &back, &[]).await;
        assert_eq!((done.status, done.header("location")), (303, &*format!("{order}?done=given-back")));
        assert_eq!(wallet_of(gateway, ANN).await, Usd::dollars(50));
        let again = ann.submit(&page, &back, &[]).await;
        assert!(again.status == 409 && again.text.contains("You keep this eSIM"), "{}", again.text);
        assert_eq!(wallet_of(gateway, ANN).await, Usd::dollars(50));
        let shown = ann.open(&order).await;
        assert!(shown.text.contains("Given back") && !shown.text.contains("/esim/"), "{}", shown.text);
    }

    async fn orders_of_others_are_not_found(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN, 50).await;
        let order = buy(&mut ann, PLAN).await;
        let mut eve = signed_in(gateway, EVE, 0).await;
        let page = eve.open("/account").await;
        let token = hidden(&page, "/account/sign-out").remove(0).1;
        for tail in ["", "/data", "/give-back"] {
            assert_eq!(eve.open(&format!("{order}{tail}")).await.status, 404, "{tail}");
        }
        for tail in ["/data", "/give-back"] {
            let sent = [("form", &*token), ("choice", "X 1"), ("once", "0123456789abcdef0123456789abcdef")];
            assert_eq!(eve.post(&format!("{order}{tail}"), &sent).await.status, 404, "{tail}");
        }
        assert!(!eve.open("/account/orders").await.text.contains(&order));
        for made_up in ["/account/orders/ord_x", "/account/orders/x%2F..", "/account/agents/tok_x", "/account/orders/top_1"] {
            assert_eq!(eve.open(made_up).await.status, 404, "{made_up}");
        }
    }

    /// Who is suspended still looks, and neither buys nor pays in.
    async fn a_suspended_account_only_looks(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN, 50).await;
        simgate::ops::operator::set_suspended(&gateway.app, "test", ANN, true).await.unwrap();
        let page = ann.open("/account").await;
        assert!(page.status == 200 && page.text.contains("This account is suspended"), "{}", page.text);
        let page = ann.open(&path(PLAN)).await;
        let refused = ann.submit(&page, &path(PLAN), &[]).await;
        assert!(refused.status == 403 && refused.text.contains("suspended"), "{}", refused.text);
        assert_eq!(wallet_of(gateway, ANN).await, Usd::dollars(50));
    }
}
