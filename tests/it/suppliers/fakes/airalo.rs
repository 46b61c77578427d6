//! Airalo's Partner API as its documents and its own SDKs know it, with a world behind it: tokens that end, packages,
//! orders that cost money, profiles with meters, and refunds that somebody will look at. It can misbehave, and keeps
//! every request. The vendor's SDKs make the same journey against it as our adapter (`suppliers/airalo.rs`).

mod catalog;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use simgate::clock::Clock;
use simgate::domain::money::Usd;
use simgate::domain::time::Time;
use simgate::supplier::airalo::signature;
use tokio::sync::watch;

use self::catalog::{all_packages, catalog, dearer, package};

pub const CLIENT: &str = "client-1";
pub const SECRET: &str = "s3cret-of-the-client";
pub const BASE: &str = "change-7days-1gb";
pub const TOPUP: &str = "change-7days-1gb-topup";
/// How late an answer is that comes late.
const LATE: Duration = Duration::from_millis(150);

/// How it behaves when it is asked to sell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    #[default]
    Fine,
    BuysAndHangs,
    Hangs,
    /// Sells, and answers 500.
    BuysAndBreaks,
    /// Sells, and answers no JSON.
    BuysAndMumbles,
    /// Sells, and answers a while later.
    BuysAndDawdles,
    /// Answers with the newest sale, and sells nothing.
    Duplicates,
    /// No token is good, and none is given.
    LocksOut,
    /// Sells; the profile is in the list a question later.
    Slow,
    /// Refuses with 422 and this code.
    Refuses(i64),
    /// Refuses what was sent: a field is not valid.
    FindsInvalid(&'static str),
    /// Answers this status to everything but the token.
    Answers(u16),
    /// 429, to come back after so many seconds.
    Busy(u64),
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Request {
    /// The fields of a body, whether it is JSON or a form.
    pub fn fields(&self) -> Value {
        match serde_json::from_str(&self.body) {
            Ok(fields) => fields,
            Err(_) => {
                let pairs = form_urlencoded::parse(self.body.as_bytes()).into_owned();
                Value::Object(pairs.map(|(name, value)| (name, value.into())).collect())
            }
        }
    }
}

#[derive(Clone)]
pub struct Order {
    pub fields: Value,
    pub iccid: String,
    /// Questions until its profile is shown.
    pub hidden: usize,
}

pub struct Profile {
    pub total_mb: i64,
    pub used_mb: i64,
    pub status: &'static str,
}

#[derive(Default)]
pub struct World {
    pub manner: Manner,
    pub tokens: Vec<String>,
    pub balance: Usd,
    /// What every cost rose by.
    pub surcharge: Usd,
    /// What it bills beyond what it lists.
    pub unlisted: Usd,
    pub orders: Vec<Order>,
    pub profiles: BTreeMap<String, Profile>,
    pub refunds: Vec<Value>,
    pub requests: Vec<Request>,
    /// The list of orders answers with all of them, whatever is asked for.
    pub filter_ignored: bool,
    /// The list of orders does not know the newest sales.
    pub list_lags: bool,
    /// The list of orders leaves out rows that it counts.
    pub list_is_cut: bool,
    /// The state of every order in the list.
    pub status: &'static str,
    pub iccid_digits: usize,
    /// What it bills in.
    pub currency: &'static str,
    /// What it counts its sales and ICCIDs from.
    pub made: i64,
}

#[derive(Clone)]
pub struct Fake {
    pub url: String,
    world: Arc<Mutex<World>>,
    /// How many questions it holds without an answer.
    held: Arc<watch::Sender<usize>>,
}

pub fn now() -> Time {
    Clock::default().now()
}

fn stamp() -> String {
    let now = jiff::Timestamp::from_microsecond(now().micros()).unwrap();
    now.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

impl Fake {
    pub async fn start() -> Fake {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let world = World {
            balance: Usd::dollars(100),
            iccid_digits: 19,
            status: "completed",
            currency: "USD",
            ..World::default()
        };
        let fake = Fake {
            url: format!("http://{}", listener.local_addr().unwrap()),
            world: Arc::new(Mutex::new(world)),
            held: Arc::new(watch::channel(0).0),
        };
        let router = Router::new().fallback(answer).with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        fake
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub fn set(&self, manner: Manner) {
        self.held.send_replace(0);
        self.world().manner = manner;
    }

    /// Comes back when it holds a question that it will not answer.
    pub async fn until_it_hangs(&self) {
        self.held.subscribe().wait_for(|held| *held > 0).await.unwrap();
    }

    /// The requests to a path, in their order.
    pub fn asked(&self, method: &str, path: &str) -> Vec<Request> {
        let world = self.world();
        world
            .requests
            .iter()
            .filter(|request| request.method == method && request.path == path)
            .cloned()
            .collect()
    }

    async fn hang(&self) -> Response {
        self.held.send_modify(|held| *held += 1);
        std::future::pending().await
    }
}

fn told(status: u16, body: Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), [("content-type", "application/json")], body.to_string())
        .into_response()
}

fn data(data: Value) -> Value {
    json!({ "data": data, "meta": { "message": "success" } })
}

fn invalid(field: &str) -> Response {
    let message = format!("The {field} is invalid.");
    told(422, json!({ "data": { field: message }, "meta": { "message": "the parameter is invalid" } }))
}

fn code(code: i64) -> Response {
    told(422, json!({ "code": code, "reason": format!("the reason of {code}") }))
}

async fn answer(
    Shared(fake): Shared<Fake>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().to_string();
    let request = Request {
        method: method.to_string(),
        path: uri.path().to_string(),
        query,
        headers: headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    fake.world().requests.push(request.clone());
    if request.path == "/v2/token" {
        return fake.world().token(&request);
    }
    if !fake.world().knows(&request) {
        return told(401, json!({ "data": [], "meta": { "message": "This action is unauthorized." } }));
    }
    let manner = fake.world().manner;
    match manner {
        Manner::Answers(status) => return told(status, json!({ "code": 89, "reason": "no" })),
        Manner::Busy(seconds) => {
            let mut busy = told(429, json!({ "data": [], "meta": { "message": "Too Many Attempts." } }));
            busy.headers_mut().insert("retry-after", seconds.into());
            return busy;
        }
        _ => {}
    }
    let parts: Vec<&str> = request.path.trim_start_matches("/v2/").split('/').collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("POST", ["orders"] | ["orders", "topups"]) => sell(&fake, &request, manner).await,
        ("POST", ["refund"]) => match manner {
            Manner::Hangs => fake.hang().await,
            _ => fake.world().refund(&request),
        },
        ("GET", ["packages"]) => packages(&request, fake.world().surcharge),
        ("GET", ["orders"]) => fake.world().list(&request),
        ("GET", ["balance"]) => {
            let amount: Value = serde_json::from_str(&fake.world().balance.to_string()).unwrap();
            let available = json!({ "amount": amount, "currency": fake.world().currency });
            told(200, data(json!({ "balances": { "name": "balance", "availableBalance": available } })))
        }
        ("GET", ["sims", iccid, what]) => fake.world().sim(iccid, what),
        _ => told(404, json!({ "data": [], "meta": { "message": "Not found" } })),
    }
}

async fn sell(fake: &Fake, request: &Request, manner: Manner) -> Response {
    if manner == Manner::Hangs {
        return fake.hang().await;
    }
    let sold = {
        let mut world = fake.world();
        match (manner, world.orders.last().cloned()) {
            (Manner::Refuses(number), _) => return code(number),
            (Manner::FindsInvalid(field), _) => return invalid(field),
            (Manner::Duplicates, Some(newest)) => newest,
            _ => match world.sell(request) {
                Ok(order) => order,
                Err(refusal) => return *refusal,
            },
        }
    };
    match manner {
        Manner::BuysAndHangs => fake.hang().await,
        Manner::BuysAndBreaks => told(500, json!({ "data": [], "meta": { "message": "Server Error" } })),
        Manner::BuysAndDawdles => {
            tokio::time::sleep(LATE).await;
            told(200, data(fake.world().shown(&sold)))
        }
        Manner::BuysAndMumbles => (StatusCode::OK, "<html>Thank you</html>").into_response(),
        _ => told(200, data(fake.world().shown(&sold))),
    }
}

impl World {
    fn next(&mut self) -> i64 {
        self.made += 1;
        self.made
    }

    fn token(&mut self, request: &Request) -> Response {
        let fields = request.fields();
        let signed = request.headers.get("airalo-signature").is_none_or(|header| {
            let known = ["client_id", "client_secret", "grant_type"]
                .map(|name| format!("{}:{}", json!(name), fields[name]));
            *header == signature::sign(SECRET, &format!("{{{}}}", known.join(",")))
        });
        let known = fields["client_id"] == CLIENT && fields["client_secret"] == SECRET;
        if self.manner == Manner::LocksOut || !known || !signed {
            return told(401, json!({ "data": [], "meta": { "message": "Authentication failed" } }));
        }
        if fields["grant_type"] != "client_credentials" {
            return invalid("grant_type");
        }
        // As long as a real one: the SDK for Python keeps tokens encrypted, and cannot read short ones back.
        let token = format!("eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9.{:0>400}.signature-{}", "x", self.next());
        self.tokens.push(token.clone());
        told(200, data(json!({ "token_type": "Bearer", "expires_in": 31_622_400, "access_token": token })))
    }

    fn knows(&self, request: &Request) -> bool {
        let bearer = request.headers.get("authorization").and_then(|header| header.strip_prefix("Bearer "));
        self.manner != Manner::LocksOut
            && bearer.is_some_and(|token| self.tokens.iter().any(|known| known == token))
    }

    fn is_signed(&self, request: &Request) -> bool {
        let header = request.headers.get("airalo-signature").map_or("", String::as_str);
        signature::is_signed(SECRET, request.body.as_bytes(), header)
    }

    fn sell(&mut self, request: &Request) -> Result<Order, Box<Response>> {
        if !self.is_signed(request) {
            return Err(Box::new(code(14)));
        }
        let asked = request.fields();
        let is_topup = request.path.ends_with("/topups");
        let kind = if is_topup { "topup" } else { "sim" };
        let package =
            package(asked["package_id"].as_str().unwrap_or_default()).filter(|found| found["type"] == kind);
        let package =
            dearer(package.ok_or_else(|| invalid("package_id"))?, self.surcharge.plus(self.unlisted));
        if !is_topup && (asked["quantity"] != 1 || asked["type"] != "sim") {
            return Err(Box::new(invalid("quantity")));
        }
        let cost = Usd::parse(&package["net_price"].to_string()).unwrap();
        if self.balance < cost {
            return Err(Box::new(code(11)));
        }
        let size = package["amount"].as_i64().unwrap();
        let iccid = match is_topup {
            true => {
                let iccid = asked["iccid"].as_str().unwrap_or_default().to_string();
                let profile = self.profiles.get_mut(&iccid).ok_or_else(|| invalid("iccid"))?;
                if profile.status == "RECYCLED" {
                    return Err(Box::new(code(73)));
                }
                profile.total_mb += size;
                iccid
            }
            false => {
                let number = self.next();
                let iccid = format!("89{number:0width$}", width = self.iccid_digits - 2);
                self.profiles
                    .insert(iccid.clone(), Profile { total_mb: size, used_mb: 0, status: "NOT_ACTIVE" });
                iccid
            }
        };
        self.balance = self.balance.minus(cost);
        let id = self.next();
        let fields = json!({
            "id": id, "code": format!("20261118-{id:06}"), "currency": self.currency, "package_id": package["id"],
            // As the documents show it.
            "quantity": if is_topup { json!(1) } else { json!("1") },
            "type": kind, "description": asked["description"], "esim_type": "Prepaid", "validity": package["day"],
            "package": format!("Change-{}", package["title"].as_str().unwrap()), "data": package["data"],
            "price": package["price"], "net_price": cost.to_string().parse::<serde_json::Number>().unwrap(), "pricing_model": "net_pricing",
            "created_at": stamp(), "manual_installation": "<p><b>eSIM name:</b> Change</p>",
            "qrcode_installation": "<p>Scan it</p>", "installation_guides": { "en": "https://sandbox.example/guide" },
            "text": null, "voice": null, "brand_settings_name": null,
        });
        let hidden = if self.manner == Manner::Slow { 2 } else { 0 };
        let order = Order { fields, iccid, hidden };
        self.orders.push(order.clone());
        Ok(order)
    }

    /// An order with its profile; a top-up has none.
    fn shown(&mut self, order: &Order) -> Value {
        let mut fields = order.fields.clone();
        if fields["type"] == "topup" {
            return fields;
        }
        let shows = match self.orders.iter_mut().find(|kept| kept.fields["id"] == fields["id"]) {
            Some(kept) if kept.hidden > 0 => {
                kept.hidden -= 1;
                false
            }
            _ => true,
        };
        let matching = format!("TEST-{}", order.fields["id"]);
        let lpa = format!("LPA:1$lpa.airalo.example${matching}");
        let apple = format!("https://esimsetup.apple.com/esim_qrcode_provisioning?carddata={lpa}");
        let sim = json!({
            "id": order.fields["id"].as_i64().unwrap() + 10_000, "created_at": order.fields["created_at"],
            "iccid": order.iccid, "lpa": "lpa.airalo.example", "imsis": null, "matching_id": matching, "qrcode": lpa,
            "qrcode_url": "https://sandbox.example/qr?id=1", "direct_apple_installation_url": apple, "airalo_code": null,
            "apn_type": "automatic", "apn_value": null, "is_roaming": true, "confirmation_code": null,
            "apn": { "ios": { "apn_type": "automatic", "apn_value": null }, "android": { "apn_type": "automatic", "apn_value": null } },
            "msisdn": null,
        });
        fields["sims"] = if shows { json!([sim]) } else { json!([]) };
        fields
    }

    /// Filters find parts of texts, and pages beyond the first are numbered.
    fn list(&mut self, request: &Request) -> Response {
        let wanted = |name: &str| request.query.get(name).cloned().unwrap_or_default();
        let (description, number) = (wanted("filter[description]"), wanted("filter[code]"));
        let has = |order: &&Order, field: &str, part: &str| {
            order.fields[field].as_str().unwrap_or_default().contains(part)
        };
        let skipped = if self.list_lags { 1 } else { 0 };
        let ignored = self.filter_ignored;
        let chosen: Vec<Order> = self
            .orders
            .iter()
            .rev()
            .skip(skipped)
            .filter(|order| {
                ignored || (has(order, "description", &description) && has(order, "code", &number))
            })
            .cloned()
            .collect();
        let limit: usize = wanted("limit").parse().unwrap_or(50);
        let page: usize = wanted("page").parse().unwrap_or(1);
        let status = json!({ "name": self.status, "slug": self.status });
        let cut = usize::from(self.list_is_cut);
        let shown: Vec<Value> = chosen
            .iter()
            .skip((page - 1) * limit)
            .take(limit - cut)
            .map(|order| {
                let mut shown = self.shown(order);
                shown["status"] = status.clone();
                // The list has its prices as texts.
                shown["price"] = json!(shown["price"].to_string());
                shown["quantity"] = json!(1);
                shown
            })
            .collect();
        listed(shown, page, limit, chosen.len())
    }

    fn refund(&mut self, request: &Request) -> Response {
        let asked = request.fields();
        let iccids: Vec<&str> =
            asked["iccids"].as_array().map_or(vec![], |all| all.iter().filter_map(Value::as_str).collect());
        if iccids.is_empty()
            || iccids.len() > 5
            || iccids.iter().any(|iccid| !self.profiles.contains_key(*iccid))
        {
            return invalid("iccids");
        }
        const REASONS: [&str; 4] = ["OTHERS", "WRONG_PURCHASE", "CHANGE_OF_PLAN", "TRIP_CANCELLATION"];
        let reason = asked["reason"].as_str().unwrap_or_default();
        if !REASONS.contains(&reason)
            || (reason == "OTHERS" && asked["notes"].as_str().is_none_or(str::is_empty))
        {
            return invalid("reason");
        }
        self.refunds.push(asked);
        let id = self.refunds.len() + 12_000;
        told(202, data(json!({ "refund_id": id.to_string(), "created_at": &stamp()[..16] })))
    }

    fn sim(&mut self, iccid: &str, what: &str) -> Response {
        let Some(profile) = self.profiles.get(iccid) else {
            return told(404, json!({ "data": [], "meta": { "message": "Not found" } }));
        };
        match what {
            "usage" => {
                let remaining = profile.total_mb - profile.used_mb;
                let expires =
                    if profile.status == "NOT_ACTIVE" { Value::Null } else { json!("2027-01-01 00:00:00") };
                told(
                    200,
                    data(json!({
                        "remaining": remaining, "total": profile.total_mb, "expired_at": expires, "is_unlimited": false,
                        "status": profile.status, "remaining_voice": 0, "remaining_text": 0, "total_voice": 0, "total_text": 0,
                    })),
                )
            }
            "topups" => {
                let fits: Vec<Value> =
                    all_packages().into_iter().filter(|package| package["type"] == "topup").collect();
                told(
                    200,
                    json!({ "pricing": { "model": "net_pricing", "discount_percentage": 0 }, "data": fits }),
                )
            }
            "packages" => {
                let bought = json!({ "id": 1, "remaining": profile.total_mb, "activated_at": null, "expired_at": null,
                    "finished_at": null, "status": profile.status, "package": BASE });
                told(200, data(json!([bought])))
            }
            "instructions" => {
                let way = json!({ "steps": { "1": "Go to Settings.", "2": "Scan the QR Code." }, "qr_code_data": "LPA:1$a$b" });
                let phone = json!([{ "model": null, "version": "15,14", "installation_via_qr_code": way,
                    "installation_manual": { "steps": { "1": "Go to Settings." } }, "network_setup": { "steps": { "1": "Select it." } } }]);
                told(
                    200,
                    data(json!({ "instructions": { "language": "EN", "ios": phone, "android": phone } })),
                )
            }
            _ => told(404, json!({ "data": [], "meta": { "message": "Not found" } })),
        }
    }
}

/// A page of a list; beyond the first one its rows are numbered.
fn listed(rows: Vec<Value>, page: usize, limit: usize, total: usize) -> Response {
    let rows = match page {
        1 => Value::Array(rows),
        _ => rows
            .into_iter()
            .enumerate()
            .map(|(nth, row)| (((page - 1) * limit + nth).to_string(), row))
            .collect(),
    };
    let last = total.div_ceil(limit).max(1);
    let meta = json!({ "message": "success", "current_page": page, "from": 1, "last_page": last, "path": "", "per_page": limit.to_string(), "to": total, "total": total });
    told(
        200,
        json!({ "pricing": { "model": "net_pricing", "discount_percentage": 0 }, "data": rows,
        "links": { "first": "", "last": "", "prev": null, "next": null }, "meta": meta }),
    )
}

fn packages(request: &Request, surcharge: Usd) -> Response {
    let kind = request.query.get("filter[type]").cloned().unwrap_or_default();
    let with_topups = request.query.get("include").is_some_and(|include| include == "topup");
    let mut countries: Vec<Value> = catalog().as_array().unwrap().clone();
    countries.retain(|country| kind.is_empty() || country["operators"][0]["type"] == kind.as_str());
    for country in &mut countries {
        let packages = country["operators"][0]["packages"].as_array_mut().unwrap();
        packages.retain(|package| with_topups || package["type"] == "sim");
        packages.iter_mut().for_each(|package| *package = dearer(package.take(), surcharge));
    }
    let number = |name: &str, otherwise: usize| {
        request.query.get(name).map_or(otherwise, |text| text.parse().unwrap())
    };
    let (limit, page) = (number("limit", 50), number("page", 1));
    let total = countries.len();
    listed(countries.into_iter().skip((page - 1) * limit).take(limit).collect(), page, limit, total)
}
