//! One way to buy, for every door: from the wallet, by a transfer to an address, by signature, or by a link that fills
//! the wallet. A door says what is wanted and how its caller can pay, and shows the outcome.

use std::net::IpAddr;

use super::checkout::progress::{self, Progress};
use super::checkout::{self, NewCheckout};
use super::magic_link::{self, MagicLink};
use super::orders::{self, Buyer, Purchase, Receipt};
use super::x402::{self, Earlier, Tender, Tendered};
use super::{accounts, owned, topups};
use crate::app::App;
use crate::domain::checkout::{Checkout, Stage};
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, InvoiceId, OrderId};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::{Conflict, Difference, Refusal};
use crate::error::{Error, Result};
use crate::x402::wire::{PaymentRequired, SettlementResponse};

/// What somebody wants to buy.
#[derive(Default)]
pub struct Wish {
    pub package_code: String,
    /// A top-up: the eSIM that it fills.
    pub fills: Option<Fills>,
    /// The caller's own reference: the same one with the same wish is the same purchase, for ever.
    pub reference: Option<String>,
    /// A coupon, in any spelling.
    pub discount_code: Option<String>,
    /// Who gets a receipt when it is delivered.
    pub customer_email: Option<Email>,
    pub max_price: Option<Usd>,
}

/// How a caller names an eSIM.
pub enum Fills {
    Iccid(String),
    Order(OrderId),
}

/// How a purchase can be paid.
pub enum Means<'a> {
    /// From the wallet, or not at all.
    Wallet,
    /// The same; a caller who is short gets a link that fills the wallet.
    WalletWithLink,
    /// By a transfer to an address, or by signature.
    Transfer { pair: (Currency, Network), client: IpAddr, signing: Option<Signing<'a>> },
    /// From the wallet, or by signature. A caller who is short gets a link that fills the wallet, and an offer to sign
    /// if it can. For callers that know no invoices: to them a finished checkout is an order or a refusal.
    WalletOrLink { can_sign: bool, client: IpAddr, signing: Signing<'a> },
}

/// Payment by signature, as a door takes it; the default is for doors that take none.
#[derive(Default)]
pub struct Signing<'a> {
    /// What was signed, if anything was.
    pub payment: Option<&'a [u8]>,
    /// The name of the field where the door takes it.
    pub field: &'static str,
    /// What the payment is for.
    pub resource: String,
    /// What a caller who has signed nothing is told.
    pub unsigned: &'static str,
}

/// The outcome of a wish.
pub enum Outcome {
    /// The order is paid for: it is delivered, or still with the supplier.
    Bought { receipt: Box<Receipt>, settled: Option<SettlementResponse> },
    /// A payment to an address, or a signature, is needed.
    Due(Box<Due>),
    /// The wallet holds too little. Nothing was bought or charged.
    Short(Box<Short>),
    /// A payment on a chain was accepted for it, or it is too late for one: nobody is asked to pay again.
    Underway { progress: Box<Progress>, settled: Option<SettlementResponse>, replayed: bool },
    /// It was paid by signature, and the money was given back.
    Undelivered { refusal: Refusal, settled: Option<SettlementResponse> },
}

pub struct Due {
    pub checkout: Checkout,
    /// Whether a rounded amount pays it too, at the moment.
    pub rounds: bool,
    pub replayed: bool,
    /// The offer to sign for.
    pub offer: Option<PaymentRequired>,
    /// The result of a signature that was sent.
    pub settled: Option<SettlementResponse>,
}

pub struct Short {
    pub balance: Usd,
    pub required: Usd,
    /// The page that fills the wallet.
    pub link: MagicLink,
    /// The offer to sign for instead.
    pub offer: Option<PaymentRequired>,
    /// The result of a signature that was sent.
    pub settled: Option<SettlementResponse>,
}

impl Short {
    pub fn refusal(&self) -> Refusal {
        Refusal::WalletShort {
            balance: self.balance,
            required: self.required,
            link: self.link.url.clone(),
            until: self.link.expires_at,
        }
    }

    pub fn missing(&self) -> Usd {
        missing(self.balance, self.required)
    }
}

impl Outcome {
    /// The invoice of a purchase that is paid on a chain.
    pub fn invoice(&self) -> Option<&InvoiceId> {
        match self {
            Outcome::Due(due) => Some(&due.checkout.id),
            Outcome::Underway { progress, .. } => Some(&progress.checkout.id),
            Outcome::Bought { .. } | Outcome::Short(_) | Outcome::Undelivered { .. } => None,
        }
    }

    /// For a door that shows orders and nothing else.
    pub fn receipt(self) -> Result<Receipt> {
        match self {
            Outcome::Bought { receipt, .. } => Ok(*receipt),
            Outcome::Short(short) => Err(short.refusal().into()),
            Outcome::Undelivered { refusal, .. } => Err(refusal.into()),
            // Its reference belongs to a payment by signature at another door, which is not finished.
            Outcome::Underway { progress, .. } => {
                Err(Conflict::with_checkout(&progress.checkout.id, vec![Difference::Operation]).into())
            }
            Outcome::Due(_) => Err(Error::fault("an invoice where none is shown")),
        }
    }
}

impl Wish {
    /// The purchase of this wish, with its eSIM named by the order that brought it.
    pub(super) fn purchase(&self, esim_order: Option<OrderId>) -> Purchase {
        Purchase {
            package_code: self.package_code.clone(),
            reference: self.reference.clone(),
            max_price: self.max_price,
            esim_order,
            customer_email: self.customer_email.clone(),
            discount_code: self.discount_code.clone(),
        }
    }

    /// The order whose eSIM it fills, by its name alone.
    async fn esim_order(&self, app: &App, account: AccountNo) -> Result<Option<OrderId>> {
        Ok(match &self.fills {
            Some(Fills::Iccid(iccid)) => Some(owned::esim(app, account, iccid).await?.id),
            Some(Fills::Order(id)) => Some(id.clone()),
            None => None,
        })
    }
}

pub async fn buy(app: &App, buyer: Buyer, wish: Wish, means: Means<'_>) -> Result<Outcome> {
    match means {
        Means::Wallet => from_wallet(app, buyer, &wish).await.map(bought),
        Means::WalletWithLink => match from_wallet(app, buyer.clone(), &wish).await {
            Err(Error::Refused(Refusal::InsufficientBalance { balance, required })) => {
                let short = short(app, buyer.account, balance, required).await?;
                Ok(Outcome::Short(Box::new(short)))
            }
            paid => paid.map(bought),
        },
        Means::Transfer { pair, client, signing } => {
            by_transfer(app, buyer, wish, pair, client, signing).await
        }
        Means::WalletOrLink { can_sign, client, signing } => {
            let esim_order = wish.esim_order(app, buyer.account).await?;
            let counter = Counter { app, buyer, purchase: wish.purchase(esim_order), client, signing };
            match counter.signing.payment {
                Some(payment) => counter.by_signature(payment).await,
                None => counter.by_wallet_or_link(&wish, can_sign).await,
            }
        }
    }
}

fn bought(receipt: Receipt) -> Outcome {
    Outcome::Bought { receipt: Box::new(receipt), settled: None }
}

async fn from_wallet(app: &App, buyer: Buyer, wish: &Wish) -> Result<Receipt> {
    match &wish.fills {
        Some(fills) => {
            let filled = topups::filled(app, buyer.account, fills, wish.reference.as_deref()).await?;
            orders::buy(app, buyer, wish.purchase(Some(filled.id)), app.new_topup_id()).await
        }
        None => orders::place(app, buyer, wish.purchase(None)).await,
    }
}

async fn by_transfer(
    app: &App,
    buyer: Buyer,
    wish: Wish,
    (currency, network): (Currency, Network),
    client: IpAddr,
    signing: Option<Signing<'_>>,
) -> Result<Outcome> {
    let esim_order = match &wish.fills {
        Some(fills) => Some(topups::filled(app, buyer.account, fills, wish.reference.as_deref()).await?.id),
        None => None,
    };
    let mut due = Demand { app, signing: signing.as_ref(), error: None, settled: None };
    if let Some((signing, payment)) = signing.as_ref().and_then(|s| s.payment.map(|payment| (s, payment))) {
        let tender = Tender {
            account: buyer.account,
            package_code: &wish.package_code,
            esim_order: esim_order.as_ref(),
            // The reference names the checkout that is opened, not a payment for another one.
            reference: None,
            header: payment,
            field: signing.field,
        };
        match x402::pay(app, tender).await? {
            Tendered::Taken { progress, receipt } => {
                return Ok(Outcome::Underway { progress, settled: receipt, replayed: false });
            }
            Tendered::Refused { reason, receipt, checkout } => {
                (due.error, due.settled) = (Some(reason.as_str()), receipt);
                if let Some(checkout) = checkout {
                    let rounds = progress::rounds_now(app, &checkout).await?;
                    return Ok(due.of(*checkout, rounds, false));
                }
            }
        }
    }
    let new = NewCheckout {
        buyer,
        package_code: wish.package_code,
        esim_order,
        network,
        currency,
        customer_email: wish.customer_email,
        discount_code: wish.discount_code,
        reference: wish.reference,
        client,
        max_price: wish.max_price,
        is_offer: false,
    };
    let opened = checkout::open(app, new).await?;
    if !opened.replayed {
        return Ok(due.of(opened.checkout, opened.rounds, false));
    }
    let progress = progress::show(app, &opened.checkout.id, None).await?;
    let waits = progress.stage == Stage::PendingPayment && progress.confirmations() == 0 && !progress.signed;
    Ok(match waits {
        true => due.of(progress.checkout, progress.rounds, true),
        false => Outcome::Underway { progress: Box::new(progress), settled: None, replayed: true },
    })
}

/// A request for payment, before its checkout is known.
struct Demand<'a> {
    app: &'a App,
    signing: Option<&'a Signing<'a>>,
    /// Why a signature that was sent buys nothing.
    error: Option<&'static str>,
    settled: Option<SettlementResponse>,
}

impl Demand<'_> {
    fn of(self, checkout: Checkout, rounds: bool, replayed: bool) -> Outcome {
        let offer = self.signing.and_then(|signing| {
            let error = self.error.unwrap_or(signing.unsigned);
            x402::offer(self.app, &checkout, signing.resource.clone(), error)
        });
        Outcome::Due(Box::new(Due { checkout, rounds, replayed, offer, settled: self.settled }))
    }
}

/// A purchase by a caller that knows no invoices.
struct Counter<'a> {
    app: &'a App,
    buyer: Buyer,
    purchase: Purchase,
    client: IpAddr,
    signing: Signing<'a>,
}

impl Counter<'_> {
    async fn by_signature(self, payment: &[u8]) -> Result<Outcome> {
        if self.app.settler.is_none() {
            let message = "is not taken here: nobody settles payments by signature; nothing was charged";
            return Err(Refusal::field(self.signing.field, message).into());
        }
        let tender = Tender {
            account: self.buyer.account,
            package_code: &self.purchase.package_code,
            esim_order: self.purchase.esim_order.as_ref(),
            reference: self.purchase.reference.as_deref(),
            header: payment,
            field: self.signing.field,
        };
        match x402::pay(self.app, tender).await {
            Err(Error::Refused(Refusal::IdempotencyConflict(_))) => self.earlier().await,
            Err(error) => Err(error),
            Ok(Tendered::Taken { progress, receipt }) => self.concluded(*progress, receipt).await,
            Ok(Tendered::Refused { reason, receipt, checkout }) => {
                let checkout = match checkout {
                    Some(checkout) => *checkout,
                    None => self.open().await?,
                };
                let offer = self.offer(&checkout, reason.as_str()).ok_or(Refusal::ChainUnavailable)?;
                let balance = accounts::balance(self.app, self.buyer.account).await?.available;
                let short = short(self.app, self.buyer.account, balance, checkout.price()).await?;
                Ok(Outcome::Short(Box::new(Short { offer: Some(offer), settled: receipt, ..short })))
            }
        }
    }

    async fn by_wallet_or_link(self, wish: &Wish, can_sign: bool) -> Result<Outcome> {
        match from_wallet(self.app, self.buyer.clone(), wish).await {
            Ok(receipt) => Ok(bought(receipt)),
            Err(Error::Refused(Refusal::IdempotencyConflict(_))) => self.earlier().await,
            Err(Error::Refused(Refusal::InsufficientBalance { balance, required })) => {
                let short = short(self.app, self.buyer.account, balance, required).await?;
                let offer = match can_sign && self.app.settler.is_some() {
                    true => self.offer_anew().await?,
                    false => None,
                };
                Ok(Outcome::Short(Box::new(Short { offer, ..short })))
            }
            Err(error) => Err(error),
        }
    }

    /// The purchase that this reference made or is making.
    async fn earlier(self) -> Result<Outcome> {
        match x402::earlier(self.app, self.buyer.clone(), self.purchase.clone()).await? {
            Earlier::Bought(receipt) => Ok(Outcome::Bought { receipt, settled: None }),
            Earlier::Underway(progress) => self.concluded(*progress, None).await,
        }
    }

    async fn concluded(self, progress: Progress, settled: Option<SettlementResponse>) -> Result<Outcome> {
        if let Some(refusal) = progress.refusal() {
            return Ok(Outcome::Undelivered { refusal, settled });
        }
        match (&progress.order, progress.stage) {
            (Some(order), Stage::Completed | Stage::Failed) => {
                let balance = accounts::balance(self.app, self.buyer.account).await?.available;
                let receipt = Receipt { order: order.clone(), balance, replayed: false };
                Ok(Outcome::Bought { receipt: Box::new(receipt), settled })
            }
            _ => Ok(Outcome::Underway { progress: Box::new(progress), settled, replayed: false }),
        }
    }

    /// The offer to sign for a new checkout; `None` for a buyer who has opened too many, because the link works for
    /// everybody.
    async fn offer_anew(&self) -> Result<Option<PaymentRequired>> {
        match self.open().await {
            Ok(checkout) => Ok(self.offer(&checkout, self.signing.unsigned)),
            Err(Error::Refused(Refusal::TooManyCheckouts { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn offer(&self, checkout: &Checkout, error: &str) -> Option<PaymentRequired> {
        x402::offer(self.app, checkout, self.signing.resource.clone(), error)
    }

    async fn open(&self) -> Result<Checkout> {
        let first = checkout::pairs(self.app).first().copied();
        let (currency, network) = first.ok_or(Refusal::ChainUnavailable)?;
        let new = NewCheckout {
            buyer: self.buyer.clone(),
            package_code: self.purchase.package_code.clone(),
            esim_order: self.purchase.esim_order.clone(),
            network,
            currency,
            customer_email: None,
            reference: None,
            client: self.client,
            max_price: self.purchase.max_price,
            is_offer: true,
            discount_code: self.purchase.discount_code.clone(),
        };
        Ok(checkout::open(self.app, new).await?.checkout)
    }
}

/// The answer for a wallet that is short, with a link to pay in the missing money.
async fn short(app: &App, account: AccountNo, balance: Usd, required: Usd) -> Result<Short> {
    let link = magic_link::create(app, account, missing(balance, required)).await?;
    Ok(Short { balance, required, link, offer: None, settled: None })
}

fn missing(balance: Usd, required: Usd) -> Usd {
    required.minus(balance).max(Usd::ZERO)
}
