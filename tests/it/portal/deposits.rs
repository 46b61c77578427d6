//! Paying in on pages: who may, what is opened once, what came of it, and that nobody sees another partner's.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::role::{Ability, Role};
use simgate::ops::deposits::history::{self, Line};
use simgate::ops::operator;

use super::support::{OPEN, account_of, attributes, member, member_of, plain};
use crate::support::deposits::until_status;
use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::qr_codes;
use crate::support::visitor::{Visitor, hidden};

const DEPOSITS: &str = "/portal/deposits";
const ADDRESS: &str = "/portal/deposits/address";
const USDC: (&str, &str) = ("means", "USDC BASE");
/// More blocks than any network asks for come in this time.
const UNTIL_FINAL_MS: i64 = 6_000;

/// The token of the forms of a page.
async fn token(visitor: &mut Visitor) -> String {
    let page = visitor.open(DEPOSITS).await;
    assert_eq!(page.status, 200, "{}", page.text);
    hidden(&page, "/portal/sign-out").remove(0).1
}

/// Opens an invoice: the answer.
async fn open(visitor: &mut Visitor, amount: &str, means: &str) -> Reply {
    let form = token(visitor).await;
    visitor.post(DEPOSITS, &[("form", &form), ("amountUsd", amount), ("means", means)]).await
}

/// The invoice that an answer leads on to, as the API would name it.
#[track_caller]
fn invoice(answer: &Reply) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let (_, rest) = answer.text.split_once("href=\"/pay/").unwrap_or_else(|| panic!("{}", answer.text));
    json!({ "invoiceId": rest.split('"').next().unwrap() })
}

fn page_of(invoice: &Value) -> String {
    format!("{DEPOSITS}/{}", invoice["invoiceId"].as_str().unwrap())
}

async fn how_many(gateway: &Gateway) -> usize {
    let account = account_of(gateway, &gateway.partner).await;
    history::history(&gateway.app, account, None, 100).await.unwrap().lines.len()
}

async fn api_address(gateway: &Gateway) -> String {
    let answer = gateway.get("/api/b2b/v1/balance/address?network=BASE&currency=USDC").await.expect(200);
    answer["depositAddress"].as_str().unwrap().to_string()
}

both_databases! {
    async fn who_may_pay_in_is_a_table(gateway) with [OPEN[0], OPEN[1]] {
        for role in Role::ALL {
            let may = role.may(Ability::PayIn);
            assert_eq!(may, matches!(role, Role::Owner | Role::Finance));
            let mut visitor = member(gateway, role).await;
            let page = visitor.open(DEPOSITS).await;
            assert_eq!(page.text.contains("action=\"/portal/deposits\">"), may, "{role:?}: {}", page.text);
            let form = token(&mut visitor).await;
            let before = how_many(gateway).await;
            let amount = format!("{}", 30 + role as i64);
            for (path, fields, allowed) in [
                (DEPOSITS, vec![("amountUsd", amount.as_str()), USDC], 200),
                (DEPOSITS, vec![("amountUsd", "nothing")], 400),
                (ADDRESS, vec![USDC], 303),
                (ADDRESS, vec![], 400),
            ] {
                let fields = [fields, vec![("form", form.as_str())]].concat();
                let answer = visitor.post(path, &fields).await;
                assert_eq!(answer.status, if may { allowed } else { 403 }, "{role:?} {path}: {}", answer.text);
            }
            assert_eq!(how_many(gateway).await - before, usize::from(may), "{role:?}");
            // Without its token no form is taken, from nobody.
            assert_eq!(visitor.post(DEPOSITS, &[("amountUsd", "30"), USDC]).await.status, 403);
            let log = visitor.open("/portal/team/log").await;
            assert!(log.text.contains("Opened a deposit: 30 USDC on Base") && log.text.contains("Made the standing address: 0x"), "{}", log.text);
        }
        for path in [DEPOSITS, ADDRESS] {
            let outside = Visitor::new(gateway).post(path, &[USDC]).await;
            assert_eq!(outside.status, 303, "{path}");
        }
    }

    async fn an_invoice_is_opened_once_and_seen_to_its_end(gateway) with [OPEN[0], OPEN[1]] {
        let mut finance = member(gateway, Role::Finance).await;
        let mut viewer = member(gateway, Role::Viewer).await;
        assert!(viewer.open(DEPOSITS).await.text.contains("Nothing was paid in yet"));
        let first = invoice(&open(&mut finance, "25", "USDC BASE").await);
        assert_eq!(invoice(&open(&mut finance, "25", "USDC BASE").await), first, "sent twice");
        let record = gateway.get(&format!("/api/b2b/v1/balance/deposit/{}", first["invoiceId"].as_str().unwrap())).await.expect(200);
        assert_eq!((&record["network"], &record["currency"]), (&json!("BASE"), &json!("USDC")));
        let page = viewer.open(DEPOSITS).await;
        assert!(page.text.contains("Waiting for payment") && page.text.contains("USDC on Base") && page.text.contains("25.00"), "{}", page.text);
        assert!(viewer.open(&page_of(&first)).await.text.contains("Waiting for your payment</h1>"));
        let hash = crate::support::deposits::pay(gateway, &first, "20").await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &first, "CONFIRMED").await;
        for path in [DEPOSITS.to_string(), page_of(&first)] {
            let page = viewer.open(&path).await;
            // A simulated network has no explorer.
            assert!(page.text.contains(&hash) && page.text.contains("20.00") && !page.text.contains("basescan"), "{}", page.text);
        }
        let page = viewer.open(DEPOSITS).await;
        assert!(page.text.contains("Credited, less than asked"), "{}", page.text);
        let own = viewer.open(&page_of(&first)).await;
        let public = Visitor::new(gateway).open(&format!("/pay/{}", first["invoiceId"].as_str().unwrap())).await;
        for page in [&own, &public] {
            let said = "20.00 USD arrived, and 20.00 USD was credited to the wallet. 5.00 USDC is still open";
            assert!(page.text.contains("Paid in part</h1>") && page.text.contains(said), "{}", page.text);
            assert!(!page.text.contains("Payment confirmed") && attributes(&page.text, "href").contains(&DEPOSITS.to_string()));
        }
        // The rest, to the same address, makes it whole.
        crate::support::deposits::pay(gateway, &first, "5").await;
        gateway.pass_time(UNTIL_FINAL_MS);
        gateway.until("all of it is credited", async || {
            viewer.open(&page_of(&first)).await.text.contains("Payment confirmed</h1>").then_some(())
        }).await;
        let second = invoice(&open(&mut finance, "25", "USDC BASE").await);
        assert_ne!(first, second, "what was paid is over");
    }

    async fn another_partners_invoices_are_not_found(gateway) with [OPEN[0], OPEN[1]] {
        let mut owner = member(gateway, Role::Owner).await;
        let mine = invoice(&open(&mut owner, "40", "USDC BASE").await);
        let (other, _) = gateway.partner("Other Travel", Usd::ZERO).await;
        let mut stranger = member_of(gateway, &other, "owner@other.example", Role::Owner).await;
        assert_eq!(owner.open(&page_of(&mine)).await.status, 200);
        assert_eq!(stranger.open(&page_of(&mine)).await.status, 404);
        assert!(!stranger.open(DEPOSITS).await.text.contains(mine["invoiceId"].as_str().unwrap()));
        for unknown in ["inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U", "x", "address"] {
            let status = owner.open(&format!("{DEPOSITS}/{unknown}")).await.status;
            assert!(matches!(status, 404 | 405), "{unknown}: {status}");
        }
    }

    async fn what_is_wrong_is_said_and_what_was_typed_is_kept(gateway) with [OPEN[0], OPEN[1]] {
        let mut finance = member(gateway, Role::Finance).await;
        for (amount, means) in [("0.1", "USDC BASE"), ("many", "USDC BASE"), ("2000000", "USDC BASE"), ("30", "USDC MARS"), ("30", "")] {
            let refused = open(&mut finance, amount, means).await;
            assert!(matches!(refused.status, 400 | 422), "{amount} {means}: {}", refused.text);
            assert!(refused.text.contains("<title>Please check: ") && refused.text.contains(&format!("value=\"{amount}\"")), "{}", refused.text);
        }
        for amount in 31..36 {
            invoice(&open(&mut finance, &amount.to_string(), "USDT POLYGON").await);
        }
        let refused = open(&mut finance, "36", "USDT POLYGON").await;
        assert!(refused.status == 429 && refused.text.contains("Five payments are open"), "{}", refused.text);
        assert_eq!(refused.text.matches("href=\"/pay/").count(), 5);
        assert!(refused.text.contains("value=\"USDT POLYGON\" checked"), "{}", refused.text);
        operator::set_suspended(&gateway.app, "test", &gateway.partner, true).await.unwrap();
        assert_eq!(open(&mut finance, "50", "USDC BASE").await.status, 403);
        assert!(!finance.open(DEPOSITS).await.text.contains("name=\"amountUsd\""));
        operator::set_suspended(&gateway.app, "test", &gateway.partner, false).await.unwrap();
    }

    async fn the_standing_address_is_made_once_and_credited(gateway) with [OPEN[0], OPEN[1]] {
        let mut finance = member(gateway, Role::Finance).await;
        let mut viewer = member(gateway, Role::Viewer).await;
        let page = viewer.open("/portal/deposits?means=USDC+BASE").await;
        assert!(page.text.contains("There is none yet") && !page.text.contains("class=\"qr\""), "{}", page.text);
        let page = finance.open("/portal/deposits?means=USDC+BASE").await;
        let made = finance.submit(&page, ADDRESS, &[]).await;
        assert_eq!((made.status, made.header("location")), (303, "/portal/deposits?done=address-made&means=USDC+BASE"));
        let shown = finance.open(made.header("location")).await;
        let address = api_address(gateway).await;
        let page = viewer.open("/portal/deposits?means=USDC+BASE").await;
        for page in [&shown, &page] {
            let copied = attributes(&page.text, "data-copy");
            let uri = copied.iter().find(|text| text.starts_with("ethereum:")).unwrap();
            assert!(copied.contains(&address) && uri.ends_with(&format!("@8453/transfer?address={address}")), "{copied:?}");
            assert_eq!(qr_codes::svgs(&page.text), [address.clone(), uri.clone()]);
            assert!(page.text.contains("Send nothing real") && page.text.contains("needs no invoice"), "{}", page.text);
        }
        // Made once more by another who saw none, it is the same, and nothing new is told.
        let form = token(&mut finance).await;
        assert_eq!(finance.post(ADDRESS, &[("form", &form), ("means", "USDT POLYGON")]).await.status, 303);
        let log = finance.open("/portal/team/log").await;
        assert_eq!(log.text.matches("Made the standing address").count(), 1, "{}", log.text);
        assert!(finance.open("/portal/deposits?means=USDT+POLYGON").await.text.contains(&address));
        assert!(!finance.open("/portal/deposits?means=USDT+TRON").await.text.contains(&address));

        gateway.app.sim_chains[&Network::Polygon].pay(&address, Currency::Usdt, Usd::dollars(12)).await.unwrap();
        gateway.pass_time(UNTIL_FINAL_MS);
        gateway.until("the credit", async || (gateway.balance().await == "1012").then_some(())).await;
        let page = viewer.open(DEPOSITS).await;
        for said in ["without an invoice", "USDT on Polygon", "12.00", "Credited</span>"] {
            assert!(page.text.contains(said), "{said} in {}", page.text);
        }
    }

    async fn a_long_history_is_leafed_through(gateway) with [OPEN[0], OPEN[1]] {
        let address = api_address(gateway).await;
        let mut viewer = member(gateway, Role::Viewer).await;
        for dollars in 1..=60 {
            gateway.app.sim_chains[&Network::Base].pay(&address, Currency::Usdc, Usd::dollars(dollars)).await.unwrap();
        }
        let account = account_of(gateway, &gateway.partner).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        gateway.until("all are credited", async || {
            let page = history::history(&gateway.app, account, None, 100).await.unwrap();
            let credited = page.lines.iter().filter(|line| Line::credited(line).is_positive()).count();
            (credited == 60).then_some(())
        }).await;
        let (mut seen, mut path, mut pages) = (BTreeSet::new(), DEPOSITS.to_string(), 0);
        loop {
            let page = viewer.open(&path).await;
            let hashes: Vec<&str> = page.text.split("<code class=\"small\">").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
            assert!(hashes.len() <= 25, "{}", hashes.len());
            assert!(hashes.into_iter().all(|hash| seen.insert(hash.to_string())), "a line came twice");
            pages += 1;
            let Some((_, rest)) = page.text.split_once("rel=\"next\" href=\"") else { break };
            path = plain(rest.split('"').next().unwrap());
        }
        assert_eq!((seen.len(), pages), (60, 3));
        assert_eq!(viewer.open("/portal/deposits?before=nonsense").await.status, 200);
    }
}
