//! Whatever is asked for and paid, whatever the chain does and whoever looks when: a checkout is delivered at most
//! once, one that was paid what it takes and in time is delivered, no two share an amount or a slot while either could be paid, and
//! the books hold what lies on the chain. Random sequences, beside the gateway's own scanners.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use simgate::chain::Chain;
use simgate::chain::sim::{ChainMode, Keep};
use simgate::domain::checkout::{Checkout, CheckoutStatus, NETWORKS, rests_until};
use simgate::domain::ids::OrderId;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::order::OrderStatus;
use simgate::domain::slot;
use simgate::domain::transfer::TransferState;
use simgate::ops::checkout::progress::{self, Progress};
use simgate::ops::checkout::{self, NewCheckout};
use simgate::ops::orders::Buyer;
use simgate::ops::scan::Scanner;
use simgate::ops::{catalog, owned, tokens};
use simgate::store::amounts::{self, Ring};
use simgate::store::tx::Tx;
use simgate::store::{addresses, ledger, transfers};

use crate::support::buying::{HOUR_MS, MINUTE_MS, PLAN, ask, fund};
use crate::support::coupons::{make, plain};
use crate::support::harness::{Gateway, both_databases, until};
use crate::support::logins::{elsewhere, sign_in};

const BLOCK_MS: i64 = 200;
const COUPON: &str = "LAW";

#[derive(Clone, Debug)]
enum Step {
    /// With a coupon, or without.
    Open {
        coupon: bool,
    },
    /// For a top-up.
    OpenTopUp,
    /// Pays one of the checkouts, exactly or not.
    Pay {
        which: usize,
        off_by: i64,
    },
    Blocks(i64),
    Minutes(i64),
    Hours(i64),
    Reorg {
        depth: i64,
        keep: Option<i64>,
    },
    Mood(u8),
    /// A scanner that has just been started looks once.
    Scan,
    /// The ring comes round to amounts that were used before.
    TurnBack,
}

fn any_step() -> impl Strategy<Value = Step> {
    let off_by = prop_oneof![4 => Just(0), 1 => -20_000i64..20_000];
    prop_oneof![
        3 => any::<bool>().prop_map(|coupon| Step::Open { coupon }),
        1 => Just(Step::OpenTopUp),
        5 => (0usize..8, off_by).prop_map(|(which, off_by)| Step::Pay { which, off_by }),
        3 => (1i64..25).prop_map(Step::Blocks),
        1 => (1i64..40).prop_map(Step::Minutes),
        1 => (1i64..30).prop_map(Step::Hours),
        1 => (1i64..45, prop::option::of(0i64..6)).prop_map(|(depth, keep)| Step::Reorg { depth, keep }),
        1 => (0u8..4).prop_map(Step::Mood),
        2 => Just(Step::Scan),
        2 => Just(Step::TurnBack),
    ]
}

struct Case<'a> {
    gateway: &'a Gateway,
    network: Network,
    currency: Currency,
    buyer: Buyer,
    /// An order that has its eSIM, and the plan that fills it.
    filled: OrderId,
    topup: String,
    opened: Vec<Checkout>,
}

impl Case<'_> {
    async fn open(&mut self, package_code: &str, esim_order: Option<&OrderId>, coupon: bool) {
        let new = NewCheckout {
            buyer: self.buyer.clone(),
            package_code: package_code.into(),
            esim_order: esim_order.cloned(),
            network: self.network,
            currency: self.currency,
            customer_email: None,
            discount_code: coupon.then(|| COUPON.into()),
            reference: None,
            client: elsewhere().parse().unwrap(),
            max_price: None,
            is_offer: false,
        };
        // A payment that vanished suspends its account; too many are too many.
        let opened = checkout::open(&self.gateway.app, new).await.ok();
        self.opened.extend(opened.map(|opened| opened.checkout));
    }

    async fn take(&mut self, step: &Step) {
        let app = &self.gateway.app;
        let chain = &app.sim_chains[&self.network];
        match step {
            Step::Open { coupon } => self.open(PLAN, None, *coupon).await,
            Step::OpenTopUp => {
                let (topup, filled) = (self.topup.clone(), self.filled.clone());
                self.open(&topup, Some(&filled), false).await;
            }
            Step::Pay { which, off_by } => {
                if let Some(asked) = self.opened.get(which % self.opened.len().max(1)) {
                    let amount = asked.amount.plus(Usd::from_micros(*off_by));
                    chain.pay(&asked.address, asked.currency, amount).await.unwrap();
                }
            }
            Step::Blocks(count) => self.gateway.pass_time(count * BLOCK_MS),
            Step::Minutes(count) => self.gateway.pass_time(count * MINUTE_MS),
            Step::Hours(count) => self.gateway.pass_time(count * HOUR_MS),
            Step::Reorg { depth, keep } => {
                chain.reorg(*depth, keep.map_or(Keep::Nothing, Keep::Later)).await.unwrap();
            }
            Step::Mood(number) => chain.behave(ChainMode::ALL[usize::from(*number)], 7).await.unwrap(),
            // The chain may be down, or its blocks behind: that is what the step is for.
            Step::Scan => drop(Scanner::new(chain.clone()).round(app).await),
            Step::TurnBack => {
                if let Some(first) = self.opened.first() {
                    let ring = Ring { address: first.address.clone(), price: first.price() };
                    app.store.write(0, move |tx: &mut Tx| amounts::put(tx, &ring, 0)).await.unwrap();
                }
            }
        }
    }

    async fn progress(&self) -> Vec<Progress> {
        let mut all = Vec::new();
        for checkout in &self.opened {
            all.push(progress::show(&self.gateway.app, &checkout.id, None).await.unwrap());
        }
        all
    }

    /// What lies on the house's addresses.
    async fn on_chain(&self) -> Usd {
        let kind = self.network.kind();
        let all = self.gateway.app.store.snapshot(addresses::list).await.unwrap();
        let all: Vec<String> =
            all.into_iter().filter(|one| one.kind == kind).map(|one| one.address).collect();
        let chain = &self.gateway.app.sim_chains[&self.network];
        let balances = chain.balances(self.currency, &all, i64::MAX).await.unwrap();
        balances.into_iter().fold(Usd::ZERO, Usd::plus)
    }

    /// What the books say lies there, and what was seen and is not booked yet.
    async fn booked(&self) -> (Usd, Usd) {
        let (network, currency) = (self.network, self.currency);
        let read = move |tx: &mut Tx| {
            let booked = ledger::cash(tx, network, currency)?;
            Ok((booked, transfers::pending_sum(tx, network, currency)?))
        };
        self.gateway.app.store.snapshot(read).await.unwrap()
    }

    /// Lets the dust settle, then holds what became of everything against the chain.
    async fn end(&self) {
        let app = &self.gateway.app;
        let chain = &app.sim_chains[&self.network];
        chain.behave(ChainMode::Ok, 0).await.unwrap();
        let settled = until("everything is decided", async || {
            self.gateway.pass_time(20 * BLOCK_MS);
            let agreed = self.booked().await == (self.on_chain().await, Usd::ZERO);
            let all = self.progress().await;
            let delivering = all
                .iter()
                .filter_map(|one| one.order.as_ref())
                .any(|order| order.status == OrderStatus::Provisioning);
            (agreed && !delivering).then_some(all)
        })
        .await;
        for one in &settled {
            let held: Vec<_> =
                one.payments.iter().filter(|paid| paid.transfer.state == TransferState::Held).collect();
            assert!(held.len() <= 1, "one payment buys one plan");
            let in_time = one.payments.iter().any(|paid| {
                let block = paid.transfer.block.as_ref();
                paid.transfer.round == 0 && block.is_some_and(|block| block.time < one.checkout.expires_at)
            });
            assert!(!in_time || one.checkout.status == CheckoutStatus::Paid, "{:?}", one.checkout);
            for paid in &one.payments {
                assert!(one.checkout.band().holds(paid.transfer.amount), "only what it takes is matched");
            }
        }
        self.share_no_amount(&settled);
    }

    fn share_no_amount(&self, settled: &[Progress]) {
        for (nth, one) in settled.iter().enumerate() {
            for other in &settled[nth + 1..] {
                let (one, other) = (&one.checkout, &other.checkout);
                let crossed = slot::buckets(one.price())
                    .iter()
                    .any(|bucket| slot::buckets(other.price()).contains(bucket));
                let alike = one.amount == other.amount || (one.wide && other.wide && crossed);
                assert!(
                    one.address != other.address || one.wide == other.wide,
                    "wide and exact ones share no address"
                );
                if one.address == other.address && alike {
                    let (first, second) =
                        if one.created_at < other.created_at { (one, other) } else { (other, one) };
                    assert!(rests_until(first.late_until, first.created_at) < second.created_at);
                }
            }
        }
    }
}

both_databases! {
    async fn a_checkout_is_delivered_once_whatever_happens(gateway) with [("trusted_proxies", "127.0.0.1")] {
        make(gateway, plain(gateway, COUPON, 10)).await;
        let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
        let steps = prop::collection::vec(any_step(), 1..30);
        let handle = tokio::runtime::Handle::current();
        let case = std::sync::atomic::AtomicUsize::new(0);
        tokio::task::block_in_place(|| {
            runner.run(&(steps, 0usize..NETWORKS.len()), |(steps, network)| {
                let number = case.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                handle.block_on(async {
                    let email = format!("law{number}@example.com");
                    let token = sign_in(gateway, &email, "agent").await;
                    let buyer = tokens::authenticate(&gateway.app, &token).await.unwrap().buyer();
                    fund(gateway, &email, Usd::dollars(100)).await;
                    let bought = ask(gateway, &token, &json!({ "packageCode": PLAN, "payWith": "wallet" })).await.expect(200);
                    let filled = OrderId::from_text(bought["orderId"].as_str().unwrap());
                    let family = owned::order(&gateway.app, buyer.account, &filled).await.unwrap().family;
                    let topup = catalog::topups_for(&gateway.app, &buyer.price_list, &family).remove(0).code;
                    let currency = Currency::ALL[number % 2];
                    let mut case = Case { gateway, network: NETWORKS[network], currency, buyer, filled, topup, opened: Vec::new() };
                    for step in &steps {
                        case.take(step).await;
                    }
                    case.end().await;
                });
                Ok(())
            })
        })
        .unwrap();
    }
}
