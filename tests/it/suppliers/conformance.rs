//! The conformance kit: what every supplier must do, whatever its wire format. An adapter brings a `Bench`, which is its
//! fake and knows how to make it misbehave, and `conforms!` makes a test of each check below. What a supplier says that
//! it can do decides which checks say something; a bench cannot leave one out. The simulator is the first user.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use simgate::domain::amount::Amount;
use simgate::domain::country;
use simgate::domain::esim::{EsimStatus, Usage, iccid};
use simgate::domain::ids::OrderId;
use simgate::domain::order::CancelReason;
use simgate::domain::plan::{Listing, PlanType};
use simgate::domain::time::Time;
use simgate::supplier::{
    Answer, Ask, Bought, Cancel, CancelWay, Cancelled, Cause, DoubtRule, Find, No, Profile, Provision,
    Reading, Sale, Supplier, TopUp,
};
use simgate::vault;

/// How a supplier behaves from now on when it is asked to sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Fine,
    /// Sells, and never answers.
    BuysAndHangs,
    /// Sells nothing, and never answers.
    Hangs,
    /// Sells, and answers that it is broken.
    BuysAndBreaks,
    /// Sells, and answers what nobody can read.
    BuysAndMumbles,
    /// Answers with the sale of the order before.
    Duplicates,
    /// Our credentials are no longer good.
    LocksUsOut,
    /// The sale stands at once, and the profile follows some questions later.
    Slow,
    Refuses(Cause),
}

/// A supplier and the world behind it.
pub trait Bench {
    fn supplier(&self) -> Arc<dyn Supplier>;
    /// A supplier of the same kind at an address where nobody listens; `None` for one that has no address.
    fn nowhere(&self) -> Option<Arc<dyn Supplier>>;
    /// The reasons for which it can be made to refuse.
    fn causes(&self) -> Vec<Cause> {
        vec![Cause::SoldOut, Cause::PriceChanged, Cause::NoFunds]
    }
    async fn set(&self, mood: Mood);
    /// Comes back when the supplier holds a question that it will not answer.
    async fn until_it_hangs(&self);
    /// How many sales and top-ups stand in the supplier's own books. A repeated question adds none.
    async fn sales(&self) -> usize;
    /// Somebody installs the profile; nothing is used yet.
    async fn install(&self, profile: &Profile);
    /// Somebody has used this much of the profile in all.
    async fn spend(&self, profile: &Profile, used_mb: i64);
    fn now(&self) -> Time;
}

/// A test for each check. `$run` makes a bench of its own for a check and runs it there: `fn(impl AsyncFnOnce(&Bench))`.
macro_rules! conforms {
    ($run:path) => {
        crate::suppliers::conformance::conforms! { $run:
            its_declaration_makes_sense, its_plans_are_sound, a_sale_is_delivered, a_slow_sale_is_delivered,
            a_repeat_is_the_same_sale, an_unknown_reference_finds_nothing, each_doubt_is_a_doubt,
            a_doubtful_top_up_is_sold_once, an_answer_for_another_order_is_seen, each_refusal_has_its_cause,
            nothing_leaves_without_a_connection, a_top_up_adds_what_it_says, a_profile_is_given_back_once,
            a_used_profile_is_not_taken_back, usage_is_read_exactly, the_balance_is_money, sales_are_listed,
        }
    };
    ($run:path: $($check:ident),* $(,)?) => {$(
        #[test]
        fn $check() {
            $run(async |bench| crate::suppliers::conformance::$check(bench).await);
        }
    )*};
}
pub(crate) use conforms;

/// Questions that an allocation may take.
const QUESTIONS: usize = 50;

/// An order of ours, and when it was placed: whoever asks again says the same.
struct Placed {
    id: OrderId,
    at: Time,
}

fn new_order(bench: &impl Bench) -> Placed {
    let at = bench.now();
    Placed { id: OrderId::esim(at, vault::random()), at }
}

fn new_top_up(bench: &impl Bench) -> Placed {
    let at = bench.now();
    Placed { id: OrderId::topup(at, vault::random()), at }
}

async fn plans(bench: &impl Bench) -> Vec<Listing> {
    bench.supplier().plans().await.told().expect("the plans are told")
}

/// A plan of a fixed size that can be topped up where the supplier has top-ups, and a bundle that fits it.
async fn a_plan(bench: &impl Bench) -> (Listing, Option<Listing>) {
    let plans = plans(bench).await;
    let sold = |plan: &&Listing| plan.in_stock && plan.data_mb.is_some();
    let (bundles, bases): (Vec<&Listing>, Vec<&Listing>) =
        plans.iter().filter(sold).partition(|plan| plan.plan_type == PlanType::Topup);
    let fits = |base: &Listing| {
        bundles.iter().find(|bundle| bundle.family == base.family).map(|&found| found.clone())
    };
    if !bench.supplier().abilities().top_up {
        return (bases[0].clone(), None);
    }
    let mut pairs = bases.iter().filter_map(|&base| Some((base.clone(), Some(fits(base)?))));
    pairs.next().expect("a supplier with top-ups lists a plan and a bundle that fits it")
}

fn provision<'a>(
    supplier: &'a dyn Supplier,
    order: &'a Placed,
    plan: &'a Listing,
    number: Option<&'a str>,
) -> Ask<'a, Bought<Profile>> {
    supplier.provision(Provision {
        order: &order.id,
        code: &plan.code,
        expected_cost: plan.cost,
        data_mb: plan.data_mb.unwrap_or_default(),
        duration_days: plan.duration_days,
        ordered_at: order.at,
        number,
    })
}

fn top_up<'a>(
    supplier: &'a dyn Supplier,
    order: &'a Placed,
    profile: &'a str,
    bundle: &'a Listing,
    number: Option<&'a str>,
) -> Ask<'a, Bought<()>> {
    supplier.top_up(TopUp {
        order: &order.id,
        profile,
        code: &bundle.code,
        expected_cost: bundle.cost,
        data_mb: bundle.data_mb.unwrap_or_default(),
        duration_days: bundle.duration_days,
        ordered_at: order.at,
        number,
    })
}

/// What was delivered, after as many questions as it takes.
async fn delivered<T>(mut ask: impl AsyncFnMut(Option<&str>) -> Answer<Bought<T>>) -> (T, Option<Amount>) {
    let mut known: Option<String> = None;
    for _ in 0..QUESTIONS {
        match ask(known.as_deref()).await {
            Answer::Done(Bought::Delivered { what, cost, number }) => {
                assert!(number.is_none() || known.is_none() || number == known, "a sale keeps its number");
                return (what, cost);
            }
            Answer::Done(Bought::Underway { number }) => {
                assert!(known.as_ref().is_none_or(|known| *known == number), "a sale keeps its number");
                known = Some(number);
            }
            other => panic!("not delivered: {}", said(&other)),
        }
    }
    panic!("not delivered after {QUESTIONS} questions")
}

async fn buy(bench: &impl Bench, order: &Placed, plan: &Listing) -> Profile {
    let supplier = bench.supplier();
    let (profile, cost) =
        delivered(async |number| provision(supplier.as_ref(), order, plan, number).await).await;
    assert!(cost.is_none_or(|cost| cost.currency == plan.cost.currency && cost.micros <= plan.cost.micros));
    assert_eq!(iccid(&profile.iccid).as_ref(), Some(&profile.iccid));
    assert!(!profile.id.is_empty() && !profile.activation.smdp_address.is_empty());
    let fields = [&profile.activation.smdp_address, &profile.activation.matching_id];
    assert!(fields.iter().all(|field| !field.contains(['$', ' '])), "the activation code is in its parts");
    assert!(profile.install_by.is_none_or(|until| until > order.at));
    profile
}

async fn fill(bench: &impl Bench, order: &Placed, profile: &Profile, bundle: &Listing) {
    let supplier = bench.supplier();
    delivered(async |number| top_up(supplier.as_ref(), order, &profile.id, bundle, number).await).await;
}

async fn read(bench: &impl Bench, profile: &Profile) -> Usage {
    let now = bench.now();
    bench.supplier().usage(Reading { profile: &profile.id, now }).await.told().expect("the meter is read")
}

async fn cancel(bench: &impl Bench, profile: &Profile, cost: Amount) -> Answer<Cancelled> {
    bench.supplier().cancel(Cancel { profile: &profile.id, cost }).await
}

/// An answer in words, without what may be secret in it.
fn said<T>(answer: &Answer<T>) -> String {
    match answer {
        Answer::Done(_) => "done".into(),
        Answer::Refused(No { cause, said }) => format!("refused, {}: {said}", cause.as_str()),
        Answer::NotSent(why) => format!("not sent: {why}"),
        Answer::Doubt(why) => format!("doubt: {why}"),
    }
}

/// The answer, or nothing when the supplier hangs: whoever asks waits no longer then.
async fn unless_it_hangs<T>(bench: &impl Bench, ask: impl Future<Output = Answer<T>>) -> Option<Answer<T>> {
    tokio::select! {
        answer = ask => Some(answer),
        () = bench.until_it_hangs() => None,
    }
}

/// Whoever got this answer must not believe that nothing was bought.
fn must_be_doubt<T>(mood: Mood, answer: &Option<Answer<T>>, bought: bool) {
    match answer {
        None | Some(Answer::Doubt(_)) => {}
        // An adapter may know that it could not even ask, or have put it right by itself.
        Some(Answer::NotSent(_)) if mood == Mood::LocksUsOut && !bought => {}
        Some(Answer::Done(_)) if mood == Mood::LocksUsOut && bought => {}
        Some(other) => panic!("{mood:?} must leave a doubt, and was {}", said(other)),
    }
}

const DOUBTS: [Mood; 5] =
    [Mood::BuysAndHangs, Mood::Hangs, Mood::BuysAndBreaks, Mood::BuysAndMumbles, Mood::LocksUsOut];

fn finds(supplier: &dyn Supplier) -> bool {
    matches!(supplier.abilities().doubt, DoubtRule::FindByReference { .. } | DoubtRule::FindInList { .. })
}

async fn look(bench: &impl Bench, order: &Placed, code: &str, profile: Option<&str>) -> Vec<Sale> {
    let find = Find { order: &order.id, code, ordered_at: order.at, profile };
    bench.supplier().find(find).await.told().expect("the look-up works")
}

/// A sale that was looked for is ours in everything that can be compared.
fn must_be_ours(sale: &Sale, order: &Placed, code: &str) {
    assert_eq!((sale.code.as_str(), sale.quantity), (code, 1));
    assert!(sale.reference.is_empty() || sale.reference == order.id.as_str(), "{}", sale.reference);
    assert!(!sale.number.is_empty());
    // Some suppliers tell whole seconds.
    assert!(
        sale.at >= order.at.plus_millis(-1_000) && sale.at <= order.at.plus_millis(600_000),
        "sold at {:?}",
        sale.at
    );
}

pub async fn its_declaration_makes_sense(bench: &impl Bench) {
    let supplier = bench.supplier();
    let abilities = supplier.abilities();
    assert!(!supplier.name().is_empty());
    assert!(abilities.rate > 0.0);
    match abilities.doubt {
        DoubtRule::FindByReference { quiet } | DoubtRule::FindInList { quiet } => {
            assert!(quiet > Duration::ZERO, "no time is no quiet time");
        }
        DoubtRule::RepeatIsSafe | DoubtRule::ClaimFirst => {}
    }
}

pub async fn its_plans_are_sound(bench: &impl Bench) {
    let plans = plans(bench).await;
    assert!(plans.iter().any(|plan| plan.plan_type == PlanType::Base));
    let mut codes = BTreeSet::new();
    for plan in &plans {
        assert!(codes.insert(&plan.code), "{} is listed twice", plan.code);
        assert!(!plan.code.is_empty() && !plan.name.is_empty() && !plan.family.is_empty(), "{plan:?}");
        assert!(!plan.countries.is_empty() && plan.countries.is_sorted(), "{plan:?}");
        assert!(plan.countries.iter().all(|code| country::exists(code)), "{plan:?}");
        assert!(plan.cost.micros > 0 && plan.retail_hint.is_none_or(|hint| hint.micros > 0), "{plan:?}");
        assert!(plan.data_mb.is_none_or(|size| size > 0) && plan.duration_days > 0, "{plan:?}");
        assert!(plan.details.networks.iter().all(|carrier| country::exists(&carrier.country)), "{plan:?}");
    }
    let bases: BTreeMap<&str, &Listing> = plans
        .iter()
        .filter(|plan| plan.plan_type == PlanType::Base)
        .map(|plan| (plan.family.as_str(), plan))
        .collect();
    for bundle in plans.iter().filter(|plan| plan.plan_type == PlanType::Topup) {
        if let Some(base) = bases.get(bundle.family.as_str()) {
            assert_eq!(base.countries, bundle.countries, "a bundle covers what its plans cover");
        }
    }
    let bundles = plans.iter().any(|plan| plan.plan_type == PlanType::Topup);
    assert_eq!(bundles, bench.supplier().abilities().top_up, "top-ups are listed by whoever sells them");
}

pub async fn a_sale_is_delivered(bench: &impl Bench) {
    let (plan, _) = a_plan(bench).await;
    let before = bench.sales().await;
    let first = buy(bench, &new_order(bench), &plan).await;
    let second = buy(bench, &new_order(bench), &plan).await;
    assert_ne!((&first.id, &first.iccid), (&second.id, &second.iccid), "two orders have two profiles");
    assert_ne!(first.activation, second.activation);
    assert_eq!(bench.sales().await, before + 2);
}

pub async fn a_slow_sale_is_delivered(bench: &impl Bench) {
    let (plan, _) = a_plan(bench).await;
    let (order, before) = (new_order(bench), bench.sales().await);
    bench.set(Mood::Slow).await;
    buy(bench, &order, &plan).await;
    assert_eq!(bench.sales().await, before + 1);
}

pub async fn a_repeat_is_the_same_sale(bench: &impl Bench) {
    if bench.supplier().abilities().doubt != DoubtRule::RepeatIsSafe {
        return;
    }
    let (plan, _) = a_plan(bench).await;
    let order = new_order(bench);
    let first = buy(bench, &order, &plan).await;
    let sold = bench.sales().await;
    assert_eq!(buy(bench, &order, &plan).await, first);
    assert_eq!(bench.sales().await, sold);
}

pub async fn an_unknown_reference_finds_nothing(bench: &impl Bench) {
    if !finds(bench.supplier().as_ref()) {
        return;
    }
    let (plan, bundle) = a_plan(bench).await;
    let profile = buy(bench, &new_order(bench), &plan).await;
    assert_eq!(look(bench, &new_order(bench), &plan.code, None).await, []);
    if let Some(bundle) = bundle {
        assert_eq!(look(bench, &new_top_up(bench), &bundle.code, Some(&profile.id)).await, []);
    }
}

pub async fn each_doubt_is_a_doubt(bench: &impl Bench) {
    let (plan, _) = a_plan(bench).await;
    let supplier = bench.supplier();
    for mood in DOUBTS {
        let (order, before) = (new_order(bench), bench.sales().await);
        bench.set(mood).await;
        let answer = unless_it_hangs(bench, provision(supplier.as_ref(), &order, &plan, None)).await;
        bench.set(Mood::Fine).await;
        let bought = bench.sales().await - before;
        must_be_doubt(mood, &answer, bought == 1);
        if matches!(mood, Mood::BuysAndHangs | Mood::BuysAndBreaks | Mood::BuysAndMumbles) {
            assert_eq!(bought, 1, "the bench did not play {mood:?}");
        }
        match supplier.abilities().doubt {
            DoubtRule::RepeatIsSafe => {
                let profile = buy(bench, &order, &plan).await;
                assert_eq!(bench.sales().await, before + 1, "{mood:?} was sold once");
                assert_eq!(buy(bench, &order, &plan).await, profile);
            }
            DoubtRule::FindByReference { .. } | DoubtRule::FindInList { .. } => {
                let found = look(bench, &order, &plan.code, None).await;
                assert_eq!(found.len(), bought, "{mood:?}");
                found.iter().for_each(|sale| must_be_ours(sale, &order, &plan.code));
            }
            DoubtRule::ClaimFirst => {}
        }
    }
}

pub async fn a_doubtful_top_up_is_sold_once(bench: &impl Bench) {
    let (plan, Some(bundle)) = a_plan(bench).await else { return };
    let supplier = bench.supplier();
    let profile = buy(bench, &new_order(bench), &plan).await;
    for mood in DOUBTS {
        let (order, before) = (new_top_up(bench), bench.sales().await);
        bench.set(mood).await;
        let ask = top_up(supplier.as_ref(), &order, &profile.id, &bundle, None);
        let answer = unless_it_hangs(bench, ask).await;
        bench.set(Mood::Fine).await;
        let bought = bench.sales().await - before;
        must_be_doubt(mood, &answer, bought == 1);
        match supplier.abilities().doubt {
            DoubtRule::RepeatIsSafe => {
                fill(bench, &order, &profile, &bundle).await;
                fill(bench, &order, &profile, &bundle).await;
                assert_eq!(bench.sales().await, before + 1, "{mood:?} was sold once");
            }
            DoubtRule::FindByReference { .. } | DoubtRule::FindInList { .. } => {
                let found = look(bench, &order, &bundle.code, Some(&profile.id)).await;
                assert_eq!(found.len(), bought, "{mood:?}");
                for sale in &found {
                    must_be_ours(sale, &order, &bundle.code);
                    assert!(sale.iccid.as_ref().is_none_or(|filled| *filled == profile.iccid));
                }
            }
            DoubtRule::ClaimFirst => {}
        }
    }
}

pub async fn an_answer_for_another_order_is_seen(bench: &impl Bench) {
    let (plan, _) = a_plan(bench).await;
    let first = buy(bench, &new_order(bench), &plan).await;
    let (supplier, order) = (bench.supplier(), new_order(bench));
    bench.set(Mood::Duplicates).await;
    let answer = provision(supplier.as_ref(), &order, &plan, None).await;
    bench.set(Mood::Fine).await;
    match &answer {
        // The gateway sees that the profile has an owner, or gets the right one.
        Answer::Done(Bought::Delivered { what, .. }) => {
            assert_eq!(what.iccid == first.iccid, what.id == first.id, "the two are not mixed");
        }
        Answer::Done(Bought::Underway { .. }) | Answer::Doubt(_) => {}
        other => panic!("a sale of somebody else is no reason: {}", said(other)),
    }
    if supplier.abilities().doubt == DoubtRule::RepeatIsSafe {
        assert_ne!(buy(bench, &order, &plan).await.iccid, first.iccid, "the order gets a profile of its own");
    }
}

pub async fn each_refusal_has_its_cause(bench: &impl Bench) {
    let (plan, bundle) = a_plan(bench).await;
    let supplier = bench.supplier();
    let profile = buy(bench, &new_order(bench), &plan).await;
    for cause in bench.causes() {
        if cause == Cause::PriceChanged && !supplier.abilities().checks_cost {
            continue;
        }
        let before = bench.sales().await;
        bench.set(Mood::Refuses(cause)).await;
        match provision(supplier.as_ref(), &new_order(bench), &plan, None).await {
            Answer::Refused(no) => assert_eq!(no.cause, cause, "{}", no.said),
            other => panic!("{cause:?} must be a refusal, and was {}", said(&other)),
        }
        if let Some(bundle) = &bundle {
            let order = new_top_up(bench);
            match top_up(supplier.as_ref(), &order, &profile.id, bundle, None).await {
                Answer::Refused(no) => assert_eq!(no.cause, cause, "{}", no.said),
                other => panic!("{cause:?} of a top-up must be a refusal, and was {}", said(&other)),
            }
        }
        bench.set(Mood::Fine).await;
        assert_eq!(bench.sales().await, before, "who refuses sells nothing");
    }
}

pub async fn nothing_leaves_without_a_connection(bench: &impl Bench) {
    let Some(nowhere) = bench.nowhere() else { return };
    fn not_sent<T>(what: &str, answer: Answer<T>) {
        assert!(matches!(answer, Answer::NotSent(_)), "{what}: {}", said(&answer));
    }
    let (plan, bundle) = a_plan(bench).await;
    let profile = buy(bench, &new_order(bench), &plan).await;
    let (order, at) = (new_order(bench), bench.now());
    not_sent("plans", nowhere.plans().await);
    not_sent("balance", nowhere.balance().await);
    not_sent("provision", provision(nowhere.as_ref(), &order, &plan, None).await);
    if let Some(bundle) = &bundle {
        not_sent("top-up", top_up(nowhere.as_ref(), &order, &profile.id, bundle, None).await);
    }
    if nowhere.abilities().usage {
        not_sent("usage", nowhere.usage(Reading { profile: &profile.id, now: at }).await);
    }
    if nowhere.abilities().cancel == CancelWay::AtOnce {
        not_sent("cancel", nowhere.cancel(Cancel { profile: &profile.id, cost: plan.cost }).await);
    }
}

pub async fn a_top_up_adds_what_it_says(bench: &impl Bench) {
    let (plan, Some(bundle)) = a_plan(bench).await else { return };
    let profile = buy(bench, &new_order(bench), &plan).await;
    let (order, before) = (new_top_up(bench), bench.sales().await);
    fill(bench, &order, &profile, &bundle).await;
    assert_eq!(bench.sales().await, before + 1);
    let abilities = bench.supplier().abilities();
    let size = plan.data_mb.unwrap() + bundle.data_mb.unwrap();
    if abilities.usage {
        assert_eq!(read(bench, &profile).await.total_mb, size);
    }
    if abilities.doubt == DoubtRule::RepeatIsSafe {
        fill(bench, &order, &profile, &bundle).await;
        assert_eq!(bench.sales().await, before + 1, "the same top-up again is the same sale");
    }
    if abilities.cancel == CancelWay::AtOnce {
        let gone = buy(bench, &new_order(bench), &plan).await;
        cancel(bench, &gone, plan.cost).await.told().unwrap();
        let supplier = bench.supplier();
        let order = new_top_up(bench);
        let answer = top_up(supplier.as_ref(), &order, &gone.id, &bundle, None).await;
        assert!(matches!(answer, Answer::Refused(_)), "what is gone cannot be filled: {}", said(&answer));
    }
}

pub async fn a_profile_is_given_back_once(bench: &impl Bench) {
    let (plan, _) = a_plan(bench).await;
    let profile = buy(bench, &new_order(bench), &plan).await;
    match bench.supplier().abilities().cancel {
        CancelWay::AtOnce => {
            // The second answer is for whoever did not hear the first.
            for _ in 0..2 {
                match cancel(bench, &profile, plan.cost).await {
                    Answer::Done(Cancelled::Yes { returned }) => assert_eq!(returned, plan.cost),
                    other => panic!("a new profile is taken back: {other:?}"),
                }
            }
            if bench.supplier().abilities().usage {
                assert_eq!(read(bench, &profile).await.status(), EsimStatus::Cancelled);
            }
        }
        CancelWay::Never => {
            let answer = cancel(bench, &profile, plan.cost).await;
            assert!(
                matches!(answer, Answer::Done(Cancelled::No(CancelReason::SupplierCannotCancel))),
                "{answer:?}"
            );
        }
        CancelWay::Reviewed => {}
    }
}

pub async fn a_used_profile_is_not_taken_back(bench: &impl Bench) {
    if bench.supplier().abilities().cancel != CancelWay::AtOnce {
        return;
    }
    let (plan, _) = a_plan(bench).await;
    let (installed, used) =
        (buy(bench, &new_order(bench), &plan).await, buy(bench, &new_order(bench), &plan).await);
    bench.install(&installed).await;
    bench.spend(&used, 1).await;
    let kept = [(installed, CancelReason::Downloaded), (used, CancelReason::Used)];
    for (profile, reason) in kept {
        match cancel(bench, &profile, plan.cost).await {
            Answer::Done(Cancelled::No(why)) => assert_eq!(why, reason),
            other => panic!("it must not be taken back: {other:?}"),
        }
    }
}

pub async fn usage_is_read_exactly(bench: &impl Bench) {
    if !bench.supplier().abilities().usage {
        return;
    }
    let (plan, _) = a_plan(bench).await;
    let size = plan.data_mb.unwrap();
    let profile = buy(bench, &new_order(bench), &plan).await;
    let fresh = read(bench, &profile).await;
    assert_eq!((fresh.status(), fresh.total_mb, fresh.used_mb), (EsimStatus::New, size, 0));
    bench.install(&profile).await;
    let installed = read(bench, &profile).await;
    // Not every supplier knows of an installation before the first use.
    assert!(matches!(installed.status(), EsimStatus::New | EsimStatus::Installed), "{installed:?}");
    bench.spend(&profile, 100).await;
    let begun = read(bench, &profile).await;
    assert_eq!((begun.status(), begun.total_mb, begun.used_mb), (EsimStatus::Active, size, 100));
    bench.spend(&profile, size).await;
    let empty = read(bench, &profile).await;
    assert_eq!((empty.status(), empty.total_mb, empty.used_mb), (EsimStatus::Depleted, size, size));
}

pub async fn the_balance_is_money(bench: &impl Bench) {
    let (plan, _) = a_plan(bench).await;
    let supplier = bench.supplier();
    let before = supplier.balance().await.told().unwrap();
    assert!(before.micros > 0 && before.currency == plan.cost.currency, "{before}");
    buy(bench, &new_order(bench), &plan).await;
    let after = supplier.balance().await.told().unwrap();
    let paid = before.micros - after.micros;
    // Nobody pays a simulator.
    let free = bench.nowhere().is_none();
    assert!(paid == plan.cost.micros || (free && paid == 0), "{before}, then {after}");
}

pub async fn sales_are_listed(bench: &impl Bench) {
    let (plan, bundle) = a_plan(bench).await;
    let since = bench.now().plus_millis(-1_000);
    let order = new_order(bench);
    let profile = buy(bench, &order, &plan).await;
    let filled = new_top_up(bench);
    if let Some(bundle) = &bundle {
        fill(bench, &filled, &profile, bundle).await;
    }
    let sold = bench.supplier().sold(since).await.told().expect("it keeps a list");
    let of = |order: &Placed| sold.iter().filter(|sale| sale.order == order.id).collect::<Vec<_>>();
    let [sale] = of(&order)[..] else { panic!("the sale is listed once: {sold:?}") };
    assert!([&profile.iccid, &profile.id].contains(&&sale.what), "{sale:?}");
    if bundle.is_some() {
        assert_eq!(of(&filled).len(), 1, "the top-up is listed: {sold:?}");
    }
}

mod simulator {
    use std::sync::Mutex;

    use simgate::app::App;
    use simgate::ops::sandbox;
    use simgate::supplier::sim::SupplierMode;

    use super::*;
    use crate::support::harness::{Db, Gateway, run, until};

    struct SimBench<'a> {
        app: &'a App,
        gateway: &'a Gateway,
        mood: Mutex<(Mood, usize)>,
    }

    impl Bench for SimBench<'_> {
        fn supplier(&self) -> Arc<dyn Supplier> {
            self.app.sim.clone()
        }

        fn nowhere(&self) -> Option<Arc<dyn Supplier>> {
            None
        }

        fn causes(&self) -> Vec<Cause> {
            vec![Cause::Rejected]
        }

        async fn set(&self, mood: Mood) {
            let (mode, delay) = match mood {
                // It knows no credentials and delivers at once.
                Mood::Fine | Mood::Slow => (SupplierMode::Ok, 0),
                Mood::BuysAndHangs => (SupplierMode::Timeout, 0),
                Mood::Hangs => (SupplierMode::Slow, 3_600_000),
                Mood::BuysAndBreaks | Mood::BuysAndMumbles => (SupplierMode::Malformed, 0),
                Mood::Duplicates => (SupplierMode::Duplicate, 0),
                Mood::LocksUsOut => (SupplierMode::Unavailable, 0),
                Mood::Refuses(_) => (SupplierMode::Reject, 0),
            };
            *self.mood.lock().unwrap() = (mood, self.sales().await);
            let mood = simgate::supplier::sim::Mood { delay_ms: delay, ..mode.into() };
            sandbox::set_supplier(self.app, mood).await.unwrap();
        }

        async fn until_it_hangs(&self) {
            let (mood, sales) = *self.mood.lock().unwrap();
            match mood {
                Mood::BuysAndHangs => {
                    until("the simulator has sold", async || (self.sales().await > sales).then_some(()))
                        .await;
                }
                Mood::Hangs => {}
                _ => std::future::pending().await,
            }
        }

        async fn sales(&self) -> usize {
            self.gateway.journalled("sold").len() + self.gateway.journalled("topped").len()
        }

        async fn install(&self, profile: &Profile) {
            let moved = self.app.sim.move_usage(&profile.id, None, Some(EsimStatus::Installed), self.now());
            moved.await.unwrap().unwrap();
        }

        async fn spend(&self, profile: &Profile, used_mb: i64) {
            let moved = self.app.sim.move_usage(&profile.id, Some(used_mb), None, self.now());
            moved.await.unwrap().unwrap();
        }

        fn now(&self) -> Time {
            self.app.now()
        }
    }

    fn on_a_sandbox(check: impl for<'a> AsyncFnOnce(&SimBench<'a>) + 'static) {
        run(Db::Sqlite, vec![], async |gateway| {
            let bench = SimBench { app: &gateway.app, gateway, mood: Mutex::new((Mood::Fine, 0)) };
            check(&bench).await;
        });
    }

    conforms!(on_a_sandbox);
}
