//! `kill -9` while checkouts are paid, seen, settled, provisioned and answered: every payment that counts is one
//! eSIM, none is sold twice, and the books agree with the chain.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::buying::{CHECKOUT, PLAN};
use crate::support::harness::{Db, each_database, read_journal};
use crate::support::persistent_agents::Agents;
use crate::support::process::on_site;

const NETWORKS: [&str; 3] = ["POLYGON", "ARBITRUM", "TRON"];
const KILLS: usize = 8;
const CLIENTS: usize = 4;
/// Short times, so that recovery comes soon.
const SETTINGS: &[(&str, &str)] =
    &[("answer_within_ms", "400"), ("supplier_timeout_ms", "500"), ("token_daily_limit_usd", "0")];

/// Buys one plan after the other. The key makes a checkout whose answer was lost the same one.
async fn buy(agents: &Agents<'_>, client: usize, token: &str) {
    let mut number = 0;
    while !agents.closing() {
        number += 1;
        let network = NETWORKS[(client + number) % NETWORKS.len()];
        let wish =
            json!({ "packageCode": PLAN, "preferredNetwork": network, "key": format!("wish-{number}") });
        let asked = agents.ask(Some(token), "POST", CHECKOUT, Some(&wish), &[402]).await;
        let done = agents.pay(&asked).await;
        agents.bought.lock().unwrap().push(done);
    }
}

fn check(db: Db) {
    on_site(db, SETTINGS.to_vec(), async |site| {
        let agents = Agents::new(site);
        agents.through_kills(CLIENTS, KILLS, async |client, token| buy(&agents, client, token).await).await;
        let bought = agents.bought.lock().unwrap();
        let orders: BTreeSet<&str> =
            bought.iter().map(|record| record["orderId"].as_str().unwrap()).collect();
        let esims: BTreeSet<&str> =
            bought.iter().map(|record| record["esim"]["iccid"].as_str().unwrap()).collect();
        assert_eq!((orders.len(), esims.len()), (bought.len(), bought.len()), "each has an eSIM of its own");
        let sold: BTreeSet<Vec<String>> = read_journal(&site.place.dir).into_iter().collect();
        assert_eq!(sold.len(), bought.len(), "the supplier sold what was bought, and nothing else");
    });
}

each_database!(check);
