//! A checkout that sells a top-up: paid on a chain it fills the eSIM, and whatever comes between, the money is spent
//! once or in the wallet. Only a tool opens such checkouts, for payers who sign (`anvil/signed_tools.rs`); here they are
//! paid by plain transfers, which count too.

use serde_json::{Value, json};
use simgate::chain::sim::Keep;
use simgate::domain::ids::{InvoiceId, OrderId};
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::refusal::Refusal;
use simgate::error::{Error, Result};
use simgate::ops::checkout::{self, NewCheckout, paid};
use simgate::ops::{find, tokens};

use crate::support::buying::*;
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::{elsewhere, mails};
use crate::support::tool_caller::{buy, call, failure, fine, log_in};

const ANN: &str = "ann@example.com";

/// Ann, with one eSIM and an empty wallet.
struct Ann<'a> {
    gateway: &'a Gateway,
    token: String,
    order: String,
    package: String,
}

impl Ann<'_> {
    async fn new(gateway: &Gateway) -> Ann<'_> {
        let token = log_in(gateway, ANN).await;
        fund(gateway, ANN, Usd::dollars(100)).await;
        let order = buy(gateway, &token).await["orderId"].as_str().unwrap().to_string();
        let listed =
            fine(call(gateway, "get_topup_packages", json!({ "orderId": order, "token": token })).await);
        let package = listed["packages"][0]["packageCode"].as_str().unwrap().to_string();
        Ann { gateway, token, order, package }
    }

    async fn open(&self, package: &str) -> Result<Value> {
        let buyer = tokens::authenticate(&self.gateway.app, &self.token).await.unwrap().buyer();
        let new = NewCheckout {
            buyer,
            package_code: package.into(),
            esim_order: Some(OrderId::from_text(&self.order)),
            network: Network::Polygon,
            currency: Currency::Usdt,
            customer_email: None,
            discount_code: None,
            reference: None,
            client: elsewhere().parse().unwrap(),
            max_price: None,
            is_offer: false,
        };
        let opened = checkout::open(&self.gateway.app, new).await?;
        Ok(record(self.gateway, &json!({ "invoiceId": opened.checkout.id.as_str() })).await)
    }

    async fn check_out(&self) -> Value {
        self.open(&self.package).await.unwrap()
    }

    async fn balance(&self) -> Usd {
        balance(self.gateway, &self.token).await
    }

    async fn topups(&self) -> Vec<Value> {
        let listed = fine(call(self.gateway, "get_user_orders", json!({ "token": self.token })).await);
        assert_eq!((&listed["total"], &listed["orders"][0]["id"]), (&json!(1), &json!(self.order)));
        listed["orders"][0]["topUps"].as_array().unwrap().clone()
    }

    async fn cancel(&self) -> Value {
        call(self.gateway, "cancel_order", json!({ "orderId": self.order, "token": self.token })).await
    }

    /// The subject of the newest mail.
    async fn news(&self) -> String {
        mails(self.gateway, ANN).await[0]["subject"].as_str().unwrap().to_string()
    }
}

fn refusal(error: Error) -> Refusal {
    match error {
        Error::Refused(refusal) => refusal,
        Error::Fault(fault) => panic!("{}", fault.what),
    }
}

both_databases! {
    async fn a_payment_tops_up_an_esim(gateway) {
        let ann = Ann::new(gateway).await;
        let before = ann.balance().await;
        let made = ann.check_out().await;
        assert_eq!((&made["status"], &made["esimOrderId"]), (&json!("PENDING_PAYMENT"), &json!(ann.order)));
        assert_eq!(ann.topups().await.len(), 0);
        let done = settle(gateway, &made, "COMPLETED").await;
        assert!(done["orderId"].as_str().unwrap().starts_with("top_"), "{done}");
        assert_eq!((&done["orderStatus"], done.get("esim")), (&json!("FULFILLED"), None));
        assert!(done["instructions"].as_str().unwrap().contains("nothing has to be installed"));
        let topups = ann.topups().await;
        assert_eq!((topups.len(), &topups[0]["id"], usd(&topups[0]["chargedUsd"])), (1, &done["orderId"], amount(&made)));
        assert_eq!(ann.balance().await, before, "the wallet is not touched");
        assert_eq!(gateway.journalled("topped").len(), 1);
        let page = gateway.client.get(format!("{}/pay/{}", gateway.base, id(&made))).send().await.unwrap().text().await.unwrap();
        assert!(page.contains("Your eSIM is topped up") && !page.contains("LPA:1$"), "{page}");
        // The operator finds it by every name.
        for text in [id(&made), made["orderRef"].as_str().unwrap(), done["orderId"].as_str().unwrap()] {
            let found = find::find(&gateway.app, text).await.unwrap();
            assert_eq!((found.checkouts.len(), found.orders.len()), (1, 1), "{text}");
        }
        // What is topped up cannot be given back.
        assert_eq!(failure(&ann.cancel().await), "NOT_CANCELLABLE");
        // The next order takes a number of its own, and is counted as an order.
        buy(gateway, &ann.token).await;
        assert_eq!(fine(call(gateway, "get_user_orders", json!({ "token": ann.token })).await)["total"], 2);
    }

    async fn only_a_plan_that_fits_is_sold(gateway) {
        let ann = Ann::new(gateway).await;
        for (package, code) in [(PLAN, "WRONG_PLAN_TYPE"), ("NOPE", "PLAN_NOT_FOUND")] {
            assert_eq!(refusal(ann.open(package).await.unwrap_err()).problem().code, code);
        }
        // Nobody fills somebody else's eSIM.
        let bob = Ann { gateway, token: log_in(gateway, "bob@example.com").await, order: ann.order.clone(), package: ann.package.clone() };
        assert_eq!(refusal(bob.open(&ann.package).await.unwrap_err()).problem().code, "ESIM_NOT_FOUND");
        // A top-up is not sold as an eSIM.
        assert_eq!(ask(gateway, &ann.token, &json!({ "packageCode": ann.package })).await.problem(422), "WRONG_PLAN_TYPE");
        fine(ann.cancel().await);
        assert_eq!(refusal(ann.open(&ann.package).await.unwrap_err()).problem().code, "ESIM_NOT_ACTIVE");
    }

    async fn a_refused_topup_is_in_the_wallet(gateway) {
        let ann = Ann::new(gateway).await;
        let (before, made) = (ann.balance().await, ann.check_out().await);
        gateway.supplier("reject").await;
        let failed = settle(gateway, &made, "FAILED").await;
        assert_eq!(usd(&failed["refund"]["amountUsd"]), amount(&made));
        assert_eq!(ann.balance().await, before.plus(amount(&made)));
        assert_eq!(ann.news().await, "Your eSIM could not be topped up");
        assert_eq!(gateway.journalled("topped").len(), 0);
        // The failure is no order's: the list still counts one.
        assert_eq!(ann.topups().await.iter().filter(|topup| topup["status"] != "FAILED").count(), 0);
    }

    async fn a_topup_in_doubt_is_asked_about_again(gateway) with [("supplier_timeout_ms", "300"), ("answer_within_ms", "200")] {
        let ann = Ann::new(gateway).await;
        let (before, made) = (ann.balance().await, ann.check_out().await);
        gateway.supplier("timeout").await;
        let waiting = settle(gateway, &made, "PROCESSING").await;
        assert_eq!(waiting["orderStatus"], "PROVISIONING");
        assert!(waiting["instructions"].as_str().unwrap().contains("being added"));
        gateway.supplier("ok").await;
        gateway.until("recovery finishes it", async || {
            gateway.pass_time(5_000);
            (record(gateway, &made).await["status"] == "COMPLETED").then_some(())
        }).await;
        assert_eq!((gateway.journalled("topped").len(), ann.balance().await), (1, before));
    }

    /// The eSIM is given back after its top-up was asked for: what is paid then is in the wallet.
    async fn an_esim_that_is_gone_is_not_topped_up(gateway) {
        let ann = Ann::new(gateway).await;
        let made = ann.check_out().await;
        fine(ann.cancel().await);
        let before = ann.balance().await;
        let failed = settle(gateway, &made, "FAILED").await;
        assert_eq!((usd(&failed["refund"]["amountUsd"]), failed.get("orderId")), (amount(&made), None));
        assert_eq!(ann.balance().await, before.plus(amount(&made)));
        assert_eq!(ann.news().await, "Your eSIM could not be topped up");
        assert_eq!(gateway.journalled("topped").len(), 0);
    }

    async fn the_operator_finds_a_payment_for_a_topup(gateway) {
        let ann = Ann::new(gateway).await;
        let (before, more) = (ann.balance().await, Usd::from_micros(40_000));
        let made = ann.check_out().await;
        pay_amount(gateway, &made, amount(&made).plus(more)).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        let waiting = unmatched(gateway, 1).await.remove(0).transfer.id;
        let assigned = paid::assign(&gateway.app, "test", &waiting, &InvoiceId::from_text(id(&made)), None).await.unwrap();
        assert_eq!((assigned.surplus, assigned.order.price), (more, amount(&made)));
        until_status(gateway, &made, "COMPLETED").await;
        assert_eq!((ann.balance().await, ann.topups().await.len()), (before.plus(more), 1));
    }

    async fn the_operator_cannot_top_up_what_is_gone(gateway) {
        let ann = Ann::new(gateway).await;
        let made = ann.check_out().await;
        fine(ann.cancel().await);
        pay_amount(gateway, &made, amount(&made).plus(Usd::from_micros(40_000))).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        let waiting = unmatched(gateway, 1).await.remove(0).transfer.id;
        let refused = paid::assign(&gateway.app, "test", &waiting, &InvoiceId::from_text(id(&made)), None).await.err().unwrap();
        assert_eq!(refusal(refused).problem().code, "ESIM_NOT_ACTIVE");
        unmatched(gateway, 1).await;
    }

    async fn a_payment_that_vanishes_is_awaited_again(gateway) {
        let ann = Ann::new(gateway).await;
        let made = ann.check_out().await;
        pay(gateway, &made).await;
        gateway.until("the payment is seen", async || {
            (record(gateway, &made).await["confirmations"].as_i64().unwrap() > 0).then_some(())
        }).await;
        gateway.app.sim_chains[&Network::Polygon].reorg(DEEP, Keep::Nothing).await.unwrap();
        gateway.until("the payment is gone", async || {
            (record(gateway, &made).await["confirmations"] == 0).then_some(())
        }).await;
        settle(gateway, &made, "COMPLETED").await;
        assert_eq!(gateway.journalled("topped").len(), 1);
    }
}
