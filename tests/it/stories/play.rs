//! How a story is played: every step is done to the gateway and told to the model, and where the gateway answers, the
//! answer is held against the model's. A difference is an `Err` in words.

use std::time::Duration;

use simgate::chain::address;
use simgate::domain::account::GUESTS;
use simgate::domain::email::Email;
use simgate::domain::ids::{AccountNo, OrderId};
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency};
use simgate::domain::order::OrderStatus;
use simgate::domain::plan::RETAIL_PRICE_LIST;
use simgate::domain::refusal::Refusal;
use simgate::error::Error;
use simgate::ops::checkout::{self, NewCheckout, paid, progress};
use simgate::ops::deposits::{self, NewDeposit};
use simgate::ops::operator::{self, KeyTerms, NewPartner};
use simgate::ops::orders::{self, Buyer, Purchase};
use simgate::ops::{cancel, catalog, recover, sandbox, x402};
use simgate::supplier::sim::{Mood, SupplierMode};

use super::chain::{CONFIRMATIONS, Move};
use super::collect;
use super::model::{Booked, Checkout, Model, Order, Party, State};
use super::signing::Signature;
use super::story::{PLACES, Step, Sum, Who};
use super::world::{COUPON, NETWORKS, World};

pub const CHEAP: &str = "JP-1GB-7D";
pub const DEAR: &str = "JP-50GB-30D";
/// What the limited token may spend in a day.
const LIMIT: Usd = Usd::dollars(10);
const MINUTE_MS: i64 = 60_000;
/// How often an order that should have ended is looked at again.
const PATIENCE: usize = 100;

pub type Told = Result<(), String>;

/// A checkout that the limited token opened.
struct Limited {
    checkout: usize,
    day: i64,
}

pub struct Play<'a> {
    pub world: &'a mut World,
    pub model: Model,
    /// Ann's and Bob's, and then of those who claim guests' money.
    pub accounts: Vec<AccountNo>,
    buyers: Vec<Buyer>,
    limited: Buyer,
    by_limited: Vec<Limited>,
    pub places: [Option<usize>; PLACES],
    pub signatures: [Option<Signature>; PLACES],
    addresses: Vec<((Who, AddressKind), String)>,
}

pub fn told(error: Error) -> String {
    format!("{error:?}")
}

pub fn index(who: Who) -> Option<usize> {
    match who {
        Who::Ann => Some(0),
        Who::Bob => Some(1),
        Who::Guest => None,
    }
}

impl Play<'_> {
    pub async fn new(world: &mut World) -> Play<'_> {
        world.begin().await;
        let app = world.app.clone();
        let (mut accounts, mut buyers, mut limited) = (Vec::new(), Vec::new(), None);
        for name in ["Ann", "Bob"] {
            let new = NewPartner { name: name.into(), email: None, credit: Usd::ZERO, shares_email: false };
            let made = operator::create_partner(&app, "test", new).await.unwrap();
            let account = operator::account(&app, made.id.as_str()).await.unwrap().no;
            let price_list = RETAIL_PRICE_LIST.to_string();
            let key_id = made.key.id.to_string();
            buyers.push(Buyer { account, key_id, price_list, limited: false, by_hand: None });
            accounts.push(account);
            if limited.is_none() {
                let terms = KeyTerms { daily_limit: Some(LIMIT), ..KeyTerms::default() };
                let key = operator::create_key(&app, "test", account, terms).await.unwrap();
                limited = Some(Buyer { key_id: key.id.to_string(), limited: true, ..buyers[0].clone() });
            }
        }
        sandbox::set_supplier(&app, SupplierMode::Ok).await.unwrap();
        let model = Model { wallets: vec![Usd::ZERO; 2], ..Model::default() };
        Play {
            world,
            model,
            accounts,
            buyers,
            limited: limited.unwrap(),
            by_limited: Vec::new(),
            places: [None; PLACES],
            signatures: [const { None }; PLACES],
            addresses: Vec::new(),
        }
    }

    pub async fn take(&mut self, step: &Step) -> Told {
        match step {
            Step::Open { at, who, network, dear, coupon, limited } => {
                let plan = if *dear { DEAR } else { CHEAP };
                let coupon = coupon.then(|| COUPON.to_string());
                self.open(*at, *who, *network, plan, coupon, *limited).await?;
            }
            Step::Deposit { who, network } => self.deposit(*who, *network).await?,
            Step::PayDeposit { who, cents, network, other_token } => {
                let kind = NETWORKS[*network].kind();
                let found = self.addresses.iter().rev().find(|(of, _)| *of == (*who, kind));
                if let Some(address) = found.map(|(_, address)| address.clone()) {
                    let amount = Usd::from_micros(cents * 10_000);
                    self.send(*network, vec![self.coins(*network, &address, amount, *other_token)]);
                }
            }
            Step::Pay { at, sum, other_token, other_network } => {
                if let Some(asked) = self.asked(*at) {
                    let own = NETWORKS.iter().position(|network| *network == asked.network).unwrap();
                    let network = if *other_network && own < 2 { 1 - own } else { own };
                    let amount = self.amount(asked, asked.amount, *sum);
                    let coins = self.coins(network, &asked.address, amount, *other_token);
                    self.send(network, vec![coins]);
                }
            }
            Step::PayBoth { first, second, sum } => {
                if let (Some(one), Some(other)) = (self.asked(*first), self.asked(*second))
                    && one.id != other.id
                    && one.network == other.network
                {
                    let network = NETWORKS.iter().position(|network| *network == one.network).unwrap();
                    let amount = self.amount(one, one.amount, *sum);
                    let coins = |address, amount| self.coins(network, address, amount, false);
                    self.send(
                        network,
                        vec![coins(&one.address, amount), coins(&other.address, other.amount)],
                    );
                }
            }
            Step::Sign { .. } | Step::Mine { .. } | Step::Claim { .. } => self.take_signed(step).await?,
            Step::Blocks { network, count } => self.world.chains[*network].mine(*count, self.world.now()),
            Step::Reorg { network, depth, keep } => {
                self.world.chains[*network].reorg(*depth, *keep, self.world.now());
            }
            Step::Return { network } => self.world.chains[*network].bring_back(self.world.now()),
            Step::Look { network } => self.look(*network).await,
            Step::Deep { network } => {
                self.world.chains[*network].mine(CONFIRMATIONS as usize, self.world.now());
                self.look(*network).await;
            }
            Step::Nodes { network, mood } => self.world.chains[*network].behave(*mood),
            Step::Supplier(mood) => self.set_supplier(*mood).await,
            Step::Recover => self.recover().await,
            Step::Minutes(minutes) => {
                self.world.pass(minutes * MINUTE_MS);
                self.world.chains.iter().for_each(|chain| chain.mine(1, self.world.now()));
            }
            Step::Restart => self.world.restart().await,
            Step::Cancel { at } => self.cancel(*at).await?,
            Step::Goodwill { at, percent } => self.goodwill(*at, *percent).await?,
            Step::Fail { at } => self.fail(*at).await?,
            Step::Collect { at } => collect::collect(self, *at).await?,
            Step::Assign { at } => self.assign(*at).await?,
            Step::Buy { who } => self.buy(*who).await?,
        }
        Ok(())
    }

    pub fn asked(&self, at: usize) -> Option<&Checkout> {
        self.places[at].map(|checkout| &self.model.checkouts[checkout])
    }

    /// How much a step means, where this much was asked for.
    pub fn amount(&self, asked: &Checkout, exact: Usd, sum: Sum) -> Usd {
        let amount = match sum {
            Sum::Exact => exact,
            Sum::Rounded => asked.price.plus(Usd::from_micros(9_999)).whole_cents(),
            Sum::Off(micros) => exact.plus(Usd::from_micros(micros)),
            Sum::Tiny => Usd::from_micros(1),
            Sum::Of(other) => self.asked(other).map_or(exact, |other| other.amount),
        };
        amount.max(Usd::from_micros(1))
    }

    fn coins(&self, network: usize, address: &str, amount: Usd, other_token: bool) -> Move {
        let currency = if other_token { Currency::Usdc } else { Currency::Usdt };
        let sender = address::text(NETWORKS[network].kind(), &[7; 20]);
        Move { currency, sender, recipient: address.into(), amount, nonce: None }
    }

    fn send(&self, network: usize, moves: Vec<Move>) {
        self.world.chains[network].send(moves, self.world.now());
    }

    async fn open(
        &mut self,
        at: usize,
        who: Who,
        network: usize,
        plan: &str,
        coupon: Option<String>,
        limited: bool,
    ) -> Told {
        let guest = Buyer {
            account: GUESTS,
            key_id: String::new(),
            price_list: RETAIL_PRICE_LIST.into(),
            limited: false,
            by_hand: None,
        };
        let owner = index(who);
        let limited = limited && owner == Some(0);
        let buyer = match owner {
            Some(_) if limited => self.limited.clone(),
            Some(account) => self.buyers[account].clone(),
            None => guest,
        };
        let number = self.world.stories as u32;
        let new = NewCheckout {
            buyer,
            package_code: plan.into(),
            esim_order: None,
            network: NETWORKS[network],
            currency: Currency::Usdt,
            customer_email: owner.is_none().then(|| Email::parse("guest@example.com").unwrap()),
            discount_code: coupon,
            reference: None,
            client: std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).into(),
            max_price: None,
            is_offer: false,
        };
        let app = self.world.app.clone();
        let opened = match checkout::open(&app, new).await {
            Ok(opened) => opened.checkout,
            Err(error) => return self.refused_to_open(owner, limited, plan, error),
        };
        if let Some(account) = owner.filter(|account| self.model.debt_of(*account).is_positive()) {
            return Err(format!("account {account} owes money and may open a checkout"));
        }
        let offer = x402::offer(&app, &opened, "https://example.com".into(), "pay");
        let offer = offer.map(|offer| {
            let amount = Usd::from_micros(offer.accepts[0].amount.parse().unwrap());
            (offer.accepts[0].pay_to.clone(), amount)
        });
        let shared = |other: &Checkout| {
            offer.is_some() && other.offer == offer
                || (&other.address, other.amount) == (&opened.address, opened.amount)
        };
        if let Some(other) = self.model.checkouts.iter().find(|other| shared(other)) {
            return Err(format!("two checkouts ask for one amount: {} and {}", other.id, opened.id));
        }
        self.model.house.insert(opened.address.clone());
        self.model.house.extend(offer.iter().map(|(receiver, _)| receiver.clone()));
        let new = Checkout {
            id: opened.id.clone(),
            owner,
            network: opened.network,
            address: opened.address.clone(),
            amount: opened.amount,
            price: opened.price(),
            cost: opened.cost,
            coupon: opened.coupon.is_some(),
            band: opened.wide.then(|| {
                let (short, over) = (Usd::from_micros(10_000), Usd::from_micros(20_000));
                (opened.price().minus(short), opened.price().plus(over))
            }),
            offer,
            created: opened.created_at,
            expires: opened.expires_at,
            late_until: opened.late_until,
            ended: false,
            order: None,
            owed: Usd::ZERO,
            claimer: None,
            claimed: Usd::ZERO,
        };
        self.model.checkouts.push(new);
        let checkout = self.model.checkouts.len() - 1;
        self.places[at] = Some(checkout);
        if limited {
            self.by_limited.push(Limited { checkout, day: opened.created_at.day() });
            let spent = self.spent_by_limited(true);
            if spent > LIMIT {
                return Err(format!("a token that may spend {LIMIT} a day has {spent} open and spent"));
            }
        }
        Ok(())
    }

    /// What the limited token has spent and may still be paid for: what surely counts today, or all that might.
    fn spent_by_limited(&self, surely: bool) -> Usd {
        let now = self.world.now();
        let mut sum = Usd::ZERO;
        for Limited { checkout, day } in &self.by_limited {
            let asked = &self.model.checkouts[*checkout];
            let order = asked.order.map(|order| self.model.orders[order].state);
            let given_back =
                matches!(order, Some(State::Failed | State::Cancelled)) || (asked.ended && order.is_none());
            let open = order.is_some() || now < asked.expires;
            if !surely || (*day == now.day() && open && !given_back) {
                sum = sum.plus(asked.amount);
            }
        }
        sum
    }

    /// How many uses of the coupon somebody's unpaid checkouts hold, or all guests' do.
    fn holds_coupons(&self, owner: Option<usize>) -> usize {
        let holds = |asked: &&Checkout| asked.owner == owner && asked.coupon && !asked.ended;
        self.model.checkouts.iter().filter(holds).count()
    }

    fn refused_to_open(&self, owner: Option<usize>, limited: bool, plan: &str, error: Error) -> Told {
        match (error, owner) {
            (Error::Refused(Refusal::AccountSuspended), Some(account)) if self.model.misses(account) => {
                Ok(())
            }
            (Error::Refused(Refusal::DailyLimit { .. }), _) if limited => {
                let price = catalog::find(&self.world.app, plan).unwrap().retail;
                let most = self.spent_by_limited(false).plus(price);
                if most > LIMIT { Ok(()) } else { Err(format!("refused at {most} of {LIMIT}")) }
            }
            // An account, or a guest's network, holds two uses of a coupon at a time.
            (Error::Refused(Refusal::CouponInvalid), owner) if self.holds_coupons(owner) >= 2 => Ok(()),
            (error, _) => Err(format!("a checkout was refused: {error:?}")),
        }
    }

    async fn deposit(&mut self, who: Who, network: usize) -> Told {
        let Some(account) = index(who) else { return Ok(()) };
        let (amount, currency) = (Usd::dollars(25), Currency::Usdc);
        let new =
            NewDeposit { account: self.accounts[account], amount, currency, network: NETWORKS[network] };
        match deposits::open(&self.world.app, new).await {
            Ok(opened) => {
                let address = opened.invoice.address;
                self.model.deposits.insert(address.clone(), account);
                self.addresses.push(((who, NETWORKS[network].kind()), address));
                Ok(())
            }
            Err(Error::Refused(Refusal::AccountSuspended)) if self.model.misses(account) => Ok(()),
            Err(Error::Refused(Refusal::TooManyInvoices { .. })) => Ok(()),
            Err(error) => Err(format!("a deposit was refused: {error:?}")),
        }
    }

    /// An address at which whatever comes is Bob's.
    pub async fn bobs_address(&mut self) -> Result<Option<String>, String> {
        let of_bob = |play: &Play| {
            let found = play.addresses.iter().find(|(of, _)| *of == (Who::Bob, AddressKind::Evm));
            found.map(|(_, address)| address.clone())
        };
        if of_bob(self).is_none() {
            self.deposit(Who::Bob, 0).await?;
        }
        Ok(of_bob(self))
    }

    pub async fn look(&mut self, network: usize) {
        let seen = self.world.round(network).await;
        if let (Some((target, head)), Some((all, _))) = (seen, self.world.chains[network].all()) {
            self.model.look(NETWORKS[network], &all, target, head);
        }
        self.catch_up().await;
    }

    /// On a busy machine the gateway may have hung up on a supplier that was about to answer: it is asked again.
    async fn catch_up(&self) {
        for asked in &self.model.checkouts {
            let Some(order) = asked.order.map(|order| &self.model.orders[order]) else { continue };
            if matches!(order.state, State::Waiting | State::Cancelling(_)) {
                continue;
            }
            for round in 1..=PATIENCE {
                let found = progress::show(&self.world.app, &asked.id, None).await.unwrap().order;
                let open = |status| matches!(status, OrderStatus::Provisioning | OrderStatus::Cancelling);
                let Some(found) = found.filter(|found| open(found.status)) else { break };
                tokio::time::sleep(Duration::from_millis(20)).await;
                if round % 5 == 0 {
                    let _ = operator::retry_order(&self.world.app, "test", found.id.as_str()).await;
                }
            }
        }
    }

    async fn set_supplier(&mut self, mood: SupplierMode) {
        // An order that was begun in the same instant would be older than the mood, or not, as it happens.
        self.world.pass(1_000);
        sandbox::set_supplier(&self.world.app, Mood { delay_ms: 60_000, ..mood.into() }).await.unwrap();
        self.world.pass(1_000);
        self.model.mood = Some(mood);
    }

    pub async fn recover(&mut self) {
        self.world.pass_silence();
        recover::round(&self.world.app).await.unwrap();
        self.world.until_quiet().await;
        self.model.recover();
        self.catch_up().await;
    }

    /// The order of a checkout, as the gateway knows it and as the model does.
    async fn order(&self, at: usize) -> Result<Option<(OrderId, usize)>, String> {
        let Some(asked) = self.asked(at) else { return Ok(None) };
        let found = progress::show(&self.world.app, &asked.id, None).await.map_err(told)?;
        match (found.order, asked.order) {
            (Some(found), Some(order)) => Ok(Some((found.id, order))),
            (None, None) => Ok(None),
            (found, order) => Err(format!(
                "checkout {at} has {} order, and should have {}",
                if found.is_some() { "an" } else { "no" },
                if order.is_some() { "one" } else { "none" },
            )),
        }
    }

    async fn cancel(&mut self, at: usize) -> Told {
        let Some((id, order)) = self.order(at).await? else { return Ok(()) };
        let Party::Account(account) = self.model.orders[order].party else { return Ok(()) };
        if self.model.orders[order].state != State::Delivered {
            return Ok(());
        }
        let asked = cancel::cancel(&self.world.app, self.accounts[account], &id).await;
        self.world.until_quiet().await;
        self.model.cancel(order);
        self.catch_up().await;
        match asked {
            Ok(_) | Err(Error::Refused(Refusal::NotCancellable(_))) => Ok(()),
            Err(error) => Err(format!("a cancel failed: {error:?}")),
        }
    }

    async fn goodwill(&mut self, at: usize, percent: i64) -> Told {
        let Some((id, order)) = self.order(at).await? else { return Ok(()) };
        let amount = self.model.orders[order].price.percent(percent).max(Usd::from_micros(1));
        let given = operator::refund_order(&self.world.app, "test", id.as_str(), amount, "story").await;
        agree("goodwill", self.model.goodwill(order, amount), given.is_ok())
    }

    async fn fail(&mut self, at: usize) -> Told {
        let Some((id, order)) = self.order(at).await? else { return Ok(()) };
        let waits = self.model.orders[order].state == State::Waiting && !self.model.is_in_doubt(order);
        let failed = operator::fail_order(&self.world.app, "test", id.as_str(), "story").await;
        if waits {
            self.model.fail(order);
        }
        agree("giving up an order", waits, failed.is_ok())
    }

    async fn assign(&mut self, at: usize) -> Told {
        let unmatched = |transfer: &super::model::Transfer| transfer.booked == Some(Booked::Unmatched);
        let Some(transfer) = self.model.transfers.iter().position(unmatched) else { return Ok(()) };
        let Some(checkout) = self.places[at] else { return Ok(()) };
        let (id, invoice) = (&self.model.transfers[transfer].facts.id, &self.model.checkouts[checkout].id);
        let assigned = paid::assign(&self.world.app, "test", id, invoice, None).await;
        self.world.until_quiet().await;
        if let Err(error @ Error::Fault(_)) = &assigned {
            return Err(format!("an assignment failed: {error:?}"));
        }
        agree("an assignment", self.model.assign(transfer, checkout), assigned.is_ok())?;
        self.catch_up().await;
        Ok(())
    }

    async fn buy(&mut self, who: Who) -> Told {
        let Some(account) = index(who) else { return Ok(()) };
        let price = catalog::find(&self.world.app, CHEAP).unwrap().retail;
        let purchase = Purchase {
            package_code: CHEAP.into(),
            reference: None,
            max_price: None,
            esim_order: None,
            customer_email: None,
            discount_code: None,
        };
        let enough = self.model.wallets[account] >= price;
        let bought = orders::place(&self.world.app, self.buyers[account].clone(), purchase).await;
        self.world.until_quiet().await;
        let id = match bought {
            Err(Error::Refused(Refusal::InsufficientBalance { .. })) if !enough => return Ok(()),
            Err(Error::Refused(Refusal::AccountSuspended)) if self.model.misses(account) => return Ok(()),
            Err(Error::Refused(Refusal::SupplierRejected { .. } | Refusal::SupplierUnavailable { .. })) => {
                None
            }
            Ok(receipt) => Some(receipt.order.id),
            Err(error) => return Err(format!("a purchase was refused: {error:?}")),
        };
        if !enough || self.model.debt_of(account).is_positive() {
            return Err(format!("account {account} bought without money, or with debts"));
        }
        self.model.wallets[account] = self.model.wallets[account].minus(price);
        let party = Party::Account(account);
        self.model.orders.push(Order {
            id,
            party,
            payment: None,
            price,
            state: State::Waiting,
            given: Usd::ZERO,
        });
        self.model.ask(self.model.orders.len() - 1, true);
        Ok(())
    }
}

/// The gateway must do what the model does, or refuse what it refuses.
pub fn agree(what: &str, model: bool, gateway: bool) -> Told {
    match (model, gateway) {
        (true, false) => Err(format!("{what} was refused, and should not be")),
        (false, true) => Err(format!("{what} was done, and should be refused")),
        (true, true) | (false, false) => Ok(()),
    }
}
