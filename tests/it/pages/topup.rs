//! Magic links: a page that tops up one user's wallet. It ends by itself, asks for enough, opens one deposit however
//! often its button is pressed, and opens nothing else.

use futures_util::future::join_all;
use serde_json::json;
use simgate::domain::money::Usd;
use simgate::ops::magic_link;
use simgate::ops::operator;
use simgate::store::tx::Tx;
use simgate::store::{Location, invoices};

use crate::support::browser::{onward, open, submit, wallet_of};
use crate::support::buying::{MINUTE_MS, UNTIL_FINAL_MS, account, balance};
use crate::support::database;
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::{sign_in, with_token};
use crate::support::tool_caller::{call, fine};

const EMAIL: &str = "ann@example.com";
const MEANS: (&str, &str) = ("means", "USDC BASE");

/// A link for Ann's wallet: the path of its page.
async fn link(gateway: &Gateway, minimum: Usd) -> String {
    let made = magic_link::create(&gateway.app, account(gateway, EMAIL).await, minimum).await.unwrap();
    made.url.strip_prefix(&gateway.base).expect("an address of ours").to_string()
}

async fn pay(gateway: &Gateway, invoice: &str) {
    gateway.sandbox("pay", json!({ "invoiceId": invoice })).await;
    gateway.pass_time(UNTIL_FINAL_MS);
}

both_databases! {
    async fn a_link_tops_up_the_wallet(gateway) {
        let token = sign_in(gateway, EMAIL, "agent").await;
        let path = link(gateway, Usd::parse("2.49").unwrap()).await;
        let page = open(gateway, &path).await;
        assert_eq!((page.status, page.header("cache-control"), page.header("referrer-policy")), (200, "no-store", "no-referrer"));
        for part in ["a***@example.com", "2.49 USD", "USDT<span class=\"unseen\"> on TRON</span>", "USDC<span class=\"unseen\"> on Base</span>", "Sandbox"] {
            assert!(page.text.contains(part), "{part}: {}", page.text);
        }
        assert!(!page.text.contains(EMAIL) && !page.text.contains("<script>"));
        let invoice = onward(&submit(gateway, &path, &[("amountUsd", "2.50"), ("means", "USDT TRON")]).await);
        let paying = open(gateway, &format!("/pay/{invoice}")).await;
        assert!(paying.text.contains("2.5 USDT") && paying.text.contains("TRON"), "{}", paying.text);
        pay(gateway, &invoice).await;
        let paid = Usd::parse("2.5").unwrap();
        gateway.until("the wallet is topped up", async || (balance(gateway, &token).await == paid).then_some(())).await;
        let lines = fine(call(gateway, "get_wallet_transactions", json!({ "token": token })).await);
        assert_eq!((&lines["transactions"][0]["type"], &lines["transactions"][0]["invoiceId"]), (&json!("DEPOSIT"), &json!(invoice)));
    }

    async fn a_link_asks_for_enough(gateway) {
        sign_in(gateway, EMAIL, "agent").await;
        let path = link(gateway, Usd::parse("12.34").unwrap()).await;
        for (amount, said) in [
            ("12.33", "The amount must be at least 12.34."),
            ("0", "The amount must be a number"),
            ("-20", "The amount must be a number"),
            ("lots", "The amount must be a number"),
            ("20.0000001", "The amount must be a number"),
            ("1000001", "The amount must be at most 1000000."),
            ("", "The amount is required."),
        ] {
            let page = submit(gateway, &path, &[("amountUsd", amount), MEANS]).await;
            assert_eq!(page.status, 400, "{amount}: {}", page.text);
            assert!(page.text.contains(said), "{amount}: {}", page.text);
        }
        for means in ["", "USDC", "DOGE BASE", "USDC MARS"] {
            assert_eq!(submit(gateway, &path, &[("amountUsd", "20"), ("means", means)]).await.status, 400, "{means}");
        }
        onward(&submit(gateway, &path, &[("amountUsd", "12.34"), MEANS]).await);
        let smallest = link(gateway, Usd::from_micros(1)).await;
        let page = submit(gateway, &smallest, &[("amountUsd", "0.99"), MEANS]).await;
        assert!(page.text.contains("must be at least 1."), "{}", page.text);
        onward(&submit(gateway, &smallest, &[("amountUsd", "1"), MEANS]).await);
    }

    async fn a_link_ends_after_thirty_minutes(gateway) {
        sign_in(gateway, EMAIL, "agent").await;
        let path = link(gateway, Usd::dollars(5)).await;
        gateway.pass_time(29 * MINUTE_MS);
        let fields = [("amountUsd", "5"), MEANS];
        let invoice = onward(&submit(gateway, &path, &fields).await);
        gateway.pass_time(MINUTE_MS);
        let (shown, sent) = (open(gateway, &path).await, submit(gateway, &path, &fields).await);
        assert_eq!((shown.status, sent.status), (404, 404));
        assert!(shown.text.contains("30 minutes are over") && sent.text.contains("30 minutes are over"));
        assert!(open(gateway, "/topup/nonsense").await.text.contains("30 minutes are over"), "one answer for both");
        // What was opened in time goes on.
        pay(gateway, &invoice).await;
        gateway.until("the money arrives", async || (wallet_of(gateway, EMAIL).await == Usd::dollars(5)).then_some(())).await;
    }

    async fn the_button_pressed_twice_opens_one_deposit(gateway) {
        sign_in(gateway, EMAIL, "agent").await;
        let path = link(gateway, Usd::dollars(5)).await;
        let fields = [("amountUsd", "7"), MEANS];
        let pages = join_all((0..6).map(|_| submit(gateway, &path, &fields))).await;
        let first = onward(&pages[0]);
        assert!(pages.iter().all(|page| onward(page) == first));
        let other = onward(&submit(gateway, &path, &[("amountUsd", "8"), MEANS]).await);
        assert_ne!(other, first);
        pay(gateway, &other).await;
        gateway.until("eight dollars arrive", async || (wallet_of(gateway, EMAIL).await == Usd::dollars(8)).then_some(())).await;
        assert_ne!(onward(&submit(gateway, &path, &[("amountUsd", "8"), MEANS]).await), other, "a paid one is not asked for again");
        let no = account(gateway, EMAIL).await;
        let count = move |tx: &mut Tx| invoices::open(tx, no, simgate::domain::network::Network::Base);
        assert_eq!(gateway.app.store.read(count).await.unwrap().len(), 2);
    }

    async fn with_five_payments_open_the_page_leads_to_them(gateway) {
        sign_in(gateway, EMAIL, "agent").await;
        let path = link(gateway, Usd::dollars(5)).await;
        let first = open(gateway, &path).await;
        assert!(first.text.contains("At least 5.00 USD."), "{}", first.text);
        assert!(first.text.find("USDC<span") < first.text.find("USDT<span"), "USDC is offered first: {}", first.text);
        let mut waiting = Vec::new();
        for amount in ["5", "6", "7", "8", "9"] {
            let sent = submit(gateway, &path, &[("amountUsd", amount), MEANS]).await;
            assert!(sent.text.contains("how the payment stands") && !sent.text.contains("what you buy"), "{}", sent.text);
            waiting.push(onward(&sent));
        }
        let full = submit(gateway, &path, &[("amountUsd", "10"), MEANS]).await;
        assert!(full.status == 429 && full.text.contains("Five payments are open"), "{}", full.text);
        assert!(!full.header("retry-after").is_empty());
        for invoice in waiting {
            assert!(full.text.contains(&format!("href=\"/pay/{invoice}\"")), "{invoice}: {}", full.text);
        }
        // Another network has room.
        onward(&submit(gateway, &path, &[("amountUsd", "10"), ("means", "USDT TRON")]).await);
    }

    /// It is no token, it is nowhere in the database, and a suspended account cannot be topped up.
    async fn a_link_opens_nothing_else(gateway) {
        let token = sign_in(gateway, EMAIL, "agent").await;
        let path = link(gateway, Usd::dollars(5)).await;
        let secret = path.rsplit('/').next().unwrap();
        assert!(secret.len() >= 43 && secret.bytes().all(|b| b.is_ascii_alphanumeric()));
        for place in ["/api/agentic/wallet", "/api/agentic/orders", "/api/agentic/auth/tokens"] {
            assert_eq!(with_token(gateway, secret, "GET", place).await.problem(401), "UNAUTHENTICATED");
        }
        for place in ["esim", "qr", "pay", "revoke-token", "not-me"] {
            assert_eq!(open(gateway, &format!("/{place}/{secret}")).await.status, 404, "{place}");
        }
        let location = &gateway.app.settings.database;
        let hash = match location {
            Location::Sqlite(_) => "SELECT lower(hex(hash)) FROM magic_links",
            Location::Postgres(_) => "SELECT encode(hash, 'hex') FROM magic_links",
        };
        assert_eq!(database::rows(location, hash), [[simgate::vault::hex(&simgate::vault::hash_secret(secret))]]);
        let user = operator::set_suspended(&gateway.app, "test", EMAIL, true).await.unwrap();
        assert!(user.suspended);
        assert_eq!(submit(gateway, &path, &[("amountUsd", "5"), MEANS]).await.status, 403);
        let shown = open(gateway, &path).await;
        assert!(shown.status == 403 && shown.text.contains("This account is suspended"), "{}", shown.text);
        assert_eq!(balance(gateway, &token).await, Usd::ZERO);
    }
}
