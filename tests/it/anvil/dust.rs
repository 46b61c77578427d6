//! Many transfers of next to nothing: whoever pays does not wait for them, and they are credited all the same.

use simgate::domain::money::Usd;

use super::desk::{CONFIRMATIONS, Desk, LAG, Setup};

/// In transactions of two transfers.
const DUST: usize = 40;
/// So many of them are credited in a round.
const A_ROUND: i64 = 25;

before_nodes! {
    async fn dust_comes_last_and_a_transaction_is_looked_at_once(desk) with { proxies: 1 } {
        let (dusted, honest) = (desk.invoice(20).await, desk.invoice(30).await);
        let (usdc, grain) = (desk.node.usdc.clone(), Usd::from_micros(1));
        for _ in 0..DUST / 2 {
            desk.node.pay_two(&usdc, (&dusted.address, grain), (&dusted.address, grain)).await;
        }
        desk.node.mine(1).await;
        desk.pay(&honest).await;
        desk.node.mine(CONFIRMATIONS + LAG).await;
        desk.proxies[0].receipts();
        desk.round().await;
        assert_eq!(desk.balance().await, honest.amount.plus(Usd::from_micros(A_ROUND)));
        // Each once when it is seen, and once when it is credited.
        let (seen, credited) = (DUST / 2 + 1, (A_ROUND as usize).div_ceil(2) + 1);
        assert_eq!(desk.proxies[0].receipts(), seen + credited);
        desk.round().await;
        assert_eq!(desk.balance().await, honest.amount.plus(Usd::from_micros(DUST as i64)));
    }
}
