//! One order at the portal: placed by hand, topped up, cancelled or kept, sent to a customer; and the page that tells of it.

use serde_json::json;
use simgate::domain::ledger::CreditKind;
use simgate::domain::money::Usd;
use simgate::domain::role::Role;
use simgate::ops::operator::{self, Adjustment, Direction};

use super::support::{OPEN, member};
use crate::support::buying::{HOUR_MS, MINUTE_MS, PLAN};
use crate::support::desk;
use crate::support::harness::{Gateway, Reply, both_databases, open_orders};
use crate::support::logins::mails;
use crate::support::visitor::Visitor;

const NEW: &str = "/portal/orders/new";
const FORM: &str = "/portal/orders/new?plan=JP-1GB-7D";
const CUSTOMER: &str = "customer@example.com";

async fn balance(gateway: &Gateway) -> Usd {
    Usd::parse(&gateway.balance().await).unwrap()
}

/// Buys with the form of a page: the path of the order, and what the next page says.
async fn bought(visitor: &mut Visitor, page: &Reply, fields: &[(&str, &str)]) -> (String, String) {
    let answer = visitor.submit(page, NEW, fields).await;
    assert_eq!(answer.status, 303, "{}", answer.text);
    let (path, done) = answer.header("location").split_once("?done=").unwrap();
    (path.to_string(), done.to_string())
}

async fn place(visitor: &mut Visitor, reference: &str) -> String {
    let page = visitor.open(FORM).await;
    bought(visitor, &page, &[("reference", reference)]).await.0
}

both_databases! {
    /// Whoever hangs up before the answer has bought all the same, and it stands in the log.
    async fn an_order_stands_in_the_log_before_it_is_answered(gateway) with [OPEN[0], OPEN[1]] {
        let mut dev = member(gateway, Role::Developer).await;
        let page = dev.open(FORM).await;
        gateway.supplier("silent").await;
        let mut left = dev.again();
        let sending = tokio::spawn(async move { left.submit(&page, NEW, &[]).await });
        gateway
            .until("the order is taken down", async || (open_orders(&gateway.app).await == 1).then_some(()))
            .await;
        assert!(!sending.is_finished());
        sending.abort();
        assert!(dev.open("/portal/team/log").await.text.contains("Placed an order: ord_"));
    }

    async fn an_order_is_placed_once_at_the_price_that_was_shown(gateway) with [OPEN[0], OPEN[1]] {
        let mut dev = member(gateway, Role::Developer).await;
        let price = gateway.price(PLAN).await;
        let empty = dev.open(NEW).await;
        assert!(!empty.text.contains("name=\"once\""), "nothing can be bought before its price was shown: {}", empty.text);
        let page = dev.open(FORM).await;
        assert!(page.text.contains("Japan 1 GB 7 days") && page.text.contains(&format!("Buy for {} USD", price.priced())), "{}", page.text);
        let (first, done) = bought(&mut dev, &page, &[]).await;
        assert_eq!(done, "placed");
        assert_eq!(bought(&mut dev, &page, &[]).await, (first.clone(), "placed".into()), "a form that is sent twice");
        assert_eq!((balance(gateway).await, gateway.journalled("sold").len()), (Usd::dollars(1_000).minus(price), 1));
        // With a reference of the team's own it is one order for ever, and the page says so.
        let other = dev.open("/portal/orders/new?plan=jp-1gb-7d").await;
        let (second, done) = bought(&mut dev, &other, &[("reference", " booking-7 ")]).await;
        assert_eq!((done.as_str(), second == first), ("placed", false));
        let again = dev.open(FORM).await;
        assert_eq!(bought(&mut dev, &again, &[("reference", "booking-7")]).await, (second.clone(), "known".into()));
        assert!(dev.open(&format!("{second}?done=known")).await.text.contains("Nothing was bought or charged again"));
        let taken = dev.open("/portal/orders/new?plan=JP-3GB-30D").await;
        let taken = dev.submit(&taken, NEW, &[("reference", "booking-7")]).await;
        assert!(taken.status == 409 && taken.text.contains("belongs to something else") && taken.text.contains(&second), "{}", taken.text);
        assert_eq!(gateway.journalled("sold").len(), 2);
        // The order knows who placed it, for its page and for the API.
        let shown = dev.open(&second).await;
        assert!(shown.text.contains("developer@travel.example, by hand") && shown.text.contains("booking-7"), "{}", shown.text);
        let log = dev.open("/portal/team/log").await;
        assert_eq!(log.text.matches("Placed an order").count(), 2, "{}", log.text);
    }

    async fn a_form_that_cannot_be_taken_is_shown_again(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let unknown = owner.open("/portal/orders/new?plan=NO-SUCH%3Cb%3E").await;
        assert!(unknown.status == 404 && unknown.text.contains("<title>Please check: ") && unknown.text.contains("NO-SUCH&#60;b&#62;"), "{}", unknown.text);
        let topup = owner.open("/portal/orders/new?plan=JP-1GB-7D-TOPUP").await;
        assert!(topup.status == 404 && topup.text.contains("needs a BASE plan"), "{}", topup.text);
        let page = owner.open(FORM).await;
        let dearer = owner.submit(&page, NEW, &[("choice", "JP-1GB-7D 0.01"), ("reference", "kept")]).await;
        assert!(dearer.status == 409 && dearer.text.contains("more than you were shown") && dearer.text.contains("value=\"kept\""), "{}", dearer.text);
        for wrong in ["", "JP-1GB-7D", "JP-1GB-7D x"] {
            let refused = owner.submit(&page, NEW, &[("choice", wrong)]).await;
            assert!(refused.status == 400 && refused.text.contains("Please check"), "{wrong}: {}", refused.text);
        }
        let long = "r".repeat(129);
        assert_eq!(owner.submit(&page, NEW, &[("reference", &long)]).await.status, 400);
        assert_eq!(balance(gateway).await, Usd::dollars(1_000));
        bought(&mut owner, &dearer, &[]).await;
    }

    async fn what_cannot_be_bought_costs_nothing(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let page = owner.open(FORM).await;
        gateway.supplier("reject").await;
        let refused = owner.submit(&page, NEW, &[]).await;
        assert!(refused.status == 502 && refused.text.contains("Nothing was bought"), "{}", refused.text);
        assert_eq!(balance(gateway).await, Usd::dollars(1_000));
        gateway.supplier("ok").await;
        let list = owner.open("/portal/orders?state=FAILED").await;
        assert!(list.text.contains("Not delivered"), "{}", list.text);
        // The wallet is short: the page has no button that cannot work, and says what is missing.
        let take = Adjustment {
            account: desk::account(gateway).await,
            amount: Usd::parse("999.5").unwrap(),
            kind: CreditKind::Promo,
            reason: "test".into(),
        };
        operator::adjust_wallet(&gateway.app, "test", Direction::Debit, take, None).await.unwrap();
        let short = owner.submit(&page, NEW, &[]).await;
        assert!(short.status == 402 && short.text.contains("more is needed") && short.text.contains("/portal/deposits"), "{}", short.text);
        let page = owner.open(FORM).await;
        assert!(page.text.contains("does not suffice") && !page.text.contains("name=\"once\""), "{}", page.text);
    }

    async fn data_is_added_once(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let order = place(&mut owner, "").await;
        let before = balance(gateway).await;
        let data = format!("{order}/data");
        let page = owner.open(&data).await;
        let choice = page.text.split("name=\"choice\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_string();
        let price = Usd::parse(choice.split_once(' ').unwrap().1).unwrap();
        for _ in 0..2 {
            let added = owner.submit(&page, &data, &[("choice", &choice)]).await;
            assert_eq!((added.status, added.header("location")), (303, &*format!("{order}?done=topped-up")));
        }
        assert_eq!(balance(gateway).await, before.minus(price));
        let shown = owner.open(&order).await;
        for part in ["Data added", "Top-ups", "cannot be cancelled: a top-up was bought"] {
            assert!(shown.text.contains(part), "{part}: {}", shown.text);
        }
        // A top-up has no page of its own: every way to it leads to the eSIM's.
        let file = owner.open("/portal/orders.csv").await;
        let topup = file.text.split(',').find(|cell| cell.starts_with("top_")).unwrap().to_string();
        for path in [format!("/portal/orders/{topup}"), format!("/portal/search?q={topup}")] {
            let led = owner.open(&path).await;
            assert_eq!((led.status, led.header("location")), (303, &*order), "{path}");
        }
    }

    async fn an_order_is_cancelled_after_its_rule_was_said(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let order = place(&mut owner, "").await;
        let path = format!("{order}/cancel");
        let page = owner.open(&path).await;
        let price = gateway.price(PLAN).await.priced();
        for part in ["The supplier decides", "cannot be undone", &format!("{price} USD, into the balance")] {
            assert!(page.text.contains(part), "{part}: {}", page.text);
        }
        assert!(balance(gateway).await < Usd::dollars(1_000), "looking changes nothing");
        let done = owner.submit(&page, &path, &[]).await;
        assert_eq!((done.status, done.header("location")), (303, &*format!("{order}?done=given-back")));
        assert_eq!(balance(gateway).await, Usd::dollars(1_000));
        let again = owner.submit(&page, &path, &[]).await;
        assert!(again.status == 409 && again.text.contains("Nothing was changed"), "{}", again.text);
        let shown = owner.open(&order).await;
        for part in ["<h1>Given back</h1>", "asked to take it back", "by owner@travel.example", "Taken back by the supplier"] {
            assert!(shown.text.contains(part), "{part}: {}", shown.text);
        }
        assert!(!shown.text.contains("/esim/") && !shown.text.contains(&format!("{path}\"")), "{}", shown.text);
        assert!(owner.open(&path).await.text.contains("Nothing was changed"));
    }

    /// While people at the supplier decide, nobody can install it, and it can be kept.
    async fn an_order_is_kept_after_all(gateway) with [OPEN[0], OPEN[1]] {
        gateway.supplier("reviewed").await;
        let mut owner = member(gateway, Role::Owner).await;
        let order = place(&mut owner, "").await;
        let (cancel, keep) = (format!("{order}/cancel"), format!("{order}/keep"));
        let page = owner.open(&cancel).await;
        assert!(page.text.contains("people at the supplier decide"), "{}", page.text);
        let asked = owner.submit(&page, &cancel, &[]).await;
        assert_eq!((asked.status, asked.header("location")), (303, &*format!("{order}?done=asked")));
        let shown = owner.open(&order).await;
        assert!(shown.text.contains("Being given back: the supplier decides") && !shown.text.contains("/esim/"), "{}", shown.text);
        assert!(owner.open(&format!("{order}/send")).await.text.contains("Nothing to send"));
        let page = owner.open(&cancel).await;
        let kept = owner.submit(&page, &keep, &[]).await;
        assert_eq!((kept.status, kept.header("location")), (303, &*format!("{order}?done=kept")));
        let shown = owner.open(&order).await;
        for part in ["Kept after all", "/esim/", "cannot be cancelled: the supplier does not take it back"] {
            assert!(shown.text.contains(part), "{part}: {}", shown.text);
        }
        let log = owner.open("/portal/team/log").await;
        assert_eq!((log.text.matches("Asked to give an eSIM back:").count(), log.text.matches("Kept an eSIM after all:").count()), (1, 1), "{}", log.text);
        assert!(balance(gateway).await < Usd::dollars(1_000));
    }

    /// The customer gets the way to install it, from the company, and no price.
    async fn an_esim_is_mailed_to_a_customer(gateway) with [OPEN[0], OPEN[1]] {
        let mut dev = member(gateway, Role::Developer).await;
        let order = place(&mut dev, "").await;
        let path = format!("{order}/send");
        let page = dev.open(&path).await;
        let wrong = dev.submit(&page, &path, &[("email", "nobody")]).await;
        assert!(wrong.status == 400 && wrong.text.contains("<title>Please check: ") && wrong.text.contains("value=\"nobody\""), "{}", wrong.text);
        let sent = dev.submit(&page, &path, &[("email", CUSTOMER)]).await;
        assert_eq!((sent.status, sent.header("location")), (303, &*format!("{order}?done=mailed")));
        let mail = mails(gateway, CUSTOMER).await.remove(0);
        let text = mail["text"].as_str().unwrap();
        assert_eq!(mail["subject"], "Your eSIM is ready");
        let url = text.split_whitespace().find(|word| word.contains("/esim/")).unwrap();
        for part in ["Test Travel sends you an eSIM", "Japan 1 GB 7 days"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let price = gateway.price(PLAN).await.priced();
        assert!(!text.contains(&price) && !text.contains("wallet") && !text.contains("RECEIPT"), "{text}");
        let mut customer = Visitor::new(gateway);
        assert!(customer.open(url.strip_prefix(&gateway.base).unwrap()).await.text.contains("Install your eSIM"));
        let shown = dev.open(&order).await;
        assert!(shown.text.contains("Sent to c") && shown.text.contains("by developer@travel.example"), "{}", shown.text);
        assert!(!shown.text.contains(CUSTOMER), "the address is nobody else's business: {}", shown.text);
    }

    async fn no_mailbox_is_flooded(gateway) with [OPEN[0], OPEN[1]] {
        gateway.away_from_midnight();
        let mut owner = member(gateway, Role::Owner).await;
        let (order, other) = (place(&mut owner, "").await, place(&mut owner, "").await);
        let path = format!("{order}/send");
        let page = owner.open(&path).await;
        for _ in 0..5 {
            assert_eq!(owner.submit(&page, &path, &[("email", CUSTOMER)]).await.status, 303);
            gateway.pass_time(MINUTE_MS);
        }
        let refused = owner.submit(&page, &path, &[("email", "second@example.com")]).await;
        assert!(refused.status == 429 && refused.text.contains("Try again in 55 min"), "{}", refused.text);
        assert_eq!((mails(gateway, CUSTOMER).await.len(), mails(gateway, "second@example.com").await.len()), (5, 0));
        let path = format!("{other}/send");
        let page = owner.open(&path).await;
        assert_eq!(owner.submit(&page, &path, &[("email", CUSTOMER)]).await.status, 303, "of another order");
        gateway.pass_time(HOUR_MS - 4 * MINUTE_MS);
        let path = format!("{order}/send");
        let page = owner.open(&path).await;
        assert_eq!(owner.submit(&page, &path, &[("email", CUSTOMER)]).await.status, 303, "an hour later");
    }

    async fn the_page_tells_what_happens(gateway) with [OPEN[0], OPEN[1], ("supplier_timeout_ms", "300"), ("answer_within_ms", "200")] {
        let mut viewer = member(gateway, Role::Viewer).await;
        gateway.supplier("silent").await;
        let placed = gateway.post("/api/b2b/v1/orders", json!({ "packageCode": PLAN, "partnerRefId": "<b>&" })).await.expect(202);
        let path = format!("/portal/orders/{}", placed["order"]["id"].as_str().unwrap());
        let open = viewer.open(&path).await;
        for part in ["<h1>Being prepared</h1>", "are set aside", "data-polled=\"open\"", "poll.js", "Refresh this page", &format!("API key {}", gateway.key.id), "&#60;b&#62;&#38;"] {
            assert!(open.text.contains(part), "{part}: {}", open.text);
        }
        gateway.settle().await;
        let done = viewer.open(&path).await;
        for part in ["<h1>Delivered</h1>", "Not installed yet", "data-polled=\"over\"", "<progress", "Ordered", "Your role sees no activation codes"] {
            assert!(done.text.contains(part), "{part}: {}", done.text);
        }
        assert!(!done.text.contains("poll.js"), "{}", done.text);
        let iccid = viewer.open("/portal/orders.csv").await.text.lines().nth(1).unwrap().split(',').nth(9).unwrap().to_string();
        gateway.sandbox("usage", json!({ "iccid": iccid, "usedGb": 0.5 })).await;
        gateway.pass_time(HOUR_MS);
        let used = viewer.open(&path).await;
        for part in ["<h1>Delivered</h1>", "In use", "0.5 GB left"] {
            assert!(used.text.contains(part), "{part}: {}", used.text);
        }
        // It is called the same wherever it is listed.
        for listing in ["/portal", "/portal/orders", "/portal/orders?state=FULFILLED"] {
            let listed = viewer.open(listing).await;
            assert!(listed.text.contains("Delivered</span>") && !listed.text.contains("Ready"), "{listing}: {}", listed.text);
        }
        let list = viewer.open("/portal/orders?state=FULFILLED").await;
        assert!(list.text.contains("selected>Delivered</option>") && list.text.contains(">In use</span>"), "{}", list.text);
    }
}
