//! Countries and territories where a traveller can buy mobile data: ISO 3166-1 codes, and XK for Kosovo. Names are the
//! ones people use, not the official ones. Aliases are other spellings and well-known places inside a country. No two
//! countries share a name or an alias, so a typed destination is never ambiguous. Matching of typed text is in
//! `search`.

use Region::{
    Africa, Caribbean, CentralAmerica, CentralAsia, EastAsia, Europe, MiddleEast, NorthAmerica, Oceania,
    SouthAmerica, SouthAsia, SoutheastAsia,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Country {
    /// ISO 3166-1 alpha-2, upper case.
    pub code: &'static str,
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub region: Region,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    Africa,
    Caribbean,
    CentralAmerica,
    CentralAsia,
    EastAsia,
    Europe,
    MiddleEast,
    NorthAmerica,
    Oceania,
    SouthAmerica,
    SouthAsia,
    SoutheastAsia,
}

impl Region {
    /// The word for it in price rules.
    pub fn word(self) -> &'static str {
        match self {
            Africa => "AFRICA",
            Caribbean => "CARIBBEAN",
            CentralAmerica => "CENTRAL-AMERICA",
            CentralAsia => "CENTRAL-ASIA",
            EastAsia => "EAST-ASIA",
            Europe => "EUROPE",
            MiddleEast => "MIDDLE-EAST",
            NorthAmerica => "NORTH-AMERICA",
            Oceania => "OCEANIA",
            SouthAmerica => "SOUTH-AMERICA",
            SouthAsia => "SOUTH-ASIA",
            SoutheastAsia => "SOUTHEAST-ASIA",
        }
    }

    /// The word for the continent that it is on.
    pub fn continent(self) -> &'static str {
        match self {
            Africa => "AFRICA",
            Caribbean | CentralAmerica | NorthAmerica | SouthAmerica => "AMERICAS",
            CentralAsia | EastAsia | MiddleEast | SouthAsia | SoutheastAsia => "ASIA",
            Europe => "EUROPE",
            Oceania => "OCEANIA",
        }
    }
}

/// Coverage on so many continents is global.
pub const GLOBAL_CONTINENTS: usize = 4;

/// The country of an upper-case alpha-2 code.
pub fn by_code(code: &str) -> Option<&'static Country> {
    let at = ALL.binary_search_by(|country| country.code.cmp(code)).ok()?;
    ALL.get(at)
}

/// The name of a country by its code; a code that is not known stands for itself.
pub fn name_of(code: &str) -> &str {
    by_code(code).map_or(code, |country| country.name)
}

/// Codes of places where nobody sells mobile data to travellers.
const WITHOUT_PLANS: [&str; 9] = ["AQ", "BV", "GS", "HM", "IO", "KP", "PN", "TF", "UM"];

/// Whether an upper-case alpha-2 code is one of ISO 3166-1, or XK.
pub fn exists(code: &str) -> bool {
    by_code(code).is_some() || WITHOUT_PLANS.contains(&code)
}

const fn row(
    code: &'static str,
    name: &'static str,
    region: Region,
    aliases: &'static [&'static str],
) -> Country {
    Country { code, name, aliases, region }
}

/// Sorted by code, for the binary search in `by_code`.
#[rustfmt::skip]
pub const ALL: &[Country] = &[
    row("AD", "Andorra", Europe, &[]),
    row("AE", "United Arab Emirates", MiddleEast, &["UAE", "Emirates", "Dubai", "Abu Dhabi", "Sharjah"]),
    row("AF", "Afghanistan", SouthAsia, &[]),
    row("AG", "Antigua and Barbuda", Caribbean, &["Antigua", "Barbuda"]),
    row("AI", "Anguilla", Caribbean, &[]),
    row("AL", "Albania", Europe, &["Shqipëria", "Shqiperia"]),
    row("AM", "Armenia", Europe, &[]),
    row("AO", "Angola", Africa, &[]),
    row("AR", "Argentina", SouthAmerica, &["Buenos Aires", "Patagonia"]),
    row("AS", "American Samoa", Oceania, &["Pago Pago"]),
    row("AT", "Austria", Europe, &["Österreich", "Oesterreich", "Vienna"]),
    row("AU", "Australia", Oceania, &["Aussie", "Tasmania", "Sydney", "Melbourne"]),
    row("AW", "Aruba", Caribbean, &[]),
    row("AX", "Åland Islands", Europe, &["Aland Islands", "Aland", "Åland"]),
    row("AZ", "Azerbaijan", Europe, &["Baku"]),
    row("BA", "Bosnia and Herzegovina", Europe, &["Bosnia", "Herzegovina", "BiH", "Bosna"]),
    row("BB", "Barbados", Caribbean, &[]),
    row("BD", "Bangladesh", SouthAsia, &[]),
    row("BE", "Belgium", Europe, &["Belgique", "België", "Belgie", "Belgien", "Brussels", "Flanders"]),
    row("BF", "Burkina Faso", Africa, &["Burkina"]),
    row("BG", "Bulgaria", Europe, &["Balgariya"]),
    row("BH", "Bahrain", MiddleEast, &[]),
    row("BI", "Burundi", Africa, &[]),
    row("BJ", "Benin", Africa, &["Bénin", "Dahomey"]),
    row("BL", "Saint Barthélemy", Caribbean, &["Saint Barthelemy", "St Barts", "St Barths", "St Barthelemy"]),
    row("BM", "Bermuda", NorthAmerica, &["Bermudas"]),
    row("BN", "Brunei", SoutheastAsia, &["Brunei Darussalam"]),
    row("BO", "Bolivia", SouthAmerica, &[]),
    row("BQ", "Caribbean Netherlands", Caribbean, &["Bonaire", "Sint Eustatius", "Saba", "BES Islands"]),
    row("BR", "Brazil", SouthAmerica, &["Brasil", "Rio de Janeiro"]),
    row("BS", "Bahamas", Caribbean, &["The Bahamas", "Nassau"]),
    row("BT", "Bhutan", SouthAsia, &[]),
    row("BW", "Botswana", Africa, &[]),
    row("BY", "Belarus", Europe, &["Belarussia", "Byelorussia"]),
    row("BZ", "Belize", CentralAmerica, &[]),
    row("CA", "Canada", NorthAmerica, &["Quebec", "Ontario", "Toronto", "Vancouver"]),
    row("CC", "Cocos Islands", Oceania, &["Cocos (Keeling) Islands", "Keeling Islands"]),
    row("CD", "DR Congo", Africa, &["Democratic Republic of the Congo", "DRC", "Congo-Kinshasa", "Zaire"]),
    row("CF", "Central African Republic", Africa, &[]),
    row("CG", "Congo", Africa, &["Republic of the Congo", "Congo-Brazzaville", "Congo Republic"]),
    row("CH", "Switzerland", Europe, &["Schweiz", "Suisse", "Svizzera", "Swiss", "Zurich", "Geneva"]),
    row("CI", "Côte d'Ivoire", Africa, &["Cote d'Ivoire", "Ivory Coast", "Cote dIvoire"]),
    row("CK", "Cook Islands", Oceania, &["Rarotonga"]),
    row("CL", "Chile", SouthAmerica, &["Easter Island"]),
    row("CM", "Cameroon", Africa, &["Cameroun"]),
    row("CN", "China", EastAsia, &["Mainland China", "PRC", "Peoples Republic of China", "Beijing"]),
    row("CO", "Colombia", SouthAmerica, &["Columbia", "Bogota"]),
    row("CR", "Costa Rica", CentralAmerica, &[]),
    row("CU", "Cuba", Caribbean, &["Havana"]),
    row("CV", "Cape Verde", Africa, &["Cabo Verde"]),
    row("CW", "Curaçao", Caribbean, &["Curacao"]),
    row("CX", "Christmas Island", Oceania, &[]),
    row("CY", "Cyprus", Europe, &["Kypros"]),
    row("CZ", "Czechia", Europe, &["Czech Republic", "Czech", "Česko", "Cesko", "Prague"]),
    row("DE", "Germany", Europe, &["Deutschland", "Allemagne", "Alemania", "Berlin", "Munich", "Bavaria"]),
    row("DJ", "Djibouti", Africa, &[]),
    row("DK", "Denmark", Europe, &["Danmark", "Copenhagen"]),
    row("DM", "Dominica", Caribbean, &["Commonwealth of Dominica"]),
    row("DO", "Dominican Republic", Caribbean, &["Republica Dominicana", "Punta Cana"]),
    row("DZ", "Algeria", Africa, &["Algérie", "Algerie"]),
    row("EC", "Ecuador", SouthAmerica, &["Galapagos", "Galapagos Islands"]),
    row("EE", "Estonia", Europe, &["Eesti", "Tallinn"]),
    row("EG", "Egypt", Africa, &["Cairo", "Sharm el Sheikh", "Hurghada"]),
    row("EH", "Western Sahara", Africa, &["Sahrawi Republic"]),
    row("ER", "Eritrea", Africa, &[]),
    row("ES", "Spain", Europe, &[
        "España", "Espana", "Espagne", "Canary Islands", "Canaries", "Tenerife", "Gran Canaria", "Mallorca",
        "Majorca", "Ibiza", "Balearic Islands", "Barcelona", "Madrid",
    ]),
    row("ET", "Ethiopia", Africa, &["Abyssinia"]),
    row("FI", "Finland", Europe, &["Suomi", "Lapland", "Helsinki"]),
    row("FJ", "Fiji", Oceania, &["Fiji Islands"]),
    row("FK", "Falkland Islands", SouthAmerica, &["Falklands", "Malvinas", "Islas Malvinas"]),
    row("FM", "Micronesia", Oceania, &["Federated States of Micronesia", "FSM", "Pohnpei"]),
    row("FO", "Faroe Islands", Europe, &["Faroes", "Faeroe Islands", "Føroyar"]),
    row("FR", "France", Europe, &["Frankreich", "Francia", "Corsica", "Paris", "French Riviera"]),
    row("GA", "Gabon", Africa, &[]),
    row("GB", "United Kingdom", Europe, &[
        "UK", "Great Britain", "Britain", "England", "Scotland", "Wales", "Northern Ireland", "London",
    ]),
    row("GD", "Grenada", Caribbean, &[]),
    row("GE", "Georgia", Europe, &["Sakartvelo", "Tbilisi"]),
    row("GF", "French Guiana", SouthAmerica, &["Guyane", "French Guyana"]),
    row("GG", "Guernsey", Europe, &["Alderney", "Sark"]),
    row("GH", "Ghana", Africa, &["Accra"]),
    row("GI", "Gibraltar", Europe, &[]),
    row("GL", "Greenland", NorthAmerica, &["Kalaallit Nunaat", "Grønland"]),
    row("GM", "Gambia", Africa, &["The Gambia"]),
    row("GN", "Guinea", Africa, &["Guinea-Conakry", "Guinée"]),
    row("GP", "Guadeloupe", Caribbean, &[]),
    row("GQ", "Equatorial Guinea", Africa, &["Guinea Ecuatorial"]),
    row("GR", "Greece", Europe, &["Hellas", "Crete", "Rhodes", "Corfu", "Santorini", "Mykonos", "Athens"]),
    row("GT", "Guatemala", CentralAmerica, &[]),
    row("GU", "Guam", Oceania, &[]),
    row("GW", "Guinea-Bissau", Africa, &["Guinea Bissau"]),
    row("GY", "Guyana", SouthAmerica, &["British Guiana"]),
    row("HK", "Hong Kong", EastAsia, &["Hongkong", "Hong Kong SAR"]),
    row("HN", "Honduras", CentralAmerica, &["Roatan"]),
    row("HR", "Croatia", Europe, &["Hrvatska", "Kroatien", "Dubrovnik"]),
    row("HT", "Haiti", Caribbean, &["Haïti"]),
    row("HU", "Hungary", Europe, &["Magyarország", "Magyarorszag", "Budapest"]),
    row("ID", "Indonesia", SoutheastAsia, &["Bali", "Lombok", "Java", "Sumatra", "Jakarta"]),
    row("IE", "Ireland", Europe, &["Éire", "Eire", "Republic of Ireland", "Dublin"]),
    row("IL", "Israel", MiddleEast, &["Tel Aviv"]),
    row("IM", "Isle of Man", Europe, &[]),
    row("IN", "India", SouthAsia, &["Bharat", "Goa", "Delhi", "Mumbai"]),
    row("IQ", "Iraq", MiddleEast, &["Kurdistan", "Baghdad"]),
    row("IR", "Iran", MiddleEast, &["Persia", "Islamic Republic of Iran", "Tehran"]),
    row("IS", "Iceland", Europe, &["Ísland", "Reykjavik"]),
    row("IT", "Italy", Europe, &["Italia", "Italien", "Sicily", "Sardinia", "Rome", "Venice", "Tuscany"]),
    row("JE", "Jersey", Europe, &["Channel Islands"]),
    row("JM", "Jamaica", Caribbean, &[]),
    row("JO", "Jordan", MiddleEast, &["Amman", "Petra"]),
    row("JP", "Japan", EastAsia, &["Nippon", "Nihon", "Tokyo", "Osaka", "Kyoto", "Okinawa", "Hokkaido"]),
    row("KE", "Kenya", Africa, &["Nairobi"]),
    row("KG", "Kyrgyzstan", CentralAsia, &["Kyrgyz Republic", "Kirghizia", "Kirgizstan"]),
    row("KH", "Cambodia", SoutheastAsia, &["Kampuchea", "Angkor", "Phnom Penh"]),
    row("KI", "Kiribati", Oceania, &["Gilbert Islands"]),
    row("KM", "Comoros", Africa, &["Comores"]),
    row("KN", "Saint Kitts and Nevis", Caribbean, &["St Kitts", "St Kitts and Nevis", "Nevis"]),
    row("KR", "South Korea", EastAsia, &["Korea", "Republic of Korea", "ROK", "Seoul", "Jeju", "Busan"]),
    row("KW", "Kuwait", MiddleEast, &[]),
    row("KY", "Cayman Islands", Caribbean, &["Caymans", "Grand Cayman"]),
    row("KZ", "Kazakhstan", CentralAsia, &["Kazakstan", "Almaty"]),
    row("LA", "Laos", SoutheastAsia, &["Lao", "Lao PDR", "Vientiane"]),
    row("LB", "Lebanon", MiddleEast, &["Liban", "Beirut"]),
    row("LC", "Saint Lucia", Caribbean, &["St Lucia"]),
    row("LI", "Liechtenstein", Europe, &["Lichtenstein"]),
    row("LK", "Sri Lanka", SouthAsia, &["Srilanka", "Ceylon"]),
    row("LR", "Liberia", Africa, &[]),
    row("LS", "Lesotho", Africa, &[]),
    row("LT", "Lithuania", Europe, &["Lietuva", "Vilnius"]),
    row("LU", "Luxembourg", Europe, &["Luxemburg", "Lëtzebuerg"]),
    row("LV", "Latvia", Europe, &["Latvija", "Riga"]),
    row("LY", "Libya", Africa, &[]),
    row("MA", "Morocco", Africa, &["Maroc", "Marrakech", "Marrakesh", "Casablanca"]),
    row("MC", "Monaco", Europe, &["Monte Carlo"]),
    row("MD", "Moldova", Europe, &["Republic of Moldova", "Moldavia"]),
    row("ME", "Montenegro", Europe, &["Crna Gora"]),
    row("MF", "Saint Martin", Caribbean, &["St Martin", "French Saint Martin"]),
    row("MG", "Madagascar", Africa, &[]),
    row("MH", "Marshall Islands", Oceania, &["Majuro"]),
    row("MK", "North Macedonia", Europe, &["Macedonia", "FYROM", "Skopje"]),
    row("ML", "Mali", Africa, &[]),
    row("MM", "Myanmar", SoutheastAsia, &["Burma", "Yangon"]),
    row("MN", "Mongolia", EastAsia, &["Ulaanbaatar"]),
    row("MO", "Macau", EastAsia, &["Macao", "Macau SAR"]),
    row("MP", "Northern Mariana Islands", Oceania, &["Saipan", "Mariana Islands", "CNMI"]),
    row("MQ", "Martinique", Caribbean, &[]),
    row("MR", "Mauritania", Africa, &["Mauritanie"]),
    row("MS", "Montserrat", Caribbean, &[]),
    row("MT", "Malta", Europe, &["Gozo"]),
    row("MU", "Mauritius", Africa, &["Ile Maurice"]),
    row("MV", "Maldives", SouthAsia, &["Maldive Islands"]),
    row("MW", "Malawi", Africa, &[]),
    row("MX", "Mexico", NorthAmerica, &["México", "Cancun", "Tulum", "Mexico City"]),
    row("MY", "Malaysia", SoutheastAsia, &["Kuala Lumpur", "Langkawi", "Penang", "Borneo"]),
    row("MZ", "Mozambique", Africa, &["Moçambique", "Mocambique"]),
    row("NA", "Namibia", Africa, &[]),
    row("NC", "New Caledonia", Oceania, &["Nouvelle-Calédonie", "Noumea"]),
    row("NE", "Niger", Africa, &["Republic of Niger"]),
    row("NF", "Norfolk Island", Oceania, &[]),
    row("NG", "Nigeria", Africa, &["Lagos"]),
    row("NI", "Nicaragua", CentralAmerica, &[]),
    row("NL", "Netherlands", Europe, &["The Netherlands", "Holland", "Nederland", "Amsterdam"]),
    row("NO", "Norway", Europe, &["Norge", "Lofoten", "Oslo"]),
    row("NP", "Nepal", SouthAsia, &["Kathmandu"]),
    row("NR", "Nauru", Oceania, &[]),
    row("NU", "Niue", Oceania, &[]),
    row("NZ", "New Zealand", Oceania, &["Aotearoa", "Auckland"]),
    row("OM", "Oman", MiddleEast, &["Muscat"]),
    row("PA", "Panama", CentralAmerica, &["Panamá"]),
    row("PE", "Peru", SouthAmerica, &["Perú", "Machu Picchu", "Lima"]),
    row("PF", "French Polynesia", Oceania, &["Tahiti", "Bora Bora", "Moorea"]),
    row("PG", "Papua New Guinea", Oceania, &["PNG", "New Guinea"]),
    row("PH", "Philippines", SoutheastAsia, &["The Philippines", "Phillipines", "Manila", "Boracay", "Cebu"]),
    row("PK", "Pakistan", SouthAsia, &[]),
    row("PL", "Poland", Europe, &["Polska", "Polen", "Warsaw", "Krakow"]),
    row("PM", "Saint Pierre and Miquelon", NorthAmerica, &["St Pierre and Miquelon", "Miquelon"]),
    row("PR", "Puerto Rico", Caribbean, &["Porto Rico"]),
    row("PS", "Palestine", MiddleEast, &["Palestinian Territories", "West Bank", "Gaza"]),
    row("PT", "Portugal", Europe, &["Madeira", "Azores", "Algarve", "Lisbon"]),
    row("PW", "Palau", Oceania, &["Belau"]),
    row("PY", "Paraguay", SouthAmerica, &[]),
    row("QA", "Qatar", MiddleEast, &["Doha"]),
    row("RE", "Réunion", Africa, &["Reunion", "La Réunion", "Reunion Island"]),
    row("RO", "Romania", Europe, &["Rumania", "Bucharest", "Transylvania"]),
    row("RS", "Serbia", Europe, &["Srbija", "Belgrade"]),
    row("RU", "Russia", Europe, &["Russian Federation", "Rossiya", "Moscow"]),
    row("RW", "Rwanda", Africa, &["Kigali"]),
    row("SA", "Saudi Arabia", MiddleEast, &["KSA", "Saudi", "Mecca", "Makkah", "Medina", "Riyadh", "Jeddah"]),
    row("SB", "Solomon Islands", Oceania, &["Solomons"]),
    row("SC", "Seychelles", Africa, &["Mahe"]),
    row("SD", "Sudan", Africa, &["Khartoum"]),
    row("SE", "Sweden", Europe, &["Sverige", "Schweden", "Stockholm"]),
    row("SG", "Singapore", SoutheastAsia, &["Singapur"]),
    row("SH", "Saint Helena", Africa, &["St Helena", "Ascension Island", "Tristan da Cunha"]),
    row("SI", "Slovenia", Europe, &["Slovenija", "Ljubljana"]),
    row("SJ", "Svalbard and Jan Mayen", Europe, &["Svalbard", "Spitsbergen", "Jan Mayen"]),
    row("SK", "Slovakia", Europe, &["Slovak Republic", "Slovensko", "Bratislava"]),
    row("SL", "Sierra Leone", Africa, &[]),
    row("SM", "San Marino", Europe, &[]),
    row("SN", "Senegal", Africa, &["Sénégal", "Dakar"]),
    row("SO", "Somalia", Africa, &["Somaliland"]),
    row("SR", "Suriname", SouthAmerica, &["Surinam"]),
    row("SS", "South Sudan", Africa, &["Juba"]),
    row("ST", "São Tomé and Príncipe", Africa, &["Sao Tome and Principe", "Sao Tome", "Sao Tome e Principe"]),
    row("SV", "El Salvador", CentralAmerica, &[]),
    row("SX", "Sint Maarten", Caribbean, &["St Maarten", "Saint Maarten", "Dutch Saint Martin"]),
    row("SY", "Syria", MiddleEast, &["Syrian Arab Republic", "Damascus"]),
    row("SZ", "Eswatini", Africa, &["Swaziland"]),
    row("TC", "Turks and Caicos Islands", Caribbean, &["Turks and Caicos", "Providenciales"]),
    row("TD", "Chad", Africa, &["Tchad"]),
    row("TG", "Togo", Africa, &[]),
    row("TH", "Thailand", SoutheastAsia, &["Siam", "Bangkok", "Phuket", "Koh Samui", "Chiang Mai"]),
    row("TJ", "Tajikistan", CentralAsia, &["Tadjikistan"]),
    row("TK", "Tokelau", Oceania, &[]),
    row("TL", "Timor-Leste", SoutheastAsia, &["East Timor", "Timor Leste", "Timor"]),
    row("TM", "Turkmenistan", CentralAsia, &["Ashgabat"]),
    row("TN", "Tunisia", Africa, &["Tunisie", "Tunis", "Djerba"]),
    row("TO", "Tonga", Oceania, &[]),
    row("TR", "Türkiye", Europe, &["Turkey", "Turkiye", "Türkei", "Istanbul", "Antalya", "Cappadocia"]),
    row("TT", "Trinidad and Tobago", Caribbean, &["Trinidad", "Tobago"]),
    row("TV", "Tuvalu", Oceania, &["Ellice Islands"]),
    row("TW", "Taiwan", EastAsia, &["Republic of China", "Taipei", "Formosa", "Chinese Taipei"]),
    row("TZ", "Tanzania", Africa, &["Zanzibar", "Kilimanjaro", "Serengeti"]),
    row("UA", "Ukraine", Europe, &["Ukraina", "Kyiv", "Kiev"]),
    row("UG", "Uganda", Africa, &["Kampala"]),
    row("US", "United States", NorthAmerica, &[
        "USA", "U.S.", "U.S.A.", "America", "United States of America", "The States", "Hawaii", "Alaska",
        "California", "Florida", "New York",
    ]),
    row("UY", "Uruguay", SouthAmerica, &["Montevideo"]),
    row("UZ", "Uzbekistan", CentralAsia, &["Samarkand", "Tashkent"]),
    row("VA", "Vatican City", Europe, &["Vatican", "Holy See"]),
    row("VC", "Saint Vincent and the Grenadines", Caribbean, &["St Vincent", "Saint Vincent", "Grenadines"]),
    row("VE", "Venezuela", SouthAmerica, &["Caracas"]),
    row("VG", "British Virgin Islands", Caribbean, &["BVI", "Tortola", "Virgin Gorda"]),
    row("VI", "US Virgin Islands", Caribbean, &["USVI", "Virgin Islands", "St Thomas"]),
    row("VN", "Vietnam", SoutheastAsia, &["Viet Nam", "Hanoi", "Saigon", "Ho Chi Minh City", "Da Nang"]),
    row("VU", "Vanuatu", Oceania, &["New Hebrides"]),
    row("WF", "Wallis and Futuna", Oceania, &["Wallis", "Futuna"]),
    row("WS", "Samoa", Oceania, &["Western Samoa"]),
    row("XK", "Kosovo", Europe, &["Kosova", "Pristina"]),
    row("YE", "Yemen", MiddleEast, &["Sanaa"]),
    row("YT", "Mayotte", Africa, &[]),
    row("ZA", "South Africa", Africa, &["RSA", "Cape Town", "Johannesburg"]),
    row("ZM", "Zambia", Africa, &[]),
    row("ZW", "Zimbabwe", Africa, &["Victoria Falls", "Harare"]),
];

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn codes_are_sorted_unique_and_well_formed() {
        assert!(ALL.is_sorted_by(|a, b| a.code < b.code));
        for country in ALL {
            assert!(
                country.code.len() == 2 && country.code.bytes().all(|b| b.is_ascii_uppercase()),
                "{country:?}"
            );
        }
        assert!(ALL.len() >= 200);
    }

    #[test]
    fn no_two_countries_share_a_name() {
        let mut owners = HashMap::new();
        for country in ALL {
            for name in country.aliases.iter().chain([&country.name]) {
                assert_eq!(name.trim(), *name);
                assert_eq!(owners.insert(name.to_lowercase(), country.code), None, "{name}");
            }
        }
    }

    #[test]
    fn an_alias_is_never_the_code_of_another_country() {
        for country in ALL {
            for alias in country.aliases {
                assert!(by_code(&alias.to_uppercase()).is_none(), "{alias}");
            }
        }
    }

    #[test]
    fn codes_are_found_in_upper_case_only() {
        assert_eq!(by_code("JP").map(|country| country.name), Some("Japan"));
        assert_eq!(by_code("XK").map(|country| country.region), Some(Europe));
        for unknown in ["jp", "ZZ", "", "JPN"] {
            assert_eq!(by_code(unknown), None);
        }
    }

    #[test]
    fn every_code_of_the_standard_exists_once() {
        assert!(WITHOUT_PLANS.iter().all(|code| by_code(code).is_none()));
        // ISO 3166-1 has 249 codes, and XK is none of them.
        assert_eq!(ALL.len() + WITHOUT_PLANS.len(), 250);
        for (code, is) in
            [("JP", true), ("XK", true), ("KP", true), ("UK", false), ("XX", false), ("EU", false)]
        {
            assert_eq!(exists(code), is, "{code}");
        }
    }

    #[test]
    fn people_write_other_names() {
        for (alias, code) in
            [("UK", "GB"), ("Holland", "NL"), ("UAE", "AE"), ("USA", "US"), ("Burma", "MM"), ("Turkey", "TR")]
        {
            assert!(by_code(code).is_some_and(|country| country.aliases.contains(&alias)), "{alias}");
        }
    }
}
