//! What is a payment and what only looks like one, and that scanner and verify see the same.

use simgate::domain::invoice::InvoiceStatus::{Confirmed, Pending};
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::refusal::Refusal;
use simgate::domain::transfer::Transfer;
use simgate::domain::transfer::TransferState::Credited;
use simgate::ops::deposits::{self, NewDeposit};
use simgate::ops::operator::{self, NewPartner};

use super::desk::{CONFIRMATIONS, Desk, Setup, by_hand};

/// Positions, addresses and amounts of what is on record.
fn places(transfers: &[Transfer]) -> Vec<(i64, &str, Usd)> {
    transfers.iter().map(|it| (it.id.position, &*it.address, it.amount)).collect()
}

by_hand! {
    /// One transaction, two of our addresses, asked for in two questions: each question shows one log, and only
    /// the receipt tells where they are.
    async fn two_in_one_transaction(desk) with { settings: &[("scan_addresses", "1")] } {
        let (first, second) = (desk.invoice(30).await, desk.invoice(45).await);
        assert_ne!(first.address, second.address);
        let payments = [(&*first.address, first.amount), (&*second.address, second.amount)];
        let expected = [(1, &*first.address, first.amount), (3, &*second.address, second.amount)];

        let by_scanner = desk.node.pay_two(&desk.node.usdc, payments[0], payments[1]).await;
        desk.mine(CONFIRMATIONS).await;
        let seen = desk.transfers(&by_scanner).await;
        assert_eq!(places(&seen), expected);
        assert_eq!(desk.balance().await, Usd::dollars(75));
        for invoice in [&first, &second] {
            let verified = desk.verify(&invoice.id, Some(&by_scanner)).await.ok().unwrap();
            assert_eq!(verified.deposit.paid.credited, invoice.amount);
        }
        assert_eq!(desk.transfers(&by_scanner).await, seen, "verify finds nothing else");

        let by_verify = desk.node.pay_two(&desk.node.usdc, payments[0], payments[1]).await;
        desk.node.mine(CONFIRMATIONS).await;
        desk.verify(&second.id, Some(&by_verify)).await.ok().unwrap();
        let seen = desk.transfers(&by_verify).await;
        assert_eq!(places(&seen), expected);
        desk.verify(&first.id, Some(&by_verify)).await.ok().unwrap();
        desk.mine(3).await;
        assert_eq!(places(&desk.transfers(&by_verify).await), expected, "the scanner finds nothing else");
        assert_eq!(desk.balance().await, Usd::dollars(150));
    }

    /// Both to one address: two transfers of one invoice.
    async fn two_to_one_address(desk) {
        let invoice = desk.invoice(30).await;
        let part = (&*invoice.address, Usd::dollars(15));
        let hash = desk.node.pay_two(&desk.node.usdc, part, part).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.states(&hash).await, [Credited, Credited]);
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(30)));
    }

    /// The token that nobody asked for is money as well, as long as it is one that we take.
    async fn the_other_token_counts(desk) {
        let invoice = desk.invoice(25).await;
        let hash = desk.node.pay(&desk.node.usdt, &invoice.address, invoice.amount).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        assert_eq!(desk.transfers(&hash).await[0].currency, Currency::Usdt);
        assert_eq!(desk.book("cash:POLYGON:USDT").await, Usd::dollars(25));
    }

    async fn what_only_looks_like_money_gives_nothing(desk) {
        let invoice = desk.invoice(25).await;
        let fake = desk.node.deploy("USDC", 6).await;
        let other = desk.node.deploy("DAI", 18).await;
        let stranger = desk.node.payer.clone();
        let pretended = [
            ("a fake token with the same symbol", desk.node.pay(&fake, &invoice.address, invoice.amount).await),
            ("a token that we do not take", desk.node.pay(&other, &invoice.address, invoice.amount).await),
            ("a transfer of nothing", desk.node.pretend(&desk.node.usdc, &invoice.address).await),
            ("a payment to somebody else", desk.node.pay(&desk.node.usdc, &stranger, invoice.amount).await),
        ];
        let reverted = desk.node.pay_and_revert(&desk.node.usdc, &invoice.address, invoice.amount).await;
        desk.mine(CONFIRMATIONS + 3).await;
        for (what, hash) in &pretended {
            assert_eq!(desk.node.receipt(hash).await["status"], "0x1", "{what}");
            assert_eq!(desk.verify(&invoice.id, Some(hash)).await.err(), Some(Refusal::TxNotForInvoice), "{what}");
            assert_eq!(desk.transfers(hash).await, [], "{what}");
        }
        assert_eq!(desk.node.receipt(&reverted).await["status"], "0x0");
        assert_eq!(desk.verify(&invoice.id, Some(&reverted)).await.err(), Some(Refusal::TxFailed));
        assert_eq!(desk.transfers(&reverted).await, []);
        let unheard = format!("0x{}", "ab".repeat(32));
        let verified = desk.verify(&invoice.id, Some(&unheard)).await.ok().unwrap();
        assert_eq!(verified.deposit.invoice.status, Pending);
        assert_eq!((desk.standing(&invoice).await, desk.balance().await), ((Pending, Usd::ZERO), Usd::ZERO));
    }

    /// A transaction counts for the address it paid, whoever asks about it.
    async fn somebody_elses_payment_is_theirs(desk) {
        let (paid, unpaid) = (desk.invoice(25).await, desk.invoice(35).await);
        let new = NewPartner { name: "Envious Travel".into(), email: None, credit: Usd::ZERO, shares_email: false };
        let other = operator::create_partner(&desk.app, "test", new).await.unwrap();
        let other = operator::account(&desk.app, other.id.as_str()).await.unwrap().no;
        let wish = NewDeposit {
            account: other,
            amount: paid.amount,
            currency: Currency::Usdc,
            network: Network::Polygon,
        };
        let envious = deposits::open(&desk.app, wish).await.unwrap().invoice;
        let hash = desk.pay(&paid).await;
        desk.mine(CONFIRMATIONS).await;
        let stolen = deposits::verify(&desk.app, other, &envious.id, Some(&hash)).await;
        let refusal = stolen.err().map(|error| error.to_string());
        assert_eq!(refusal, Some(simgate::error::Error::from(Refusal::TransferAlreadyUsed).to_string()));
        let verified = desk.verify(&unpaid.id, Some(&hash)).await.ok().unwrap();
        assert_eq!(verified.credited_to, Some(paid.id.clone()));
        assert_eq!(verified.deposit.paid.credited, Usd::ZERO);
        assert_eq!(desk.balance().await, Usd::dollars(25));
    }
}
