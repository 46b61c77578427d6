//! Paying from a wallet on the checkout page: what a guest claimed is spent there, with a code and no agent.

use serde_json::json;
use simgate::domain::money::Usd;

use crate::support::browser::{claim, claim_code, failed, open as look, submit, wallet_of};
use crate::support::buying::*;
use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::logins::code;

const MUM: &str = "mum@example.com";
/// Clients that can be told apart, and may ask as often as a test waits for something.
const OPEN: [(&str, &str); 2] = [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")];

/// A guest's money, claimed to a wallet: what it is worth, and the page that says what to do with it.
async fn claimed(gateway: &Gateway) -> (Usd, Reply) {
    let made = failed(gateway, "kid@example.com").await;
    let otp = claim_code(gateway, id(&made), MUM).await;
    (amount(&made), claim(gateway, id(&made), MUM, &otp).await)
}

/// A code for the wallet, by the form of the checkout page.
async fn wallet_code(gateway: &Gateway, plan: &str) -> String {
    // A new mail is sent after a minute.
    gateway.pass_time(2 * MINUTE_MS);
    let asked = submit(gateway, "/checkout/code", &[("plan", plan), ("email", MUM)]).await;
    assert!(asked.status == 200 && asked.text.contains("A code was mailed"), "{}", asked.text);
    code(gateway, MUM).await
}

/// Sends a code with what the page that asks for it holds.
async fn buy(gateway: &Gateway, plan: &str, otp: &str) -> Reply {
    let price = crate::support::coupons::plan(gateway, plan).retail.to_string();
    let once = "0123456789abcdef0123456789abcdef";
    let sent = [("plan", plan), ("email", MUM), ("code", otp), ("price", &price), ("once", once)];
    submit(gateway, "/checkout/wallet", &sent).await
}

both_databases! {
    async fn what_was_claimed_buys_another_plan(gateway) with [OPEN[0], OPEN[1]] {
        let (worth, page) = claimed(gateway).await;
        assert!(page.text.contains("Pay from a wallet") && page.text.contains(&format!("/checkout?plan={PLAN}")), "{}", page.text);
        let shop = look(gateway, "/checkout?plan=JP-500MB-1D").await;
        assert!(shop.text.contains("Pay from a wallet") && shop.text.contains("action=\"/checkout/code\""), "{}", shop.text);
        let otp = wallet_code(gateway, "JP-500MB-1D").await;
        let bought = buy(gateway, "JP-500MB-1D", &otp).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
        let left = wallet_of(gateway, MUM).await;
        assert!(left < worth, "{left} of {worth}");
        let link = bought.text.split_once("/esim/").unwrap().1.split('"').next().unwrap();
        let installs = look(gateway, &format!("/esim/{link}")).await;
        assert!(installs.text.contains("LPA:1$"), "{}", installs.text);
        // The receipt goes to the wallet's address.
        gateway.until("the receipt is mailed", async || {
            let mails = crate::support::logins::mails(gateway, MUM).await;
            mails.iter().any(|mail| mail["text"].as_str().unwrap().contains("/esim/")).then_some(())
        }).await;

        // The same form again, as after a lost answer: the code is used up, and with a new one nothing more is bought.
        let again = buy(gateway, "JP-500MB-1D", &otp).await;
        assert!(again.status == 401 && again.text.contains("buys nothing again"), "{}", again.text);
        let otp = wallet_code(gateway, "JP-500MB-1D").await;
        let same = buy(gateway, "JP-500MB-1D", &otp).await;
        assert!(same.status == 200 && same.text.contains(link), "{}", same.text);
        assert_eq!(wallet_of(gateway, MUM).await, left);
        assert_eq!(gateway.journalled("sold").len(), 1);
    }

    async fn a_wallet_that_is_short_buys_nothing_and_can_be_filled(gateway) with [OPEN[0], OPEN[1]] {
        let (worth, _) = claimed(gateway).await;
        let dear = "JP-20GB-30D";
        let short = buy(gateway, dear, &wallet_code(gateway, dear).await).await;
        assert_eq!(short.status, 402, "{}", short.text);
        assert!(short.text.contains("/topup/") && short.text.contains("Nothing was bought"), "{}", short.text);
        assert_eq!(wallet_of(gateway, MUM).await, worth);
        assert!(gateway.journalled("sold").is_empty());
    }

    /// Whoever knows an address, and not its code, takes nothing from its wallet.
    async fn only_the_code_opens_the_wallet(gateway) with [OPEN[0], OPEN[1]] {
        let (worth, _) = claimed(gateway).await;
        wallet_code(gateway, PLAN).await;
        for wrong in ["", "000000", "1' OR '1'='1"] {
            assert_eq!(buy(gateway, PLAN, wrong).await.status, 401, "{wrong}");
        }
        let stranger = [("plan", PLAN), ("email", "eve@example.com"), ("code", "000000"), ("price", "9")];
        let stranger = submit(gateway, "/checkout/wallet", &stranger).await;
        assert_eq!(stranger.status, 401);
        assert_eq!(submit(gateway, "/checkout/code", &[("plan", "NO-SUCH"), ("email", MUM)]).await.status, 404);
        assert_eq!(submit(gateway, "/checkout/code", &[("plan", PLAN)]).await.status, 400);
        assert_eq!(wallet_of(gateway, MUM).await, worth);
    }

    /// The price that was shown is the most that is taken; a coupon that is not good ends it before a code is mailed.
    async fn the_price_that_was_shown_is_the_price(gateway) with [OPEN[0], OPEN[1]] {
        let (worth, _) = claimed(gateway).await;
        let asked = submit(gateway, "/checkout/code", &[("plan", PLAN), ("email", "new@example.com"), ("discount", "NOPE")]).await;
        assert!(asked.status == 422 && asked.text.contains("discount code is unknown"), "{}", asked.text);
        assert!(crate::support::logins::mails(gateway, "new@example.com").await.is_empty());
        let otp = wallet_code(gateway, "JP-500MB-1D").await;
        let sent = [("plan", "JP-500MB-1D"), ("email", MUM), ("code", &*otp), ("price", "0.01")];
        let dearer = submit(gateway, "/checkout/wallet", &sent).await;
        assert!(dearer.status == 409 && dearer.text.contains("more than you were shown"), "{}", dearer.text);
        assert_eq!(wallet_of(gateway, MUM).await, worth);
        assert!(gateway.journalled("sold").is_empty());
    }

    /// The supplier refuses: the money is in the wallet as before.
    async fn what_cannot_be_delivered_costs_nothing(gateway) with [OPEN[0], OPEN[1]] {
        let (worth, _) = claimed(gateway).await;
        let otp = wallet_code(gateway, "JP-500MB-1D").await;
        gateway.sandbox("supplier", json!({ "mode": "reject" })).await;
        assert_eq!(buy(gateway, "JP-500MB-1D", &otp).await.status, 502);
        assert_eq!(wallet_of(gateway, MUM).await, worth);
    }
}
