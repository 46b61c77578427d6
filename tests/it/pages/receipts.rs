//! Receipts as they are mailed: line by line what was charged and how it was paid, from a house with a name, in text and
//! in HTML.

use serde_json::{Value, json};
use simgate::domain::email::Email;
use simgate::domain::ids::OrderId;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::ops::checkout::{self, NewCheckout};
use simgate::ops::tokens;

use crate::support::browser::{guest, guest_record, onward, submit};
use crate::support::buying::*;
use crate::support::command_line::ok;
use crate::support::coupons::{DEAR, limited, off, plan};
use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::logins::{elsewhere, sign_in};
use crate::support::tool_caller::{buy, call, fine, log_in};

const KID: &str = "kid@example.com";
const ANN: &str = "ann@example.com";
const HOUSE: [(&str, &str); 6] = [
    ("brand_name", "Ann & Bob <eSIMs>"),
    ("brand_accent", "#123456"),
    ("brand_details", "Acme <Ltd> | 1 High Street | VAT 123456789"),
    ("support_contact", "help@shop.example"),
    ("terms_url", "https://shop.example/terms"),
    ("privacy_url", "https://shop.example/privacy"),
];

/// The mails to an address in both forms, newest first.
async fn mails(gateway: &Gateway, email: &str) -> Vec<Value> {
    let url = format!("{}/sandbox/outbox?email={email}&html=true", gateway.base);
    reply(gateway.client.get(url)).await.expect(200)["emails"].as_array().unwrap().clone()
}

/// Looks for what both forms of the newest mail must say, wherever their lines end, and for the house around it.
async fn says(gateway: &Gateway, email: &str, subject: &str, parts: &[&str]) -> Value {
    let mail = mails(gateway, email).await.swap_remove(0);
    assert_eq!(mail["subject"], subject);
    let [text, html] = ["text", "html"].map(|part| mail[part].as_str().unwrap());
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts.iter().copied().chain([
        "help@shop.example",
        "https://shop.example/terms",
        "nothing real was bought or paid",
    ]) {
        assert!(said.contains(part), "{part:?} is not in {text}");
        assert!(html.contains(part), "{part:?} is not in {html}");
    }
    assert!(said.contains("Ann & Bob <eSIMs>") && html.contains("Ann &#38; Bob &#60;eSIMs&#62;"), "{html}");
    assert!(
        !html.contains("<eSIMs>") && !html.contains("<Ltd>") && !mail.to_string().contains("LPA:1$"),
        "{html}"
    );
    mail
}

fn seller(mail: &Value) -> bool {
    let has = |part: &str, name: &str| mail[part].as_str().unwrap().contains(name);
    has("text", "Sold by\n  Acme <Ltd>\n  1 High Street\n  VAT 123456789\n")
        && has("html", "Acme &#60;Ltd&#62;<br>1 High Street<br>VAT 123456789")
}

both_databases! {
    async fn a_guest_gets_every_line_of_the_price(gateway) with [HOUSE[0], HOUSE[1], HOUSE[2], HOUSE[3], HOUSE[4], HOUSE[5]] {
        limited(gateway, "TRIP10", 5).await;
        let fields = [("plan", DEAR), ("email", KID), ("network", "POLYGON"), ("discount", "trip10")];
        let made = guest_record(gateway, &onward(&submit(gateway, "/checkout", &fields).await)).await;
        let done = settle(gateway, &made, "COMPLETED").await;
        let (price, coupon, paid) = (plan(gateway, DEAR).retail, off(&made), amount(&made));
        let small = price.minus(coupon).minus(paid);
        assert!(small.is_positive());
        let order = done["orderRef"].as_str().unwrap();
        let mail = says(gateway, KID, "Your eSIM is ready", &[
            order, "UTC", "Japan 10 GB 30 days", "10 GB · 30 days · Japan",
            &format!("{} USD", price.priced()), "Coupon TRIP10", &format!("−{} USD", coupon.priced()),
            "Small discount that marks your payment", &format!("−{} USD", small.priced()),
            &format!("{} USDT", paid.priced()), "on the Polygon network", done["esim"]["installUrl"].as_str().unwrap(),
        ]).await;
        assert!(seller(&mail), "{mail}");
        // A receipt that goes out again, later, is the same.
        gateway.pass_time(3 * HOUR_MS);
        ok(gateway, &format!("mail resend {KID}"));
        let again = mails(gateway, KID).await;
        assert_eq!(again.len(), 2);
        assert_eq!((&again[0]["text"], &again[0]["html"]), (&mail["text"], &mail["html"]));
    }

    async fn a_payment_that_was_rounded_is_what_was_paid(gateway) with [HOUSE[0], HOUSE[3], HOUSE[4]] {
        let made = guest(gateway, KID).await;
        let price = plan(gateway, PLAN).retail;
        let more = Usd::from_micros(10_000);
        assert_eq!(made["payment"]["wide"], true, "{made}");
        pay_amount(gateway, &made, price.plus(more)).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &made, "COMPLETED").await;
        says(gateway, KID, "Your eSIM is ready", &[
            &format!("{} USD", price.priced()), "Rounded up by you", "0.01 USD", &format!("{} USDT", price.plus(more).priced()),
        ]).await;
    }

    async fn a_wallet_purchase_says_whose_wallet(gateway) with [HOUSE[0], HOUSE[1], HOUSE[2], HOUSE[3], HOUSE[4], HOUSE[5]] {
        let token = sign_in(gateway, ANN, "agent").await;
        fund(gateway, ANN, Usd::dollars(50)).await;
        let price = format!("{} USD", plan(gateway, PLAN).retail.priced());
        for (to, wallet) in [(KID, "from the buyer's wallet"), (ANN, "from your wallet")] {
            let body = json!({ "packageCode": PLAN, "payWith": "wallet", "customerEmail": to });
            let bought = ask(gateway, &token, &body).await.expect(200);
            let mail = mails(gateway, to).await.swap_remove(0);
            assert!(mail["text"].as_str().unwrap().contains(wallet), "{mail}");
            let mail = says(gateway, to, "Your eSIM is ready", &[&price, "Paid", bought["orderRef"].as_str().unwrap()]).await;
            assert!(seller(&mail) && !mail["text"].as_str().unwrap().contains("Small discount"), "{mail}");
        }
    }

    async fn a_top_up_names_the_esim_that_it_filled(gateway) with [HOUSE[0], HOUSE[1], HOUSE[2], HOUSE[3], HOUSE[4], HOUSE[5]] {
        let token = log_in(gateway, ANN).await;
        fund(gateway, ANN, Usd::dollars(50)).await;
        let bought = buy(gateway, &token).await;
        let order = bought["orderId"].as_str().unwrap().to_string();
        let listed = fine(call(gateway, "get_topup_packages", json!({ "orderId": order, "token": token })).await);
        let package = listed["packages"][0]["packageCode"].as_str().unwrap().to_string();
        let new = NewCheckout {
            buyer: tokens::authenticate(&gateway.app, &token).await.unwrap().buyer(),
            package_code: package,
            esim_order: Some(OrderId::from_text(&order)),
            network: Network::Base,
            currency: Currency::Usdc,
            customer_email: Email::parse(KID),
            discount_code: None,
            reference: None,
            client: elsewhere().parse().unwrap(),
            max_price: None,
            is_offer: false,
        };
        let opened = checkout::open(&gateway.app, new).await.unwrap();
        let made = record(gateway, &json!({ "invoiceId": opened.checkout.id.as_str() })).await;
        settle(gateway, &made, "COMPLETED").await;
        let mail = says(gateway, KID, "Your eSIM is topped up", &[
            made["orderRef"].as_str().unwrap(), bought["order"]["orderNo"].as_str().unwrap(), bought["order"]["iccid"].as_str().unwrap(),
            &format!("{} USDC", amount(&made).priced()), "on the Base network", "Small discount that marks your payment",
            bought["order"]["installUrl"].as_str().unwrap(), "Nothing has to be installed",
        ]).await;
        assert!(seller(&mail), "{mail}");
    }

    /// An accent, a VAT number and whatever else an operator has: the code stays the only six digits together.
    async fn a_code_stands_alone_beside_any_brand(gateway) with [HOUSE[0], HOUSE[1], HOUSE[2], HOUSE[3], HOUSE[4], HOUSE[5]] {
        crate::support::logins::ask(gateway, ANN).await.expect(200);
        let mail = says(gateway, ANN, "Your sign-in code", &["good for 10 minutes"]).await;
        let code = crate::support::logins::code(gateway, ANN).await;
        for part in ["text", "html"] {
            assert_eq!(crate::support::logins::digit_runs(mail[part].as_str().unwrap(), 6), [code.as_str()], "{mail}");
        }
        let shown = crate::support::logins::mails(gateway, ANN).await;
        assert!(shown[0].get("html").is_none(), "only when it is asked for");
        let wrong = reply(gateway.client.get(format!("{}/sandbox/outbox?email={ANN}&html=maybe", gateway.base))).await;
        assert_eq!(wrong.problem(400), "INVALID_REQUEST");
    }
}
