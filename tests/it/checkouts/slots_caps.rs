//! Slots are few: nobody holds many, half of them are for those who have paid before, and whoever gets none is told so.
//! Two gateways on one database never give one slot to two.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::checkouts::slots::{open_at, set_price};
use crate::support::browser;
use crate::support::buying::*;
use crate::support::database;
use crate::support::harness::{Db, both_databases, reply};
use crate::support::logins::{code_in, sign_in};
use crate::support::process::on_site;

fn is_wide(checkout: &Value) -> bool {
    checkout["payment"]["wide"].as_bool().unwrap()
}

both_databases! {
    async fn an_account_holds_one_slot_at_a_price_and_three_on_a_network(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let on = async |network: &str, cents: i64| {
            set_price(gateway, cents);
            let body = json!({ "packageCode": PLAN, "preferredNetwork": network });
            ask(gateway, &token, &body).await.expect(402)
        };
        let first = on("POLYGON", 500).await;
        assert!(is_wide(&first));
        let narrow = on("POLYGON", 500).await;
        assert!(!is_wide(&narrow) && address(&narrow) != address(&first));
        let told = record(gateway, &narrow).await["instructions"].as_str().unwrap().to_string();
        assert!(told.contains(&format!("exactly {}", amount(&narrow))), "{told}");
        assert!(is_wide(&on("ARBITRUM", 500).await), "another network");
        assert!(is_wide(&on("POLYGON", 900).await) && is_wide(&on("POLYGON", 1_300).await));
        assert!(!is_wide(&on("POLYGON", 1_700).await), "three on a network");
        // One that expired unpaid is still held; one that is paid is not counted.
        expire(gateway, &first).await;
        assert!(!is_wide(&on("POLYGON", 500).await));
        settle(gateway, &first, "COMPLETED").await;
        assert!(is_wide(&on("POLYGON", 500).await));
        assert!(!is_wide(&on("POLYGON", 1_700).await));
    }

    async fn a_guests_network_holds_few_slots(gateway) with [("trusted_proxies", "127.0.0.1"), ("wide_addresses_evm", "1000")] {
        let guest = async |client: &str, cents: i64| {
            set_price(gateway, cents);
            let fields = [("plan", PLAN), ("email", "ann@example.com"), ("network", "POLYGON")];
            let page = browser::form_from(gateway, client, "/checkout", &fields);
            is_wide(&browser::guest_record(gateway, &browser::onward(&reply(page).await)).await)
        };
        assert!(guest("192.0.2.1", 500).await && !guest("192.0.2.1", 500).await);
        assert!(guest("192.0.2.2", 500).await, "another client");
        // A /64 is one client; a /56 may have two of a price, a /48 four.
        assert!(guest("2001:db8:1::1", 500).await && !guest("2001:db8:1::2", 500).await);
        assert!(guest("2001:db8:1:1::1", 500).await && !guest("2001:db8:1:2::1", 500).await);
        assert!(guest("2001:db8:1:100::1", 500).await && guest("2001:db8:1:101::1", 500).await);
        assert!(!guest("2001:db8:1:200::1", 500).await && guest("2001:db8:2::1", 500).await);
        // Three prices for a client.
        assert!(guest("192.0.2.1", 900).await && guest("192.0.2.1", 1_300).await && !guest("192.0.2.1", 1_700).await);
    }

    async fn half_of_the_slots_are_for_those_who_have_paid(gateway) with [("wide_addresses_evm", "2")] {
        let paid = sign_in(gateway, "paid@example.com", "agent").await;
        set_price(gateway, 3_000);
        let made = open(gateway, &paid).await;
        settle(gateway, &made, "COMPLETED").await;
        assert!(is_wide(&open_at(gateway, "ann@example.com", 500).await));
        let full = open_at(gateway, "bob@example.com", 500).await;
        assert!(!is_wide(&full), "the strangers' half is full");
        assert!(full["payment"]["minAmount"] == full["payment"]["maxAmount"]);
        set_price(gateway, 500);
        assert!(is_wide(&open(gateway, &paid).await));
        settle(gateway, &full, "COMPLETED").await;
    }

    async fn without_slots_every_amount_is_exact(gateway) with [("wide_addresses_evm", "0")] {
        let made = open_at(gateway, "ann@example.com", 449).await;
        assert!(!is_wide(&made));
        pay_amount(gateway, &made, usd(&json!(4.49))).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        unmatched(gateway, 1).await;
        assert!(database::rows(gateway.app.store.location(), "SELECT address FROM slots").is_empty());
        settle(gateway, &made, "COMPLETED").await;
    }
}

/// Many people on two gateways want a slot at one price at once.
#[test]
#[ignore = "needs PostgreSQL"]
fn two_gateways_share_no_slot_postgres() {
    on_site(
        Db::Postgres,
        vec![("trusted_proxies", "127.0.0.1"), ("wide_addresses_evm", "40")],
        async |site| {
            let servers = [site.start().await, site.start().await];
            let client = &crate::support::harness::client().build().unwrap();
            let post = async |base: &str, path: &str, from: &str, token: &str, body: Value| {
                let request = client.post(format!("{base}{path}")).header("content-type", "application/json");
                let request = request
                    .header("x-forwarded-for", from)
                    .header("authorization", format!("Bearer {token}"));
                reply(request.body(body.to_string())).await
            };
            let mut tokens = Vec::new();
            for number in 0..30 {
                let (base, email, from) =
                    (&servers[0].base, format!("user{number}@example.com"), format!("10.1.0.{number}"));
                let asked = json!({ "email": email });
                post(base, "/api/agentic/auth/request-otp", &from, "", asked).await.expect(200);
                let outbox =
                    reply(client.get(format!("{base}/sandbox/outbox?email={email}"))).await.expect(200);
                let code = json!({ "email": email, "otp": code_in(&outbox) });
                let made = post(base, "/api/agentic/auth/verify-otp", &from, "", code).await.expect(200);
                tokens.push((made["token"].as_str().unwrap().to_string(), from));
            }
            let opened = join_all(tokens.iter().enumerate().flat_map(|(number, (token, from))| {
                let (servers, post) = (&servers, &post);
                (0..3).map(move |turn| async move {
                    let base = &servers[(number + turn) % 2].base;
                    let body = json!({ "packageCode": PLAN });
                    post(base, CHECKOUT, from, token, body).await.expect(402)
                })
            }))
            .await;
            let places: HashSet<(String, String)> = opened
                .iter()
                .map(|made| (address(made).to_string(), made["payment"]["expectedAmountUnits"].to_string()))
                .collect();
            assert_eq!(places.len(), opened.len(), "no two ask for one amount at one address");
            let wide: Vec<&str> = opened.iter().filter(|made| is_wide(made)).map(address).collect();
            let apart: HashSet<&str> = wide.iter().copied().collect();
            assert_eq!(wide.len(), apart.len(), "each has an address of his own");
            assert!((10..=20).contains(&wide.len()), "{} of 20 that strangers may have", wide.len());
            site.verify_books().await;
        },
    );
}
