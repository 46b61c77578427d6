//! The price list: the same plans, prices and search as the API has, for everybody in the team.

use serde_json::Value;
use simgate::domain::role::Role;

use super::support::{OPEN, attributes, cells, member};
use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::visitor::Visitor;

/// The codes on a page, in its order.
fn codes(page: &Reply) -> Vec<String> {
    assert_eq!(page.status, 200, "{}", page.text);
    attributes(&page.text, "data-copy")
}

/// The plans that the API lists.
async fn listed(gateway: &Gateway, query: &str) -> Vec<Value> {
    let answer = gateway.get(&format!("/api/b2b/v1/plans?{query}")).await.expect(200);
    answer["plans"].as_array().unwrap().clone()
}

fn codes_of(plans: &[Value]) -> Vec<String> {
    plans.iter().map(|plan| plan["packageCode"].as_str().unwrap().to_string()).collect()
}

fn sorted(mut codes: Vec<String>) -> Vec<String> {
    codes.sort();
    codes
}

/// Every page of a search.
async fn leaf_through(visitor: &mut Visitor, path: &str) -> Vec<String> {
    let (mut all, mut path) = (Vec::new(), path.to_string());
    loop {
        let page = visitor.open(&path).await;
        all.extend(codes(&page));
        let Some((_, rest)) = page.text.split_once("rel=\"next\" href=\"") else { return all };
        path = super::support::plain(rest.split('"').next().unwrap());
    }
}

both_databases! {
    async fn the_search_is_the_apis(gateway) with [OPEN[0], OPEN[1]] {
        let mut viewer = member(gateway, Role::Viewer).await;
        for (page, api) in [
            ("", ""),
            ("?q=japan", "query=japan"),
            ("?q=japan+5&country=jp", "query=japan+5&country=JP"),
            ("?country=TR&type=TOPUP", "country=TR&type=TOPUP"),
            ("?q=&country=&data=&days=&type=BASE", ""),
        ] {
            let all = leaf_through(&mut viewer, &format!("/portal/plans{page}")).await;
            let expected = sorted(codes_of(&listed(gateway, api).await));
            assert!(all.len() > 1 && sorted(all.clone()) == expected, "{page}: {all:?} and not {expected:?}");
        }
        let page = viewer.open("/portal/plans?q=no-such-plan").await;
        assert!(codes(&page).is_empty() && page.text.contains("No plan fits") && page.text.contains("0 plans"), "{}", page.text);
        for wrong in ["country=ZZ", "country=Japan", "data=much", "days=-1", "type=ESIM", "page=0"] {
            let refused = viewer.open(&format!("/portal/plans?{wrong}")).await;
            assert!(refused.status == 400 && refused.text.contains("Please check"), "{wrong}: {}", refused.text);
        }
        // Nobody gets lost beyond the last page.
        let beyond = viewer.open("/portal/plans?country=JP&page=999999").await;
        assert!(!codes(&beyond).is_empty());
    }

    /// By the name that is read, then by size and time: on the page, and in the file.
    async fn plans_are_sorted_by_name(gateway) with [OPEN[0], OPEN[1]] {
        let mut viewer = member(gateway, Role::Viewer).await;
        let page = viewer.open("/portal/plans").await;
        let names: Vec<&str> = page.text.split("<td><strong>").skip(1).map(|row| row.split('<').next().unwrap()).collect();
        assert!(names.len() > 10 && names.is_sorted() && names[0] != names[names.len() - 1], "{names:?}");
        let file = cells(&viewer.open("/portal/plans.csv").await.text);
        let all = leaf_through(&mut viewer, "/portal/plans").await;
        assert_eq!(file[1..].iter().map(|line| line[0].clone()).collect::<Vec<_>>(), all);
        let japan: Vec<(f64, i64)> = file[1..]
            .iter()
            .filter(|line| line[3] == "JP")
            .map(|line| (line[4].parse().unwrap(), line[5].parse().unwrap()))
            .collect();
        assert!(japan.len() > 3 && japan.is_sorted_by(|one, next| one <= next), "{japan:?}");
        assert_ne!(all, codes_of(&listed(gateway, "").await), "the API sorts by coverage");
    }

    async fn size_and_time_are_filters(gateway) with [OPEN[0], OPEN[1]] {
        let mut viewer = member(gateway, Role::Viewer).await;
        let japan = listed(gateway, "country=JP").await;
        let wanted = |gb: Option<f64>, days: Option<i64>| {
            let fits = |plan: &&Value| {
                gb.is_none_or(|gb| plan["dataAmountGb"].as_f64() == Some(gb)) && days.is_none_or(|days| plan["durationDays"] == days)
            };
            codes_of(&japan.iter().filter(fits).cloned().collect::<Vec<_>>())
        };
        for (query, gb, days) in
            [("data=5120", Some(5.0), None), ("days=30", None, Some(30)), ("data=1024&days=7", Some(1.0), Some(7))]
        {
            let found = leaf_through(&mut viewer, &format!("/portal/plans?country=JP&{query}")).await;
            let expected = sorted(wanted(gb, days));
            assert!(!expected.is_empty() && expected.len() < japan.len());
            assert_eq!(sorted(found), expected, "{query}");
        }
        let page = viewer.open("/portal/plans?country=JP&data=5120&days=30").await;
        for chosen in ["value=\"JP\" selected>Japan", "value=\"5120\" selected>5 GB", "value=\"30\" selected>30 days"] {
            assert!(page.text.contains(chosen), "{chosen} in {}", page.text);
        }
        let none = viewer.open("/portal/plans?country=JP&data=7").await;
        assert!(none.text.contains("No plan fits") && none.text.contains("value=\"7\" selected"), "{}", none.text);
    }

    async fn who_may_order_is_led_on(gateway) with [OPEN[0], OPEN[1]] {
        let price = gateway.price("JP-1GB-7D").await.priced();
        for role in Role::ALL {
            let mut visitor = member(gateway, role).await;
            let page = visitor.open("/portal/plans?q=JP-1GB-7D").await;
            assert!(page.text.contains(&format!("<td class=\"number\">{price}</td>")), "{}", page.text);
            assert_eq!(page.text.contains("href=\"/portal/orders/new?plan=JP-1GB-7D\""), role.may(simgate::domain::role::Ability::Order), "{role:?}");
            let topups = visitor.open("/portal/plans?q=JP-1GB-7D&type=TOPUP").await;
            assert!(!codes(&topups).is_empty() && !topups.text.contains("/portal/orders/new"), "{}", topups.text);
        }
    }

    async fn the_file_has_all_that_was_found(gateway) with [OPEN[0], OPEN[1]] {
        let mut viewer = member(gateway, Role::Viewer).await;
        let page = viewer.open("/portal/plans?country=JP&q=gb").await;
        assert!(attributes(&page.text, "href").contains(&"/portal/plans.csv?q=gb&country=JP".to_string()), "{}", page.text);
        for (query, api) in [("", ""), ("?q=gb&country=JP", "country=JP&query=gb"), ("?type=TOPUP&country=JP", "type=TOPUP&country=JP")] {
            let file = viewer.open(&format!("/portal/plans.csv{query}")).await;
            assert_eq!((file.status, file.header("content-type")), (200, "text/csv; charset=utf-8"));
            assert_eq!(file.header("content-disposition"), "attachment; filename=\"plans.csv\"");
            assert_eq!(file.header("cache-control"), "no-store");
            let lines = cells(&file.text);
            assert_eq!(lines[0].join(","), "packageCode,planType,name,locationCodes,dataAmountGb,durationDays,priceUsd,operator");
            let expected = listed(gateway, api).await;
            assert_eq!(lines.len(), expected.len() + 1);
            for line in &lines[1..] {
                let plan = expected.iter().find(|plan| plan["packageCode"] == line[0]).unwrap();
                for (at, name) in [(1, "planType"), (2, "name")] {
                    assert_eq!(line[at], plan[name].as_str().unwrap());
                }
                assert_eq!(line[4].parse::<f64>().unwrap(), plan["dataAmountGb"].as_f64().unwrap());
                assert_eq!(line[5], plan["durationDays"].to_string());
                assert_eq!(line[6], plan["priceUsd"].to_string());
            }
        }
        let outside = Visitor::new(gateway).open("/portal/plans.csv").await;
        assert_eq!((outside.status, outside.header("location")), (303, "/portal"));
    }
}
