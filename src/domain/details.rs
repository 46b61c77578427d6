//! What suppliers say of a plan, made fit to be shown: visible texts of a sensible length, countries and technologies in
//! one form, each network once. What cannot be read is left out, as if it had not been said.

use super::country;
use super::plan::{Carrier, Details};
use super::text;

/// Longer sentences are cut.
const SENTENCE_CHARS: usize = 300;
const SPEED_CHARS: usize = 60;
const OPERATOR_CHARS: usize = 100;
const MOST_NETWORKS: usize = 500;
const MOST_EXITS: usize = 20;

impl Details {
    /// From a supplier's words.
    pub fn cleaned(self) -> Details {
        let said = |text: Option<String>, most| {
            text.map(|text| text::visible(&text, most)).filter(|text| !text.is_empty())
        };
        Details {
            fair_use: said(self.fair_use, SENTENCE_CHARS),
            networks: networks(self.networks),
            speed: said(self.speed, SPEED_CHARS),
            activation_policy: said(self.activation_policy, SENTENCE_CHARS),
            exit_country: self.exit_country.and_then(|text| exits(&text)),
            ..self
        }
    }

    /// The networks of each country, by its code.
    pub fn by_country(&self) -> impl Iterator<Item = (&str, &[Carrier])> {
        let same = |one: &Carrier, other: &Carrier| one.country == other.country;
        self.networks.chunk_by(same).map(|carriers| (carriers[0].country.as_str(), carriers))
    }
}

/// Each operator of a country once, by country; otherwise in the supplier's order.
fn networks(told: Vec<Carrier>) -> Vec<Carrier> {
    let mut networks: Vec<Carrier> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for carrier in told {
        let Some(country) = country_code(&carrier.country) else { continue };
        let operator = text::visible(&carrier.operator, OPERATOR_CHARS);
        if operator.is_empty() {
            continue;
        }
        let technologies =
            carrier.technologies.iter().flat_map(|text| technologies(text)).map(str::to_string);
        let place = *places.entry((country.clone(), operator.clone())).or_insert(networks.len());
        if place == networks.len() {
            if place == MOST_NETWORKS {
                break;
            }
            networks.push(Carrier { country, operator, technologies: Vec::new() });
        }
        networks[place].technologies.extend(technologies);
    }
    for carrier in &mut networks {
        carrier.technologies.sort();
        carrier.technologies.dedup();
    }
    networks.sort_by(|a, b| a.country.cmp(&b.country));
    networks
}

/// The code of a country that we know, in capitals.
fn country_code(text: &str) -> Option<String> {
    let code = text.trim().to_ascii_uppercase();
    country::by_code(&code).map(|country| country.code.to_string())
}

fn exits(text: &str) -> Option<String> {
    let mut codes: Vec<String> = Vec::new();
    for code in text.split(|c: char| !c.is_alphanumeric()).filter_map(country_code) {
        if !codes.contains(&code) && codes.len() < MOST_EXITS {
            codes.push(code);
        }
    }
    (!codes.is_empty()).then(|| codes.join(","))
}

/// The generations that a text such as `4G/LTE` or `5G NSA` names.
fn technologies(text: &str) -> impl Iterator<Item = &'static str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(|word| {
        match word.to_ascii_uppercase().as_str() {
            "2G" | "GSM" | "GPRS" | "EDGE" => Some("2G"),
            "3G" | "UMTS" | "WCDMA" | "HSPA" => Some("3G"),
            "4G" | "LTE" => Some("4G"),
            "5G" | "NR" => Some("5G"),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carrier(country: &str, operator: &str, technologies: &[&str]) -> Carrier {
        let technologies = technologies.iter().map(|text| text.to_string()).collect();
        Carrier { country: country.into(), operator: operator.into(), technologies }
    }

    #[test]
    fn networks_have_one_form() {
        let told = vec![
            carrier("kr", "SK Telecom", &["5g", "LTE"]),
            carrier("JP", "Soft\u{200b}Bank ", &["4G/LTE", "5G NSA", "warp"]),
            carrier("JP", "NTT Docomo", &[]),
            carrier(" jp", "SoftBank", &["3G"]),
            carrier("JPN", "Nobody", &["4G"]),
            carrier("JP", "\u{202e}", &["4G"]),
        ];
        let clean = vec![
            carrier("JP", "SoftBank", &["3G", "4G", "5G"]),
            carrier("JP", "NTT Docomo", &[]),
            carrier("KR", "SK Telecom", &["4G", "5G"]),
        ];
        let details = Details { networks: told, ..Details::default() }.cleaned();
        assert_eq!(details.networks, clean);
        let by_country: Vec<(&str, usize)> =
            details.by_country().map(|(country, carriers)| (country, carriers.len())).collect();
        assert_eq!(by_country, [("JP", 2), ("KR", 1)]);
        assert_eq!(details.clone().cleaned(), details, "what is clean stays as it is");
    }

    #[test]
    fn no_supplier_says_too_much() {
        let networks =
            (0..2_000).map(|number| carrier("JP", &format!("Network {number}"), &["4G"])).collect();
        let long = || Some("x".repeat(10_000));
        let details = Details {
            networks,
            fair_use: long(),
            speed: long(),
            activation_policy: long(),
            exit_country: Some(
                "HK,".repeat(1_000) + "AT BE CH DE DK ES FI FR GB IT NL NO PL PT SE JP KR US CA MX BR AR",
            ),
            ..Details::default()
        };
        let clean = details.cleaned();
        let lengths = [clean.fair_use, clean.speed, clean.activation_policy, clean.exit_country];
        assert_eq!(lengths.map(|text| text.map_or(0, |text| text.len())), [300, 60, 300, 59]);
        assert_eq!(clean.networks.len(), MOST_NETWORKS);
    }

    #[test]
    fn what_says_nothing_is_nothing() {
        let empty = || Some(" \u{feff}\n".to_string());
        let details = Details {
            fair_use: empty(),
            speed: empty(),
            activation_policy: empty(),
            exit_country: Some("nowhere, 12, ?".into()),
            ..Details::default()
        };
        assert_eq!(details.cleaned(), Details::default());
        let exits = Details { exit_country: Some("hk / SG,HK".into()), ..Details::default() }.cleaned();
        assert_eq!(exits.exit_country.as_deref(), Some("HK,SG"));
    }
}
