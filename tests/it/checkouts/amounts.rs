//! Amounts: no two checkouts on one address share one while either could be paid, whatever the load, the clock and
//! the scanners do.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use futures_util::StreamExt;
use futures_util::stream;
use simgate::chain::sim::ChainMode;
use simgate::domain::checkout::{Checkout, OFFSETS};
use simgate::domain::network::{Currency, Network};
use simgate::domain::refusal::Refusal;
use simgate::error::Error;
use simgate::ops::checkout::{self, NewCheckout};
use simgate::ops::orders::Buyer;
use simgate::ops::tokens;
use simgate::store::cursors;
use simgate::store::tx::Tx;

use crate::support::buying::*;
use crate::support::database;
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::{elsewhere, sign_in};

async fn buyers(gateway: &Gateway, count: usize) -> Vec<Buyer> {
    let mut buyers = Vec::new();
    for number in 0..count {
        let token = sign_in(gateway, &format!("user{number}@example.com"), "agent").await;
        buyers.push(tokens::authenticate(&gateway.app, &token).await.unwrap().buyer());
    }
    buyers
}

/// Without the door: a page of JSON and a QR code for each would take longer than all the rest.
async fn open_many(gateway: &Gateway, buyers: &[Buyer], count: usize, network: Network) -> Vec<Checkout> {
    let open = |number: usize| {
        let new = NewCheckout {
            buyer: buyers[number % buyers.len()].clone(),
            package_code: PLAN.into(),
            esim_order: None,
            network,
            currency: Currency::Usdt,
            customer_email: None,
            discount_code: None,
            reference: None,
            client: elsewhere().parse().unwrap(),
            max_price: None,
            is_offer: false,
        };
        async move { checkout::open(&gateway.app, new).await.unwrap().checkout }
    };
    stream::iter(0..count).map(open).buffer_unordered(128).collect().await
}

fn distinct(checkouts: &[Checkout]) {
    let mut by_address: BTreeMap<&str, HashSet<i64>> = BTreeMap::new();
    for checkout in checkouts {
        let fresh = by_address.entry(&checkout.address).or_default().insert(checkout.amount.micros());
        assert!(fresh, "{} twice at {}", checkout.amount, checkout.address);
    }
}

/// Until the network was scanned up to now.
async fn scanned(gateway: &Gateway, network: Network) {
    let now = gateway.app.now();
    gateway
        .until("the scanner is there", async || {
            gateway.pass_time(200);
            let cursor =
                gateway.app.store.read(move |tx: &mut Tx| cursors::get(tx, network)).await.unwrap()?;
            (cursor.scanned_time > now).then_some(())
        })
        .await;
}

both_databases! {
    async fn five_thousand_at_once_share_no_amount(gateway)
        with [("trusted_proxies", "127.0.0.1"), ("write_queue", "10000"), ("wide_addresses_evm", "0")] {
        let buyers = buyers(gateway, 100).await;
        let first = open_many(gateway, &buyers, 5_000, Network::Polygon).await;
        distinct(&first);
        let addresses: HashSet<&str> = first.iter().map(|checkout| checkout.address.as_str()).collect();
        assert_eq!(addresses.len(), 1, "one address has room for all");
        let refs: HashSet<String> = first.iter().map(|checkout| gateway.app.numbers.of_checkout(checkout)).collect();
        assert_eq!(refs.len(), first.len());
        // A day later the scanner stands still: none of them comes again. The address has 4,999 left.
        gateway.app.sim_chains[&Network::Polygon].behave(ChainMode::Down, 0).await.unwrap();
        gateway.pass_time(26 * HOUR_MS);
        let location = gateway.app.store.location();
        database::execute(location, "UPDATE checkouts SET status = 'EXPIRED'").unwrap();
        let second = open_many(gateway, &buyers, 500, Network::Arbitrum).await;
        let all: Vec<Checkout> = first.iter().chain(&second).cloned().collect();
        distinct(&all);
        database::execute(location, &format!("UPDATE amount_rings SET next = {}", OFFSETS)).unwrap();
        let third = open_many(gateway, &buyers, 500, Network::Arbitrum).await;
        let all: Vec<Checkout> = all.iter().chain(&third).cloned().collect();
        distinct(&all);
        let addresses: HashSet<&str> = third.iter().map(|checkout| checkout.address.as_str()).collect();
        assert!(addresses.len() == 1 && !addresses.contains(first[0].address.as_str()), "the next address serves");
        // The scanner has passed them: the oldest come again, in their turn.
        gateway.app.sim_chains[&Network::Polygon].behave(ChainMode::Ok, 0).await.unwrap();
        scanned(gateway, Network::Polygon).await;
        database::execute(location, "UPDATE checkouts SET status = 'EXPIRED'").unwrap();
        let fourth = open_many(gateway, &buyers, 50, Network::Polygon).await;
        assert!(fourth.iter().all(|new| new.address == first[0].address));
        let old: HashMap<i64, &Checkout> = first.iter().map(|checkout| (checkout.amount.micros(), checkout)).collect();
        assert!(fourth.iter().all(|new| old.contains_key(&new.amount.micros())));
        distinct(&fourth);
    }

    async fn an_amount_rests_for_a_day_after_it_was_used(gateway) with [("wide_addresses_evm", "0")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let first = open(gateway, &token).await;
        let again = async || {
            turn_back(gateway, &first, 0).await;
            let new = open(gateway, &token).await;
            (address(&new), amount(&new)) == (address(&first), amount(&first))
        };
        assert!(!again().await, "it is open");
        settle(gateway, &first, "COMPLETED").await;
        gateway.pass_time(24 * HOUR_MS);
        scanned(gateway, Network::Polygon).await;
        assert!(!again().await, "it could still be paid late");
        gateway.app.sim_chains[&Network::Polygon].behave(ChainMode::Down, 0).await.unwrap();
        gateway.pass_time(2 * HOUR_MS);
        assert!(!again().await, "nobody has looked for its payments yet");
        gateway.app.sim_chains[&Network::Polygon].behave(ChainMode::Ok, 0).await.unwrap();
        scanned(gateway, Network::Polygon).await;
        assert!(again().await, "it has rested");
        assert!(!again().await, "it is somebody's again");
    }

    async fn when_every_address_is_full_nobody_is_asked(gateway) with [("wide_addresses_evm", "0")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let mut taken = HashSet::new();
        let first = open(gateway, &token).await;
        taken.insert((address(&first).to_string(), amount(&first)));
        // Each address has four amounts that are tried; the ring is turned back to them again and again.
        let location = gateway.app.store.location().clone();
        let buyer = tokens::authenticate(&gateway.app, &token).await.unwrap().buyer();
        for _ in 1..80 {
            database::execute(&location, "UPDATE amount_rings SET next = 0").unwrap();
            database::execute(&location, "UPDATE checkouts SET status = 'EXPIRED', created_at = created_at - 90000000000").unwrap();
            let new = open_many(gateway, std::slice::from_ref(&buyer), 1, Network::Polygon).await.remove(0);
            assert!(taken.insert((new.address, new.amount)));
        }
        let addresses: HashSet<&String> = taken.iter().map(|(address, _)| address).collect();
        assert_eq!(addresses.len(), 20);
        database::execute(&location, "UPDATE amount_rings SET next = 0").unwrap();
        database::execute(&location, "UPDATE checkouts SET status = 'EXPIRED', created_at = created_at - 90000000000").unwrap();
        let new = NewCheckout {
            buyer,
            package_code: PLAN.into(),
            esim_order: None,
            network: Network::Polygon,
            currency: Currency::Usdt,
            customer_email: None,
            discount_code: None,
            reference: None,
            client: IpAddr::from([10, 0, 0, 1]),
            max_price: None,
            is_offer: false,
        };
        match checkout::open(&gateway.app, new).await {
            Err(Error::Refused(Refusal::Overloaded)) => {}
            other => panic!("{}", other.map_or_else(|error| error.to_string(), |opened| opened.checkout.address)),
        }
        let full = ask(gateway, &token, &serde_json::json!({ "packageCode": PLAN })).await;
        assert_eq!(full.problem(503), "OVERLOADED");
        // TRON has addresses of its own.
        let tron = ask(gateway, &token, &serde_json::json!({ "packageCode": PLAN, "preferredNetwork": "TRON" })).await;
        tron.expect(402);
    }
}
