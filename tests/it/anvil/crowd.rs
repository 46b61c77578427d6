//! More addresses than a node can be asked for by name, so every transfer is read to find ours: a block is read when it is
//! new, and once more when it has aged.

use simgate::chain::address::{SANDBOX_EVM_XPUB, Xpub};
use simgate::domain::invoice::InvoiceStatus::{Confirmed, Pending};
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency, Network};
use simgate::ops::deposits::{self, NewDeposit};
use simgate::ops::operator::{self, NewPartner};
use simgate::store::addresses;

use super::desk::{CONFIRMATIONS, Desk, LAG, Setup};
use super::proxy::Mood;

/// One address in a question, so that more than eight are too many.
const ONE: &[(&str, &str)] = &[("scan_addresses", "1")];
/// Blocks that are looked at again.
const OVERLAP: i64 = 64;
const PARTNERS: usize = 2;
const INVOICES: usize = 5;

/// Opens deposits of others. From the second round on they are a crowd.
async fn crowd(desk: &Desk) {
    for n in 0..PARTNERS {
        let new =
            NewPartner { name: format!("Crowd {n}"), email: None, credit: Usd::ZERO, shares_email: false };
        let partner = operator::create_partner(&desk.app, "test", new).await.unwrap();
        let account = operator::account(&desk.app, partner.id.as_str()).await.unwrap().no;
        for _ in 0..INVOICES {
            let (amount, currency, network) = (Usd::dollars(20), Currency::Usdc, Network::Polygon);
            deposits::open(&desk.app, NewDeposit { account, amount, currency, network }).await.unwrap();
        }
    }
}

before_nodes! {
    async fn a_block_is_read_when_it_is_new_and_when_it_has_aged(desk) with { proxies: 1, settings: ONE } {
        crowd(desk).await;
        let invoice = desk.invoice(25).await;
        desk.node.mine(100).await;
        desk.mine(2).await;
        desk.proxies[0].ranges();
        desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS + LAG).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        let ranges = desk.proxies[0].ranges();
        assert_eq!(ranges, vec![1; 2 * (CONFIRMATIONS + LAG) as usize], "once new, once aged");
    }

    /// Nobody looked for a while: what came meanwhile is read once.
    async fn a_crowd_is_caught_up_with_after_an_outage(desk) with { proxies: 1, settings: ONE } {
        crowd(desk).await;
        let invoice = desk.invoice(25).await;
        desk.node.mine(100).await;
        desk.mine(2).await;
        desk.pay(&invoice).await;
        desk.node.mine(200).await;
        desk.proxies[0].ranges();
        desk.round().await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        let read: i64 = desk.proxies[0].ranges().iter().sum();
        assert!(read <= 201 + OVERLAP, "{read}");
    }

    async fn what_nodes_left_out_is_found_when_its_block_has_aged(desk) with { proxies: 3, settings: ONE } {
        crowd(desk).await;
        let invoice = desk.invoice(25).await;
        desk.mine(2).await;
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::NoLogs));
        desk.pay(&invoice).await;
        desk.mine(LAG + 1).await;
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.standing(&invoice).await.0, Pending);
        desk.until_credited(&invoice).await;
    }

    /// It was paid in a block that had been looked at before anybody watched it.
    async fn a_new_address_in_a_crowd_is_looked_for_in_the_last_blocks(desk) with { proxies: 1, settings: ONE } {
        crowd(desk).await;
        desk.mine(2).await;
        let ours = desk.app.store.read(addresses::list).await.unwrap();
        let next = ours.iter().filter(|address| address.kind == AddressKind::Evm).map(|address| address.index + 1).max();
        let address = Xpub::parse(AddressKind::Evm, SANDBOX_EVM_XPUB).unwrap().address(next.unwrap() as u32);
        desk.node.pay(&desk.node.usdc, &address, Usd::dollars(25)).await;
        desk.mine(CONFIRMATIONS + LAG).await;
        let invoice = desk.invoice(25).await;
        assert_eq!(invoice.address, address);
        desk.mine(1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
    }
}
