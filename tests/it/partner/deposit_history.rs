//! The history of deposits: every invoice with what came to it, and every payment that came without one.

use serde_json::{Value, json};
use simgate::chain::sim::Payment;
use simgate::domain::ids::AccountNo;
use simgate::domain::invoice::InvoiceStatus;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::ops::deposits::history::{Cursor, Line, Page};
use simgate::ops::{deposits, operator};

use crate::support::deposits::{id, pay};
use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{API, DEPOSIT};

async fn account(gateway: &Gateway, id: &str) -> AccountNo {
    operator::account(&gateway.app, id).await.unwrap().no
}

async fn page(gateway: &Gateway, before: Option<Cursor>, limit: usize) -> Page {
    let account = account(gateway, &gateway.partner).await;
    deposits::history(&gateway.app, account, before, limit).await.unwrap()
}

/// A name for each line: an invoice's id, or a payment's hash.
fn name(line: &Line) -> String {
    match line {
        Line::Invoice(deposit) => deposit.invoice.id.to_string(),
        Line::Payment { payment, .. } => payment.transfer.id.tx_hash.clone(),
    }
}

async fn open(gateway: &Gateway, network: &str) -> Value {
    gateway
        .post(DEPOSIT, json!({ "amountUsd": 25, "currency": "USDC", "network": network }))
        .await
        .expect(200)
}

/// Pays without an invoice, and waits until it is in the history; its hash.
async fn pay_directly(gateway: &Gateway, network: Network, dollars: i64) -> String {
    let path = format!("{API}/balance/address?network={}", network.as_str());
    let address = gateway.get(&path).await.expect(200)["depositAddress"].as_str().unwrap().to_string();
    let paid = json!({ "address": address, "amountUsd": dollars, "network": network.as_str() });
    let hash = gateway.sandbox("pay", paid).await["txHash"].as_str().unwrap().to_string();
    gateway
        .until("it is seen", async || {
            let first = page(gateway, None, 1).await.lines.pop()?;
            (name(&first) == hash).then_some(())
        })
        .await;
    hash
}

async fn until_credited(gateway: &Gateway, sum: i64) {
    gateway
        .until("all is credited", async || {
            gateway.pass_time(6_000);
            let credited =
                page(gateway, None, 100).await.lines.iter().map(Line::credited).fold(Usd::ZERO, Usd::plus);
            (credited == Usd::dollars(sum)).then_some(())
        })
        .await;
}

both_databases! {
    async fn it_shows_what_was_asked_for_and_what_came(gateway) {
        assert!(page(gateway, None, 10).await.lines.is_empty());
        let first = open(gateway, "BASE").await;
        let paid = pay(gateway, &first, "26").await;
        gateway.until("it is seen", async || {
            let lines = page(gateway, None, 1).await.lines;
            (lines[0].received() == Usd::dollars(26)).then_some(())
        }).await;
        let direct = [pay_directly(gateway, Network::Polygon, 7).await, pay_directly(gateway, Network::Tron, 3).await];
        let last = open(gateway, "BASE").await;
        until_credited(gateway, 36).await;
        let Page { lines, next } = page(gateway, None, 10).await;
        assert_eq!(next, None);
        assert_eq!(lines.iter().map(name).collect::<Vec<_>>(), [id(&last), &direct[1], &direct[0], id(&first)]);
        assert!(lines.windows(2).all(|pair| pair[0].at() >= pair[1].at()));
        let sums: Vec<_> = lines.iter().map(|line| (line.received(), line.credited())).collect();
        assert_eq!(sums, [0, 3, 7, 26].map(|dollars| (Usd::dollars(dollars), Usd::dollars(dollars))));
        let [Line::Invoice(unpaid), Line::Payment { payment, .. }, _, Line::Invoice(settled)] = &lines[..] else {
            panic!("the lines are of other kinds");
        };
        assert_eq!((unpaid.invoice.status, unpaid.payments.len()), (InvoiceStatus::Pending, 0));
        assert_eq!((payment.transfer.id.network, payment.transfer.currency), (Network::Tron, Currency::Usdc));
        assert!(payment.confirmations >= payment.needed && payment.needed == 19);
        assert_eq!((settled.invoice.status, settled.payments.len()), (InvoiceStatus::Confirmed, 1));
        assert_eq!((&settled.payments[0].transfer.id.tx_hash, settled.paid.credited), (&paid, Usd::dollars(26)));
        let (stranger, _) = gateway.partner("Stranger", Usd::ZERO).await;
        let stranger = account(gateway, &stranger).await;
        let theirs = deposits::history(&gateway.app, stranger, None, 10).await.unwrap();
        assert!(theirs.lines.is_empty() && theirs.next.is_none());
    }

    async fn pages_join_whatever_comes_meanwhile(gateway) {
        for network in ["BASE", "POLYGON", "ARBITRUM", "TRON"] {
            open(gateway, network).await;
            open(gateway, network).await;
            pay_directly(gateway, Network::parse(network).unwrap(), 2).await;
        }
        let whole: Vec<String> = page(gateway, None, 100).await.lines.iter().map(name).collect();
        assert_eq!(whole.len(), 12);
        for limit in [1, 2, 5, 11, 12] {
            let (mut seen, mut before) = (Vec::new(), None);
            loop {
                let Page { lines, next } = page(gateway, before, limit).await;
                assert!(lines.len() <= limit);
                seen.extend(lines.iter().map(name));
                let Some(next) = next else { break };
                // In an address it gives nothing away.
                let text = next.to_string();
                assert!(!text.contains("inv_") && Cursor::parse(&text) == Some(next), "{text}");
                before = Some(next);
            }
            assert_eq!(seen, whole, "{limit} a page");
        }
        let second = page(gateway, None, 6).await.next;
        open(gateway, "BASE").await;
        let rest: Vec<String> = page(gateway, second, 100).await.lines.iter().map(name).collect();
        assert_eq!(rest, whole[6..]);
    }

    async fn an_invoice_of_many_payments_shows_the_newest(gateway) {
        let invoice = open(gateway, "BASE").await;
        let recipient = invoice["depositAddress"].as_str().unwrap().to_string();
        let amount = Usd::parse("0.2").unwrap();
        let payment = Payment { recipient, currency: Currency::Usdc, amount };
        gateway.app.sim_chains[&Network::Base].pay_many(&vec![payment; 120]).await.unwrap();
        let line = gateway.until("all are seen", async || {
            let line = page(gateway, None, 1).await.lines.pop()?;
            (line.received() == Usd::dollars(24)).then_some(line)
        }).await;
        let Line::Invoice(deposit) = line else { panic!("it is no invoice") };
        assert_eq!(deposit.payments.len(), 100);
    }
}
