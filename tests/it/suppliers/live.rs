//! A whole gateway in live mode, as `docs/go-live.md` leads to it: the real binary, a real EVM node behind two doors, a real
//! mail server, and suppliers of both kinds. Nothing is simulated but the sellers. From empty settings to orders, top-ups,
//! cancels, an agent's checkout and books that agree; on PostgreSQL with two instances that share a supplier's rate.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::chain::address::{SANDBOX_EVM_XPUB, SANDBOX_TRON_XPUB};
use simgate::domain::money::Usd;

use super::fakes::{airalo, esim_access, first_number};
use crate::anvil::node::{Kind, Node};
use crate::anvil::proxy::Proxy;
use crate::support::database;
use crate::support::harness::{Db, Key, Reply, each_database, reply, until};
use crate::support::logins::{AUTH, digit_runs};
use crate::support::mail_server::{MailServer, mailbox};
use crate::support::process::{Server, Site, on_site};

const API: &str = "/api/b2b/v1";
/// Public keys of depth 3 from BIP 32's test vectors.
const EVM_XPUB: &str = "xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5";
const TRON_XPUB: &str = "xpub6DF8uhdarytz3FWdA8TvFSvvAh8dP3283MY7p2V4SeE2wyWmG5mg5EwVvmdMVCQcoNJxGoWaU9DCWh89LojfZ537wTfunKau47EL2dhHKon";
/// Requests a second that each seller takes.
const RATE: u32 = 20;
const DEPOSIT: Usd = Usd::dollars(60);

/// The world outside.
struct World {
    node: Node,
    _doors: Vec<Proxy>,
    mails: MailServer,
    access: esim_access::Fake,
    airalo: airalo::Fake,
}

/// The gateway before it, and its first partner.
struct Live<'a> {
    site: &'a Site,
    world: World,
    server: Server,
    key: Key,
}

fn write(site: &Site, settings: &[(&str, &str)], tables: &str) {
    let lines: String = settings.iter().map(|(name, value)| format!("{name} = \"{value}\"\n")).collect();
    std::fs::write(site.place.dir.join("simgate.toml"), lines + tables).unwrap();
}

async fn build_world() -> (World, Vec<(&'static str, String)>, String) {
    let node = Node::start(Kind::default()).await;
    let doors = Proxy::row(&node, 2).await;
    let mails = MailServer::told();
    let (access, airalo) = (esim_access::Fake::start().await, airalo::Fake::start().await);
    airalo.world().made = first_number();
    let nodes: Vec<&str> = doors.iter().map(|door| &*door.url).collect();
    let mut settings: Vec<(&str, String)> =
        mails.settings("starttls").into_iter().map(|(name, value)| (name, value.to_string())).collect();
    settings.extend([
        ("mode", "live".to_string()),
        ("secret", "0123456789abcdef".repeat(4)),
        ("evm_xpub", EVM_XPUB.to_string()),
        ("tron_xpub", TRON_XPUB.to_string()),
        ("polygon_rpc", nodes.join(",")),
        ("polygon_usdc", node.usdc.clone()),
        ("polygon_usdt", node.usdt.clone()),
        ("polygon_confirmations", "5".to_string()),
        ("polygon_poll_ms", "50".to_string()),
    ]);
    let tables = format!(
        "[supplier.acme]\nkind = \"esim-access\"\nurl = \"{}\"\naccess_code = \"{}\"\nrate = {RATE}\n\n\
         [supplier.ally]\nkind = \"airalo\"\nurl = \"{}\"\nclient_id = \"{}\"\nclient_secret = \"{}\"\nrate = {RATE}\n",
        access.url,
        esim_access::CODE,
        airalo.url,
        airalo::CLIENT,
        airalo::SECRET,
    );
    (World { node, _doors: doors, mails, access, airalo }, settings, tables)
}

/// What is missing or cannot be is told at once, before anything is made.
async fn refuses_what_is_not_live(site: &Site) {
    write(site, &[("mode", "live")], "");
    let (_, told) = site.refused(&["migrate"]).await;
    for line in [
        "secret = ",
        "evm_xpub = ",
        "tron_xpub = ",
        "smtp_host = ",
        "mail_from = ",
        "base_rpc = ",
        "[supplier.acme]",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
}

/// So is what does not fit together.
async fn refuses_what_does_not_fit(site: &Site, settings: &[(&str, &str)], tables: &str) {
    let others = [
        ("evm_xpub", SANDBOX_EVM_XPUB),
        ("tron_xpub", SANDBOX_TRON_XPUB),
        ("polygon_rpc", "http://127.0.0.1:9"),
        ("x402_settler", "simulated"),
    ];
    let unchanged = settings.iter().filter(|(name, _)| others.iter().all(|(other, _)| other != name));
    let settings: Vec<(&str, &str)> = unchanged.copied().chain(others).collect();
    let far = "[supplier.far]\nkind = \"esim-access\"\nurl = \"http://sims.example\"\naccess_code = \"x\"\n";
    write(site, &settings, &format!("{tables}\n{far}"));
    let (_, told) = site.refused(&["migrate"]).await;
    for part in [
        "evm_xpub (evm_xpub in simgate.toml",
        "tron_xpub (tron_xpub in simgate.toml",
        "everybody can spend from its addresses",
        "live mode needs two or more",
        "x402_settler",
        "url of supplier \\\"far\\\" must start with https://",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains(SANDBOX_EVM_XPUB), "{told}");
}

/// Enters a supplier: tested, looked at, taken in, paid, tried by a purchase, and enabled.
async fn enter(site: &Site, name: &str, dollars: &str, gives_back: bool) {
    let tested = site.cli(&["supplier", "test", name]).await;
    assert_eq!(tested["passed"], true, "{tested}");
    let preview = site.cli(&["supplier", "sync", name, "--dry-run"]).await;
    assert_eq!((&preview["applied"], &preview["goneCount"]), (&json!(false), &json!(0)), "{preview}");
    let synced = site.cli(&["supplier", "sync", name]).await;
    assert_eq!(
        (&synced["applied"], &synced["addedCount"]),
        (&json!(true), &preview["addedCount"]),
        "{synced}"
    );
    site.cli(&["supplier", "fund", name, dollars, "--ref", "wire-1"]).await;
    let tried = site.cli(&["supplier", "test", name, "--buy", "--yes"]).await;
    assert_eq!(
        (&tried["passed"], &tried["doubts"]),
        (&json!(true), &json!("resolved as declared")),
        "{tried}"
    );
    assert_eq!(tried["returned"].is_string(), gives_back, "{tried}");
    site.refused(&["supplier", "test", name, "--buy", "--yes"]).await;
    agrees(site, name).await;
    let enabled = site.cli(&["supplier", "enable", name]).await;
    assert!(enabled["onSale"].as_i64().unwrap() > 0, "{enabled}");
}

async fn agrees(site: &Site, name: &str) {
    let found = site.try_cli(&["supplier", "reconcile", name]).await;
    assert!(found["agrees"] == true && found["offByUsd"] == 0, "{name}: {found}");
}

impl Live<'_> {
    async fn send_to(&self, server: &Server, method: &str, path: &str, body: Option<Value>) -> Reply {
        let path = format!("{API}{path}");
        let sent = self.site.send(&server.base, &self.key, method, &path, body.as_ref()).await;
        sent.expect("the gateway answers")
    }

    async fn get(&self, path: &str) -> Value {
        self.send_to(&self.server, "GET", path, None).await.expect(200)
    }

    async fn post(&self, path: &str, body: Value) -> Reply {
        self.send_to(&self.server, "POST", path, Some(body)).await
    }

    async fn balance(&self) -> Usd {
        Usd::parse(&self.get("/balance").await["balanceUsd"].to_string()).unwrap()
    }

    fn plan(&self, supplier: &str, code: &str) -> String {
        let sql =
            format!("SELECT code FROM plans WHERE supplier = '{supplier}' AND supplier_code = '{code}'");
        let location = match self.site.place.url.strip_prefix("sqlite:") {
            Some(path) => simgate::store::Location::Sqlite(path.into()),
            None => simgate::store::Location::Postgres(self.site.place.url.clone()),
        };
        database::rows(&location, &sql).remove(0).remove(0)
    }

    /// Waits until a purchase is delivered.
    async fn delivered(&self, placed: Reply) -> Value {
        assert!(matches!(placed.status, 200 | 202), "{}", placed.text);
        let body = placed.json();
        let field = if body["topUpOrder"].is_null() { "order" } else { "topUpOrder" };
        let id = body[field]["id"].as_str().unwrap().to_string();
        until("it is delivered", async || {
            let order = self.get(&format!("/orders/{id}")).await[field].clone();
            assert_ne!(order["status"], "FAILED", "{order}");
            (order["status"] == "FULFILLED").then_some(order)
        })
        .await
    }

    async fn buy(&self, plan: &str) -> Value {
        self.delivered(self.post("/orders", json!({ "packageCode": plan })).await).await
    }

    async fn fill(&self, order: &Value, plan: &str) -> Value {
        let path = format!("/orders/{}/topup", order["iccid"].as_str().unwrap());
        self.delivered(self.post(&path, json!({ "packageCode": plan })).await).await
    }

    /// Pays on the chain, and waits until it counts.
    async fn deposit(&self) {
        let wish = json!({ "amountUsd": 60, "currency": "USDC", "network": "POLYGON" });
        let opened = self.post("/balance/deposit", wish).await.expect(200);
        let node = &self.world.node;
        node.pay(&node.usdc, opened["depositAddress"].as_str().unwrap(), DEPOSIT).await;
        let path = format!("/balance/deposit/{}", opened["invoiceId"].as_str().unwrap());
        until("the deposit is confirmed", async || {
            node.mine(1).await;
            (self.get(&path).await["status"] == "CONFIRMED").then_some(())
        })
        .await;
        assert_eq!(self.balance().await, DEPOSIT);
    }

    /// What a partner does in a day, at the seller that takes back and at the one that does not.
    async fn sell_to_a_partner(&self) {
        let (plan, more) = (self.plan("acme", "JC172"), self.plan("acme", "TOPUP_JC172"));
        let first = self.buy(&plan).await;
        assert!(first["lpaString"].as_str().unwrap().starts_with("LPA:1$rsp.esim.example$"), "{first}");
        let iccid = first["iccid"].as_str().unwrap();
        let tran_no = self
            .world
            .access
            .world()
            .sold
            .iter()
            .find(|esim| esim.digits() == iccid)
            .unwrap()
            .tran_no
            .clone();
        self.world.access.world().spend(&tran_no, 512);
        let usage = self.get(&format!("/orders/{iccid}/usage?history=days")).await;
        assert_eq!((&usage["totalGb"], &usage["usedGb"]), (&json!(1.0), &json!(0.5)), "{usage}");
        assert_eq!(usage["status"], "ACTIVE", "{usage}");
        assert_eq!(self.fill(&first, &more).await["iccid"], first["iccid"]);
        let used = self.post(&format!("/orders/{}/cancel", first["id"].as_str().unwrap()), json!({})).await;
        assert_eq!(used.problem(409), "NOT_CANCELLABLE");

        let before = self.balance().await;
        let second = self.buy(&plan).await;
        let cancelled =
            self.post(&format!("/orders/{}/cancel", second["id"].as_str().unwrap()), json!({})).await;
        assert_eq!(cancelled.expect(200)["order"]["status"], "CANCELLED");
        assert_eq!(self.balance().await, before, "the money is back");

        let third = self.buy(&self.plan("ally", airalo::BASE)).await;
        self.fill(&third, &self.plan("ally", airalo::TOPUP)).await;
        let kept = self.post(&format!("/orders/{}/cancel", third["id"].as_str().unwrap()), json!({})).await;
        assert_eq!(kept.problem(409), "NOT_CANCELLABLE");
        let sold = self.world.airalo.world().orders.len();
        assert_eq!(sold, 3, "the trial, the order and its top-up");
    }

    async fn agent(&self, path: &str, token: Option<&str>, body: Value) -> Reply {
        let request = self.site.client.post(format!("{}{path}", self.server.base)).json(&body);
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        reply(request).await
    }

    /// An agent signs in by a code from the mail server, and pays a checkout on the chain.
    async fn sell_to_an_agent(&self) {
        let (email, mails, node) = (mailbox("live"), &self.world.mails, &self.world.node);
        self.agent(&format!("{AUTH}/request-otp"), None, json!({ "email": email })).await.expect(200);
        let mail = mails.until_mailed(&email, 1).await.remove(0);
        assert_eq!(mail["tls"], true, "{mail}");
        let otp = digit_runs(mail["parts"]["text/plain"].as_str().unwrap(), 6).remove(0);
        let body = json!({ "email": email, "otp": otp, "agentName": "agent" });
        let token = self.agent(&format!("{AUTH}/verify-otp"), None, body).await.expect(200)["token"].clone();
        let wish = json!({ "packageCode": self.plan("acme", "JC173") });
        let asked = self.agent("/api/agentic/checkout", token.as_str(), wish).await.expect(402);
        let payment = &asked["payment"];
        let real = payment["network"] == "POLYGON" && payment["sandbox"].is_null();
        assert!(real, "{payment}");
        let invoice = asked["invoiceId"].as_str().unwrap();
        let page = self.pay_page(invoice).await;
        let uri = payment["paymentUri"].as_str().unwrap().replace('&', "&#38;");
        let link = format!("<a class=\"button primary\" href=\"{uri}\">Open in wallet</a>");
        assert!(uri.starts_with("ethereum:0x") && page.contains(&link), "{link}: {page}");
        assert!(!page.contains("test money") && !page.contains("Sandbox"), "{page}");
        let units = payment["expectedAmountUnits"].as_str().unwrap().parse().unwrap();
        let receiver = payment["receivingAddress"].as_str().unwrap();
        let contract = if payment["currency"] == "USDC" { &node.usdc } else { &node.usdt };
        let tx_hash = node.pay(contract, receiver, Usd::from_micros(units)).await;
        let poll = format!("{}/api/agentic/order/{invoice}", self.server.base);
        let order = until("the checkout is delivered", async || {
            node.mine(1).await;
            let order = reply(self.site.client.get(&poll)).await.expect(200);
            assert_ne!(order["status"], "FAILED", "{order}");
            (order["status"] == "COMPLETED").then_some(order)
        })
        .await;
        assert!(order["orderId"].is_string(), "{order}");
        let page = self.pay_page(invoice).await;
        let explorer = format!("<a href=\"https://polygonscan.com/tx/{tx_hash}\" rel=\"noreferrer\">");
        assert!(page.contains(&explorer) && page.contains("Your eSIM is ready"), "{explorer}: {page}");
    }

    async fn pay_page(&self, invoice: &str) -> String {
        let page = reply(self.site.client.get(format!("{}/pay/{invoice}", self.server.base))).await;
        assert_eq!(page.status, 200, "{}", page.text);
        page.text
    }

    /// Two instances buy at the same time. Each request takes the next turn, so many of them take their time.
    async fn share_a_rate(&self) {
        let other = self.site.start().await;
        let plan = self.plan("acme", "JC172");
        let (begun, asked) = (Instant::now(), self.world.access.world().requests.len());
        let places = [&self.server, &other].repeat(6);
        let body = json!({ "packageCode": plan });
        let placed = join_all(
            places.into_iter().map(|server| self.send_to(server, "POST", "/orders", Some(body.clone()))),
        )
        .await;
        let delivered = join_all(placed.into_iter().map(|placed| self.delivered(placed))).await;
        let requests: Vec<Instant> =
            self.world.access.world().requests.iter().skip(asked).map(|request| request.at).collect();
        assert!(requests.len() >= 2 * delivered.len(), "each is ordered and asked for");
        let least = Duration::from_secs(1) / RATE * (requests.len() as u32 - 2);
        let taken = *requests.last().unwrap() - begun;
        assert!(taken >= least, "{} requests within {taken:?}", requests.len());
    }
}

fn check(db: Db) {
    on_site(db, vec![], async move |site| {
        refuses_what_is_not_live(site).await;
        let (world, settings, tables) = build_world().await;
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        refuses_what_does_not_fit(site, &settings, &tables).await;
        write(site, &settings, &tables);
        site.cli(&["migrate"]).await;
        let (_, told) = site.refused(&["serve", "--listen", "127.0.0.1:0"]).await;
        assert!(told.contains("no supplier is enabled") && told.contains("acme, ally"), "{told}");
        enter(site, "acme", "1000", true).await;
        enter(site, "ally", "100", false).await;

        let server = site.start().await;
        let (_, key) = site.partner(&server, "First Partner", "0").await;
        let mut live = Live { site, world, server, key };
        for path in ["supplier", "parts"] {
            let sandbox = reply(live.site.client.get(format!("{}/sandbox/{path}", live.server.base))).await;
            assert_eq!(sandbox.problem(404), "NOT_FOUND", "{path}");
        }
        live.deposit().await;
        live.sell_to_a_partner().await;
        live.sell_to_an_agent().await;
        if db == Db::Postgres {
            live.share_a_rate().await;
        }
        let health = site.try_cli(&["doctor"]).await;
        let failed: Vec<&Value> =
            health["checks"].as_array().unwrap().iter().filter(|check| check["health"] == "fail").collect();
        assert!(failed.is_empty(), "{failed:?}");
        live.server.terminate();
        assert_eq!(live.server.exit_code().await, Some(0));
        for name in ["acme", "ally"] {
            agrees(site, name).await;
        }
        let verdict = site.cli(&["ledger", "verify", "--chain"]).await;
        assert_eq!(verdict["ok"], true, "{verdict}");
    });
}

each_database!(check, "needs anvil and a mail server");
