//! A seller of the eSIM Access family: the API's paths, envelopes and rules over a small world of packages, orders and
//! profiles. `esimaccess-python` talks to it as to the real one (`sdk/esimaccess.py`). A test can make it misbehave, and reads what
//! it was sent.

mod catalog;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use ring::hmac;
use serde_json::{Value, json};
use simgate::clock::Clock;
use simgate::supplier::terms::AuthMode;
use simgate::wire::dates;

use self::catalog::{MB, UNUSED_DAYS, changed, packages, top_ups};

pub const CODE: &str = "access-code-0f9e8d7c";
pub const SECRET: &str = "secret-key-1a2b3c4d";
pub const ROOT: &str = "/api/v1/open/";
const FIRST_BALANCE: i64 = 10_000_000;
const SIGNED_WITHIN_MS: i64 = 300_000;
/// How late an answer is that comes late.
const LATE: Duration = Duration::from_millis(150);

/// What goes wrong with the calls that sell or take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    HangAfter,
    HangBefore,
    /// HTTP 500 after it was done.
    BreakAfter,
    /// HTTP 429 before anything is done.
    TooMany,
    MumbleAfter,
    /// Answers a while after it was done.
    LateAfter,
    /// Answers with what it answered to the call before.
    AnswerBefore,
}

pub struct Recorded {
    pub at: Instant,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

#[derive(Clone)]
pub struct Sold {
    pub tran_no: String,
    pub order_no: String,
    pub transaction: String,
    pub iccid: String,
    pub package: Value,
    pub price: i64,
    /// The questions that it takes until the profile is there.
    pub questions: usize,
    pub esim_status: String,
    pub smdp_status: String,
    pub ac: String,
    pub total: i64,
    pub used: i64,
    pub days: i64,
    /// Transaction, package and number of each top-up.
    pub top_ups: Vec<(String, Value, String)>,
    pub at: String,
    pub expires: String,
    pub activated: Option<String>,
}

pub struct World {
    pub auth: AuthMode,
    pub locked: bool,
    pub fault: Fault,
    pub hanging: usize,
    pub balance: i64,
    pub no_funds: bool,
    pub sold_out: bool,
    /// What every price rose by since it was listed; less than nothing when it fell.
    pub surcharge: i64,
    /// The questions that an allocation takes.
    pub questions: usize,
    /// Looks at stock, money and states before it looks whether it knows the transaction.
    pub forgetful: bool,
    /// Lists top-ups only for a package or a profile.
    pub top_ups_by_package: bool,
    pub packages: Vec<Value>,
    pub top_ups: Vec<Value>,
    pub sold: Vec<Sold>,
    pub requests: Vec<Recorded>,
    /// What it counts its sales and ICCIDs from.
    pub numbers: i64,
    last: Option<String>,
    clock: Clock,
}

pub struct Fake {
    pub url: String,
    world: Arc<Mutex<World>>,
}

impl Fake {
    pub async fn start() -> Fake {
        let world = World {
            auth: AuthMode::Code,
            locked: false,
            fault: Fault::None,
            hanging: 0,
            balance: FIRST_BALANCE,
            no_funds: false,
            sold_out: false,
            surcharge: 0,
            questions: 1,
            forgetful: false,
            top_ups_by_package: false,
            packages: packages(),
            top_ups: top_ups(),
            sold: Vec::new(),
            requests: Vec::new(),
            numbers: 0,
            last: None,
            clock: Clock::default(),
        };
        let world = Arc::new(Mutex::new(world));
        let router = Router::new().fallback(serve).with_state(world.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}{}", listener.local_addr().unwrap(), ROOT.trim_end_matches('/'));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Fake { url, world }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }
}

impl World {
    /// The profile of this number.
    pub fn esim(&mut self, tran_no: &str) -> &mut Sold {
        self.sold.iter_mut().find(|esim| esim.tran_no == tran_no).expect("a profile that was sold")
    }

    pub fn sales(&self) -> usize {
        self.sold.iter().map(|esim| 1 + esim.top_ups.len()).sum()
    }

    pub fn spend(&mut self, tran_no: &str, used_mb: i64) {
        let now = self.now();
        let esim = self.esim(tran_no);
        esim.used = used_mb * MB;
        esim.smdp_status = "ENABLED".into();
        esim.esim_status = if esim.used >= esim.total { "USED_UP" } else { "IN_USE" }.into();
        esim.activated.get_or_insert(now);
    }

    fn now(&self) -> String {
        self.in_days(0)
    }

    /// `2024-05-29T18:34:17+0000`
    fn in_days(&self, days: i64) -> String {
        format!("{}+0000", &dates::iso(self.clock.now().plus_days(days))[..19])
    }

    fn number(&mut self) -> i64 {
        self.numbers += 1;
        self.numbers
    }
}

type Outcome = Result<Value, (&'static str, &'static str)>;

enum Reaction {
    Answer(StatusCode, String),
    Late(String),
    Hang,
}

async fn serve(
    State(world): State<Arc<Mutex<World>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let reaction = world.lock().unwrap().react(uri.path(), &headers, &body);
    match reaction {
        Reaction::Answer(status, text) => {
            let mut response = (status, [("content-type", "application/json")], text).into_response();
            if status == StatusCode::TOO_MANY_REQUESTS {
                response.headers_mut().insert("retry-after", "7".parse().unwrap());
            }
            response
        }
        Reaction::Late(text) => {
            tokio::time::sleep(LATE).await;
            (StatusCode::OK, [("content-type", "application/json")], text).into_response()
        }
        Reaction::Hang => std::future::pending().await,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl World {
    fn react(&mut self, path: &str, headers: &HeaderMap, raw: &[u8]) -> Reaction {
        let path = path.strip_prefix(ROOT).unwrap_or("").to_string();
        let body = serde_json::from_slice(raw).unwrap_or(Value::Null);
        let outcome = self.authenticate(headers, raw);
        let (at, headers) = (Instant::now(), headers.clone());
        self.requests.push(Recorded { at, path: path.clone(), headers, body: body.clone() });
        let changes = matches!(path.as_str(), "esim/order" | "esim/topup" | "esim/cancel");
        let fault = if changes { self.fault } else { Fault::None };
        match fault {
            Fault::HangBefore => return self.hang(),
            Fault::TooMany => return Reaction::Answer(StatusCode::TOO_MANY_REQUESTS, "{}".into()),
            Fault::AnswerBefore if self.last.is_some() => {
                return Reaction::Answer(StatusCode::OK, self.last.clone().unwrap());
            }
            _ => {}
        }
        let told = enveloped(outcome.and_then(|()| self.answer(&path, &body)));
        match fault {
            Fault::HangAfter => return self.hang(),
            Fault::BreakAfter => {
                let broken =
                    json!({"timestamp": self.now(), "status": 500, "error": "Internal Server Error"});
                return Reaction::Answer(StatusCode::INTERNAL_SERVER_ERROR, broken.to_string());
            }
            Fault::MumbleAfter => return Reaction::Answer(StatusCode::OK, "{\"success\":tr".into()),
            Fault::LateAfter => return Reaction::Late(told),
            _ => {}
        }
        if path == "esim/order" {
            self.last = Some(told.clone());
        }
        Reaction::Answer(StatusCode::OK, told)
    }

    fn hang(&mut self) -> Reaction {
        self.hanging += 1;
        Reaction::Hang
    }

    fn authenticate(&self, headers: &HeaderMap, raw: &[u8]) -> Result<(), (&'static str, &'static str)> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if header("rt-accesscode") != CODE {
            return Err(("000101", "request header is missing or wrong"));
        }
        if self.locked {
            return Err(("101002", "the IP is blocked"));
        }
        match self.auth {
            AuthMode::Code => Ok(()),
            AuthMode::Secret if header("rt-secretkey") == SECRET => Ok(()),
            AuthMode::Secret => Err(("101003", "the signature is wrong: secret-key-1a2b3c4d was expected")),
            AuthMode::Signed | AuthMode::SignedUpper => {
                let (time, id) = (header("rt-timestamp"), header("rt-requestid"));
                let sent: i64 = time.parse().unwrap_or_default();
                if (self.clock.now().micros() / 1_000 - sent).abs() > SIGNED_WITHIN_MS {
                    return Err(("101001", "the timestamp has expired"));
                }
                let mut message = format!("{time}{id}{CODE}").into_bytes();
                message.extend_from_slice(raw);
                let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), &message);
                let expected: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
                let in_capitals = self.auth == AuthMode::SignedUpper;
                let expected = if in_capitals { expected.to_uppercase() } else { expected };
                if header("rt-signature") == expected && id.len() == 36 {
                    Ok(())
                } else {
                    Err(("101003", "the signature is wrong"))
                }
            }
        }
    }

    fn answer(&mut self, path: &str, body: &Value) -> Outcome {
        match path {
            "balance/query" => Ok(json!({ "balance": self.balance })),
            "package/list" => self.list(body),
            "esim/order" => self.order(body),
            "esim/query" => self.query(body),
            "esim/topup" => self.top_up(body),
            "esim/cancel" => self.cancel(body),
            _ => Err(("000103", "no such method")),
        }
    }

    fn list(&self, body: &Value) -> Outcome {
        let (code, iccid) = (text(&body["packageCode"]), text(&body["iccid"]));
        if text(&body["type"]) != "TOPUP" {
            let wanted = |package: &&Value| code.is_empty() || package["packageCode"] == code;
            let found: Vec<Value> =
                self.packages.iter().filter(wanted).map(|found| self.priced(found)).collect();
            return Ok(json!({ "packageList": found }));
        }
        let sold = self.sold.iter().find(|esim| !iccid.is_empty() && esim.shown_iccid().contains(iccid));
        let base = match sold {
            Some(esim) => Some(&esim.package),
            None => self.packages.iter().find(|package| package["packageCode"] == code),
        };
        let asked = !code.is_empty() || !iccid.is_empty();
        if self.top_ups_by_package && !asked {
            return Ok(json!({ "packageList": [] }));
        }
        let fits = |bundle: &&Value| !asked || base.is_some_and(|base| fits(base, bundle));
        let found: Vec<Value> = self.top_ups.iter().filter(fits).map(|found| self.priced(found)).collect();
        Ok(json!({ "packageList": found }))
    }

    fn priced(&self, package: &Value) -> Value {
        let price = package["price"].as_i64().unwrap();
        let price = if price > 0 { price + self.surcharge } else { price };
        changed(package.clone(), json!({ "price": price }))
    }

    /// Takes the money for a package, or says why it is not sold.
    fn charge(
        &mut self,
        package: &Value,
        days: &Value,
        told: &[&Value],
    ) -> Result<(i64, i64), (&'static str, &'static str)> {
        let daily = package["dataType"] != 1;
        let times = if daily { days.as_i64().ok_or(("000105", "periodNum is missing"))? } else { 1 };
        if self.sold_out {
            return Err(("200011", "there are not enough profiles left"));
        }
        let price = self.priced(package)["price"].as_i64().unwrap() * times;
        if told.iter().any(|told| told.as_i64().is_some_and(|told| told != price)) {
            return Err(("200005", "the price is not what it costs"));
        }
        if self.no_funds || self.balance < price {
            return Err(("200007", "the balance is not enough"));
        }
        self.balance -= price;
        Ok((price, times))
    }

    fn order(&mut self, body: &Value) -> Outcome {
        let transaction = text(&body["transactionId"]).to_string();
        if transaction.is_empty() || transaction.len() > 50 {
            return Err(("000106", "transactionId is missing or too long"));
        }
        let known =
            self.sold.iter().find(|esim| esim.transaction == transaction).map(|esim| esim.order_no.clone());
        let again = |order_no: &String| Ok(json!({ "orderNo": order_no, "transactionId": transaction }));
        if let Some(order_no) = known.as_ref().filter(|_| !self.forgetful) {
            return again(order_no);
        }
        let [info] = body["packageInfoList"].as_array().map_or(&[][..], Vec::as_slice) else {
            return Err(("200008", "the order's parameters are wrong"));
        };
        let package = self.packages.iter().find(|package| package["packageCode"] == info["packageCode"]);
        let package = package.cloned().ok_or(("310241", "no such packageCode"))?;
        let spent = self.charge(&package, &info["periodNum"], &[&info["price"], &body["amount"]]);
        if let Some(order_no) = known.filter(|_| spent.is_ok()) {
            self.balance += spent?.0;
            return again(&order_no);
        }
        let (price, times) = spent?;
        let order_no = format!("B2405{:08}", self.number());
        let sold = self.profile(&order_no, &transaction, package, price, times);
        self.sold.push(sold);
        again(&order_no)
    }

    pub fn profile(
        &mut self,
        order_no: &str,
        transaction: &str,
        package: Value,
        price: i64,
        times: i64,
    ) -> Sold {
        let number = self.number();
        let duration = package["duration"].as_i64().unwrap() * times;
        Sold {
            tran_no: format!("2405{number:010}"),
            order_no: order_no.to_string(),
            transaction: transaction.to_string(),
            iccid: format!("8985224528{number:010}"),
            price,
            questions: self.questions,
            esim_status: "GOT_RESOURCE".into(),
            smdp_status: "RELEASED".into(),
            ac: format!("LPA:1$rsp.esim.example$MATCH-{number:08}"),
            total: package["volume"].as_i64().unwrap() * times,
            used: 0,
            days: duration,
            top_ups: Vec::new(),
            at: self.now(),
            expires: self.in_days(UNUSED_DAYS),
            activated: None,
            package,
        }
    }

    fn query(&mut self, body: &Value) -> Outcome {
        let (size, page) = (body["pager"]["pageSize"].as_u64(), body["pager"]["pageNum"].as_u64());
        let (Some(size @ 5..=500), Some(page @ 1..=10_000)) = (size, page) else {
            return Err(("000107", "the pager is wrong"));
        };
        let (order_no, iccid, tran_no) =
            (text(&body["orderNo"]), text(&body["iccid"]), text(&body["esimTranNo"]));
        let (from, to) = (text(&body["startTime"]), text(&body["endTime"]));
        let wanted = |esim: &&mut Sold| {
            (order_no.is_empty() || esim.order_no == order_no)
                && (iccid.is_empty() || esim.shown_iccid().contains(iccid))
                && (tran_no.is_empty() || esim.tran_no == tran_no)
                && (from.is_empty() || esim.at[..19] >= from[..19])
                && (to.is_empty() || esim.at[..19] <= to[..19])
        };
        let mut found: Vec<&mut Sold> = self.sold.iter_mut().filter(wanted).collect();
        let mut coming = false;
        if !order_no.is_empty() {
            if found.is_empty() {
                return Err(("310272", "no such orderNo"));
            }
            let waits = found.iter_mut().map(|esim| esim.asked()).max().unwrap_or_default();
            if waits > 1 {
                return Err(("200010", "the profiles are still being allocated"));
            }
            coming = waits == 1;
        }
        let total = found.len();
        let shown = found.into_iter().skip((page as usize - 1) * size as usize).take(size as usize);
        let esims: Vec<Value> = shown.map(|esim| esim.shown(coming)).collect();
        Ok(json!({ "esimList": esims, "pager": { "pageSize": size, "pageNum": page, "total": total } }))
    }

    fn meant(&mut self, body: &Value) -> Option<usize> {
        let (tran_no, iccid) = (text(&body["esimTranNo"]), text(&body["iccid"]));
        self.sold.iter().position(|esim| {
            (!tran_no.is_empty() && esim.tran_no == tran_no)
                || (!iccid.is_empty() && esim.shown_iccid().contains(iccid))
        })
    }

    fn top_up(&mut self, body: &Value) -> Outcome {
        let transaction = text(&body["transactionId"]).to_string();
        let at = self.meant(body).ok_or(("310403", "no such ICCID in the order"))?;
        let known = self.sold[at].top_ups.iter().any(|(id, ..)| *id == transaction);
        let is_open = matches!(self.sold[at].esim_status.as_str(), "GOT_RESOURCE" | "IN_USE" | "USED_UP");
        if !is_open && (self.forgetful || !known) {
            return Err(("200002", "not allowed in this status"));
        }
        if !known {
            let bundle = self.top_ups.iter().find(|bundle| bundle["packageCode"] == body["packageCode"]);
            let bundle = bundle.cloned().ok_or(("310241", "no such packageCode"))?;
            if !fits(&self.sold[at].package, &bundle) {
                return Err(("310243", "the package does not fit"));
            }
            let (_, times) = self.charge(&bundle, &body["periodNum"], &[&body["amount"]])?;
            let number = format!("2405{:010}", self.number());
            let esim = &mut self.sold[at];
            esim.total += bundle["volume"].as_i64().unwrap() * times;
            esim.days += bundle["duration"].as_i64().unwrap() * times;
            if esim.esim_status == "USED_UP" {
                esim.esim_status = "IN_USE".into();
            }
            esim.top_ups.push((transaction.clone(), bundle, number));
        }
        let esim = &self.sold[at];
        let number =
            esim.top_ups.iter().find(|(id, ..)| *id == transaction).map(|(.., number)| number.clone());
        Ok(json!({
            "transactionId": transaction, "iccid": esim.shown_iccid(), "expiredTime": esim.expires,
            "totalVolume": esim.total, "totalDuration": esim.days, "orderUsage": esim.used, "topUpEsimTranNo": number,
        }))
    }

    fn cancel(&mut self, body: &Value) -> Outcome {
        let at = self.meant(body).ok_or(("310403", "no such ICCID in the order"))?;
        let esim = &mut self.sold[at];
        if esim.esim_status != "GOT_RESOURCE" || esim.smdp_status != "RELEASED" {
            return Err(("200002", "not allowed in this status"));
        }
        esim.esim_status = "CANCEL".into();
        self.balance += esim.price;
        Ok(json!({}))
    }
}

/// A bundle fits what covers the same places in the same way.
fn fits(base: &Value, bundle: &Value) -> bool {
    base["location"] == bundle["location"] && (base["dataType"] == 1) == (bundle["dataType"] == 1)
}

impl Sold {
    /// One question more; how many were left before it.
    fn asked(&mut self) -> usize {
        let left = self.questions;
        self.questions = left.saturating_sub(1);
        left
    }

    /// Every third ends in a filler and has a digit less.
    fn shown_iccid(&self) -> String {
        match self.kind() {
            1 => format!("{}{}F", &self.iccid[..9], &self.iccid[10..]),
            _ => self.iccid.clone(),
        }
    }

    /// The digits that are printed on no card.
    pub fn digits(&self) -> String {
        self.shown_iccid().trim_end_matches('F').to_string()
    }

    fn kind(&self) -> i64 {
        self.tran_no.parse::<i64>().unwrap() % 3
    }

    fn shown(&self, coming: bool) -> Value {
        let part = |package: &Value, transaction: &str, number: &str| {
            json!({
                "packageName": package["name"], "packageCode": package["packageCode"], "slug": package["slug"],
                "duration": package["duration"], "volume": package["volume"], "locationCode": package["location"],
                "createTime": self.at, "esimTranNo": number, "transactionId": transaction,
            })
        };
        let mut parts = vec![part(&self.package, &self.transaction, &self.tran_no)];
        parts.extend(self.top_ups.iter().map(|(id, package, number)| part(package, id, number)));
        // Every third is written as a number.
        let iccid = match self.kind() {
            2 => format!("#{}#", self.shown_iccid()),
            _ => self.shown_iccid(),
        };
        let mut esim = json!({
            "esimTranNo": self.tran_no, "orderNo": self.order_no, "transactionId": self.transaction,
            "imsi": "454006109846571", "iccid": iccid, "msisdn": "", "smsStatus": 0, "ac": self.ac,
            "qrCodeUrl": "https://p.qrsim.example/90f197.png", "shortUrl": "https://p.qrsim.example/90f197",
            "smdpStatus": self.smdp_status, "eid": "", "activeType": 2, "dataType": self.package["dataType"],
            "activateTime": self.activated, "expiredTime": self.expires, "totalVolume": self.total,
            "totalDuration": self.days, "durationUnit": "DAY", "orderUsage": self.used,
            "esimStatus": self.esim_status, "pin": "6313", "puk": "25363068", "apn": "isp", "packageList": parts,
        });
        if coming || self.questions > 0 {
            esim = changed(esim, json!({"iccid": null, "ac": null, "esimStatus": "GETTING_RESOURCE"}));
        }
        esim
    }
}

fn enveloped(outcome: Outcome) -> String {
    let envelope = match outcome {
        Ok(obj) => json!({"success": true, "errorCode": "0", "errorMsg": null, "obj": obj}),
        Err((code, words)) => json!({"success": false, "errorCode": code, "errorMsg": words, "obj": null}),
    };
    envelope.to_string().replace("\"#", "").replace("#\"", "")
}
