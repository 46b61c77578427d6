//! A gateway whose scanner a test moves by hand, round by round, before a real node: what has happened after which
//! block is then exact, and nothing has to be waited for. At the end of each test the books must balance, and hold
//! exactly what lies on our addresses.

use simgate::app::App;
use simgate::chain::address::SANDBOX_EVM_XPUB;
use simgate::domain::ids::{AccountNo, InvoiceId};
use simgate::domain::invoice::{Deposit, Invoice, InvoiceStatus};
use simgate::domain::ledger::CreditKind;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::refusal::Refusal;
use simgate::domain::transfer::{Transfer, TransferState};
use simgate::error::Error;
use simgate::ops::deposits::{self, NewDeposit, Verified};
use simgate::ops::ledger;
use simgate::ops::operator::{self, Adjustment, Direction, NewPartner};
use simgate::ops::scan::{Halt, Pace, Scanner};
use simgate::start::{self, Role};
use simgate::store::cursors::{self, Cursor};
use simgate::store::{addresses, transfers, wallet};
use tokio::sync::Mutex;

use super::node::{Kind, Node};
use super::proxy::Proxy;
use crate::support::harness::{Db, booked, check_books, on_place, until};
use crate::support::place::Place;

/// What a deposit waits for in these tests, its own block included.
pub const CONFIRMATIONS: i64 = 5;
/// The scanner leaves the newest blocks of Polygon for the next round.
pub const LAG: i64 = 2;

/// How a test wants its desk.
#[derive(Clone, Copy, Default)]
pub struct Setup {
    pub kind: Kind,
    /// So many proxies stand before the node; none: the gateway asks it directly.
    pub proxies: usize,
    pub settings: &'static [(&'static str, &'static str)],
}

pub struct Desk {
    pub node: Node,
    pub proxies: Vec<Proxy>,
    pub app: App,
    pub account: AccountNo,
    scanner: Mutex<Scanner>,
    place: Place,
    settings: Vec<(String, String)>,
    /// The node is one whose money must not be in the books.
    apart: bool,
}

/// Runs a test at a desk of its own on each database.
macro_rules! by_hand {
    ($($tests:tt)*) => {
        crate::anvil::before_node! { Desk: $($tests)* }
    };
}
pub(crate) use by_hand;

/// Settings with these in the place of others of their names.
pub fn changed(mut settings: Vec<(String, String)>, own: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.retain(|(name, _)| own.iter().all(|(other, _)| other != name));
    settings.extend(own.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    settings
}

/// As a gateway is started with them.
pub fn borrowed(settings: &[(String, String)]) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// The settings by which a gateway follows this node, through the proxies if there are any.
pub fn settings_for(node: &Node, proxies: &[Proxy]) -> Vec<(String, String)> {
    let confirmations = CONFIRMATIONS.to_string();
    let mut urls: Vec<&str> = proxies.iter().map(|proxy| &*proxy.url).collect();
    if urls.is_empty() {
        urls.push(&node.url);
    }
    [
        ("staging", "true"),
        ("evm_xpub", SANDBOX_EVM_XPUB),
        ("polygon_rpc", &urls.join(",")),
        ("polygon_usdc", &node.usdc),
        ("polygon_usdt", &node.usdt),
        ("polygon_confirmations", &confirmations),
        ("polygon_poll_ms", "50"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_string(), value.to_string()))
    .collect()
}

async fn open_app(place: &Place, settings: &[(String, String)]) -> App {
    let mut settings = place.settings(&borrowed(settings));
    settings.demo_file = place.dir.join("simgate-demo.env");
    simgate::telemetry::init_logs("error", false);
    start::open(settings, Role::Server).await.unwrap()
}

async fn close(app: &App) {
    let store = app.store.clone();
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

impl Desk {
    pub fn run(db: Db, setup: Setup, test: impl AsyncFnOnce(&mut Desk) + 'static) {
        on_place(db, async move |place| {
            let mut desk = Desk::open(place.clone(), setup).await;
            test(&mut desk).await;
            desk.check_books().await;
            close(&desk.app).await;
        });
    }

    async fn open(place: Place, setup: Setup) -> Desk {
        let node = Node::start(setup.kind).await;
        let proxies = Proxy::row(&node, setup.proxies).await;
        let settings = changed(settings_for(&node, &proxies), setup.settings);
        let app = open_app(&place, &settings).await;
        let new =
            NewPartner { name: "Chain Travel".into(), email: None, credit: Usd::ZERO, shares_email: false };
        let partner = operator::create_partner(&app, "test", new).await.unwrap();
        let account = operator::account(&app, partner.id.as_str()).await.unwrap().no;
        let scanner = Mutex::new(Scanner::new(app.chains[&Network::Polygon].clone()));
        Desk { node, proxies, app, account, scanner, place, settings, apart: false }
    }

    /// The gateway stops and starts again so much later; the world goes on meanwhile.
    pub async fn restart_after(&mut self, downtime: impl AsyncFnOnce(&Node), millis: i64) {
        self.scanner.get_mut().give_up_turn(&self.app).await.unwrap();
        close(&self.app).await;
        downtime(&self.node).await;
        self.app = open_app(&self.place, &self.settings).await;
        self.app.clock.advance(millis);
        self.scanner = Mutex::new(Scanner::new(self.app.chains[&Network::Polygon].clone()));
    }

    /// One look at the chain, or why it could not be had.
    pub async fn try_round(&self) -> Result<Pace, String> {
        self.scanner.lock().await.round(&self.app).await.map_err(|halt| match halt {
            Halt::Chain(trouble) => trouble.to_string(),
            Halt::Ours(error) => panic!("{error}"),
        })
    }

    pub async fn round(&self) {
        self.try_round().await.unwrap();
    }

    /// Looks until the chain can be followed again: nodes that failed rest for a moment.
    pub async fn round_after_trouble(&self) {
        until("the chain can be followed", async || self.try_round().await.ok()).await;
    }

    /// Looks until the invoice is in the wallet, while blocks go on.
    pub async fn until_credited(&self, invoice: &Invoice) {
        until("the deposit is credited", async || {
            self.node.mine(1).await;
            self.try_round().await.ok()?;
            (self.standing(invoice).await.0 == InvoiceStatus::Confirmed).then_some(())
        })
        .await;
    }

    /// At the end nothing of this chain is expected to be in the books.
    pub fn books_apart_from_chain(&mut self) {
        self.apart = true;
    }

    /// Blocks come one by one, and each is looked at.
    pub async fn mine(&self, blocks: i64) {
        for _ in 0..blocks {
            self.node.mine(1).await;
            self.round().await;
        }
    }

    pub async fn invoice(&self, dollars: i64) -> Invoice {
        let amount = Usd::dollars(dollars);
        let new =
            NewDeposit { account: self.account, amount, currency: Currency::Usdc, network: Network::Polygon };
        let invoice = deposits::open(&self.app, new).await.unwrap().invoice;
        // The first round decides where scanning begins.
        self.try_round().await.ok();
        invoice
    }

    /// Pays an invoice in full, into the next block.
    pub async fn pay(&self, invoice: &Invoice) -> String {
        self.node.pay(&self.node.usdc, &invoice.address, invoice.amount).await
    }

    pub async fn deposit(&self, invoice: &Invoice) -> Deposit {
        deposits::find(&self.app, self.account, &invoice.id).await.unwrap()
    }

    /// The status by itself, and what is in the wallet of it.
    pub async fn standing(&self, invoice: &Invoice) -> (InvoiceStatus, Usd) {
        let deposit = self.deposit(invoice).await;
        (deposit.invoice.status, deposit.paid.credited)
    }

    pub async fn verify(&self, id: &InvoiceId, hash: Option<&str>) -> Result<Verified, Refusal> {
        match deposits::verify(&self.app, self.account, id, hash).await {
            Ok(verified) => Ok(verified),
            Err(Error::Refused(refusal)) => Err(refusal),
            Err(other) => panic!("{other}"),
        }
    }

    /// Everything that is on record of a transaction.
    pub async fn transfers(&self, hash: &str) -> Vec<Transfer> {
        let hash = hash.to_string();
        self.app.store.read(move |tx| transfers::of_transaction(tx, Network::Polygon, &hash)).await.unwrap()
    }

    pub async fn states(&self, hash: &str) -> Vec<TransferState> {
        self.transfers(hash).await.into_iter().map(|transfer| transfer.state).collect()
    }

    pub async fn wallet(&self) -> wallet::Wallet {
        let account = self.account;
        self.app.store.read(move |tx| wallet::read(tx, account)).await.unwrap()
    }

    pub async fn balance(&self) -> Usd {
        self.wallet().await.balance
    }

    pub async fn spend(&self, dollars: i64) {
        let debit = Adjustment {
            account: self.account,
            amount: Usd::dollars(dollars),
            kind: CreditKind::Correction,
            reason: "spent".into(),
        };
        operator::adjust_wallet(&self.app, "test", Direction::Debit, debit, None).await.unwrap();
    }

    /// What the books say of an account of the chart, debits above credits.
    pub async fn book(&self, account: &str) -> Usd {
        booked(&self.app, account).await
    }

    /// How often money was moved into the wallet and out of it for transfers.
    pub async fn entries(&self) -> i64 {
        ledger::verify(&self.app).await.unwrap().counts.entries
    }

    pub async fn cursor(&self) -> Cursor {
        let found = self.app.store.read(|tx| cursors::get(tx, Network::Polygon)).await.unwrap();
        found.expect("a round has been there")
    }

    /// The books balance, and say of our addresses what the node says of them, but for what still waits.
    async fn check_books(&self) {
        check_books(&self.app).await;
        if self.apart {
            return;
        }
        let ours = self.app.store.read(addresses::list).await.unwrap();
        for (currency, token) in [(Currency::Usdc, &self.node.usdc), (Currency::Usdt, &self.node.usdt)] {
            let mut on_chain = Usd::ZERO;
            for address in &ours {
                on_chain = on_chain.plus(self.node.balance_of(token, &address.address).await);
            }
            let store = &self.app.store;
            let waiting =
                store.read(move |tx| transfers::pending_sum(tx, Network::Polygon, currency)).await.unwrap();
            let cash = self.book(&format!("cash:POLYGON:{}", currency.as_str())).await;
            assert_eq!(cash.plus(waiting), on_chain, "{} in the books and on the chain", currency.as_str());
        }
    }
}
