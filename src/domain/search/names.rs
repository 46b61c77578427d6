//! What the list of countries leaves out: three-letter codes, adjectives, names in other languages, more cities; and
//! ordinary words that look like a code or a misspelt place, but hardly ever are one.

/// ISO 3166-1 alpha-3, in the order of `country::ALL`.
#[rustfmt::skip]
pub const LONG_CODES: &str = "\
    AND ARE AFG ATG AIA ALB ARM AGO ARG ASM AUT AUS ABW ALA AZE BIH BRB BGD BEL BFA BGR BHR BDI BEN BLM BMU BRN BOL \
    BES BRA BHS BTN BWA BLR BLZ CAN CCK COD CAF COG CHE CIV COK CHL CMR CHN COL CRI CUB CPV CUW CXR CYP CZE DEU DJI \
    DNK DMA DOM DZA ECU EST EGY ESH ERI ESP ETH FIN FJI FLK FSM FRO FRA GAB GBR GRD GEO GUF GGY GHA GIB GRL GMB GIN \
    GLP GNQ GRC GTM GUM GNB GUY HKG HND HRV HTI HUN IDN IRL ISR IMN IND IRQ IRN ISL ITA JEY JAM JOR JPN KEN KGZ KHM \
    KIR COM KNA KOR KWT CYM KAZ LAO LBN LCA LIE LKA LBR LSO LTU LUX LVA LBY MAR MCO MDA MNE MAF MDG MHL MKD MLI MMR \
    MNG MAC MNP MTQ MRT MSR MLT MUS MDV MWI MEX MYS MOZ NAM NCL NER NFK NGA NIC NLD NOR NPL NRU NIU NZL OMN PAN PER \
    PYF PNG PHL PAK POL SPM PRI PSE PRT PLW PRY QAT REU ROU SRB RUS RWA SAU SLB SYC SDN SWE SGP SHN SVN SJM SVK SLE \
    SMR SEN SOM SUR SSD STP SLV SXM SYR SWZ TCA TCD TGO THA TJK TKL TLS TKM TUN TON TUR TTO TUV TWN TZA UKR UGA USA \
    URY UZB VAT VCT VEN VGB VIR VNM VUT WLF WSM XKX YEM MYT ZAF ZMB ZWE";

/// More names by country code.
#[rustfmt::skip]
pub const MORE: &[(&str, &[&str])] = &[
    ("AE", &["Emirati", "Emiratos Arabes Unidos"]),
    ("AR", &["Argentine", "Argentinian", "Argentinien"]),
    ("AT", &["Austrian", "Autriche", "Salzburg", "Innsbruck"]),
    ("AU", &["Australian", "Australie", "Australien", "Brisbane", "Perth", "Adelaide", "Oz"]),
    ("BE", &["Belgian", "Belgica", "Belgio", "Antwerp", "Bruges"]),
    ("BR", &["Brazilian", "Bresil", "Brasilien", "Sao Paulo"]),
    ("CA", &["Canadian", "Kanada", "Montreal", "Calgary", "British Columbia"]),
    ("CD", &["Congo Kinshasa", "Democratic Republic of Congo", "Kinshasa"]),
    ("CH", &["Suiza", "Zermatt", "Lucerne", "Basel"]),
    ("CI", &["Cote d Ivoire", "Abidjan", "Costa de Marfil"]),
    ("CN", &["Chinese", "Chine", "Cina", "Shanghai", "Shenzhen", "Guangzhou", "Chengdu"]),
    ("CO", &["Colombian", "Medellin", "Cartagena"]),
    ("CR", &["Costa Rican"]),
    ("CZ", &["Tschechien", "Republica Checa"]),
    ("DE", &["German", "Germania", "Duitsland", "Frankfurt", "Hamburg", "Cologne"]),
    ("DK", &["Danish", "Dinamarca", "Danemark"]),
    ("DO", &["Dominican", "Dominican Rep", "Santo Domingo"]),
    ("EG", &["Egyptian", "Egipto", "Egypte", "Agypten", "Luxor"]),
    ("ES", &[
        "Spanish", "Spanien", "Spagna", "Sevilla", "Seville", "Valencia", "Malaga", "Granada",
        "Andalusia", "Catalonia",
    ]),
    ("FI", &["Finnish", "Finlandia", "Finnland"]),
    ("FR", &["French", "Franca", "Marseille", "Lyon", "Provence", "Normandy"]),
    ("GB", &[
        "British", "Scottish", "Welsh", "Reino Unido", "Royaume Uni", "Inglaterra", "Angleterre", "Grossbritannien",
        "Edinburgh", "Manchester", "Liverpool", "Glasgow",
    ]),
    ("GR", &["Greek", "Grecia", "Grece", "Griechenland", "Greek islands"]),
    ("HR", &["Croatian", "Croacia", "Croatie", "Zagreb"]),
    ("HU", &["Hungarian", "Hungria", "Ungarn", "Hongrie"]),
    ("ID", &["Indonesian", "Indonesie", "Indonesien", "Yogyakarta"]),
    ("IE", &["Irish", "Irlanda", "Irlande", "Irland"]),
    ("IL", &["Israeli", "Jerusalem"]),
    ("IN", &["Indian", "Inde", "Indien", "New Delhi", "Bangalore", "Chennai", "Kerala", "Rajasthan"]),
    ("IS", &["Icelandic", "Islandia", "Islande"]),
    ("IT", &["Italian", "Italie", "Milan", "Milano", "Florence", "Naples", "Roma", "Amalfi"]),
    ("JP", &["Japanese", "Japon", "Giappone", "Sapporo", "Fukuoka", "Hiroshima", "日本"]),
    ("KE", &["Kenyan", "Mombasa"]),
    ("KR", &["Korean", "Corea", "Coree", "Corea del Sur", "Sudkorea", "S Korea", "韩国", "한국"]),
    ("LK", &["Colombo"]),
    ("LY", &["Lybia"]),
    ("MA", &["Moroccan", "Marruecos", "Marokko", "Marocco", "Morroco"]),
    ("MX", &["Mexican", "Mexique", "Mexiko", "Cabo San Lucas"]),
    ("MY", &["Malaysian", "Malasia"]),
    ("NL", &["Dutch", "Paises Bajos", "Pays Bas", "Niederlande", "Rotterdam"]),
    ("NO", &["Norwegian", "Noruega", "Norvege", "Norwegen", "Bergen"]),
    ("NZ", &["Kiwi", "Nueva Zelanda", "Nouvelle Zelande", "Neuseeland", "Queenstown"]),
    ("PE", &["Peruvian", "Perou", "Cusco"]),
    ("PH", &["Filipino", "Filipinas", "Philippine", "Philippine islands", "Palawan"]),
    ("PL", &["Polonia", "Pologne"]),
    ("PT", &["Portuguese", "Porto", "Lisboa"]),
    ("RU", &["Russian", "Siberia", "Rusia", "Russie"]),
    ("SA", &["Saudi Arabian", "Arabia Saudita", "Kingdom of Saudi Arabia"]),
    ("SE", &["Swedish", "Suecia", "Suede"]),
    ("SG", &["Singaporean", "Singapour"]),
    ("TH", &["Thai", "Tailandia", "Thailande", "Krabi", "Pattaya", "泰国"]),
    ("TR", &["Turkish", "Turquia", "Turquie", "Turchia", "Ankara", "Bodrum"]),
    ("TW", &["Taiwanese"]),
    ("US", &[
        "American", "Estados Unidos", "Etats Unis", "Stati Uniti", "Vereinigte Staaten", "United State", "The US",
        "Los Angeles", "San Francisco", "Las Vegas", "Chicago", "Boston", "Miami", "Texas", "Seattle", "Orlando",
        "New York City", "NYC", "Washington", "Washington DC", "EEUU",
    ]),
    ("VI", &["U S Virgin Islands"]),
    ("VN", &["Vietnamese", "Ho Chi Minh"]),
    ("ZA", &["South African", "Sudafrica", "Sudafrika"]),
];

/// Words of common languages that are also country codes. In a sentence they are words; alone they are codes.
#[rustfmt::skip]
pub const PROSE_CODES: &str = "\
    ad al as at ax be bo by ca cc cd cf cm co cr cu de do ec ee eg er es et fo ge gg gi gl gm gs hm hr ht hu id ie il \
    im in io is it je ki km kn ky la lb lc li ls lt lu ma mc md me mf mg mh ml mo mr ms mt mu my na nc ne nf ni no nr \
    nu om pa pe pf pg pn pr pt re ro sa sb sc sd se sh si sl sm sn so sr ss st sv sz tc td tf tg tk tl tm tn to tr tt \
    us va ve vi ws ye \
    and are ago aia ala arm ben bel bra can cod cog col com cub dom esh est eth fin fra gab geo gin gum guy hun ind \
    isl jam jor lie lux mac mar men mus nam ner nic nor pan per pol sen sur tca ton tun uga vat vir";

/// Abbreviations so common that even in capitals they are no country inside a sentence.
pub const ABBREVIATIONS: &str =
    "ai am cc cm ec fm gb gg hm km lb mb mr ms pm pr ps sc sm st tv vi com vat mac";

/// Words that may stand beside "us" without making it a pronoun.
#[rustfmt::skip]
pub const BESIDE_US: &str = "\
    esim esims sim sims card data plan plans package packages bundle for in to the travel trip traveling travelling \
    visit visiting roaming internet mobile cheap cheapest best holiday vacation only";

/// Place names that are ordinary words as well: they count only when the text has nothing but places, sizes and prices.
pub const ORDINARY_PLACES: &str = "island oz med sea earth kiwi";

/// Ordinary words within an edit or two of a place, the most frequent English ones: "would" is not "world".
#[rustfmt::skip]
pub const ORDINARY: &str = "\
    achilles alan alas alia alien alta americana amps anand anastasia angela antiques apps aria aroma articles \
    ashe aside aspen athena audi avian baba babu bach bagel bail bake bald bale bales ball balm banish bark basal \
    base based bases basil beau begin bein benign benn berger berman berth bhai bland bolton bona bonfire borne \
    bran butch caine cali calories calvary cameron caro cena chai chan chao chap char chas chat chia child chill \
    chime chin ching chino christina cisco clad clarence columbus coma come condo cong convo cora core cores corey \
    countries crate create creation cree creek creme cristina cube cubs cyrus daca dark darth dash deli delphi \
    dina dire ditch dome dominic dominion dora each earths earthy embraces emigrated erie euro eyre faire fares \
    fellas fiance finish fire flinders forge founders fran franc frances francis franco francs fuji gaga gaia gala \
    gambit garth gaze geek genera georgie georgina germain germanic gina glam gland golf gorge gorman goto grace \
    gram gran greco greed greene greer greet grenade gull hana hearth hella hells herman hire home hutch imran \
    index indiana indie indies indy inland intentional iris iron islander islanders islands ivan jana jason jorge \
    kali kamala kiki kimi koran kristina labs lads lago lags lama land landmark landon laps lark lars lass lava \
    laws lays lenin leon liam liga lila limb lime limo limp lina lion lira lisa liza logo logos loon lydia lyndon \
    lynn mace mach macho macro made mage magnolia maher mail make malaria male males malik mall malt mane mani \
    mania marc marco mare mari mark marta mata mate maxi maze medallion media median merlin mila mimi mina moan \
    mode modelling monte moore munch munro neal nearest neville nice nicer nigel nike nikon nile nina nine nite \
    nixon normally norse olivia omar omen osama pain pairs parish park parks parts perch peri perk perm peta \
    plague planners planters pole poles polka pollen port porte presence printing pristine proto provenance \
    providence province provinces prudence rama reece rhine rhode rica rigs rita roam robe rode roland role roman \
    romeo romo rope rosa rose rotherham rowe saab sabha sack saga salaries sales sama samba sana sank santa sara \
    sari sars sata scam scuba seam sedan settle sham shark shine sickly sidney sire slain slam solo solomon soma \
    some soul southport spam span spark spawn spin stain stark starting starts stringent sued surname susan swain \
    swam swims tales teas texts than that thaw thine thus tiger timer tina tire tome tong toro toto tran trance \
    trench trish tumor tunes tunic undo valentina valentine vanish wages wakes walks walls walsh wanda wares waves \
    welch whales while whine willis winchester wire woman word would wrench zach";
