//! Whatever the chain does, and whoever looks at it when: in the end the wallet holds exactly what lies on the
//! account's addresses. Random sequences of payments, blocks, reorganisations (below final blocks too), outages,
//! lagging and lying nodes, fresh scanners and verify calls, beside the gateway's own scanners. SIMGATE_TEST_CASES
//! says how many of them. The invoice's events follow all of it.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use simgate::chain::Chain;
use simgate::chain::sim::{ChainMode, Keep};
use simgate::domain::event::{Event, EventKind};
use simgate::domain::ids::InvoiceId;
use simgate::domain::invoice::InvoiceStatus;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::ops::deposits::{self, NewDeposit};
use simgate::ops::events::{self, Wanted};
use simgate::ops::operator::{self, NewPartner};
use simgate::ops::scan::Scanner;

use crate::support::environment::number;
use crate::support::harness::{Gateway, both_databases, until};

const BLOCK_MS: i64 = 200;

#[derive(Clone, Debug)]
enum Step {
    Pay {
        cents: i64,
        other_token: bool,
    },
    Blocks(i64),
    Reorg {
        depth: i64,
        keep: Option<i64>,
    },
    Mood(u8),
    /// A scanner that has just been started looks once.
    Scan,
    Verify,
    VerifyLast,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1i64..100_000, any::<bool>()).prop_map(|(cents, other_token)| Step::Pay { cents, other_token }),
        3 => (1i64..25).prop_map(Step::Blocks),
        2 => (1i64..45, prop::option::of(0i64..6)).prop_map(|(depth, keep)| Step::Reorg { depth, keep }),
        1 => (0u8..4).prop_map(Step::Mood),
        2 => Just(Step::Scan),
        1 => Just(Step::Verify),
        1 => Just(Step::VerifyLast),
    ]
}

struct Case<'a> {
    gateway: &'a Gateway,
    network: Network,
    account: simgate::domain::ids::AccountNo,
    invoice: InvoiceId,
    address: String,
    last_hash: Option<String>,
}

impl Case<'_> {
    async fn new(gateway: &Gateway, network: Network) -> Case<'_> {
        let new =
            NewPartner { name: "Law Travel".into(), email: None, credit: Usd::ZERO, shares_email: false };
        let partner = operator::create_partner(&gateway.app, "test", new).await.unwrap();
        let account = operator::account(&gateway.app, partner.id.as_str()).await.unwrap().no;
        let new = NewDeposit { account, amount: Usd::dollars(100), currency: Currency::Usdc, network };
        let invoice = deposits::open(&gateway.app, new).await.unwrap().invoice;
        Case { gateway, network, account, invoice: invoice.id, address: invoice.address, last_hash: None }
    }

    async fn take(&mut self, step: &Step) {
        let chain = &self.gateway.app.sim_chains[&self.network];
        match step {
            Step::Pay { cents, other_token } => {
                let currency = if *other_token { Currency::Usdt } else { Currency::Usdc };
                let amount = Usd::from_micros(cents * 10_000);
                self.last_hash = Some(chain.pay(&self.address, currency, amount).await.unwrap());
            }
            Step::Blocks(count) => self.gateway.pass_time(count * BLOCK_MS),
            Step::Reorg { depth, keep } => {
                let keep = keep.map_or(Keep::Nothing, Keep::Later);
                chain.reorg(*depth, keep).await.unwrap();
            }
            Step::Mood(number) => chain.behave(ChainMode::ALL[usize::from(*number)], 7).await.unwrap(),
            // The chain may be down, or its blocks behind: that is what the step is for.
            Step::Scan => drop(Scanner::new(chain.clone()).round(&self.gateway.app).await),
            Step::Verify => {
                drop(deposits::verify(&self.gateway.app, self.account, &self.invoice, None).await);
            }
            Step::VerifyLast => {
                let hash = self.last_hash.as_deref();
                drop(deposits::verify(&self.gateway.app, self.account, &self.invoice, hash).await);
            }
        }
    }

    /// What lies on the address for good.
    async fn on_chain(&self) -> Usd {
        let chain = &self.gateway.app.sim_chains[&self.network];
        let mut sum = Usd::ZERO;
        for currency in Currency::ALL {
            let held = chain.balances(currency, std::slice::from_ref(&self.address), i64::MAX).await.unwrap();
            sum = sum.plus(held[0]);
        }
        sum
    }

    async fn balance(&self) -> Usd {
        operator::account_by_no(&self.gateway.app, self.account).await.unwrap().balance
    }

    /// Lets the dust settle: the nodes are honest again, and everything becomes final.
    async fn end(&self) {
        let chain = &self.gateway.app.sim_chains[&self.network];
        chain.behave(ChainMode::Ok, 0).await.unwrap();
        until("the wallet holds what lies on the chain", async || {
            self.gateway.pass_time(20 * BLOCK_MS);
            let settled = deposits::show(&self.gateway.app, &self.invoice).await.unwrap();
            let open = settled
                .payments
                .iter()
                .any(|payment| payment.transfer.state.is_open() && payment.transfer.block.is_some());
            (!open && self.balance().await == self.on_chain().await).then_some(())
        })
        .await;
        let settled = deposits::show(&self.gateway.app, &self.invoice).await.unwrap();
        assert_eq!(settled.paid.credited, self.on_chain().await);
        assert_eq!(settled.paid.received, settled.paid.credited);
        self.check_told(settled.invoice.status).await;
    }

    /// The events of the invoice have no gap, each is about the state that it tells of, and the last is about this one.
    async fn check_told(&self, status: InvoiceStatus) {
        let kinds: Vec<EventKind> = InvoiceStatus::ALL.into_iter().filter_map(InvoiceStatus::news).collect();
        let wanted = Wanted { after: 0, kinds, limit: 10_000, wait: Duration::ZERO };
        let told = events::read(&self.gateway.app, self.account, wanted).await.unwrap().events;
        let shown = |event: &Event| {
            let data: serde_json::Value = serde_json::from_str(&event.data).unwrap();
            InvoiceStatus::parse(data["status"].as_str().unwrap()).unwrap()
        };
        for (event, sequence) in told.iter().zip(1..) {
            assert_eq!((event.sequence, Some(event.kind)), (sequence, shown(event).news()), "{told:?}");
        }
        if let Some(kind) = status.news() {
            assert_eq!(told.last().map(|event| event.kind), Some(kind), "{told:?}");
        }
    }
}

both_databases! {
    async fn what_is_credited_is_what_lies_on_the_chain(gateway) {
        let cases = number("SIMGATE_TEST_CASES").unwrap_or(16) as u32;
        let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        let steps = prop::collection::vec(any_step(), 1..25);
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            runner.run(&(steps, 0usize..Network::ALL.len()), |(steps, network)| {
                handle.block_on(async {
                    let mut case = Case::new(gateway, Network::ALL[network]).await;
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
