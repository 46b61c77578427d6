//! More data for an eSIM, from the page of the eSIM: who is offered it, paying for it as a guest, and what becomes of the
//! money when no data was added.

use serde_json::{Value, json};
use simgate::domain::email::Email;
use simgate::domain::money::Usd;
use simgate::store::checkouts;

use crate::support::browser::{
    claim, claim_code, guest, guest_record, onward, open as look, owed, submit, wallet_of,
};
use crate::support::buying::*;
use crate::support::coupons::plan;
use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::logins::mails;
use crate::support::visitor::{Visitor, hidden};

const MORE: &str = "JP-1GB-7D-TOPUP";
const KID: &str = "kid@example.com";
const MUM: &str = "mum@example.com";
/// Clients that can be told apart, and may ask as often as a test waits for something.
const OPEN: [(&str, &str); 2] = [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")];

/// A guest's eSIM that is in use: its record, and the path of its page.
async fn used(gateway: &Gateway) -> (Value, String) {
    let made = guest(gateway, KID).await;
    let done = settle(gateway, &made, "COMPLETED").await;
    set(gateway, &done, "ACTIVE").await;
    let paid = look(gateway, &format!("/pay/{}", id(&made))).await;
    let (_, rest) =
        paid.text.split_once(&format!("href=\"{}/esim/", gateway.base)).expect("a link to its page");
    (done, format!("/esim/{}", rest.split('"').next().unwrap()))
}

async fn set(gateway: &Gateway, record: &Value, status: &str) {
    let iccid = &record["esim"]["iccid"];
    gateway.sandbox("usage", json!({ "iccid": iccid, "usedGb": 0.7, "status": status })).await;
}

/// Fills in the form that is open, with a bundle and the price that it is said to cost.
async fn ask(gateway: &Gateway, page: &Reply, path: &str, choice: &str) -> Reply {
    ask_for(gateway, page, path, choice, MUM).await
}

async fn ask_for(gateway: &Gateway, page: &Reply, path: &str, choice: &str, email: &str) -> Reply {
    let form = hidden(page, path);
    let once = form.iter().find(|(name, _)| name == "once").unwrap().1.as_str();
    submit(gateway, path, &[("once", once), ("choice", choice), ("means", "USDC BASE"), ("email", email)])
        .await
}

fn choice(gateway: &Gateway) -> String {
    format!("{MORE} {}", plan(gateway, MORE).retail)
}

/// Asks for more data: the record of the checkout.
async fn asked(gateway: &Gateway, esim: &str) -> Value {
    let path = format!("{esim}/data");
    let page = look(gateway, &path).await;
    guest_record(gateway, &onward(&ask(gateway, &page, &path, &choice(gateway)).await)).await
}

both_databases! {
    async fn a_guest_adds_data(gateway) with [OPEN[0], OPEN[1]] {
        let (bought, esim) = used(gateway).await;
        let path = format!("{esim}/data");
        let shown = look(gateway, &esim).await;
        assert!(shown.text.contains("0.3 GB left") && shown.text.contains(&format!("href=\"{path}\"")), "{}", shown.text);
        let page = look(gateway, &path).await;
        assert!(page.text.contains(&choice(gateway)), "{}", page.text);
        // The same form twice opens one payment.
        let first = onward(&ask(gateway, &page, &path, &choice(gateway)).await);
        assert_eq!(onward(&ask(gateway, &page, &path, &choice(gateway)).await), first);
        let made = guest_record(gateway, &first).await;
        settle(gateway, &made, "COMPLETED").await;
        let paid = look(gateway, &format!("/pay/{first}")).await;
        assert!(paid.text.contains("Your eSIM is topped up"), "{}", paid.text);
        // Whoever was asked to pay for more data does not get to the eSIM by that.
        assert!(!paid.text.contains("/esim/") && !paid.text.contains("LPA:1$"), "{}", paid.text);
        assert!(look(gateway, &esim).await.text.contains("1.3 GB left"));
        let receipt = mails(gateway, MUM).await.remove(0);
        let text = receipt["text"].as_str().unwrap();
        let iccid = bought["esim"]["iccid"].as_str().unwrap();
        assert!(text.contains("Your eSIM is topped up") && !text.contains("/esim/") && !text.contains(iccid), "{receipt}");
        assert_eq!((gateway.journalled("sold").len(), gateway.journalled("topped").len()), (1, 1));
        assert_eq!(owed(gateway).await, Usd::ZERO);
        assert_eq!(guest_record(gateway, id(&bought)).await["esim"], bought["esim"], "nothing is to be installed anew");
    }

    /// The receipt leads to the eSIM only where the eSIM itself was mailed to.
    async fn who_bought_the_esim_is_led_back_to_it(gateway) with [OPEN[0], OPEN[1]] {
        let (bought, esim) = used(gateway).await;
        let path = format!("{esim}/data");
        let page = look(gateway, &path).await;
        let made = guest_record(gateway, &onward(&ask_for(gateway, &page, &path, &choice(gateway), KID).await)).await;
        settle(gateway, &made, "COMPLETED").await;
        let receipt = mails(gateway, KID).await.remove(0);
        let text = receipt["text"].as_str().unwrap();
        assert!(text.contains("Your eSIM is topped up") && text.contains(&esim), "{receipt}");
        assert!(text.contains(bought["esim"]["iccid"].as_str().unwrap()), "{receipt}");
    }

    async fn what_was_not_added_is_owed_and_claimed(gateway) with [OPEN[0], OPEN[1]] {
        let (_, esim) = used(gateway).await;
        let made = asked(gateway, &esim).await;
        gateway.supplier("reject").await;
        settle(gateway, &made, "FAILED").await;
        assert_eq!(owed(gateway).await, amount(&made));
        let page = look(gateway, &format!("/pay/{}", id(&made))).await;
        assert!(page.text.contains("We could not add the data to your eSIM. Your payment is safe"), "{}", page.text);
        let otp = claim_code(gateway, id(&made), KID).await;
        assert_eq!(claim(gateway, id(&made), KID, &otp).await.status, 200);
        assert_eq!((owed(gateway).await, wallet_of(gateway, KID).await), (Usd::ZERO, amount(&made)));
        gateway.supplier("ok").await;
        assert!(look(gateway, &esim).await.text.contains("0.3 GB left"));
    }

    /// The bundle is no plan for a new eSIM, and the page of its payment leads to no eSIM.
    async fn whoever_comes_too_late_begins_anew(gateway) with [OPEN[0], OPEN[1]] {
        let (_, esim) = used(gateway).await;
        let made = asked(gateway, &esim).await;
        let page = format!("/pay/{}", id(&made));
        let waiting = look(gateway, &page).await;
        assert!(waiting.text.contains("Wrong network?") && !waiting.text.contains("with another network"), "{}", waiting.text);
        gateway.pass_time(31 * MINUTE_MS);
        until_status(gateway, &made, "EXPIRED").await;
        let expired = look(gateway, &page).await;
        assert!(expired.text.contains("begin again on the eSIM&#39;s own page") && !expired.text.contains("Check out again"), "{}", expired.text);
        assert!(!waiting.text.contains("/esim/") && !expired.text.contains("/esim/"), "{}", expired.text);
    }

    /// What the form says counts as little as what anybody could have typed.
    async fn only_what_is_offered_is_sold(gateway) with [OPEN[0], OPEN[1]] {
        let (bought, esim) = used(gateway).await;
        let path = format!("{esim}/data");
        let page = look(gateway, &path).await;
        let base = plan(gateway, PLAN).retail;
        let foreign = plan(gateway, "FR-1GB-7D-TOPUP").retail;
        for (lie, status, said) in [
            (format!("{MORE} 0.01"), 409, "more than you were shown"),
            (MORE.into(), 400, "must be a plan with its price"),
            (format!("{PLAN} {base}"), 422, "This is a BASE plan"),
            (format!("FR-1GB-7D-TOPUP {foreign}"), 422, "does not fit"),
            ("NOPE 1".into(), 404, "not on sale"),
        ] {
            let refused = ask(gateway, &page, &path, &lie).await;
            assert!(refused.status == status && refused.text.contains(said), "{lie}: {} {}", refused.status, refused.text);
        }
        let nothing_was_opened = async || {
            let mum = Email::parse(MUM).unwrap();
            let opened = gateway.app.store.read(move |tx| checkouts::by_email(tx, &mum)).await.unwrap();
            assert!(opened.is_empty(), "no lie opened a payment");
        };
        nothing_was_opened().await;
        // An eSIM that has ended takes nothing, also from a form that was opened before.
        set(gateway, &bought, "EXPIRED").await;
        gateway.pass_time(MINUTE_MS);
        let ended = look(gateway, &path).await;
        assert!(ended.status == 200 && ended.text.contains("Nothing to add") && !ended.text.contains("<form"), "{}", ended.text);
        assert_eq!(ask(gateway, &page, &path, &choice(gateway)).await.status, 409);
        nothing_was_opened().await;
        // What its page sells now is another plan.
        let shown = look(gateway, &esim).await;
        assert!(!shown.text.contains("/data\"") && shown.text.contains("Buy another plan"), "{}", shown.text);
    }

    /// A form that is sent again leads to its payment, whatever has happened to the eSIM.
    async fn the_same_form_leads_to_its_payment(gateway) with [OPEN[0], OPEN[1]] {
        let (bought, esim) = used(gateway).await;
        let path = format!("{esim}/data");
        let page = look(gateway, &path).await;
        let first = onward(&ask(gateway, &page, &path, &choice(gateway)).await);
        set(gateway, &bought, "EXPIRED").await;
        gateway.pass_time(MINUTE_MS);
        assert_eq!(onward(&ask(gateway, &page, &path, &choice(gateway)).await), first);
    }

    /// A user's eSIM is filled in the account, a partner's by the partner.
    async fn each_owner_sells_in_its_own_place(gateway) with [OPEN[0], OPEN[1]] {
        let order = gateway.order(PLAN).await;
        gateway.sandbox("usage", json!({ "iccid": order["iccid"], "usedGb": 0.2, "status": "ACTIVE" })).await;
        let page = order["installUrl"].as_str().unwrap().strip_prefix(&gateway.base).unwrap();
        let shown = look(gateway, page).await;
        assert!(shown.text.contains("0.8 GB left") && !shown.text.contains("Add data"), "{}", shown.text);
        assert_eq!(look(gateway, &format!("{page}/data")).await.status, 404);
        assert_eq!(submit(gateway, &format!("{page}/data"), &[("choice", &choice(gateway))]).await.status, 404);
        let mut ann = Visitor::new(gateway);
        ann.sign_in(gateway, "ann@example.com").await;
        fund(gateway, "ann@example.com", Usd::dollars(50)).await;
        let buy = format!("/account/buy/{PLAN}");
        let form = ann.open(&buy).await;
        let bought = ann.submit(&form, &buy, &[]).await;
        let order = bought.header("location").split('?').next().unwrap();
        let page = ann.open(order).await;
        let (_, rest) = page.text.split_once(&format!("href=\"{}/esim/", gateway.base)).unwrap();
        let esim = format!("/esim/{}", rest.split('"').next().unwrap());
        let (_, rest) = page.text.split_once("<dd>89").unwrap();
        let iccid = format!("89{}", rest.split('<').next().unwrap());
        gateway.sandbox("usage", json!({ "iccid": iccid, "usedGb": 0.2, "status": "ACTIVE" })).await;
        let shown = look(gateway, &esim).await;
        assert!(shown.text.contains(&format!("href=\"{order}/data\"")), "{}", shown.text);
        assert_eq!(look(gateway, &format!("{esim}/data")).await.status, 404);
    }
}
