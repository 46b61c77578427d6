//! Our adapter for Airalo against a fake that the vendor's own SDKs accept: `journey` compares their requests with ours.

mod journey;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use simgate::domain::amount::{Amount, Fiat};
use simgate::domain::esim::{EsimStatus, ServiceState};
use simgate::domain::ids::OrderId;
use simgate::domain::money::Usd;
use simgate::domain::time::Time;
use simgate::supplier::airalo::Airalo;
use simgate::supplier::terms::{AuthMode, Kind, Terms};
use simgate::supplier::wire::Pace;
use simgate::supplier::{
    Answer, Bought, Cancel, CancelWay, Cancelled, Cause, Find, Profile, Provision, Reading, Sale, Supplier,
    TopUp,
};
use simgate::vault;

use crate::suppliers::conformance::{Bench, Mood, conforms};
use crate::suppliers::fakes::airalo::{BASE, CLIENT, Fake, Manner, SECRET, TOPUP, now};

/// Everybody's turn is now.
struct AtOnce;

impl Pace for AtOnce {
    fn turn(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async { Ok(()) })
    }
}

fn terms(url: &str) -> Terms {
    Terms {
        name: "airalo",
        kind: Kind::Airalo,
        url: url.into(),
        client: CLIENT.into(),
        secret: Some(SECRET.into()),
        auth: AuthMode::Secret,
        id_length: 50,
        rate: 5.0,
        quiet: Duration::from_secs(900),
        currency: Fiat::USD,
        low_balance: Amount::usd(Usd::ZERO),
        sync_every: Duration::from_secs(3_600),
        reviewed_cancels: false,
    }
}

fn adapter(terms: &Terms) -> Airalo {
    Airalo::new(terms, Arc::new(AtOnce)).unwrap()
}

fn reviewed(fake: &Fake) -> Airalo {
    adapter(&Terms { reviewed_cancels: true, ..terms(&fake.url) })
}

struct FakeBench {
    fake: Fake,
    supplier: Arc<Airalo>,
}

impl Bench for FakeBench {
    fn supplier(&self) -> Arc<dyn Supplier> {
        self.supplier.clone()
    }

    fn nowhere(&self) -> Option<Arc<dyn Supplier>> {
        // A port that was free a moment ago.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Some(Arc::new(adapter(&terms(&format!("http://{free}")))))
    }

    async fn set(&self, mood: Mood) {
        self.fake.set(match mood {
            Mood::Fine => Manner::Fine,
            Mood::BuysAndHangs => Manner::BuysAndHangs,
            Mood::Hangs => Manner::Hangs,
            Mood::BuysAndBreaks => Manner::BuysAndBreaks,
            Mood::BuysAndMumbles => Manner::BuysAndMumbles,
            Mood::Duplicates => Manner::Duplicates,
            Mood::LocksUsOut => Manner::LocksOut,
            Mood::Slow => Manner::Slow,
            Mood::Refuses(Cause::SoldOut) => Manner::Refuses(33),
            Mood::Refuses(Cause::NoFunds) => Manner::Refuses(11),
            Mood::Refuses(_) => Manner::Refuses(13),
        });
    }

    async fn until_it_hangs(&self) {
        self.fake.until_it_hangs().await;
    }

    async fn sales(&self) -> usize {
        self.fake.world().orders.len()
    }

    async fn install(&self, _profile: &Profile) {
        // Its meter does not know of it.
    }

    async fn spend(&self, profile: &Profile, used_mb: i64) {
        let mut world = self.fake.world();
        let meter = world.profiles.get_mut(&profile.iccid).unwrap();
        meter.used_mb = used_mb;
        meter.status = if used_mb < meter.total_mb { "ACTIVE" } else { "FINISHED" };
    }

    fn now(&self) -> Time {
        now()
    }
}

fn on_the_fake(check: impl AsyncFnOnce(&FakeBench)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let fake = Fake::start().await;
        let supplier = Arc::new(adapter(&terms(&fake.url)));
        check(&FakeBench { fake, supplier }).await;
    });
}

conforms!(on_the_fake);

async fn start() -> (Fake, Airalo) {
    let fake = Fake::start().await;
    let supplier = adapter(&terms(&fake.url));
    (fake, supplier)
}

fn order_id() -> OrderId {
    OrderId::esim(now(), vault::random())
}

async fn buy(supplier: &Airalo, order: &OrderId) -> Answer<Bought<Profile>> {
    let (expected_cost, ordered_at) = (simgate::domain::amount::Amount::usd(Usd::dollars(3)), now());
    let ask = Provision {
        order,
        code: BASE,
        expected_cost,
        data_mb: 1024,
        duration_days: 7,
        ordered_at,
        number: None,
    };
    supplier.provision(ask).await
}

async fn fill(supplier: &Airalo, order: &OrderId, profile: &Profile) -> Answer<Bought<()>> {
    let (expected_cost, ordered_at) = (simgate::domain::amount::Amount::usd(Usd::dollars(3)), now());
    let profile = profile.id.as_str();
    supplier
        .top_up(TopUp {
            order,
            profile,
            code: TOPUP,
            expected_cost,
            data_mb: 1024,
            duration_days: 7,
            ordered_at,
            number: None,
        })
        .await
}

async fn look(supplier: &Airalo, order: &OrderId) -> Answer<Vec<Sale>> {
    supplier.find(Find { order, code: BASE, ordered_at: now(), profile: None }).await
}

#[track_caller]
fn profile_of(answer: Answer<Bought<Profile>>) -> (Profile, Option<String>, Option<String>) {
    match answer {
        Answer::Done(Bought::Delivered { what, number, cost }) => {
            (what, number, cost.map(|cost| cost.to_string()))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_sale_tells_its_number_and_what_it_really_cost() {
    let (fake, supplier) = start().await;
    let order = order_id();
    let (profile, number, cost) = profile_of(buy(&supplier, &order).await);
    assert_eq!(cost.as_deref(), Some("2.70 USD"), "a JSON number, digit by digit");
    let sale = &look(&supplier, &order).await.told().unwrap()[0];
    assert_eq!((Some(&sale.number), sale.profile.as_ref()), (number.as_ref(), Some(&profile)));
    assert_eq!((sale.reference.as_str(), sale.code.as_str(), sale.quantity), (order.as_str(), BASE, 1));
    assert_eq!(fake.world().balance.to_string(), "97.3");
}

#[tokio::test]
async fn a_token_that_ends_in_the_middle_of_a_purchase_is_renewed_and_nothing_is_bought_twice() {
    let (fake, supplier) = start().await;
    profile_of(buy(&supplier, &order_id()).await);
    fake.world().tokens.clear();
    profile_of(buy(&supplier, &order_id()).await);
    assert_eq!(fake.world().orders.len(), 2);
    let tokens: Vec<String> = fake
        .asked("POST", "/v2/orders")
        .iter()
        .map(|request| request.headers["authorization"].clone())
        .collect();
    assert_eq!(tokens.len(), 3, "once, and then once in vain and once again");
    assert!(tokens[0] == tokens[1] && tokens[1] != tokens[2]);
    assert_eq!(fake.asked("POST", "/v2/token").len(), 2);
}

#[tokio::test]
async fn all_who_need_a_new_token_share_one_renewal() {
    let (fake, supplier) = start().await;
    let (ids, supplier) = ([(); 8].map(|()| order_id()), &supplier);
    let [a, b, c, d, e, f, g, h] = &ids;
    let bought = tokio::join!(
        buy(supplier, a),
        buy(supplier, b),
        buy(supplier, c),
        buy(supplier, d),
        buy(supplier, e),
        buy(supplier, f),
        buy(supplier, g),
        buy(supplier, h),
    );
    for answer in [bought.0, bought.1, bought.2, bought.3, bought.4, bought.5, bought.6, bought.7] {
        profile_of(answer);
    }
    assert_eq!(fake.asked("POST", "/v2/token").len(), 1);
    fake.world().tokens.clear();
    let bought = tokio::join!(buy(supplier, a), buy(supplier, b), buy(supplier, c), buy(supplier, d));
    for answer in [bought.0, bought.1, bought.2, bought.3] {
        profile_of(answer);
    }
    assert_eq!(fake.asked("POST", "/v2/token").len(), 2);
}

#[tokio::test]
async fn a_token_is_asked_for_three_times_a_minute_at_most() {
    let (fake, supplier) = start().await;
    fake.set(Manner::LocksOut);
    for _ in 0..6 {
        let answer = buy(&supplier, &order_id()).await;
        assert!(matches!(answer, Answer::NotSent(_)), "{answer:?}");
    }
    assert_eq!(fake.asked("POST", "/v2/token").len(), 3);
    let wrong = adapter(&Terms { secret: Some("wrong".into()), ..terms(&fake.url) });
    fake.set(Manner::Fine);
    let Answer::NotSent(said) = buy(&wrong, &order_id()).await else { panic!("it is locked out") };
    assert!(!said.contains("wrong") && !said.contains("127.0.0.1"), "{said}");
    assert!(fake.asked("POST", "/v2/orders").is_empty());
}

#[tokio::test]
async fn a_busy_desk_is_left_alone_and_the_others_are_not() {
    let (fake, supplier) = start().await;
    let (profile, ..) = profile_of(buy(&supplier, &order_id()).await);
    fake.set(Manner::Busy(30));
    let order = order_id();
    let answer = buy(&supplier, &order).await;
    assert!(matches!(answer, Answer::NotSent(_)), "nobody looked at it: {answer:?}");
    fake.set(Manner::Fine);
    let Answer::NotSent(said) = buy(&supplier, &order).await else { panic!("it must hold back") };
    assert!(said.contains(" 30 s") || said.contains(" 29 s"), "{said}");
    assert_eq!(fake.asked("POST", "/v2/orders").len(), 2);
    supplier.usage(Reading { profile: &profile.id, now: now() }).await.told().unwrap();
}

#[tokio::test]
async fn what_the_codes_mean_for_a_sale() {
    let (fake, supplier) = start().await;
    let cases = [
        (Manner::Refuses(11), "refused no_funds"),
        (Manner::Refuses(33), "refused sold_out"),
        (Manner::Refuses(34), "refused sold_out"),
        (Manner::Refuses(13), "refused rejected"),
        (Manner::Refuses(14), "refused rejected"),
        (Manner::Refuses(23), "refused rejected"),
        (Manner::FindsInvalid("package_id"), "refused sold_out"),
        (Manner::FindsInvalid("quantity"), "refused rejected"),
        (Manner::FindsInvalid("order"), "doubt"),
        (Manner::Refuses(43), "doubt"),
        (Manner::Refuses(53), "doubt"),
        (Manner::Answers(403), "not_sent"),
        (Manner::Answers(404), "doubt"),
        (Manner::Answers(502), "doubt"),
        (Manner::Answers(302), "doubt"),
    ];
    for (manner, meaning) in cases {
        fake.set(manner);
        let answer = buy(&supplier, &order_id()).await;
        let told = match &answer {
            Answer::Refused(no) => format!("refused {}", no.cause.as_str()),
            other => other.outcome().to_string(),
        };
        assert_eq!(told, meaning, "{manner:?}");
    }
    fake.set(Manner::Fine);
    fake.world().balance = Usd::dollars(1);
    assert!(matches!(buy(&supplier, &order_id()).await, Answer::Refused(no) if no.cause == Cause::NoFunds));
}

#[tokio::test]
async fn a_look_up_proves_nothing_when_its_filter_is_ignored() {
    let (fake, supplier) = start().await;
    let (sold, missing) = (order_id(), order_id());
    profile_of(buy(&supplier, &sold).await);
    assert!(look(&supplier, &missing).await.told().unwrap().is_empty());
    fake.world().filter_ignored = true;
    let answer = look(&supplier, &missing).await;
    assert!(matches!(answer, Answer::Doubt(_)), "others' sales are no empty list: {answer:?}");
    profile_of(buy(&supplier, &order_id()).await);
    let found = look(&supplier, &sold).await.told().unwrap();
    assert_eq!((found.len(), found[0].reference.as_str()), (1, sold.as_str()), "ours is found among them");
}

#[tokio::test]
async fn a_list_that_lags_is_empty_for_a_known_sale_too() {
    let (fake, supplier) = start().await;
    let order = order_id();
    profile_of(buy(&supplier, &order).await);
    fake.world().list_lags = true;
    assert!(look(&supplier, &order).await.told().unwrap().is_empty());
}

#[tokio::test]
async fn failed_and_refunded_sales_are_not_found() {
    let (fake, supplier) = start().await;
    let order = order_id();
    profile_of(buy(&supplier, &order).await);
    for (slug, found) in [("failed", 0), ("refunded", 0), ("completed", 1)] {
        fake.world().status = slug;
        assert_eq!(look(&supplier, &order).await.told().unwrap().len(), found, "{slug}");
    }
}

#[tokio::test]
async fn iccids_of_18_digits_are_sold_filled_and_read() {
    let (fake, supplier) = start().await;
    fake.world().iccid_digits = 18;
    let (profile, ..) = profile_of(buy(&supplier, &order_id()).await);
    assert_eq!(profile.iccid.len(), 18);
    assert!(matches!(
        fill(&supplier, &OrderId::topup(now(), vault::random()), &profile).await,
        Answer::Done(_)
    ));
    let usage = supplier.usage(Reading { profile: &profile.id, now: now() }).await.told().unwrap();
    assert_eq!((usage.total_mb, usage.status()), (2048, EsimStatus::New));
}

#[tokio::test]
async fn states_of_a_meter_that_nobody_knows_are_told_as_unknown() {
    let (fake, supplier) = start().await;
    let (profile, ..) = profile_of(buy(&supplier, &order_id()).await);
    for (word, known) in [("ACTIVE", true), ("RECYCLED", true), ("UNKNOWN", false), ("ON_HOLIDAY", false)] {
        fake.world().profiles.get_mut(&profile.iccid).unwrap().status = word;
        let reading = supplier.usage(Reading { profile: &profile.id, now: now() }).await.told().unwrap();
        assert_eq!(reading.service != ServiceState::Unknown, known, "{word}");
    }
    let strange = supplier.usage(Reading { profile: "sim", now: now() }).await;
    assert!(matches!(strange, Answer::Refused(_)));
}

#[tokio::test]
async fn a_recycled_profile_takes_no_top_up() {
    let (fake, supplier) = start().await;
    let (profile, ..) = profile_of(buy(&supplier, &order_id()).await);
    fake.world().profiles.get_mut(&profile.iccid).unwrap().status = "RECYCLED";
    let answer = fill(&supplier, &OrderId::topup(now(), vault::random()), &profile).await;
    assert!(matches!(answer, Answer::Refused(_)), "{answer:?}");
}

#[tokio::test]
async fn the_list_of_sales_has_all_its_pages() {
    let (fake, supplier) = start().await;
    fake.world().balance = Usd::dollars(1_000);
    let since = now();
    let mut ids = Vec::new();
    for _ in 0..101 {
        let order = order_id();
        profile_of(buy(&supplier, &order).await);
        ids.push(order);
    }
    let sold = supplier.sold(since).await.told().unwrap();
    assert_eq!(sold.len(), 101);
    assert!(ids.iter().all(|id| sold.iter().any(|sale| sale.order == *id)));
    assert_eq!(fake.asked("GET", "/v2/orders").len(), 2);
    assert_eq!(
        supplier.sold(since.plus_days(1)).await.told().unwrap(),
        [],
        "its filter of days is not trusted alone"
    );
    fake.world().list_is_cut = true;
    assert!(matches!(supplier.sold(since).await, Answer::Doubt(_)), "a part is none");
}

#[tokio::test]
async fn a_refund_is_a_request_and_only_where_the_operator_wants_it() {
    let (fake, supplier) = start().await;
    let (profile, ..) = profile_of(buy(&supplier, &order_id()).await);
    let cost = simgate::domain::amount::Amount::usd(Usd::dollars(3));
    let ask = || Cancel { profile: &profile.id, cost };
    assert!(matches!(supplier.cancel(ask()).await, Answer::Done(Cancelled::No(_))));
    assert!(fake.asked("POST", "/v2/refund").is_empty());
    let supplier = reviewed(&fake);
    assert_eq!(supplier.abilities().cancel, CancelWay::Reviewed);
    match supplier.cancel(ask()).await {
        Answer::Done(Cancelled::Requested { request }) => assert_eq!(request, "12001"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fake.world().refunds[0]["iccids"][0], profile.iccid.as_str());
    let unknown = Cancel { profile: "1.8999999999999999999", cost };
    assert!(matches!(supplier.cancel(unknown).await, Answer::Refused(_)));
    fake.set(Manner::Answers(503));
    assert!(matches!(supplier.cancel(ask()).await, Answer::Doubt(_)), "it may have arrived");
}

#[tokio::test]
async fn costs_are_in_the_currency_of_the_account() {
    let (fake, _) = start().await;
    let euros = adapter(&Terms { currency: Fiat::parse("EUR").unwrap(), ..terms(&fake.url) });
    let plans = euros.plans().await.told().unwrap();
    assert!(plans.len() == 6 && plans.iter().all(|plan| plan.cost.currency.as_str() == "EUR"));
    let none = adapter(&Terms { currency: Fiat::parse("JPY").unwrap(), ..terms(&fake.url) });
    assert!(none.plans().await.told().unwrap().is_empty(), "no cost, no plan");
}

#[test]
fn an_account_without_a_secret_is_refused_at_the_start() {
    let terms = Terms { secret: None, ..terms("http://127.0.0.1:1") };
    assert!(Airalo::new(&terms, Arc::new(AtOnce)).is_err_and(|why| why.contains("secret")));
}
