//! Suppliers that bill in another currency than dollars: the operator's rate, costs and prices that follow from it, orders
//! that keep theirs, books that agree to the last digit, and sales that stop when the rate is old.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::suppliers::{self, rates};
use simgate::ops::{operator, recover};
use simgate::wire::dates;

use super::fakes::{airalo, esim_access};
use crate::support::buying;
use crate::support::command_line::{Told, database_url, run, split};
use crate::support::database;
use crate::support::harness::{Db, Gateway, booked, check_books, each_database, on_place, start_gateway};
use crate::support::logins::sign_in;
use crate::support::place::Place;

const ORDERS: &str = "/api/b2b/v1/orders";
/// Dollars for a euro, with more digits than a cent's.
const RATE: &str = "1.0845678";

/// A gateway with a supplier called acme, which bills in euros.
struct Shop {
    gateway: Gateway,
    settings: Vec<(String, String)>,
}

impl Shop {
    fn simgate(&self, line: &str) -> Told {
        self.simgate_with(&[], line)
    }

    /// With settings that count more than the gateway's. The gateway's clock is ahead of a command's, and so is its turn at
    /// the supplier.
    fn simgate_with(&self, more: &[(&str, &str)], line: &str) -> Told {
        database::execute(&self.gateway.app.settings.database, "UPDATE suppliers SET turn = 0").unwrap();
        let env: Vec<(&str, &str)> = self
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain(more.iter().copied())
            .collect();
        run(
            &database_url(&self.gateway),
            &self.gateway.dir,
            &env,
            &[split(line).as_slice(), &["--json"]].concat(),
        )
    }

    #[track_caller]
    fn ok(&self, line: &str) -> Value {
        self.simgate(line).document(0)
    }

    fn acme(&self) -> Value {
        let list = self.ok("supplier list");
        list["suppliers"].as_array().unwrap().iter().find(|one| one["name"] == "acme").unwrap().clone()
    }

    /// A plan of acme's, by its code there.
    fn plan(&self, supplier_code: &str) -> String {
        let wanted =
            format!("SELECT code FROM plans WHERE supplier = 'acme' AND supplier_code = '{supplier_code}'");
        database::rows(&self.gateway.app.settings.database, &wanted).remove(0).remove(0)
    }

    /// Takes in its plans and sells them; what was paid in there is booked.
    async fn open(&self, paid_in: &str) {
        self.ok(&format!("supplier rate acme {RATE}"));
        self.ok(&format!("supplier fund acme {paid_in} --ref first"));
        self.ok("supplier sync acme");
        self.ok("supplier enable acme");
        // The sync that is due with the first round is over, and the sale is open.
        suppliers::round(&self.gateway.app).await.unwrap();
    }

    async fn place(&self, plan: &str) -> String {
        let placed = self.gateway.post(ORDERS, json!({ "packageCode": plan })).await;
        assert!(matches!(placed.status, 200 | 202), "{}", placed.text);
        placed.json()["order"]["id"].as_str().unwrap().to_string()
    }

    /// Waits for the end of an order: how the operator sees it.
    async fn ended(&self, id: &str) -> Value {
        let gateway = &self.gateway;
        gateway
            .until("the order ends", async || {
                let found = gateway.get(&format!("{ORDERS}/{id}")).await.expect(200);
                if found["order"]["status"] != "PROVISIONING" {
                    return Some(());
                }
                gateway.pass_time(1_000);
                recover::round(&gateway.app).await.unwrap();
                None
            })
            .await;
        self.ok(&format!("order show {id}"))
    }

    async fn buy(&self, plan: &str) -> Value {
        let order = self.ended(&self.place(plan).await).await;
        assert_eq!(order["status"], "FULFILLED", "{order}");
        order
    }

    /// The supplier's balance and sales are what the books say, exactly.
    #[track_caller]
    fn agrees(&self) -> Value {
        // A job of the gateway may take a turn by its clock after ours was set back.
        let mut told = self.simgate("supplier reconcile acme");
        while told.stdout.contains("no turn within") {
            told = self.simgate("supplier reconcile acme");
        }
        let found = told.document(0);
        assert_eq!((&found["agrees"], &found["offBy"]), (&json!(true), &json!("0.00 EUR")), "{found}");
        assert_eq!((&found["offByUsd"], &found["differences"]), (&Value::Null, &json!([])), "{found}");
        found
    }
}

/// Starts a gateway whose supplier is entered like this, and runs a test on it.
async fn in_euros(place: &Place, fields: &[(&str, &str)], test: impl AsyncFnOnce(&Shop)) {
    let usual = [("rate", "1000"), ("currency", "EUR"), ("low_balance", "10")];
    let fields: Vec<(String, &str)> =
        fields.iter().chain(&usual).map(|(name, value)| (format!("supplier_acme_{name}"), *value)).collect();
    let mut settings: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    settings.extend([("answer_within_ms", "500"), ("ip_rate_limit", "0")]);
    let (gateway, stop, served) = start_gateway(place, &settings).await;
    let settings =
        fields.iter().map(|(name, value)| (format!("SIMGATE_{}", name.to_uppercase()), value.to_string()));
    let shop = Shop { gateway, settings: settings.collect() };
    test(&shop).await;
    check_books(&shop.gateway.app).await;
    stop.cancel();
    served.await.unwrap();
}

fn at_esim_access(db: Db, test: impl AsyncFnOnce(&Shop, &esim_access::Fake) + 'static) {
    on_place(db, async move |place| {
        let fake = esim_access::Fake::start().await;
        {
            let world = &mut *fake.world();
            let packages = world.packages.iter_mut().chain(&mut world.top_ups);
            packages.for_each(|package| package["currencyCode"] = json!("EUR"));
        }
        let fields = [("kind", "esim-access"), ("url", &fake.url), ("access_code", esim_access::CODE)];
        in_euros(place, &fields, async |shop| test(shop, &fake).await).await;
    });
}

fn at_airalo(db: Db, test: impl AsyncFnOnce(&Shop, &airalo::Fake) + 'static) {
    on_place(db, async move |place| {
        let fake = airalo::Fake::start().await;
        fake.world().currency = "EUR";
        let fields = [
            ("kind", "airalo"),
            ("url", &fake.url),
            ("client_id", airalo::CLIENT),
            ("client_secret", airalo::SECRET),
        ];
        in_euros(place, &fields, async |shop| test(shop, &fake).await).await;
    });
}

fn micros(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

fn usd(value: &Value) -> Usd {
    Usd::parse(&value.to_string()).unwrap()
}

/// The prices that were named in orders at the supplier, in ten-thousandths.
fn asked(fake: &esim_access::Fake) -> Vec<i64> {
    let world = fake.world();
    let orders = world.requests.iter().filter(|request| request.path.ends_with("esim/order"));
    orders.map(|request| request.body["packageInfoList"][0]["price"].as_i64().unwrap()).collect()
}

mod nothing_is_sold_before_there_is_a_rate {
    use super::*;

    fn check(db: Db) {
        at_esim_access(db, async |shop, _| {
            for line in [
                "supplier sync acme",
                "supplier sync acme --dry-run",
                "supplier fund acme 5 --ref a",
                "supplier test acme --buy --yes",
            ] {
                let told = shop.simgate(line).refused(2, "INVALID_SETTINGS");
                assert!(
                    told.contains("bills in EUR") && told.contains("simgate supplier rate acme RATE"),
                    "{told}"
                );
            }
            let acme = shop.acme();
            assert_eq!(
                (&acme["plans"], &acme["rate"], &acme["rateMark"]),
                (&json!(0), &Value::Null, &json!("missing"))
            );
            assert_eq!(acme["currency"], "EUR");
            let checks = shop.simgate("doctor").stdout;
            assert!(checks.contains("acme: it bills in another currency and has no rate"), "{checks}");
            // What makes no sense as a rate.
            for wrong in ["0", "-1", "1e3", "abc", "1.0123456789", "2000", "0.0000001"] {
                assert_eq!(shop.simgate(&format!("supplier rate acme {wrong}")).exit, 2, "{wrong}");
            }
            let tomorrow = dates::date(shop.gateway.app.now().plus_days(2));
            let told = shop
                .simgate(&format!("supplier rate acme 1.1 --date {tomorrow}"))
                .refused(1, "INVALID_REQUEST");
            assert!(told.contains("must not be in the future"), "{told}");
            let told = shop.simgate("supplier rate sim 1.1").refused(1, "INVALID_REQUEST");
            assert!(told.contains("sim bills in USD"), "{told}");
            assert_eq!(shop.acme()["rate"], Value::Null);
            let set = shop.ok(&format!("supplier rate acme {RATE}"));
            assert_eq!(
                (&set["rate"], &set["rateBefore"], &set["plansChanged"]),
                (&json!(RATE), &Value::Null, &json!(0))
            );
            // A slip of the pen.
            let told = shop.simgate("supplier rate acme 10.845").refused(1, "INVALID_REQUEST");
            assert!(told.contains("differs by half or more from 1.0845678"), "{told}");
            assert_eq!((&shop.acme()["rate"], &shop.acme()["rateMark"]), (&json!(RATE), &Value::Null));
            // Until something is in the books, the currency may change; its rate is then none.
            let pounds = [("SIMGATE_SUPPLIER_ACME_CURRENCY", "GBP")];
            let list = shop.simgate_with(&pounds, "supplier list").document(0);
            assert_eq!(
                (&list["suppliers"][0]["currency"], &list["suppliers"][0]["rate"]),
                (&json!("GBP"), &Value::Null)
            );
            shop.ok(&format!("supplier rate acme {RATE}"));
            shop.ok("supplier fund acme 5 --ref a");
            let told = shop.simgate_with(&pounds, "supplier list").refused(2, "INVALID_SETTINGS");
            assert!(told.contains("in EUR") && told.contains("GBP"), "{told}");
            let audit = shop.ok("audit list").to_string();
            assert!(audit.contains("supplier rate") && audit.contains("1 EUR is 1.0845678 USD"), "{audit}");
        });
    }

    each_database!(check);
}

mod a_whole_life_in_euros {
    use super::*;

    fn check(db: Db) {
        at_esim_access(db, async |shop, fake| {
            let app = &shop.gateway.app;
            shop.open("1000").await;
            assert_eq!(booked(app, "supplier:acme").await, micros(1_084_567_800));
            let again = shop.ok("supplier fund acme 1000 --ref first");
            assert_eq!((&again["amount"], &again["known"]), (&json!("1000.00 EUR"), &json!(true)), "{again}");
            assert_eq!(shop.agrees()["booked"], "1000.00 EUR");
            // A trial is bought, tried and given back.
            let trial = shop.ok("supplier test acme --buy --yes");
            assert_eq!((&trial["passed"], &trial["cost"]), (&json!(true), &trial["returned"]), "{trial}");
            assert!(trial["cost"].as_str().unwrap().ends_with(" EUR"), "{trial}");
            assert_eq!(booked(app, "supplier:acme").await, micros(1_084_567_800));
            shop.agrees();
            // 1.5 euros are 1.6268517 dollars.
            let plan = shop.plan("JC172");
            fake.world().requests.clear();
            let first = shop.buy(&plan).await;
            assert_eq!(
                (&first["cost"], &first["rate"], usd(&first["costUsd"])),
                (&json!("1.50 EUR"), &json!(RATE), micros(1_626_852))
            );
            assert!(usd(&first["chargedUsd"]) > micros(1_626_852), "{first}");
            assert_eq!((asked(fake), booked(app, "cost:acme").await), (vec![15_000], micros(1_626_852)));
            assert_eq!(shop.agrees()["booked"], "998.50 EUR");
            // An order that is under way keeps its rate.
            fake.world().questions = 1_000_000;
            let id = shop.place(&plan).await;
            fake.world().questions = 1;
            let set = shop.ok("supplier rate acme 1.2");
            assert_eq!(
                (&set["rateBefore"], set["plansChanged"].as_i64()),
                (&json!(RATE), shop.acme()["plans"].as_i64())
            );
            fake.world().sold.iter_mut().for_each(|esim| esim.questions = 0);
            let second = shop.ended(&id).await;
            assert_eq!(
                (&second["status"], &second["rate"], usd(&second["costUsd"])),
                (&json!("FULFILLED"), &json!(RATE), micros(1_626_852))
            );
            // The next one has the new rate, and a price that follows from it.
            let third = shop.buy(&plan).await;
            assert_eq!(
                (&third["cost"], &third["rate"], usd(&third["costUsd"])),
                (&json!("1.50 EUR"), &json!("1.2"), micros(1_800_000))
            );
            assert!(usd(&third["chargedUsd"]) > usd(&first["chargedUsd"]), "{third} {first}");
            let spent = micros(1_626_852 * 2 + 1_800_000);
            assert_eq!(booked(app, "cost:acme").await, spent);
            shop.agrees();
            // What is given back comes back at the rate of its order; what was paid in again counts once, at any rate.
            shop.gateway.post(&format!("{ORDERS}/{id}/cancel"), json!({})).await.expect(200);
            assert_eq!(booked(app, "cost:acme").await, micros(1_626_852 + 1_800_000));
            assert_eq!(shop.ok("supplier fund acme 1000 --ref first")["known"], true);
            shop.simgate("supplier fund acme 999 --ref first").refused(1, "IDEMPOTENCY_CONFLICT");
            assert_eq!(booked(app, "supplier:acme").await, micros(1_084_567_800 - 1_626_852 - 1_800_000));
            let found = shop.agrees();
            assert_eq!((&found["booked"], &found["balance"]), (&json!("997.00 EUR"), &json!("997.00 EUR")));
            // A cent that nobody booked is a difference.
            fake.world().balance += 100;
            let off = shop.simgate("supplier reconcile acme").document(1);
            assert_eq!((&off["agrees"], &off["offBy"]), (&json!(false), &json!("0.01 EUR")), "{off}");
            // A sale that became cheaper is booked as told, at the order's rate.
            fake.world().surcharge = -1_000;
            let cheap = shop.buy(&plan).await;
            assert_eq!(
                (&cheap["cost"], usd(&cheap["costUsd"])),
                (&json!("1.40 EUR"), micros(1_680_000)),
                "{cheap}"
            );
        });
    }

    each_database!(check);
}

/// The supplier may take what was paid, in its own money: never more than that is worth.
mod a_checkout_allows_what_was_paid {
    use super::*;

    fn check(db: Db) {
        at_esim_access(db, async |shop, fake| {
            let gateway = &shop.gateway;
            shop.open("1000").await;
            let token = sign_in(gateway, "ann@example.com", "agent").await;
            let plan = shop.plan("JC172");
            let body = json!({ "packageCode": plan });
            let offered = async || buying::ask(gateway, &token, &body).await;
            gateway.until("it is on sale", async || (offered().await.status == 402).then_some(())).await;
            let made = offered().await.expect(402);
            // It costs 2 euros by now.
            fake.world().surcharge = 5_000;
            fake.world().requests.clear();
            buying::settle(gateway, &made, "COMPLETED").await;
            let paid = buying::amount(&made).micros() as i128;
            let allowed = paid * 1_000_000_000 / 1_084_567_800 / 100;
            assert_eq!(asked(fake), [allowed as i64, 20_000]);
            // Two euros are 2.1691356 dollars.
            assert_eq!(booked(&gateway.app, "cost:acme").await, micros(2_169_136));
            fake.world().surcharge = 0;
            shop.agrees();
        });
    }

    each_database!(check);
}

mod an_old_rate_warns_and_an_older_one_stops {
    use super::*;

    /// Sets a rate of some days ago, and lets the gateway see it.
    async fn set(shop: &Shop, days: i64) {
        let date = dates::date(shop.gateway.app.now().plus_days(-days));
        assert_eq!(shop.ok(&format!("supplier rate acme {RATE} --date {date}"))["date"], json!(date));
        rates::round(&shop.gateway.app).await.unwrap();
    }

    fn check(db: Db) {
        at_esim_access(db, async |shop, fake| {
            let gateway = &shop.gateway;
            shop.open("1000").await;
            let plan = shop.plan("JC172");
            shop.buy(&plan).await;
            let doctor = || shop.simgate("doctor").stdout;
            assert!(!doctor().contains("acme: its rate"), "{}", doctor());
            set(shop, 1).await;
            assert_eq!(shop.acme()["rateMark"], Value::Null);
            set(shop, 4).await;
            assert_eq!(shop.acme()["rateMark"], "old");
            assert!(doctor().contains("acme: its rate is old"), "{}", doctor());
            shop.buy(&plan).await;
            // An order that is under way when the sales stop goes on.
            fake.world().questions = 1_000_000;
            let id = shop.place(&plan).await;
            set(shop, 9).await;
            assert_eq!(shop.acme()["rateMark"], "stale");
            assert!(doctor().contains("acme: its rate is too old"), "{}", doctor());
            let sales = fake.world().sales();
            let stopped = gateway.post(ORDERS, json!({ "packageCode": plan })).await;
            assert_eq!(stopped.problem(503), "SUPPLIER_UNAVAILABLE");
            assert_eq!(fake.world().sales(), sales);
            // Others sell on.
            gateway.order("JP-1GB-7D").await;
            fake.world().sold.iter_mut().for_each(|esim| esim.questions = 0);
            assert_eq!(shop.ended(&id).await["status"], "FULFILLED");
            fake.world().questions = 1;
            shop.ok(&format!("supplier rate acme {RATE}"));
            rates::round(&gateway.app).await.unwrap();
            shop.buy(&plan).await;
            shop.agrees();
        });
    }

    each_database!(check);
}

/// Airalo takes no word about costs: what it tells is booked, if it is in euros.
mod told_costs_are_booked_at_the_orders_rate {
    use super::*;

    fn check(db: Db) {
        at_airalo(db, async |shop, fake| {
            shop.open("100").await;
            let plan = shop.plan(airalo::BASE);
            let listed = shop.buy(&plan).await;
            let cost = Usd::parse(listed["cost"].as_str().unwrap().trim_end_matches(" EUR")).unwrap();
            fake.world().surcharge = micros(333_333);
            let dear = shop.buy(&plan).await;
            let cents =
                |order: &Value| Usd::parse(order["cost"].as_str().unwrap().trim_end_matches(" EUR")).unwrap();
            assert_eq!(cents(&dear), cost.plus(micros(333_333)), "{dear}");
            let exact = i128::from(cents(&dear).micros()) * 1_084_567_800;
            let up = exact.div_euclid(1_000_000_000) + i128::from(exact % 1_000_000_000 != 0);
            assert_eq!(i128::from(usd(&dear["costUsd"]).micros()), up, "{dear}");
            let found = shop.agrees();
            assert_eq!(found["salesListed"], 2);
            // A cost in a third currency is no cost that we can book: what we expected is booked.
            fake.world().surcharge = Usd::ZERO;
            fake.world().currency = "GBP";
            let plan = shop.plan(airalo::BASE);
            let odd = shop.buy(&plan).await;
            assert!(cents(&odd) >= cost, "{odd}");
            let told = shop.simgate("supplier reconcile acme").document(1);
            assert_eq!((&told["offBy"], &told["agrees"]), (&Value::Null, &json!(false)), "{told}");
        });
    }

    each_database!(check);
}

/// The operator failed an order, and its profile came after all: it is given back, or its bill is a loss.
mod a_sale_after_the_money_went_back {
    use super::*;

    fn check(db: Db) {
        at_esim_access(db, async |shop, fake| {
            let app = &shop.gateway.app;
            shop.open("1000").await;
            let plan = shop.plan("JC172");
            for (smdp_status, outcome, lost) in [("RELEASED", "CANCELLED", 0), ("ENABLED", "LOST", 1_626_852)]
            {
                fake.world().questions = 1_000_000;
                let id = shop.place(&plan).await;
                operator::fail_order(app, "test", &id, "it never came").await.unwrap();
                {
                    let mut world = fake.world();
                    let esim = world.sold.last_mut().unwrap();
                    (esim.questions, esim.smdp_status) = (0, smdp_status.into());
                }
                let orphan = format!("SELECT orphan FROM orders WHERE id = '{id}' AND orphan = '{outcome}'");
                let ended = || !database::rows(&app.settings.database, &orphan).is_empty();
                shop.gateway.until("the profile is looked after", async || ended().then_some(())).await;
                assert_eq!(booked(app, "loss:orphan").await, micros(lost));
                shop.agrees();
            }
        });
    }

    each_database!(check);
}
