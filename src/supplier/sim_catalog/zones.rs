//! The simulated supplier's regional and global coverage: each zone is a union of the groups of countries below. The
//! price of a gigabyte in a zone lies between those of its cheap and its expensive members. A zone's code is longer
//! than a country's, so that the two never collide as families.

pub struct Zone {
    pub code: &'static str,
    pub name: &'static str,
    /// As in `markets`: 1 GB over 7 days, in US cents.
    pub gigabyte_cents: i64,
    groups: &'static [&'static str],
}

impl Zone {
    /// Alpha-2 codes, sorted.
    pub fn countries(&self) -> Vec<String> {
        let mut codes: Vec<String> =
            self.groups.iter().flat_map(|group| group.split(' ')).map(str::to_owned).collect();
        codes.sort();
        codes.dedup();
        codes
    }
}

const fn row(
    code: &'static str,
    name: &'static str,
    gigabyte_cents: i64,
    groups: &'static [&'static str],
) -> Zone {
    Zone { code, name, gigabyte_cents, groups }
}

const EU: &str = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK";
const NORDICS: &str = "DK FI IS NO SE";
const BALTICS: &str = "EE LT LV";
const ALPS: &str = "AT CH DE LI";
const BRITISH_ISLES: &str = "GB GG IE IM JE";
const WESTERN_BALKANS: &str = "AL BA ME MK RS XK";
const BALKANS_IN_THE_EU: &str = "BG GR HR RO SI";
const SMALL_EUROPE: &str = "AD AX FO GI MC SJ SM VA";
const EASTERN_EUROPE: &str = "MD TR UA";
const MEDITERRANEAN: &str = "CY EG ES FR GR HR IL IT MA MT PT SI TN TR";
const CAUCASUS: &str = "AM AZ GE";
const CENTRAL_ASIA: &str = "KG KZ TJ UZ";
const EAST_ASIA: &str = "CN HK JP KR MO TW";
const SOUTHEAST_ASIA: &str = "BN ID KH LA MY PH SG TH VN";
const SOUTH_ASIA: &str = "BD IN LK MV NP PK";
const GCC: &str = "AE BH KW OM QA SA";
const LEVANT: &str = "IL IQ JO LB PS";
const NORTH_AFRICA: &str = "DZ EG MA TN";
const WEST_AFRICA: &str = "BF BJ CI CV GH GM GN GW LR ML NE NG SL SN TG";
const EAST_AFRICA: &str = "ET KE MG MU RE RW SC TZ UG YT";
const SOUTHERN_AFRICA: &str = "AO BW LS MW MZ NA SZ ZA ZM ZW";
const CENTRAL_AFRICA: &str = "CD CF CG CM GA GQ TD";
const NORTH_AMERICA: &str = "CA MX US";
const CENTRAL_AMERICA: &str = "BZ CR GT HN NI PA SV";
const SOUTH_AMERICA: &str = "AR BO BR CL CO EC GF GY PE PY SR UY";
const CARIBBEAN: &str = "AG AI AW BB BL BQ BS CW DM DO GD GP HT JM KN KY LC MF MQ MS PR SX TC TT VC VG VI";
const AUSTRALASIA: &str = "AU NZ";
const PACIFIC: &str = "AS FJ GU MP NC NR PF PG SB TO VU WS";

#[rustfmt::skip]
pub const ZONES: &[Zone] = &[
    row("EUROPE", "Europe", 82, &[
        EU, NORDICS, ALPS, BRITISH_ISLES, WESTERN_BALKANS, SMALL_EUROPE, EASTERN_EUROPE,
    ]),
    row("EU-UK", "EU and UK", 64, &[EU, "GB"]),
    row("EUROPE-LITE", "Europe Lite", 59, &["AT BE CZ DE DK ES FR GR HU IE IT NL PL PT SE", "CH GB NO"]),
    row("NORDICS", "Nordics", 61, &[NORDICS]),
    row("BALTICS", "Baltics", 56, &[BALTICS]),
    row("BALKANS", "Balkans", 98, &[WESTERN_BALKANS, BALKANS_IN_THE_EU]),
    row("ALPS", "Germany, Austria and Switzerland", 63, &[ALPS]),
    row("BENELUX", "Benelux", 57, &["BE LU NL"]),
    row("BRITISH-ISLES", "UK and Ireland", 74, &[BRITISH_ISLES]),
    row("IBERIA", "Spain and Portugal", 53, &["AD ES GI PT"]),
    row("MEDITERRANEAN", "Mediterranean", 104, &[MEDITERRANEAN]),
    row("CAUCASUS", "Caucasus", 148, &[CAUCASUS]),
    row("CENTRAL-ASIA", "Central Asia", 156, &[CENTRAL_ASIA]),
    row("ASIA", "Asia", 118, &[EAST_ASIA, SOUTHEAST_ASIA, SOUTH_ASIA, "MN"]),
    row("ASIA-PACIFIC", "Asia Pacific", 112, &[EAST_ASIA, SOUTHEAST_ASIA, AUSTRALASIA, "FJ GU IN LK"]),
    row("EAST-ASIA", "East Asia", 84, &[EAST_ASIA]),
    row("JAPAN-KOREA", "Japan and South Korea", 78, &["JP KR"]),
    row("CHINA-HK-MO", "China, Hong Kong and Macau", 82, &["CN HK MO"]),
    row("SOUTHEAST-ASIA", "Southeast Asia", 86, &[SOUTHEAST_ASIA]),
    row("SG-MY-TH", "Singapore, Malaysia and Thailand", 63, &["MY SG TH"]),
    row("SOUTH-ASIA", "South Asia", 146, &[SOUTH_ASIA]),
    row("GCC", "Gulf States (GCC)", 178, &[GCC]),
    row("MIDDLE-EAST", "Middle East", 196, &[GCC, LEVANT, "EG TR"]),
    row("MENA", "Middle East and North Africa", 212, &[GCC, LEVANT, NORTH_AFRICA, "TR"]),
    row("NORTH-AFRICA", "North Africa", 178, &[NORTH_AFRICA]),
    row("WEST-AFRICA", "West Africa", 388, &[WEST_AFRICA]),
    row("EAST-AFRICA", "East Africa", 324, &[EAST_AFRICA]),
    row("SOUTHERN-AFRICA", "Southern Africa", 346, &[SOUTHERN_AFRICA]),
    row("AFRICA", "Africa", 364, &[NORTH_AFRICA, WEST_AFRICA, EAST_AFRICA, SOUTHERN_AFRICA, CENTRAL_AFRICA]),
    row("NORTH-AMERICA", "North America", 118, &[NORTH_AMERICA]),
    row("US-CANADA", "USA and Canada", 106, &["CA US"]),
    row("CENTRAL-AMERICA", "Central America", 218, &[CENTRAL_AMERICA]),
    row("SOUTH-AMERICA", "South America", 178, &[SOUTH_AMERICA]),
    row("LATIN-AMERICA", "Latin America", 192, &[CENTRAL_AMERICA, SOUTH_AMERICA, "DO MX PR"]),
    row("AMERICAS", "Americas", 206, &[NORTH_AMERICA, CENTRAL_AMERICA, SOUTH_AMERICA, CARIBBEAN]),
    row("CARIBBEAN", "Caribbean", 356, &[CARIBBEAN]),
    row("AU-NZ", "Australia and New Zealand", 92, &[AUSTRALASIA]),
    row("OCEANIA", "Oceania", 276, &[AUSTRALASIA, PACIFIC]),
    row("GLOBAL-LITE", "Global Lite", 168, &[
        EU, ALPS, BRITISH_ISLES, NORDICS, EAST_ASIA, SOUTHEAST_ASIA, NORTH_AMERICA, AUSTRALASIA,
        "AE BR CL CO EG IL IN MA PE QA SA TR ZA",
    ]),
    row("GLOBAL", "Global", 246, &[
        EU, NORDICS, ALPS, BRITISH_ISLES, WESTERN_BALKANS, SMALL_EUROPE, EASTERN_EUROPE, CAUCASUS,
        CENTRAL_ASIA, EAST_ASIA, SOUTHEAST_ASIA, SOUTH_ASIA, GCC, NORTH_AFRICA, NORTH_AMERICA,
        CENTRAL_AMERICA, SOUTH_AMERICA, AUSTRALASIA,
        "BW CI CM DO FJ GH GU IL IQ JM JO KE MG MN MU NG PR RE SC SN TT TZ UG ZA ZM",
    ]),
    row("GLOBAL-PLUS", "Global Plus", 318, &[
        EU, NORDICS, ALPS, BRITISH_ISLES, WESTERN_BALKANS, SMALL_EUROPE, EASTERN_EUROPE, CAUCASUS,
        CENTRAL_ASIA, EAST_ASIA, SOUTHEAST_ASIA, SOUTH_ASIA, GCC, LEVANT, NORTH_AFRICA, WEST_AFRICA,
        EAST_AFRICA, SOUTHERN_AFRICA, CENTRAL_AFRICA, NORTH_AMERICA, CENTRAL_AMERICA, SOUTH_AMERICA,
        CARIBBEAN, AUSTRALASIA, PACIFIC,
        "BM GL MN",
    ]),
];
