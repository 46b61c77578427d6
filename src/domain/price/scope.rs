//! Which plans a rule is for. A plan that covers one country is that country's; one that covers several is its
//! region's. A region is called by its countries (`coverage.rs`); those of the simulator have names of its own, such as
//! EUROPE-LITE.

use std::fmt;

use super::coverage;
use crate::domain::money::Usd;
use crate::domain::plan::typed_code;
use crate::domain::search;
use crate::domain::words::words;

words! {
    enum ScopeKind: parse {
        All = "all",
        Supplier = "supplier",
        Region = "region",
        Country = "country",
        Plan = "plan",
    }
}

/// From the most general to the most specific.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    All,
    Supplier(String),
    /// Plans of this coverage that work in several countries; in capitals.
    Region(String),
    /// Plans that work in this country and nowhere else.
    Country(String),
    Plan(String),
}

impl Scope {
    /// From the two words that name it. `Err` is a sentence for the operator.
    pub fn parse(kind: &str, target: &str) -> Result<Scope, String> {
        let kinds = "the scope must be all, supplier, region, country or plan";
        let kind = ScopeKind::parse(&kind.to_ascii_lowercase()).ok_or(kinds)?;
        match kind {
            ScopeKind::All if target.is_empty() => Ok(Scope::All),
            ScopeKind::All => Err("the scope all has no target".into()),
            _ if target.is_empty() => Err(format!("the scope {} needs a target", kind.as_str())),
            ScopeKind::Supplier => Ok(Scope::Supplier(target.into())),
            ScopeKind::Region => Ok(Scope::Region(typed_code(target))),
            ScopeKind::Country => {
                search::country_code(target).map(Scope::Country).map_err(|why| format!("the country {why}"))
            }
            ScopeKind::Plan => Ok(Scope::Plan(typed_code(target))),
        }
    }

    pub fn kind(&self) -> &'static str {
        let kind = match self {
            Scope::All => ScopeKind::All,
            Scope::Supplier(_) => ScopeKind::Supplier,
            Scope::Region(_) => ScopeKind::Region,
            Scope::Country(_) => ScopeKind::Country,
            Scope::Plan(_) => ScopeKind::Plan,
        };
        kind.as_str()
    }

    /// Empty for all plans.
    pub fn target(&self) -> &str {
        match self {
            Scope::All => "",
            Scope::Supplier(name) | Scope::Region(name) | Scope::Country(name) | Scope::Plan(name) => name,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::All => f.write_str("all plans"),
            other => write!(f, "{} {}", other.kind(), other.target()),
        }
    }
}

/// What rules know about a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub code: String,
    pub name: String,
    pub family: String,
    pub countries: Vec<String>,
    pub supplier: String,
    pub cost: Usd,
}

impl Subject {
    /// The scopes that it is in, the most specific first.
    pub fn scopes(&self) -> [Scope; 4] {
        let place = match self.countries.as_slice() {
            [country] => Scope::Country(country.clone()),
            several => Scope::Region(match self.family.strip_prefix(&format!("{}:", self.supplier)) {
                Some(_) => coverage::word(several),
                None => typed_code(&self.family),
            }),
        };
        [Scope::Plan(self.code.clone()), place, Scope::Supplier(self.supplier.clone()), Scope::All]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppliers_of_one_coverage_share_its_name() {
        let plan = |supplier: &str, family: &str, countries: &str| Subject {
            code: "X".into(),
            name: "X".into(),
            family: family.into(),
            countries: countries.split(' ').map(str::to_string).collect(),
            supplier: supplier.into(),
            cost: Usd::ZERO,
        };
        let place = |subject: Subject| subject.scopes()[1].to_string();
        assert_eq!(place(plan("acme", "acme:CA,US", "CA US")), "region NORTH-AMERICA");
        assert_eq!(place(plan("other", "other:americanmex", "US CA MX")), "region NORTH-AMERICA");
        assert_eq!(place(plan("sim", "EUROPE-LITE", "DE FR")), "region EUROPE-LITE");
        assert_eq!(place(plan("acme", "acme:JP", "JP")), "country JP");
    }
}
