//! Airalo's Partner API v2. A sale is synchronous. There is no idempotency: our order id is the description of a sale,
//! and a sale in doubt is looked for by it. Giving back is a request that people review, if the operator wants that at all.
//! `airalo/` has the token, the shapes of answers, the catalog, what refusals mean, and signatures.

mod catalog;
mod refusals;
mod shapes;
pub mod signature;
mod token;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::RequestBuilder;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use self::shapes::{Balances, Envelope, Meter, Order, Refund, Rows, Text};
use self::token::{Token, Tokens};
use super::terms::Terms;
use super::unknown;
use super::wire::{Lost, Pace, Reply, Wire};
use super::{
    Abilities, Answer, Ask, Bought, Cancel, CancelWay, Cancelled, DoubtRule, Find, Heard, Profile, Provision,
    Reading, Sale, Sold, Supplier, TopUp,
};
use crate::domain::amount::{Amount, Fiat};
use crate::domain::esim::{ServiceState, Usage, iccid};
use crate::domain::ids::OrderId;
use crate::domain::order::CancelReason;
use crate::domain::plan::Listing;
use crate::domain::time::Time;

/// All packages come on one page of this size; further pages are read all the same.
const PACKAGES_A_PAGE: usize = 1_000;
const ORDERS_A_PAGE: usize = 100;
/// A list that never ends is nonsense.
const MOST_PAGES: i64 = 2_000;
/// A profile's meter may be read ten times a minute, and changes every twenty minutes.
const READING_EVERY: Duration = Duration::from_secs(60);
/// How long we hold back after a 429 that does not say, and at most.
const REST: Duration = Duration::from_secs(60);
const LONGEST_REST: Duration = Duration::from_secs(3600);
/// Later than every sale.
const LAST_DAY: &str = "2099-12-31";

pub struct Airalo {
    name: &'static str,
    wire: Wire,
    tokens: Tokens,
    rate: f64,
    quiet: Duration,
    currency: Fiat,
    reviewed_cancels: bool,
    /// When each desk may be asked again.
    rests: Mutex<[Option<Instant>; DESKS]>,
}

/// What has a rate of its own: being sent away from one desk says nothing about the others.
#[derive(Clone, Copy)]
enum Desk {
    Packages,
    Orders,
    Meters,
    Refunds,
    Balance,
}

const DESKS: usize = 5;

impl Airalo {
    pub fn new(terms: &Terms, pace: Arc<dyn Pace>) -> Result<Airalo, String> {
        let secret = terms.secret.clone().ok_or("airalo needs the client's secret")?;
        Ok(Airalo {
            name: terms.name,
            wire: Wire::new(&terms.url, pace)?,
            tokens: Tokens::new(terms.client.clone(), secret),
            rate: terms.rate,
            quiet: terms.quiet,
            currency: terms.currency,
            reviewed_cancels: terms.reviewed_cancels,
            rests: Mutex::default(),
        })
    }

    /// Sends a request with a token. A 401 is a definite no to that request, also to a purchase: nobody looked at it. So
    /// sending it once more with a new token cannot buy twice.
    async fn send(
        &self,
        desk: Desk,
        build: impl Fn() -> Result<RequestBuilder, Lost>,
    ) -> Result<Reply, Lost> {
        self.require_rested(desk)?;
        let token = self.tokens.current(&self.wire, None).await?;
        let mut reply = self.wire.send(authorized(build()?, &token)).await?;
        if reply.status.as_u16() == 401 {
            let token = self.tokens.current(&self.wire, Some(token.renewal)).await?;
            reply = self.wire.send(authorized(build()?, &token)).await?;
        }
        if reply.status.as_u16() == 429 {
            self.rest(desk, &reply);
        }
        Ok(reply)
    }

    fn require_rested(&self, desk: Desk) -> Result<(), Lost> {
        let until = self.rests.lock().ok().and_then(|rests| rests[desk as usize]);
        match until.and_then(|until| until.checked_duration_since(Instant::now())) {
            Some(left) if !left.is_zero() => {
                Err(Lost::NotSent(format!("the supplier wants no requests for {} s", left.as_secs() + 1)))
            }
            _ => Ok(()),
        }
    }

    fn rest(&self, desk: Desk, reply: &Reply) {
        let told = reply.headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let rest = told.map_or(REST, Duration::from_secs).min(LONGEST_REST);
        if let Ok(mut rests) = self.rests.lock() {
            rests[desk as usize] = Some(Instant::now() + rest);
        }
    }

    async fn get(&self, desk: Desk, path: &str) -> Answer<Vec<u8>> {
        answered(self.send(desk, || self.wire.get(path)).await, 200)
    }

    /// Posts JSON, signed.
    async fn post(&self, desk: Desk, path: &str, body: &impl Serialize, wanted: u16) -> Answer<Vec<u8>> {
        let text = match serde_json::to_string(body) {
            Ok(text) => text,
            Err(error) => return Answer::NotSent(error.to_string()),
        };
        let signed = signature::sign(self.tokens.secret(), &text);
        let build = || {
            let request = self.wire.post(path)?;
            Ok(request
                .header("content-type", "application/json")
                .header("airalo-signature", &signed)
                .body(text.clone()))
        };
        answered(self.send(desk, build).await, wanted)
    }

    /// All pages of a list. A part of it is none: whoever compares would miss what is missing.
    async fn pages<T: DeserializeOwned>(&self, desk: Desk, path: &str) -> Answer<Vec<T>> {
        let (mut all, mut page) = (Vec::new(), 1);
        loop {
            let answer: Envelope<Rows<T>> =
                match self.get(desk, &format!("{path}&page={page}")).await.and_then(read) {
                    Answer::Done(answer) => answer,
                    other => return other.map(|_| Vec::new()),
                };
            let was_empty = answer.data.0.is_empty();
            all.extend(answer.data.0);
            let last = answer.meta.last_page.as_ref().and_then(Text::whole).unwrap_or(1);
            if page >= last {
                let total = answer.meta.total.as_ref().and_then(Text::whole).unwrap_or(0);
                return match all.len() as i64 >= total {
                    true => Answer::Done(all),
                    false => Answer::Doubt(format!("a list of {total} came with {}", all.len())),
                };
            }
            if was_empty || page >= MOST_PAGES {
                return Answer::Doubt("a list did not come to its end".into());
            }
            page += 1;
        }
    }

    async fn listings(&self) -> Answer<Vec<Listing>> {
        let mut countries = Vec::new();
        for kind in ["local", "global"] {
            let path = query(
                "v2/packages",
                &[("include", "topup"), ("filter[type]", kind), ("limit", &PACKAGES_A_PAGE.to_string())],
            );
            match self.pages(Desk::Packages, &path).await {
                Answer::Done(page) => countries.extend(page),
                other => return other.map(|_: Vec<catalog::Country>| Vec::new()),
            }
        }
        let (plans, unread) = catalog::listings(&countries, self.currency);
        if unread > 0 {
            unknown::note(
                self.name,
                "package",
                &format!("{unread} without a cost, a size, a time or a place"),
            );
        }
        Answer::Done(plans)
    }

    async fn buy(&self, ask: &Provision<'_>) -> Answer<Bought<Profile>> {
        let order = match ask.number {
            Some(number) => self.with_number(number).await,
            None => {
                let body = NewOrder {
                    package_id: ask.code,
                    quantity: 1,
                    r#type: "sim",
                    description: ask.order.as_str(),
                };
                self.post(Desk::Orders, "v2/orders", &body, 200).await.and_then(read_order)
            }
        };
        order.and_then(|order| sold(order, ask.order, ask.code)).and_then(delivered)
    }

    async fn fill(&self, ask: &TopUp<'_>) -> Answer<Bought<()>> {
        let order = match (ask.number, shapes::iccid_of(ask.profile)) {
            (Some(number), _) => self.with_number(number).await,
            (None, Some(iccid)) => {
                let body = NewTopUp { package_id: ask.code, iccid, description: ask.order.as_str() };
                self.post(Desk::Orders, "v2/orders/topups", &body, 200).await.and_then(read_order)
            }
            (None, None) => Answer::Refused("this is no profile of Airalo's".into()),
        };
        order.and_then(|order| sold(order, ask.order, ask.code)).map(|order| Bought::Delivered {
            what: (),
            number: Some(order.number),
            cost: order.cost,
        })
    }

    /// A sale whose number we were told.
    async fn with_number(&self, number: &str) -> Answer<Order> {
        let found = match self.list(&[("filter[code]", number)]).await {
            // It is sold: a look-up that is refused says nothing about that.
            Answer::Refused(no) => Answer::Doubt(no.said),
            found => found,
        };
        found.and_then(|found| {
            // The filter finds parts of numbers too.
            let same = |order: &Order| order.code.as_ref().is_some_and(|code| code.0 == number);
            match found.into_iter().find(same) {
                Some(order) => Answer::Done(order),
                None => Answer::Doubt(format!("the supplier does not know its own number {number}")),
            }
        })
    }

    async fn list(&self, filter: &[(&str, &str)]) -> Answer<Vec<Order>> {
        let limit = ORDERS_A_PAGE.to_string();
        let fields = [&[("include", "sims,status")], filter, &[("limit", &limit)]].concat();
        self.pages(Desk::Orders, &query("v2/orders", &fields)).await
    }

    /// Looks for sales by their description. The filter finds every text that contains ours; if it finds others, it was
    /// not applied, and then a page without our sale proves nothing.
    async fn look_for(&self, reference: &str) -> Answer<Vec<Sale>> {
        let found = match self.list(&[("filter[description]", reference)]).await {
            Answer::Done(found) => found,
            other => return other.map(|_| Vec::new()),
        };
        let of = |order: &Order| order.description.as_ref().map_or(String::new(), |text| text.0.clone());
        let (ours, others): (Vec<Order>, Vec<Order>) =
            found.into_iter().partition(|order| of(order) == reference);
        if ours.is_empty() && others.iter().any(|order| !of(order).contains(reference)) {
            return Answer::Doubt("the look-up answered with other sales: its filter was not applied".into());
        }
        let mut sales = Vec::new();
        for order in ours.iter().filter(|order| !order.is_void()) {
            match sale(order) {
                Some(sale) => sales.push(sale),
                None => return Answer::Doubt("a sale with our description cannot be read".into()),
            }
        }
        Answer::Done(sales)
    }

    async fn meter(&self, profile: &str, now: Time) -> Answer<Usage> {
        let Some(iccid) = shapes::iccid_of(profile) else {
            return Answer::Refused("this is no profile of Airalo's".into());
        };
        let answer = self.get(Desk::Meters, &format!("v2/sims/{iccid}/usage")).await;
        answer.and_then(read).and_then(|envelope: Envelope<Meter>| self.reading(&envelope.data, now))
    }

    fn reading(&self, meter: &Meter, now: Time) -> Answer<Usage> {
        let word = meter.status.as_ref().map_or("", |status| status.0.as_str());
        let number = |text: &Option<Text>| text.as_ref().and_then(Text::floor);
        // A plan without an end has zeros here.
        let (Some(total), Some(remaining)) = (number(&meter.total), number(&meter.remaining)) else {
            return Answer::Doubt("a meter cannot be read".into());
        };
        let total_mb = total.max(0);
        let used_mb = total_mb.saturating_sub(remaining).clamp(0, total_mb);
        let expires_at = meter.expired_at.as_ref().and_then(|text| shapes::time(&text.0));
        let service = shapes::state(word, used_mb > 0).unwrap_or_else(|| {
            unknown::note(self.name, "status", word);
            ServiceState::Unknown
        });
        Answer::Done(Usage { service, profile: None, total_mb, used_mb, as_of: now, expires_at })
    }

    async fn request_refund(&self, profile: &str) -> Answer<Cancelled> {
        if !self.reviewed_cancels {
            return Answer::Done(Cancelled::No(CancelReason::SupplierCannotCancel));
        }
        let Some(iccid) = shapes::iccid_of(profile) else {
            return Answer::Refused("this is no profile of Airalo's".into());
        };
        let body =
            RefundRequest { iccids: [iccid], reason: "OTHERS", notes: "Given back before its first use." };
        let answer = self.post(Desk::Refunds, "v2/refund", &body, 202).await;
        answer
            .and_then(read)
            .map(|refund: Envelope<Refund>| Cancelled::Requested { request: refund.data.refund_id.0 })
    }

    async fn money_left(&self) -> Answer<Amount> {
        self.get(Desk::Balance, "v2/balance").await.and_then(read).and_then(|envelope: Envelope<Balances>| {
            let available = &envelope.data.balances.available;
            // A balance may be below zero: some accounts have credit.
            let amount = Fiat::parse(&available.currency.0)
                .and_then(|currency| Amount::parse(&available.amount.0, currency).ok());
            amount.map_or(Answer::Doubt("the balance cannot be read".into()), Answer::Done)
        })
    }

    async fn sales_since(&self, since: Time) -> Answer<Vec<Sold>> {
        let days = Timestamp::from_microsecond(since.micros())
            .map(|from| format!("{} - {LAST_DAY}", from.strftime("%Y-%m-%d")));
        let orders = match days.as_deref() {
            Ok(days) if since.micros() > 0 => self.list(&[("filter[created_at]", days)]).await,
            _ => self.list(&[]).await,
        };
        orders.map(|orders| {
            let is_later = |order: &&Order| order.at().is_none_or(|at| at.and_a_little() >= since);
            // A sale made while we read pages moves another one to the next page, where it comes again.
            let mut seen = HashSet::new();
            let is_new = |order: &&Order| order.code.as_ref().is_none_or(|code| seen.insert(code.0.clone()));
            let standing = orders.iter().filter(|order| !order.is_void());
            standing.filter(is_later).filter(is_new).map(in_records).collect()
        })
    }
}

#[derive(Serialize)]
struct NewOrder<'a> {
    package_id: &'a str,
    quantity: i64,
    r#type: &'a str,
    description: &'a str,
}

#[derive(Serialize)]
struct NewTopUp<'a> {
    package_id: &'a str,
    iccid: &'a str,
    description: &'a str,
}

#[derive(Serialize)]
struct RefundRequest<'a> {
    iccids: [&'a str; 1],
    reason: &'a str,
    notes: &'a str,
}

fn authorized(request: RequestBuilder, token: &Token) -> RequestBuilder {
    request.header("accept", "application/json").bearer_auth(token.text.expose_secret())
}

fn query(path: &str, fields: &[(&str, &str)]) -> String {
    let text = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    format!("{path}?{text}")
}

fn answered(reply: Result<Reply, Lost>, wanted: u16) -> Answer<Vec<u8>> {
    match reply {
        Ok(reply) => refusals::verdict(reply, wanted),
        Err(Lost::NotSent(why)) => Answer::NotSent(why),
        Err(Lost::Doubt(why)) => Answer::Doubt(why),
    }
}

fn read<T: DeserializeOwned>(body: Vec<u8>) -> Answer<T> {
    match serde_json::from_slice(&body) {
        Ok(answer) => Answer::Done(answer),
        Err(_) => Answer::Doubt("the answer cannot be read".into()),
    }
}

fn read_order(body: Vec<u8>) -> Answer<Order> {
    read(body).map(|envelope: Envelope<Order>| envelope.data)
}

/// A sale that is ours.
struct Ours {
    order: Order,
    number: String,
    cost: Option<Amount>,
}

/// Compares a sale with what was asked for. The answer to a top-up may lack the description; a different one is not ours.
fn sold(order: Order, id: &OrderId, code: &str) -> Answer<Ours> {
    let is = |text: &Option<Text>, wanted: &str| text.as_ref().is_some_and(|text| text.0 == wanted);
    let described = order.description.as_ref().is_none_or(|text| text.0 == id.as_str());
    let kind = order.kind.as_ref().is_none_or(|kind| kind.0 == if id.is_topup() { "topup" } else { "sim" });
    let same =
        is(&order.package_id, code) && is(&order.quantity, "1") && described && kind && !order.is_void();
    match order.code.as_ref().map(|code| code.0.clone()).filter(|number| !number.is_empty()) {
        Some(number) if same => {
            let cost = order.cost();
            Answer::Done(Ours { order, number, cost })
        }
        _ => Answer::Doubt("the answer is about another sale".into()),
    }
}

fn delivered(sold: Ours) -> Answer<Bought<Profile>> {
    match sold.order.sims() {
        [] => Answer::Done(Bought::Underway { number: sold.number }),
        [sim] => match sim.profile() {
            Some(what) => {
                Answer::Done(Bought::Delivered { what, number: Some(sold.number), cost: sold.cost })
            }
            None => Answer::Doubt("the profile cannot be read".into()),
        },
        _ => Answer::Doubt("one profile was ordered, and several came".into()),
    }
}

fn sale(order: &Order) -> Option<Sale> {
    let profile = match order.sims() {
        [] => None,
        [sim] => Some(sim.profile()?),
        _ => return None,
    };
    let is_topup = order.kind.as_ref().is_some_and(|kind| kind.0 == "topup");
    Some(Sale {
        reference: order.description.as_ref()?.0.clone(),
        number: order.code.as_ref()?.0.clone(),
        code: order.package_id.as_ref()?.0.clone(),
        quantity: order.quantity.as_ref()?.whole()?,
        at: order.at()?,
        cost: order.cost(),
        iccid: profile.as_ref().map(|profile| profile.iccid.clone()),
        profile: profile.filter(|_| !is_topup),
    })
}

/// Sales without a description were not ours: their number names them.
fn in_records(order: &Order) -> Sold {
    let text = |text: &Option<Text>| text.as_ref().map(|text| text.0.clone()).filter(|text| !text.is_empty());
    let iccid = order.sims().first().and_then(|sim| iccid(sim.iccid.as_ref()?.0.trim()));
    Sold {
        order: OrderId::from_text(text(&order.description).or_else(|| text(&order.code)).unwrap_or_default()),
        what: iccid.or_else(|| text(&order.package_id)).unwrap_or_default(),
    }
}

impl Supplier for Airalo {
    fn name(&self) -> &'static str {
        self.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            doubt: DoubtRule::FindByReference { quiet: self.quiet },
            cancel: if self.reviewed_cancels { CancelWay::Reviewed } else { CancelWay::Never },
            top_up: true,
            usage: true,
            checks_cost: false,
            rate: self.rate,
            reading_every: READING_EVERY,
            listed_within: Duration::ZERO,
        }
    }

    fn plans(&self) -> Ask<'_, Vec<Listing>> {
        Box::pin(self.listings())
    }

    fn provision<'a>(&'a self, ask: Provision<'a>) -> Ask<'a, Bought<Profile>> {
        Box::pin(async move { self.buy(&ask).await })
    }

    fn top_up<'a>(&'a self, ask: TopUp<'a>) -> Ask<'a, Bought<()>> {
        Box::pin(async move { self.fill(&ask).await })
    }

    fn find<'a>(&'a self, ask: Find<'a>) -> Ask<'a, Vec<Sale>> {
        Box::pin(self.look_for(ask.order.as_str()))
    }

    fn usage<'a>(&'a self, ask: Reading<'a>) -> Ask<'a, Usage> {
        Box::pin(self.meter(ask.profile, ask.now))
    }

    fn cancel<'a>(&'a self, ask: Cancel<'a>) -> Ask<'a, Cancelled> {
        Box::pin(self.request_refund(ask.profile))
    }

    fn balance(&self) -> Ask<'_, Amount> {
        Box::pin(self.money_left())
    }

    fn signature_header(&self) -> Option<&'static str> {
        Some(signature::HEADER)
    }

    /// Messages about low data name a profile; those about our credit name nothing.
    fn hear(&self, body: &[u8], signature: Option<&str>) -> Heard {
        if !signature.is_some_and(|header| signature::is_signed(self.tokens.secret(), body, header)) {
            return Heard::Forged;
        }
        match shapes::about(body) {
            Some(iccid) => Heard::About { message: None, number: None, iccid: Some(iccid) },
            None => Heard::Nothing,
        }
    }

    fn sold(&self, since: Time) -> Ask<'_, Vec<Sold>> {
        Box::pin(self.sales_since(since))
    }
}
