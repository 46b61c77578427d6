//! What the gateway is measured against, and what fills its databases: run by `bench/run`.
//!
//! - `bare ADDRESS FILE [ENCODING]`: axum answering the bytes of a file, and nothing else;
//! - `tool ADDRESS FILE`: axum that reads a JSON-RPC call and answers it with the result in a file;
//! - `ceiling DIR SECONDS`: both writes of an order on SQLite, in one thread, in groups of 64, without HTTP;
//! - `partners URL COUNT FILE`: partners with money, their keys written to a file;
//! - `fill URL COUNT`: that many orders, through the same operations as the doors use;
//! - `users URL COUNT FILE`: users, their tokens written to a file;
//! - `checkouts URL COUNT`: that many checkouts of two days ago, unpaid.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, header};
use simgate::app::App;
use simgate::config::{Raw, Settings};
use simgate::domain::checkout::{Checkout, CheckoutStatus};
use simgate::domain::email::Email;
use simgate::domain::esim::Esim;
use simgate::domain::ids::{AccountId, AccountNo, InvoiceId, OrderId, TokenId};
use simgate::domain::ledger::Entry;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::order::{Order, OrderStatus};
use simgate::domain::time::Time;
use simgate::domain::token::{TokenKind, shown_prefix};
use simgate::ops::operator::{self, NewPartner};
use simgate::ops::orders::{self, Buyer, Purchase};
use simgate::start::{self, Role};
use simgate::store::checkouts::New;
use simgate::store::offers::Asked;
use simgate::store::orders::{Change, Step, Terms};
use simgate::store::tokens::{self, NewToken};
use simgate::store::tx::Tx;
use simgate::store::users;
use simgate::vault;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const GROUP: usize = 64;
const WALLETS: i64 = 1_000;
const PLAN: &str = "JP-1GB-7D";
/// An order as the event of its sale shows it, in length.
const TOLD: &str = r#"{"id":"ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U","partnerRefId":"booking-1001","orderNo":"SG4K7M2Q9XTB",
    "status":"FULFILLED","iccid":"8901234567890123455","packageCode":"JP-1GB-7D","planName":"Japan 1 GB 7 days",
    "chargedUsd":1.99,"createdAt":"2026-01-31T12:00:00.000Z","refundable":{"eligible":true,"reason":null,
    "until":"2026-07-30T12:00:00.000Z"},"topUps":[]}"#;
/// How many rows one job writes when a database is filled.
const IN_A_JOB: usize = 200;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match arguments.as_slice() {
        ["bare", address, file, rest @ ..] => runtime.block_on(bare(address, file, rest.first().copied())),
        ["tool", address, file] => runtime.block_on(tool(address, file)),
        ["ceiling", dir, seconds] => runtime.block_on(ceiling(Path::new(dir), seconds.parse()?)),
        ["partners", url, count, file] => runtime.block_on(partners(url, count.parse()?, file)),
        ["fill", url, count] => runtime.block_on(fill(url, count.parse()?)),
        ["users", url, count, file] => runtime.block_on(agents(url, count.parse()?, file)),
        ["checkouts", url, count] => runtime.block_on(checkouts(url, count.parse()?)),
        other => Err(format!("unknown arguments {other:?}").into()),
    }
}

async fn bare(address: &str, file: &str, encoding: Option<&str>) -> Outcome {
    let body = Bytes::from(std::fs::read(file)?);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::try_from(encoding)?);
    }
    let answer = axum::routing::any(move || async move { (headers.clone(), body.clone()) });
    let listener = tokio::net::TcpListener::bind(address).await?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, axum::Router::new().fallback(answer)).await?)
}

/// A tool call as a hand-written server would read it.
#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "read, as a server must, and not looked at")]
struct ToolCall {
    jsonrpc: String,
    id: serde_json::Value,
    method: String,
    params: ToolParams,
}

#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "read, as a server must, and not looked at")]
struct ToolParams {
    name: String,
    arguments: serde_json::Value,
}

async fn tool(address: &str, file: &str) -> Outcome {
    let result = std::fs::read_to_string(file)?;
    let answer = axum::routing::post(move |axum::Json(call): axum::Json<ToolCall>| async move {
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", call.id);
        ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body)
    });
    let listener = tokio::net::TcpListener::bind(address).await?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true)));
    let ready = axum::routing::get(|| async { "ready" });
    Ok(axum::serve(listener, axum::Router::new().route("/api/mcp", answer).fallback(ready)).await?)
}

async fn open(url: &str) -> Outcome<App> {
    let flags: BTreeMap<String, String> = [("database_url", url), ("log", "warn"), ("write_queue", "100000")]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .into();
    let settings = Settings::check(&Raw::collect(&flags, std::iter::empty(), None)?)?;
    Ok(start::open(settings, Role::Server).await?)
}

async fn partners(url: &str, count: usize, file: &str) -> Outcome {
    let app = open(url).await?;
    let mut out = std::fs::File::create(file)?;
    for number in 0..count {
        let new = NewPartner {
            name: format!("Partner {number}"),
            email: None,
            credit: Usd::dollars(100_000_000),
            shares_email: false,
        };
        let made = operator::create_partner(&app, "bench", new).await?;
        writeln!(out, "{} {}", made.key.id, made.key.secret)?;
    }
    app.store.close();
    Ok(())
}

async fn fill(url: &str, count: usize) -> Outcome {
    let app = open(url).await?;
    let mut buyers = Vec::new();
    for partner in operator::partners(&app).await?.into_iter().filter(|partner| partner.name != "Demo Travel")
    {
        let keys = operator::list_keys(&app, Some(partner.no)).await?;
        buyers.push(Buyer {
            account: partner.no,
            key_id: keys[0].id.to_string(),
            price_list: partner.price_list,
            limited: false,
            by_hand: None,
        });
    }
    let clients = (0..256).map(|client| {
        let (app, buyers) = (app.clone(), buyers.clone());
        tokio::spawn(async move {
            for number in (client..count).step_by(256) {
                let purchase = Purchase {
                    package_code: PLAN.into(),
                    reference: Some(format!("fill-{:x}", vault::random())),
                    max_price: None,
                    esim_order: None,
                    customer_email: None,
                    discount_code: None,
                };
                orders::place(&app, buyers[number % buyers.len()].clone(), purchase)
                    .await
                    .map_err(|e| e.to_string())?;
            }
            Ok::<(), String>(())
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await??;
    }
    app.tasks.close();
    app.tasks.wait().await;
    app.store.close();
    Ok(())
}

/// Users with a token each, without a mail for every one of them.
async fn agents(url: &str, count: usize, file: &str) -> Outcome {
    let app = open(url).await?;
    let mut out = std::fs::File::create(file)?;
    let now = app.now();
    for first in (0..count).step_by(IN_A_JOB) {
        let mut made = Vec::new();
        for number in first..count.min(first + IN_A_JOB) {
            let text = TokenKind::Personal.make(number as u32, vault::random());
            writeln!(out, "{text}")?;
            let token = NewToken {
                id: TokenId::new(now, vault::random()),
                kind: TokenKind::Personal,
                hash: vault::hash_secret(&text),
                prefix: shown_prefix(&text),
                agent_name: "bench".into(),
                daily_limit: Some(Usd::dollars(500)),
                created_at: now,
                expires_at: None,
            };
            let email = Email::from_text(format!("user{number}@example.com"));
            made.push((email, AccountId::user(now, vault::random()), token));
        }
        let write = move |tx: &mut Tx| {
            made.iter().try_for_each(|(email, id, token)| {
                let account = users::find_or_create(tx, email, id, now)?;
                tokens::create(tx, account, token)
            })
        };
        app.store.finish(0, write).await?;
    }
    app.store.close();
    Ok(())
}

/// Old checkouts, on addresses of their own: each price has 9,999 amounts on an address.
async fn checkouts(url: &str, count: usize) -> Outcome {
    let app = open(url).await?;
    let account = operator::partners(&app).await?.first().ok_or("no partner")?.no;
    let (created_at, price) = (app.now().plus_days(-2), Usd::dollars(5));
    for first in (0..count).step_by(IN_A_JOB) {
        let made: Vec<Checkout> = (first..count.min(first + IN_A_JOB))
            .map(|number| Checkout {
                claimed_by: None,
                id: InvoiceId::new(created_at, vault::random()),
                account,
                token: "tok_fill".into(),
                seq: 0,
                keyed: true,
                esim_order: None,
                wide: false,
                sign_to: None,
                package_code: PLAN.into(),
                plan_name: "Japan 1 GB 7 days".into(),
                family: "JP".into(),
                data_mb: 1024,
                duration_days: 7,
                supplier: "sim".into(),
                supplier_code: PLAN.into(),
                cost: Usd::dollars(1),
                billed: None,
                list_price: price,
                coupon: None,
                amount: price.minus(Usd::from_micros((number % 9_999) as i64 + 1)),
                network: Network::Polygon,
                currency: Currency::Usdt,
                address: format!("0x{:040x}", number / 9_999),
                customer_email: None,
                status: CheckoutStatus::Open,
                order: None,
                created_at,
                expires_at: created_at,
                late_until: created_at.plus_days(1),
                updated_at: created_at,
            })
            .collect();
        let write = move |tx: &mut Tx| {
            made.iter().try_for_each(|checkout| {
                let new = New { checkout, reference: None, origin: "fill" };
                simgate::store::checkouts::insert(tx, &new)?;
                let paid = simgate::store::checkouts::Step::PaidInVain(checkout);
                simgate::store::checkouts::advance(tx, &paid, created_at).map(drop)
            })
        };
        app.store.finish(0, write).await?;
    }
    app.store.close();
    Ok(())
}

/// The statements of both writes, as the gateway runs them, with nothing around them.
async fn ceiling(dir: &Path, seconds: u64) -> Outcome {
    let path = dir.join("ceiling.db");
    let url = format!("sqlite:{}", path.display());
    std::env::set_current_dir(dir)?;
    partners(&url, WALLETS as usize, "ceiling.keys").await?;
    let app = open(&url).await?;
    let keys = operator::list_keys(&app, None).await?;
    let key = keys[0].id.to_string();
    app.store.close();
    let connection = simgate::store::writer_connection(&path)?;
    let started = Instant::now();
    let mut placed = 0;
    while started.elapsed() < Duration::from_secs(seconds) {
        let batch: Vec<Order> = (0..GROUP as i64).map(|n| order(placed + n, &key)).collect();
        group(&connection, |tx| {
            for order in &batch {
                let asked = Asked {
                    account: order.account,
                    reference: order.reference.as_deref(),
                    package_code: PLAN,
                    price_list: "default",
                };
                simgate::store::offers::look(tx, &asked)?;
                let entry = Entry::hold(&order.id, order.account, order.price);
                simgate::store::orders::hold(tx, order, &entry)?
                    .ok_or_else(|| simgate::error::Error::fault("poor"))?;
            }
            Ok(())
        })?;
        group(&connection, |tx| {
            for order in &batch {
                let entry = Entry::fulfilled(&order.id, order.charge(), "sim", order.cost);
                let terms = Terms { cost: order.billed_cost(), number: None };
                let (profile, told) = (order.esim.as_ref(), TOLD);
                let change = Change::Sold { profile, entry: &entry, terms, told };
                let sold = Step { order: &order.id, change, now: order.created_at };
                simgate::store::orders::advance(tx, &[sold])?;
            }
            Ok(())
        })?;
        placed += GROUP as i64;
    }
    println!("{:.0}", placed as f64 / started.elapsed().as_secs_f64());
    Ok(())
}

fn group(
    connection: &rusqlite::Connection,
    body: impl FnOnce(&mut Tx) -> simgate::error::Result<()>,
) -> Outcome {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    body(&mut Tx::sqlite(connection))?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

/// The n-th order: wallets take turns, and time goes on as it does in the service, so that ids are made in order.
fn order(number: i64, key: &str) -> Order {
    let account = AccountNo(2 + number % WALLETS);
    let now = Time::from_micros(1_800_000_000_000_000 + number * 100);
    let id = OrderId::esim(now, vault::random());
    let iccid = format!("89{:017}", vault::random() % 100_000_000_000_000_000);
    let esim = Esim {
        order: id.clone(),
        profile: format!("{id}.1024.7.{}", now.micros()),
        iccid,
        sealed: vec![7; 75],
        install_by: Some(now),
        last_usage: None,
        asked_at: None,
        answered_at: None,
        due_at: None,
    };
    Order {
        id,
        account,
        seq: None,
        number: None,
        esim_order: None,
        reference: Some(format!("ref-{:x}", vault::random())),
        package_code: PLAN.into(),
        plan_name: "Japan 1 GB 7 days".into(),
        family: "JP".into(),
        data_mb: 1024,
        duration_days: 7,
        price: Usd::from_micros(820_000),
        uniqueness_discount: Usd::ZERO,
        coupon: None,
        customer_email: None,
        cost: Usd::from_micros(740_000),
        billed: None,
        supplier: "sim".into(),
        supplier_code: PLAN.into(),
        supplier_number: None,
        key_id: key.into(),
        status: OrderStatus::Provisioning,
        ask_until: now,
        created_at: now,
        updated_at: now,
        failure: None,
        refunded: None,
        cancel_request: None,
        cancel_withdrawn_at: None,
        esim: Some(esim),
    }
}
