//! What a coverage of several countries is called in price rules. The word follows from the countries alone, so that it is
//! the same whoever sells the plan, and the operator knows it beforehand: the region or the continent that most of the
//! countries are in, `ASIA-EUROPE` for two continents, `GLOBAL` for four.

use std::collections::BTreeMap;

use crate::domain::country::{self, GLOBAL_CONTINENTS, Region};

/// No country that we know is in it.
const NOWHERE: &str = "OTHER";

pub fn word(countries: &[String]) -> String {
    let regions: Vec<Region> =
        countries.iter().filter_map(|code| country::by_code(code)).map(|country| country.region).collect();
    let (all, continents) = (regions.len(), counted(&regions, Region::continent));
    if all == 0 {
        return NOWHERE.into();
    }
    if continents.len() >= GLOBAL_CONTINENTS {
        return "GLOBAL".into();
    }
    // A fifth of the countries may lie elsewhere: Europe with Morocco is Europe.
    let most = |count: usize| count * 5 >= all * 4;
    if let Some((region, _)) = counted(&regions, Region::word).into_iter().find(|(_, count)| most(*count)) {
        return region.into();
    }
    let weighty = continents.into_iter().filter(|(_, count)| count * 5 > all);
    weighty.map(|(continent, _)| continent).collect::<Vec<&str>>().join("-")
}

fn counted(regions: &[Region], word: impl Fn(Region) -> &'static str) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for region in regions {
        *counts.entry(word(*region)).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_countries_decide() {
        for (countries, expected) in [
            ("CA US", "NORTH-AMERICA"),
            ("DE FR GR IT ES PT NL BE MA", "EUROPE"),
            ("CN HK JP KR MO TW", "EAST-ASIA"),
            ("CN JP KR ID MY SG TH VN IN AU", "ASIA"),
            ("JP AU NZ", "ASIA-OCEANIA"),
            ("BR CL JM MX", "AMERICAS"),
            ("AE EG MA SA TN TR", "AFRICA-ASIA"),
            ("JP DE US ZA", "GLOBAL"),
            ("XX", "OTHER"),
            ("", "OTHER"),
        ] {
            let codes: Vec<String> = countries.split_whitespace().map(str::to_string).collect();
            assert_eq!(word(&codes), expected, "{countries}");
        }
    }

    #[test]
    fn every_coverage_has_one_word() {
        let all: Vec<String> = country::ALL.iter().map(|country| country.code.to_string()).collect();
        for from in 0..all.len() {
            for size in 2..20 {
                let some: Vec<String> = all.iter().skip(from).step_by(7).take(size).cloned().collect();
                let found = word(&some);
                assert!(
                    !found.is_empty() && found.bytes().all(|b| b.is_ascii_uppercase() || b == b'-'),
                    "{some:?}"
                );
            }
        }
    }
}
