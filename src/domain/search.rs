//! Reads a search as people and models write it: `cheap esim for Spain, 10GB, 30 days, under $20`. Words that are not a
//! place, size, time or price are ignored. `text`, `amounts` and `places` read the text with the vocabulary of `groups`
//! and `names`; `rank` says which plans answer, and in which order; `near` proposes places where none was read.

mod amounts;
mod groups;
mod names;
mod near;
mod places;
mod rank;
mod text;

pub use self::amounts::UNLIMITED_MB;
pub use self::near::near;
pub use self::places::Place;
pub use self::rank::{Coverage, Fit, Wanted, cheapness, nearness};

use super::country::{self, Country};
use super::money::Usd;

/// What a text asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// In the order of the text, each once.
    pub places: Vec<Place>,
    pub data_mb: Option<i64>,
    pub days: Option<i64>,
    /// The highest acceptable price.
    pub most: Option<Usd>,
    /// Whether to sort by the lowest price instead of the cheapest gigabyte.
    pub cheapest: bool,
}

/// Popular destinations, for a search that names none; the most popular first.
#[rustfmt::skip]
pub const POPULAR: &[&str] = &[
    "Europe", "United States", "Japan", "Thailand", "United Kingdom", "Turkey", "World", "Spain", "Italy", "France",
    "Asia", "South Korea", "China", "Indonesia", "Vietnam", "Germany", "Greece", "Mexico", "Singapore", "Malaysia",
    "United Arab Emirates", "Australia", "Canada", "India", "Egypt", "Morocco", "Brazil", "Switzerland", "Portugal",
    "Netherlands", "Southeast Asia", "Latin America", "Middle East", "Africa", "Caribbean", "Hong Kong", "Taiwan",
    "Saudi Arabia", "Israel", "South Africa", "New Zealand",
];

pub fn read(text: &str) -> Asked {
    let tokens = text::tokens(text);
    let mut used = vec![false; tokens.len()];
    let amounts = amounts::read(&tokens, &mut used);
    Asked { places: places::read(&tokens, &mut used), ..amounts }
}

/// The country that a word names, if it names one and no other place.
pub fn country_named(word: &str) -> Option<&'static Country> {
    match read(word).places[..] {
        [Place::Country(country)] => Some(country),
        _ => None,
    }
}

/// The code of a country that exists, in capitals, or what is wrong with the text.
pub fn country_code(text: &str) -> Result<String, String> {
    if text.len() != 2 || !text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Err("must be a two-letter country code".into());
    }
    let code = text.to_ascii_uppercase();
    if country::exists(&code) {
        return Ok(code);
    }
    let meant = country_named(&code)
        .map_or(String::new(), |meant| format!("; did you mean {} ({})?", meant.code, meant.name));
    Err(format!("is {code}, the code of no country{meant}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(examples: &[(&str, &str)]) {
        for (text, places) in examples {
            let read = read(text);
            let codes: Vec<&str> = read
                .places
                .iter()
                .map(|place| match place {
                    Place::Country(country) => country.code,
                    other => other.name(),
                })
                .collect();
            assert_eq!(codes.join("+"), *places, "{text}");
        }
    }

    #[test]
    fn names_codes_and_aliases() {
        check(&[
            ("Japan", "JP"),
            ("jp", "JP"),
            ("JPN", "JP"),
            ("UK", "GB"),
            ("u.k.", "GB"),
            ("Holland", "NL"),
            ("UAE", "AE"),
            ("Ivory Coast", "CI"),
            ("Côte d'Ivoire", "CI"),
            ("cote d ivoire", "CI"),
            ("South Korea", "KR"),
            ("south-korea", "KR"),
            ("southkorea", "KR"),
            ("Korea", "KR"),
            ("USA", "US"),
            ("U.S.", "US"),
            ("United States of America", "US"),
            ("türkiye", "TR"),
            ("TURKEY", "TR"),
            ("España", "ES"),
            ("Việt Nam", "VN"),
            ("St. Lucia", "LC"),
            ("Saint Lucia", "LC"),
            ("Trinidad & Tobago", "TT"),
            ("Bosnia and Herzegovina", "BA"),
            ("Guinea-Bissau", "GW"),
            ("Papua New Guinea", "PG"),
            ("Guinea", "GN"),
            ("DR Congo", "CD"),
            ("Hong Kong", "HK"),
            ("Dominican Republic", "DO"),
            ("Dominica", "DM"),
            ("Northern Ireland", "GB"),
            ("bali", "ID"),
            ("German sim", "DE"),
            ("Estados Unidos", "US"),
            ("日本", "JP"),
        ]);
    }

    #[test]
    fn regions_and_groups() {
        check(&[
            ("Europe", "Europe"),
            ("europe 10gb 30 days", "Europe"),
            ("EU", "European Union"),
            ("Southeast Asia", "Southeast Asia"),
            ("south east asia", "Southeast Asia"),
            ("SE Asia", "Southeast Asia"),
            ("Balkans", "Balkans"),
            ("the balkan countries", "Balkans"),
            ("GCC", "GCC"),
            ("gulf states", "GCC"),
            ("Scandinavia", "Scandinavia"),
            ("Nordics", "Nordics"),
            ("Benelux", "Benelux"),
            ("Baltics", "Baltics"),
            ("Schengen area", "Schengen"),
            ("Latin America", "Latin America"),
            ("LATAM", "Latin America"),
            ("Caribbean", "Caribbean"),
            ("Middle East", "Middle East"),
            ("North Africa", "North Africa"),
            ("Central Asia", "Central Asia"),
            ("South America", "South America"),
            ("america", "US"),
            ("global", "World"),
            ("Worldwide", "World"),
            ("around the world", "World"),
            ("international esim", "World"),
            ("the best esim in the world for Japan", "JP"),
            ("North Korea", "Unsold"),
        ]);
    }

    #[test]
    fn several_places() {
        check(&[
            ("Japan and Korea", "JP+KR"),
            ("japan, south korea & taiwan", "JP+KR+TW"),
            ("jp kr", "JP+KR"),
            ("us, ca", "US+CA"),
            ("us and canada", "US+CA"),
            ("esim for us and canada", "US+CA"),
            ("it/fr/de", "IT+FR+DE"),
            ("FR DE IT", "FR+DE+IT"),
            ("france, it and no", "FR+IT+NO"),
            ("UK + Ireland", "GB+IE"),
            ("Bangkok, Thailand", "TH"),
            ("Europe and Turkey", "Europe+TR"),
            ("Paris then Rome", "FR+IT"),
            ("Trinidad and Tobago and Barbados", "TT+BB"),
        ]);
    }

    #[test]
    fn typing_errors() {
        check(&[
            ("Germny", "DE"),
            ("Itlay", "IT"),
            ("Jappan", "JP"),
            ("Thialand", "TH"),
            ("Swizerland", "CH"),
            ("Switserlnd", "CH"),
            ("Philipines", "PH"),
            ("Austrlia", "AU"),
            ("Nigera", "NG"),
            ("Untied Kingdom", "GB"),
            ("New Zeland", "NZ"),
            ("newzeland", "NZ"),
            ("Souht Korea", "KR"),
            ("Eurpoe", "Europe"),
            ("Scandanavia", "Scandinavia"),
            ("Carribean", "Caribbean"),
            ("middel east", "Middle East"),
            ("Egpyt", "EG"),
            // Two edits in a short word, one in a very short one.
            ("Jpnn", ""),
            ("Itly", "IT"),
            ("Iyly", ""),
            ("UAX", ""),
            ("Ust", ""),
        ]);
    }

    #[test]
    fn sentences() {
        check(&[
            ("cheap esim for my trip to Germny", "DE"),
            ("I need an eSIM in Japan", "JP"),
            ("it is for me in Spain", "ES"),
            ("what is it", ""),
            ("give it to me", ""),
            ("can you show us some plans", ""),
            ("show me plans", ""),
            ("hello there", ""),
            ("asdfgh", ""),
            ("", ""),
            ("10GB 30 days", ""),
            ("how many GB do I need for Peru", "PE"),
            ("is there no plan at all for Kenya?", "KE"),
            ("We are a family of four and want to be online in Greece", "GR"),
            ("plan per day for Fiji", "FJ"),
            ("arriving on the 4th in Oman at 9 AM", "OM"),
            ("AI agent looking for data in Malta", "MT"),
            ("I'm going to Chile so I want data", "CL"),
            ("some data while at home in Wales", "GB"),
            ("TRIP TO JAPAN", "JP"),
            ("trip to IT", "IT"),
            ("esim for DE please", "DE"),
            ("esim de Japon", "JP"),
            ("viaje a la Argentina", "AR"),
            ("an island holiday in Malta", "MT"),
            ("make my mail work in Cuba", "CU"),
            ("travelling to the us", "US"),
        ]);
    }

    #[test]
    fn words_that_are_codes_when_they_stand_alone() {
        check(&[
            ("it", "IT"),
            ("us", "US"),
            ("in", "IN"),
            ("no", "NO"),
            ("GB", "GB"),
            ("gb 10gb", "GB"),
            ("it 10gb 30 days", "IT"),
            ("us under $20", "US"),
            ("us esim", "US"),
            ("can", "CA"),
            ("in japan", "JP"),
            ("to japan", "JP"),
            ("japan in 10 days", "JP"),
        ]);
    }

    #[test]
    fn amounts_stand_beside_places() {
        let asked = read("esim for Spain & Portugal, 10GB for 2 weeks, under $20");
        assert_eq!((asked.places.len(), asked.data_mb, asked.days), (2, Some(10_240), Some(14)));
        assert_eq!((asked.most, asked.cheapest), (Some(Usd::from_micros(19_999_999)), false));
    }

    #[test]
    fn a_low_price_may_be_wished_for() {
        for (text, cheapest) in [
            ("cheap esim for my trip to Germny", true),
            ("cheapest Japan", true),
            ("Japan cheap", true),
            ("lowest price in Japan", true),
            ("Japan, low cost", true),
            ("least expensive plan for Japan", true),
            ("budget esim Japan", true),
            ("Japan on a budget of $20", false),
            ("Japan budget 20 usd", false),
            ("Japan cheaper than $5", false),
            ("Japan 10GB", false),
            ("low season in Japan", false),
        ] {
            let asked = read(text);
            assert_eq!((asked.places.len(), asked.cheapest), (1, cheapest), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,200}") {
            prop_assert_eq!(read(&text), read(&text));
        }

        #[test]
        fn any_words_are_read(text in "([a-z]{1,9}|[A-Z]{2,3}|[0-9]{1,20}|[$<.,'&/]| ){0,60}") {
            let asked = read(&text);
            prop_assert!(asked.data_mb.is_none_or(|mb| mb > 0) && asked.days.is_none_or(|days| days > 0));
        }

        /// A country is found by its name in any case, inside any of these sentences.
        #[test]
        fn every_country_is_found(at in 0..crate::domain::country::ALL.len(), upper: bool, form in 0..3usize) {
            let country = &crate::domain::country::ALL[at];
            let name = if upper { country.name.to_uppercase() } else { country.name.to_lowercase() };
            let text = [name.clone(), format!("esim for {name} please"), format!("{name} 5gb 7 days")];
            prop_assert_eq!(read(&text[form]).places, vec![Place::Country(country)]);
        }
    }
}
