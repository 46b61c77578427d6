//! Many orders placed at once by hand: each is bought once, whoever dies, sends twice or works beside another; what cannot
//! be bought says why.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use futures_util::future::join_all;
use serde_json::json;
use simgate::app::App;
use simgate::domain::batch::{self, LineState, Listed, Prices};
use simgate::domain::client::Whereabouts;
use simgate::domain::email::Email;
use simgate::domain::ids::{AccountNo, BatchId, MemberId};
use simgate::domain::money::Usd;
use simgate::domain::order::OrderStatus;
use simgate::domain::refusal::Refusal;
use simgate::domain::role::Role as TeamRole;
use simgate::error::{Error, Result};
use simgate::ops::batches::{self, Progress, work};
use simgate::ops::team::Member;
use simgate::ops::{keys, operator};
use simgate::start::{self, Role};

use crate::support::database;
use crate::support::harness::{Gateway, Key, both_databases, open_orders};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";
const OTHER: &str = "JP-3GB-30D";
const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 1_440 * MINUTE_MS;

/// Somebody who may order for the company of this key.
fn member(gateway: &Gateway, key: &Key) -> Member {
    let home = Whereabouts::At(IpAddr::from([127, 0, 0, 1]));
    let caller = keys::authenticate(&gateway.app, &key.id, &key.secret, home).unwrap();
    let id = format!("mbr_ann{}", caller.account.0);
    let joined = format!(
        "INSERT INTO members (id, account, email, role, invited_at, invited_by, joined_at)
         VALUES ('{id}', {}, 'ann@example.com', 'DEVELOPER', 1, '', 1) ON CONFLICT DO NOTHING",
        caller.account.0
    );
    database::execute(&gateway.app.settings.database, &joined).unwrap();
    Member {
        id: MemberId::from_text(id),
        account: caller.account,
        email: Email::from_text("ann@example.com"),
        role: TeamRole::Developer,
        company: "Groups".into(),
        price_list: caller.price_list.clone(),
        low_balance: Usd::ZERO,
        balance: Usd::ZERO,
        suspended: false,
    }
}

fn own(gateway: &Gateway) -> Member {
    member(gateway, &gateway.key)
}

/// What the page would have shown.
fn shown(gateway: &Gateway, text: &str) -> Prices {
    batches::price(&gateway.app, "default", batch::read(text).unwrap()).unwrap().prices
}

async fn begin(app: &App, member: &Member, once: &str, text: &str, shown: Prices) -> Result<BatchId> {
    batches::begin(app, member, once, batch::read(text).unwrap(), shown).await
}

async fn place(gateway: &Gateway, member: &Member, once: &str, text: &str) -> Result<BatchId> {
    begin(&gateway.app, member, once, text, shown(gateway, text)).await
}

/// Takes a batch down on an instance that dies before it buys anything.
async fn leave(gateway: &Gateway, member: Member, text: &str) -> BatchId {
    let (settings, shown) = (gateway.app.settings.clone(), shown(gateway, text));
    database::on_plain_thread(move || {
        // Its tasks run only while something is waited for.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let app = runtime.block_on(start::open(settings, Role::Command)).unwrap();
        let id = runtime.block_on(begin(&app, &member, "left", text, shown)).unwrap();
        runtime.shutdown_background();
        app.store.close();
        id
    })
}

async fn show(gateway: &Gateway, account: AccountNo, id: &BatchId) -> Progress {
    batches::show(&gateway.app, account, id).await.unwrap()
}

/// Waits until every line has its answer; whoever died is taken over as time passes.
async fn ended(gateway: &Gateway, account: AccountNo, id: &BatchId) -> Progress {
    gateway
        .until("every line has its answer", async || {
            let progress = show(gateway, account, id).await;
            if progress.batch.waiting() > 0 {
                gateway.pass_time(MINUTE_MS);
            }
            (progress.batch.waiting() == 0).then_some(progress)
        })
        .await
}

/// How many lines are in which state; the counters must say the same.
fn tally(progress: &Progress) -> (i64, i64) {
    let count = |state| progress.lines.iter().filter(|listed| listed.line.state == state).count() as i64;
    let counted = (count(LineState::Done), count(LineState::Refused));
    assert_eq!((progress.batch.done, progress.batch.refused), counted);
    assert_eq!(progress.batch.lines, progress.lines.len() as i64);
    counted
}

fn orders(progress: &Progress) -> BTreeSet<String> {
    progress.lines.iter().filter_map(|listed| Some(listed.line.order.as_ref()?.to_string())).collect()
}

/// The orders that the supplier has sold.
fn sold(gateway: &Gateway) -> BTreeSet<String> {
    gateway.journalled("sold").into_iter().map(|line| line[1].clone()).collect()
}

fn why(listed: &Listed) -> &str {
    listed.line.why.as_deref().unwrap_or_default()
}

fn times(price: Usd, count: i64) -> Usd {
    Usd::from_micros(price.micros() * count)
}

async fn balance(gateway: &Gateway, key: &Key) -> String {
    let wallet = gateway.send_as(key, "GET", "/api/b2b/v1/balance", None).await.expect(200);
    wallet["balanceUsd"].to_string()
}

/// The mistakes of a batch that is refused as a whole.
fn mistakes<T>(outcome: Result<T>) -> Vec<String> {
    match outcome.map(drop).unwrap_err() {
        Error::Refused(Refusal::Invalid(fields)) => fields.iter().map(ToString::to_string).collect(),
        other => panic!("{other}"),
    }
}

both_databases! {
    async fn a_hundred_lines_are_bought_once_each(gateway) {
        let (_, key) = gateway.partner("Groups", Usd::dollars(10_000)).await;
        let (member, price) = (member(gateway, &key), gateway.price(PLAN).await);
        let account = member.account;
        let text = format!("Plan\tReference\tEmail\n60 x {PLAN}\tgroup\n39 x {PLAN}\n\n{PLAN}\tbooking-1\tann@example.com\n");
        let id = place(gateway, &member, "form-1", &text).await.unwrap();
        let progress = ended(gateway, account, &id).await;
        assert_eq!(tally(&progress), (100, 0));
        assert_eq!((progress.spent, progress.batch.total), (times(price, 100), times(price, 100)));
        assert_eq!((progress.batch.made_by.as_str(), &progress.batch.id), ("ann@example.com", &id));
        assert_eq!(orders(&progress).len(), 100);
        assert_eq!(sold(gateway), orders(&progress));
        assert_eq!(balance(gateway, &key).await, Usd::dollars(10_000).minus(times(price, 100)).to_string());
        for (n, reference) in [(1, "group-1"), (60, "group-60"), (100, "booking-1")] {
            let line = &progress.lines[n - 1];
            let path = format!("{ORDERS}?partnerRefId={reference}");
            let found = gateway.send_as(&key, "GET", &path, None).await.expect(200)["orders"].clone();
            assert_eq!(found[0]["id"], line.line.order.as_ref().unwrap().as_str(), "{reference}");
            assert_eq!(line.order.unwrap().status, OrderStatus::Fulfilled);
        }
        let path = format!("{ORDERS}/{}", progress.lines[60].line.order.as_ref().unwrap());
        let ungiven = gateway.send_as(&key, "GET", &path, None).await.expect(200);
        assert!(ungiven["order"]["partnerRefId"].is_null(), "{ungiven}");
        let latest = batches::latest(&gateway.app, account).await.unwrap();
        assert_eq!(latest.iter().map(|batch| (&batch.id, batch.done)).collect::<Vec<_>>(), [(&id, 100)]);

        // What is another's is not found.
        let other = own(gateway).account;
        let found = batches::show(&gateway.app, other, &id).await;
        assert!(matches!(found, Err(Error::Refused(Refusal::NotFound))));
        assert!(batches::latest(&gateway.app, other).await.unwrap().is_empty());
    }

    async fn a_form_makes_one_batch(gateway) {
        let (account, text) = (own(gateway).account, format!("3 x {PLAN}\n{OTHER}, booking-1"));
        let ann = own(gateway);
        let send = || place(gateway, &ann, "form-1", &text);
        let made: Vec<BatchId> = join_all((0..16).map(|_| send())).await.into_iter().map(Result::unwrap).collect();
        assert!(made.iter().all(|id| *id == made[0]), "{made:?}");
        let progress = ended(gateway, account, &made[0]).await;
        assert_eq!(send().await.unwrap(), made[0]);
        assert_eq!((tally(&progress), sold(gateway).len()), ((4, 0), 4));
        // It is no other list's form, and another account's is another form.
        let other = place(gateway, &own(gateway), "form-1", &format!("4 x {PLAN}")).await;
        assert!(mistakes(other)[0].starts_with("the list was sent before with other orders"));
        let (_, key) = gateway.partner("Another", Usd::dollars(100)).await;
        let another = member(gateway, &key);
        let theirs = place(gateway, &another, "form-1", PLAN).await.unwrap();
        assert_eq!(tally(&ended(gateway, another.account, &theirs).await), (1, 0));
        assert_eq!(batches::latest(&gateway.app, account).await.unwrap().len(), 1);
    }

    async fn whoever_may_not_order_any_more_buys_nothing_more(gateway) {
        for change in ["role = 'VIEWER'", "removed_at = 2"] {
            let (_, key) = gateway.partner("Groups", Usd::dollars(100)).await;
            let ann = member(gateway, &key);
            let before = gateway.send_as(&key, "POST", ORDERS, Some(json!({ "packageCode": PLAN, "partnerRefId": "booking-1" }))).await;
            before.expect(200);
            let (held, sales) = (balance(gateway, &key).await, sold(gateway));
            let account = ann.account;
            let id = leave(gateway, ann, &format!("{PLAN}, booking-1\n2 x {PLAN}")).await;
            let changed = format!("UPDATE members SET {change} WHERE account = {}", account.0);
            database::execute(&gateway.app.settings.database, &changed).unwrap();
            let progress = ended(gateway, account, &id).await;
            // What was bought before is found, and stays.
            assert_eq!(tally(&progress), (1, 2), "{change}");
            assert!(why(&progress.lines[1]).starts_with("Whoever placed it may not place orders any more"), "{}", why(&progress.lines[1]));
            assert_eq!((balance(gateway, &key).await, sold(gateway)), (held, sales));
        }
    }

    async fn a_team_places_so_many_lists_in_a_day(gateway) {
        let ann = own(gateway);
        let (account, at) = (ann.account.0, gateway.app.now().micros());
        let row = |n| format!("('adt_{n:03}', {at}, 'member:ann@example.com', 'order batch', 'bat_{n}', {account})");
        let rows = (0..200).map(row).collect::<Vec<_>>().join(", ");
        let deeds = format!("INSERT INTO audit (id, at, actor, command, detail, account) VALUES {rows}");
        database::execute(&gateway.app.settings.database, &deeds).unwrap();
        let refused = mistakes(place(gateway, &ann, "form-1", PLAN).await);
        assert!(refused[0].starts_with("the list must wait"), "{refused:?}");
        gateway.pass_time(DAY_MS + MINUTE_MS);
        let id = place(gateway, &ann, "form-1", PLAN).await.unwrap();
        assert_eq!(tally(&ended(gateway, ann.account, &id).await), (1, 0));
    }

    async fn whoever_dies_half_way_is_taken_over(gateway) {
        let (account, price) = (own(gateway).account, gateway.price(PLAN).await);
        let text = format!("10 x {PLAN}, group\n10 x {PLAN}");
        let prices = shown(gateway, &text);
        // Those that it asks for are sold, and it never hears of that.
        gateway.supplier("timeout").await;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (settings, member) = (gateway.app.settings.clone(), own(gateway));
        let dying = async move {
            let app = start::open(settings, Role::Command).await.unwrap();
            let id = begin(&app, &member, "form-1", &text, prices).await.unwrap();
            (app, id)
        };
        let (app, id) = runtime.spawn(dying).await.unwrap();
        gateway.until("some are sold", async || (sold(gateway).len() == 8).then_some(())).await;
        runtime.shutdown_background();
        database::on_plain_thread(|| app.store.close());
        assert_eq!((tally(&show(gateway, account, &id).await), open_orders(&gateway.app).await), ((0, 0), 8));

        gateway.supplier("ok").await;
        let progress = ended(gateway, account, &id).await;
        gateway.settle().await;
        assert_eq!((tally(&progress), progress.spent), ((20, 0), times(price, 20)));
        assert_eq!(orders(&progress).len(), 20);
        assert_eq!(sold(gateway), orders(&progress));
        assert_eq!(gateway.balance().await, Usd::dollars(1_000).minus(times(price, 20)).to_string());
    }

    async fn two_instances_at_once_buy_each_line_once(gateway) {
        let account = own(gateway).account;
        let text = format!("30 x {PLAN}, group\n30 x {PLAN}");
        let other = start::open(gateway.app.settings.clone(), Role::Command).await.unwrap();
        // To the other, every turn has long ended.
        other.clock.advance(10 * MINUTE_MS);
        let id = place(gateway, &own(gateway), "form-1", &text).await.unwrap();
        let progress = gateway
            .until("every line has its answer", async || {
                work::round(&other).await.unwrap();
                work::round(&gateway.app).await.unwrap();
                let progress = show(gateway, account, &id).await;
                (progress.batch.waiting() == 0).then_some(progress)
            })
            .await;
        other.tasks.close();
        other.tasks.wait().await;
        gateway.settle().await;
        assert_eq!(tally(&progress), (60, 0));
        assert_eq!(orders(&progress).len(), 60);
        assert_eq!(sold(gateway), orders(&progress));
        let spent = times(gateway.price(PLAN).await, 60);
        assert_eq!((progress.spent, gateway.balance().await), (spent, Usd::dollars(1_000).minus(spent).to_string()));
        database::on_plain_thread(|| other.store.close());
    }

    async fn lines_are_refused_when_the_money_has_run_out(gateway) {
        let price = gateway.price(PLAN).await;
        let (_, key) = gateway.partner("Poor", times(price, 5)).await;
        let member = member(gateway, &key);
        let account = member.account;
        let id = leave(gateway, member, &format!("5 x {PLAN}")).await;
        for _ in 0..3 {
            gateway.send_as(&key, "POST", ORDERS, Some(json!({ "packageCode": PLAN }))).await.expect(200);
        }
        let progress = ended(gateway, account, &id).await;
        assert_eq!((tally(&progress), progress.spent), ((2, 3), times(price, 2)));
        for listed in progress.lines.iter().filter(|listed| listed.line.state == LineState::Refused) {
            assert_eq!(why(listed), format!("The wallet holds 0 USD and this costs {price} USD."));
            assert!(listed.line.order.is_none());
        }
        assert_eq!((sold(gateway).len(), balance(gateway, &key).await), (5, "0".into()));
    }

    async fn nobody_pays_more_than_was_shown(gateway) {
        let account = own(gateway).account;
        let text = format!("{PLAN}, dear\n{OTHER}, same");
        let before = shown(gateway, &text);
        let id = leave(gateway, own(gateway), &text).await;
        let rise = format!("UPDATE prices SET price = 97654321 WHERE code = '{PLAN}'; UPDATE versions SET n = n + 1 WHERE name = 'catalog'");
        database::execute(&gateway.app.settings.database, &rise).unwrap();
        let progress = ended(gateway, account, &id).await;
        assert_eq!(tally(&progress), (1, 1));
        assert_eq!(why(&progress.lines[0]), "It costs 97.654321 USD now, more than was shown.");
        assert_eq!(progress.spent, before.of(OTHER).unwrap());
        // Nor is a list taken down whose prices have risen since, or were never shown.
        let again = begin(&gateway.app, &own(gateway), "form-2", &text, before.clone()).await;
        let told = mistakes(again);
        let was = before.of(PLAN).unwrap().priced();
        assert_eq!(told, [format!("line 1 costs 97.654321 USD now, not the {was} USD that were shown; look at the prices again")]);
        let unseen = begin(&gateway.app, &own(gateway), "form-2", OTHER, Prices::default()).await;
        assert!(mistakes(unseen)[0].contains("whose price was not shown"));
        assert_eq!(batches::latest(&gateway.app, account).await.unwrap().len(), 1);
    }

    async fn a_reference_that_was_used_before_buys_nothing_new(gateway) {
        let account = own(gateway).account;
        let taken = gateway.delivered(json!({ "packageCode": OTHER, "partnerRefId": "taken" })).await;
        let same = gateway.delivered(json!({ "packageCode": PLAN, "partnerRefId": "same" })).await;
        let text = format!("{PLAN}, taken\n{PLAN}, same\n{PLAN}, new");
        let id = place(gateway, &own(gateway), "form-1", &text).await.unwrap();
        let progress = ended(gateway, account, &id).await;
        assert_eq!((tally(&progress), progress.spent), ((2, 1), gateway.price(PLAN).await));
        let [other, before, new] = &progress.lines[..] else { panic!() };
        assert_eq!(why(other), format!("This reference was used before for something else, {}.", taken["id"].as_str().unwrap()));
        assert_eq!(before.line.order.as_ref().unwrap().as_str(), same["id"].as_str().unwrap());
        assert!(before.line.was_bought_before() && !new.line.was_bought_before());
        assert_eq!(sold(gateway).len(), 3);
    }

    async fn who_is_suspended_buys_nothing_more(gateway) {
        let account = own(gateway).account;
        let id = leave(gateway, own(gateway), &format!("3 x {PLAN}")).await;
        operator::set_suspended(&gateway.app, "test", &gateway.partner, true).await.unwrap();
        let progress = ended(gateway, account, &id).await;
        assert_eq!(tally(&progress), (0, 3));
        assert!(why(&progress.lines[2]).contains("suspended"), "{}", why(&progress.lines[2]));
        let refused = place(gateway, &own(gateway), "form-2", PLAN).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::AccountSuspended))));
        assert!(sold(gateway).is_empty());
    }

    async fn a_list_is_taken_down_whole_or_not_at_all(gateway) {
        let account = own(gateway).account;
        let priced = |text: &str| batches::price(&gateway.app, "default", batch::read(text).unwrap());
        let wrong = mistakes(priced(&format!("{PLAN}\n2 x XX-1\n{PLAN}-TOPUP")));
        assert_eq!(
            wrong,
            [
                "line 2 names XX-1, and no plan with this code is on sale".to_string(),
                format!("line 3 names {PLAN}-TOPUP, which adds data to an eSIM and is no eSIM by itself"),
            ]
        );
        // The write finds the same, whatever was shown.
        let all: Prices = ["XX-1".to_string(), format!("{PLAN}-TOPUP"), PLAN.into()].into_iter().map(|code| (code, Usd::dollars(90))).collect();
        let text = format!("{PLAN}\n2 x XX-1\n{PLAN}-TOPUP");
        assert_eq!(mistakes(begin(&gateway.app, &own(gateway), "form-1", &text, all).await), wrong);

        let quote = priced(&format!("2 x {PLAN}, b\n{OTHER}")).unwrap();
        let names: BTreeMap<&str, usize> = quote.lines.iter().map(|line| (line.plan_name.as_str(), line.wanted.row)).collect();
        assert_eq!((quote.lines.len(), names.len()), (3, 2));
        assert_eq!(quote.total, times(gateway.price(PLAN).await, 2).plus(gateway.price(OTHER).await));

        let (_, key) = gateway.partner("Poor", quote.total.minus(Usd::from_micros(1))).await;
        let poor = place(gateway, &member(gateway, &key), "form-1", &format!("2 x {PLAN}\n{OTHER}")).await;
        match poor {
            Err(Error::Refused(Refusal::InsufficientBalance { balance, required })) => {
                assert_eq!((balance.plus(Usd::from_micros(1)), required), (quote.total, quote.total));
            }
            other => panic!("{:?}", other.map_err(|error| error.to_string())),
        }
        for account in [account, member(gateway, &key).account] {
            assert!(batches::latest(&gateway.app, account).await.unwrap().is_empty());
        }
        assert!(sold(gateway).is_empty());
    }

    async fn a_line_is_done_when_its_order_exists(gateway) with [("answer_within_ms", "100")] {
        let account = own(gateway).account;
        gateway.supplier("timeout").await;
        let id = place(gateway, &own(gateway), "form-1", &format!("2 x {PLAN}")).await.unwrap();
        let open = gateway
            .until("both orders exist", async || {
                let progress = show(gateway, account, &id).await;
                (progress.batch.waiting() == 0).then_some(progress)
            })
            .await;
        assert_eq!(tally(&open), (2, 0));
        assert!(open.lines.iter().all(|listed| listed.order.unwrap().status == OrderStatus::Provisioning));
        gateway.settle().await;
        let done = show(gateway, account, &id).await;
        assert!(done.lines.iter().all(|listed| listed.order.unwrap().status == OrderStatus::Fulfilled));

        // What the supplier refuses costs nothing.
        gateway.supplier("reject").await;
        let id = place(gateway, &own(gateway), "form-2", PLAN).await.unwrap();
        let refused = ended(gateway, account, &id).await;
        let line = &refused.lines[0];
        assert_eq!(refused.spent, Usd::ZERO);
        match line.line.state {
            LineState::Refused => assert!(why(line).contains("The supplier refused this order"), "{}", why(line)),
            // It took longer than anybody waits.
            LineState::Done => assert_eq!(line.order.unwrap().status, OrderStatus::Failed),
            LineState::Waiting => panic!(),
        }
    }

    /// Days later nobody wants it any more; but an order that exists is told.
    async fn what_cannot_be_bought_for_a_day_is_refused(gateway) {
        let account = own(gateway).account;
        let id = leave(gateway, own(gateway), &format!("{PLAN}, bought\n{PLAN}, waiting")).await;
        let bought = gateway.delivered(json!({ "packageCode": PLAN, "partnerRefId": "bought" })).await;
        let location = &gateway.app.settings.database;
        let days_ago = gateway.app.now().plus_millis(-2 * DAY_MS).micros();
        database::execute(location, &format!("UPDATE order_batches SET made_at = {days_ago}")).unwrap();
        let progress = ended(gateway, account, &id).await;
        assert_eq!(tally(&progress), (1, 1));
        assert_eq!(progress.lines[0].line.order.as_ref().unwrap().as_str(), bought["id"].as_str().unwrap());
        assert_eq!(why(&progress.lines[1]), "It could not be bought within a day; nothing was charged.");
        assert_eq!(sold(gateway).len(), 1);
    }

    async fn lists_are_forgotten_and_orders_stay(gateway) {
        let account = own(gateway).account;
        let id = place(gateway, &own(gateway), "form-1", &format!("2 x {PLAN}, b, ann@example.com")).await.unwrap();
        let order = orders(&ended(gateway, account, &id).await).pop_first().unwrap();
        gateway.pass_time(89 * DAY_MS);
        show(gateway, account, &id).await;
        let rows = |table: &str| {
            let sql = format!("SELECT CAST(COUNT(*) AS TEXT) FROM {table}");
            database::rows(&gateway.app.settings.database, &sql)[0][0].clone()
        };
        gateway
            .until("it is forgotten", async || {
                gateway.pass_time(DAY_MS);
                (rows("order_batches") == "0").then_some(())
            })
            .await;
        assert_eq!(rows("order_batch_lines"), "0");
        gateway.get(&format!("{ORDERS}/{order}")).await.expect(200);
    }
}
