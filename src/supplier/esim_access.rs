//! Suppliers of the eSIM Access family. Several sellers publish the same API; their address, how requests are signed and
//! how long an id may be are settings. Asking again with the same `transactionId` is the same order, so a doubt is resolved
//! by repeating. An order is allocated in the background: it has a number at once, and its profile some seconds later.
//! `wire.rs` has the envelope and its codes, `read.rs` what values mean, `catalog.rs` packages as plans.

mod catalog;
mod read;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use self::catalog::{Package, Packages};
use self::read::Service;
use self::wire::{Fault, Line, PRICE_CODES, STILL_ALLOCATING, Text, WRONG_STATE};
use super::terms::Terms;
use super::wire::Pace;
use super::{
    Abilities, Answer, Ask, Bought, Cancel, CancelWay, Cancelled, DoubtRule, Heard, Profile, Provision,
    Reading, Sold, Supplier, TopUp,
};
use crate::clock::Clock;
use crate::domain::amount::{Amount, Fiat};
use crate::domain::esim::{EsimStatus, Usage, iccid};
use crate::domain::ids::OrderId;
use crate::domain::plan::Listing;
use crate::domain::time::Time;

/// They read their own meters every few hours.
const READING_EVERY: Duration = Duration::from_secs(60);
/// How long a sale may be missing in the list of profiles, while it is allocated.
const LISTED_WITHIN: Duration = Duration::from_secs(120);
/// The fewest profiles that a page of a look-up may have, and the most.
const SHORT_PAGE: usize = 5;
const LONG_PAGE: usize = 500;
const MOST_PAGES: usize = 10_000;
/// How far their clock and ours may be apart.
const CLOCKS_APART_MS: i64 = 600_000;
/// Between the number of an order and what it cost, where that is not what was expected at first.
const COST_MARK: char = '@';

pub struct EsimAccess {
    name: &'static str,
    line: Line,
    clock: Arc<Clock>,
    id_length: usize,
    currency: Fiat,
    rate: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Balance {
    balance: Text,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ordered {
    order_no: Text,
    #[serde(default)]
    transaction_id: Text,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Filled {
    transaction_id: Text,
    top_up_esim_tran_no: Text,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Esims {
    esim_list: Option<Vec<Esim>>,
}

/// A profile as their look-up shows it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Esim {
    esim_tran_no: Text,
    order_no: Text,
    transaction_id: Text,
    iccid: Text,
    ac: Text,
    smdp_status: Text,
    esim_status: Text,
    activate_time: Text,
    expired_time: Text,
    total_volume: Text,
    order_usage: Text,
    package_list: Option<Vec<Part>>,
}

/// The package that a profile was sold with, or a top-up of it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Part {
    package_code: Text,
    transaction_id: Text,
    create_time: Text,
}

impl Part {
    /// Whether it may be a top-up that was ordered then. Some sellers do not tell which order a part is of.
    fn may_be(&self, ask: &TopUp) -> bool {
        let (package, _) = catalog::split(ask.code);
        let since = ask.ordered_at.plus_millis(-CLOCKS_APART_MS);
        self.transaction_id.0.is_empty()
            && self.package_code.0 == package
            && read::time(&self.create_time.0).is_none_or(|at| at >= since)
    }
}

impl Esim {
    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.package_list.iter().flatten()
    }

    fn used(&self) -> Result<i64, String> {
        if self.order_usage.0.is_empty() { Ok(0) } else { read::whole(&self.order_usage.0) }
    }

    /// Its time runs from its first use; until then `expiredTime` says how long it can be installed.
    fn has_begun(&self, status: EsimStatus) -> bool {
        !self.activate_time.0.is_empty()
            || matches!(status, EsimStatus::Active | EsimStatus::Depleted | EsimStatus::Expired)
    }
}

impl EsimAccess {
    pub fn new(terms: &Terms, pace: Arc<dyn Pace>, clock: Arc<Clock>) -> Result<EsimAccess, String> {
        if terms.id_length < read::SHORT_ID {
            return Err(format!("ids of orders need {} characters; it may not be less", read::SHORT_ID));
        }
        Ok(EsimAccess {
            name: terms.name,
            line: Line::new(terms, pace, clock.clone())?,
            clock,
            id_length: terms.id_length,
            currency: terms.currency,
            rate: terms.rate,
        })
    }

    fn transaction(&self, order: &OrderId) -> Result<String, Fault> {
        read::transaction(order, self.id_length).map_err(Fault::NotSent)
    }

    /// The most that they may take, as they count money.
    fn most(&self, expected: Amount) -> Result<i64, Fault> {
        if expected.currency != self.currency {
            let why =
                format!("the cost is expected in {}, and it sells in {}", expected.currency, self.currency);
            return Err(Fault::NotSent(why));
        }
        Ok(read::units(expected))
    }

    async fn packages(&self, filter: Value) -> Result<Vec<Package>, Fault> {
        let answer: Packages = self.line.call("package/list", &filter).await?;
        answer.package_list.ok_or_else(|| Fault::Doubt("the answer has no list of packages".into()))
    }

    /// All top-ups. Some sellers list them only for a package: then one package of each family is asked for.
    async fn top_ups(&self, bases: &[Package]) -> Result<Vec<Package>, Fault> {
        let mut found = self.packages(json!({ "type": "TOPUP" })).await?;
        if found.is_empty() {
            for package in catalog::families(bases).into_values() {
                found.extend(self.packages(json!({ "type": "TOPUP", "packageCode": package })).await?);
            }
        }
        Ok(found)
    }

    async fn listings(&self) -> Result<Vec<Listing>, Fault> {
        let bases = self.packages(json!({ "type": "BASE" })).await?;
        let top_ups = self.top_ups(&bases).await?;
        Ok(catalog::listings(self.name, &bases, &top_ups, self.currency))
    }

    /// A page of profiles; the caller says which.
    async fn esims(&self, mut which: Value, page: usize, size: usize) -> Result<Vec<Esim>, Fault> {
        which["pager"] = json!({ "pageNum": page, "pageSize": size });
        let answer: Esims = self.line.call("esim/query", &which).await?;
        answer.esim_list.ok_or_else(|| Fault::Doubt("the answer has no list of profiles".into()))
    }

    /// The one profile of this name.
    async fn esim(&self, profile: &str) -> Result<Esim, Fault> {
        let found = self.esims(json!({ "esimTranNo": profile }), 1, SHORT_PAGE).await?;
        let mut ours = found.into_iter().filter(|esim| esim.esim_tran_no.0 == profile);
        ours.next().ok_or_else(|| Fault::Doubt(format!("the supplier does not find its profile {profile}")))
    }

    /// Every profile that was ordered since then.
    async fn since(&self, since: Time) -> Result<Vec<Esim>, Fault> {
        let from = read::time_text(since);
        let to = read::time_text(self.clock.now().plus_millis(CLOCKS_APART_MS));
        let mut all = Vec::new();
        for page in 1..=MOST_PAGES {
            let found = self.esims(json!({ "startTime": from, "endTime": to }), page, LONG_PAGE).await?;
            let was_full = found.len() >= LONG_PAGE;
            let number = |esims: &[Esim]| esims.first().map(|esim| esim.esim_tran_no.0.clone());
            if page > 1 && number(&found) == number(&all) {
                return Err(Fault::Doubt("the list of sales begins again and again".into()));
            }
            all.extend(found);
            if !was_full {
                return Ok(all);
            }
        }
        Err(Fault::Doubt("the list of sales has no end".into()))
    }

    /// Orders at this cost: the number of the order.
    async fn order_at(&self, transaction: &str, code: &str, cost: i64) -> Result<String, Fault> {
        let (package, days) = catalog::split(code);
        let mut info = json!({ "packageCode": package, "count": 1, "price": cost });
        if let Some(days) = days {
            info["periodNum"] = json!(days);
        }
        let body = json!({ "transactionId": transaction, "amount": cost, "packageInfoList": [info] });
        let ordered: Ordered = self.line.call("esim/order", &body).await?;
        // An answer to somebody else's order says nothing about ours.
        if ordered.transaction_id.0 != transaction || ordered.order_no.0.is_empty() {
            return Err(Fault::Doubt("the supplier answered for another order".into()));
        }
        Ok(ordered.order_no.0)
    }

    /// They refuse any cost but their own. When ours is not theirs and theirs is not more, theirs is right.
    async fn order(&self, ask: &Provision<'_>, transaction: &str) -> Result<String, Fault> {
        let most = self.most(ask.expected_cost)?;
        let refused = match self.order_at(transaction, ask.code, most).await {
            Err(fault) if fault.is(&PRICE_CODES) => fault,
            answered => return answered,
        };
        let (package, days) = catalog::split(ask.code);
        let listed = self.packages(json!({ "type": "BASE", "packageCode": package })).await;
        let cost = self.cost_now(listed.map_err(as_doubt)?, package, days);
        match cost.filter(|cost| *cost < most) {
            Some(cost) => {
                let number = self.order_at(transaction, ask.code, cost).await.map_err(after_another)?;
                Ok(format!("{number}{COST_MARK}{cost}"))
            }
            None => Err(refused),
        }
    }

    fn cost_now(&self, listed: Vec<Package>, code: &str, days: Option<i64>) -> Option<i64> {
        let found = listed.into_iter().find(|package| package.package_code.0 == code)?;
        found.price(days, self.currency).ok().map(read::units)
    }

    async fn sell(&self, ask: Provision<'_>) -> Answer<Bought<Profile>> {
        let transaction = match self.transaction(ask.order) {
            Ok(transaction) => transaction,
            Err(fault) => return fault.answer(),
        };
        if let Some(number) = ask.number {
            return match self.delivery(&ask, &transaction, number).await {
                Ok(answer) => answer,
                // It is sold: a look-up that is refused says nothing about that.
                Err(fault) if fault.refusal().is_some() => as_doubt(fault).answer(),
                Err(fault) => fault.answer(),
            };
        }
        let number = match self.order(&ask, &transaction).await {
            Ok(number) => number,
            Err(fault) if fault.refusal().is_some() => match self.sold_before(&ask, &transaction).await {
                Ok(Some(number)) => number,
                Ok(None) => return fault.answer(),
                Err(fault) => return as_doubt(fault).answer(),
            },
            Err(fault) => return fault.answer(),
        };
        // It is sold: whatever goes wrong from here on, the profile follows.
        match self.delivery(&ask, &transaction, &number).await {
            Ok(answer) => answer,
            Err(fault) => {
                tracing::warn!(supplier = self.name, order = %ask.order, why = fault.in_words(), "a sale cannot be looked at yet");
                Answer::Done(Bought::Underway { number })
            }
        }
    }

    /// A refusal may be about a second question: the first one, which nobody heard the answer of, may have taken the last
    /// profile or the last of our money. So the sale is looked for before a refusal is believed.
    async fn sold_before(&self, ask: &Provision<'_>, transaction: &str) -> Result<Option<String>, Fault> {
        let sales = self.since(ask.ordered_at.plus_millis(-CLOCKS_APART_MS)).await?;
        let ours = sales.into_iter().find(|esim| esim.transaction_id.0 == transaction);
        Ok(ours.map(|esim| esim.order_no.0))
    }

    /// How an order stands. Everything that was agreed is compared: the number, our id, the package, and that it is one.
    async fn delivery(
        &self,
        ask: &Provision<'_>,
        transaction: &str,
        number: &str,
    ) -> Result<Answer<Bought<Profile>>, Fault> {
        let underway = || Ok(Answer::Done(Bought::Underway { number: number.to_string() }));
        let (order_no, cost) = number.split_once(COST_MARK).unwrap_or((number, ""));
        let found = match self.esims(json!({ "orderNo": order_no }), 1, SHORT_PAGE).await {
            Err(fault) if fault.is(&[STILL_ALLOCATING]) => return underway(),
            found => found?,
        };
        let [esim] = &found[..] else {
            return if found.is_empty() { underway() } else { doubt("the order has more than one profile") };
        };
        let (package, _) = catalog::split(ask.code);
        let other_package =
            esim.parts().next().is_some() && !esim.parts().any(|part| part.package_code.0 == package);
        if esim.order_no.0 != order_no || esim.transaction_id.0 != transaction || other_package {
            return doubt("the supplier answered with the profile of another order");
        }
        match Service::read(self.name, &esim.esim_status.0) {
            // Our money is back there, and the profile is gone.
            Service::Cancelled => {
                return Ok(Answer::Refused("the sale was cancelled at the supplier".into()));
            }
            Service::Coming => return underway(),
            _ if esim.ac.0.is_empty() || esim.iccid.0.is_empty() => return underway(),
            Service::Revoked | Service::Expired => {
                return doubt("the profile was closed before it was delivered");
            }
            Service::New | Service::InUse | Service::UsedUp | Service::Suspended | Service::Unknown => {}
        }
        let what = profile(esim).map_err(Fault::Doubt)?;
        let cost = read::money(cost, self.currency).ok();
        Ok(Answer::Done(Bought::Delivered { what, number: Some(number.to_string()), cost }))
    }

    async fn fill_at(&self, ask: &TopUp<'_>, transaction: &str, cost: i64) -> Result<String, Fault> {
        let (package, days) = catalog::split(ask.code);
        let mut body = json!({
            "esimTranNo": ask.profile, "packageCode": package, "transactionId": transaction, "amount": cost,
        });
        if let Some(days) = days {
            body["periodNum"] = json!(days);
        }
        let filled: Filled = self.line.call("esim/topup", &body).await?;
        if filled.transaction_id.0 != transaction {
            return Err(Fault::Doubt("the supplier answered for another top-up".into()));
        }
        Ok(filled.top_up_esim_tran_no.0)
    }

    /// The same about cost as for orders. The number of the top-up, and its cost where that is not what was expected.
    async fn fill(&self, ask: &TopUp<'_>, transaction: &str) -> Result<(String, Option<i64>), Fault> {
        let most = self.most(ask.expected_cost)?;
        let refused = match self.fill_at(ask, transaction, most).await {
            Err(fault) if fault.is(&PRICE_CODES) => fault,
            answered => return answered.map(|number| (number, None)),
        };
        let (package, days) = catalog::split(ask.code);
        let iccid = self.esim(ask.profile).await.map_err(as_doubt)?.iccid.0;
        let listed = self.packages(json!({ "type": "TOPUP", "iccid": iccid })).await.map_err(as_doubt)?;
        match self.cost_now(listed, package, days).filter(|cost| *cost < most) {
            Some(cost) => {
                let number = self.fill_at(ask, transaction, cost).await.map_err(after_another)?;
                Ok((number, Some(cost)))
            }
            None => Err(refused),
        }
    }

    async fn sell_top_up(&self, ask: TopUp<'_>) -> Answer<Bought<()>> {
        let transaction = match self.transaction(ask.order) {
            Ok(transaction) => transaction,
            Err(fault) => return fault.answer(),
        };
        match self.fill(&ask, &transaction).await {
            Ok((number, cost)) => Answer::Done(Bought::Delivered {
                what: (),
                number: Some(number).filter(|number| !number.is_empty()),
                cost: cost.and_then(|cost| read::money(&cost.to_string(), self.currency).ok()),
            }),
            // As for orders: the profile shows whether an earlier question filled it.
            Err(fault) if fault.refusal().is_some() => match self.esim(ask.profile).await {
                Ok(esim) if esim.parts().any(|part| part.transaction_id.0 == transaction) => {
                    Answer::Done(Bought::Delivered { what: (), number: None, cost: None })
                }
                Ok(esim) if esim.parts().any(|part| part.may_be(&ask)) => as_doubt(fault).answer(),
                Ok(_) => fault.answer(),
                Err(fault) => as_doubt(fault).answer(),
            },
            Err(fault) => fault.answer(),
        }
    }

    async fn reading(&self, ask: Reading<'_>) -> Result<Usage, Fault> {
        let esim = self.esim(ask.profile).await?;
        let (used, total) = meter(&esim).map_err(Fault::Doubt)?;
        let service = Service::read(self.name, &esim.esim_status.0);
        // Notes a word that nobody knows.
        read::is_downloaded(self.name, &esim.smdp_status.0);
        let total_mb = read::megabytes(total);
        let usage = Usage {
            service: read::service_state(service, used, total),
            profile: read::profile_state(&esim.smdp_status.0),
            total_mb,
            used_mb: read::megabytes(used).min(total_mb),
            as_of: ask.now,
            expires_at: None,
        };
        let expires_at = read::time(&esim.expired_time.0).filter(|_| esim.has_begun(usage.status()));
        Ok(Usage { expires_at, ..usage })
    }

    async fn give_back(&self, ask: Cancel<'_>) -> Result<Cancelled, Fault> {
        let asked = self.line.call::<Value>("esim/cancel", &json!({ "esimTranNo": ask.profile })).await;
        let refused = match asked {
            // A cancel is answered with nothing: what names a sale is the answer to another question.
            Ok(told) if !told["orderNo"].is_null() || !told["transactionId"].is_null() => {
                return Err(Fault::Doubt("the supplier answered for another order".into()));
            }
            Ok(_) => return Ok(Cancelled::Yes { returned: ask.cost }),
            Err(fault) if fault.is(&[WRONG_STATE]) => fault,
            // Nothing else says that the profile stays.
            Err(Fault::Said { code, words }) => return Err(Fault::Doubt(format!("{code} {words}"))),
            Err(fault) => return Err(fault),
        };
        let esim = self.esim(ask.profile).await.map_err(as_doubt)?;
        let service = Service::read(self.name, &esim.esim_status.0);
        // An earlier question was heard, and its answer was not: our money is back.
        if service == Service::Cancelled {
            return Ok(Cancelled::Yes { returned: ask.cost });
        }
        let downloaded = read::is_downloaded(self.name, &esim.smdp_status.0);
        let used = esim.used().map_err(Fault::Doubt)?;
        let reason = read::kept_because(service, downloaded, used);
        reason.map(Cancelled::No).ok_or_else(|| Fault::Doubt(refused.in_words()))
    }

    async fn all_sold(&self, since: Time) -> Result<Vec<Sold>, Fault> {
        let mut sold = BTreeMap::new();
        for esim in self.since(since).await? {
            let what = iccid(esim.iccid.0.trim()).unwrap_or_else(|| esim.esim_tran_no.0.clone());
            sold.insert(esim.transaction_id.0.clone(), what);
            for part in esim.parts().filter(|part| !part.transaction_id.0.is_empty()) {
                sold.entry(part.transaction_id.0.clone()).or_insert_with(|| esim.esim_tran_no.0.clone());
            }
        }
        sold.remove("");
        Ok(sold.into_iter().map(|(id, what)| Sold { order: read::order(&id), what }).collect())
    }
}

fn doubt<T>(why: &str) -> Result<Answer<T>, Fault> {
    Ok(Answer::Doubt(why.into()))
}

/// A look at how things stand decides nothing when it fails.
fn as_doubt(fault: Fault) -> Fault {
    Fault::Doubt(fault.in_words())
}

/// Where something was sent before, a question that did not leave us leaves a doubt.
fn after_another(fault: Fault) -> Fault {
    if matches!(fault, Fault::NotSent(_)) { as_doubt(fault) } else { fault }
}

/// Bytes used and in all.
fn meter(esim: &Esim) -> Result<(i64, i64), String> {
    Ok((esim.used()?, read::whole(&esim.total_volume.0)?))
}

fn profile(esim: &Esim) -> Result<Profile, String> {
    let iccid = iccid(esim.iccid.0.trim()).ok_or("its ICCID cannot be read")?;
    if esim.esim_tran_no.0.is_empty() {
        return Err("the profile has no number".into());
    }
    let begun = !esim.activate_time.0.is_empty();
    Ok(Profile {
        id: esim.esim_tran_no.0.clone(),
        iccid,
        activation: read::activation(&esim.ac.0)?,
        install_by: read::time(&esim.expired_time.0).filter(|_| !begun),
    })
}

fn told<T>(result: Result<T, Fault>) -> Answer<T> {
    result.map_or_else(Fault::answer, Answer::Done)
}

impl Supplier for EsimAccess {
    fn name(&self) -> &'static str {
        self.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            doubt: DoubtRule::RepeatIsSafe,
            cancel: CancelWay::AtOnce,
            top_up: true,
            usage: true,
            checks_cost: true,
            rate: self.rate,
            reading_every: READING_EVERY,
            listed_within: LISTED_WITHIN,
        }
    }

    fn plans(&self) -> Ask<'_, Vec<Listing>> {
        Box::pin(async { told(self.listings().await) })
    }

    fn provision<'a>(&'a self, ask: Provision<'a>) -> Ask<'a, Bought<Profile>> {
        Box::pin(self.sell(ask))
    }

    fn top_up<'a>(&'a self, ask: TopUp<'a>) -> Ask<'a, Bought<()>> {
        Box::pin(self.sell_top_up(ask))
    }

    fn usage<'a>(&'a self, ask: Reading<'a>) -> Ask<'a, Usage> {
        Box::pin(async { told(self.reading(ask).await) })
    }

    fn cancel<'a>(&'a self, ask: Cancel<'a>) -> Ask<'a, Cancelled> {
        Box::pin(async { told(self.give_back(ask).await) })
    }

    fn balance(&self) -> Ask<'_, Amount> {
        Box::pin(async {
            let told: Result<Balance, Fault> = self.line.call("balance/query", &json!({})).await;
            match told.map(|answer| read::money(&answer.balance.0, self.currency)) {
                Ok(Ok(amount)) => Answer::Done(amount),
                Ok(Err(why)) => Answer::Doubt(why),
                Err(fault) => fault.answer(),
            }
        })
    }

    fn hear(&self, body: &[u8], _signature: Option<&str>) -> Heard {
        read::message(body)
    }

    fn sold(&self, since: Time) -> Ask<'_, Vec<Sold>> {
        Box::pin(async move { told(self.all_sold(since).await) })
    }
}
