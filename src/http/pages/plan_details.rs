//! What is known of a plan, for people. The words are the supplier's, so they are shown as text and never as anything else.

use super::moment::days;
use crate::domain::country;
use crate::domain::plan::{Carrier, Details, Plan, VolumeKind};
use crate::http::kit::wire::gigabytes;

/// A plan as visitors compare it with others, and as they see it when they buy it.
pub struct PlanCard<'a> {
    pub plan: &'a Plan,
    /// The country of a plan for one; two letters stand in place of its flag.
    pub flag: Option<&'a str>,
    /// Where it works.
    pub headline: &'a str,
    /// How much data, and for how long.
    pub size: String,
}

impl<'a> PlanCard<'a> {
    pub fn of(plan: &'a Plan) -> PlanCard<'a> {
        let flag = match plan.countries.as_slice() {
            [country] => Some(country.as_str()),
            _ => None,
        };
        PlanCard {
            plan,
            flag,
            headline: headline(plan),
            size: format!("{} GB · {}", gigabytes(plan.data_mb), days(plan.duration_days)),
        }
    }
}

/// Where a plan works, in the words under which people look for it.
pub fn headline(plan: &Plan) -> &str {
    match plan.countries.as_slice() {
        [country] => country::name_of(country),
        _ => place(&plan.name),
    }
}

/// A name without the size that follows: the card says it.
fn place(name: &str) -> &str {
    let begins = |at: &usize| name[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let size = name.match_indices(' ').map(|(at, _)| at).find(begins);
    size.filter(|at| *at > 0).map_or(name, |at| &name[..at])
}

/// The countries of a plan: so many by name, and how many more there are.
pub fn countries(plan: &Plan, most: usize) -> String {
    let named: Vec<&str> = plan.countries.iter().take(most).map(|code| country::name_of(code)).collect();
    match plan.countries.len() - named.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

pub struct PlanDetails {
    /// In one line.
    pub networks: String,
    /// Of a plan for several countries.
    pub by_country: Vec<(String, String)>,
    /// What the supplier has said, by its name.
    pub facts: Vec<(&'static str, String)>,
}

impl PlanDetails {
    pub fn of(plan: &Plan) -> PlanDetails {
        let details = &plan.details;
        let mut by_country: Vec<(String, String)> = details
            .by_country()
            .map(|(code, carriers)| (country::name_of(code).to_string(), listed(carriers)))
            .collect();
        let networks = match (by_country.len(), plan.countries.len()) {
            (1, 1) => by_country.remove(0).1,
            _ => plan.operator.clone(),
        };
        PlanDetails { networks, by_country, facts: facts(details) }
    }
}

/// `NTT Docomo (4G, 5G), SoftBank (4G)`.
fn listed(carriers: &[Carrier]) -> String {
    let name = |carrier: &Carrier| match carrier.technologies.as_slice() {
        [] => carrier.operator.clone(),
        technologies => format!("{} ({})", carrier.operator, technologies.join(", ")),
    };
    carriers.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn facts(details: &Details) -> Vec<(&'static str, String)> {
    let kind = details.kind.and_then(|kind| match kind {
        VolumeKind::Fixed => None,
        VolumeKind::DayPass => Some("The data is for each day".to_string()),
        VolumeKind::Unlimited => Some("Unlimited data".to_string()),
    });
    let either = |is: Option<bool>, yes: &str, no: &str| is.map(|is| if is { yes } else { no }.to_string());
    let exits = details
        .exit_country
        .as_ref()
        .map(|codes| codes.split(',').map(country::name_of).collect::<Vec<_>>().join(", "));
    let facts = [
        ("Kind", kind),
        ("Fair use", details.fair_use.clone()),
        ("Speed", details.speed.clone()),
        ("Start", details.activation_policy.clone()),
        (
            "Hotspot",
            either(
                details.hotspot,
                "Can be shared with other devices",
                "Cannot be shared with other devices",
            ),
        ),
        ("More data", either(details.top_up, "Can be added later", "Cannot be added later")),
        ("Internet access", exits.map(|places| format!("Through {places}"))),
        ("Identity check", either(details.kyc_required, "Needed before the eSIM works", "Not needed")),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_size() {
        for (name, expected) in [
            ("Europe 5 GB 30 days", "Europe"),
            ("Asia (7 areas) 1GB 7Days", "Asia (7 areas)"),
            ("Global Lite", "Global Lite"),
            (" 5 GB", " 5 GB"),
            ("5 GB", "5 GB"),
            ("", ""),
        ] {
            assert_eq!(place(name), expected);
        }
    }
}
