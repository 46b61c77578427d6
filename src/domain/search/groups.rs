//! Regions and groups of countries by the names that travellers use. A group holds the countries that a traveller
//! expects of a plan with that name, not those of a treaty. Sets of countries are bits, one for each row of
//! `country::ALL`.

use crate::domain::country;

/// A set of countries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CountrySet([u64; 4]);

const _: () = assert!(country::ALL.len() <= 256, "CountrySet has a bit for every country");

impl CountrySet {
    /// Unknown codes are left out.
    pub fn of<'a>(codes: impl IntoIterator<Item = &'a str>) -> CountrySet {
        let mut set = CountrySet::default();
        for code in codes {
            if let Ok(at) = country::ALL.binary_search_by(|country| country.code.cmp(code)) {
                set.0[at / 64] |= 1 << (at % 64);
            }
        }
        set
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    pub fn union(&self, other: &CountrySet) -> CountrySet {
        let mut both = *self;
        both.0.iter_mut().zip(other.0).for_each(|(bits, more)| *bits |= more);
        both
    }

    pub fn meets(&self, other: &CountrySet) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }

    pub fn shared(&self, other: &CountrySet) -> usize {
        self.0.iter().zip(other.0).map(|(a, b)| (a & b).count_ones() as usize).sum()
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    members: &'static [&'static str],
}

impl Group {
    pub fn countries(&self) -> CountrySet {
        CountrySet::of(self.members.iter().flat_map(|codes| codes.split(' ')))
    }
}

const fn row(
    name: &'static str,
    aliases: &'static [&'static str],
    members: &'static [&'static str],
) -> Group {
    Group { name, aliases, members }
}

const EU: &str = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK";
const EUROZONE: &str = "AT BE BG CY DE EE ES FI FR GR HR IE IT LT LU LV MT NL PT SI SK";
const SCHENGEN: &str =
    "AT BE BG CH CZ DE DK EE ES FI FR GR HR HU IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK";
const NORDICS: &str = "DK FI IS NO SE";
const WESTERN_BALKANS: &str = "AL BA ME MK RS XK";
const EAST_ASIA: &str = "CN HK JP KR MO TW";
const SOUTHEAST_ASIA: &str = "BN ID KH LA MM MY PH SG TH VN";
const SOUTH_ASIA: &str = "BD BT IN LK MV NP PK";
const CENTRAL_ASIA: &str = "KG KZ TJ TM UZ";
const GCC: &str = "AE BH KW OM QA SA";
const LEVANT: &str = "IL JO LB PS SY";
const NORTH_AFRICA: &str = "DZ EG LY MA TN";
const WEST_AFRICA: &str = "BF BJ CI CV GH GM GN GW LR ML MR NE NG SL SN TG";
const EAST_AFRICA: &str = "BI DJ ER ET KE MG MU RE RW SC SO SS TZ UG";
const SOUTHERN_AFRICA: &str = "AO BW LS MW MZ NA SZ ZA ZM ZW";
const CENTRAL_AFRICA: &str = "CD CF CG CM GA GQ TD";
const NORTH_AMERICA: &str = "CA MX US";
const CENTRAL_AMERICA: &str = "BZ CR GT HN NI PA SV";
const SOUTH_AMERICA: &str = "AR BO BR CL CO EC GF GY PE PY SR UY VE";
const CARIBBEAN: &str = "AG AI AW BB BL BQ BS CU CW DM DO GD GP HT JM KN KY LC MF MQ MS PR SX TC TT VC VG VI";
const PACIFIC: &str = "AS FJ GU MP NC PF PG SB TO VU WS";

#[rustfmt::skip]
pub const ALL: &[Group] = &[
    row("Europe", &["Europa", "European", "Europ", "All of Europe", "European countries", "Continental Europe"], &[
        EU, NORDICS, WESTERN_BALKANS, "AD CH FO GB GG GI IM JE LI MC MD SM TR UA VA",
    ]),
    row("European Union", &["EU", "EU countries", "Union Europeenne", "Union Europea", "UE"], &[EU]),
    row("EU and UK", &["EU UK"], &[EU, "GB"]),
    row("European Economic Area", &["EEA"], &[EU, "IS LI NO"]),
    row("Eurozone", &["Euro zone", "Euro area"], &[EUROZONE]),
    row("Schengen", &["Schengen area", "Schengen zone", "Schengen countries"], &[SCHENGEN]),
    row("Western Europe", &["West Europe"], &["AD AT BE CH DE ES FR GB IE IT LI LU MC NL PT"]),
    row("Eastern Europe", &["East Europe"], &["BG CZ EE HU LT LV MD PL RO SK UA"]),
    row("Central Europe", &[], &["AT CH CZ DE HU LI PL SI SK"]),
    row("Southern Europe", &["South Europe"], &["AL BA CY ES GR HR IT ME MK MT PT RS SI"]),
    row("Northern Europe", &["North Europe"], &["DK EE FI GB IE IS LT LV NO SE"]),
    row("Nordics", &["Nordic", "Nordic countries"], &[NORDICS]),
    row("Scandinavia", &["Scandinavian", "Scandinavian countries"], &["DK NO SE"]),
    row("Baltics", &["Baltic", "Baltic states", "Baltic countries"], &["EE LT LV"]),
    row("Balkans", &["Balkan", "Balkan countries", "Balkan peninsula"], &[WESTERN_BALKANS, "BG GR HR RO SI"]),
    row("Western Balkans", &["West Balkans"], &[WESTERN_BALKANS]),
    row("Former Yugoslavia", &["Yugoslavia", "Ex Yugoslavia"], &["BA HR ME MK RS SI XK"]),
    row("Benelux", &["Benelux countries"], &["BE LU NL"]),
    row("Low Countries", &[], &["BE NL"]),
    row("DACH", &["DACH region"], &["AT CH DE"]),
    row("Alps", &["Alpine", "Alpine countries"], &["AT CH DE FR IT LI SI"]),
    row("British Isles", &[], &["GB GG IE IM JE"]),
    row("Iberia", &["Iberian peninsula", "Iberian"], &["AD ES GI PT"]),
    row("Visegrad", &["Visegrad group", "Visegrad countries"], &["CZ HU PL SK"]),
    row("Mediterranean", &["Mediterranean sea", "Med"], &["CY EG ES FR GR HR IL IT MA MT PT SI TN TR"]),
    row("Caucasus", &["South Caucasus"], &["AM AZ GE"]),
    row("Asia", &["Asian", "Asie", "Asien", "Asian countries"], &[EAST_ASIA, SOUTHEAST_ASIA, SOUTH_ASIA, "MN"]),
    row("Asia Pacific", &["APAC", "Asia and Pacific", "Asia Pac"], &[EAST_ASIA, SOUTHEAST_ASIA, "AU NZ IN LK"]),
    row("East Asia", &["Eastern Asia", "Far East", "Northeast Asia"], &[EAST_ASIA]),
    row("Greater China", &[], &["CN HK MO TW"]),
    row("Southeast Asia", &[
        "South East Asia", "South Eastern Asia", "SE Asia", "SEA", "ASEAN", "Sudeste Asiatico",
    ], &[SOUTHEAST_ASIA]),
    row("Indochina", &["Indochinese peninsula", "Mekong"], &["KH LA MM TH VN"]),
    row("South Asia", &["Southern Asia", "Indian subcontinent"], &[SOUTH_ASIA]),
    row("Central Asia", &["Middle Asia", "The Stans", "Silk Road"], &[CENTRAL_ASIA]),
    row("Middle East", &["Mideast", "Mid East", "Near East", "Western Asia", "West Asia", "Oriente Medio"], &[
        GCC, LEVANT, "EG IQ TR",
    ]),
    row("GCC", &[
        "Gulf", "Gulf states", "Gulf countries", "Persian Gulf", "Arabian Gulf", "Gulf Cooperation Council",
        "GCC countries", "Arabian peninsula",
    ], &[GCC]),
    row("Levant", &[], &[LEVANT]),
    row("MENA", &["Middle East and North Africa", "Arab countries", "Arab world"], &[GCC, LEVANT, NORTH_AFRICA, "IQ"]),
    row("Africa", &["African", "Afrika", "Afrique", "African countries"], &[
        NORTH_AFRICA, WEST_AFRICA, EAST_AFRICA, SOUTHERN_AFRICA, CENTRAL_AFRICA,
    ]),
    row("North Africa", &["Northern Africa"], &[NORTH_AFRICA]),
    row("Maghreb", &[], &["DZ LY MA TN"]),
    row("West Africa", &["Western Africa"], &[WEST_AFRICA]),
    row("East Africa", &["Eastern Africa"], &[EAST_AFRICA]),
    row("Southern Africa", &[], &[SOUTHERN_AFRICA]),
    row("Central Africa", &["Middle Africa"], &[CENTRAL_AFRICA]),
    row("Sub Saharan Africa", &["Subsaharan Africa"], &[WEST_AFRICA, EAST_AFRICA, SOUTHERN_AFRICA, CENTRAL_AFRICA]),
    row("North America", &["Northern America", "Norteamerica"], &[NORTH_AMERICA]),
    row("Central America", &["Centroamerica"], &[CENTRAL_AMERICA]),
    row("South America", &["Sudamerica", "South American", "Suramerica", "Sudamerika"], &[SOUTH_AMERICA]),
    row("Latin America", &["LATAM", "Latin American", "Latinoamerica"], &[CENTRAL_AMERICA, SOUTH_AMERICA, "DO MX PR"]),
    row("Americas", &["The Americas", "North and South America"], &[
        NORTH_AMERICA, CENTRAL_AMERICA, SOUTH_AMERICA, CARIBBEAN,
    ]),
    row("Caribbean", &["West Indies", "Caribbean islands", "Caribe", "Antilles"], &[CARIBBEAN]),
    row("Oceania", &["Oceanian"], &["AU NZ", PACIFIC]),
    row("Pacific", &["Pacific islands", "South Pacific", "South Sea", "Polynesia"], &[PACIFIC]),
    row("Australasia", &["ANZ"], &["AU NZ"]),
];

/// Words for the whole world.
#[rustfmt::skip]
pub const WORLD: &[&str] = &[
    "World", "Worldwide", "World wide", "The world", "Global", "Globally", "International", "Everywhere", "Anywhere",
    "All countries", "Any country", "Every country", "Around the world", "Round the world", "Planet earth", "Earth",
    "Mundial", "Mundo", "Monde", "Weltweit",
];

/// Places that people ask for and nobody sells: listed here so that "North Korea" is not answered with Korea.
pub const UNSOLD: &[&str] = &["North Korea", "DPRK", "Pyongyang", "Antarctica", "South Pole", "North Pole"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_a_country() {
        for group in ALL {
            let codes: Vec<&str> = group.members.iter().flat_map(|codes| codes.split(' ')).collect();
            for code in &codes {
                assert!(country::by_code(code).is_some(), "{code} in {}", group.name);
            }
            assert!(group.countries().count() >= 2, "{}", group.name);
        }
    }

    #[test]
    fn sets_count_and_contain() {
        let (benelux, eu) = (CountrySet::of(["BE", "LU", "NL", "ZZ"]), CountrySet::of(EU.split(' ')));
        assert_eq!((benelux.count(), eu.count()), (3, 27));
        assert!(eu.shared(&benelux) == benelux.count() && benelux.shared(&eu) != eu.count());
        assert_eq!(eu.shared(&benelux), 3);
        assert_eq!(eu.union(&benelux), eu);
        assert_eq!((CountrySet::default().count(), CountrySet::of(["ZW", "AD"]).count()), (0, 2));
    }
}
