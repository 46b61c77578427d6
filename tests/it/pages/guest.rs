//! Buying as a guest: the checkout page, what it refuses, the pay page that delivers, and what becomes of money that no
//! eSIM was delivered for.

use serde_json::json;
use simgate::domain::coupon::Coupon;
use simgate::domain::money::Usd;
use simgate::ops::operator;
use simgate::store::catalog;
use simgate::store::tx::Tx;

use crate::support::browser::{
    check_out, claim, claim_code, form, guest, guest_record, onward, open as look, owed, submit, wallet_of,
};
use crate::support::buying::*;
use crate::support::coupons::{DEAR, limited, make, off, plain, plan, tally};
use crate::support::harness::{booked, both_databases, reply};
use crate::support::logins::{link, mails, sign_in, with_token};
use crate::support::visitor::hidden;

both_databases! {
    async fn a_guest_pays_and_gets_the_esim(gateway) {
        let page = look(gateway, &format!("/checkout?plan={PLAN}&discount=&utm_source=mail")).await;
        assert_eq!((page.status, page.header("cache-control")), (200, "no-store"));
        for part in ["Japan 1 GB 7 days", " USD", "name=\"email\"", "POLYGON", "TRON", "Sandbox", "/help/policy/refunds"] {
            assert!(page.text.contains(part), "{part}: {}", page.text);
        }
        let price = plan(gateway, PLAN).retail.priced();
        assert!(price.split_once('.').unwrap().1.len() == 2 && page.text.contains(&format!("<dt>You pay</dt><dd>{price} USD</dd>")), "{}", page.text);
        assert!(!page.text.contains("<script>"), "the policy would refuse it");
        let made = guest(gateway, "kid@example.com").await;
        let paying = look(gateway, &format!("/pay/{}", id(&made))).await;
        assert!(paying.text.contains(&amount(&made).to_string()) && paying.text.contains("Waiting for your payment"));
        assert_eq!(mails(gateway, "kid@example.com").await.len(), 0, "nothing before it is paid");
        let done = settle(gateway, &made, "COMPLETED").await;
        assert_eq!((done.get("owed"), done.get("refund")), (None, None));
        let delivered = look(gateway, &format!("/pay/{}", id(&made))).await;
        let esim = &done["esim"];
        for part in ["lpaString", "smdpAddress", "matchingId", "qrCodeUrl", "installUrl"] {
            assert!(delivered.text.contains(esim[part].as_str().unwrap()), "{part}: {}", delivered.text);
        }
        assert!(!delivered.text.contains("http-equiv=\"refresh\""), "nothing more happens");
        assert_eq!(mails(gateway, "kid@example.com").await[0]["subject"], "Your eSIM is ready");
        let receipt = link(gateway, "kid@example.com", "/esim/").await;
        assert_eq!(receipt, esim["installUrl"].as_str().unwrap());
        assert_eq!((owed(gateway).await, booked(&gateway.app, "held").await), (Usd::ZERO, Usd::ZERO));
        assert_eq!(booked(&gateway.app, "sales").await.negated(), usd(&made["plan"]["basePriceUsd"]));
        let unsent = look(gateway, &format!("/pay/{}/code", id(&made))).await;
        assert_eq!(unsent.status, 405);
        assert!(unsent.text.contains("use the form there") && !unsent.text.contains(" header"), "{}", unsent.text);
        let nothing = submit(gateway, &format!("/pay/{}/code", id(&made)), &[("email", "kid@example.com")]).await;
        assert_eq!(nothing.status, 409, "nothing is owed: {}", nothing.text);
    }

    /// A guest's checkout belongs to nobody: no token owns it, and nobody can name the account that stands for guests.
    async fn a_guests_checkout_belongs_to_nobody(gateway) {
        let token = sign_in(gateway, "kid@example.com", "agent").await;
        let made = guest(gateway, "kid@example.com").await;
        let path = format!("/api/agentic/order/{}", id(&made));
        assert_eq!(with_token(gateway, &token, "GET", &path).await.problem(404), "INVOICE_NOT_FOUND");
        settle(gateway, &made, "COMPLETED").await;
        let orders = with_token(gateway, &token, "GET", "/api/agentic/orders").await.expect(200);
        assert_eq!(orders["total"], 0);
        assert!(operator::account(&gateway.app, "guests").await.is_err());
        assert!(operator::accounts(&gateway.app).await.unwrap().iter().all(|account| account.no.0 > 0));
    }

    async fn pressing_the_button_twice_opens_one_checkout(gateway) {
        let page = look(gateway, &format!("/checkout?plan={PLAN}")).await;
        let (_, rest) = page.text.split_once("name=\"once\" value=\"").unwrap();
        let once = rest.split('"').next().unwrap();
        let fields = [("plan", PLAN), ("once", once), ("email", "kid@example.com"), ("network", "TRON"), ("discount", "")];
        let (first, second) = tokio::join!(submit(gateway, "/checkout", &fields), submit(gateway, "/checkout", &fields));
        assert_eq!(onward(&first), onward(&second));
        let changed = [("plan", PLAN), ("once", once), ("email", "kid@example.com"), ("network", "ARBITRUM")];
        assert_ne!(onward(&submit(gateway, "/checkout", &changed).await), onward(&first), "another wish is another checkout");
        assert_ne!(check_out(gateway, "kid@example.com").await, check_out(gateway, "kid@example.com").await);
    }

    async fn what_is_wrong_is_said_above_the_form(gateway) {
        for (fields, status, said) in [
            (vec![("plan", PLAN)], 400, "The email address is required."),
            (vec![("plan", PLAN), ("email", "no<b>body")], 400, "The email address must look like name@example.com."),
            (vec![("plan", PLAN), ("email", "a@example.com"), ("network", "SOLANA")], 400, "The network must be one of POLYGON, ARBITRUM, TRON, BASE"),
            (vec![("plan", PLAN), ("email", "a@example.com"), ("currency", "DAI")], 400, "The currency must be one of USDT, USDC"),
            (vec![("plan", PLAN), ("email", "a@example.com"), ("discount", "NONE")], 422, "This discount code is unknown"),
        ] {
            let page = submit(gateway, "/checkout", &fields).await;
            assert_eq!(page.status, status, "{fields:?}: {}", page.text);
            assert!(page.text.contains(said) && page.text.contains("role=\"alert\""), "{fields:?}: {}", page.text);
            assert!(!page.text.contains("no<b>body"), "what was typed is escaped");
        }
        for path in ["/checkout", "/checkout?plan=", "/checkout?plan=NOPE", "/checkout?plan=JP-3GB-30D-TOPUP", "/checkout?plan=JP-1GB-7"] {
            let page = look(gateway, path).await;
            assert_eq!(page.status, 404, "{path}");
            assert!(page.text.contains("This plan is not on sale") && page.text.contains("href=\"/help\""), "{path}: {}", page.text);
        }
        assert_eq!(submit(gateway, "/checkout", &[("plan", "NOPE"), ("email", "a@example.com")]).await.status, 404);
        let json = gateway.client.post(format!("{}/checkout", gateway.base)).header("content-type", "application/json").body("{}");
        assert_eq!(reply(json).await.problem(415), "UNSUPPORTED_MEDIA_TYPE");
        let long = "x".repeat(70_000);
        assert_eq!(reply(form(gateway, "/checkout", &[("plan", long.as_str())])).await.status, 413);
    }

    /// Whoever knows what a form is known by learns of its invoice: no link may choose it for somebody else.
    async fn a_link_does_not_name_the_form(gateway) {
        let chosen = "0123456789abcdef0123456789abcdef";
        let page = look(gateway, &format!("/checkout?plan={PLAN}&once={chosen}&email=kid@example.com")).await;
        let names = hidden(&page, "/checkout");
        let once = &names.iter().find(|(name, _)| name == "once").unwrap().1;
        assert!(once.len() == 32 && once != chosen, "{once}");
        let again = submit(gateway, "/checkout", &[("plan", PLAN), ("once", chosen), ("email", "kid"), ("apply", "1")]).await;
        assert!(hidden(&again, "/checkout").iter().all(|(_, value)| value != chosen), "{}", again.text);
    }

    /// No site uses up what its visitors may ask for here, or has codes mailed in their names.
    async fn forms_of_other_sites_are_refused(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        let fields = [("plan", PLAN), ("email", "kid@example.com"), ("network", "POLYGON")];
        for path in ["/checkout", "/checkout/code", "/checkout/wallet", "/pay/inv_x/code", "/pay/inv_x/claim", "/topup/x", "/esim/x/data"] {
            for (name, value) in [("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site"), ("origin", "https://evil.example")] {
                let refused = reply(form(gateway, path, &fields).header(name, value)).await;
                assert!(refused.status == 403 && refused.text.contains("Nothing was changed"), "{path} {value}: {}", refused.text);
            }
            let own = reply(form(gateway, path, &fields).header("sec-fetch-site", "same-origin").header("origin", "null")).await;
            assert_ne!(own.status, 403, "{path}: {}", own.text);
        }
        assert_eq!(mails(gateway, "kid@example.com").await.len(), 1, "the code that our own form asked for");
        // Nor does an image of theirs guess discount codes.
        limited(gateway, "TRIP10", 2).await;
        let address = "203.0.113.9";
        let visit = async |code: &str, kind: &'static str| {
            let url = format!("{}/checkout?plan={PLAN}&discount={code}", gateway.base);
            reply(gateway.client.get(url).header("x-forwarded-for", address).header("sec-fetch-dest", kind)).await
        };
        for n in 0..30 {
            let unseen = visit(&format!("NOPE{n}"), "image").await;
            assert!(unseen.status == 200 && !unseen.text.contains("This discount code"), "{}", unseen.text);
        }
        assert!(visit("TRIP10", "document").await.text.contains("Coupon TRIP10"));
    }

    /// A form of a thousand fields, or of bytes that are no text, is answered shortly.
    async fn a_form_has_so_many_fields(gateway) {
        for junk in ["=%ff&", "a=1&", "%ff=%FF&"] {
            let body = format!("plan={PLAN}&email=kid@example.com&{}", junk.repeat(60_000 / junk.len()));
            let request = form(gateway, "/checkout", &[]).body(body);
            let refused = reply(request).await;
            assert!(refused.status == 400 && refused.text.contains("at most 100 parameters"), "{junk}: {}", refused.text);
            assert!(refused.text.len() < 30_000, "{junk}: {} bytes", refused.text.len());
        }
    }

    async fn a_guest_chooses_token_and_network(gateway) with [("tron_usdc", "off")] {
        let page = look(gateway, &format!("/checkout?plan={PLAN}&network=base&currency=usdc")).await;
        assert!(page.text.contains("value=\"USDC BASE\" checked"), "{}", page.text);
        assert!(page.text.contains("value=\"USDT TRON\"") && !page.text.contains("value=\"USDC TRON\""), "{}", page.text);
        let fields = |network, currency| [("plan", PLAN), ("email", "kid@example.com"), ("network", network), ("currency", currency)];
        let refused = submit(gateway, "/checkout", &fields("TRON", "USDC")).await;
        assert_eq!(refused.status, 422);
        assert!(refused.text.contains("This currency is not accepted on this network") && refused.text.contains("role=\"alert\""), "{}", refused.text);
        let made = guest_record(gateway, &onward(&submit(gateway, "/checkout", &fields("BASE", "USDC")).await)).await;
        assert_eq!((&made["payment"]["currency"], &made["payment"]["network"]), (&json!("USDC"), &json!("BASE")));
        let paying = look(gateway, &format!("/pay/{}", id(&made))).await;
        assert!(paying.text.contains(" USDC on Base"), "{}", paying.text);
        settle(gateway, &made, "COMPLETED").await;
    }

    async fn a_failed_one_is_owed_and_claimed(gateway) {
        let made = guest(gateway, "kid@example.com").await;
        gateway.supplier("reject").await;
        let failed = settle(gateway, &made, "FAILED").await;
        assert_eq!(usd(&failed["owed"]["amountUsd"]), amount(&made));
        assert_eq!(failed["owed"]["claimUrl"], json!(format!("{}/pay/{}", gateway.base, id(&made))));
        assert_eq!(failed.get("refund"), None);
        assert_eq!((owed(gateway).await, booked(&gateway.app, "held").await), (amount(&made), Usd::ZERO));
        let page = look(gateway, &format!("/pay/{}", id(&made))).await;
        assert!(page.text.contains("owed to you") && page.text.contains(&format!("Claim {} USD", amount(&made))), "{}", page.text);
        assert_eq!(mails(gateway, "kid@example.com").await[0]["subject"], "Your eSIM could not be delivered");
        assert_eq!(link(gateway, "kid@example.com", "/pay/").await, failed["owed"]["claimUrl"].as_str().unwrap());

        let otp = claim_code(gateway, id(&made), "mum@example.com").await;
        let wrong = if otp == "000000" { "000001" } else { "000000" };
        let refused = claim(gateway, id(&made), "mum@example.com", wrong).await;
        assert_eq!(refused.status, 401);
        assert!(refused.text.contains("wrong, used or expired"), "{}", refused.text);
        assert_eq!(owed(gateway).await, amount(&made));
        let page = claim(gateway, id(&made), "mum@example.com", &otp).await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert!(page.text.contains(&format!("{} USD is in your wallet", amount(&made))), "{}", page.text);
        assert_eq!((owed(gateway).await, wallet_of(gateway, "mum@example.com").await), (Usd::ZERO, amount(&made)));

        let claimed = guest_record(gateway, id(&made)).await;
        assert_eq!((claimed.get("owed"), &claimed["refund"]["to"]), (None, &json!("WALLET")));
        assert!(!look(gateway, &format!("/pay/{}", id(&made))).await.text.contains("/code\""), "nothing is left to claim");
        assert_eq!(claim(gateway, id(&made), "mum@example.com", &otp).await.status, 409);
        assert_eq!(wallet_of(gateway, "mum@example.com").await, amount(&made));

        gateway.supplier("ok").await;
        gateway.pass_time(61_000);
        let token = sign_in(gateway, "mum@example.com", "agent").await;
        assert_eq!(balance(gateway, &token).await, amount(&made));
        let path = format!("/api/agentic/order/{}", id(&made));
        assert_eq!(with_token(gateway, &token, "GET", &path).await.expect(200)["status"], "FAILED", "it is hers now");
    }

    async fn money_that_no_plan_is_for_is_owed(gateway) {
        let made = guest(gateway, "kid@example.com").await;
        settle(gateway, &made, "COMPLETED").await;
        pay(gateway, &made).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        gateway.until("the second payment is owed", async || (owed(gateway).await == amount(&made)).then_some(())).await;
        assert_eq!(mails(gateway, "kid@example.com").await[0]["subject"], "Your second payment is owed to you");
        let page = look(gateway, &format!("/pay/{}", id(&made))).await;
        assert!(page.text.contains("LPA:1$") && page.text.contains("Claim "), "delivered, and owed: {}", page.text);
        let otp = claim_code(gateway, id(&made), "mum@example.com").await;
        assert_eq!(claim(gateway, id(&made), "mum@example.com", &otp).await.status, 200);
        // Whoever has claimed it owns what still comes.
        pay(gateway, &made).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        let twice = amount(&made).plus(amount(&made));
        gateway.until("the third payment is hers", async || (wallet_of(gateway, "mum@example.com").await == twice).then_some(())).await;
        assert_eq!(owed(gateway).await, Usd::ZERO);
        assert_eq!(mails(gateway, "mum@example.com").await[0]["subject"], "Your second payment is in your wallet");
    }

    async fn what_comes_too_late_is_owed(gateway) {
        let made = guest(gateway, "kid@example.com").await;
        gateway.pass_time(31 * MINUTE_MS);
        until_status(gateway, &made, "EXPIRED").await;
        let withdraw = |tx: &mut Tx| {
            catalog::withdraw(tx, PLAN)?;
            catalog::publish(tx)
        };
        gateway.app.store.write(0, withdraw).await.unwrap();
        let failed = settle(gateway, &made, "FAILED").await;
        assert_eq!(usd(&failed["owed"]["amountUsd"]), amount(&made));
        assert_eq!(mails(gateway, "kid@example.com").await[0]["subject"], "Your payment came too late");
        let otp = claim_code(gateway, id(&made), "kid@example.com").await;
        assert_eq!(claim(gateway, id(&made), "kid@example.com", &otp).await.status, 200);
        assert_eq!(wallet_of(gateway, "kid@example.com").await, amount(&made));
    }

    async fn goodwill_for_a_guest_is_owed_too(gateway) {
        let made = guest(gateway, "kid@example.com").await;
        let done = settle(gateway, &made, "COMPLETED").await;
        let order = done["orderId"].as_str().unwrap();
        let cent = Usd::from_micros(10_000);
        let left = operator::refund_order(&gateway.app, "test", order, cent, "slow network").await.unwrap();
        assert_eq!((left, owed(gateway).await), (cent, cent));
        assert!(operator::refund_order(&gateway.app, "test", order, amount(&made), "more than its price").await.is_err());
        let otp = claim_code(gateway, id(&made), "kid@example.com").await;
        assert_eq!(claim(gateway, id(&made), "kid@example.com", &otp).await.status, 200);
        let left = operator::refund_order(&gateway.app, "test", order, cent, "slow again").await.unwrap();
        assert_eq!((left, owed(gateway).await), (cent.plus(cent), Usd::ZERO), "it has an owner now");
    }

    async fn a_guest_may_have_a_coupon(gateway) with [("trusted_proxies", "127.0.0.1")] {
        limited(gateway, "TRIP10", 4).await;
        make(gateway, Coupon { uses_per_user: Some(1), ..plain(gateway, "ONEEACH", 10) }).await;
        let price = plan(gateway, DEAR).retail;
        let page = look(gateway, &format!("/checkout?plan={DEAR}&discount=trip10")).await;
        let fields = [("plan", DEAR), ("email", "kid@example.com"), ("discount", "trip10")];
        let made = guest_record(gateway, &onward(&submit(gateway, "/checkout", &fields).await)).await;
        let asked = price.minus(off(&made));
        assert!(off(&made).is_positive() && amount(&made) < asked, "{made}");
        let lines = |page: &str| page.contains("Coupon TRIP10") && page.contains(&format!("<dt>You pay</dt><dd>{} USD</dd>", asked.priced()));
        assert!(lines(&page.text), "{}", page.text);
        assert_eq!(tally(gateway, "TRIP10").await, (1, 0));
        let slip = submit(gateway, "/checkout", &[("plan", DEAR), ("email", "kid"), ("discount", "trip10")]).await;
        assert!(lines(&slip.text), "a slip costs no discount: {}", slip.text);
        let slips = submit(gateway, "/checkout", &[("plan", DEAR), ("email", "kid"), ("discount", "NOPE")]).await;
        for said in ["must look like name@example.com.", "This discount code is unknown", &format!("{} USD", price.priced())] {
            assert!(slips.text.contains(said), "{said}: {}", slips.text);
        }
        settle(gateway, &made, "COMPLETED").await;
        assert_eq!(tally(gateway, "TRIP10").await, (0, 1));
        assert_eq!(booked(&gateway.app, "discount:coupon").await, off(&made));

        let second = guest_record(gateway, &onward(&submit(gateway, "/checkout", &fields).await)).await;
        assert_eq!(submit(gateway, "/checkout", &fields).await.status, 422, "guests together have half of what is left");
        gateway.supplier("reject").await;
        let failed = settle(gateway, &second, "FAILED").await;
        assert_eq!((usd(&failed["owed"]["amountUsd"]), tally(gateway, "TRIP10").await), (amount(&second), (0, 1)));

        // Nobody knows how often a guest was here.
        let fields = [("plan", DEAR), ("email", "kid@example.com"), ("discount", "ONEEACH")];
        let refused = submit(gateway, "/checkout", &fields).await;
        assert!(refused.status == 422 && refused.text.contains("only for customers who are signed in"), "{}", refused.text);
        let page = look(gateway, &format!("/checkout?plan={DEAR}&discount=NOPE")).await;
        assert_eq!(page.status, 200, "a link with an old code still leads to the plan");
        assert!(page.text.contains("This discount code is unknown") && page.text.contains(&format!("{} USD", price.priced())), "{}", page.text);
    }
}
