//! The adapter of the eSIM Access family against a fake of ours that `esimaccess-python` accepts. It passes the conformance
//! kit; the rest here is what only this family does.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value, json};
use simgate::clock::Clock;
use simgate::domain::amount::{Amount, Fiat};
use simgate::domain::ids::OrderId;
use simgate::domain::money::Usd;
use simgate::domain::order::CancelReason;
use simgate::domain::plan::{Listing, PlanType};
use simgate::domain::time::Time;
use simgate::supplier::esim_access::EsimAccess;
use simgate::supplier::terms::{AuthMode, Kind, Terms};
use simgate::supplier::wire::Pace;
use simgate::supplier::{
    Answer, Bought, Cancel, Cancelled, Cause, Profile, Provision, Reading, Supplier, TopUp,
};
use simgate::vault;

use super::conformance::{Bench, Mood, conforms};
use super::fakes::esim_access::{CODE, Fake, Fault, Recorded, SECRET};
use crate::support::environment::required;
use crate::support::harness::until;

/// Gives so many turns and counts them.
struct Turns {
    left: AtomicUsize,
    taken: AtomicUsize,
}

impl Pace for Turns {
    fn turn(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async {
            let one_less = |left: usize| left.checked_sub(1);
            let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
            left.map_err(|_| "there are no turns left".to_string())?;
            self.taken.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    }
}

fn turns(left: usize) -> Arc<Turns> {
    Arc::new(Turns { left: AtomicUsize::new(left), taken: AtomicUsize::new(0) })
}

fn terms(url: &str) -> Terms {
    Terms {
        name: "esim-access",
        kind: Kind::EsimAccess,
        url: url.to_string(),
        client: SecretString::from(CODE),
        secret: Some(SecretString::from(SECRET)),
        auth: AuthMode::Code,
        id_length: 50,
        rate: 8.0,
        quiet: Duration::from_secs(900),
        currency: Fiat::USD,
        low_balance: Amount::usd(Usd::ZERO),
        sync_every: Duration::from_secs(3_600),
        reviewed_cancels: false,
    }
}

fn supplier(terms: &Terms) -> EsimAccess {
    EsimAccess::new(terms, turns(usize::MAX), Arc::default()).unwrap()
}

struct FakeBench {
    fake: Fake,
    supplier: Arc<EsimAccess>,
    clock: Clock,
}

impl Bench for FakeBench {
    fn supplier(&self) -> Arc<dyn Supplier> {
        self.supplier.clone()
    }

    fn nowhere(&self) -> Option<Arc<dyn Supplier>> {
        // Nobody listens on this port: the system gives it to no one else.
        Some(Arc::new(supplier(&terms("http://127.0.0.1:1/api/v1/open"))))
    }

    async fn set(&self, mood: Mood) {
        let mut world = self.fake.world();
        world.fault = match mood {
            Mood::BuysAndHangs => Fault::HangAfter,
            Mood::Hangs => Fault::HangBefore,
            Mood::BuysAndBreaks => Fault::BreakAfter,
            Mood::BuysAndMumbles => Fault::MumbleAfter,
            Mood::Duplicates => Fault::AnswerBefore,
            _ => Fault::None,
        };
        world.hanging = 0;
        world.locked = mood == Mood::LocksUsOut;
        world.questions = if mood == Mood::Slow { 4 } else { 1 };
        world.sold_out = mood == Mood::Refuses(Cause::SoldOut);
        world.no_funds = mood == Mood::Refuses(Cause::NoFunds);
        world.surcharge = if mood == Mood::Refuses(Cause::PriceChanged) { 100 } else { 0 };
    }

    async fn until_it_hangs(&self) {
        until("the fake hangs", async || (self.fake.world().hanging > 0).then_some(())).await;
    }

    async fn sales(&self) -> usize {
        self.fake.world().sales()
    }

    async fn install(&self, profile: &Profile) {
        self.fake.world().esim(&profile.id).smdp_status = "INSTALLATION".into();
    }

    async fn spend(&self, profile: &Profile, used_mb: i64) {
        self.fake.world().spend(&profile.id, used_mb);
    }

    fn now(&self) -> Time {
        self.clock.now()
    }
}

impl FakeBench {
    fn order(&self) -> OrderId {
        OrderId::esim(self.now(), vault::random())
    }

    async fn plan(&self, code: &str) -> Listing {
        plan_of(&self.supplier, code).await
    }

    async fn ask(&self, order: &OrderId, plan: &Listing, number: Option<&str>) -> Answer<Bought<Profile>> {
        self.ask_of(&self.supplier, order, plan, number).await
    }

    async fn ask_of(
        &self,
        supplier: &EsimAccess,
        order: &OrderId,
        plan: &Listing,
        number: Option<&str>,
    ) -> Answer<Bought<Profile>> {
        let ask = Provision {
            order,
            code: &plan.code,
            expected_cost: plan.cost,
            data_mb: plan.data_mb.unwrap_or_default(),
            duration_days: plan.duration_days,
            ordered_at: self.now(),
            number,
        };
        supplier.provision(ask).await
    }

    /// The profile, its number and its cost, after as many questions as it takes.
    async fn buy(&self, order: &OrderId, plan: &Listing) -> (Profile, String, Option<Amount>) {
        self.buy_of(&self.supplier, order, plan).await
    }

    async fn buy_of(
        &self,
        supplier: &EsimAccess,
        order: &OrderId,
        plan: &Listing,
    ) -> (Profile, String, Option<Amount>) {
        let mut known: Option<String> = None;
        for _ in 0..10 {
            match self.ask_of(supplier, order, plan, known.as_deref()).await {
                Answer::Done(Bought::Underway { number }) => known = Some(number),
                Answer::Done(Bought::Delivered { what, number, cost }) => {
                    return (what, number.unwrap(), cost);
                }
                other => panic!("not delivered: {other:?}"),
            }
        }
        panic!("nothing came")
    }

    async fn fill(&self, profile: &Profile, bundle: &Listing, order: &OrderId) -> Answer<Bought<()>> {
        let ask = TopUp {
            order,
            profile: &profile.id,
            code: &bundle.code,
            expected_cost: bundle.cost,
            data_mb: bundle.data_mb.unwrap_or_default(),
            duration_days: bundle.duration_days,
            ordered_at: self.now(),
            number: None,
        };
        self.supplier.top_up(ask).await
    }

    fn sent(&self, path: &str) -> Vec<Value> {
        let world = self.fake.world();
        world.requests.iter().filter(|sent| sent.path == path).map(|sent| sent.body.clone()).collect()
    }
}

async fn plan_of(supplier: &EsimAccess, code: &str) -> Listing {
    let plans = supplier.plans().await.told().unwrap();
    plans.into_iter().find(|plan| plan.code == code).unwrap()
}

fn on_a_fake(check: impl AsyncFnOnce(&FakeBench)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let fake = Fake::start().await;
        let supplier = Arc::new(supplier(&terms(&fake.url)));
        check(&FakeBench { fake, supplier, clock: Clock::default() }).await;
    });
}

conforms!(on_a_fake);

#[test]
fn an_order_says_what_was_agreed() {
    on_a_fake(async |bench| {
        let (order, plan) = (bench.order(), bench.plan("JC172").await);
        bench.buy(&order, &plan).await;
        let expected = json!({
            "transactionId": order.as_str(), "amount": 15_000,
            "packageInfoList": [{"packageCode": "JC172", "count": 1, "price": 15_000}],
        });
        assert_eq!(bench.sent("esim/order"), [expected]);
        let days = bench.plan("PJD01:7").await;
        assert_eq!((days.duration_days, days.data_mb, days.cost.micros), (7, Some(3_500), 3_500_000));
        let (profile, ..) = bench.buy(&bench.order(), &days).await;
        let sent = &bench.sent("esim/order")[1];
        assert_eq!(sent["packageInfoList"][0]["periodNum"], 7);
        assert_eq!(sent["amount"], 35_000);
        let more = bench.plan("TOPUP_PJD01:3").await;
        assert_eq!(more.family, days.family);
        bench.fill(&profile, &more, &bench.order()).await.told().unwrap();
        assert_eq!(bench.sent("esim/topup")[0]["periodNum"], 3);
        let usage =
            bench.supplier.usage(Reading { profile: &profile.id, now: bench.now() }).await.told().unwrap();
        assert_eq!(usage.total_mb, 5_000);
    });
}

#[test]
fn iccids_keep_every_digit_however_they_are_written() {
    on_a_fake(async |bench| {
        let plan = bench.plan("JC172").await;
        for _ in 0..6 {
            let (profile, ..) = bench.buy(&bench.order(), &plan).await;
            assert_eq!(profile.iccid, bench.fake.world().esim(&profile.id).digits());
        }
    });
}

#[test]
fn the_list_leaves_out_what_cannot_be_sold() {
    on_a_fake(async |bench| {
        let plans = bench.supplier.plans().await.told().unwrap();
        assert!(plans.iter().all(|plan| !plan.code.starts_with("BAD")));
        let family = |code: &str| plans.iter().find(|plan| plan.code == code).unwrap().family.clone();
        assert_eq!(family("TOPUP_CKH491"), family("CKH491"));
        assert_ne!(family("TOPUP_JC172"), family("PJD01:7"), "a day pass takes days");
        bench.fake.world().top_ups_by_package = true;
        let by_package = bench.supplier.plans().await.told().unwrap();
        assert_eq!(by_package, plans, "however top-ups are listed");
    });
}

#[test]
fn every_way_of_signing_opens_the_door() {
    on_a_fake(async |bench| {
        for auth in AuthMode::ALL {
            bench.fake.world().auth = auth;
            let ours = supplier(&Terms { auth, ..terms(&bench.fake.url) });
            assert!(ours.balance().await.told().is_ok(), "{auth:?}");
            let plan = plan_of(&ours, "JC172").await;
            bench.buy_of(&ours, &bench.order(), &plan).await;
            if auth != AuthMode::Code {
                let stolen = SecretString::from("another secret");
                let theirs = supplier(&Terms { auth, secret: Some(stolen), ..terms(&bench.fake.url) });
                let answer = bench.ask_of(&theirs, &bench.order(), &plan, None).await;
                let Answer::Doubt(why) = answer else { panic!("credentials are no refusal: {answer:?}") };
                assert!(why.starts_with("101003"), "{why}");
                assert!(
                    EsimAccess::new(
                        &Terms { auth, secret: None, ..terms("http://localhost") },
                        turns(1),
                        Arc::default()
                    )
                    .is_err()
                );
            }
        }
    });
}

#[test]
fn no_message_repeats_a_secret() {
    on_a_fake(async |bench| {
        bench.fake.world().auth = AuthMode::Secret;
        // The fake names the secret that it wants, and we know it by heart.
        let ours = supplier(&terms(&bench.fake.url));
        let Answer::Doubt(why) = ours.balance().await else { panic!("no secret was sent") };
        assert!(why.contains("was expected") && !why.contains(SECRET), "{why}");
    });
}

#[test]
fn short_ids_come_back_whole() {
    on_a_fake(async |bench| {
        let short = supplier(&Terms { id_length: 32, ..terms(&bench.fake.url) });
        let (order, plan, since) =
            (bench.order(), bench.plan("JC172").await, bench.now().plus_millis(-1_000));
        let (profile, ..) = bench.buy_of(&short, &order, &plan).await;
        assert_eq!(bench.buy_of(&short, &order, &plan).await.0, profile);
        let sent = bench.sent("esim/order");
        assert!(sent.iter().all(|sent| sent["transactionId"].as_str().unwrap().len() <= 32), "{sent:?}");
        let sold = short.sold(since).await.told().unwrap();
        assert_eq!((&sold[0].order, &sold[0].what), (&order, &profile.iccid));
        assert!(
            EsimAccess::new(&Terms { id_length: 30, ..terms("http://localhost") }, turns(1), Arc::default())
                .is_err()
        );
    });
}

#[test]
fn what_became_cheaper_is_bought_for_less() {
    on_a_fake(async |bench| {
        let (plan, bundle) = (bench.plan("JC172").await, bench.plan("TOPUP_JC172").await);
        bench.fake.world().surcharge = -500;
        let before = bench.supplier.balance().await.told().unwrap();
        let (profile, number, cost) = bench.buy(&bench.order(), &plan).await;
        let after = bench.supplier.balance().await.told().unwrap();
        assert_eq!(before.micros - after.micros, 1_450_000);
        assert_eq!(cost.map(|cost| cost.micros), Some(1_450_000), "{number}");
        match bench.fill(&profile, &bundle, &bench.order()).await {
            Answer::Done(Bought::Delivered { cost, .. }) => assert_eq!(cost.unwrap().micros, 1_450_000),
            other => panic!("not filled: {other:?}"),
        }
        bench.fake.world().surcharge = 1;
        match bench.ask(&bench.order(), &plan, None).await {
            Answer::Refused(no) => assert_eq!(no.cause, Cause::PriceChanged),
            other => panic!("dearer is refused: {other:?}"),
        }
    });
}

#[test]
fn a_refusal_is_not_believed_when_the_sale_stands() {
    on_a_fake(async |bench| {
        let (plan, bundle) = (bench.plan("JC172").await, bench.plan("TOPUP_JC172").await);
        let order = bench.order();
        bench.set(Mood::BuysAndBreaks).await;
        assert!(matches!(bench.ask(&order, &plan, None).await, Answer::Doubt(_)));
        bench.set(Mood::Refuses(Cause::NoFunds)).await;
        // The first question took the last of our money, and this seller looks at that first.
        bench.fake.world().forgetful = true;
        let (profile, ..) = bench.buy(&order, &plan).await;
        assert_eq!(bench.sales().await, 1);
        bench.set(Mood::BuysAndBreaks).await;
        let filling = bench.order();
        assert!(matches!(bench.fill(&profile, &bundle, &filling).await, Answer::Doubt(_)));
        bench.set(Mood::Fine).await;
        bench.fake.world().esim(&profile.id).esim_status = "UNUSED_EXPIRED".into();
        bench.fill(&profile, &bundle, &filling).await.told().unwrap();
        assert_eq!(bench.sales().await, 2);
        let late = bench.fill(&profile, &bundle, &bench.order()).await;
        assert!(matches!(late, Answer::Refused(_)), "{late:?}");
    });
}

#[test]
fn a_number_is_only_asked_about() {
    on_a_fake(async |bench| {
        let (order, plan) = (bench.order(), bench.plan("JC172").await);
        let (profile, number, _) = bench.buy(&order, &plan).await;
        let sold = bench.sent("esim/order").len();
        match bench.ask(&order, &plan, Some(&number)).await {
            Answer::Done(Bought::Delivered { what, .. }) => assert_eq!(what, profile),
            other => panic!("{other:?}"),
        }
        assert_eq!(bench.sent("esim/order").len(), sold);
        for wrong in [
            bench.ask(&bench.order(), &plan, Some(&number)).await,
            bench.ask(&order, &bench.plan("JC173").await, Some(&number)).await,
            bench.ask(&order, &plan, Some("B0")).await,
        ] {
            assert!(matches!(wrong, Answer::Doubt(_)), "{wrong:?}");
        }
    });
}

#[test]
fn a_profile_that_cannot_be_delivered_is_not() {
    on_a_fake(async |bench| {
        let plan = bench.plan("JC172").await;
        let order = bench.order();
        let (profile, number, _) = bench.buy(&order, &plan).await;
        let spoil: [fn(&mut super::fakes::esim_access::Sold); 5] = [
            |sold| sold.ac.push_str("$$1"),
            |sold| sold.ac = "https://scan.example/me".into(),
            |sold| sold.iccid = "ICCID of some kind..".into(),
            |sold| sold.esim_status = "REVOKE".into(),
            |sold| sold.esim_status = "UNUSED_EXPIRED".into(),
        ];
        let whole = bench.fake.world().esim(&profile.id).clone();
        for spoil in spoil {
            *bench.fake.world().esim(&profile.id) = whole.clone();
            spoil(bench.fake.world().esim(&profile.id));
            let answer = bench.ask(&order, &plan, Some(&number)).await;
            assert!(matches!(answer, Answer::Doubt(_)), "{answer:?}");
        }
        *bench.fake.world().esim(&profile.id) = whole.clone();
        bench.fake.world().esim(&profile.id).esim_status = "CANCEL".into();
        let answer = bench.ask(&order, &plan, Some(&number)).await;
        assert!(matches!(answer, Answer::Refused(_)), "our money is back there: {answer:?}");
        let second = Fake::start().await.world().profile("B1", order.as_str(), whole.package.clone(), 0, 1);
        bench.fake.world().sold.push(super::fakes::esim_access::Sold { order_no: number.clone(), ..second });
        let answer = bench.ask(&order, &plan, Some(&number)).await;
        assert!(matches!(answer, Answer::Doubt(_)), "two are more than one: {answer:?}");
    });
}

#[test]
fn states_that_nobody_knows_are_read_by_the_meter() {
    on_a_fake(async |bench| {
        let plan = bench.plan("JC172").await;
        let (profile, ..) = bench.buy(&bench.order(), &plan).await;
        bench.fake.world().spend(&profile.id, 5);
        bench.fake.world().esim(&profile.id).esim_status = "MELTED".into();
        let reading = || bench.supplier.usage(Reading { profile: &profile.id, now: bench.now() });
        let usage = reading().await.told().unwrap();
        assert_eq!((usage.status().as_str(), usage.used_mb), ("ACTIVE", 5));
        assert!(usage.expires_at.is_some());
        bench.fake.world().esim(&profile.id).used = -7;
        assert!(matches!(reading().await, Answer::Doubt(_)), "nobody uses less than nothing");
        let stranger = bench.supplier.usage(Reading { profile: "2405", now: bench.now() }).await;
        assert!(matches!(stranger, Answer::Doubt(_)), "{stranger:?}");
    });
}

#[test]
fn a_cancel_that_was_not_heard_is_asked_again() {
    on_a_fake(async |bench| {
        let plan = bench.plan("JC172").await;
        let before = bench.supplier.balance().await.told().unwrap();
        let (profile, ..) = bench.buy(&bench.order(), &plan).await;
        let cancel = || bench.supplier.cancel(Cancel { profile: &profile.id, cost: plan.cost });
        bench.set(Mood::LocksUsOut).await;
        assert!(matches!(cancel().await, Answer::Doubt(_)));
        bench.set(Mood::BuysAndBreaks).await;
        assert!(matches!(cancel().await, Answer::Doubt(_)));
        bench.set(Mood::Fine).await;
        assert!(matches!(cancel().await, Answer::Done(Cancelled::Yes { .. })));
        assert_eq!(bench.supplier.balance().await.told().unwrap(), before);
        bench.fake.world().esim(&profile.id).esim_status = "REVOKE".into();
        assert!(matches!(cancel().await, Answer::Done(Cancelled::No(CancelReason::SupplierCannotCancel))));
        let stranger = bench.supplier.cancel(Cancel { profile: "2405", cost: plan.cost }).await;
        assert!(matches!(stranger, Answer::Doubt(_)), "{stranger:?}");
    });
}

#[test]
fn nothing_is_sent_without_a_turn() {
    on_a_fake(async |bench| {
        let (order, plan) = (bench.order(), bench.plan("JC172").await);
        bench.fake.world().requests.clear();
        let pace = turns(2);
        let paced = EsimAccess::new(&terms(&bench.fake.url), pace.clone(), Arc::default()).unwrap();
        let answer = bench.ask_of(&paced, &order, &plan, None).await;
        let Answer::Done(Bought::Underway { number }) = answer else { panic!("order and query: {answer:?}") };
        assert_eq!((pace.taken.load(Ordering::SeqCst), bench.fake.world().requests.len()), (2, 2));
        assert!(matches!(bench.ask_of(&paced, &bench.order(), &plan, None).await, Answer::NotSent(_)));
        assert!(matches!(bench.ask_of(&paced, &order, &plan, Some(&number)).await, Answer::NotSent(_)));
        assert_eq!(bench.fake.world().requests.len(), 2);
        // The order leaves with the last turn, and there is none for the query: it is sold all the same.
        let one = EsimAccess::new(&terms(&bench.fake.url), turns(1), Arc::default()).unwrap();
        let answer = bench.ask_of(&one, &bench.order(), &plan, None).await;
        assert!(matches!(answer, Answer::Done(Bought::Underway { .. })), "{answer:?}");
    });
}

#[test]
fn a_busy_supplier_is_asked_again_later() {
    on_a_fake(async |bench| {
        let plan = bench.plan("JC172").await;
        bench.fake.world().fault = Fault::TooMany;
        let answer = bench.ask(&bench.order(), &plan, None).await;
        let Answer::Doubt(why) = answer else { panic!("busy is no answer: {answer:?}") };
        assert!(why.contains("429") && why.contains("after 7"), "{why}");
    });
}

#[test]
fn long_lists_are_read_to_their_end() {
    on_a_fake(async |bench| {
        let plan = bench.plan("JC172").await;
        let (order, since) = (bench.order(), bench.now().plus_millis(-1_000));
        {
            let mut world = bench.fake.world();
            let package = world.packages[1].clone();
            for n in 0..1_003 {
                let sold = world.profile(&format!("B{n}"), &format!("other-{n}"), package.clone(), 0, 1);
                world.sold.push(sold);
            }
        }
        let (profile, ..) = bench.buy(&order, &plan).await;
        bench.fake.world().requests.clear();
        let sold = bench.supplier.sold(since).await.told().unwrap();
        assert_eq!(sold.len(), 1_004);
        assert!(sold.iter().any(|sale| sale.order == order && sale.what == profile.iccid));
        assert_eq!(bench.sent("esim/query").len(), 3);
    });
}

/// Where our requests are not the SDK's, and why that is right. Fields that say nothing (`null`, an empty text) are left
/// out on both sides first.
const EXCEPTIONS: [(&str, &str, &str); 4] = [
    ("esim/query", "iccid", "we name a profile by esimTranNo: ICCIDs are used again"),
    ("esim/topup", "iccid", "the API calls it deprecated there"),
    ("esim/cancel", "iccid", "as for the query"),
    ("balance/query", "content-type", "the SDK sends no body; every call of ours is JSON"),
];

#[test]
#[ignore = "needs Python with esimaccess-python"]
fn the_sdk_makes_the_same_journey() {
    on_a_fake(async |bench| {
        let python = required("SIMGATE_TEST_PYTHON");
        let theirs = Fake::start().await;
        let (first, second) = (bench.order(), bench.order());
        let filling = OrderId::topup(bench.now(), vault::random());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/suppliers/sdk/esimaccess.py");
        let mut sdk = Command::new(python);
        sdk.args([script, &theirs.url, CODE, first.as_str(), filling.as_str(), second.as_str()]);
        let ran = tokio::task::spawn_blocking(move || sdk.output().unwrap()).await.unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let told: Value = serde_json::from_slice(&ran.stdout).unwrap();

        let balance = bench.supplier.balance().await.told().unwrap();
        let plans = bench.supplier.plans().await.told().unwrap();
        let of = |code: &str| plans.iter().find(|plan| plan.code == code).unwrap();
        let (one, ..) = bench.buy(&first, of("JC172")).await;
        assert_eq!(of("TOPUP_JC172").plan_type, PlanType::Topup);
        bench.fill(&one, of("TOPUP_JC172"), &filling).await.told().unwrap();
        let usage =
            bench.supplier.usage(Reading { profile: &one.id, now: bench.now() }).await.told().unwrap();
        let (other, ..) = bench.buy(&second, of("JC172")).await;
        let cancel = bench.supplier.cancel(Cancel { profile: &other.id, cost: of("JC172").cost }).await;
        assert!(matches!(cancel, Answer::Done(Cancelled::Yes { .. })));
        let left = bench.supplier.balance().await.told().unwrap();

        // Both were told the same.
        let money = |field: &str| told[field].as_i64().unwrap() * 100;
        assert_eq!((money("balance"), money("left")), (balance.micros, left.micros));
        assert_eq!(told["volume"].as_i64().unwrap(), usage.total_mb << 20);
        for (profile, seen) in [&one, &other].into_iter().zip(told["profiles"].as_array().unwrap()) {
            let iccid = seen[1].as_str().unwrap().trim_end_matches('F');
            assert_eq!((profile.id.as_str(), profile.iccid.as_str()), (seen[0].as_str().unwrap(), iccid));
            assert_eq!(profile.activation.lpa_string(), seen[2].as_str().unwrap());
        }
        compare(&bench.fake, &theirs);
    });
}

/// Both sent the same requests in the same order, but for the exceptions.
fn compare(ours: &Fake, theirs: &Fake) {
    let profiles: BTreeMap<String, String> =
        ours.world().sold.iter().map(|sold| (sold.tran_no.clone(), sold.digits())).collect();
    let (ours, theirs) = (ours.world(), theirs.world());
    let path = |sent: &Recorded| sent.path.clone();
    let paths: Vec<String> = ours.requests.iter().map(path).collect();
    assert_eq!(paths, theirs.requests.iter().map(path).collect::<Vec<_>>());
    for (mine, sdk) in ours.requests.iter().zip(&theirs.requests) {
        let excepted =
            |field: &str| EXCEPTIONS.iter().any(|(path, known, _)| *path == mine.path && *known == field);
        assert_eq!(mine.headers.get("rt-accesscode"), sdk.headers.get("rt-accesscode"));
        if !excepted("content-type") {
            assert_eq!(mine.headers.get("content-type"), sdk.headers.get("content-type"), "{}", mine.path);
        }
        let (mut mine_said, mut sdk_said) = (meant(&mine.body), meant(&sdk.body));
        if excepted("iccid")
            && let Some(tran_no) = mine_said.remove("esimTranNo")
        {
            let iccid = sdk_said.remove("iccid").unwrap();
            let iccid = iccid.as_str().unwrap().trim_end_matches('F').to_string();
            assert_eq!(profiles[tran_no.as_str().unwrap()], iccid, "both mean one profile");
        }
        assert_eq!(mine_said, sdk_said, "{}", mine.path);
    }
}

/// The fields that say something.
fn meant(body: &Value) -> Map<String, Value> {
    let fields = body.as_object().cloned().unwrap_or_default();
    let kept = fields.into_iter().filter(|(_, value)| !value.is_null() && *value != "");
    kept.map(
        |(name, value)| if value.is_object() { (name, Value::Object(meant(&value))) } else { (name, value) },
    )
    .collect()
}
