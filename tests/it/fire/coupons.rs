//! Everybody wants the same coupon at the same moment, from one gateway or several, and gateways are killed while they
//! answer: no use is given twice, and none is lost.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::coupon::Coupon;
use simgate::domain::money::Usd;
use simgate::domain::refusal::Refusal;
use simgate::error::Error;
use simgate::ops::checkout::{self, NewCheckout};
use simgate::ops::tokens;
use simgate::start::{self, Role};

use crate::support::buying::{CHECKOUT, MINUTE_MS, ask, balance, fund, settle};
use crate::support::coupons::{DEAR, limited, make, off, plain, plan, tally};
use crate::support::database;
use crate::support::harness::{Db, Gateway, both_databases};
use crate::support::logins::{elsewhere, sign_in};
use crate::support::persistent_agents::{Agents, email};
use crate::support::process::on_site;

const USERS: usize = 100;
const USES: usize = 10;
const CODE: &str = "RUSH";

/// So many people, each with a token.
async fn crowd(gateway: &Gateway, count: usize) -> Vec<String> {
    let mut tokens = Vec::with_capacity(count);
    for n in 0..count {
        tokens.push(sign_in(gateway, &format!("user{n}@example.com"), "agent").await);
    }
    tokens
}

/// Everybody asks at once. Those who got it, and the answers that they got.
async fn rush<'a>(
    gateway: &Gateway,
    tokens: &'a [String],
    body: &Value,
    status: u16,
) -> Vec<(&'a str, Value)> {
    let heard = join_all(tokens.iter().map(|token| ask(gateway, token, body))).await;
    let mut got = Vec::new();
    for (token, reply) in tokens.iter().zip(&heard) {
        if reply.status == status {
            got.push((token.as_str(), reply.json()));
        } else {
            assert_eq!(reply.problem(422), "COUPON_INVALID");
        }
    }
    got
}

both_databases! {
    async fn a_hundred_users_race_for_ten_uses(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        limited(gateway, CODE, USES as i64).await;
        let tokens = crowd(gateway, USERS).await;
        let body = json!({ "packageCode": DEAR, "discountCode": CODE });
        let got = rush(gateway, &tokens, &body, 402).await;
        assert_eq!(got.len(), USES);
        assert!(got.iter().all(|(_, asked)| off(asked).is_positive()));
        assert_eq!(tally(gateway, CODE).await, (USES as i64, 0));
        // Three pay. What the others give back can be had again, and no more than that.
        for (_, asked) in &got[..3] {
            settle(gateway, asked, "COMPLETED").await;
        }
        assert_eq!(tally(gateway, CODE).await, (7, 3));
        gateway.pass_time(31 * MINUTE_MS);
        gateway.until("the others have expired", async || (tally(gateway, CODE).await == (0, 3)).then_some(())).await;
        assert_eq!(rush(gateway, &tokens, &body, 402).await.len(), USES - 3);
        assert_eq!(tally(gateway, CODE).await, (7, 3));
    }

    async fn a_hundred_wallets_race_for_ten_uses(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        limited(gateway, CODE, USES as i64).await;
        let tokens = crowd(gateway, USERS).await;
        for n in 0..USERS {
            fund(gateway, &format!("user{n}@example.com"), Usd::dollars(50)).await;
        }
        let body = json!({ "packageCode": DEAR, "discountCode": CODE, "payWith": "wallet" });
        let got = rush(gateway, &tokens, &body, 200).await;
        assert_eq!(got.len(), USES);
        assert_eq!(tally(gateway, CODE).await, (0, USES as i64));
        let retail = plan(gateway, DEAR).retail;
        for token in &tokens {
            let bought = got.iter().find(|(winner, _)| *winner == token.as_str());
            let paid = bought.map_or(Usd::ZERO, |(_, bought)| retail.minus(off(bought)));
            assert_eq!(balance(gateway, token).await, Usd::dollars(50).minus(paid));
        }
        assert_eq!(gateway.journalled("sold").len(), USES);
    }

    async fn one_user_in_many_places_has_one(gateway) {
        make(gateway, Coupon { uses_per_user: Some(1), ..plain(gateway, CODE, 10) }).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let bodies: Vec<Value> = (0..16)
            .map(|n| match n % 2 {
                0 => json!({ "packageCode": DEAR, "discountCode": CODE }),
                _ => json!({ "packageCode": DEAR, "discountCode": CODE, "payWith": "wallet" }),
            })
            .collect();
        let heard = join_all(bodies.iter().map(|body| ask(gateway, &token, body))).await;
        let got = heard.iter().filter(|reply| reply.status == 402 || reply.status == 200).count();
        assert_eq!((got, heard.iter().filter(|reply| reply.status == 422).count()), (1, 15));
        let (reserved, spent) = tally(gateway, CODE).await;
        assert_eq!(reserved + spent, 1);
    }

    /// Another process on the same database takes its turn under the same lock.
    async fn two_instances_give_out_ten_uses(gateway) with [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")] {
        limited(gateway, CODE, USES as i64).await;
        let tokens = crowd(gateway, 40).await;
        let other = start::open(gateway.app.settings.clone(), Role::Command).await.unwrap();
        let asked = join_all(tokens.iter().enumerate().map(async |(n, token)| {
            let app = if n % 2 == 0 { &gateway.app } else { &other };
            let (currency, network) = checkout::pairs(app)[n % 3];
            let new = NewCheckout {
                buyer: tokens::authenticate(app, token).await.unwrap().buyer(),
                package_code: DEAR.into(),
                esim_order: None,
                network,
                currency,
                customer_email: None,
                discount_code: Some(CODE.into()),
                reference: None,
                client: elsewhere().parse().unwrap(),
                max_price: None,
                is_offer: false,
            };
            checkout::open(app, new).await
        })).await;
        let got = asked.iter().filter(|opened| opened.is_ok()).count();
        let refused = asked.iter().filter(|opened| matches!(opened, Err(Error::Refused(Refusal::CouponInvalid)))).count();
        assert_eq!((got, refused), (USES, 30));
        assert_eq!(tally(gateway, CODE).await, (USES as i64, 0));
        database::on_plain_thread(|| other.store.close());
    }
}

const KILLS: usize = 6;
const CLIENTS: usize = 4;
/// Short times, so that recovery comes soon.
const SETTINGS: &[(&str, &str)] =
    &[("answer_within_ms", "400"), ("supplier_timeout_ms", "500"), ("token_daily_limit_usd", "0")];

/// Buys one plan after the other: on a chain, not paying at all, and from the wallet. Of two uses that an account may
/// hold at a time, one is left for what it pays for.
async fn buy(agents: &Agents<'_>, client: usize, token: &str) {
    let credit = ["wallet", "credit", &email(client), "10000", "--reason", "for the test"];
    agents.site.cli(&credit).await;
    let mut number = 0;
    while !agents.closing() {
        number += 1;
        let mut wish = json!({ "packageCode": DEAR, "discountCode": CODE, "key": format!("wish-{number}") });
        let done = match number % 3 {
            0 => {
                wish["payWith"] = json!("wallet");
                agents.ask(Some(token), "POST", CHECKOUT, Some(&wish), &[200]).await
            }
            1 => {
                let asked = agents.ask(Some(token), "POST", CHECKOUT, Some(&wish), &[402]).await;
                agents.pay(&asked).await
            }
            _ => {
                if number > 2 {
                    wish.as_object_mut().unwrap().remove("discountCode");
                }
                agents.ask(Some(token), "POST", CHECKOUT, Some(&wish), &[402]).await;
                continue;
            }
        };
        agents.bought.lock().unwrap().push(done);
    }
}

fn check(db: Db) {
    on_site(db, SETTINGS.to_vec(), async |site| {
        let first_start = site.start().await;
        site.cli(&["coupon", "create", "--code", CODE, "--percent", "10", "--uses", "100000"]).await;
        drop(first_start);
        let agents = Agents::new(site);
        agents.through_kills(CLIENTS, KILLS, async |client, token| buy(&agents, client, token).await).await;
        let bought = std::mem::take(&mut *agents.bought.lock().unwrap());
        assert!(bought.iter().all(|record| off(record).is_positive()));
        let orders: BTreeSet<&str> =
            bought.iter().map(|record| record["orderId"].as_str().unwrap()).collect();
        let listed = site.cli(&["coupon", "list"]).await;
        assert_eq!(listed["coupons"][0]["spent"], orders.len(), "each purchase has spent one use");
    });
}

#[test]
fn killed_in_between_sqlite() {
    check(Db::Sqlite);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn killed_in_between_postgres() {
    check(Db::Postgres);
}
